//! Finds the functions of a large file that decide which function is at a few of its addresses.
//!
//! Sorting the whole table of a file with 300,000 functions takes a tenth of a second, and 8 MiB.
//! Two passes over the symbols give the same result for some addresses, and keep only what is near
//! them: the first pass finds the *window* of each address, the second pass what lies in a window.
//!
//! ```text
//! no function of known size has the address a:
//!     [ f        )      L           a              N
//!     ───────────┼──────┼───────────·──────────────┼──── addresses
//!               E-1 ├──────────── window ──────────┤
//!
//! some have it, the innermost of which is g:
//!        [ f       [ g              a        )     )
//!     ─────────────┼────────────────·────────┼────────── addresses
//!                  ├──── window ─────────────┤
//! ```
//!
//! `L` is the last start at or before the address: a function without a size may reach from there
//! to the address, unless another function contains `L`, so that `L` is a label. `N` is the next
//! start, where such a function ends. `E` is where the last function before the address ends.

use super::candidates::{Candidate, Symbols};
use super::plt;
use crate::object::Section;
use crate::{LinkAddr, OpenError};

/// Returns the functions that decide what is at these addresses. `None` if the file itself has to
/// be read for one of them, because it is among the stubs that call into other files.
pub fn functions(
    symbols: &Symbols<'_>,
    addrs: &[LinkAddr],
) -> Result<Option<Vec<Candidate>>, OpenError> {
    let mut neighbours = Neighbours::new(addrs.iter().map(|addr| addr.0).collect());
    symbols.each(
        |_, _| true,
        |function| {
            neighbours.add(&function);
            Ok(())
        },
    )?;
    let windows = neighbours.windows();
    let has_place = |stubs: &Section| windows.touch(stubs.addr, stubs.size);
    if plt::sections(symbols.object).any(|(_, stubs)| has_place(stubs)) {
        return Ok(None);
    }
    let near = symbols.functions_if(|start, size| windows.touch(start, size))?;
    Ok(Some(near))
}

/// The first pass: what is next to each address.
#[derive(Debug)]
struct Neighbours {
    /// The addresses, sorted and distinct.
    addrs: Vec<u64>,
    /// For each address first and last byte of the innermost function of known size that contains
    /// it.
    inner: Vec<Option<(u64, u64)>>,
    /// What lies between addresses. Gap `i` reaches from behind the address `i - 1` up to and
    /// including address `i`.
    gaps: Vec<Gap>,
}

/// What lies between two addresses. No function starts at 0, nor ends there.
#[derive(Debug, Clone, Copy)]
struct Gap {
    /// The first start of a function; the largest number if there is none.
    first_start: u64,
    /// The last start of a function; 0 if there is none.
    last_start: u64,
    /// The last end of a function of known size; 0 if there is none.
    last_end: u64,
}

const EMPTY: Gap = Gap {
    first_start: u64::MAX,
    last_start: 0,
    last_end: 0,
};

impl Neighbours {
    fn new(mut addrs: Vec<u64>) -> Neighbours {
        addrs.sort_unstable();
        addrs.dedup();
        Neighbours {
            inner: vec![None; addrs.len()],
            gaps: vec![EMPTY; addrs.len() + 1],
            addrs,
        }
    }

    /// Adds one function. This is called for each function of a file, so it does little for those
    /// that contain none of the addresses.
    fn add(&mut self, function: &Candidate) {
        let start = function.start;
        let at = self.gap(start);
        let gap = &mut self.gaps[at];
        gap.first_start = gap.first_start.min(start);
        gap.last_start = gap.last_start.max(start);
        if function.size == 0 {
            return;
        }
        let end = start.saturating_add(function.size);
        // The end itself is behind the function.
        if self.addrs.get(at).is_none_or(|addr| end <= *addr) {
            gap.last_end = gap.last_end.max(end);
            return;
        }
        let end_at = self.gap(end);
        let end_gap = &mut self.gaps[end_at];
        end_gap.last_end = end_gap.last_end.max(end);
        for inner in &mut self.inner[at..end_at] {
            let this = (start, end - 1);
            if inner.is_none_or(|(first, last)| start > first || start == first && this.1 < last) {
                *inner = Some(this);
            }
        }
    }

    /// Returns the gap that contains an address.
    fn gap(&self, place: u64) -> usize {
        self.addrs.partition_point(|addr| *addr < place)
    }

    /// Returns the windows of all addresses.
    fn windows(&self) -> Windows {
        let mut windows = Vec::with_capacity(self.addrs.len());
        let (mut last_start, mut last_end) = (0, 0);
        for (at, addr) in self.addrs.iter().enumerate() {
            last_start = self.gaps[at].last_start.max(last_start);
            last_end = self.gaps[at].last_end.max(last_end);
            if let Some((first, last)) = self.inner[at] {
                windows.push((first, last));
                continue;
            }
            // Where nothing is, the window begins and ends with the address.
            let or_addr = |place: u64, nothing: u64| if place == nothing { *addr } else { place };
            let before = or_addr(last_end.wrapping_sub(1), u64::MAX);
            let from = or_addr(last_start, 0).min(before);
            let starts = self.gaps[at + 1..].iter().map(|gap| gap.first_start);
            let next = starts.min().unwrap_or(u64::MAX);
            windows.push((from, or_addr(next, u64::MAX)));
        }
        Windows::new(windows)
    }
}

/// Ranges of addresses that do not touch each other.
#[derive(Debug)]
struct Windows(Vec<(u64, u64)>);

impl Windows {
    fn new(mut windows: Vec<(u64, u64)>) -> Windows {
        windows.sort_unstable();
        windows.dedup_by(|next, before| {
            let is_touching = next.0 <= before.1.saturating_add(1);
            if is_touching {
                before.1 = before.1.max(next.1);
            }
            is_touching
        });
        Windows(windows)
    }

    /// Whether a function of that start and size has a byte in one of the windows, or its start if
    /// it has no size.
    fn touch(&self, start: u64, size: u64) -> bool {
        let last = start.saturating_add(size.max(1)) - 1;
        let at = self.0.partition_point(|(_, last)| *last < start);
        self.0.get(at).is_some_and(|(first, _)| *first <= last)
    }
}

#[cfg(test)]
mod tests {
    use crate::object::Object;
    use crate::{ElfSymbols, FileOffset, LinkAddr};
    use std::fmt::Write as _;
    use std::fs::File;
    use std::path::Path;
    use test_support::{Random, Scratch, compile, run_tool};

    /// Size of the test code; most of its functions lie inside of others.
    const CODE: u64 = 4096;
    const FUNCTIONS: u64 = 150;

    /// Code that does nothing, with all kinds of functions: of known and unknown size, nested,
    /// overlapping, with several names, and labels that are not functions.
    fn assembly(random: &mut Random) -> String {
        let mut text = format!(".text\nbase:\n.skip {CODE}, 0x90\n");
        for number in 0..FUNCTIONS {
            let start = random.below(CODE / 8) * 8;
            let size = match random.below(6) {
                0 | 1 => 0,
                2 => random.below(CODE - start) + 1,
                _ => random.below(40) + 1,
            };
            let name = format!("f{number}{}", ["", "_end", ""][random.index(3)]);
            if random.below(3) != 0 {
                writeln!(text, ".globl {name}").unwrap();
            }
            if random.below(5) != 0 {
                writeln!(text, ".type {name}, @function\n.size {name}, {size}").unwrap();
            }
            writeln!(text, ".set {name}, base + {start}").unwrap();
        }
        text
    }

    fn whole(path: &Path) -> ElfSymbols {
        ElfSymbols::read(&File::open(path).unwrap()).unwrap()
    }

    /// Asserts that the functions found for some places alone are those of the whole table.
    fn assert_alike(path: &Path, whole: &ElfSymbols, places: &[FileOffset]) {
        let object = Object::read(&File::open(path).unwrap()).unwrap();
        let near = ElfSymbols::near(object, None, places).unwrap();
        let near = near.expect("no place is among stubs");
        for place in places {
            assert_eq!(
                near.find(*place),
                whole.find(*place),
                "{place:x?} of {places:x?}"
            );
            assert_eq!(
                near.same_function(*place),
                whole.same_function(*place),
                "the same as {place:x?} of {places:x?}"
            );
            let addr = whole.segments().to_link(*place).unwrap();
            assert_eq!(near.around(addr), whole.around(addr), "around {addr:x?}");
        }
    }

    #[test]
    fn some_places_have_what_the_whole_table_has() {
        let mut random = Random::new(11);
        for round in 0..test_support::cases(12) {
            let scratch = Scratch::new();
            let source = scratch.write("code.s", assembly(&mut random));
            let program = scratch.join("code.so");
            let linker = ["-shared", "-nostdlib", "-Wl,--build-id"];
            if compile(&source, &program, linker).is_none() {
                return;
            }
            let stripped = scratch.join("stripped.so");
            let is_stripped = round % 3 == 2
                && run_tool(
                    std::process::Command::new("strip")
                        .arg(&program)
                        .arg("-o")
                        .arg(&stripped),
                )
                .is_some();
            let program = if is_stripped { stripped } else { program };
            let whole = whole(&program);
            let base = whole.first_start().expect("there are functions").0;
            let place = |addr| whole.segments().to_file(LinkAddr(addr));
            // First each place alone, then several together.
            for _ in 0..300 {
                let addr = base + random.below(CODE + 16);
                assert_alike(&program, &whole, &Vec::from_iter(place(addr)));
            }
            for _ in 0..100 {
                let addrs = (0..=random.below(12)).map(|_| base + random.below(CODE));
                let places: Vec<FileOffset> = addrs.filter_map(place).collect();
                assert_alike(&program, &whole, &places);
            }
        }
    }

    /// Uses this test program itself, which has thousands of functions, some of them with several
    /// names.
    #[test]
    fn places_of_a_real_program_have_what_its_whole_table_has() {
        let path = std::env::current_exe().unwrap();
        let whole = whole(&path);
        let mut functions: Vec<LinkAddr> = whole.functions().map(|f| f.start).collect();
        functions.sort_unstable();
        let mut random = Random::new(5);
        let mut asked = 0;
        while asked < 2_000 {
            let places: Vec<FileOffset> = (0..=random.below(20))
                .map(|_| functions[random.index(functions.len())].0 + random.below(200))
                .filter_map(|addr| whole.segments().to_file(LinkAddr(addr)))
                .collect();
            asked += places.len();
            let object = Object::read(&File::open(&path).unwrap()).unwrap();
            let Some(near) = ElfSymbols::near(object, None, &places).unwrap() else {
                // Some place is in a stub.
                continue;
            };
            for place in places {
                assert_eq!(near.find(place), whole.find(place), "{place:x?}");
                assert_eq!(near.same_function(place), whole.same_function(place));
            }
        }
    }
}
