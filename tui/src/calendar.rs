//! Dates and times of day. They are shown in the time zone of this machine, with its name, because
//! recordings come from other places. Names of files are in UTC.

use crate::user_files::UserFiles;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tz::{LocalTimeType, TimeZone};

/// The time zone of this machine and user. UTC until [`use_system_zone`] is called, as in tests.
static ZONE: OnceLock<Zone> = OnceLock::new();

/// The folders of time zones, in which glibc and musl search.
const FOLDERS: [&str; 3] = [
    "/usr/share/zoneinfo",
    "/usr/lib/zoneinfo",
    "/share/zoneinfo",
];

/// Maximum size of a file in bytes. The largest zone of the database has 4 kB.
const FILE_MAX: u64 = 1 << 18;

const DAY: i64 = 24 * 3_600;

/// Number of nanoseconds in a second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// Reads the time zone, once at the start, so that nothing is read while drawing.
pub fn use_system_zone() {
    let name = std::env::var("TZ").ok();
    let read = |path: &Path| UserFiles::current().read_bytes(path, FILE_MAX).ok();
    _ = ZONE.set(Zone::find(name.as_deref(), read));
}

/// Returns a time for the name of a file, as in `20261121T140312Z`. It takes seconds since 1970.
pub fn compact(seconds: u64) -> String {
    let [year, month, day, hour, minute, second] = fields(seconds as i64);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Returns date and time with the zone, as in `2026-11-21 14:03:12 CET`. It takes seconds since
/// 1970.
pub fn words(seconds: u64) -> String {
    here().words(seconds as i64)
}

/// Returns the time of day, as in `14:02:40`. It takes milliseconds since 1970.
pub fn of_day(unix_ms: i64) -> String {
    here().of_day(unix_ms)
}

/// Returns the name of the zone at that time: `CET`, or `+03` if it has no letters.
pub fn zone(unix_ms: i64) -> String {
    here().name(unix_ms.div_euclid(1_000)).to_owned()
}

/// Returns seconds since midnight, in the zone of this machine.
pub fn second_of_day(unix_ms: i64) -> u64 {
    here().local(unix_ms.div_euclid(1_000)).rem_euclid(DAY) as u64
}

fn here() -> &'static Zone {
    static UTC: OnceLock<Zone> = OnceLock::new();
    ZONE.get().unwrap_or_else(|| UTC.get_or_init(Zone::utc))
}

#[derive(Debug)]
struct Zone(TimeZone);

impl Zone {
    fn utc() -> Self {
        Zone(TimeZone::utc())
    }

    /// Reads the zone that `TZ` names, or else that of the machine. Returns UTC if it cannot be
    /// read. See tzset(3).
    fn find(name: Option<&str>, read: impl Fn(&Path) -> Option<Vec<u8>>) -> Self {
        let zone = |path: &Path| TimeZone::from_tz_data(&read(path)?).ok();
        let Some(name) = name else {
            return zone(Path::new("/etc/localtime")).map_or_else(Zone::utc, Zone);
        };
        let name = name.strip_prefix(':').unwrap_or(name);
        if name.is_empty() {
            return Zone::utc();
        }
        let of_file = paths(name).iter().find_map(|path| zone(path));
        let of_rule = || TimeZone::from_posix_tz(name).ok();
        of_file.or_else(of_rule).map_or_else(Zone::utc, Zone)
    }

    fn kind(&self, seconds: i64) -> Option<&LocalTimeType> {
        self.0.find_local_time_type(seconds).ok()
    }

    /// Returns the local time, in seconds as if since 1970.
    fn local(&self, seconds: i64) -> i64 {
        let offset = self.kind(seconds).map_or(0, LocalTimeType::ut_offset);
        seconds.saturating_add(offset.into())
    }

    fn name(&self, seconds: i64) -> &str {
        let kind = self.kind(seconds);
        let name = kind.map(LocalTimeType::time_zone_designation);
        name.filter(|name| !name.is_empty()).unwrap_or("UTC")
    }

    fn words(&self, seconds: i64) -> String {
        let [year, month, day, hour, minute, second] = fields(self.local(seconds));
        let name = self.name(seconds);
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} {name}")
    }

    fn of_day(&self, unix_ms: i64) -> String {
        let of_day = self.local(unix_ms.div_euclid(1_000)).rem_euclid(DAY);
        let (hours, minutes, seconds) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
        format!("{hours:02}:{minutes:02}:{seconds:02}")
    }
}

/// Returns the possible paths of a zone's file. A name that begins with `/` is a path; any other is
/// searched in the folders of zones. A name with `..` would lead out of them, so it has no path.
fn paths(name: &str) -> Vec<PathBuf> {
    if name.starts_with('/') {
        return vec![name.into()];
    }
    if name.split('/').any(|part| part == "..") {
        return Vec::new();
    }
    let paths = FOLDERS.iter().map(|folder| Path::new(folder).join(name));
    paths.collect()
}

/// Returns year, month, day, hour, minute and second. The algorithm is `civil_from_days` by Howard
/// Hinnant.
fn fields(seconds: i64) -> [i64; 6] {
    let (days, second) = (seconds.div_euclid(DAY) + 719_468, seconds.rem_euclid(DAY));
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
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

    fn rule(name: &str) -> Zone {
        Zone::find(Some(name), |_| None)
    }

    #[test]
    fn dates_are_those_of_date() {
        // As `date -u -d @SECONDS` prints them.
        assert_eq!(compact(1_795_269_792), "20261121T140312Z");
        assert_eq!(compact(951_782_400), "20000229T000000Z");
        assert_eq!(words(1_795_269_792), "2026-11-21 14:03:12 UTC");
        assert_eq!(words(0), "1970-01-01 00:00:00 UTC");
    }

    #[test]
    fn times_are_those_of_the_zone_at_that_time() {
        // As `TZ=Europe/Berlin date -d @SECONDS` prints them.
        let berlin = rule("CET-1CEST,M3.5.0,M10.5.0/3");
        assert_eq!(berlin.words(1_795_269_792), "2026-11-21 15:03:12 CET");
        assert_eq!(berlin.words(1_782_000_000), "2026-06-21 02:00:00 CEST");
        assert_eq!(berlin.of_day(1_795_303_000_999), "00:16:40");
        let kolkata = rule("<+0530>-5:30");
        assert_eq!(kolkata.words(0), "1970-01-01 05:30:00 +0530");
        // The local time is before 1970.
        assert_eq!(rule("EST5").words(0), "1969-12-31 19:00:00 EST");
        assert_eq!(rule("EST5").of_day(-1), "18:59:59");
    }

    #[test]
    fn a_zone_is_found_as_other_programs_find_it() {
        let asked = std::cell::RefCell::new(Vec::new());
        let find = |name: Option<&str>| {
            let zone = Zone::find(name, |path| {
                asked.borrow_mut().push(path.display().to_string());
                None
            });
            (zone.name(0).to_owned(), asked.take())
        };
        assert_eq!(find(None), ("UTC".into(), vec!["/etc/localtime".into()]));
        assert_eq!(find(Some("")).1, Vec::<String>::new());
        assert_eq!(
            find(Some(":Asia/Tokyo")).1[0],
            "/usr/share/zoneinfo/Asia/Tokyo"
        );
        assert_eq!(find(Some("/a/zone")).1, ["/a/zone"]);
        // Invalid names are ignored, and those that lead out of the folders.
        assert_eq!(find(Some("../../a")), ("UTC".into(), Vec::new()));
        assert_eq!(find(Some("no such zone")).0, "UTC");
        let hostile = Zone::find(None, |_| Some(b"TZif2\0\0\xff".repeat(90)));
        assert_eq!(hostile.words(0), "1970-01-01 00:00:00 UTC");
    }

    #[test]
    fn a_file_of_the_machine_is_read() {
        let read = |path: &Path| std::fs::read(path).ok();
        if read(Path::new("/usr/share/zoneinfo/Asia/Tokyo")).is_none() {
            return test_support::skip("needs the files of time zones");
        }
        let tokyo = Zone::find(Some("Asia/Tokyo"), read);
        assert_eq!(tokyo.words(1_795_269_792), "2026-11-21 23:03:12 JST");
    }
}
