//! Where names come from.

/// The source of the names of a module's functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Origin {
    /// The file's own symbol table.
    SymbolTable,
    /// The exported symbols of a stripped file.
    Exports,
    /// A separate debug file.
    DebugFile,
    /// Compressed symbols inside of the file.
    MiniDebugInfo,
    /// The table that Go programs carry for themselves.
    GoTable,
    /// The kernel's list of its symbols.
    Kernel,
    /// The symbol table of the vDSO.
    Vdso,
    /// A file in which a runtime describes the code that it makes.
    JitMap,
    /// The code objects of Python, in the memory of its process.
    Python,
}

impl Origin {
    /// Every origin, in the order of the enum.
    pub const ALL: [Origin; 9] = [
        Origin::SymbolTable,
        Origin::Exports,
        Origin::DebugFile,
        Origin::MiniDebugInfo,
        Origin::GoTable,
        Origin::Kernel,
        Origin::Vdso,
        Origin::JitMap,
        Origin::Python,
    ];

    /// Returns the identifier used in scripts and on the screen.
    pub fn label(self) -> &'static str {
        match self {
            Origin::SymbolTable => ".symtab",
            Origin::Exports => ".dynsym",
            Origin::DebugFile => "debug file",
            Origin::MiniDebugInfo => ".gnu_debugdata",
            Origin::GoTable => ".gopclntab",
            Origin::Kernel => "kallsyms",
            Origin::Vdso => "vDSO",
            Origin::JitMap => "perf map",
            Origin::Python => "Python",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_holds_every_origin_in_order() {
        assert!(Origin::ALL.is_sorted());
        assert_eq!(Origin::Python as usize + 1, Origin::ALL.len());
    }
}
