//! The *glossary*: the meanings of words, signs and heads of columns, for the help.

use crate::view_id::ViewId;

/// A line of the glossary: a word and its meaning. The word is empty if the line continues the
/// previous one. A line has to fit into a column of the help: nine cells for the word, the rest for
/// the meaning.
pub type Line = (&'static str, &'static str);

/// The words and signs of all views.
pub const EVERYWHERE: &[Line] = &[
    ("SELF", "was on top of the stack"),
    ("TOTAL", "it or anything it called;"),
    ("", "recursion counts once"),
    ("±", "95% band of the count; a"),
    ("", "lower bound: samples are"),
    ("", "not independent"),
    ("whole", "the stack reached the"),
    ("", "thread's start"),
    ("⟳", "the name is on its way"),
    ("gone", "not in the window now; its"),
    ("", "last numbers, until left"),
    ("lost", "samples came too fast"),
    ("own cost", "CPU used by proftop itself"),
];

/// Returns the words and signs of one view.
pub fn of(view: ViewId) -> &'static [Line] {
    match view {
        ViewId::Tree => TREE,
        ViewId::Flame => FLAME,
        ViewId::Page => PAGE,
        ViewId::Time => TIME,
        ViewId::Code => CODE,
        ViewId::Probes => PROBES,
        ViewId::Processes | ViewId::Threads => PEOPLE,
        _ => &[],
    }
}

const TREE: &[Line] = &[
    ("top-down", "callees under callers:"),
    ("", "where the time comes from"),
    ("bottom-up", "callers under callees;"),
    ("", "SELF by way of this caller"),
    ("PAR%", "share of the row above"),
    ("inl", "inlined into its caller"),
    ("hot path", "always the heaviest below,"),
    ("", "with half of it or more"),
    ("[stopped]", "the stack's start is not"),
    ("", "known; explain says why"),
];

const FLAME: &[Line] = &[
    ("width", "samples with these frames"),
    ("", "above it on the stack"),
    ("order", "by name: it never changes"),
    ("color", "the module; see below it"),
    ("·", "frames narrower than 3"),
    ("", "cells, merged: zoom in"),
];

const PAGE: &[Line] = &[
    ("OF IT", "share of the samples that"),
    ("", "have the function on them"),
    ("callers", "of its outermost call"),
    ("callees", "of its innermost one; each"),
    ("", "side adds up to all of it"),
];

const CODE: &[Line] = &[
    ("SELF%", "of samples in its code, or"),
    ("", "in what was inlined there"),
    ("LINE", "of its file; +0x: from the"),
    ("", "function's start"),
    ("skid", "a sample may belong to the"),
    ("", "instruction before"),
    ("->", "called from there; with"),
    ("", "what that called itself"),
];

const TIME: &[Line] = &[
    ("column", "one second"),
    ("row", "a part of the second: what"),
    ("", "comes back shows as a line"),
    ("#", "half of the samples there"),
    ("", "are of what was selected"),
];

const PROBES: &[Line] = &[
    ("P50", "half of the calls took no"),
    ("", "longer; P99: 99 of 100"),
    ("ON-CPU", "of the time of its calls;"),
    ("", "the rest is waiting"),
    ("COST", "of its hits, of one CPU:"),
    ("", "measured on this machine"),
    ("LEFT", "until it goes by itself"),
];

const PEOPLE: &[Line] = &[
    ("×12", "so many in one row, and"),
    ("", "their sums: threads of a"),
    ("", "process with one name, or"),
    ("", "processes of one unit"),
    ("WAIT", "threads that waited, on"),
    ("", "average; a wait counts"),
    ("", "when it ends"),
    ("STATES", "R runs, Q ready, L lock,"),
    ("", "C its group's CPU quota,"),
    ("", "D disk, N socket or pipe,"),
    ("", "S timer, F page of memory,"),
    ("", "G Python's global lock,"),
    ("", "T stopped, O other"),
    ("(us)", "this proftop"),
    ("(ended)", "it ran in the window"),
];
