//! The programs of probes of calls. They are loaded with the first probe: the kernel takes as long
//! to verify them as for everything else, and most runs have no probes.

use super::multi::MadeMaps;
use super::objects::BpfObject;
use super::{Object, load_program, multi, program, refused, take, verified_instructions};
use crate::error::Error;
use crate::events::call::{self, CallMaps, Points, Programs};
use crate::features::kernel_is_at_least;
use aya::Ebpf;
use aya::programs::{ProgramFd, RawTracePoint, UProbe};
use probe_ebpf::calls::PROBES_MAX;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, PoisonError};

/// The first Linux whose links for several breakpoints count correctly: see
/// `probe/src/events/call/attach/multi.rs`.
const MULTI_SINCE: (u32, u32) = (6, 12);

/// The result of loading the programs.
pub struct LoadedCalls {
    /// The maps that the programs share.
    pub maps: CallMaps,
    /// What is not available, in sentences.
    pub notes: Vec<String>,
    /// Number of instructions that the verifier processed, by program.
    pub verified: Vec<(&'static str, u32)>,
}

impl Object {
    /// Loads the programs of calls; may be called once.
    pub fn load_calls(&mut self) -> Result<LoadedCalls, Error> {
        if let Some(why) = self.no_calls.replace(Error::NoCalls) {
            return Err(why);
        }
        let mut object = self.ebpf.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut notes, mut verified) = (Vec::new(), Vec::new());
        let made = self.maps_for_links.take();
        let programs = load(&mut object, made, &mut notes, &mut verified)?;
        let shared = Arc::downgrade(&self.ebpf);
        let points = Points::loaded_by(Box::new(move |place| {
            let object = shared.upgrade().ok_or(Error::Ended)?;
            let mut object = object.lock().unwrap_or_else(PoisonError::into_inner);
            load_point(&mut object, place)
        }));
        let maps = CallMaps {
            points,
            programs,
            orders: take(&mut object, "CALL_ORDERS")?,
            tallies: take(&mut object, "CALL_TALLIES")?,
            numbers: take(&mut object, "CALL_NUMBERS")?,
            texts: take(&mut object, "CALL_TEXTS")?,
            generations: [0; PROBES_MAX],
        };
        Ok(LoadedCalls {
            maps,
            notes,
            verified,
        })
    }
}

/// Returns the maps that programs for links need later, from an object that was just loaded. `None`
/// if the kernel has no such links, or they do not count correctly.
pub(super) fn maps_for_links(object: &Ebpf) -> Option<MadeMaps> {
    kernel_is_at_least(MULTI_SINCE).then(|| MadeMaps::of(object))
}

/// Loads the programs: for links if there are maps for them, else for perf events.
fn load(
    object: &mut Ebpf,
    made: Option<MadeMaps>,
    notes: &mut Vec<String>,
    verified: &mut Vec<(&'static str, u32)>,
) -> Result<Programs, Error> {
    if let Some(made) = made {
        let bytes = BpfObject::usual().bytes;
        match multi::load(&bytes, &made, [call::BEGINS, call::ENDS]) {
            Ok([begins, ends]) => {
                for (name, program) in [(call::BEGINS, &begins), (call::ENDS, &ends)] {
                    verified.push((name, call::verified_instructions(program.as_fd())));
                }
                return Ok(Programs {
                    begins,
                    ends,
                    are_multi: true,
                });
            }
            Err(error) => notes.push(format!("probes cost more than need be: {error}")),
        }
    }
    let mut load_call = |name| {
        let loaded = load_call(object, name);
        verified.push((name, verified_instructions(object, name)));
        loaded
    };
    Ok(Programs {
        begins: load_call(call::BEGINS)?,
        ends: load_call(call::ENDS)?,
        are_multi: false,
    })
}

fn load_call(object: &mut Ebpf, name: &'static str) -> Result<OwnedFd, Error> {
    let program: &mut UProbe = program(object, name)?;
    load_program(name, || program.load())?;
    let fd = program
        .fd()
        .and_then(|fd| Ok(fd.as_fd().try_clone_to_owned()?));
    fd.map_err(refused(name))
}

/// Loads the program for the tracepoint at this place in the list.
fn load_point(object: &mut Ebpf, place: usize) -> Result<ProgramFd, Error> {
    let name = call::POINTS.get(place);
    let name = *name.ok_or(Error::Foreign("program for so many tracepoints"))?;
    let program: &mut RawTracePoint = program(object, name)?;
    load_program(name, || program.load())?;
    let fd = program.fd().and_then(|fd| Ok(fd.try_clone()?));
    fd.map_err(refused(name))
}
