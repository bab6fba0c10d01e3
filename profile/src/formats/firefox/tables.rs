//! The stacks of a thread, from the tables of the thread and those of all.
//!
//! In older documents each thread has all tables; from version 55 on some are in one
//! place for all threads. So each is looked for in the thread first, then in what is
//! shared. Every number in them is of a stranger: one that leads nowhere is an error
//! where a stack needs it, and nothing where it only describes.

use super::layout::{FrameTable, FuncTable, Lib, ResourceTable, SourceTable, StackTable, Thread};
use crate::STACK_DEPTH_MAX;
use crate::formats::FormatError;
use crate::formats::import::{Import, Link, hex, kind_of};
use crate::{Ending, Frame, FrameKind, NoName};
use std::sync::Arc;

/// A stack as the store wants it.
#[derive(Debug, Default)]
pub(super) struct Stack {
    /// Innermost first.
    pub(super) frames: Vec<Frame>,
    pub(super) ending: Option<Ending>,
}

/// The tables by which a thread's stacks are read.
pub(super) struct Tables<'a> {
    /// Rows of stacks, each with its frame and the row of its caller.
    stacks: &'a StackTable,
    frames: &'a FrameTable,
    funcs: &'a FuncTable,
    resources: &'a ResourceTable,
    sources: Option<&'a SourceTable>,
    strings: &'a [String],
    /// Of the thread if it has some, else of the document.
    libs: &'a [Lib],
    /// What kind of code a category stands for, by its number.
    categories: &'a [FrameKind],
    /// By frame, without what is inlined in it; `None` until a stack has it.
    steps: Vec<Option<Step>>,
}

/// What a frame is on a stack.
#[derive(Debug, Clone, Copy)]
enum Step {
    Frame(Frame),
    /// A function `[stopped: cause]`: why the walk ended.
    Stopped(Ending),
    /// A function `[no stack]`.
    NoStack,
}

impl<'a> Tables<'a> {
    /// Finds the tables of a thread; an error if one is missing that stacks need.
    pub(super) fn of(
        thread: &'a Thread,
        shared: &'a Thread,
        libs: &'a [Lib],
        categories: &'a [FrameKind],
    ) -> Result<Self, FormatError> {
        let missing = |what: &str| FormatError::Damaged(format!("a thread has no {what}"));
        macro_rules! table {
            ($name:ident) => {
                (thread.$name.as_ref().or(shared.$name.as_ref()))
                    .ok_or_else(|| missing(stringify!($name)))?
            };
        }
        let frames: &FrameTable = table!(frame_table);
        Ok(Self {
            stacks: table!(stack_table),
            funcs: table!(func_table),
            resources: table!(resource_table),
            sources: thread.sources.as_ref().or(shared.sources.as_ref()),
            strings: &table!(string_array).0,
            libs: if thread.libs.0.is_empty() {
                libs
            } else {
                &thread.libs.0
            },
            categories,
            steps: vec![None; frames.func.len()],
            frames,
        })
    }

    /// The stack of that number. A table that goes round in circles is cut
    /// where stacks are.
    pub(super) fn stack(&mut self, at: usize, import: &mut Import) -> Result<Stack, FormatError> {
        let mut stack = Stack::default();
        // Inlined frames come before the one whose code they are, on the way to the
        // root.
        let mut inlined: Vec<usize> = Vec::new();
        let mut next = Some(at);
        while let Some(at) = next {
            let frame = self.stacks.frame.get(at);
            let frame = frame.filter(|frame| *frame < self.steps.len());
            let Some(frame) = frame else {
                return Err(FormatError::Damaged(
                    "a stack has a frame that is not there".into(),
                ));
            };
            next = self.stacks.prefix.get(at);
            // Writers add a caller before what it calls. So this loop ends, whatever is
            // there.
            if next.is_some_and(|next| next >= at) {
                return Err(FormatError::Damaged(
                    "a stack is called by a later one".into(),
                ));
            }
            let depth = self.frames.inline_depth.get(frame).unwrap_or(0);
            if depth > 0 && next.is_some() && inlined.len() < 256 {
                inlined.push(frame);
                continue;
            }
            match self.step(frame, &inlined, import)? {
                Step::Frame(frame) if stack.frames.len() <= STACK_DEPTH_MAX => {
                    stack.frames.push(frame);
                }
                Step::Frame(_) | Step::NoStack => {}
                Step::Stopped(ending) => stack.ending = Some(ending),
            }
            inlined.clear();
        }
        Ok(stack)
    }

    /// What a frame is on a stack, with what is inlined in it, innermost first. Its
    /// name and lines are told to `import` when it is met for the first time.
    fn step(
        &mut self,
        at: usize,
        inlined: &[usize],
        import: &mut Import,
    ) -> Result<Step, FormatError> {
        // The same place has the same inlined functions; what another tool made
        // of it with others is another place.
        if inlined.is_empty()
            && let Some(step) = self.steps[at]
        {
            return Ok(step);
        }
        let own = self.link(at, import)?;
        let address = self
            .frames
            .address
            .get(at)
            .filter(|address| *address >= 0.0);
        let address = address.map(|address| address as u64);
        let func = self.frames.func.get(at);
        let resource = func.and_then(|func| self.funcs.resource.get(func));
        if address.is_none()
            && resource.is_none()
            && let Some(step) = honest(&own.function)
        {
            self.steps[at] = Some(step);
            return Ok(step);
        }
        let (path, build_id) = self.module(resource);
        let kind = self.kind(at, path);
        let module = import.module(path, &build_id)?;
        // The viewer calls a frame without a name by its address.
        let is_unnamed = address.is_some_and(|at| *own.function == format!("{at:#x}"));
        let mut chain = Vec::with_capacity(inlined.len() + 1);
        for at in inlined {
            chain.push(self.link(*at, import)?);
        }
        let key = match chain.first() {
            // Of several that are inlined at one address.
            Some(first) => import.text(&format!("{}\u{0}{}", own.function, first.function))?,
            None => Arc::clone(&own.function),
        };
        let frame = import.frame(module, address, kind, (!is_unnamed).then_some(&key))?;
        if is_unnamed {
            import.tell_unnamed(frame, NoName::NotTold);
        } else {
            chain.push(own);
            import.set_chain(frame, chain);
        }
        let step = Step::Frame(frame);
        if inlined.is_empty() {
            self.steps[at] = Some(step);
        }
        Ok(step)
    }

    /// The function of a frame, and its line.
    fn link(&self, frame: usize, import: &mut Import) -> Result<Link, FormatError> {
        let func = self.frames.func.get(frame);
        let name = func.and_then(|func| self.funcs.name.get(func));
        let name = name.and_then(|name| self.strings.get(name));
        let Some((func, name)) = func.zip(name) else {
            return Err(FormatError::Damaged("a frame has no function".into()));
        };
        let file = self.funcs.file_name.get(func).or_else(|| {
            let source = self.funcs.source.get(func)?;
            self.sources?.filename.get(source)
        });
        let file = file.and_then(|file| self.strings.get(file));
        let line = self.frames.line.get(frame).unwrap_or(0);
        Ok(Link {
            function: import.text(name)?,
            file: import.text(file.map_or("", |file| file))?,
            line: u32::try_from(line).unwrap_or(0),
        })
    }

    /// Path and build-id of a resource. One without a library, as a page of the web,
    /// goes by its name.
    fn module(&self, resource: Option<usize>) -> (&'a str, Vec<u8>) {
        let Some(resource) = resource else {
            return ("", Vec::new());
        };
        let lib = self.resources.lib.get(resource);
        match lib.and_then(|lib| self.libs.get(lib)) {
            Some(lib) => {
                let path = lib.path.as_deref().filter(|path| !path.is_empty());
                let build_id = lib.code_id.as_deref().map(hex);
                (path.unwrap_or(&lib.name), build_id.unwrap_or_default())
            }
            None => {
                let name = self.resources.name.get(resource);
                let name = name.and_then(|name| self.strings.get(name));
                (name.map_or("", |name| name), Vec::new())
            }
        }
    }

    /// What code a frame is, in this order:
    ///
    /// 1. what its category says, unless that is only "user"
    /// 2. JavaScript: made at run time
    /// 3. what the name of its module says
    fn kind(&self, frame: usize, module: &str) -> FrameKind {
        let category = self.frames.category.get(frame);
        let told = category.and_then(|category| self.categories.get(category));
        let func = self.frames.func.get(frame).unwrap_or(usize::MAX);
        let is_js = self.funcs.is_js.0.get(func).copied().unwrap_or(false);
        match (told, kind_of(module)) {
            (Some(FrameKind::User) | None, kind) if !is_js => kind,
            (Some(kind), _) if *kind != FrameKind::User => *kind,
            _ => FrameKind::Jit,
        }
    }
}

/// What stands for a missing part of a stack.
fn honest(name: &str) -> Option<Step> {
    if name == "[no stack]" {
        return Some(Step::NoStack);
    }
    let cause = name.strip_prefix("[stopped: ")?.strip_suffix(']')?;
    let found = Ending::ALL
        .into_iter()
        .find(|ending| ending.label() == cause);
    found.map(Step::Stopped)
}
