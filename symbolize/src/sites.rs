//! *Sites*: at which instructions of a function a probe goes.
//!
//! The kernel writes a breakpoint over the first byte of an instruction, and then either
//! acts as the instruction would (*emulated*) or runs it elsewhere step by step
//! (*stepped*), which costs ten to thirty times as much. So each function is decoded
//! from its start, and the first emulated instruction is taken that runs exactly once a
//! call and still finds the caller's registers whole.
//!
//! | module | holds |
//! |---|---|
//! | `find` | the functions of a file that somebody means, by name, pattern or start |
//! | `function` | what is known of one |
//! | `marker` | places that a programmer has marked (USDT) |
//! | `line` | where a line of source text begins |
//! | `code` | a function's instructions, and which of them the kernel emulates |
//! | `entry` | the instruction that stands for a call |
//! | `refusal` | which functions are left alone, and why |

mod code;
mod entry;
mod find;
mod function;
mod line;
mod marker;
mod refusal;
#[cfg(test)]
mod tests;

use crate::{ElfSymbols, FileOffset, LinkAddr};

use code::{Code, is_call};
pub use find::{Wanted, functions, functions_named, is_meant};
pub use function::{Function, Language};
pub use line::{NoLine, of_line};
pub use marker::{Argument, ArgumentPlace, Marker, markers, place_marker, semaphore};
pub use refusal::{Refusal, check_file};

/// What the kernel does with the instruction under a breakpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// It acts as the instruction would.
    Emulated,
    /// It runs it elsewhere, one step, and comes back by a trap.
    Stepped,
}

impl Class {
    /// The word that scripts see.
    pub fn label(self) -> &'static str {
        match self {
            Class::Emulated => "emulated",
            Class::Stepped => "stepped",
        }
    }
}

/// Where in its function a site is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The first instruction.
    Entry,
    /// Behind some of the first instructions.
    AfterPrologue,
    /// The branch behind the check of a goroutine's stack.
    Go,
    /// Any other instruction, which somebody named by its place.
    Inside,
    /// A place that a programmer has marked.
    Marker,
}

impl Kind {
    /// The word that scripts see.
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

/// One instruction to put a probe at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Site {
    /// Where it is in the program.
    pub addr: LinkAddr,
    /// Where it is in the file, which is what the kernel wants to know.
    pub offset: FileOffset,
    /// Where in the function it is.
    pub kind: Kind,
    /// How the kernel gets past it.
    pub class: Class,
    /// Bytes between the stack pointer here and at the function's entry, where the
    /// return address is.
    pub pushed: u32,
    /// The call counts only if this branch is not taken: where it goes, the function
    /// begins again with a larger stack.
    pub unless_taken: bool,
    /// A loop of the function leads back to its first instruction: each round counts as
    /// a call.
    pub repeats: bool,
}

/// How the end of a call is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Returns {
    /// The kernel puts its own return address in the place of the caller's, at the site
    /// of the entry.
    Replaced,
    /// Every `ret` of the function has a probe, and every jump out of it: whoever moves
    /// or unwinds stacks does not know the kernel's return address.
    At(Vec<Site>),
}

/// Whether the end of a call is to be seen, and how that may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ends {
    /// The end of the call is not seen.
    #[default]
    Unseen,
    /// The return address may be replaced. Not where exceptions pass: whoever unwinds the
    /// stack to find a handler does not know the kernel's address, and ends the program.
    Replaced,
    /// Nothing on the stack is touched.
    AtReturns,
}

/// What somebody wants to see of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wish {
    /// Whether its end, and how that may be done.
    pub ends: Ends,
    /// Registers that have to be the caller's still, by their number in instructions
    /// (0 is rax, 4 rsp, 15 r15), a bit for each.
    pub whole: u16,
    /// No breakpoint goes to a call: what the kernel does in its place is no call to a shadow
    /// stack.
    pub spares_calls: bool,
}

/// The registers that may carry an argument, in C, C++ and Rust.
pub const ARGUMENTS: u16 = 1 << 7 | 1 << 6 | 1 << 2 | 1 << 1 | 1 << 8 | 1 << 9;

/// The same in Go since 1.17.
pub const GO_ARGUMENTS: u16 =
    1 << 0 | 1 << 3 | 1 << 1 | 1 << 7 | 1 << 6 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11;

/// Where the probes of one function go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Where a call is seen.
    pub entry: Site,
    /// `None` if that was not wanted, or cannot be had without harm.
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
