//! The callers of functions: sampled stacks, and the names of their frames.

use super::watch::Watch;
use probe::{Batch, Event, Frame, ModuleId, ModuleKind};
use std::collections::HashMap;
use std::sync::Arc;
use symbolize::{FileOffset, FileSource, Symbolizer, demangle, sanitize};

/// The modules of frames, as batches describe them.
#[derive(Default)]
pub struct Callers {
    modules: HashMap<ModuleId, ModuleKind>,
}

impl Callers {
    /// Adds the stacks of a batch to their probes.
    pub fn take(&mut self, batch: Batch, watch: &mut Watch<'_>) {
        let modules = batch.modules.into_iter();
        self.modules
            .extend(modules.map(|module| (module.id, module.kind)));
        for sample in &batch.samples {
            let (probe, is_slow) = match sample.event {
                Event::Call(probe) => (probe, false),
                Event::SlowCall(probe) => (probe, true),
                _ => continue,
            };
            if sample.frames.is_empty() {
                // A record without frames only requests the unwind tables of its process.
                continue;
            }
            let file = |module: u32| self.file_of(ModuleId(module));
            let kernel_address = |frame: &Frame| {
                let is_kernel = matches!(self.modules.get(&frame.module), Some(ModuleKind::Kernel));
                is_kernel.then_some(frame.address)
            };
            watch.take_stack(probe, is_slow, sample, file, kernel_address);
        }
    }

    /// Returns the short name of a module.
    fn file_of(&self, module: ModuleId) -> Arc<str> {
        match self.modules.get(&module) {
            Some(ModuleKind::File { path, .. }) => {
                let name = path.file_name().unwrap_or_default();
                sanitize(name.as_encoded_bytes()).into_owned().into()
            }
            Some(ModuleKind::Vdso | ModuleKind::NarrowVdso { .. }) => "[vdso]".into(),
            Some(ModuleKind::Vsyscall) => "[vsyscall]".into(),
            Some(ModuleKind::Kernel) => "[kernel]".into(),
            Some(ModuleKind::Anonymous { .. }) => "[anonymous]".into(),
            Some(ModuleKind::Python { .. }) => "[python]".into(),
            Some(ModuleKind::Unmapped { .. }) | None => "[unmapped]".into(),
        }
    }

    /// Returns the name of a frame. None if it has none.
    pub fn name(&self, frame: Frame, symbolizer: &Symbolizer) -> Option<String> {
        match self.modules.get(&frame.module)? {
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
                named(symbolizer, source, FileOffset(frame.address))
            }
            ModuleKind::Kernel => {
                let frame = symbolizer.kernel(&[frame.address]).pop()?.ok()?;
                Some(sanitize(&frame.name).into_owned())
            }
            ModuleKind::Python { names, .. } => {
                let name = names.get(frame.address).ok()?;
                Some(name.function.to_string())
            }
            _ => None,
        }
    }
}

/// Returns the name at an offset in a file. A Go program's own tables come first, because they have
/// inlined functions. None if the file cannot be read or has no symbol there.
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
