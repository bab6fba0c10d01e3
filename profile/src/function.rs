//! A *function* of a profile: what its frames and their names make it.

use crate::intern::{NO_STACK, RESERVED, stopped};
use crate::{Ending, FrameId, FrameKind, NoName};
use std::sync::Arc;

/// A function in this profile: every frame with the same module and name, or
/// one frame that has no name. It is called by one of its frames.
///
/// When a name arrives, frames join a function; whoever holds a function by a
/// frame finds it again with [`Report::find_function`](crate::Report::find_function).
pub type FunctionId = FrameId;

/// What is known of a function but its counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    pub id: FunctionId,
    /// Its name, or `module+0xoffset` while it has none.
    pub name: Arc<str>,
    /// Short: the file's last path part, `[kernel]`, `[vdso]`.
    pub module: Arc<str>,
    /// Long: the whole path where there is one.
    pub module_path: Arc<str>,
    /// Empty if there is none, or it is not known.
    pub build_id: Arc<[u8]>,
    pub kind: FrameKind,
    /// An address of it that was sampled, inside the module.
    pub address: u64,
    pub name_state: RowName,
    /// Where that address lies in source text, if it is known.
    pub file: Option<Arc<str>>,
    /// 0 if it is not known.
    pub line: u32,
    pub role: Role,
}

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// A function of a program.
    Function,
    /// Samples without any frame.
    NoStack,
    /// Samples of which a filter hides every frame.
    Hidden,
    /// What is missing of a stack whose walk did not reach the root, and why.
    Stopped(Ending),
}

/// Whether a row's name is final.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowName {
    Named,
    /// On its way.
    Pending,
    /// There is none, and why.
    Unnamed(NoName),
}

impl Role {
    /// What the function of that number stands for.
    pub(crate) fn of(id: FunctionId) -> Self {
        if id.0 >= RESERVED {
            return Role::Function;
        }
        let is_it = |ending: &Ending| stopped(*ending) == id;
        match Ending::ALL.into_iter().find(is_it) {
            Some(ending) => Role::Stopped(ending),
            None if id == NO_STACK => Role::NoStack,
            None => Role::Hidden,
        }
    }
}
