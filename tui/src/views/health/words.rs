//! The lines of Health as text.

use super::{Finding, Value};
use crate::words::{text, units};

/// The width of a label in cells, of which the last one is blank. Longer names are cut.
const LABEL_CELLS: usize = 16;

/// Returns a line as `  lost              1,126    7.2%  a buffer was full`.
pub fn entry(finding: &Finding) -> String {
    let (number, share) = match finding.value {
        // The line with the command for a module, indented below the module.
        Value::None if finding.label.is_empty() => return format!("      {}", finding.text),
        Value::None => return format!("  {:<18}{}", finding.label, finding.text),
        Value::Share(part, base) => (
            units::count(part),
            format!("{}%", units::completeness(part, base)).replace("-%", "-"),
        ),
        Value::Time(part, base, digits) => (
            units::nanoseconds(part),
            format!("{}%", units::completeness_to(digits, part, base)).replace("-%", "-"),
        ),
        Value::Part(part, base, digits) => (
            String::new(),
            format!("{}%", units::completeness_to(digits, part, base)).replace("-%", "-"),
        ),
        Value::Count(count) => (units::count(count), String::new()),
        Value::CpuPercent(percent) => (format!("{percent:.1}%"), String::new()),
        Value::Bytes(bytes) => (units::bytes(bytes), String::new()),
    };
    format!(
        "  {:<17}{number:>10}  {share:>6}  {}",
        text::cut_middle(&finding.label, LABEL_CELLS),
        finding.text
    )
}
