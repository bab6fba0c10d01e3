//! How the walk of a stack ended: at the thread's root, or short of it and why.

/// How the walk of one user stack ended. `.pft` files store these numbers, so a number is never
/// reused for another ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Ending {
    /// The thread's first function.
    Root = 0,
    /// A kernel thread, or a sample taken where no user stack exists. There is no user stack to
    /// walk, so such samples are counted apart.
    NoUserStack = 1,
    /// The sampled function keeps no frame pointer, and there is no other information about how to
    /// find its caller.
    NoFramePointer = 2,
    /// A frame pointer led somewhere no frame can be: not upwards, or not
    /// aligned.
    BrokenChain = 3,
    /// The stack's memory could not be read at that address.
    ReadFault = 4,
    /// More frames than the limit.
    TooDeep = 5,
    /// No mapping of the process holds that address.
    NoMapping = 6,
    /// A 32-bit task: only the function that was running is known.
    Compat32 = 7,
    /// In the middle of exec: the old program's stack is gone, the new one has none yet. Not a user
    /// stack either.
    Exec = 8,
    /// The file's unwind information uses a rule there that is not supported.
    Unsupported = 9,
    /// The file's unwind information leads downwards on the stack, so it must be wrong.
    Stuck = 10,
    /// The stack is longer than the copy of it that was walked.
    CopyCut = 11,
    /// The outer frames are on another stack whose address is unknown.
    StackSwitch = 12,
    /// The unwind rules used there belonged to a file that was mapped there before.
    Remapped = 13,
    /// The task was ending, and its memory with it. Not a user stack.
    Exiting = 14,
    /// The process, or its user's processes together, had more mappings than their share of the
    /// table space: the stack was not walked.
    OverShare = 15,
    /// The walk needed the unwind table of a file that had not been read yet.
    TablesLate = 16,
    /// The process is outside of the container that proftop runs in, so the files of its code
    /// cannot be found.
    Outside = 17,
}

impl Ending {
    /// All endings, each at the index that is its number.
    pub const ALL: [Ending; 18] = [
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
        Ending::TablesLate,
        Ending::Outside,
    ];

    /// The number that stands for it in files.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The ending with that number; `None` if no ending has it.
    pub fn of_number(number: u8) -> Option<Ending> {
        Self::ALL.get(usize::from(number)).copied()
    }

    /// The identifier for scripts; part of the JSON schema.
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
            Ending::TablesLate => "tables_late",
            Ending::Outside => "outside",
        }
    }

    /// Explains the ending to a person in one sentence.
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
            Ending::TablesLate => {
                "the file's unwind table was not read yet, as in the first moments of a run"
            }
            Ending::Outside => {
                "the process is outside of this container: where its code is from cannot be told"
            }
        }
    }

    /// Whether the sample had a user stack to walk.
    pub fn is_user_stack(self) -> bool {
        !matches!(self, Ending::NoUserStack | Ending::Exec | Ending::Exiting)
    }

    /// Whether the walk reached the thread's first function.
    pub fn is_whole(self) -> bool {
        self == Ending::Root
    }
}

// `of_number` uses the number as the index into `ALL`.
const _: () = {
    let mut at = 0;
    while at < Ending::ALL.len() {
        assert!(Ending::ALL[at].number() as usize == at);
        at += 1;
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_that_the_format_documents() {
        let format = include_str!("../../docs/pft.md").replace('\n', " ");
        let (_, list) = format.split_once("numbered: ").expect("the list");
        let (list, _) = list.split_once('.').expect("its end");
        let documented: Vec<&str> = list.split(", ").map(str::trim).collect();
        let ours = Ending::ALL.map(|ending| format!("{} `{}`", ending.number(), ending.label()));
        assert_eq!(documented, ours);
        assert_eq!(Ending::of_number(5), Some(Ending::TooDeep));
        assert_eq!(Ending::of_number(Ending::ALL.len() as u8), None);
    }
}
