//! *Probes* of function calls: the limits and records that both sides have to agree on.

pub mod histogram;
pub mod starts;

/// Maximum number of probes at one time.
pub const PROBES_MAX: usize = 64;

/// Maximum number of probes at tracepoints of the kernel, each of which needs a program of its
/// own. They have the last probe numbers.
pub const POINTS_MAX: usize = 16;

/// The number of the first probe at a tracepoint.
pub const FIRST_POINT: usize = PROBES_MAX - POINTS_MAX;

/// Maximum number of arguments of a tracepoint; the kernel allows no more
/// (`MAX_BPF_FUNC_REG_ARGS` and `bpf_trace_run12`).
pub const POINT_ARGUMENTS_MAX: usize = 12;

/// Maximum number of processes that one probe can be narrowed to, besides the run's targets.
pub const FEW_MAX: usize = 8;

/// Maximum number of expressions of one probe.
pub const VALUES_MAX: usize = 8;

/// Maximum number of reads of memory in one expression, each through the result of the last.
pub const STEPS_MAX: usize = 4;

/// Maximum number of bytes of a text that are read.
pub const TEXT_BYTES: usize = 64;

/// Maximum number of different numbers that are counted, of all probes together.
pub const NUMBERS_MAX: usize = 16_384;

/// Maximum number of different texts that are counted, of all probes together.
pub const TEXTS_MAX: usize = 8192;

/// The number that the kernel passes to a program with each hit: which probe was hit, and what
/// is special at that place in the code, its *site*.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Cookie(pub u64);

/// Flags in a [`Cookie`], above the bits of the probe's number.
pub mod site {
    /// The site is a conditional branch, and a hit counts only if the branch is not taken.
    pub const UNLESS_TAKEN: u64 = 1 << 8;
    /// The function is Go code: its calls belong to a goroutine, which moves between threads.
    pub const GO: u64 = 1 << 9;
    /// The site is a `ret` instruction: the return address is still on the stack.
    pub const AT_RETURN: u64 = 1 << 10;
    /// The kernel is about to replace the return address, which is on top of the stack here.
    pub const REPLACED: u64 = 1 << 11;
}

impl Cookie {
    const PUSHED_SHIFT: u32 = 32;

    /// Packs the parts; `pushed` is how many bytes the stack pointer is below the return address.
    pub const fn new(probe: u8, flags: u64, pushed: u32) -> Self {
        Self(probe as u64 | flags | (pushed as u64) << Self::PUSHED_SHIFT)
    }

    /// Returns the number of the probe.
    #[inline(always)]
    pub const fn probe(self) -> u32 {
        self.0 as u32 & 0xff
    }

    /// Returns whether a bit of [`site`] is set.
    #[inline(always)]
    pub const fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    /// Returns how many bytes the stack pointer is below the return address.
    #[inline(always)]
    pub const fn pushed(self) -> u64 {
        self.0 >> Self::PUSHED_SHIFT
    }
}

/// Bits of [`Orders::flags`].
pub mod order {
    /// Calls are timed.
    pub const TIMED: u32 = 1;
    /// Values are read when a call begins.
    pub const VALUES: u32 = 2;
    /// Values are read when a call ends.
    pub const RESULTS: u32 = 4;
    /// Some calls record their stack when they begin.
    pub const STACKS: u32 = 8;
    /// Some of the calls that took long enough record their stack when they end.
    pub const SLOW_STACKS: u32 = 16;
    /// Hits of every process count, whether it is a target or not.
    pub const EVERYBODY: u32 = 32;
    /// Only hits of the processes in [`Orders::few`](super::Orders::few) count.
    pub const FEW: u32 = 64;
}

/// What the program does at each hit of one probe, besides counting it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Orders {
    /// Bits of [`order`].
    pub flags: u32,
    /// A call records its stack if a random 32-bit number is at most this.
    pub stack_odds: u32,
    /// The end of a call shorter than this is counted, and nothing else is done for it.
    pub min_ns: u64,
    /// Distinguishes the probes that had this number one after the other. The end of a call is
    /// not matched with a beginning that an earlier probe has seen.
    pub generation: u64,
    /// With [`order::FEW`], the processes whose hits count; unused places are 0.
    pub few: [u32; FEW_MAX],
    /// Of a probe at a tracepoint: how many arguments that has.
    pub arguments: u64,
    /// The values to read at each call. Those behind the last one are of kind [`value::NONE`].
    pub values: [Value; VALUES_MAX],
}

/// Kinds of [`Value`].
pub mod value {
    /// Nothing is read.
    pub const NONE: u32 = 0;
    /// A number of up to eight bytes.
    pub const NUMBER: u32 = 1;
    /// A text that ends with a zero byte.
    pub const TEXT: u32 = 2;
    /// A text whose length is known.
    pub const COUNTED_TEXT: u32 = 3;
}

/// A value to read: one expression of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Value {
    /// The kind of the value: one of [`value`].
    pub kind: u32,
    /// 1 if the value is read when the call ends, 0 if when it begins.
    pub at_end: u32,
    /// Of a number: how far it is shifted left first, to drop the bits above those that count.
    pub above: u32,
    /// Of a number: how far it is then shifted right, to drop the bits below those that count.
    pub down: u32,
    /// Its value is the number, or the address at which the text begins.
    pub chain: Chain,
    /// Its value is the length of a counted text.
    pub length: Chain,
}

/// A register, and reads of memory through it: `*(*(register + add0) + add1) + then`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Chain {
    /// The register: one of [`register`].
    pub base: u32,
    /// How many elements of `step` are used.
    pub steps: u32,
    /// The reads of memory, in this order.
    pub step: [Step; STEPS_MAX],
    /// What is added to the last word that was read, or to the register if none is read.
    pub then: i64,
}

/// One read of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Step {
    /// What is added to the register, or to the word of the last step, to get the address.
    pub add: i64,
    /// How many bytes are read, 1 to 8. Fewer than 8 are extended by zeros.
    pub bytes: u64,
}

/// Numbers of registers in [`Chain::base`]. 0 to 15 are those of x86-64 instructions (0 is rax,
/// 4 rsp, 15 r15); at a tracepoint they are its arguments instead.
pub mod register {
    /// The stack pointer at the function's entry, where the return address is.
    pub const ENTRY_SP: u32 = 16;
    /// Always 0: the chain is the number [`Chain::then`](super::Chain::then) alone.
    pub const ZERO: u32 = 17;
    /// How many of them there are. They lie on the stack of a program, which has 512 bytes.
    pub const COUNT: usize = ZERO as usize + 1;
}

/// The counts of one probe on one CPU.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Tally {
    /// Calls that began.
    pub calls: u64,
    /// Ends of calls whose beginning is not known: most began before the probe was placed.
    pub strangers: u64,
    /// Calls that ended and were shorter than [`Orders::min_ns`].
    pub short: u64,
    /// Hits of processes that do not count, because they are no targets of the probe.
    pub others: u64,
    /// Stacks that were recorded.
    pub stacks: u64,
    /// Stacks that were due and not recorded: another one was being walked on that CPU, the ring
    /// buffer was full, or the process's unwind tables were not in place.
    pub stacks_lost: u64,
    /// Values for which the maps had no room.
    pub values_lost: u64,
    /// How long the calls took that ended and were not short, all together.
    pub sum_ns: u64,
    /// Time of the longest call; too small if a thread overwrites that of one it interrupted.
    pub max_ns: u64,
    /// Values that could not be read, by their place in [`Orders::values`].
    pub unreadable: [u64; VALUES_MAX],
    /// Calls by how long they took, in the buckets of [`histogram`].
    pub histogram: [u64; histogram::BUCKETS],
}

impl Tally {
    /// The counts of a probe that was not hit yet.
    pub const ZERO: Tally = Tally {
        calls: 0,
        strangers: 0,
        short: 0,
        others: 0,
        stacks: 0,
        stacks_lost: 0,
        values_lost: 0,
        sum_ns: 0,
        max_ns: 0,
        unreadable: [0; VALUES_MAX],
        histogram: [0; histogram::BUCKETS],
    };

    /// Adds the counts of the same probe on another CPU.
    pub fn add(&mut self, other: &Tally) {
        self.calls += other.calls;
        self.strangers += other.strangers;
        self.short += other.short;
        self.others += other.others;
        self.stacks += other.stacks;
        self.stacks_lost += other.stacks_lost;
        self.values_lost += other.values_lost;
        self.sum_ns += other.sum_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        let unreadable = self.unreadable.iter_mut().zip(other.unreadable);
        unreadable.for_each(|(all, one)| *all += one);
        let buckets = self.histogram.iter_mut().zip(other.histogram);
        buckets.for_each(|(all, one)| *all += one);
    }
}

/// The key under which one number that was read is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct NumberKey {
    /// The number of the probe.
    pub probe: u32,
    /// The place of the value in [`Orders::values`].
    pub slot: u32,
    /// The number, extended by zeros.
    pub number: u64,
}

/// The key under which one text that was read is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct TextKey {
    /// The number of the probe.
    pub probe: u32,
    /// The place of the value in [`Orders::values`].
    pub slot: u32,
    /// The whole length of a counted text; else the number of bytes read, the zero byte included.
    pub len: u64,
    /// As much of the text as was read, and zeros behind it.
    pub bytes: [u8; TEXT_BYTES],
}

const _: () = {
    assert!(size_of::<Chain>() == 80);
    assert!(size_of::<Value>() == 176);
    assert!(size_of::<Orders>() == 32 + FEW_MAX * 4 + VALUES_MAX * 176);
    assert!(size_of::<Tally>() == (9 + VALUES_MAX + histogram::BUCKETS) * 8);
    assert!(size_of::<NumberKey>() == 16);
    assert!(size_of::<TextKey>() == 80);
    assert!(POINT_ARGUMENTS_MAX <= register::ENTRY_SP as usize);
    assert!(PROBES_MAX.is_power_of_two() && VALUES_MAX.is_power_of_two());
};
