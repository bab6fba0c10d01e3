//! Removes the DWARF from the BPF object: the kernel needs only the BTF, and the rest would be
//! three quarters of the file.

use anyhow::{Context as _, Result};
use object::build::elf::{Builder, SectionData};
use object::elf::SHT_STRTAB;

/// Returns the object without `.debug_*` sections and their relocations.
pub fn debug_sections(object: &[u8]) -> Result<Vec<u8>> {
    let mut builder = Builder::read(object).context("the linker's output is not ELF")?;
    for section in &mut builder.sections {
        let name: &[u8] = &section.name;
        if name.starts_with(b".debug_") || name.starts_with(b".rel.debug_") {
            section.delete = true;
        }
    }
    // LLVM keeps section names and symbol names in one table; the writer needs two.
    let names = builder.sections.add();
    names.name = b".shstrtab"[..].into();
    names.sh_type = SHT_STRTAB;
    names.sh_addralign = 1;
    names.data = SectionData::SectionString;
    builder.delete_orphans();
    builder.delete_unused_versions();
    let mut stripped = Vec::new();
    builder
        .write(&mut stripped)
        .context("cannot write the stripped object")?;
    Ok(stripped)
}
