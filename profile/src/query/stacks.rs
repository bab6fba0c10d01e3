//! *Stacks by process*: the selected samples as whole stacks, for programs that store profiles in
//! their own format.

use super::selection::Selection;
use super::traces::TraceFrame;
use crate::frame::SourceFrame;
use crate::tables::Module;
use crate::{Ending, Frame, FrameId, NameState, View};
use std::sync::Arc;

/// The selected samples of one process that have the same stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessStack {
    /// Index of the process in the list that [`Selection::process_stacks`] returns.
    pub process: usize,
    /// The frames of the stack, innermost first.
    pub frames: Arc<[StackFrame]>,
    /// Number of samples, or amount of what the profile's metric counts.
    pub samples: u64,
}

/// One place on a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StackFrame {
    /// A frame as it was sampled, with everything that is inlined there: see
    /// [`View::frame_module`], [`View::frame_name`] and [`View::frame_sources`].
    Frame(FrameId),
    /// A remark of the profile instead of a place in a program: [`View::function`] has its text.
    Note(FrameId),
}

/// A process that has samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackProcess {
    /// Its pid; the tid of the thread if the process is unknown.
    pub pid: u32,
    /// Its name.
    pub comm: Arc<str>,
    /// Its control group; `None` if unknown.
    pub cgroup: Option<Arc<str>>,
    /// The name of its user; `None` if unknown.
    pub user: Option<Arc<str>>,
}

/// The file that contains a frame's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameModule {
    /// File name without directories.
    pub name: Arc<str>,
    /// Path of the file; empty if it has none.
    pub path: Arc<str>,
    /// Build-id; empty if it has none, or if unknown.
    pub build_id: Arc<[u8]>,
}

impl Selection {
    /// Returns the selected samples by process and stack, and the processes, in an order that
    /// depends on the store only. If the walk of a stack did not reach the root, a note at its end
    /// says why.
    pub fn process_stacks(&self) -> (Vec<StackProcess>, Vec<ProcessStack>) {
        let people = &self.view.tables.processes;
        let mut processes: Vec<StackProcess> = Vec::new();
        let mut number_of = std::collections::HashMap::new();
        let mut stacks: Vec<(usize, u32, Ending, u64)> = Vec::new();
        let mut trace_of = std::collections::HashMap::new();
        for trace in self.traces() {
            let thread = people.thread(trace.thread);
            let process = people.get(thread.process);
            let number = *number_of.entry(thread.process).or_insert_with(|| {
                // A thread of an unknown process counts as a process of its own.
                let (pid, comm) =
                    process.map_or((thread.tid, &thread.comm), |it| (it.pid, &it.comm));
                let details = process.map(|it| &it.details);
                processes.push(StackProcess {
                    pid,
                    comm: Arc::clone(comm),
                    cgroup: details.and_then(|it| it.cgroup.clone()),
                    user: details.and_then(|it| it.user.clone()),
                });
                processes.len() - 1
            });
            stacks.push((number, trace.stack.0, trace.ending, trace.samples));
            let key = (trace.stack.0, trace.ending.number());
            trace_of.entry(key).or_insert_with(|| -> Arc<[StackFrame]> {
                let places = self.places(&trace).into_iter();
                let frame = |place| match place {
                    TraceFrame::Frame(frame) => StackFrame::Frame(frame),
                    TraceFrame::Function(function) => StackFrame::Note(function),
                };
                places.map(frame).collect()
            });
        }
        stacks.sort_unstable_by_key(|(process, stack, ending, _)| {
            (*process, *stack, ending.number())
        });
        let runs = stacks.chunk_by(|a, b| (a.0, a.1, a.2) == (b.0, b.1, b.2));
        let stacks = runs
            .map(|run| ProcessStack {
                process: run[0].0,
                frames: Arc::clone(&trace_of[&(run[0].1, run[0].2.number())]),
                samples: run.iter().map(|(.., samples)| samples).sum(),
            })
            .collect();
        (processes, stacks)
    }
}

impl View {
    /// Returns the file that contains a frame's code.
    pub fn frame_module(&self, frame: &Frame) -> FrameModule {
        let Module {
            name,
            path,
            build_id,
        } = self.tables.modules.get(frame.module);
        FrameModule {
            name,
            path,
            build_id,
        }
    }

    /// Returns what is known about a frame's name.
    pub fn frame_name(&self, frame: FrameId) -> NameState {
        self.name_told(frame)
    }

    /// Returns the functions at a frame, innermost first; the last one is the function that
    /// contains the code. Empty if the source location is unknown.
    pub fn frame_sources(&self, frame: FrameId) -> Vec<SourceFrame<'_>> {
        let (sources, names) = (&self.tables.sources, &self.tables.names);
        let inlined = sources.inlined_in(frame).len();
        let chain = sources.chain(frame).iter().enumerate();
        let source = chain.map(|(at, link)| {
            // A function that is not inlined there has the name of the frame.
            let function = if at < inlined {
                link.function
            } else {
                self.function_of(frame)
            };
            SourceFrame {
                function: names.name(function).map_or("", |name| name),
                file: sources.file(*link).map_or("", |file| file),
                line: link.line,
            }
        });
        source.collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::{
        Cancel, Ending, Frame, FrameKind, Limits, ModuleId, NameState, NewSample, ProcessId, Query,
        Store,
    };

    #[test]
    fn each_sample_is_in_one_stack_of_its_process() {
        let mut store = Store::new(Limits::default());
        store.begin(0);
        store.add_process(ProcessId(1), 10, "web");
        store.add_process(ProcessId(2), 20, "db");
        store.add_module(ModuleId(1), "libc.so.6", "/usr/lib/libc.so.6");
        store.set_build_id(ModuleId(1), &[0xab; 20]);
        let frame = |address| Frame {
            module: ModuleId(1),
            address,
            kind: FrameKind::User,
        };
        let mut add = |process, tid, frames: &[Frame], ending| {
            store.add_sample(NewSample {
                time_ns: 1_000_000_000,
                cpu: 0,
                process: ProcessId(process),
                tid,
                comm: "worker",
                frames,
                kernel_frames: 0,
                ending,
                weight: 2,
            });
        };
        // Two threads of one process are together, two processes are not.
        let whole = [frame(0x10), frame(0x20)];
        add(1, 11, &whole, Ending::Root);
        add(1, 12, &whole, Ending::Root);
        add(1, 12, &whole, Ending::TooDeep);
        add(2, 21, &whole, Ending::Root);
        let view = store.view();
        let selection = view.select(&Query::default(), &Cancel::new()).unwrap();
        let (processes, stacks) = selection.process_stacks();
        let of = |stack: &super::ProcessStack| {
            let process = &processes[stack.process];
            (
                process.pid,
                &*process.comm,
                stack.frames.len(),
                stack.samples,
            )
        };
        let mut found: Vec<_> = stacks.iter().map(of).collect();
        found.sort_unstable();
        assert_eq!(
            found,
            [(10, "web", 2, 4), (10, "web", 3, 2), (20, "db", 2, 2)]
        );
        let super::StackFrame::Frame(inner) = stacks[0].frames[0] else {
            panic!("it is a frame");
        };
        let place = view.frame(inner).unwrap();
        assert_eq!(place.address, 0x10);
        let module = view.frame_module(&place);
        assert_eq!(
            (&*module.name, &*module.build_id),
            ("libc.so.6", &[0xab; 20][..])
        );
        assert_eq!(view.frame_name(inner), NameState::Pending);
        assert_eq!(view.frame_sources(inner), []);
        // The function that contains the code has the name of the frame, whatever its debug
        // information says.
        store.set_name(inner, NameState::Named("memcpy@GLIBC".into()));
        let link = |function, line| crate::SourceFrame {
            function,
            file: "memcpy.c",
            line,
        };
        store.set_source(inner, &[link("copy", 7), link("memcpy", 12)]);
        let view = store.view();
        let sources = view.frame_sources(inner);
        assert_eq!(sources, [link("copy", 7), link("memcpy@GLIBC", 12)]);
    }
}
