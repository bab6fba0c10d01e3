//! The rows of a page. Callers and callees have rows of their own as long as there is room beside
//! the rest; the others share one row, until it is opened.

use super::{Before, Neighbours, PageAnswer, PagePosition};
use crate::words::names;
use profile::FunctionId;
use profile::query::{Neighbour, NeighbourKind};
use unicode_width::UnicodeWidthStr;

/// One line of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageRow {
    Caller(Neighbour),
    /// The row that sums up the other callers: their number, their samples, and whether it is open.
    MoreCallers(usize, u64, bool),
    /// The function itself.
    Function,
    /// Callers or callees that exist only in the baseline.
    Gone(Vec<(String, u64)>),
    /// The head of the callees.
    Callees,
    Callee(Neighbour),
    /// The row that sums up the other callees, like `MoreCallers`.
    MoreCallees(usize, u64, bool),
    /// The head of the heaviest stack.
    Stack,
    /// A line of the heaviest stack.
    StackLine(String),
    /// The last seconds as blocks.
    Seconds,
    Blank,
}

/// Identifies a row: a row with an equal key in the next answer is the same row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKey {
    Caller(NeighbourKind),
    MoreCallers,
    Function,
    Callee(NeighbourKind),
    MoreCallees,
}

impl PageRow {
    /// Returns the key of the row, or `None` if the row cannot be selected.
    pub fn key(&self) -> Option<RowKey> {
        match self {
            PageRow::Caller(neighbour) => Some(RowKey::Caller(neighbour.kind)),
            PageRow::MoreCallers(..) => Some(RowKey::MoreCallers),
            PageRow::Function => Some(RowKey::Function),
            PageRow::Callee(neighbour) => Some(RowKey::Callee(neighbour.kind)),
            PageRow::MoreCallees(..) => Some(RowKey::MoreCallees),
            PageRow::Gone(_)
            | PageRow::Callees
            | PageRow::Stack
            | PageRow::StackLine(_)
            | PageRow::Seconds
            | PageRow::Blank => None,
        }
    }
}

impl RowKey {
    /// Returns the key with the present id of its function. The id of a function changes when its
    /// name arrives and shows that it is the same as a known function.
    pub fn renamed(self, current: impl Fn(FunctionId) -> FunctionId) -> Self {
        let rename = |kind| match kind {
            NeighbourKind::Function(id) => NeighbourKind::Function(current(id)),
            kind => kind,
        };
        match self {
            RowKey::Caller(kind) => RowKey::Caller(rename(kind)),
            RowKey::Callee(kind) => RowKey::Callee(rename(kind)),
            key => key,
        }
    }
}

/// The heaviest stack has at most [`STACK_LINES`] lines, or 1/4 of the lines of a tall screen if
/// that is more. Of a longer stack the part nearest to the leaf is shown.
const STACK_LINES: usize = 3;
const STACK_PART: usize = 4;

/// From this number of lines on there are blank lines between the parts of the page.
const HEIGHT_WITH_BLANKS: usize = 17;

/// Minimum number of callers, and of callees, that have rows.
const ROWS_MIN: usize = 2;

/// Returns the rows of a page from the top, none if no sample contains the function:
/// 1. callers, and a row about those that exist only in the baseline,
/// 2. the function itself,
/// 3. callees, and a row about those that exist only in the baseline,
/// 4. the heaviest stack, and the time line.
///
/// Callers and callees share the lines that the other parts leave.
pub fn rows(answer: &PageAnswer, place: &PagePosition, width: u16, height: usize) -> Vec<PageRow> {
    let Some(page) = &answer.page else {
        return Vec::new();
    };
    let stack = stack_lines(answer, usize::from(width).saturating_sub(4));
    let has_blanks = height >= HEIGHT_WITH_BLANKS;
    let stack_lines = if has_blanks {
        STACK_LINES.max(height / STACK_PART)
    } else {
        1
    };
    let gone = |of: fn(&Before) -> &Neighbours| {
        let gone = &of(answer.before.as_ref()?).gone;
        (!gone.is_empty()).then(|| PageRow::Gone(gone.clone()))
    };
    let (callers_gone, callees_gone) = (gone(|b| &b.callers), gone(|b| &b.callees));
    // The 4 lines are the function, the heads of callees and stack, and the time line.
    let fixed = 4 + if has_blanks { 2 } else { 0 };
    let fixed = fixed + usize::from(callers_gone.is_some()) + usize::from(callees_gone.is_some());
    // Lines that callers and callees do not need are available to the stack.
    let needed = page.callers.len().max(ROWS_MIN) + page.callees.len().max(ROWS_MIN);
    let stack_lines = stack_lines.max(height.saturating_sub(fixed + needed));
    let cut = stack.len().saturating_sub(stack_lines);
    let mut stack = stack[cut..].to_vec();
    if cut > 0
        && let Some(first) = stack.first_mut()
    {
        first.insert_str(0, "… ");
    }
    let fixed = fixed + stack.len();
    let room = height.saturating_sub(fixed);
    let (callers, callees) = share(room, page.callers.len(), page.callees.len());

    // If the selected caller or callee has no samples any more, it keeps a row with 0 samples.
    let held = |wanted: fn(NeighbourKind) -> RowKey, all: &[Neighbour]| match place.held {
        Some(RowKey::Caller(kind) | RowKey::Callee(kind)) => (place.held == Some(wanted(kind))
            && !all.iter().any(|neighbour| neighbour.kind == kind))
        .then_some(Neighbour { kind, samples: 0 }),
        _ => None,
    };
    let gone_caller = held(RowKey::Caller, &page.callers);
    let gone_callee = held(RowKey::Callee, &page.callees);

    let mut rows = Vec::new();
    let (shown, more) = split(&page.callers, callers, place.all_callers, place.held);
    rows.extend(shown.into_iter().chain(gone_caller).map(PageRow::Caller));
    rows.extend(more.map(|(n, samples)| PageRow::MoreCallers(n, samples, place.all_callers)));
    rows.extend(callers_gone);
    rows.extend(has_blanks.then_some(PageRow::Blank));
    rows.push(PageRow::Function);
    rows.extend(has_blanks.then_some(PageRow::Blank));
    rows.push(PageRow::Callees);
    let (shown, more) = split(&page.callees, callees, place.all_callees, place.held);
    rows.extend(shown.into_iter().chain(gone_callee).map(PageRow::Callee));
    rows.extend(more.map(|(n, samples)| PageRow::MoreCallees(n, samples, place.all_callees)));
    rows.extend(callees_gone);
    rows.push(PageRow::Stack);
    rows.extend(stack.iter().cloned().map(PageRow::StackLine));
    rows.push(PageRow::Seconds);
    rows
}

/// Returns how many rows callers and callees get: half of `room` each, plus what the other side
/// does not need.
fn share(room: usize, callers: usize, callees: usize) -> (usize, usize) {
    let half = (room / 2).max(ROWS_MIN);
    let for_callers = callers.min(half.max(room.saturating_sub(callees)));
    let for_callees = room.saturating_sub(for_callers).max(ROWS_MIN);
    (for_callers.max(ROWS_MIN), for_callees)
}

/// Returns the neighbours that get a row each, and the number and the samples of the others. The
/// selected one always gets a row.
fn split(
    all: &[Neighbour],
    room: usize,
    is_open: bool,
    held: Option<RowKey>,
) -> (Vec<Neighbour>, Option<(usize, u64)>) {
    if all.len() <= room {
        return (all.to_vec(), None);
    }
    let is_held = |kind| {
        [RowKey::Caller(kind), RowKey::Callee(kind)].contains(&held.unwrap_or(RowKey::Function))
    };
    // One line is reserved for the sum of the others.
    let (large, small) = all.split_at(room.saturating_sub(1));
    let sum = small.iter().map(|neighbour| neighbour.samples).sum();
    let more = Some((small.len(), sum));
    // If it is open, all have rows. The row of the sum stays, so that it can be closed again.
    if is_open {
        return (all.to_vec(), more);
    }
    let mut shown = large.to_vec();
    let (held, hidden): (Vec<Neighbour>, Vec<Neighbour>) =
        small.iter().partition(|neighbour| is_held(neighbour.kind));
    shown.extend(held);
    let sum = hidden.iter().map(|neighbour| neighbour.samples).sum();
    (shown, Some((hidden.len(), sum)).filter(|(n, _)| *n > 0))
}

/// Returns the heaviest stack, root first, broken into lines of at most `width` cells. A name that
/// is longer than that has a line of its own.
fn stack_lines(answer: &PageAnswer, width: usize) -> Vec<String> {
    let heaviest = answer.page.as_ref().map_or(&[][..], |page| &page.heaviest);
    let mut lines = vec![String::new()];
    for (at, id) in heaviest.iter().enumerate() {
        let Some(function) = answer.functions.get(id) else {
            continue;
        };
        let arrow = if at + 1 < heaviest.len() { " ›" } else { "" };
        let word = format!("{}{arrow}", names::short(&function.name));
        let last = lines.last_mut().expect("there is always a last line");
        if last.is_empty() {
            last.push_str(&word);
        } else if last.width() + 1 + word.width() <= width {
            last.push(' ');
            last.push_str(&word);
        } else {
            lines.push(word);
        }
    }
    lines
}
