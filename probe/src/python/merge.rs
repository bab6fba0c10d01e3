//! Replaces the interpreter's native frames by Python frames.
//!
//! One call of the interpreter's loop runs one *group* of Python frames. So the groups correspond
//! to the native frames of the loop, one by one:
//!
//! ```text
//!  native                       Python          merged
//!  sort                                         sort
//!  _PyEval_EvalFrameDefault     [key]           key
//!  list_sort                                    list_sort
//!  _PyEval_EvalFrameDefault     [main, module]  main, module
//!  Py_RunMain … _start                          _start
//! ```
//!
//! If their numbers do not match, the native frames stay as they are, and this is counted: no
//! Python frame is shown in a place where another one may belong.

use crate::sample::{Ending, Frame, Missing, PythonStack, Sample};

/// The groups of frames of a record, innermost first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Entries {
    groups: Vec<Vec<Frame>>,
    is_open: bool,
}

impl Entries {
    /// Adds a frame to the current group.
    pub fn push(&mut self, frame: Frame) {
        match self.groups.last_mut() {
            Some(group) if self.is_open => group.push(frame),
            _ => self.groups.push(vec![frame]),
        }
        self.is_open = true;
    }

    /// Ends the current group, which may be empty, where a call of the loop begins or ends.
    pub fn end_group(&mut self) {
        if !self.is_open {
            self.groups.push(Vec::new());
        }
        self.is_open = false;
    }

    /// Returns the outermost frame of the current group.
    pub fn last(&self) -> Option<Frame> {
        self.groups.last().filter(|_| self.is_open)?.last().copied()
    }

    /// Returns all groups, innermost first.
    pub fn groups(self) -> Vec<Vec<Frame>> {
        self.groups
    }
}

/// The role of a native frame in the interpreter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameRole {
    /// The interpreter's loop, which runs Python frames.
    Loop,
    /// A function that only leads from one Python function to the next.
    Glue,
    /// Another function of the interpreter's file.
    Inside,
    /// Code of `-X perf`, which stands for a Python function that is in the stack itself.
    Trampoline,
    /// A function of another file, or other code.
    Outside,
}

/// The result of merging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merged {
    /// There is no Python on the stack.
    NoPython,
    /// All Python frames are there.
    Whole,
    /// All are there; the innermost are those of a moment later, in place of those that ran.
    Later,
    /// Some or all are missing.
    Missing(Missing),
}

/// Puts the Python frames of a sample into its stack. `place` returns the role of a native frame.
pub fn merge(
    sample: &mut Sample,
    python: &PythonStack,
    place: impl Fn(&Frame) -> FrameRole,
) -> Merged {
    let PythonStack {
        groups,
        missing,
        is_python: true,
        same_frames_from,
        is_running,
    } = python
    else {
        return Merged::NoPython;
    };
    let user = sample
        .frames
        .get(sample.kernel_frames..)
        .unwrap_or_default();
    let is_loop = |frame: &&Frame| place(frame) == FrameRole::Loop;
    let loops = user.iter().filter(is_loop).count();
    if loops == 0 && groups.is_empty() {
        return Merged::NoPython;
    }
    let is_cut = sample.ending != Ending::Root;
    if let Some(same @ 1..) = *same_frames_from {
        return match missing {
            None if !is_cut => merge_later(sample, groups, same, *is_running, place),
            None => Merged::Missing(Missing::Moved),
            Some(why) => Merged::Missing(*why),
        };
    }
    let skipped = match missing {
        Some(why @ (Missing::Waits | Missing::Early | Missing::NotWalked | Missing::NoThread)) => {
            return Merged::Missing(*why);
        }
        Some(why) if groups.is_empty() => return Merged::Missing(*why),
        missing => match unmatched(loops, groups.len(), is_cut, missing.is_some()) {
            Some(skipped) => skipped,
            None => return Merged::Missing(Missing::Mismatch),
        },
    };
    let mut frames = sample.frames[..sample.kernel_frames].to_vec();
    let mut left = groups.iter();
    let mut seen = 0;
    for frame in user {
        match place(frame) {
            FrameRole::Loop => {
                seen += 1;
                let group = if seen > skipped { left.next() } else { None };
                match group {
                    Some(group) => frames.extend(group),
                    None => frames.push(*frame),
                }
            }
            FrameRole::Glue | FrameRole::Trampoline => {}
            // Frames that led to the first Python function.
            FrameRole::Inside if seen == loops => {}
            FrameRole::Inside | FrameRole::Outside => frames.push(*frame),
        }
    }
    if is_cut {
        // Their native frames are beyond the end of the walk.
        frames.extend(left.flatten());
    }
    sample.frames = frames;
    match missing {
        None => Merged::Whole,
        Some(why) => {
            if !is_cut {
                sample.ending = match why {
                    // The native frames of the others are in the stack.
                    Missing::Nested => Ending::Root,
                    Missing::TooDeep => Ending::TooDeep,
                    _ => Ending::ReadFault,
                };
            }
            Merged::Missing(*why)
        }
    }
}

/// Puts Python frames that were read later than the sample into its stack. The native user frames
/// from `same` on belong to calls that had not returned by then: they are matched from the
/// outermost, as these groups cannot have changed. What was inside of them has changed:
///
/// ```text
///  native                      Python, later   merged
///  dict_lookup
///  _PyEval_EvalFrameDefault    [other]         other
///  list_sort                                   list_sort       from here on it is the same
///  _PyEval_EvalFrameDefault    [main, module]  main, module
/// ```
///
/// 1. If only the interpreter was inside, which is not shown anyway, the functions of a moment
///    later are put there, as many as there are.
/// 2. If other native code was inside, or the kernel, its callers are unknown. It stays as it is,
///    without functions. The same is done if the thread has begun to wait since then: otherwise
///    functions that wait would get the time of those that ran before.
fn merge_later(
    sample: &mut Sample,
    groups: &[Vec<Frame>],
    same: usize,
    is_running: bool,
    place: impl Fn(&Frame) -> FrameRole,
) -> Merged {
    let (kernel, user) = sample.frames.split_at(sample.kernel_frames);
    let (gone, same) = user.split_at(same.min(user.len()));
    let is_loop = |frame: &&Frame| place(frame) == FrameRole::Loop;
    let loops = same.iter().filter(is_loop).count();
    let Some(inner) = groups.len().checked_sub(loops) else {
        return Merged::Missing(Missing::Mismatch);
    };
    let (later, groups) = groups.split_at(inner);
    let is_outside = |frame: &Frame| place(frame) == FrameRole::Outside;
    let has_gone = gone.iter().any(|frame| place(frame) == FrameRole::Loop);
    let is_hidden = has_gone && is_running && kernel.is_empty() && !gone.iter().any(is_outside);
    let mut frames = kernel.to_vec();
    if is_hidden {
        frames.extend(later.iter().flatten())
    } else {
        frames.extend(gone)
    }
    let mut left = groups.iter();
    for frame in same {
        match place(frame) {
            FrameRole::Loop => frames.extend(left.next().into_iter().flatten()),
            FrameRole::Glue | FrameRole::Trampoline => {}
            // Frames that led to the first Python function.
            FrameRole::Inside if left.len() == 0 => {}
            FrameRole::Inside | FrameRole::Outside => frames.push(*frame),
        }
    }
    sample.frames = frames;
    match (has_gone, is_hidden) {
        (true, true) => Merged::Later,
        (true, false) => Merged::Missing(Missing::Moved),
        // Python called this, and it has not returned.
        (false, _) => Merged::Whole,
    }
}

/// Returns how many of the innermost calls of the loop have no group; `None` if groups and calls do
/// not match.
///
/// 1. Both are whole: there are as many of one as of the other; or one more call, which has
///    not begun with its frame yet, or is done with it.
/// 2. The native stack is cut: the innermost of both belong together.
/// 3. The Python frames are cut: likewise.
fn unmatched(loops: usize, groups: usize, is_cut: bool, is_missing: bool) -> Option<usize> {
    match (is_cut, is_missing) {
        (false, false) if loops == groups => Some(0),
        (false, false) if loops == groups + 1 => Some(1),
        (false, false) => None,
        (true, false) => (loops <= groups).then_some(0),
        (false, true) => (groups <= loops).then_some(0),
        (true, true) => Some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Event;
    use crate::ids::{ModuleId, ProcessId};

    /// Native frames and Python frames as words, innermost first: `L` is the loop, `g` glue, `i`
    /// another function of the interpreter, `t` a trampoline, a digit a Python frame, and
    /// everything else is outside; a `|` ends a group.
    fn frame(letter: char) -> Frame {
        Frame {
            module: ModuleId(1),
            address: letter.into(),
        }
    }

    fn place(frame: &Frame) -> FrameRole {
        match u8::try_from(frame.address).unwrap() {
            b'L' => FrameRole::Loop,
            b'g' => FrameRole::Glue,
            b'i' => FrameRole::Inside,
            b't' => FrameRole::Trampoline,
            _ => FrameRole::Outside,
        }
    }

    fn stack(python: &str, missing: Option<Missing>) -> PythonStack {
        let mut entries = Entries::default();
        for letter in python.chars() {
            match letter {
                '|' => entries.end_group(),
                letter => entries.push(frame(letter)),
            }
        }
        PythonStack {
            groups: entries.groups(),
            missing,
            is_python: true,
            same_frames_from: None,
            is_running: true,
        }
    }

    fn merged(native: &str, python: &PythonStack, ending: Ending) -> (String, Ending, Merged) {
        let frames: Vec<Frame> = native.chars().map(frame).collect();
        let kernel_frames = native.chars().take_while(|letter| *letter == 'k').count();
        let mut sample = Sample {
            event: Event::Tick,
            weight: 1,
            time_ns: 0,
            cpu: 0,
            process: ProcessId(1),
            tid: 1,
            comm: "python".into(),
            cgroup_id: 0,
            frames,
            kernel_frames,
            ending,
            stopped_at: 0,
            over_share: false,
            tables_late: false,
            outside: false,
            wait: None,
        };
        let came = merge(&mut sample, python, place);
        let letter = |frame: &Frame| char::from(u8::try_from(frame.address).unwrap());
        (
            sample.frames.iter().map(letter).collect(),
            sample.ending,
            came,
        )
    }

    #[test]
    fn each_call_of_the_loop_gives_way_to_its_group() {
        for (native, python, expected) in [
            ("sLgis", "12|", "s12s"),
            ("kksLiis", "1|", "kks1s"),
            // A callback of C: its caller stays in place.
            ("cLgsiLgiimx", "1|23|", "c1si23mx"),
            // The frame that `-X perf` puts around each call is shown once.
            ("cLtgLtis", "1|2|", "c12s"),
            // One more call: its frame has not begun yet, or has ended.
            ("LLis", "1|", "L1s"),
            ("LLis", "|1|", "1s"),
            // A group without its end is a group as well.
            ("Ls", "12", "12s"),
            ("ss", "", "ss"),
        ] {
            let (frames, ending, came) = merged(native, &stack(python, None), Ending::Root);
            assert_eq!(frames, expected, "{native} with {python}");
            assert_eq!(ending, Ending::Root);
            let expected = if python.is_empty() {
                Merged::NoPython
            } else {
                Merged::Whole
            };
            assert_eq!(came, expected);
        }
    }

    #[test]
    fn what_does_not_fit_stays_as_it_is() {
        for (native, python) in [("LLLis", "1|"), ("Lis", "1|2|"), ("xs", "1|")] {
            let came = merged(native, &stack(python, None), Ending::Root);
            let mismatch = Merged::Missing(Missing::Mismatch);
            assert_eq!(came, (native.into(), Ending::Root, mismatch));
        }
        for missing in [
            Missing::Waits,
            Missing::Early,
            Missing::NotWalked,
            Missing::NoThread,
            Missing::Unreadable,
        ] {
            let came = merged("Lis", &stack("", Some(missing)), Ending::Root);
            assert_eq!(came, ("Lis".into(), Ending::Root, Merged::Missing(missing)));
        }
    }

    #[test]
    fn what_was_read_later_is_not_mixed_with_what_ran() {
        for (native, python, same, expected, came) in [
            // Nothing has changed.
            ("xLis", "1|", 0, "x1s", Merged::Whole),
            // A call of C that has not returned: what it calls by now is irrelevant.
            ("xLis", "1|", 1, "x1s", Merged::Whole),
            ("xLis", "9|1|", 1, "x1s", Merged::Whole),
            // Everything that has changed belongs to the interpreter.
            ("iLis", "1|", 2, "1s", Merged::Later),
            ("Lis", "98|1|", 1, "981s", Merged::Later),
            ("LxLis", "9|1|", 1, "9x1s", Merged::Later),
            ("LxLis", "1|", 1, "x1s", Merged::Later),
            ("iLgLis", "99|1|", 3, "991s", Merged::Later),
            // Native code and the kernel have changed since: their callers are unknown.
            ("xLis", "1|", 3, "xLis", Merged::Missing(Missing::Moved)),
            ("kLis", "1|", 1, "kLs", Merged::Missing(Missing::Moved)),
            (
                "xLyLis",
                "9|1|",
                2,
                "xLy1s",
                Merged::Missing(Missing::Moved),
            ),
            // An impossible combination.
            ("LxLis", "", 1, "LxLis", Merged::Missing(Missing::Mismatch)),
        ] {
            let python = PythonStack {
                same_frames_from: Some(same),
                ..stack(python, None)
            };
            let (frames, _, found) = merged(native, &python, Ending::Root);
            assert_eq!(
                (&*frames, found),
                (expected, came),
                "{native}, same from {same}"
            );
        }
        let python = PythonStack {
            same_frames_from: Some(1),
            is_running: false,
            ..stack("9|1|", None)
        };
        let (frames, _, came) = merged("LxLis", &python, Ending::Root);
        assert_eq!(
            (&*frames, came),
            ("Lx1s", Merged::Missing(Missing::Moved)),
            "it waits by now"
        );
        let python = PythonStack {
            same_frames_from: Some(1),
            ..stack("1|", None)
        };
        let (frames, _, came) = merged("iL", &python, Ending::NoFramePointer);
        assert_eq!(
            (&*frames, came),
            ("iL", Merged::Missing(Missing::Moved)),
            "which call is the outermost is not known"
        );
    }

    #[test]
    fn a_cut_native_stack_has_the_python_frames_beyond_it() {
        let cut = Ending::NoFramePointer;
        let (frames, ending, came) = merged("cLs", &stack("1|2|3|", None), cut);
        assert_eq!((&*frames, ending, came), ("c1s23", cut, Merged::Whole));
        let (frames, _, came) = merged("LLL", &stack("1|", None), cut);
        assert_eq!(
            (&*frames, came),
            ("LLL", Merged::Missing(Missing::Mismatch))
        );
    }

    #[test]
    fn cut_python_frames_end_the_stack_with_the_reason() {
        for (missing, ending) in [
            (Missing::TooDeep, Ending::TooDeep),
            (Missing::Unreadable, Ending::ReadFault),
            (Missing::Nested, Ending::Root),
        ] {
            let (frames, found, came) = merged("cLxLis", &stack("12", Some(missing)), Ending::Root);
            assert_eq!((&*frames, found), ("c12xLs", ending));
            assert_eq!(came, Merged::Missing(missing));
        }
    }

    #[test]
    fn a_process_without_python_is_left_alone() {
        let (frames, _, came) = merged("Lis", &PythonStack::default(), Ending::Root);
        assert_eq!((&*frames, came), ("Lis", Merged::NoPython));
    }
}
