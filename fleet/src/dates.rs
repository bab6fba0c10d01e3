//! Dates in UTC, and parsing of times.

use std::time::{SystemTime, UNIX_EPOCH};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Returns the date and the hour in UTC of a time in ms since 1970.
pub fn date_and_hour(unix_ms: i64) -> (String, u32) {
    let hours = unix_ms.div_euclid(HOUR_MS);
    let (days, hour) = (hours.div_euclid(24), hours.rem_euclid(24) as u32);
    // Days to date, as in Howard Hinnant's "chrono-compatible low-level date algorithms".
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = (shifted_month + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (format!("{year:04}-{month:02}-{day:02}"), hour)
}

/// Formats a time to the second, in UTC: `2026-11-21 14:03:12`.
pub fn written(unix_ms: i64) -> String {
    let (date, hour) = date_and_hour(unix_ms);
    let seconds = unix_ms.div_euclid(1000).rem_euclid(3600);
    format!("{date} {hour:02}:{:02}:{:02}", seconds / 60, seconds % 60)
}

/// Returns when a date such as `2026-11-21` begins, in ms since 1970; `None` if it is not a valid
/// date.
pub fn day_ms(date: &str) -> Option<i64> {
    let mut parts = date.split('-');
    let mut part = |digits: usize| -> Option<i64> {
        let text = parts.next()?;
        let is_fine = text.len() == digits && text.bytes().all(|it| it.is_ascii_digit());
        is_fine.then(|| text.parse().ok()).flatten()
    };
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // The reverse conversion, from the same source.
    let shifted_year = year - i64::from(month <= 2);
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    let ms = (era * 146_097 + of_era - 719_468) * DAY_MS;
    // The 31st of a month without one would become a day of the next month.
    (date_and_hour(ms).0 == date).then_some(ms)
}

/// Parses a time: `now`, a time ago (`90s`, `15m`, `1h`, `2d`), or a date with or without a time of
/// day, in UTC (`2026-11-21`, `2026-11-21 14:03`, `2026-11-21T14:03:12Z`).
pub fn read(text: &str, now_ms: i64) -> Result<i64, String> {
    let mistake = || {
        format!(
            "{text:?} is no time: write 1h for an hour ago (s, m, h, d), now, or a time in UTC such as \
             2026-11-21T14:03"
        )
    };
    if text == "now" {
        return Ok(now_ms);
    }
    let units = [("s", 1000), ("m", MINUTE_MS), ("h", HOUR_MS), ("d", DAY_MS)];
    for (unit, ms) in units {
        let number = text
            .strip_suffix(unit)
            .and_then(|it| it.parse::<u32>().ok());
        if let Some(number) = number {
            return Ok(now_ms - i64::from(number) * ms);
        }
    }
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, time.strip_suffix('Z').unwrap_or(time)),
        None => (text, "00:00"),
    };
    let day = day_ms(date).ok_or_else(mistake)?;
    let mut seconds = 0;
    let parts: Vec<&str> = time.split(':').collect();
    if !(2..=3).contains(&parts.len()) {
        return Err(mistake());
    }
    for (part, (unit, bound)) in parts.iter().zip([(3600, 24), (60, 60), (1, 60)]) {
        let is_fine = part.len() == 2 && part.bytes().all(|it| it.is_ascii_digit());
        let number = if is_fine { part.parse().ok() } else { None };
        let number: i64 = number.filter(|it| *it < bound).ok_or_else(mistake)?;
        seconds += number * unit;
    }
    Ok(day + seconds * 1000)
}

/// Returns the current time, in ms since 1970.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |it| it.as_millis() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (unix_s, date, hour) in [
            (0, "1970-01-01", 0),
            (951_782_399, "2000-02-28", 23),
            (951_782_400, "2000-02-29", 0),
            (1_795_269_792, "2026-11-21", 14),
            (-1, "1969-12-31", 23),
            (4_107_542_400, "2100-03-01", 0),
        ] {
            assert_eq!(
                date_and_hour(unix_s * 1000),
                (date.into(), hour),
                "{unix_s}"
            );
            let day = unix_s.div_euclid(86_400) * DAY_MS;
            assert_eq!(day_ms(date), Some(day), "{date}");
        }
        for wrong in [
            "",
            "2026",
            "2026-02-30",
            "2026-13-01",
            "26-1-1",
            "__HIVE__",
            "2026-11-21-1",
        ] {
            assert_eq!(day_ms(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn times_are_ago_or_in_utc() {
        let now = 1_795_269_792_000;
        assert_eq!(written(now), "2026-11-21 14:03:12");
        for (text, expected) in [
            ("now", now),
            ("0s", now),
            ("1h", now - HOUR_MS),
            ("2d", now - 2 * DAY_MS),
            ("2026-11-21T14:03:12Z", now),
            ("2026-11-21 14:03:12", now),
            ("2026-11-21T14:03", now - 12_000),
            ("2026-11-21", 1_795_219_200_000),
        ] {
            assert_eq!(read(text, now), Ok(expected), "{text}");
        }
        for wrong in [
            "",
            "h",
            "-1h",
            "1w",
            "14:03",
            "2026-11-21T24:00",
            "2026-11-21T1:00",
            "tomorrow",
            "é",
        ] {
            assert!(read(wrong, now).is_err(), "{wrong}");
        }
    }
}
