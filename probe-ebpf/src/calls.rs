//! *Probes* of calls: what both sides have to agree on.

pub mod histogram;
pub mod starts;

/// Probes at one time.
pub const PROBES_MAX: usize = 64;

/// Probes of them that can be at tracepoints of the kernel, each of which needs a program of
/// its own. They have the last numbers.
pub const POINTS_MAX: usize = 16;

/// The number of the first of those.
pub const FIRST_POINT: usize = PROBES_MAX - POINTS_MAX;

/// Arguments of a tracepoint; the kernel has no more (`MAX_BPF_FUNC_REG_ARGS` and
/// `bpf_trace_run12`).
pub const POINT_ARGUMENTS_MAX: usize = 12;

/// Processes that a probe can be narrowed to, besides what the run is narrowed to.
pub const FEW_MAX: usize = 8;

/// Expressions of one probe.
pub const VALUES_MAX: usize = 8;

/// Memory that one expression reads through, one address after the other.
pub const STEPS_MAX: usize = 4;

/// Bytes of a text that are read.
pub const TEXT_BYTES: usize = 64;

/// Different numbers that are kept apart, of all probes together.
pub const NUMBERS_MAX: usize = 16_384;

/// Different texts that are kept apart, of all probes together.
pub const TEXTS_MAX: usize = 8192;

/// What is told to a program by the kernel with each hit: which probe it is of, and
/// what is special at that site.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(transparent)]
pub struct Cookie(pub u64);

/// Bits of a [`Cookie`], behind those of the probe's number.
pub mod site {
    /// The site is a branch, and what is hit counts only if it is not taken.
    pub const UNLESS_TAKEN: u64 = 1 << 8;
    /// The code is Go's: calls belong to a goroutine, which moves from thread to thread.
    pub const GO: u64 = 1 << 9;
    /// The site is a `ret`: the return address is on the stack still.
    pub const AT_RETURN: u64 = 1 << 10;
    /// The kernel will replace the return address, which is on top of the stack here.
    pub const REPLACED: u64 = 1 << 11;
}

impl Cookie {
    const PUSHED_SHIFT: u32 = 32;

    /// `pushed` is how far the stack pointer is below the return address.
    pub const fn new(probe: u8, flags: u64, pushed: u32) -> Self {
        Self(probe as u64 | flags | (pushed as u64) << Self::PUSHED_SHIFT)
    }

    /// The number of the probe.
    #[inline(always)]
    pub const fn probe(self) -> u32 {
        self.0 as u32 & 0xff
    }

    /// Whether a bit of [`site`] is set.
    #[inline(always)]
    pub const fn has(self, flag: u64) -> bool {
        self.0 & flag != 0
    }

    /// How far the stack pointer is below the return address.
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
    /// Some calls give their stack when they begin.
    pub const STACKS: u32 = 8;
    /// Calls that took long enough give their stack when they end.
    pub const SLOW_STACKS: u32 = 16;
    /// Whoever hits it counts, target or not.
    pub const EVERYBODY: u32 = 32;
    /// Only hits of the processes in [`Orders::few`](super::Orders::few) count.
    pub const FEW: u32 = 64;
}

/// What the program does for one probe, besides counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Orders {
    /// Bits of [`order`].
    pub flags: u32,
    /// How many of 2^32 calls give their stack.
    pub stack_odds: u32,
    /// Shorter calls are counted, and nothing else.
    pub min_ns: u64,
    /// Which of the probes that had this number, one after the other. Calls that an earlier one
    /// has seen begin are not taken for those of a later one.
    pub generation: u64,
    /// Processes whose hits count, if they are few; 0 for none.
    pub few: [u32; FEW_MAX],
    /// How many arguments a tracepoint has.
    pub arguments: u64,
    /// What is read of each call; the last ones may be of kind [`value::NONE`].
    pub values: [Value; VALUES_MAX],
}

/// Kinds of [`Value`].
pub mod value {
    /// Nothing is read.
    pub const NONE: u32 = 0;
    /// A number of up to eight bytes.
    pub const NUMBER: u32 = 1;
    /// A text that ends with a zero.
    pub const TEXT: u32 = 2;
    /// A text whose length is known.
    pub const COUNTED_TEXT: u32 = 3;
}

/// A value to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Value {
    /// One of [`value`].
    pub kind: u32,
    /// 1: when the call ends.
    pub at_end: u32,
    /// Of a number, bits that are above those that count: it is shifted up by as many.
    pub above: u32,
    /// And then down by as many: its other bits that do not count, and those.
    pub down: u32,
    /// Where the number is, or the text begins.
    pub chain: Chain,
    /// The length of a counted text.
    pub length: Chain,
}

/// A register, and memory read through it: `*(*(register + add0) + add1) + then`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Chain {
    /// One of [`register`].
    pub base: u32,
    /// How many of `step` count.
    pub steps: u32,
    /// The readings of memory, in this order.
    pub step: [Step; STEPS_MAX],
    /// What is added to the last number that was read.
    pub then: i64,
}

/// One reading of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Step {
    /// What is added to the number so far, to get the address.
    pub add: i64,
    /// 1 to 8; less than 8 are not extended by their sign.
    pub bytes: u64,
}

/// Numbers of registers in [`Chain::base`]: 0 to 15 are those of instructions (0 is rax, 4
/// rsp, 15 r15); of a tracepoint, its arguments.
pub mod register {
    /// The stack pointer at the function's entry: the return address is there.
    pub const ENTRY_SP: u32 = 16;
    /// Nothing but [`Chain::then`](super::Chain::then).
    pub const ZERO: u32 = 17;
    /// How many there is room for; a power of two.
    pub const COUNT: usize = 32;
}

/// What is counted of one probe, on each CPU.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Tally {
    /// Calls that began.
    pub calls: u64,
    /// Ends of calls that began before the probe did.
    pub strangers: u64,
    /// Calls that were shorter than was asked for, of those that ended.
    pub short: u64,
    /// Hits of processes that are no targets.
    pub others: u64,
    /// Stacks that were taken.
    pub stacks: u64,
    /// Stacks that were due and not taken: another one was being taken on that CPU, or
    /// the ring was full.
    pub stacks_lost: u64,
    /// Values for which there was no room.
    pub values_lost: u64,
    /// How long the calls that ended took, all together.
    pub sum_ns: u64,
    /// The longest one. Of all but a few: two CPUs never share it, and one thread may overtake another.
    pub max_ns: u64,
    /// Values that could not be read, by their place in [`Orders::values`].
    pub unreadable: [u64; VALUES_MAX],
    /// Calls by how long they took, see [`histogram`].
    pub histogram: [u64; histogram::BUCKETS],
}

impl Tally {
    /// Of a probe that was not hit yet.
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

    /// Adds what another CPU counted of the same probe.
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

/// A number that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct NumberKey {
    /// The number of the probe.
    pub probe: u32,
    /// Its place in [`Orders::values`].
    pub slot: u32,
    /// What was read, extended by zeros.
    pub number: u64,
}

/// A text that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct TextKey {
    /// The number of the probe.
    pub probe: u32,
    /// Its place in [`Orders::values`].
    pub slot: u32,
    /// How long it is, which may be more than what was read.
    pub len: u64,
    /// The text, and zeros behind it.
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
