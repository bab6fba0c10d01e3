//! The *span*: how far back from now a report looks.

/// The time that a report should cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// The last seconds, this number of them.
    Seconds(u32),
    /// The whole history.
    All,
}

impl Span {
    /// The spans that the keys `,` and `.` step through.
    pub const STEPS: [Span; 4] = [
        Span::Seconds(1),
        Span::Seconds(10),
        Span::Seconds(60),
        Span::All,
    ];

    /// The next shorter one of [`Span::STEPS`]; itself if there is none.
    pub fn shorter(self) -> Span {
        let shorter = |step: &&Span| step.seconds() < self.seconds();
        *Self::STEPS.iter().rev().find(shorter).unwrap_or(&self)
    }

    /// The next longer one of [`Span::STEPS`]; itself if there is none.
    pub fn longer(self) -> Span {
        let longer = |step: &&Span| step.seconds() > self.seconds();
        *Self::STEPS.iter().find(longer).unwrap_or(&self)
    }

    /// Length in seconds, for comparing; the whole history is the largest number.
    fn seconds(self) -> u32 {
        match self {
            Span::Seconds(seconds) => seconds,
            Span::All => u32::MAX,
        }
    }
}

impl Default for Span {
    fn default() -> Self {
        Span::Seconds(10)
    }
}
