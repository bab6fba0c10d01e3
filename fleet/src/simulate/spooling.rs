//! Writes windows of simulated hosts as those that an agent has in its spool.

use crate::window::{Frame, Function, Kind, Window};
use profile::formats::{FormatError, pft};
use profile::{
    Ending, Frame as StoreFrame, FrameKind, Host, Info, Limits, ModuleId, NameState, NewSample,
    NoName, ProcessDetails, ProcessId, Rates, SourceFrame, Store,
};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A frame with the same module and address as another one gets an address from here on, beyond
/// those of any file.
const ELSEWHERE: u64 = 1 << 40;

/// Writes a window to a file. Each service is one process.
pub fn write(window: &Window, path: &Path) -> Result<(), FormatError> {
    let store = store(window);
    let view = store.view();
    let mut file = io::BufWriter::new(std::fs::File::create(path)?);
    let mut writer = pft::Writer::new(&mut file)?;
    writer.append_last(&view, window.duration_ms * 1_000_000 - 1)?;
    writer.finish(&view)?;
    io::Write::flush(&mut file)?;
    Ok(())
}

fn store(window: &Window) -> Store {
    let mut store = Store::new(Limits::default());
    store.set_info(Info {
        rates: Rates::always(window.rate_hz),
        host: Host {
            name: window.host.name.clone(),
            kernel: window.host.kernel.clone(),
            arch: window.host.arch.clone(),
            cpus: window.host.cpus,
            ..Host::default()
        },
        scope: "system".into(),
        epoch_unix_ms: window.begin_ms,
        ..Info::default()
    });
    store.begin(0);
    let places = places(&mut store, &window.frames);
    for (at, service) in window.services.iter().enumerate() {
        let pid = at as u32 + 1;
        store.add_process(ProcessId(pid), pid, &service.name);
        let details = ProcessDetails {
            cgroup: Some(format!("/system.slice/{}.service", service.name).into()),
            ..ProcessDetails::default()
        };
        store.set_process_details(ProcessId(pid), details);
        for (stack, value) in &service.samples {
            let frames = window.stacks[*stack as usize].frames.iter();
            let frames: Vec<StoreFrame> = frames.filter_map(|it| places[*it as usize]).collect();
            let is_kernel = |it: &&StoreFrame| it.kind == FrameKind::Kernel;
            store.add_sample(NewSample {
                time_ns: 1,
                cpu: 0,
                process: ProcessId(pid),
                tid: pid,
                comm: &service.name,
                kernel_frames: frames.iter().take_while(is_kernel).count(),
                frames: &frames,
                ending: Ending::Root,
                weight: *value,
            });
        }
    }
    name(&mut store, &window.frames, &places);
    store.end(window.duration_ms * 1_000_000);
    store
}

/// Gives each frame a place that is its own; `None` for one that is only a note.
fn places(store: &mut Store, frames: &[Frame]) -> Vec<Option<StoreFrame>> {
    let mut modules: HashMap<(&str, &[u8]), ModuleId> = HashMap::new();
    let mut taken: HashSet<(ModuleId, u64)> = HashSet::new();
    let mut places = Vec::with_capacity(frames.len());
    for frame in frames {
        let kind = match frame.kind {
            Kind::Native => FrameKind::User,
            Kind::Kernel => FrameKind::Kernel,
            Kind::Jit => FrameKind::Jit,
            Kind::Python => FrameKind::Python,
            Kind::Note => {
                places.push(None);
                continue;
            }
        };
        let next = ModuleId(modules.len() as u32 + 1);
        let key = (&*frame.module, &*frame.build_id);
        let module = *modules.entry(key).or_insert(next);
        if module == next {
            store.add_module(module, &frame.module, &frame.path);
            if !frame.build_id.is_empty() {
                store.set_build_id(module, &frame.build_id);
            }
        }
        let mut address = frame.address;
        if !taken.insert((module, address)) {
            address = ELSEWHERE + taken.len() as u64;
            taken.insert((module, address));
        }
        places.push(Some(StoreFrame {
            module,
            address,
            kind,
        }));
    }
    places
}

fn name(store: &mut Store, frames: &[Frame], places: &[Option<StoreFrame>]) {
    for (frame, place) in frames.iter().zip(places) {
        let Some(id) = place.and_then(|it| store.find_frame(&it)) else {
            continue;
        };
        let Some(outermost) = frame.functions.last() else {
            store.set_name(id, NameState::Unnamed(NoName::NotTold));
            continue;
        };
        store.set_name(id, NameState::Named(Arc::clone(&outermost.name)));
        let links: Vec<SourceFrame> = frame.functions.iter().map(link).collect();
        if links.len() > 1 || !outermost.file.is_empty() {
            store.set_source(id, &links);
        }
    }
}

fn link(function: &Function) -> SourceFrame<'_> {
    SourceFrame {
        function: &function.name,
        file: &function.file,
        line: function.line,
    }
}
