//! Dates of the civil calendar from seconds since 1970, in UTC: days are
//! counted as in Howard Hinnant's `civil_from_days`.

/// `20261121T140312Z`, for names of files.
pub fn compact(seconds: u64) -> String {
    let [year, month, day, hour, minute, second] = fields(seconds);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// `2026-11-21 14:03:12 UTC`
pub fn words(seconds: u64) -> String {
    let [year, month, day, hour, minute, second] = fields(seconds);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
}

/// `14:02:40`, of milliseconds since 1970.
pub fn of_day(unix_ms: i64) -> String {
    let of_day = unix_ms.div_euclid(1_000).rem_euclid(24 * 3_600);
    let (hours, minutes, seconds) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{hours:02}:{minutes:02}:{seconds:02}")
}

fn fields(seconds: u64) -> [u64; 6] {
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    [
        year,
        month,
        day,
        second / 3600,
        second / 60 % 60,
        second % 60,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_date() {
        // As `date -u -d @SECONDS` prints them.
        assert_eq!(compact(1_795_269_792), "20261121T140312Z");
        assert_eq!(compact(951_782_400), "20000229T000000Z");
        assert_eq!(words(1_795_269_792), "2026-11-21 14:03:12 UTC");
        assert_eq!(words(0), "1970-01-01 00:00:00 UTC");
    }
}
