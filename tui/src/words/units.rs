//! Formats numbers: with separators of thousands, and with only as many digits as the number of
//! samples supports.

use crate::context::Context;
use crate::knobs::{Unit, Window};
use engine::snapshot::Span;
use profile::{Report, percent_digits};
use std::time::Duration;

/// Returns a share in percent, as in `7.1` for 233 of 3,277. It is `-` if `base` is 0.
pub fn percent(part: u64, base: u64) -> String {
    percent_to(percent_digits(base), part, base)
}

/// Returns a share of a report's samples in percent. If samples count more than once, the number of
/// taken samples decides on the digits.
pub fn share(report: &Report, part: u64, base: u64) -> String {
    percent_to(report.percent_digits(base), part, base)
}

/// Returns a share in percent with this many decimals.
pub fn percent_to(decimals: usize, part: u64, base: u64) -> String {
    if base == 0 {
        return "-".into();
    }
    format!("{:.decimals$}", part as f64 * 100.0 / base as f64)
}

/// Returns a share as [`percent`] does, but never 100 while anything is missing.
pub fn completeness(part: u64, base: u64) -> String {
    completeness_to(percent_digits(base), part, base)
}

/// Returns a share as [`share`] does, but never 100 while anything is missing.
pub fn completeness_in(report: &Report, part: u64, base: u64) -> String {
    completeness_to(report.percent_digits(base), part, base)
}

/// Returns a share with this many decimals, which is never 100 while anything is missing.
pub fn completeness_to(decimals: usize, part: u64, base: u64) -> String {
    let text = percent_to(decimals, part, base);
    if part >= base || !text.starts_with("100") {
        return text;
    }
    match decimals {
        0 => "99".into(),
        1 => "99.9".into(),
        _ => "99.99".into(),
    }
}

/// Returns the 95% band of a share in percentage points, with as many digits as the share: `±0.9`,
/// or `±?` if a file does not say how many samples there were.
pub fn band_text(report: &Report, part: u64, base: u64) -> String {
    let decimals = report.percent_digits(base);
    match report.band_points(part, base) {
        Some(band) => format!("±{band:.decimals$}"),
        None => "±?".into(),
    }
}

/// Returns a number with separators of thousands: `13,120`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns a number with its noun: `1 sample`, `3,277 samples`.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}

/// Returns a duration in a suitable unit: `640ns`, `1.25us`, `10.0ms`, `2.00s`.
pub fn nanoseconds(ns: u64) -> String {
    let ns = ns as f64;
    let (value, unit) = match ns {
        ns if ns < 1e3 => return format!("{ns:.0}ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    // There are always three digits. Above these limits rounding would add another one.
    let digits = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$}{unit}")
}

/// Returns a duration as hours, minutes and seconds: `00:03:12`.
pub fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!(
        "{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// Returns how long ago something was: `3 days ago`.
pub fn ago(time: Duration) -> String {
    let seconds = time.as_secs();
    let (number, noun) = match seconds {
        0..60 => return "just now".into(),
        60..3_600 => (seconds / 60, "minute"),
        3_600..86_400 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    format!("{} ago", counted(number, noun))
}

/// Returns the length of a window: `10s`.
pub fn span(span: Span) -> String {
    match span {
        Span::Seconds(seconds) => format!("{seconds}s"),
        Span::All => "all".into(),
    }
}

/// Returns a window as the header shows it: `win 10s`, `since mark`.
pub fn window(window: Window) -> String {
    match window {
        Window::Last(last) => format!("win {}", span(last)),
        Window::Since { .. } => "since mark".into(),
        Window::Between { .. } => "marked".into(),
    }
}

/// Returns a number of bytes in a suitable unit: `84 MB`.
pub fn bytes(bytes: u64) -> String {
    const KB: u64 = 1 << 10;
    const MB: u64 = 1 << 20;
    const GB: u64 = 1 << 30;
    match bytes {
        0..KB => format!("{bytes} B"),
        KB..MB => format!("{} kB", bytes / KB),
        MB..GB => format!("{} MB", bytes / MB),
        _ => format!("{:.1} GB", bytes as f64 / GB as f64),
    }
}

/// Returns how many CPUs were busy: 3,277 samples in 10 s at 99 Hz are 3.31 CPUs. None if rate or
/// time is not known.
pub fn cpus(samples: u64, rate_hz: u32, seconds: f64) -> Option<f64> {
    let possible = f64::from(rate_hz) * seconds;
    (possible > 0.0).then(|| samples as f64 / possible)
}

/// Converts numbers of samples to a unit.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    pub unit: Unit,
    /// The number of samples that is 100 percent.
    base: u64,
    /// Number of decimals of percentages.
    digits: usize,
    /// Samples per second of one busy CPU, and the duration of the samples. With both, a number of
    /// samples is a time.
    rate_hz: u32,
    seconds: f64,
    /// Number of CPUs of the machine, for shares of it.
    machine_cpus: u32,
    /// Whether the amounts are nanoseconds instead of samples.
    is_time: bool,
}

impl Scale {
    /// Returns the scale for the unit of a view, with shares relative to `base`.
    pub fn new(cx: &Context<'_>, base: u64) -> Self {
        Scale {
            unit: cx.unit(),
            base,
            digits: cx.shown.report.percent_digits(base),
            rate_hz: cx.per_second(),
            seconds: cx.shown.report.window.seconds(),
            machine_cpus: cx.shown.source.host.cpus,
            is_time: cx.counts_time(),
        }
    }

    /// Returns a scale without rate and time.
    #[cfg(test)]
    pub fn of(unit: Unit, base: u64, digits: usize) -> Self {
        Scale {
            unit,
            base,
            digits,
            rate_hz: 0,
            seconds: 0.0,
            machine_cpus: 0,
            is_time: false,
        }
    }

    /// Returns the number, which is at most six cells wide.
    pub fn text(&self, samples: u64) -> String {
        match self.unit {
            Unit::Share => percent_to(self.digits, samples, self.base),
            Unit::Samples if self.is_time => nanoseconds(samples),
            Unit::Samples if samples > 99_999 => format!("{}k", samples / 1000),
            Unit::Samples => count(samples),
            Unit::Machine | Unit::CpuMs | Unit::Cpus => self.rate(samples as f64),
        }
    }

    /// Returns the 95% band of a number, in the unit of the scale. `?` if a file does not say how
    /// many samples there were.
    pub fn band(&self, report: &Report, samples: u64) -> String {
        let Some(points) = report.band_points(samples, self.base) else {
            return "?".into();
        };
        let band = self.base as f64 * points / 100.0;
        match self.unit {
            Unit::Share => format!("{points:.digits$}", digits = self.digits),
            Unit::Samples => self.text(band.round() as u64),
            Unit::Machine | Unit::CpuMs | Unit::Cpus => self.rate(band),
        }
    }

    /// Returns a number of samples in a unit that depends on time.
    fn rate(&self, samples: f64) -> String {
        let cpus = cpus(1, self.rate_hz, self.seconds).map(|of_one| of_one * samples);
        let number = match self.unit {
            Unit::Machine if self.machine_cpus == 0 => None,
            Unit::Machine => cpus.map(|cpus| (cpus * 100.0 / f64::from(self.machine_cpus), 1)),
            Unit::CpuMs => cpus.map(|cpus| (cpus * 1000.0, 0)),
            Unit::Share | Unit::Samples | Unit::Cpus => cpus.map(|cpus| (cpus, 2)),
        };
        number.map_or_else(
            || "-".into(),
            |(number, decimals)| format!("{number:.decimals$}"),
        )
    }

    /// Whether the amounts are nanoseconds instead of samples.
    pub fn is_time(&self) -> bool {
        self.is_time
    }

    /// Returns an amount without a unit: `1,036`, or `2.50s` if time is counted.
    pub fn bare(&self, amount: u64) -> String {
        if self.is_time {
            nanoseconds(amount)
        } else {
            count(amount)
        }
    }

    /// Returns the scale for samples of another duration and rate.
    pub fn over(self, rate_hz: u32, seconds: f64) -> Self {
        Scale {
            rate_hz,
            seconds,
            ..self
        }
    }

    /// Returns the number with its unit: `31.6%`, `1,036`, `651 ms/s`.
    pub fn labelled(&self, samples: u64) -> String {
        match (self.text(samples), self.unit) {
            (text, Unit::Samples) => text,
            (text, _) if text == "-" => text,
            (text, Unit::Share | Unit::Machine) => format!("{text}%"),
            (text, Unit::CpuMs) => format!("{text} ms/s"),
            (text, Unit::Cpus) if self.is_time => format!("{text} threads"),
            (text, Unit::Cpus) => format!("{text} CPU"),
        }
    }

    /// Returns the number in the unit, as in `12.3% of the machine`. None if the unit is a share or
    /// samples, which are shown anyway, or if the number is not known.
    pub fn beside(&self, samples: u64) -> Option<String> {
        let text = self.labelled(samples);
        match self.unit {
            Unit::Share | Unit::Samples => None,
            _ if text == "-" => None,
            Unit::Machine => Some(format!("{text} of the machine")),
            Unit::CpuMs | Unit::Cpus => Some(text),
        }
    }

    /// Returns the number for a column beside a share: samples, unless the unit is another one.
    pub fn amount(&self, samples: u64) -> String {
        match self.unit {
            Unit::Share | Unit::Samples if self.is_time => nanoseconds(samples),
            Unit::Share | Unit::Samples => count(samples),
            Unit::Machine | Unit::CpuMs | Unit::Cpus => self.text(samples),
        }
    }

    /// Returns the head of the column of [`Self::amount`].
    pub fn amount_head(&self) -> &'static str {
        match self.unit {
            Unit::Share | Unit::Samples if self.is_time => "TIME",
            Unit::Share | Unit::Samples => "SMP",
            Unit::Machine => "MACH%",
            Unit::CpuMs => "MS/S",
            Unit::Cpus => "CPUS",
        }
    }

    /// Returns the head of a column: `percent` if its numbers are percentages, else `other`.
    pub fn head(&self, percent: &'static str, other: &'static str) -> &'static str {
        match self.unit {
            Unit::Share | Unit::Machine => percent,
            Unit::Samples | Unit::CpuMs | Unit::Cpus => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        let times = [
            (640, "640ns"),
            (1250, "1.25us"),
            (9_999, "10.0us"),
            (10_000_000, "10.0ms"),
            (250_000_000, "250ms"),
            (2_000_000_000, "2.00s"),
        ];
        for (ns, expected) in times {
            assert_eq!(nanoseconds(ns), expected);
        }
    }

    #[test]
    fn a_number_by_itself_has_its_unit() {
        let scale = |unit| Scale {
            unit,
            base: 3_277,
            digits: 1,
            rate_hz: 99,
            seconds: 10.0,
            machine_cpus: 16,
            is_time: false,
        };
        let both = |unit| (scale(unit).labelled(1_036), scale(unit).beside(1_036));
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(both(Unit::Share), ("31.6%".into(), None));
        assert_eq!(both(Unit::Samples), ("1,036".into(), None));
        let machine = some("6.5% of the machine");
        assert_eq!(both(Unit::Machine), ("6.5%".into(), machine));
        assert_eq!(both(Unit::CpuMs), ("1046 ms/s".into(), some("1046 ms/s")));
        assert_eq!(both(Unit::Cpus), ("1.05 CPU".into(), some("1.05 CPU")));
        // The scale for one cell of the map of time.
        let cell = scale(Unit::Cpus).over(99, 0.1);
        assert_eq!(cell.labelled(10), "1.01 CPU");
        let untimed = scale(Unit::Cpus).over(0, 0.1);
        assert_eq!(
            (untimed.labelled(10), untimed.beside(10)),
            ("-".into(), None)
        );
    }

    #[test]
    fn digits_follow_what_was_taken() {
        let report = Report {
            reweighed: Some(profile::Reweighed {
                taken: 330,
                evidence: 0.1,
                drawn: 0.1,
            }),
            ..Report::default()
        };
        assert_eq!(share(&report, 233, 3_277), "7");
        assert_eq!(share(&report, 2_330, 32_770), "7.1");
        assert_eq!(band_text(&report, 233, 3_277), "±3");
        assert_eq!(share(&Report::default(), 233, 3_277), "7.1");
        // These are 330 waits of 10 ms each.
        assert_eq!(completeness_in(&report, 3_276, 3_277), "99");
        assert_eq!(completeness_in(&report, 3_277, 3_277), "100");
    }

    #[test]
    fn digits_follow_the_samples() {
        assert_eq!(percent(11, 52), "21");
        assert_eq!(percent(233, 3_277), "7.1");
        assert_eq!(percent(71_000, 1_000_000), "7.10");
        assert_eq!(percent(0, 0), "-");
    }

    #[test]
    fn nothing_missing_is_the_only_hundred() {
        assert_eq!(completeness(9_999, 10_000), "99.9");
        assert_eq!(completeness(999, 999), "100");
        assert_eq!(completeness(998, 999), "99");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(13_120), "13,120");
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(counted(1, "row"), "1 row");
        assert_eq!(counted(0, "row"), "0 rows");
        assert_eq!(clock(Duration::from_secs(192)), "00:03:12");
        assert_eq!(ago(Duration::from_secs(5)), "just now");
        assert_eq!(ago(Duration::from_secs(7_300)), "2 hours ago");
        assert_eq!(ago(Duration::from_secs(86_400)), "1 day ago");
        assert_eq!(bytes(84 << 20), "84 MB");
        assert_eq!(
            cpus(3_277, 99, 10.0).map(|c| (c * 100.0).round()),
            Some(331.0)
        );
        assert_eq!(cpus(1, 99, 0.0), None);
    }
}
