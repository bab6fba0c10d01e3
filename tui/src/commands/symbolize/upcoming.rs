//! The addresses of a text that was read and is going to be answered. A file reads together what it
//! has about its addresses, and nothing else, which takes half the time of reading one by one.

use super::SymbolFormat;
use super::find::{self, Addresses};
use std::collections::HashMap;
use std::io::BufRead as _;
use symbolize::{FileOffset, LinkAddr, Segments};

/// Addresses by the name of their file, which is empty for the file of the command line.
#[derive(Debug, Default)]
pub struct Upcoming(HashMap<Vec<u8>, Vec<Address>>);

#[derive(Debug, Clone, Copy)]
enum Address {
    Link(u64),
    /// An offset in the file, of an instruction or of the first one behind it.
    Offset(u64),
}

impl Upcoming {
    /// Finds the addresses of all lines of a text, except of one at the end that others precede and
    /// that was not read to its end.
    pub fn of(text: &[u8], format: SymbolFormat) -> Upcoming {
        let mut found = Upcoming::default();
        let mut at = 0;
        // Reading from memory does not fail.
        while let Ok(len @ 1..) = (&text[at..]).skip_until(b'\n') {
            let line = &text[at..at + len];
            match line.strip_suffix(b"\n") {
                Some(line) => found.add(line, format),
                None if at == 0 => found.add(line, format),
                None => {}
            }
            at += len;
        }
        found
    }

    fn add(&mut self, line: &[u8], format: SymbolFormat) {
        let alone = std::str::from_utf8(line).ok();
        if let Some(addr) = alone.and_then(|word| super::number(word.trim(), format)) {
            self.push(b"", Address::Link(addr));
            return;
        }
        let is_perf = find::perf_frame(line).is_some();
        for found in Addresses::of(line) {
            if let Some(number) = find::number(found.digits) {
                let is_offset = is_perf && found.file.is_some();
                let kind = if is_offset {
                    Address::Offset
                } else {
                    Address::Link
                };
                self.push(found.file.unwrap_or_default(), kind(number));
            }
        }
    }

    fn push(&mut self, file: &[u8], addr: Address) {
        match self.0.get_mut(file) {
            Some(addrs) => addrs.push(addr),
            None => _ = self.0.insert(file.to_vec(), vec![addr]),
        }
    }

    /// Returns the addresses of code in the file with that name, the first time that they are asked
    /// for.
    pub fn take(&mut self, file: &[u8], segments: &Segments) -> Option<Vec<LinkAddr>> {
        let mut addrs = Vec::new();
        for addr in self.0.remove(file)? {
            match addr {
                Address::Link(addr) => addrs.push(LinkAddr(addr)),
                Address::Offset(offset) => {
                    if let Some(behind) = segments.to_link(FileOffset(offset)) {
                        let before = behind.0.checked_sub(1).map(LinkAddr);
                        addrs.extend(before.into_iter().chain([behind]));
                    }
                }
            }
        }
        addrs.retain(|addr| segments.is_executable(*addr));
        Some(addrs)
    }
}
