use crate::views::time::Time;
use crate::words::text;
use profile::query::HeatRow;

/// Returns the label of a row, in at most `width` cells.
pub fn label(time: &Time, row: usize, width: usize) -> String {
    let of = time.answer().and_then(|answer| answer.rows.row(row));
    let label = match of {
        None => String::new(),
        Some(HeatRow::Part(part)) => {
            let ms = part as u64 * time.row_ns() / 1_000_000;
            return format!("{ms:>4}{}", if part == 0 { "ms" } else { "  " });
        }
        Some(row @ HeatRow::Cpus { .. }) if width < name(&row).len() => {
            name(&row).replace("CPU ", "").replace("CPUs ", "")
        }
        Some(row) => name(&row),
    };
    text::cut_middle(&label, width).into_owned()
}

/// Returns the name of a row: `CPU 3`, `CPUs 4-7`, `4131 postgres` or `12 others`.
pub fn name(row: &HeatRow) -> String {
    match row {
        HeatRow::Part(part) => format!("part {part}"),
        HeatRow::Cpus { first, last } if first == last => format!("CPU {first}"),
        HeatRow::Cpus { first, last } => format!("CPUs {first}-{last}"),
        HeatRow::Thread { tid, comm } => format!("{tid} {}", text::clean(comm)),
        HeatRow::Others(1) => "1 other".into(),
        HeatRow::Others(others) => format!("{others} others"),
    }
}
