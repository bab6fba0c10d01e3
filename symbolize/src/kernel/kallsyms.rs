//! `/proc/kallsyms`: the kernel's functions, including those of modules and BPF programs, with
//! addresses and without sizes.

mod kept;
mod line;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};

use crate::Reason;
use line::Line;

/// Maximum size. A kernel built with everything (allyesconfig) has about 60 MB; ordinary ones have
/// 5 to 15.
const KALLSYMS_BYTES_MAX: u64 = 256 << 20;

/// Number of bytes read at once.
const PIECE_BYTES: usize = 64 << 10;

/// Maximum size of a function that is followed by another one of the same module. The largest of a
/// Debian kernel has 21 KB (`hidinput_connect`); larger distances are unmarked gaps.
const FUNCTION_BYTES_MAX: u64 = 64 << 10;

/// Maximum size of the last function before another module, or of all: the end of its module is
/// unknown, so addresses more than a few pages after its start get no name.
const LAST_FUNCTION_BYTES_MAX: u64 = 16 << 10;

/// A function of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelSymbol<'k> {
    /// Name; for a BPF program without its prefix and tag.
    pub name: &'k str,
    /// `bpf` for BPF programs and their trampolines.
    pub module: Option<&'k str>,
    /// The address of its first instruction.
    pub start: u64,
    /// Offset of the looked-up address from `start`.
    pub offset: u64,
    /// Whether it is code that BPF made.
    pub bpf: bool,
}

/// The kernel's functions at one time. Modules and BPF programs that are loaded later are not
/// included: load the symbols again.
#[derive(Debug)]
pub struct KernelSymbols {
    entries: Vec<Entry>,
    names: String,
    modules: Vec<Box<str>>,
    hidden: bool,
    /// They were kept on disk, without code that comes and goes.
    is_of_earlier_run: bool,
}

/// An address from which on the code belongs to a function, or to none.
#[derive(Debug, Clone, Copy)]
struct Entry {
    start: u64,
    /// Offset of the name in the arena; [`HOLE`] for none.
    name: u32,
    /// Index of the module plus one; 0 is the kernel itself.
    module: u16,
    name_len: u16,
}

const _: () = assert!(size_of::<Entry>() == 16);

const HOLE: u32 = u32::MAX;

impl KernelSymbols {
    /// Reads `/proc/kallsyms`. A file that cannot be read counts as hidden.
    pub fn load() -> KernelSymbols {
        let read = File::open("/proc/kallsyms").map(|file| KernelSymbols::load_from(&file));
        read.unwrap_or_else(|_| KernelSymbols::parse(b""))
    }

    /// Reads the symbols as [`KernelSymbols::load`] does, from `/proc/kallsyms` that is open already.
    pub fn load_from(kallsyms: &File) -> KernelSymbols {
        let read = KernelSymbols::read(kallsyms.take(KALLSYMS_BYTES_MAX));
        read.unwrap_or_else(|_| KernelSymbols::parse(b""))
    }

    /// Parses the text of `/proc/kallsyms`. Malformed lines are skipped.
    pub fn parse(text: &[u8]) -> KernelSymbols {
        let mut builder = Builder::default();
        builder.add_lines(text);
        builder.finish()
    }

    /// Parses text like [`KernelSymbols::parse`], reading it piece by piece: the whole text has
    /// some megabytes.
    fn read(mut text: impl Read) -> io::Result<KernelSymbols> {
        let mut builder = Builder::default();
        let mut piece = vec![0; PIECE_BYTES];
        // Bytes of the piece that belong to a line whose end was not read yet.
        let mut begun = 0;
        let mut seen = 0;
        loop {
            let read = match text.read(&mut piece[begun..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            let filled = begun + read;
            let whole = memchr::memrchr(b'\n', &piece[..filled]).map_or(0, |end| end + 1);
            if read == 0 || (whole == 0 && filled == piece.len()) {
                // Either the last line has no end, or a line is longer than a piece, which no
                // symbol's line is.
                builder.add_lines(&piece[..filled]);
                begun = 0;
            } else {
                builder.add_lines(&piece[..whole]);
                piece.copy_within(whole..filled, 0);
                begun = filled - whole;
            }
            // Among the first thousand lines, either some have addresses or none has. If none has,
            // the kernel hides them, and reading the rest would be a waste of time.
            seen += read;
            if read == 0 || seen > PIECE_BYTES && !builder.addresses {
                return Ok(builder.finish());
            }
        }
    }

    /// Returns the function at `addr`, or why there is none.
    pub fn find(&self, addr: u64) -> Result<KernelSymbol<'_>, Reason> {
        if self.hidden {
            return Err(Reason::KernelHidden);
        }
        let behind = self.entries.partition_point(|entry| entry.start <= addr);
        let entry = self.entries[..behind].last().ok_or(Reason::NotCovered)?;
        if entry.name == HOLE {
            return Err(Reason::NotCovered);
        }
        let module = usize::from(entry.module)
            .checked_sub(1)
            .map(|index| &*self.modules[index]);
        Ok(KernelSymbol {
            name: entry.name(&self.names),
            module,
            start: entry.start,
            offset: addr - entry.start,
            bpf: module == Some("bpf"),
        })
    }

    /// Returns the code range of the function at `addr`. As symbols have no sizes, it extends to
    /// the next one, including the padding between them.
    pub fn extent(&self, addr: u64) -> Option<std::ops::Range<u64>> {
        let start = self.find(addr).ok()?.start;
        let behind = self.entries.partition_point(|entry| entry.start <= addr);
        let end = self.entries.get(behind)?.start;
        Some(start..end)
    }

    /// Returns the start of the function with this name, in the kernel itself.
    pub fn start_of(&self, name: &str) -> Option<u64> {
        let is_it = |entry: &&Entry| {
            entry.name != HOLE && entry.module == 0 && entry.name(&self.names) == name
        };
        self.entries.iter().find(is_it).map(|entry| entry.start)
    }

    /// Whether the kernel hides the addresses.
    pub fn is_hidden(&self) -> bool {
        self.hidden
    }

    /// Whether they were kept on disk by an earlier run, and lack code that comes and goes.
    pub fn is_of_earlier_run(&self) -> bool {
        self.is_of_earlier_run
    }

    /// The number of functions.
    pub fn len(&self) -> usize {
        self.entries.iter().filter(|e| e.name != HOLE).count()
    }

    /// Whether there is no function.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of heap in use.
    pub fn heap_bytes(&self) -> usize {
        let modules: usize = self.modules.iter().map(|name| name.len() + 16).sum();
        self.entries.capacity() * size_of::<Entry>() + self.names.capacity() + modules
    }
}

impl Entry {
    fn name<'k>(&self, names: &'k str) -> &'k str {
        let start = self.name as usize;
        &names[start..start + usize::from(self.name_len)]
    }

    fn hole(start: u64) -> Entry {
        Entry {
            start,
            name: HOLE,
            module: 0,
            name_len: 0,
        }
    }
}

/// Splits lines with memchr, which is several times faster than `split`.
struct Lines<'t>(&'t [u8]);

impl<'t> Iterator for Lines<'t> {
    type Item = &'t [u8];

    fn next(&mut self) -> Option<&'t [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let end = memchr::memchr(b'\n', self.0).unwrap_or(self.0.len());
        let line = &self.0[..end];
        self.0 = self.0.get(end + 1..).unwrap_or_default();
        Some(line)
    }
}

#[derive(Debug, Default)]
struct Builder {
    entries: Vec<Ranked>,
    names: String,
    modules: Vec<Box<str>>,
    module_numbers: HashMap<Box<str>, u16>,
    last_module: u16,
    /// Whether any address was not zero.
    addresses: bool,
}

/// An entry, and how good its name is compared with others at the same address.
#[derive(Debug, Clone, Copy)]
struct Ranked {
    entry: Entry,
    rank: u8,
}

impl Builder {
    fn add_lines(&mut self, text: &[u8]) {
        for line in Lines(text).filter_map(Line::parse) {
            self.add(&line);
        }
    }

    fn add(&mut self, line: &Line<'_>) {
        self.addresses |= line.addr != 0;
        if line.addr == 0 {
            return;
        }
        let rank = line.rank();
        let entry = match (rank, u32::try_from(self.names.len())) {
            (0, _) | (_, Err(_)) => Entry::hole(line.addr),
            (_, Ok(offset)) => {
                self.names.push_str(line.name);
                Entry {
                    start: line.addr,
                    name: offset,
                    module: self.module_number(line.module),
                    // The kernel's own limit is 512 (KSYM_NAME_LEN).
                    name_len: line.name.len() as u16,
                }
            }
        };
        self.entries.push(Ranked { entry, rank });
    }

    fn module_number(&mut self, module: Option<&str>) -> u16 {
        let Some(module) = module else {
            return 0;
        };
        // The lines of a module are adjacent.
        let last = usize::from(self.last_module).checked_sub(1);
        if last.is_some_and(|index| &*self.modules[index] == module) {
            return self.last_module;
        }
        let next = u16::try_from(self.modules.len() + 1).unwrap_or(0);
        let number = *self.module_numbers.entry(module.into()).or_insert(next);
        if number == next && next != 0 {
            self.modules.push(module.into());
        }
        self.last_module = number;
        number
    }

    fn finish(mut self) -> KernelSymbols {
        let names = &self.names;
        // The sort is stable, and fast for sorted parts, which most of the text is.
        self.entries.sort_by_key(|ranked| ranked.entry.start);
        let mut entries: Vec<Entry> = Vec::with_capacity(self.entries.len());
        let same_start = |a: &Ranked, b: &Ranked| a.entry.start == b.entry.start;
        for group in self.entries.chunk_by(same_start) {
            let best = group
                .iter()
                .max_by(|a, b| a.order(b, names))
                .expect("a group is never empty")
                .entry;
            if let Some(hole) = hole_between(entries.last(), &best) {
                entries.push(hole);
            }
            // Adjacent holes are merged into one.
            if best.name != HOLE || entries.last().is_some_and(|last| last.name != HOLE) {
                entries.push(best);
            }
        }
        let end = Entry::hole(u64::MAX);
        entries.extend(hole_between(entries.last(), &end));
        entries.shrink_to_fit();
        self.names.shrink_to_fit();
        KernelSymbols {
            entries,
            names: self.names,
            modules: self.modules,
            hidden: !self.addresses,
            is_of_earlier_run: false,
        }
    }
}

impl Ranked {
    /// Compares by rank, then fewer underscores, then longer names, then the alphabet.
    fn order(&self, other: &Ranked, names: &str) -> std::cmp::Ordering {
        let key = |ranked: &Ranked| {
            let name = match ranked.entry.name {
                HOLE => "",
                _ => ranked.entry.name(names),
            };
            let underscores = name.bytes().take_while(|&b| b == b'_').count();
            let fewer = std::cmp::Reverse(underscores);
            (ranked.rank, fewer, name.len(), std::cmp::Reverse(name))
        };
        key(self).cmp(&key(other))
    }
}

/// Returns the hole after `last` if `last` cannot extend to `next`.
fn hole_between(last: Option<&Entry>, next: &Entry) -> Option<Entry> {
    let last = last.filter(|last| last.name != HOLE)?;
    let is_end = next.start == u64::MAX;
    let same_module = next.name == HOLE || next.module == last.module;
    let max = if same_module && !is_end {
        FUNCTION_BYTES_MAX
    } else {
        LAST_FUNCTION_BYTES_MAX
    };
    let end = last.start.saturating_add(max);
    (end < next.start).then(|| Entry::hole(end))
}

#[cfg(test)]
mod tests;
