//! The code of a file, found in this process or in another one.

use std::sync::Arc;
use std::time::SystemTime;

use super::code_answer::CodeAnswer;
use super::opened_code::OpenedCode;
use crate::code::{self, CodeLines, CodeQuestion};
use crate::source::Source;
use crate::{ElfSymbols, Reason};

/// The code of one file.
#[derive(Debug, Clone)]
pub enum FileCode {
    /// This process reads the file.
    Here(Arc<ElfSymbols>, CodeLines),
    /// A parser process without privileges reads it.
    Elsewhere(Arc<OpenedCode>),
}

impl FileCode {
    /// Finds the code of a function.
    pub fn find(&self, question: &CodeQuestion<'_>) -> Result<CodeAnswer, Reason> {
        match self {
            FileCode::Here(symbols, lines) => Ok(CodeAnswer {
                found: code::find(symbols, lines, question),
                no_lines: lines.missing(),
                is_table_damaged: lines.is_table_damaged(),
            }),
            FileCode::Elsewhere(code) => code.find(question),
        }
    }

    /// When the file was written. `None` for code that is in memory only.
    pub fn modified(&self) -> Option<SystemTime> {
        let file = match self {
            FileCode::Here(symbols, _) => match symbols.object().source() {
                Source::File { file, .. } => file,
                Source::Memory(_) => return None,
            },
            FileCode::Elsewhere(code) => code.file(),
        };
        file.metadata().ok()?.modified().ok()
    }
}
