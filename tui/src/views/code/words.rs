//! The texts of the code view.

use super::Code;
use crate::action::Action;
use crate::code::Syntax;
use crate::context::Context;
use crate::view_id::ViewId;
use crate::views::code::{CodeAnswer, CodeRow};
use crate::words::fit::Segment;
use crate::words::keys::{and, hint};
use crate::words::{metric, names, source, text, units};
use profile::few;
use profile::{FrameKind, FunctionId, Report, Role};

/// Returns the sentence that says why there are no rows: no function was chosen, its code is still
/// being read, it has no code, or it has no samples.
pub fn why_empty(code: &Code, cx: &Context<'_>) -> String {
    match code.answer() {
        _ if cx.shown.view.is_none() => "no samples".into(),
        None if code.function().is_none() => whose(cx),
        None => "reading the code…".into(),
        Some(answer) if answer.function.role != Role::Function => {
            format!(
                "{} is no code: it stands for what is missing",
                answer.function.name
            )
        }
        Some(answer) => {
            let none = format!("{} has no samples in this window", answer.function.name);
            and(&none, "; ", [hint(cx, Action::Back, "back")])
        }
    }
}

/// Returns the sentence that says in which views a function can be selected to see its code.
fn whose(cx: &Context<'_>) -> String {
    let there = Action::Code;
    let key = cx.keymap.label(there, ViewId::Functions);
    let press = key.map(|key| format!("press {key} there"));
    // Keys are named only if all three views have one.
    let keys: Option<Vec<String>> = [ViewId::Functions, ViewId::Tree, ViewId::Flame]
        .into_iter()
        .map(|view| cx.keymap.label(Action::View(view), ViewId::Code))
        .collect();
    let views = match keys.as_deref() {
        Some([one, two, three]) => format!("{one}, {two} or {three}"),
        _ => "functions, tree or flame graph".into(),
    };
    let whose = format!("whose code? select a function in {views}");
    and(&whose, ", and ", [press])
}

/// Returns the short name of a function that the answer mentions.
pub fn name(answer: &CodeAnswer, id: FunctionId) -> String {
    match answer.functions.get(&id) {
        Some(function) => names::short(&function.name).into_owned(),
        None => "(no longer known)".into(),
    }
}

/// Returns the name of the source file or, if none is known, of the module.
pub fn title(code: &Code) -> String {
    let Some(answer) = code.answer() else {
        return String::new();
    };
    match &answer.body.file {
        Some(file) => file.rsplit('/').next().unwrap_or(file).to_owned(),
        None => answer.function.module.to_string(),
    }
}

/// Returns the text of a row: the line of source text, the instruction, or what the row sums up.
pub fn row(answer: &CodeAnswer, row: &CodeRow, syntax: Syntax) -> String {
    match row {
        CodeRow::Line { place, .. } => {
            let text = answer.body.text.as_ref();
            match text.and_then(|text| text.line(place.line)) {
                Some(line) => line.to_owned(),
                None if text.is_some() => "(the file ends before this line)".into(),
                None => String::new(),
            }
        }
        CodeRow::Instruction { at, .. } => match answer.body.instruction(*at) {
            Some(instruction) => instruction.text(syntax) + &called(answer, row),
            None => String::new(),
        },
        CodeRow::Gap(count) => {
            let count = units::counted(*count as u64, "more instruction");
            format!("… {count}")
        }
        CodeRow::Call {
            callee, samples, ..
        } => {
            let amount = metric::amount_by(answer.metric(), *samples);
            format!("calls {}, {amount} inclusive", name(answer, *callee))
        }
        CodeRow::Piece(number) => piece(answer, *number),
        CodeRow::Address { address: at, .. } => address(answer, *at) + &called(answer, row),
        CodeRow::OtherLines { lines, .. } => {
            let lines = units::counted(*lines as u64, "other line");
            format!("{lines} of this file")
        }
        CodeRow::OtherFile { file, lines, .. } => {
            let lines = units::counted(*lines as u64, "line");
            let file = answer.body.files.get(*file as usize);
            let file = file.map_or("", |file| file.rsplit('/').next().unwrap_or(file));
            format!("{lines} of {file}")
        }
        CodeRow::Unplaced { .. } => "of no line: the debug information has none there".into(),
    }
}

/// Returns `  → 489 smp inclusive` or `  → 2.41s inclusive` for a call. Other instructions reach
/// other functions only by an interrupt or a fault, which the detail line shows.
fn called(answer: &CodeAnswer, row: &CodeRow) -> String {
    let is_call = match row {
        CodeRow::Instruction { at, .. } => {
            let instruction = answer.body.instruction(*at);
            instruction.is_some_and(|instruction| instruction.is_call())
        }
        _ => true,
    };
    let spot = answer.spot(row);
    let calls = spot.filter(|spot| is_call && !spot.calls.is_empty());
    calls.map_or_else(String::new, |spot| {
        let amount = metric::amount_by(answer.metric(), spot.total);
        format!("  → {amount} inclusive")
    })
}

/// Returns an address as `vfs_read+0x12`, or as its place in the module if the start of its
/// function is not known.
pub fn address(answer: &CodeAnswer, address: u64) -> String {
    let start = answer.body.starts.get(&address);
    match start.and_then(|start| address.checked_sub(*start)) {
        Some(offset) => format!("{}+{offset:#x}", names::short(&answer.function.name)),
        None => place_in_module(answer, address),
    }
}

/// Returns an address as `postgres+0x8f2c0`, or as its address in memory if its code is not in a
/// file.
fn place_in_module(answer: &CodeAnswer, address: u64) -> String {
    match answer.function.kind {
        FrameKind::Kernel | FrameKind::Jit => format!("{address:#x}"),
        FrameKind::User | FrameKind::Python => format!("{}+{address:#x}", answer.function.module),
    }
}

/// Returns the offset from the start of the function, as `+0x8f`.
pub fn offset(answer: &CodeAnswer, (piece, _): (usize, usize), offset: u64) -> String {
    let start = answer.body.pieces.get(piece).map_or(0, |piece| piece.start);
    format!("+{:#x}", offset.wrapping_sub(start))
}

/// Returns the head of a piece of code.
pub fn piece(answer: &CodeAnswer, number: usize) -> String {
    let Some(piece) = answer.body.pieces.get(number) else {
        return String::new();
    };
    let place = place_in_module(answer, piece.start);
    match &piece.host {
        Some(host) => format!("inlined in {host}, {place}"),
        None => format!(
            "{} of it at {place}",
            part(number, answer.body.pieces.len())
        ),
    }
}

/// Returns `part 1 of 2`. A compiler may split a function, and put code that seldom runs elsewhere.
fn part(number: usize, count: usize) -> String {
    format!("part {} of {count}", number + 1)
}

/// Returns what the header says about the numbers of the code, and how reliable they are.
pub fn trust(code: &Code) -> Vec<Segment> {
    let Some(answer) = code.answer() else {
        return Vec::new();
    };
    let own = metric::bare_amount_by(answer.metric(), answer.code.self_samples);
    let inlined = answer.code.inlined_samples;
    let own = match inlined {
        0 => format!("{own} self"),
        _ => {
            let inlined = metric::bare_amount_by(answer.metric(), inlined);
            format!("{own} self + {inlined} inlined")
        }
    };
    let count = answer.body.instructions() as u64;
    let source = match &answer.body.text {
        Some(text) => format!("source: {}", text::clean(&text.origin)),
        None => "no source".into(),
    };
    let optional = |rank, text: String| Segment::new(rank, [text, String::new()]);
    vec![
        Segment::new(7, [own]),
        Segment::new(
            1,
            [
                units::counted(count, "instruction"),
                format!("{} instr", units::count(count)),
            ],
        ),
        optional(4, source),
        // The timer's interrupt is taken between two instructions, so that a sample may be counted
        // at the next one.
        Segment::new(2, ["skid ±1 possible", "skid ±1", ""].map(String::from)),
    ]
}

/// Returns the detail line: `27 samples on line 1713, 11.6% of its code ±4.1 pp   12 inlined from
/// add`.
pub fn detail(code: &Code, cx: &Context<'_>, width: usize) -> String {
    let found = code.answer().zip(code.selected());
    let Some((answer, row)) = found else {
        return String::new();
    };
    // The most important part comes first. If there is not enough room, the last parts are left
    // out.
    let mut parts = vec![number(answer, row, &cx.shown.report)];
    parts.extend(before(answer, row));
    parts.extend(inlined(answer, row));
    if let Some(spot) = answer.spot(row).filter(|spot| !spot.calls.is_empty()) {
        let (callee, samples) = &spot.calls[0];
        let more = match spot.calls.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        let callee = text::cut_middle(&name(answer, *callee), 30).into_owned();
        let amount = metric::amount_by(answer.metric(), *samples);
        parts.push(format!("calls {callee} ({amount}){more}"));
    }
    if let CodeRow::Instruction { offset, .. } = row {
        parts.extend(place(answer, row).map(|(words, _)| words));
        let place = place_in_module(answer, *offset);
        parts.push(text::clean(&place).into_owned());
    } else {
        parts.extend(place(answer, row).map(|(words, _)| words));
    }
    while parts.len() > 1 && text::width(&parts.join("   ")) > width {
        parts.pop();
    }
    parts.join("   ")
}

/// Returns a row's line as `heapam.c:1713`, and the path of that file: where its text was found, or
/// else the path in the debug information. Returns `None` if the row has no line.
pub fn place(answer: &CodeAnswer, row: &CodeRow) -> Option<(String, String)> {
    let body = &answer.body;
    let place = match row {
        CodeRow::Line { place, .. } => *place,
        CodeRow::Instruction { at, .. } => body.instruction(*at)?.place?,
        _ => return None,
    };
    let file = body.files.get(place.file as usize)?;
    let found = body
        .text
        .as_ref()
        .filter(|_| body.main_file() == Some(place.file));
    let path = found.map(|text| text.path.to_string_lossy().into_owned());
    let words = source::source(Some(file), place.line)?;
    Some((words, path.unwrap_or_else(|| file.to_string())))
}

/// Returns the place of a row: its line, or its offset in the function. Empty if the row is a sum.
pub fn short_place(answer: &CodeAnswer, row: &CodeRow) -> String {
    match row {
        CodeRow::Line { place, .. } => format!("line {}", place.line),
        CodeRow::Instruction { at, offset: to, .. } => offset(answer, *at, *to),
        _ => String::new(),
    }
}

/// Returns how many samples a row needs to be among the `rows_max` heaviest rows; 1 if there are
/// fewer rows.
pub fn least(rows: &[CodeRow], rows_max: usize) -> u64 {
    let mut samples: Vec<u64> = rows.iter().map(CodeRow::samples).collect();
    few::sort_by(&mut samples, |a, b| b.cmp(a));
    let least = rows_max.checked_sub(1).and_then(|at| samples.get(at));
    least.copied().unwrap_or(1).max(1)
}

/// Returns in words how much of the metric a row has, and its share.
pub fn number(answer: &CodeAnswer, row: &CodeRow, report: &Report) -> String {
    let all = answer.samples();
    let samples = match row {
        CodeRow::Call { samples, .. } => *samples,
        row => row.samples(),
    };
    let smp = metric::counted_by(answer.metric(), samples);
    if all == 0 {
        return "no sample hit this function's own code".into();
    }
    let share = units::share(report, samples, all);
    let band = units::band_text(report, samples, all);
    let share = format!("{share}% of its code {band} pp");
    match row {
        CodeRow::Line { place, .. } => format!("{smp} on line {}, {share}", place.line),
        // The samples of a called function are not samples of this function itself, so they have no
        // share of its code.
        CodeRow::Call { callee, .. } => {
            format!("{smp} in {}, called from this line", name(answer, *callee))
        }
        _ => format!("{smp}, {share}"),
    }
}

/// Returns the row's samples in the baseline, as `A: 12 samples, 4.1%`.
fn before(answer: &CodeAnswer, row: &CodeRow) -> Option<String> {
    let before = answer.before.as_ref()?;
    let samples = before.of(row)?;
    let share = units::percent(samples, before.samples);
    Some(format!(
        "A: {}, {share}%",
        metric::counted_by(answer.metric(), samples)
    ))
}

/// Returns what is inlined at a row, as `inlined from add (math.h:12)`.
fn inlined(answer: &CodeAnswer, row: &CodeRow) -> Option<String> {
    if let CodeRow::Instruction { at, .. } = row {
        let inlined = answer.body.instruction(*at)?.inlined.as_ref()?;
        return Some(format!("inlined from {}", text::clean(inlined)));
    }
    let spot = answer.spot(row).filter(|spot| spot.inlined > 0)?;
    let (id, place, _) = spot.heaviest.as_ref()?;
    let place = place.as_ref().and_then(|place| {
        let file = place.file.as_ref()?;
        let file = file.rsplit('/').next().unwrap_or(file);
        Some(format!(" ({}:{})", text::clean(file), place.line))
    });
    let inlined = metric::bare_amount_by(answer.metric(), spot.inlined);
    let name = name(answer, *id);
    Some(format!(
        "{inlined} inlined from {name}{}",
        place.unwrap_or_default()
    ))
}

/// Explains the number of the selected row in one sentence. Returns `None` if no row is selected.
pub fn explain(code: &Code, cx: &Context<'_>) -> Option<String> {
    let (answer, row) = (code.answer()?, code.selected()?);
    let function = &names::brief(&answer.function.name);
    let all = metric::counted_by(answer.metric(), answer.samples());
    let base = match answer.code.inlined_samples {
        0 => format!("{all} with {function} on top of the stack"),
        inlined => format!(
            "{all} that hit in the code of {function}, {} of them in what was inlined into it",
            metric::bare_amount_by(answer.metric(), inlined)
        ),
    };
    if let CodeRow::Call {
        callee, samples, ..
    } = row
    {
        return Some(format!(
            "{} that had {} on the stack, called from this line of {function}; each counts once",
            metric::counted_by(answer.metric(), *samples),
            names::brief(&name(answer, *callee))
        ));
    }
    let samples = row.samples();
    let share = units::share(&cx.shown.report, samples, answer.samples());
    let what = match row {
        CodeRow::Line { place, .. } => format!("on line {}", place.line),
        CodeRow::Instruction { .. } | CodeRow::Address { .. } => "at this instruction".into(),
        CodeRow::Unplaced { .. } => "at addresses without a line".into(),
        _ => "on lines that are not shown".into(),
    };
    let samples = metric::bare_amount_by(answer.metric(), samples);
    Some(format!(
        "{share}% = {samples} {what} / {base}; what is slow may be the instruction before"
    ))
}
