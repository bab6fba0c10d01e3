//! Where functions without a name begin: a named function must not extend into them.
//!
//! Mach-O has a list of all starts (`LC_FUNCTION_STARTS`), PE a table with start
//! and end of each function that keeps a frame (`.pdata`). Both stay in stripped
//! files.

use object::macho::{LC_FUNCTION_STARTS, LinkeditDataCommand};
use object::read::File;
use object::{Architecture, Endianness, Object, ObjectSection, ObjectSegment};

const BOUNDARIES_MAX: usize = 16 << 20;

/// Returns the sorted addresses at which functions begin or end.
pub fn boundaries(file: &File<'_>, bytes: &[u8]) -> Vec<u64> {
    let mut found = match file {
        File::MachO64(_) => function_starts(file, bytes).unwrap_or_default(),
        File::Pe64(_) => unwind_table(file).unwrap_or_default(),
        _ => Vec::new(),
    };
    found.sort_unstable();
    found.dedup();
    found
}

/// Decodes differences of seven bits per byte, from the start of the text on.
fn function_starts(file: &File<'_>, bytes: &[u8]) -> Option<Vec<u64>> {
    let File::MachO64(macho) = file else {
        return None;
    };
    let mut commands = macho.macho_load_commands().ok()?;
    let mut list = None;
    while let Ok(Some(command)) = commands.next() {
        if command.cmd() == LC_FUNCTION_STARTS {
            let data: &LinkeditDataCommand<Endianness> = command.data().ok()?;
            let endian = macho.endian();
            let start = data.dataoff.get(endian) as usize;
            let end = start.checked_add(data.datasize.get(endian) as usize)?;
            list = bytes.get(start..end);
        }
    }
    let is_text = |name: Option<&str>| name == Some("__TEXT");
    let text = file.segments().find(|s| is_text(s.name().ok().flatten()))?;
    let mut at = text.address();
    let mut starts = Vec::new();
    let (mut delta, mut shift) = (0u64, 0);
    for byte in list? {
        delta |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
        shift += 7;
        if byte & 0x80 == 0 {
            if delta == 0 || starts.len() >= BOUNDARIES_MAX {
                break;
            }
            at = at.wrapping_add(delta);
            starts.push(at);
            (delta, shift) = (0, 0);
        }
    }
    Some(starts)
}

fn unwind_table(file: &File<'_>) -> Option<Vec<u64>> {
    // Other machines encode the end in their unwind information.
    let words = match file.architecture() {
        Architecture::X86_64 => 3,
        Architecture::Aarch64 => 2,
        _ => return None,
    };
    let ends = usize::from(words == 3);
    let table = file.section_by_name(".pdata")?.data().ok()?;
    let base = file.relative_address_base();
    let entries = table.chunks_exact(words * 4).take(BOUNDARIES_MAX / 2);
    let addresses = entries.flat_map(|entry| {
        let (words, _) = entry.as_chunks::<4>();
        let address = |word: &[u8; 4]| base.wrapping_add(u32::from_le_bytes(*word).into());
        words.iter().take(1 + ends).map(address).collect::<Vec<_>>()
    });
    Some(addresses.collect())
}
