//! Functions that are not probed, each with the reason.

use std::path::Path;

use object::elf;

use super::function::Function;
use crate::ElfSymbols;

/// Minimum length: in a shorter function a probe is not worthwhile.
const BYTES_MIN: u64 = 5;

/// Why a function is not probed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// It is shorter than a jump.
    TooShort,
    /// It is a stub that only leads into another file.
    Stub,
    /// It belongs to the loader, which runs before the process is complete, and on which debuggers
    /// rely.
    Loader,
    /// It starts the process or a thread.
    StartCode,
    /// The kernel and unwinders recognize it by its exact bytes.
    SignalReturn,
    /// The file is for another processor.
    Machine,
    /// Its bytes cannot be read.
    Unreadable,
    /// Its bytes are not instructions.
    NoCode,
    /// Some of its bytes are not instructions, so a `ret` byte could be part of something else.
    NotAllCode,
    /// No instruction begins there.
    NotAnInstruction,
    /// The instruction there is a call, and a process uses a shadow stack.
    Call,
    /// No instruction near its start can be probed.
    NoSite,
    /// The marker does not have the wanted arguments.
    NoArgument,
    /// The marker's semaphore is not in any file.
    NoSemaphore,
    /// The compiler inlined all of it into its callers.
    Inlined,
}

impl Refusal {
    /// Every reason, in the order of the enum.
    pub const ALL: [Refusal; 15] = [
        Refusal::TooShort,
        Refusal::Stub,
        Refusal::Loader,
        Refusal::StartCode,
        Refusal::SignalReturn,
        Refusal::Machine,
        Refusal::Unreadable,
        Refusal::NoCode,
        Refusal::NotAllCode,
        Refusal::NotAnInstruction,
        Refusal::Call,
        Refusal::NoSite,
        Refusal::NoArgument,
        Refusal::NoSemaphore,
        Refusal::Inlined,
    ];

    /// Explains the reason to users in a sentence, without its full stop.
    pub fn explain(self) -> &'static str {
        match self {
            Refusal::TooShort => "it is shorter than 5 bytes",
            Refusal::Stub => "it is a stub that leads into another file: probe the function there",
            Refusal::Loader => "it belongs to the dynamic loader",
            Refusal::StartCode => "it starts the process or a thread",
            Refusal::SignalReturn => "signal handlers return through it",
            Refusal::Machine => "its code is not for x86-64",
            Refusal::Unreadable => "its code cannot be read",
            Refusal::NoCode => "its bytes are no instructions",
            Refusal::NotAllCode => "not all of it is instructions, so its returns cannot be told",
            Refusal::NotAnInstruction => "no instruction begins there",
            Refusal::Call => {
                "a call is there, which a breakpoint would leave out on the shadow stacks \
                 that processes use here"
            }
            Refusal::Inlined => {
                "the compiler put its code into its callers, so that there are no calls to see"
            }
            Refusal::NoArgument => "it has not these arguments where it is",
            Refusal::NoSemaphore => "its semaphore is in no part of the file that is mapped",
            Refusal::NoSite => "the kernel takes no probe on any of its first instructions",
        }
    }
}

/// Returns an error for functions that must not be probed.
pub fn check(symbols: &ElfSymbols, function: &Function) -> Result<(), Refusal> {
    if symbols.object().machine() != elf::EM_X86_64.0 {
        return Err(Refusal::Machine);
    }
    let name = function.raw.as_slice();
    let stem = name.split(|byte| *byte == b'@').next().unwrap_or(name);
    if name.ends_with(b"@plt") {
        return Err(Refusal::Stub);
    }
    if matches!(
        stem,
        b"_start" | b"__start" | b"_init" | b"_fini" | b"clone" | b"__clone3"
    ) || stem.starts_with(b"__libc_start")
        || stem.starts_with(b"_rt0_")
    {
        return Err(Refusal::StartCode);
    }
    if matches!(
        stem,
        b"__restore_rt" | b"__restore" | b"runtime.sigreturn" | b"runtime.sigreturn__sigaction"
    ) {
        return Err(Refusal::SignalReturn);
    }
    if function.len < BYTES_MIN {
        return Err(Refusal::TooShort);
    }
    Ok(())
}

/// Returns an error for the file of the dynamic loader, recognized by its path. musl's loader is
/// also its C library, and is not refused.
pub fn check_file(path: &Path) -> Result<(), Refusal> {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let is_loader = [&b"ld-linux"[..], b"ld-2.", b"ld64.so", b"ld.so"];
    if is_loader.iter().any(|start| name.starts_with(start)) {
        return Err(Refusal::Loader);
    }
    Ok(())
}
