//! A report as CSV by RFC 4180: one record per function, and nothing else. Unlike in the RFC, lines
//! end with LF, as Linux tools expect. A field with a comma or a quote is quoted, and control
//! characters are escaped, so a record is one line.

use super::BatchReport;
use crate::words::plain::plain;
use profile::{FunctionRow, Waits, percent};
use std::borrow::Cow;

/// The columns in the order of the file. `docs/batch-json.md` says what they mean. Names and order
/// must not change: scripts rely on them.
const COLUMNS: [&str; 14] = [
    "time",
    "window_s",
    "samples",
    "self",
    "total",
    "self_percent",
    "total_percent",
    "err_pp",
    "function",
    "module",
    "address",
    "waits",
    "mean_wait_ns",
    "longest_wait_ns",
];

/// Returns the line with the names of the columns, which is written once, before the first report.
pub(super) fn header() -> String {
    COLUMNS.join(",") + "\n"
}

/// Returns the records of a report. Functions that are not listed have none.
pub(super) fn rows(report: &BatchReport<'_>) -> String {
    let (shown, _) = report.split();
    shown.iter().map(|row| record(report, row)).collect()
}

/// Returns the record of one function. Each record repeats the values of the whole report: its time
/// in seconds since 1970, its window, and its samples.
fn record(report: &BatchReport<'_>, row: &FunctionRow) -> String {
    let samples = report.snapshot.report.samples;
    let seconds = report.time_unix_ms / 1000;
    let millis = report.time_unix_ms % 1000;
    let waits = |of: fn(&Waits) -> Option<u64>| {
        let number = row.waits.as_ref().and_then(of);
        number.map_or_else(String::new, |number| number.to_string())
    };
    let band = report
        .snapshot
        .report
        .band_points(row.self_samples, samples);
    let fields: [String; COLUMNS.len()] = [
        format!("{seconds}.{millis:03}"),
        format!("{:.3}", report.snapshot.report.window.seconds()),
        samples.to_string(),
        row.self_samples.to_string(),
        row.total_samples.to_string(),
        format!("{:.4}", percent(row.self_samples, samples)),
        format!("{:.4}", percent(row.total_samples, samples)),
        band.map_or_else(String::new, |band| format!("{band:.4}")),
        quote(&row.name).into_owned(),
        quote(&row.module).into_owned(),
        format!("{:#x}", row.address),
        waits(|waits| Some(waits.count)),
        waits(Waits::mean_ns),
        waits(|waits| Some(waits.longest_ns)),
    ];
    fields.join(",") + "\n"
}

/// Returns a field by RFC 4180: in quotes if it has a comma or a quote, with quotes in it doubled.
/// Newlines are escaped, as are all control characters.
fn quote(field: &str) -> Cow<'_, str> {
    let clean = plain(field);
    // Spaces at the ends are part of a field, yet some readers drop them.
    let at_an_end = clean.starts_with(' ') || clean.ends_with(' ');
    if clean.contains([',', '"']) || at_an_end {
        return Cow::Owned(format!("\"{}\"", clean.replace('"', "\"\"")));
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Format;
    use crate::batch::fixture::{Fixture, hostile};

    #[test]
    fn a_record_per_function_after_one_header() {
        let fixture = Fixture::postgres();
        let batch = fixture.batch(Some(2));
        assert_eq!(
            batch.render(Format::Csv, true),
            "\
time,window_s,samples,self,total,self_percent,total_percent,err_pp,function,module,address,waits,mean_wait_ns,longest_wait_ns
1722430982.007,10.000,3277,465,488,14.1898,14.8917,1.2367,hash_search_with_hash_value,postgres,0x1000,,,
1722430982.007,10.000,3277,321,360,9.7955,10.9857,1.0653,LWLockAcquire,postgres,0x1000,,,
"
        );
        assert!(batch.render(Format::Csv, false).starts_with("1722430982"));
        let beside = batch.beside(Format::Csv);
        let said = "DEADLOCK: postgres[4130] and postgres[4131] wait for each other since 25.0s";
        assert_eq!(beside, [said]);
        assert!(batch.beside(Format::Text).is_empty());
    }

    #[test]
    fn every_column_is_documented() {
        let document = include_str!("../../../docs/batch-json.md");
        let part = document.split("## CSV").nth(1).expect("a part on CSV");
        let documented: Vec<&str> = part
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .collect();
        assert_eq!(documented, COLUMNS);
    }

    /// Reads a record as RFC 4180 says.
    fn parse(line: &str) -> Vec<String> {
        let (mut fields, mut quoted) = (vec![String::new()], false);
        let mut chars = line.chars().peekable();
        while let Some(c) = chars.next() {
            let field = fields.last_mut().expect("never empty");
            match c {
                '"' if quoted && chars.peek() == Some(&'"') => {
                    chars.next();
                    field.push('"');
                }
                '"' => quoted = !quoted,
                ',' if !quoted => fields.push(String::new()),
                _ => field.push(c),
            }
        }
        assert!(!quoted, "{line}");
        fields
    }

    #[test]
    fn any_name_stays_in_its_field() {
        let fixture = hostile();
        let batch = fixture.batch(None);
        let csv = batch.render(Format::Csv, false);
        let (shown, _) = batch.split();
        assert_eq!(csv.lines().count(), shown.len());
        for (line, row) in csv.lines().zip(shown) {
            let fields = parse(line);
            assert_eq!(fields.len(), COLUMNS.len(), "{line}");
            assert_eq!(fields[8], plain(&row.name));
            assert!(!line.contains(char::is_control));
        }
    }
}
