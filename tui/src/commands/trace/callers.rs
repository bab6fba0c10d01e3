//! Where calls come from: stacks that were sampled, how often each was seen, and the names
//! of their frames.

use probe::{Batch, Event, Frame, ModuleId, ModuleKind};
use std::collections::HashMap;
use symbolize::{FileOffset, FileSource, Symbolizer, demangle, sanitize};

/// How many different stacks are kept.
const STACKS_MAX: usize = 20_000;

/// The stacks of calls, and the modules that their frames are in.
#[derive(Default)]
pub struct Callers {
    /// How often each stack was seen, by the number of its probe.
    stacks: HashMap<(u8, Vec<Frame>), u64>,
    /// What the frames' modules are, as batches told it.
    modules: HashMap<ModuleId, ModuleKind>,
    /// How many stacks were dropped because there was no room, by probe.
    lost: HashMap<u8, u64>,
}

/// A stack as names, innermost frame first, and how often it was sampled.
pub struct Caller {
    pub stack: Vec<String>,
    pub count: u64,
}

impl Callers {
    /// Adds the stacks of a batch. New ones are only counted when [`STACKS_MAX`] are kept.
    pub fn take(&mut self, batch: Batch) {
        let modules = batch.modules.into_iter();
        self.modules
            .extend(modules.map(|module| (module.id, module.kind)));
        for sample in batch.samples {
            let (Event::Call(probe) | Event::SlowCall(probe)) = sample.event else {
                continue;
            };
            if sample.frames.is_empty() {
                // Such a record only asks for the unwind tables of its process.
                continue;
            }
            let has_room = self.stacks.len() < STACKS_MAX;
            let key = (probe, sample.frames);
            match self.stacks.get_mut(&key) {
                Some(count) => *count += 1,
                None if has_room => _ = self.stacks.insert(key, 1),
                None => *self.lost.entry(probe).or_default() += 1,
            }
        }
    }

    /// Returns the most frequent stacks of a probe, at most `count`. Stacks of the same
    /// names are counted as one.
    pub fn of_probe(&self, probe: u8, symbolizer: &Symbolizer, count: usize) -> Vec<Caller> {
        let own = self.stacks.iter().filter(|((of, _), _)| *of == probe);
        let mut by_names: HashMap<Vec<String>, u64> = HashMap::new();
        let mut known = HashMap::new();
        for ((_, frames), calls) in own {
            let names = frames.iter().map(|frame| {
                let name = known.entry(*frame);
                name.or_insert_with(|| self.name(frame, symbolizer)).clone()
            });
            *by_names.entry(names.collect()).or_default() += calls;
        }
        let mut callers: Vec<_> = by_names
            .into_iter()
            .map(|(stack, count)| Caller { stack, count })
            .collect();
        callers.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.stack.cmp(&b.stack)));
        callers.truncate(count);
        callers
    }

    /// Returns the name of a frame, or where it is if it has none.
    fn name(&self, frame: &Frame, symbolizer: &Symbolizer) -> String {
        let Some(kind) = self.modules.get(&frame.module) else {
            return format!("{:#x}", frame.address);
        };
        match kind {
            ModuleKind::File {
                path,
                build_id,
                file,
                identity,
                root,
                ..
            } => {
                let source = FileSource {
                    build_id: build_id.as_deref(),
                    file: file.as_deref(),
                    identity: identity.as_ref(),
                    root: root.as_deref(),
                    ..FileSource::new(path)
                };
                let module = path.file_name().unwrap_or_default();
                let module = sanitize(module.as_encoded_bytes()).into_owned();
                let offset = FileOffset(frame.address);
                named(symbolizer, source, offset)
                    .unwrap_or_else(|| format!("{module}+{:#x}", frame.address))
            }
            ModuleKind::Vdso | ModuleKind::NarrowVdso { .. } => "[vdso]".into(),
            ModuleKind::Vsyscall => "[vsyscall]".into(),
            ModuleKind::Kernel => format!("[kernel]+{:#x}", frame.address),
            ModuleKind::Anonymous { .. } => format!("[anonymous]+{:#x}", frame.address),
            ModuleKind::Python { names, .. } => match names.get(frame.address) {
                Ok(name) => name.function.to_string(),
                Err(_) => "[python]".into(),
            },
            ModuleKind::Unmapped { .. } => format!("{:#x}", frame.address),
        }
    }
}

/// Returns the name at an offset in a file. A Go program's own tables come first, as they
/// know what was inlined; None if the file cannot be read or has no symbol there.
fn named(symbolizer: &Symbolizer, source: FileSource<'_>, offset: FileOffset) -> Option<String> {
    let symbols = symbolizer.open(source).ok()?;
    if let Some(go) = symbols.go() {
        let addr = symbols.segments().to_link(offset)?;
        if let Some(frame) = go.find(addr).last() {
            return Some(sanitize(&frame.short_name()).into_owned());
        }
    }
    let symbol = symbols.find(offset).ok()?;
    Some(demangle(symbol.name).short().into_owned())
}
