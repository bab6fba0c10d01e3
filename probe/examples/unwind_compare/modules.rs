//! The files that the other unwinder needs, and their sections.

use framehop::{ExplicitModuleSectionInfo, MayAllocateDuringUnwind, Module};
use framehop::{Unwinder as _, UnwinderNative};
use object::{Object as _, ObjectSection as _, ObjectSegment as _};
use probe::tables::MappedRange;
use probe::{ModuleId, ModuleKind};
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of a section, shared by all processes.
pub type Code = Arc<[u8]>;

/// The files by module. Each is read when it is first needed, as there is no time during sampling.
#[derive(Default)]
pub struct Modules(HashMap<ModuleId, Met>);

struct Met {
    /// Kept open, because the path may lead to another file by now.
    file: Arc<OwnedFd>,
    path: PathBuf,
    known: OnceCell<Option<Known>>,
}

struct Known {
    path: PathBuf,
    /// Offset in the file and link address of each loadable segment.
    segments: Vec<(u64, u64)>,
    sections: HashMap<&'static str, (Range<u64>, Code)>,
}

/// The unwinder of framehop for this machine.
pub type Framehop = UnwinderNative<Code, MayAllocateDuringUnwind>;

impl Modules {
    pub fn add(&mut self, module: &probe::Module) {
        if let ModuleKind::File {
            file: Some(file),
            path,
            ..
        } = &module.kind
        {
            let met = Met {
                file: file.clone(),
                path: path.clone(),
                known: OnceCell::new(),
            };
            self.0.insert(module.id, met);
        }
    }

    pub fn unwinder_for(&self, mappings: &[MappedRange]) -> Framehop {
        let mut unwinder = Framehop::new();
        for mapping in mappings {
            if let Some(module) = self.known(mapping).and_then(|known| module(known, mapping)) {
                unwinder.add_module(module);
            }
        }
        unwinder
    }

    /// Returns each mapped file once, with the difference between its addresses in memory and in
    /// the file.
    pub fn files(&self, mappings: &[MappedRange]) -> BTreeSet<(&Path, u64)> {
        let mapped = mappings.iter().filter_map(|mapping| {
            let known = self.known(mapping)?;
            Some((known.path.as_path(), known.base(mapping)?))
        });
        mapped.collect()
    }

    /// Formats a place like `libc.so.6+0x1234`, with the address in the file.
    pub fn place(&self, mappings: &[MappedRange], address: u64) -> String {
        let inside = |mapping: &&MappedRange| (mapping.start..mapping.end).contains(&address);
        let Some(mapping) = mappings.iter().find(inside) else {
            return format!("{address:#x} (nothing mapped)");
        };
        match self.known(mapping) {
            Some(known) => {
                let base = known.base(mapping).unwrap_or(mapping.start);
                let name = known.path.file_name().unwrap_or_default().to_string_lossy();
                format!("{name}+{:#x}", address.wrapping_sub(base))
            }
            None => format!("{address:#x} (no file)"),
        }
    }

    fn known(&self, mapping: &MappedRange) -> Option<&Known> {
        let met = self.0.get(&mapping.file?)?;
        met.known.get_or_init(|| read(met)).as_ref()
    }
}

impl Known {
    /// Returns the difference between addresses in this mapping and in the file.
    fn base(&self, mapping: &MappedRange) -> Option<u64> {
        let segments = self.segments.iter();
        let (offset, address) = segments
            .filter(|(offset, _)| *offset & !0xfff <= mapping.file_offset)
            .max_by_key(|(offset, _)| *offset)?;
        let start = address.wrapping_add(mapping.file_offset.wrapping_sub(*offset));
        Some(mapping.start.wrapping_sub(start))
    }
}

fn read(met: &Met) -> Option<Known> {
    let here = format!("/proc/self/fd/{}", met.file.as_raw_fd());
    let bytes = std::fs::read(here).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let mut sections = HashMap::new();
    for name in [
        ".text",
        ".got",
        ".eh_frame",
        ".eh_frame_hdr",
        ".debug_frame",
    ] {
        if let Some(section) = file.section_by_name(name) {
            let range = section.address()..section.address() + section.size();
            // Go compresses its `.debug_frame`, which framehop cannot use in any case.
            if let Ok(data) = section.uncompressed_data() {
                sections.insert(name, (range, Code::from(data.as_ref())));
            }
        }
    }
    let segments = file.segments();
    Some(Known {
        path: met.path.clone(),
        segments: segments
            .map(|segment| (segment.file_range().0, segment.address()))
            .collect(),
        sections,
    })
}

fn module(known: &Known, mapping: &MappedRange) -> Option<Module<Code>> {
    let base = known.base(mapping)?;
    let range = |name| known.sections.get(name).map(|(range, _)| range.clone());
    let data = |name| known.sections.get(name).map(|(_, data)| data.clone());
    let info = ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: range(".text"),
        text: data(".text"),
        got_svma: range(".got"),
        eh_frame_svma: range(".eh_frame"),
        eh_frame: data(".eh_frame"),
        eh_frame_hdr_svma: range(".eh_frame_hdr"),
        eh_frame_hdr: data(".eh_frame_hdr"),
        debug_frame: data(".debug_frame"),
        ..ExplicitModuleSectionInfo::default()
    };
    let name = known.path.to_string_lossy().into_owned();
    Some(Module::new(name, mapping.start..mapping.end, base, info))
}
