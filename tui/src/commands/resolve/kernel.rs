//! Names for kernel addresses that a recording has relative to the symbol `_text`. They are looked
//! up in the running kernel, if it is the recorded one.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Seek as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use symbolize::KernelSymbols;

/// What the running kernel tells of itself, open before rights are given up.
#[derive(Debug, Default)]
pub struct KernelFiles {
    notes: Vec<u8>,
    kallsyms: Option<File>,
}

impl KernelFiles {
    /// Opens them with our own rights: the kernel looks at these when the list of symbols is opened,
    /// and not when it is read.
    pub fn open() -> Self {
        Self {
            notes: fs::read("/sys/kernel/notes").unwrap_or_default(),
            kallsyms: File::open("/proc/kallsyms").ok(),
        }
    }

    /// The files that another process has opened.
    pub fn of(notes: Vec<u8>, kallsyms: Option<File>) -> Self {
        KernelFiles { notes, kallsyms }
    }

    /// Returns the ELF notes of the kernel, which have its build-id.
    pub fn notes(&self) -> &[u8] {
        &self.notes
    }

    /// Returns the open file; `None` if the kernel does not have it.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.kallsyms.as_ref().map(File::as_fd)
    }
}

/// The symbols of the running kernel.
pub struct RunningKernel {
    text: u64,
    symbols: KernelSymbols,
}

impl RunningKernel {
    /// Reads the symbols. None if the kernel has another build-id, or hides its addresses from this
    /// process. An empty `build_id` fits any kernel.
    pub fn of(build_id: &[u8], files: &KernelFiles) -> Option<Self> {
        if !build_id.is_empty() && note(&files.notes) != Some(build_id) {
            return None;
        }
        let mut kallsyms = files.kallsyms.as_ref()?;
        kallsyms.rewind().ok()?;
        let lines = BufReader::new(kallsyms).lines();
        let text = lines.map_while(Result::ok).find_map(|line| {
            let address = line.strip_suffix(" T _text")?;
            u64::from_str_radix(address, 16).ok()
        })?;
        kallsyms.rewind().ok()?;
        let symbols = KernelSymbols::load_from(kallsyms);
        (text != 0 && !symbols.is_hidden()).then_some(Self { text, symbols })
    }

    /// Returns the name of the function at this distance in bytes from `_text`. None if there is no
    /// function.
    pub fn name(&self, place: u64) -> Option<String> {
        let symbol = self.symbols.find(self.text.checked_add(place)?).ok()?;
        Some(symbolize::sanitize(symbol.name.as_bytes()).into_owned())
    }
}

/// Returns the build-id in the ELF notes of a kernel. Each note is three 32-bit words (length of
/// name, length of contents, type), then name and contents, each padded to four bytes.
fn note(mut notes: &[u8]) -> Option<&[u8]> {
    const BUILD_ID: u32 = 3;
    loop {
        let word = |at: usize| {
            let bytes = notes.get(at..at + 4)?;
            Some(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        };
        let (name, contents, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let at = 12 + name.checked_next_multiple_of(4)?;
        let end = at.checked_add(contents)?;
        if kind == BUILD_ID && notes.get(12..16) == Some(b"GNU\0") {
            return notes.get(at..end);
        }
        notes = notes.get(end.checked_next_multiple_of(4)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_id_is_found_behind_other_notes() {
        let mut notes = Vec::new();
        for (name, kind, contents) in [
            (&b"Xen\0"[..], 3u32, &[9u8; 5][..]),
            (b"GNU\0", 3, &[7; 20]),
        ] {
            notes.extend((name.len() as u32).to_le_bytes());
            notes.extend((contents.len() as u32).to_le_bytes());
            notes.extend(kind.to_le_bytes());
            notes.extend(name);
            notes.extend(contents);
            notes.resize(notes.len().next_multiple_of(4), 0);
        }
        assert_eq!(note(&notes), Some(&[7; 20][..]));
        assert_eq!(note(&notes[..notes.len() - 1]), None);
        assert_eq!(note(&[0xff; 64]), None);
    }
}
