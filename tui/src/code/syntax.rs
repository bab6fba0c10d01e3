//! The ways of writing instructions that users choose from, where there is more than one: those of
//! x86.

use clap::ValueEnum;
use symbolize::code::Dialect;

/// How instructions are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Syntax {
    /// AT&T
    #[default]
    #[value(alias = "at&t")]
    Att,
    /// Intel
    Intel,
}

impl Syntax {
    /// Returns the other syntax.
    pub fn other(self) -> Self {
        match self {
            Syntax::Att => Syntax::Intel,
            Syntax::Intel => Syntax::Att,
        }
    }

    /// Returns the name that users know.
    pub fn name(self) -> &'static str {
        match self {
            Syntax::Att => "AT&T",
            Syntax::Intel => "Intel",
        }
    }
}

impl From<Syntax> for Dialect {
    fn from(syntax: Syntax) -> Self {
        match syntax {
            Syntax::Att => Dialect::Att,
            Syntax::Intel => Dialect::Intel,
        }
    }
}
