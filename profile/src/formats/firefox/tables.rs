//! Resolves the stacks of a thread, from the tables of the thread and the shared tables.
//!
//! In older documents each thread has all tables; from version 55 on some are shared by all
//! threads. So each table is looked up in the thread first, then in the shared ones. No number in
//! them can be trusted: an index out of range is an error where a stack needs it, and is ignored
//! where it only adds a description.

use super::layout::{FrameTable, FuncTable, Lib, ResourceTable, SourceTable, StackTable, Thread};
use crate::STACK_DEPTH_MAX;
use crate::formats::FormatError;
use crate::formats::import::{Import, Link, hex, kind_of};
use crate::{Ending, Frame, FrameKind, NoName};
use std::sync::Arc;

/// A stack in the form that the store takes.
#[derive(Debug, Default)]
pub(super) struct Stack {
    /// Innermost first.
    pub(super) frames: Vec<Frame>,
    /// Why the walk ended, if the document says so.
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
    /// The thread's libraries if it has some, else the document's.
    libs: &'a [Lib],
    /// What kind of code a category stands for, by its number.
    categories: &'a [FrameKind],
    /// The resolved step of each frame, without what is inlined in it; `None` until a stack uses
    /// it.
    steps: Vec<Option<Step>>,
}

/// The meaning of a frame on a stack.
#[derive(Debug, Clone, Copy)]
enum Step {
    Frame(Frame),
    /// A function `[stopped: cause]`: the reason why the walk ended.
    Stopped(Ending),
    /// A function `[no stack]`: the sample has no stack.
    NoStack,
}

impl<'a> Tables<'a> {
    /// Finds the tables of a thread; returns an error if one that stacks need is missing.
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

    /// Resolves the stack with that number. Frames beyond the maximum depth of stacks are dropped;
    /// a row whose caller is not an earlier row is an error.
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
            // Writers add a caller before its callees, so the row number has to fall. This also
            // makes the loop end for any input.
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

    /// Resolves a frame with the functions inlined in it, innermost first. The first time a frame
    /// is met, its name and lines are added to `import`.
    fn step(
        &mut self,
        at: usize,
        inlined: &[usize],
        import: &mut Import,
    ) -> Result<Step, FormatError> {
        // The same address has the same inlined functions. If another tool gives different ones for
        // it, that is treated as another place.
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
        // The viewer names a frame without a symbol by its address.
        let is_unnamed = address.is_some_and(|at| *own.function == format!("{at:#x}"));
        let mut chain = Vec::with_capacity(inlined.len() + 1);
        for at in inlined {
            chain.push(self.link(*at, import)?);
        }
        let key = match chain.first() {
            // Several frames are inlined at one address: the first one is made part of the key.
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

    /// Returns the function of a frame and its line.
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

    /// Returns path and build-id of a resource. A resource that is not a library, such as a web
    /// page, has its name as path.
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

    /// Returns what kind of code a frame is, decided in this order:
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

/// Recognizes the pseudo-functions that stand for a missing part of a stack.
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
