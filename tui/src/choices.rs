//! *Choices* that users make by a word: on the command line, in the configuration and while proftop
//! runs.

use clap::ValueEnum;
use std::path::PathBuf;
use std::time::Duration;

/// Who takes the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EngineChoice {
    /// BPF where it can be had, else perf
    Auto,
    /// A BPF program walks the stacks in the kernel
    Bpf,
    /// The kernel copies the stacks: costs more, and works without BPF
    Perf,
}

/// What functions are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Samples in the function itself
    #[value(name = "self")]
    SelfTime,
    /// Samples in it or in what it calls
    Total,
    Name,
}

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Csv,
    Json,
    /// A short answer in Markdown, for programs that read language
    Md,
}

/// Whether colors are used; `Auto` decides by the terminal and the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

/// Which colors the screen has; `Auto` decides by the terminal and its background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Theme {
    Auto,
    Dark,
    Light,
    /// The sixteen colors of the terminal's own palette
    #[value(name = "16")]
    Sixteen,
    /// No colors at all
    Mono,
}

/// One side of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand {
    File(PathBuf),
    Live(LiveOperand),
}

/// A process that is recorded now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveOperand {
    pub pid: u32,
    pub duration: Duration,
}
