//! Finds names, lines and inlined functions for frames without names.

use super::kernel::RunningKernel;
use super::{Found, Places};
use engine::alike::no_name;
use engine::shown;
use profile::formats::perf_data;
use profile::{FrameId, FrameKind, ModuleId, NameState, NoName, SourceFrame, Store, few};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use symbolize::resolver::Resolved;
use symbolize::{FileOffset, Resolver, sanitize};

/// Names the frames without names, one module after the other, so that one file is open at a time.
pub fn name_frames(store: &mut Store, places: &Places) -> Found {
    let mut modules: BTreeMap<ModuleId, Vec<FrameId>> = BTreeMap::new();
    for id in store.frames_without_name() {
        if let Some(frame) = store.frame(id) {
            modules.entry(frame.module).or_default().push(id);
        }
    }
    let mut found = Found::default();
    for (module, frames) in modules {
        name_module(store, module, &frames, places, &mut found);
    }
    few::sort_by_key(&mut found.missing, |(path, frames)| {
        (Reverse(*frames), path.clone())
    });
    found
}

/// Names the frames of one module, and adds the result to `found`. A file is used only if it has
/// the recorded build-id. If none was recorded, the file at the path is used and counted as
/// unverified. The names of the kernel come from the running kernel, under the same conditions.
fn name_module(
    store: &mut Store,
    module: ModuleId,
    frames: &[FrameId],
    places: &Places,
    found: &mut Found,
) {
    let (path, build_id) = store.module(module);
    found.frames += frames.len() as u64;
    if &*path == perf_data::KERNEL {
        if let Some(kernel) = RunningKernel::of(&build_id, places.kernel()) {
            found.unverified += u64::from(build_id.is_empty());
            found.named += name_kernel(store, frames, &kernel);
            return;
        }
    } else if path.starts_with('/') {
        let file = places.open(&path, &build_id);
        if let Some(file) = file {
            found.unverified += u64::from(build_id.is_empty());
            found.named += name_file(store, frames, &file);
            return;
        }
        found.missing.push((path.to_string(), frames.len() as u64));
    }
    // `run` restores the recorded reason of frames that have one.
    for id in frames {
        store.set_name(*id, NameState::Unnamed(NoName::FileGone));
    }
}

/// Names frames of the kernel by the symbols of the running kernel. Returns how many have a name
/// now.
fn name_kernel(store: &mut Store, frames: &[FrameId], kernel: &RunningKernel) -> u64 {
    let mut named = 0;
    for id in frames {
        let place = store.frame(*id).map(|frame| frame.address);
        let state = match place.and_then(|place| kernel.name(place)) {
            Some(name) => NameState::Named(name.into()),
            None => NameState::Unnamed(NoName::NotCovered),
        };
        named += u64::from(matches!(state, NameState::Named(_)));
        store.set_name(*id, state);
    }
    named
}

/// Names frames in a file, with lines and inlined functions if there is debug information. Returns
/// how many have a name now. Frames of other kinds than [`FrameKind::User`] stay unchanged: their
/// addresses are not offsets in this file.
fn name_file(store: &mut Store, frames: &[FrameId], file: &Resolver) -> u64 {
    let mut named = 0;
    for id in frames {
        let Some(frame) = store.frame(*id) else {
            continue;
        };
        if frame.kind != FrameKind::User {
            continue;
        }
        let place = file.segments().to_link(FileOffset(frame.address));
        let Some(resolved) = place.map(|place| file.resolve(place)) else {
            store.set_name(*id, NameState::Unnamed(NoName::NotCovered));
            continue;
        };
        match &resolved.symbol {
            Ok(symbol) => {
                named += 1;
                store.set_name(*id, NameState::Named(shown(symbol).into()));
                set_source(store, *id, &resolved);
            }
            Err(reason) => store.set_name(*id, NameState::Unnamed(no_name(*reason))),
        }
    }
    named
}

/// Stores the chain of inlined functions at a frame, in the order of the resolver. Debug
/// information may contain any bytes, so its strings are made safe to print.
fn set_source(store: &mut Store, id: FrameId, resolved: &Resolved) {
    let links: Vec<(String, String, u32)> = resolved
        .frames
        .iter()
        .map(|frame| {
            let file = sanitize(&frame.path).into_owned();
            (shown(&frame.function), file, frame.line)
        })
        .collect();
    let chain: Vec<SourceFrame<'_>> = links
        .iter()
        .map(|(function, file, line)| SourceFrame {
            function,
            file,
            line: *line,
        })
        .collect();
    store.set_source(id, &chain);
}
