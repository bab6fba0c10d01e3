//! The sentence of a *notice*, which is the result of a key or an order, or news of the program.

use crate::action::Action;
use crate::context::Context;
use crate::lists::find::Found;
use crate::notice::{FETCH, NEVER, Notice};
use crate::view_id::{Feature, ViewId};
use crate::words::keys::{and, hint, hints, key};
use crate::words::{metric, text, units};

/// Returns the sentence of a notice, with the keys that are useful for it.
///
/// `found` is the present result of the search in the focused view; `is_remote` says that the
/// terminal is on another machine.
pub fn sentence(
    notice: &Notice,
    cx: &Context<'_>,
    found: Option<Found<'_>>,
    is_remote: bool,
) -> String {
    match notice {
        Notice::Found {
            pattern,
            rows,
            samples,
            position,
        } => {
            // The rows may have changed since the key was pressed.
            let (rows, samples) = match found {
                Some(now) => (now.rows, now.samples),
                None => (*rows, *samples),
            };
            // The position is among the rows as they were when the key was pressed.
            let position = position.filter(|at| *at <= rows);
            let found = finding(cx, rows, samples);
            let position = position.map_or_else(String::new, |at| format!("   {at} of {rows}"));
            let found = format!("/{pattern}/ {found}{position}");
            let keys = [Action::FindNext, Action::FindPrevious];
            and(&found, "   ", [hints(cx, keys, "next, previous")])
        }
        Notice::Refused(why) => why.clone(),
        Notice::Only(words) => undoable(cx, &format!("only {words} counts now")),
        Notice::OnlyThis(words) => format!("nothing but {words} is counted already"),
        Notice::WindowSet => undoable(cx, "the window is set"),
        Notice::FilterSet => undoable(cx, "the filter is set"),
        Notice::Undone(what) => {
            let again = hint(cx, Action::Forward, "do it again");
            and(&format!("undone: {what}"), "; ", [again])
        }
        Notice::UnitSet => "numbers are in this unit from now on".into(),
        Notice::MetricSet => "this is counted from now on".into(),
        Notice::Frozen(true) => {
            let on = hint(cx, Action::Freeze, "the newest again");
            and("these samples stay", "; ", [on])
        }
        Notice::Frozen(false) => "the newest samples are shown".into(),
        Notice::NoFind => {
            let opens = key(cx, Action::Find).map(|key| format!("{key} opens the find line"));
            and("nothing to find", ": ", [opens])
        }
        Notice::NoPane => {
            "nothing stands beside this view here: that takes a terminal of 120 columns".into()
        }
        Notice::NoBack => "this is where it began: there is nothing to undo".into(),
        Notice::NoForward => "this is the newest place: there is nothing ahead".into(),
        Notice::NothingSelected => "nothing is selected that this works on".into(),
        Notice::OneMachine => "all that is counted is of one machine".into(),
        Notice::OnlySampled(scope) => format!("only {scope} is sampled: nothing else came in"),
        Notice::Marked => {
            let anew = hint(cx, Action::Mark, "mark anew");
            let undo = hint(cx, Action::Back, "undo");
            and("marked: the window begins now", "; ", [anew, undo])
        }
        Notice::Rate { hz, is_new: true } => format!(
            "{hz} Hz from now on; a window that has both rates counts all at the higher one"
        ),
        Notice::Rate { hz, is_new: false } => format!("{hz} Hz, as before"),
        Notice::NoSampling(why) => format!("the rate cannot be changed: {why}"),
        Notice::WaitsAsked { is_frozen: false } => "waits are counted in a moment…".into(),
        Notice::WaitsAsked { is_frozen: true } => {
            let on = hint(cx, Action::Freeze, "go on to see them");
            and("waits are counted in a moment", "; ", [on])
        }
        Notice::WaitsCounted => {
            "waits are counted from now on, at 0.6-1us of CPU a switch, until you quit".into()
        }
        Notice::OneMetric(why) => why.clone(),
        Notice::Writing { bytes: 0, .. } => "writing…".into(),
        // The size is an estimate. If it is exceeded, a percentage would be wrong.
        Notice::Writing { bytes, about } => {
            let so_far = units::bytes(*bytes);
            match about.filter(|about| about >= bytes) {
                Some(about) => format!("writing… {}%  {so_far}", bytes * 100 / about),
                None => format!("writing… {so_far}"),
            }
        }
        Notice::Written { path, bytes } => {
            let wrote = format!("wrote {path}, {}", units::bytes(*bytes));
            if is_remote {
                // If the file is on another machine, the path alone is of little use.
                format!(
                    "{wrote}   scp {}:{path} .",
                    text::clean(&cx.shown.source.host.name)
                )
            } else {
                wrote
            }
        }
        Notice::NotWritten { why, stopped: None } => format!("the file was not written: {why}"),
        Notice::NotWritten {
            why,
            stopped: Some(count),
        } => {
            let files = units::counted(u64::from(*count), "file");
            format!("no more files are written, after {files}: {why}")
        }
        Notice::NoMoreFiles(count) => {
            let files = units::counted(u64::from(*count), "file");
            format!("no more files are written: {files} so far")
        }
        Notice::NothingToWrite => "no samples have come yet".into(),
        Notice::Baseline {
            samples,
            is_another,
        } => {
            let are = format!("{} are the baseline, A", metric::counted(cx, *samples));
            let next = if *is_another {
                hint(cx, Action::Back, "the one before")
            } else {
                hint(cx, Action::Difference, "what differs from them")
            };
            and(&are, "; ", [next])
        }
        Notice::NothingToCompare => {
            "no samples are shown: nothing can be compared with that".into()
        }
        Notice::NotInDifference => {
            let back = key(cx, Action::Difference);
            let back = back.map(|key| format!("{key} goes back to the functions"));
            and("not in the difference", ": ", [back])
        }
        Notice::NoBaseline => {
            let makes = key(cx, Action::Baseline);
            let makes = makes.map(|key| format!("{key} makes what is shown A"));
            and("nothing to compare with yet", ": ", [makes])
        }
        Notice::MayFetch { file, servers } => {
            let (file, server) = (text::cut_middle(file, 24), server(servers));
            let server = text::cut_middle(&server, 40);
            format!(
                "fetch names of {file} from {server}? It learns what runs here. \
                 {FETCH}: fetch, {NEVER}: never, Esc: not now"
            )
        }
        Notice::Fetches(true) => "debug files are fetched, and names come with them".into(),
        Notice::Fetches(false) => {
            "no debug files are fetched, now or in later runs; :debuginfod on changes it".into()
        }
        Notice::NoServers => {
            "no servers are named: start with DEBUGINFOD_URLS=… before proftop".into()
        }
        Notice::NoCause => "no frame lacks a name: there is nothing to type".into(),
        Notice::NoTime => {
            "this file does not say when a sample was taken: it has one window".into()
        }
        Notice::NoNow => "no new samples come in: a window cannot begin now".into(),
        Notice::WorksElsewhere {
            key,
            what,
            views,
            also,
        } => {
            // The most important part is first, because a narrow screen cuts the end.
            let works = format!("{key} works in {views}: {what}");
            if also.is_empty() {
                works
            } else {
                format!("{works}; also in {also}")
            }
        }
        Notice::NoSuchKey => {
            let keys = [hint(cx, Action::Help, "the keys of this view")];
            and("this key does nothing here", "; ", keys)
        }
        Notice::RowGone => "this row has no samples now: select one that has".into(),
        Notice::Runs(true) => "every frame has a row of its own".into(),
        Notice::Runs(false) => "frames that call only one other are one row".into(),
        Notice::HotPath(0) => "nothing below has half of it: the hot path ends here".into(),
        Notice::HotPath(steps) => {
            let steps = units::counted(u64::from(*steps), "step");
            format!("the hot path ends here, {steps} down: nothing below has half of it")
        }
        Notice::TimeUsed => {
            let shorter = key(cx, Action::ShorterWindow);
            let keys = shorter.zip(key(cx, Action::LongerWindow));
            let back = keys.map(|(one, other)| format!("{one} {other} back to now"));
            and("every view counts this time only", "   ", [back])
        }
        Notice::FoundBelow(name) => {
            format!("no row here is {name}: this is where it has most samples")
        }
        Notice::SameName { position, count } => {
            let count = units::counted(*count as u64, "frame");
            let here = format!("{position} of {count} of this function here");
            and(&here, "   ", [hint(cx, Action::SameName, "next")])
        }
        Notice::Copied(name) => format!("sent to the terminal's clipboard: {name}"),
        Notice::Mouse(true) => {
            let off = hint(cx, Action::Mouse, "off");
            and("mouse on: click selects, wheel moves", "; ", [off])
        }
        Notice::Mouse(false) => {
            let on = hint(cx, Action::Mouse, "on");
            and("mouse off: the terminal selects text again", "; ", [on])
        }
        Notice::NoSource => "there is no source text here that could be edited".into(),
        Notice::NotEdited(why) => format!("not edited: {why}"),
        Notice::Unsampled(name) => format!("no sample in this window was in {name}"),
        Notice::NothingCalled => "nothing is called from this row".into(),
        Notice::HotLine(None) => "no sample hit here".into(),
        Notice::HotLine(Some((position, count))) => {
            let count = units::counted(*count as u64, "hot row");
            let which = format!("{position} of {count}: those with 5% of it or more");
            let keys = [Action::HotPrevious, Action::HotNext];
            and(&which, "   ", [hints(cx, keys, "others")])
        }
        Notice::Syntax(name) => {
            let written = format!("instructions in {name} syntax");
            and(&written, "   ", [hint(cx, Action::Syntax, "the other")])
        }
        Notice::NoProbes => {
            let functions = key(cx, Action::View(ViewId::Functions));
            let label = cx.keymap.label(Action::Probe, ViewId::Functions);
            let how = functions
                .zip(label)
                .map(|(view, key)| format!("{key} on a function ({view}) places one"));
            and("there are no probes", ": ", [how])
        }
        Notice::ProbeRenewed => "60 seconds from now on".into(),
        Notice::ProbeAnew => "it is placed again with these values: counts begin anew".into(),
        Notice::ProbeTaken(true) => "all probes are taken away".into(),
        Notice::ProbeTaken(false) => "the probe is taken away".into(),
        Notice::ProbeUnseen => {
            let on = hint(cx, Action::Freeze, "shows it");
            and(
                "the screen is frozen and does not show the probe",
                "; ",
                [on],
            )
        }
        Notice::NoOutput => "no command was started, or it printed nothing so far".into(),
        Notice::Fault(what) => format!("{what}; what was lost is told when proftop ends"),
        Notice::Configuration(what) => format!("configuration: {what}"),
        Notice::NoKill => "proftop does not kill; it only watches".into(),
    }
}

/// Returns the size of a search result, as in `18.2% of scope in 14 functions`.
pub fn finding(cx: &Context<'_>, rows: usize, samples: u64) -> String {
    let view = cx.focus;
    let (one, several) = view.rows();
    let noun = if rows == 1 { one } else { several };
    let rows = format!("{} {noun}", units::count(rows as u64));
    // Rows of the tree contain one another, so their samples do not add up.
    if !view.has(Feature::Sums) {
        return format!("in {rows}");
    }
    // Total samples do not add up either.
    let own = match view {
        ViewId::Functions => " itself",
        _ => "",
    };
    format!(
        "{}% of scope{own} in {rows}",
        units::share(&cx.shown.report, samples, cx.shown.report.samples),
    )
}

/// Returns a sentence about a step, with the key that undoes it.
fn undoable(cx: &Context<'_>, done: &str) -> String {
    and(done, "; ", [hint(cx, Action::Back, "undo")])
}

/// Returns the first server of a list of URLs: `debuginfod.debian.net and 1 more`.
fn server(urls: &str) -> String {
    let mut urls = urls.split_whitespace();
    let first = urls.next().unwrap_or_default();
    let host = first.split_once("://").map_or(first, |(_, host)| host);
    let host = host.trim_end_matches('/');
    match urls.count() {
        0 => host.to_owned(),
        more => format!("{host} and {more} more"),
    }
}
