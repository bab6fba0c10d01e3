//! blazesym, and SymCache of symbolic.

use std::path::Path;

use blazesym::symbolize::source::{Elf, Source};
use blazesym::symbolize::{Input, Symbolized, Symbolizer};
use symbolic_common::ByteView;
use symbolic_debuginfo::Object;
use symbolic_symcache::SymCacheConverter;

use crate::answer::{Answer, Module};

pub struct Blazesym {
    symbolizer: Symbolizer,
    source: Source<'static>,
}

impl Blazesym {
    pub fn new(file: &Path) -> Blazesym {
        // Ours demangles when a name is shown; so as to compare the same.
        let symbolizer = Symbolizer::builder()
            .enable_code_info(true)
            .enable_inlined_fns(true)
            .build();
        Blazesym {
            symbolizer,
            source: Source::Elf(Elf::new(file)),
        }
    }
}

impl Module for Blazesym {
    fn answer(&self, addr: u64) -> Answer {
        let mut answer = Answer::default();
        let input = Input::VirtOffset(addr);
        let found = self.symbolizer.symbolize_single(&self.source, input);
        if let Ok(Symbolized::Sym(symbol)) = found {
            let places = symbol.inlined.iter().map(|f| (&f.name, f.code_info.as_ref()));
            let own = (&symbol.name, symbol.code_info.as_deref());
            for (name, place) in std::iter::once(own).chain(places) {
                let path = place.map_or(0, |place| {
                    place.dir.as_ref().map_or(0, |dir| dir.as_os_str().len()) + place.file.len()
                });
                let line = place.and_then(|place| place.line).unwrap_or(0);
                answer.add(name.len(), path, line);
            }
        }
        answer
    }
}

/// What the converter makes of a file.
pub fn symcache(file: &Path) -> Vec<u8> {
    let bytes = ByteView::open(file).unwrap();
    let object = Object::parse(&bytes).unwrap();
    let mut converter = SymCacheConverter::new();
    converter.process_object(&object).unwrap();
    let mut out = Vec::new();
    converter.serialize(&mut out).unwrap();
    out
}

pub struct SymCache {
    bytes: ByteView<'static>,
}

impl SymCache {
    pub fn open(table: &Path) -> SymCache {
        let bytes = ByteView::open(table).unwrap();
        SymCache { bytes }
    }
}

impl Module for SymCache {
    fn answer(&self, addr: u64) -> Answer {
        // Reading the header again is a check of some words.
        let cache = symbolic_symcache::SymCache::parse(&self.bytes).unwrap();
        let mut answer = Answer::default();
        for location in cache.lookup(addr) {
            let path = location.file().map_or(0, |file| file.full_path().len());
            answer.add(location.function().name().len(), path, location.line());
        }
        answer
    }
}
