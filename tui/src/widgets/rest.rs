//! The *rest*: rows that do not fit on the screen, summed up in one row, so that a column always
//! adds up.

use crate::knobs::Unit;
use crate::lists::table::{Item, Table};
use crate::words::units::{self, Scale};
use profile::Report;

/// The rows that are not visible, and their samples.
#[derive(Debug, Default)]
pub struct Rest {
    /// Number of rows above the visible ones.
    pub above: usize,
    /// Number of rows below the visible ones.
    pub below: usize,
    /// Samples of the rows that are not visible.
    /// `samples_max` is the largest number of samples of one of them.
    pub samples: u64,
    pub samples_max: u64,
    /// The smallest number of samples of a visible row.
    pub shown_min: u64,
}

impl Rest {
    /// Sums up the rows of a table that are not visible. Returns `None` if all are visible.
    pub fn of<I: Item>(table: &Table<I>, report: &Report) -> Option<Rest> {
        let lines: Vec<_> = table.lines(report).collect();
        let below = table.len().checked_sub(table.offset() + lines.len())?;
        if below == 0 && table.offset() == 0 {
            return None;
        }
        let here = lines.iter().filter(|line| !line.gone);
        let hidden = table.hidden_rows(report);
        let (samples, samples_max) = hidden.fold((0, 0), |(sum, max), row| {
            (sum + row.samples(), row.samples().max(max))
        });
        Some(Rest {
            above: table.offset(),
            below,
            samples,
            samples_max,
            shown_min: here.map(|line| line.row.samples()).min().unwrap_or(0),
        })
    }

    /// Returns the text of the row, such as `404 more, each below 1.2% = 35.2% self`, in the unit
    /// of the column above it.
    pub fn sentence(&self, scale: &Scale, what: &str) -> String {
        let amount = |samples| match scale.unit {
            Unit::Samples => format!("{} smp", scale.labelled(samples)),
            _ => scale.labelled(samples),
        };
        let sum = match self.samples {
            0 if scale.unit == Unit::Share => "0%".into(),
            samples => amount(samples),
        };
        let sum = format!("{sum} {what}");
        let sum = sum.trim_end();
        if self.above > 0 {
            return format!(
                "{} above + {} below = {sum}",
                units::count(self.above as u64),
                units::count(self.below as u64)
            );
        }
        let more = units::count(self.below as u64);
        if self.samples == 0 {
            format!("{more} more = {sum}")
        } else if self.samples_max < self.shown_min {
            let limit = amount(self.shown_min);
            format!("{more} more, each below {limit} = {sum}")
        } else {
            let limit = amount(self.samples_max);
            format!("{more} more, each at most {limit} = {sum}")
        }
    }

    /// Like [`Self::sentence`], but for processes and threads: it says that shares are shares of
    /// samples, because the column above counts CPUs unless the user has chosen another unit.
    pub fn of_people(&self, scale: &Scale) -> String {
        let what = match scale.unit {
            Unit::Share => "of samples",
            Unit::Machine => "of the machine",
            _ => "",
        };
        self.sentence(scale, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_no_more_than_it_knows() {
        let scale = |unit| Scale::of(unit, 3_277, 1);
        let mut rest = Rest {
            below: 404,
            samples: 1_154,
            samples_max: 38,
            shown_min: 39,
            ..Rest::default()
        };
        assert_eq!(
            rest.sentence(&scale(Unit::Share), "self"),
            "404 more, each below 1.2% = 35.2% self"
        );
        rest.samples_max = 39;
        assert_eq!(
            rest.sentence(&scale(Unit::Share), "self"),
            "404 more, each at most 1.2% = 35.2% self"
        );
        rest.above = 3;
        assert_eq!(
            rest.sentence(&scale(Unit::Share), "self"),
            "3 above + 404 below = 35.2% self"
        );
        rest.above = 0;
        rest.samples = 0;
        assert_eq!(
            rest.sentence(&scale(Unit::Share), "self"),
            "404 more = 0% self"
        );
    }
}
