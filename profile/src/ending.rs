//! How the walk of a stack ended: at the thread's root, or short of it and why.

/// How the walk of one user stack ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Ending {
    /// The thread's first function.
    Root,
    /// A kernel thread, or a sample taken where no user stack exists. Not a
    /// user stack at all: counted apart.
    NoUserStack,
    /// The sampled function keeps no frame pointer, and nothing else is known
    /// of how to leave it.
    NoFramePointer,
    /// A frame pointer led somewhere no frame can be: not upwards, or not
    /// aligned.
    BrokenChain,
    /// The stack's memory could not be read at that address.
    ReadFault,
    /// More frames than the limit.
    TooDeep,
    /// No mapping of the process holds that address.
    NoMapping,
    /// A 32-bit task: only what it ran is known.
    Compat32,
    /// In the midst of exec: the old program's stack is gone, the new one has
    /// none yet. Not a user stack either.
    Exec,
    /// The file's unwind information says there what is not supported.
    Unsupported,
    /// The file's unwind information leads downwards: it lies.
    Stuck,
    /// The stack is longer than the copy of it that was walked.
    CopyCut,
    /// The frames above are on another stack, and where that is cannot be told.
    StackSwitch,
    /// The rules that were used there were those of what had been mapped before.
    Remapped,
    /// The task was ending, and its memory with it. Not a user stack.
    Exiting,
    /// The process, or its user's processes together, had more mappings than their share
    /// of the room: it was not walked.
    OverShare,
}

impl Ending {
    pub const ALL: [Ending; 16] = [
        Ending::Root,
        Ending::NoUserStack,
        Ending::NoFramePointer,
        Ending::BrokenChain,
        Ending::ReadFault,
        Ending::TooDeep,
        Ending::NoMapping,
        Ending::Compat32,
        Ending::Exec,
        Ending::Unsupported,
        Ending::Stuck,
        Ending::CopyCut,
        Ending::StackSwitch,
        Ending::Remapped,
        Ending::Exiting,
        Ending::OverShare,
    ];

    /// The word that scripts see; part of the JSON schema.
    pub fn label(self) -> &'static str {
        match self {
            Ending::Root => "root",
            Ending::NoUserStack => "no_user_stack",
            Ending::NoFramePointer => "no_frame_pointer",
            Ending::BrokenChain => "broken_chain",
            Ending::ReadFault => "read_fault",
            Ending::TooDeep => "too_deep",
            Ending::NoMapping => "no_mapping",
            Ending::Compat32 => "compat_32_bit",
            Ending::Exec => "exec",
            Ending::Unsupported => "unsupported",
            Ending::Stuck => "stuck",
            Ending::CopyCut => "copy_cut",
            Ending::StackSwitch => "stack_switch",
            Ending::Remapped => "remapped",
            Ending::Exiting => "exiting",
            Ending::OverShare => "over_share",
        }
    }

    /// One sentence for a person.
    pub fn explain(self) -> &'static str {
        match self {
            Ending::Root => "the walk reached the thread's first function",
            Ending::NoUserStack => "a kernel thread has no user stack",
            Ending::NoFramePointer => {
                "the sampled function keeps no frame pointer, so its caller is not known"
            }
            Ending::BrokenChain => {
                "the chain of frame pointers left the stack: a caller keeps no frame pointer"
            }
            Ending::ReadFault => "the stack's memory could not be read at that address",
            Ending::TooDeep => "the stack has more frames than --max-depth",
            Ending::NoMapping => "no mapping of the process holds the address",
            Ending::Compat32 => "of 32-bit programs only the function that runs is known",
            Ending::Exec => "the program was just being replaced by exec: it had no stack",
            Ending::Unsupported => "the file's unwind information says there what is not supported",
            Ending::Stuck => "the file's unwind information leads nowhere: it is damaged or lies",
            Ending::CopyCut => {
                "the stack was longer than the copy taken before the process was known"
            }
            Ending::StackSwitch => "the rest is on another stack, and where that is cannot be told",
            Ending::Remapped => {
                "another file was mapped there a moment before: its rules were not in place"
            }
            Ending::Exiting => "the thread was ending: its stack was gone, or going",
            Ending::OverShare => {
                "its user's processes map more than an eighth of all that can be followed"
            }
        }
    }

    /// Whether the sample had a user stack to walk.
    pub fn is_user_stack(self) -> bool {
        !matches!(self, Ending::NoUserStack | Ending::Exec | Ending::Exiting)
    }

    pub fn is_whole(self) -> bool {
        self == Ending::Root
    }
}
