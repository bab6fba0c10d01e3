//! *Sites*: the instructions of a function at which a probe is placed.
//!
//! The kernel writes a breakpoint over the first byte of an instruction. When it is hit, the kernel
//! either acts as the instruction would (*emulated*) or runs the instruction elsewhere as a single
//! step (*stepped*), which costs ten to thirty times as much. So each function is decoded from its
//! start, to find the first emulated instruction that runs exactly once per call and at which the
//! caller's registers are still unchanged.
//!
//! | module | holds |
//! |---|---|
//! | `find` | finds the functions of a file by name, pattern or start |
//! | `function` | the description of a function |
//! | `inlined` | functions whose code is only inside of others |
//! | `spelling` | names of functions that are spelled like a text |
//! | `marker` | places that programmers marked (USDT) |
//! | `line` | where a line of source text begins |
//! | `code` | decodes a function's instructions, and says which of them the kernel emulates |
//! | `entry` | chooses the instruction that stands for a call |
//! | `refusal` | which functions are never probed, and why |

mod code;
mod entry;
mod find;
mod function;
mod inlined;
mod line;
mod marker;
mod refusal;
pub mod spelling;
#[cfg(test)]
mod tests;

use crate::{ElfSymbols, FileOffset, LinkAddr};

use code::{Code, is_call};
pub use find::{Fit, Wanted, best_of, fitting, functions, is_meant};
pub use function::{Function, Language};
pub use inlined::{HOSTS_MAX, Inlined};
pub use line::{NoLine, of_line};
pub use marker::{Argument, ArgumentPlace, Marker, markers, place_marker, semaphore};
pub use refusal::{Refusal, check_file};

/// How the kernel handles the instruction under a breakpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The kernel acts as the instruction would.
    Emulated,
    /// The kernel runs the instruction elsewhere as a single step, and returns by a trap.
    Stepped,
}

impl Class {
    /// The identifier for scripts.
    pub fn label(self) -> &'static str {
        match self {
            Class::Emulated => "emulated",
            Class::Stepped => "stepped",
        }
    }
}

/// Position of a site in its function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The first instruction.
    Entry,
    /// After some of the first instructions.
    AfterPrologue,
    /// The branch after the check of a goroutine's stack.
    Go,
    /// Any other instruction, which the user specified by its address or line.
    Inside,
    /// A place that a programmer marked.
    Marker,
}

impl Kind {
    /// Every position, in the order of the enum.
    pub const ALL: [Kind; 5] = [
        Kind::Entry,
        Kind::AfterPrologue,
        Kind::Go,
        Kind::Inside,
        Kind::Marker,
    ];

    /// The identifier for scripts.
    pub fn label(self) -> &'static str {
        match self {
            Kind::Entry => "entry",
            Kind::AfterPrologue => "after_prologue",
            Kind::Go => "go",
            Kind::Inside => "inside",
            Kind::Marker => "marker",
        }
    }
}

/// An instruction at which a probe is placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Site {
    /// Link address.
    pub addr: LinkAddr,
    /// File offset, as the kernel needs it.
    pub offset: FileOffset,
    /// Position in the function.
    pub kind: Kind,
    /// How the kernel handles the instruction.
    pub class: Class,
    /// Number of bytes between the stack pointer here and at the function's entry, where the return
    /// address is.
    pub pushed: u32,
    /// Whether the call counts only if this branch is not taken: its target makes the function
    /// start again with a larger stack.
    pub unless_taken: bool,
    /// Whether a loop of the function leads back to its first instruction: each iteration counts as
    /// a call.
    pub repeats: bool,
}

/// How the end of a call is detected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Returns {
    /// The kernel replaces the caller's return address by its own, at the entry site.
    Replaced,
    /// Every `ret` of the function has a probe, and every jump out of it. Used where code that
    /// moves or unwinds stacks would not know the kernel's return address.
    At(Vec<Site>),
}

/// Whether the end of a call is to be detected, and how that is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ends {
    /// The end is not detected.
    #[default]
    Unseen,
    /// The return address may be replaced. Must not be used where exceptions pass: the code that
    /// unwinds the stack to find a handler does not know the kernel's address, and ends the
    /// program.
    Replaced,
    /// Nothing on the stack may be changed.
    AtReturns,
}

/// What is to be observed of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wish {
    /// Whether its end is to be detected, and how that is allowed.
    pub ends: Ends,
    /// Registers that must still have the caller's values, one bit each, by their number in
    /// instructions (0 is rax, 4 rsp, 15 r15).
    pub whole: u16,
    /// Whether breakpoints must not be placed on calls: when the kernel emulates a call, the shadow
    /// stack is not updated.
    pub spares_calls: bool,
}

/// The registers that can carry an argument, in C, C++ and Rust.
pub const ARGUMENTS: u16 = 1 << 7 | 1 << 6 | 1 << 2 | 1 << 1 | 1 << 8 | 1 << 9;

/// The registers that can carry an argument in Go since 1.17.
pub const GO_ARGUMENTS: u16 =
    1 << 0 | 1 << 3 | 1 << 1 | 1 << 7 | 1 << 6 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11;

/// The sites of the probes of one function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Where calls are counted.
    pub entry: Site,
    /// How ends are detected; `None` if that was not requested, or is not possible without harm.
    pub returns: Option<Returns>,
}

/// Finds the sites of a function.
pub fn place(symbols: &ElfSymbols, function: &Function, wish: Wish) -> Result<Placed, Refusal> {
    refusal::check(symbols, function)?;
    let code = Code::read(symbols, function.start, function.len)?;
    if let Some(inside) = function.inside {
        let at = code.position(inside).ok_or(Refusal::NotAnInstruction)?;
        if wish.spares_calls && is_call(&code.instructions[at]) {
            return Err(Refusal::Call);
        }
        return Ok(Placed {
            entry: code.site(symbols, at, Kind::Inside, 0)?,
            returns: None,
        });
    }
    let is_go = function.language == Language::Go;
    let ends = match wish.ends {
        Ends::Replaced if is_go => Ends::AtReturns,
        ends => ends,
    };
    let behind_check = is_go
        .then(|| entry::behind_stack_check(&code, wish))
        .flatten();
    let entry = match behind_check {
        Some(entry) => entry,
        None => entry::choose(&code, Wish { ends, ..wish }).ok_or(Refusal::NoSite)?,
    };
    Ok(Placed {
        entry: entry.site(symbols, &code)?,
        returns: match ends {
            Ends::Unseen => None,
            Ends::Replaced => Some(Returns::Replaced),
            Ends::AtReturns => code.ends(symbols).ok().map(Returns::At),
        },
    })
}
