//! The entries of a section of call frame information (DWARF 5, 6.4.1; LSB Core, "Exception
//! Frames"): the common part of several functions (CIE), and each function (FDE).
//!
//! Entries are iterated by their lengths alone, so a damaged entry does not affect those after it.

use std::collections::HashMap;

use gimli::{BaseAddresses, CommonInformationEntry, Error};
use gimli::{UnwindOffset, UnwindSection};

use super::Bytes;
use super::collect::Collector;
use super::machine::Machine;
use super::program::{Common, Runner};
use super::rule::{Unsupported, UnwindRule};
use crate::OpenError;
use crate::bytes::u32_in;

/// Maximum size of a section, twenty times that of LLVM.
pub const SECTION_BYTES_MAX: u64 = 128 << 20;

/// Maximum number of CIEs. Linkers merge those of `.eh_frame`; `.debug_frame` has one per source
/// file.
const CIES_MAX: usize = 1 << 16;

/// Maximum size of a CIE. Real ones have 20 to 30 bytes, those for signals 150.
const CIE_BYTES_MAX: usize = 4096;

/// The meaning of an empty entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtZero {
    /// The end of the information: what follows is something else.
    Stop,
    /// The end of what one object file contributed.
    Continue,
}

/// Adds all functions of a section.
pub fn read<'d, S>(
    section: &S,
    data: &'d [u8],
    bases: &BaseAddresses,
    at_zero: AtZero,
    collector: &mut Collector,
) -> Result<(), OpenError>
where
    S: UnwindSection<Bytes<'d>>,
{
    let mut cies = Cies::default();
    let mut at = 0;
    while let Some(extent) = Extent::at(data, at) {
        match extent {
            Extent::Zero if at_zero == AtZero::Stop => break,
            Extent::Zero => at += 4,
            Extent::Damaged => {
                collector.statistics.damaged += 1;
                break;
            }
            Extent::Entry { behind } => {
                match entry(section, data, bases, at, &mut cies, collector) {
                    Ok(()) => {}
                    Err(Failure::Damaged) => collector.statistics.damaged += 1,
                    Err(Failure::Full(refused)) => return Err(refused),
                }
                at = behind;
            }
        }
    }
    Ok(())
}

/// What is at a place of the section, according to its length.
#[derive(Debug)]
pub enum Extent {
    /// A length of 0, which ends the section or is padding.
    Zero,
    /// An entry; the next one is at `behind`.
    Entry { behind: usize },
    /// A length that goes beyond the end of the section.
    Damaged,
}

impl Extent {
    /// Returns what is at an offset; `None` at the end of the section.
    pub fn at(data: &[u8], at: usize) -> Option<Extent> {
        let (start, len) = match u32_in(data, at)? {
            0 => return Some(Extent::Zero),
            u32::MAX => {
                let low = u32_in(data, at + 4)?;
                let high = u32_in(data, at + 8)?;
                (at + 12, u64::from(high) << 32 | u64::from(low))
            }
            // gimli refuses the reserved lengths, 0xfffffff0 and above.
            len => (at + 4, u64::from(len)),
        };
        let rest = (data.len() - start) as u64;
        Some(if len <= rest {
            Extent::Entry {
                behind: start + len as usize,
            }
        } else {
            Extent::Damaged
        })
    }
}

#[derive(Debug)]
enum Failure {
    Damaged,
    Full(OpenError),
}

impl From<Error> for Failure {
    fn from(_: Error) -> Failure {
        Failure::Damaged
    }
}

fn entry<'d, S>(
    section: &S,
    data: &'d [u8],
    bases: &BaseAddresses,
    at: usize,
    cies: &mut Cies<'d>,
    collector: &mut Collector,
) -> Result<(), Failure>
where
    S: UnwindSection<Bytes<'d>>,
{
    let partial = match section.partial_fde_from_offset(bases, S::Offset::from(at)) {
        Ok(partial) => partial,
        // It is a CIE, which is read when an FDE refers to it.
        Err(Error::NotCiePointer(_)) => return Ok(()),
        Err(_) => return Err(Failure::Damaged),
    };
    let cie = cies.get(section, bases, partial.cie_offset(), collector.machine)?;
    let fde = partial.parse(|_, _, _| Ok(cie.entry.clone()))?;
    let signal = cie.entry.is_signal_trampoline();
    // Signal handlers return to code that ends with a system call, which never returns. While the
    // kernel executes it, the saved address is the one after the function.
    let len = fde.len().saturating_add(u64::from(signal));
    if !collector.open(fde.initial_address(), len) {
        return Ok(());
    }
    let with_rbx = collector.with_rbx;
    let machine = collector.machine;
    let is_elsewhere = cie.entry.return_address_register() != machine.tracked().return_address;
    let mut runner = Runner::new(&cie.common, fde.initial_address());
    let run = runner.run(fde.instructions(section, bases), |address, state| {
        collector.add(address, || {
            if !is_elsewhere {
                machine.rule(state, data, signal, with_rbx)
            } else {
                UnwindRule::Unsupported(Unsupported::ReturnAddress)
            }
        });
    });
    match run {
        Ok(()) => collector.close().map_err(Failure::Full),
        Err(error) => {
            collector.abandon();
            Err(error.into())
        }
    }
}

struct Cie<'d> {
    entry: CommonInformationEntry<Bytes<'d>>,
    common: Common,
}

/// The CIEs read so far; `None` for a damaged one.
#[derive(Default)]
struct Cies<'d>(HashMap<usize, Option<Cie<'d>>>);

impl<'d> Cies<'d> {
    fn get<S>(
        &mut self,
        section: &S,
        bases: &BaseAddresses,
        offset: S::Offset,
        machine: Machine,
    ) -> Result<&Cie<'d>, Failure>
    where
        S: UnwindSection<Bytes<'d>>,
    {
        let at = UnwindOffset::into(offset);
        if self.0.len() >= CIES_MAX && !self.0.contains_key(&at) {
            return Err(Failure::Damaged);
        }
        let cie = self
            .0
            .entry(at)
            .or_insert_with(|| parse(section, bases, offset, machine).ok());
        cie.as_ref().ok_or(Failure::Damaged)
    }
}

fn parse<'d, S>(
    section: &S,
    bases: &BaseAddresses,
    offset: S::Offset,
    machine: Machine,
) -> Result<Cie<'d>, Failure>
where
    S: UnwindSection<Bytes<'d>>,
{
    let entry = section.cie_from_offset(bases, offset)?;
    // Some of glibc's functions of AArch64 keep the return address in x15, and say so here.
    let is_known = entry.return_address_register() == machine.tracked().return_address
        || machine == Machine::Aarch64;
    let is_usual = entry.address_size() == 8 && is_known && entry.entry_len() <= CIE_BYTES_MAX;
    if !is_usual {
        return Err(Failure::Damaged);
    }
    let common = Common {
        tracked: machine.tracked(),
        code_alignment: entry.code_alignment_factor(),
        data_alignment: entry.data_alignment_factor(),
        initial: None,
        remembered: Vec::new(),
    };
    let mut runner = Runner::new(&common, 0);
    runner.run(entry.instructions(section, bases), |_, _| {})?;
    Ok(Cie {
        common: runner.into_common(),
        entry,
    })
}
