//! The comparison of one file's table with gimli's rows.

use gimli::{BaseAddresses, CieOrFde, DebugFrame, EhFrame, EndianSlice, LittleEndian};
use gimli::{CfaRule, FrameDescriptionEntry, Register, RegisterRule, UnwindContext};
use gimli::{UnwindContextStorage, UnwindSection, UnwindTableRow, Vendor};
use symbolize::object::Object;
use symbolize::unwind::{Unsupported, UnwindRule, UnwindTable};
use symbolize::{LinkAddr, OpenError};

use super::frames::{self, Machine, Registers};
use super::ranges::{Range, Ranges};

pub type Bytes<'d> = EndianSlice<'d, LittleEndian>;

/// Room for 64 nested states, instead of gimli's 4.
pub struct Roomy;

impl UnwindContextStorage<usize> for Roomy {
    type Rules = [(Register, RegisterRule<usize>); 64];
    type Stack = Box<[UnwindTableRow<usize, Self>; 20]>;
}

pub type Row = UnwindTableRow<usize, Roomy>;

/// Number of wrong look-ups that are described.
const EXAMPLES: usize = 5;

/// Gaps smaller than this may be taken for the function before them. In larger ones the code
/// describes itself.
const PADDING_BYTES: u64 = 16;

#[derive(Debug, Default)]
pub struct Outcome {
    pub rows: u64,
    /// Addresses of rows that belong to another FDE, and are not looked up.
    pub shadowed: u64,
    pub lookups: u64,
    pub wrong: u64,
    pub examples: Vec<String>,
}

impl Outcome {
    fn count(&mut self, addr: u64, found: Option<UnwindRule>, right: bool) {
        self.lookups += 1;
        if right {
            return;
        }
        self.wrong += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(format!("{addr:#x} is {found:?}"));
        }
    }
}

/// Looks up every row of the file that gimli finds.
pub fn check(object: &Object, table: &UnwindTable) -> Result<Outcome, OpenError> {
    let machine = Machine::of(object);
    let text = object.section_by_name(b".text").map_or(0, |s| s.addr);
    let sections = |name: &[u8]| {
        let sections = object.sections().iter();
        let named = sections.filter(|s| object.section_name(s) == name && !s.is_compressed());
        let read = named.map(|section| {
            let bases = BaseAddresses::default()
                .set_text(text)
                .set_eh_frame(section.addr);
            Ok((object.section_data(section, 1 << 30, "section")?, bases))
        });
        read.collect::<Result<Vec<_>, OpenError>>()
    };
    let mut eh_frames = sections(b".eh_frame")?;
    eh_frames.extend(sections(b".bolt.org.eh_frame")?);
    let debug_frames = sections(b".debug_frame")?;
    let eh_frames: Vec<_> = eh_frames
        .iter()
        .map(|(data, bases)| {
            let mut section = EhFrame::new(data, LittleEndian);
            section.set_vendor(machine.vendor);
            (section, bases)
        })
        .collect();
    let debug_frames: Vec<_> = debug_frames
        .iter()
        .map(|(data, bases)| {
            let mut section = DebugFrame::new(data, LittleEndian);
            section.set_vendor(machine.vendor);
            (section, bases)
        })
        .collect();

    let mut outcome = Outcome::default();
    let eh_ranges = ranges(&eh_frames);
    let debug_ranges = ranges(&debug_frames);
    rows(&eh_frames, table, &machine, &mut outcome, |addr| {
        eh_ranges.owner(addr)?.number
    });
    rows(&debug_frames, table, &machine, &mut outcome, |addr| {
        let owner = debug_ranges.owner(addr);
        owner.filter(|_| eh_ranges.owner(addr).is_none())?.number
    });
    // Code between FDEs is described by Go's own table, which gimli does not know, and on AArch64
    // by the code itself.
    let is_told = object.go_build_id().is_some() || matches!(machine.vendor, Vendor::AArch64);
    if debug_frames.is_empty() && !is_told {
        gaps(&eh_ranges, table, &mut outcome);
    }
    Ok(outcome)
}

fn ranges<'d, S: UnwindSection<Bytes<'d>>>(sections: &[(S, &BaseAddresses)]) -> Ranges {
    let mut ranges = Vec::new();
    let mut context = UnwindContext::<usize, Roomy>::new_in();
    for_each_fde(sections, |number, section, bases, fde| {
        let error = fde
            .rows(section, bases, &mut context)
            .and_then(|mut rows| while_some(|| Ok(rows.next_row()?.is_some())))
            .err();
        // An FDE that gimli cannot run to the end is not a function. If gimli fails because it is
        // stricter than other readers, the FDE is a function that cannot be compared.
        let number = match error {
            None => Some(number),
            Some(gimli::Error::CfiInstructionInInvalidContext) => None,
            Some(_) => return,
        };
        ranges.push(Range {
            start: fde.initial_address(),
            end: fde.end_address(),
            order: ranges.len(),
            number,
        });
    });
    Ranges::new(ranges)
}

fn while_some(mut next: impl FnMut() -> gimli::Result<bool>) -> gimli::Result<()> {
    while next()? {}
    Ok(())
}

fn rows<'d, S: UnwindSection<Bytes<'d>>>(
    sections: &[(S, &BaseAddresses)],
    table: &UnwindTable,
    machine: &Machine,
    outcome: &mut Outcome,
    owner: impl Fn(u64) -> Option<usize>,
) {
    let mut context = UnwindContext::<usize, Roomy>::new_in();
    for_each_fde(sections, |number, section, bases, fde| {
        let Ok(mut rows) = fde.rows(section, bases, &mut context) else {
            return;
        };
        let encoding = fde.cie().encoding();
        while let Ok(Some(row)) = rows.next_row() {
            let start = row.start_address();
            let end = row.end_address().min(fde.end_address());
            if start >= end {
                continue;
            }
            outcome.rows += 1;
            for addr in [start, start + (end - start) / 2, end - 1] {
                if owner(addr) != Some(number) {
                    outcome.shadowed += 1;
                    continue;
                }
                let found = table.lookup(LinkAddr(addr));
                let right = found.is_some_and(|rule| {
                    let is_same = |rip| {
                        let registers = Registers::with_rip(rip);
                        let expected =
                            frames::by_gimli(row, section, encoding, &registers, machine);
                        frames::by_rule(rule, &registers) == expected
                    };
                    match rule {
                        UnwindRule::Hole => false,
                        UnwindRule::EndOfStack => {
                            row.register(machine.return_address) == Some(RegisterRule::Undefined)
                        }
                        UnwindRule::Signal => fde.is_signal_trampoline() && is_same(addr),
                        UnwindRule::Unsupported(why) => {
                            let column = fde.cie().return_address_register();
                            let is_usual =
                                column == machine.return_address && is_common(row, machine);
                            why != Unsupported::TooManyRules && !is_usual
                        }
                        UnwindRule::Plt { .. } => (0..16).all(is_same),
                        UnwindRule::Frame { .. }
                        | UnwindRule::FrameWithRbx { .. }
                        | UnwindRule::Linked(_) => is_same(addr),
                        UnwindRule::ReturnInRegister { register, .. } => {
                            row.register(machine.return_address)
                                == Some(RegisterRule::Register(gimli::Register(register as u16)))
                        }
                        // These rules do not come from this section.
                        UnwindRule::StackSwitch
                        | UnwindRule::LinkOnly
                        | UnwindRule::CgoCall { .. }
                        | UnwindRule::Goroutine(_) => false,
                    }
                });
                outcome.count(addr, found, right);
            }
        }
    });
}

/// Whether a row has the form of nearly all rows.
fn is_common(row: &Row, machine: &Machine) -> bool {
    let by_register =
        |register| register == machine.stack_pointer || register == machine.frame_pointer;
    let is_return_known = match (machine.vendor, row.register(machine.return_address)) {
        (Vendor::AArch64, None | Some(RegisterRule::Offset(_))) => true,
        (_, rule) => rule == Some(RegisterRule::Offset(-8)),
    };
    matches!(row.cfa(), CfaRule::RegisterAndOffset { register, .. } if by_register(*register))
        && is_return_known
        && matches!(
            row.register(machine.frame_pointer),
            None | Some(RegisterRule::Offset(_) | RegisterRule::SameValue)
        )
}

fn gaps(ranges: &Ranges, table: &UnwindTable, outcome: &mut Outcome) {
    let small = |(start, end): &(u64, u64)| end - start < PADDING_BYTES;
    for (start, end) in ranges.gaps().filter(small) {
        let middle = start + (end - start) / 2;
        let found = table.lookup(LinkAddr(middle));
        let before = table.lookup(LinkAddr(start - 1));
        let right = matches!(found, None | Some(UnwindRule::Hole)) || found == before;
        outcome.count(middle, found, right);
    }
}

fn for_each_fde<'d, S: UnwindSection<Bytes<'d>>>(
    sections: &[(S, &BaseAddresses)],
    mut on_fde: impl FnMut(usize, &S, &BaseAddresses, &FrameDescriptionEntry<Bytes<'d>>),
) {
    let mut number = 0;
    for (section, bases) in sections {
        let mut entries = section.entries(bases);
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else {
                continue;
            };
            let Ok(fde) = partial.parse(S::cie_from_offset) else {
                continue;
            };
            let removed = fde.initial_address() == 0 || fde.len() == 0;
            if !removed && fde.end_address() <= u64::from(u32::MAX) {
                on_fde(number, section, bases, &fde);
            }
            number += 1;
        }
    }
}
