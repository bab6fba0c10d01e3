//! Source locations of frames, and which functions were inlined there.
//!
//! One machine address may stand for several functions: the one that contains the code, and those
//! that the compiler copied into it. They form a *chain*, innermost first. A chain takes twelve
//! bytes for each link and eight for each frame; file names are stored once.

use crate::pieces::{PIECE, Pieces};
use crate::{FrameId, FunctionId};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

/// The longest chain that is kept: real ones are much shorter. Of a longer one the links between
/// the innermost ones and the function that contains the code are left out.
pub(crate) const CHAIN_MAX: usize = 64;

const _: () = assert!(CHAIN_MAX <= PIECE);

/// Number of dead links below which compacting is not worthwhile.
const DEAD_LINKS_MIN: usize = 4096;

/// Memory of a file's name in addition to its text.
const BYTES_PER_FILE: usize = 64;

/// One function of the chain of a frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Link {
    /// The function; in the last link the frame itself, whose owner is the function.
    pub(crate) function: FunctionId,
    file: u32,
    /// The line; 0 if unknown.
    pub(crate) line: u32,
}

/// The number of the empty file name, which means unknown.
const NO_FILE: u32 = 0;

/// The position of a frame's chain.
#[derive(Debug, Clone, Copy, Default)]
struct ChainRange {
    start: u32,
    len: u32,
}

/// The part that only the store has. Chains lie one after the other in `links`, each in one piece;
/// those of removed frames stay there until half of the links are dead.
#[derive(Debug)]
pub(crate) struct Sources {
    table: SourceTable,
    /// Number of links of removed frames, and of those that were left out at the end of a piece.
    dead_links: usize,
    by_file: HashMap<Arc<str>, u32>,
    /// Bytes of all file names.
    letters: usize,
}

/// The part that is shared with views.
#[derive(Debug, Clone)]
pub(crate) struct SourceTable {
    /// Position of each frame's chain; frames beyond its end have no chain.
    places: Pieces<ChainRange>,
    links: Pieces<Link>,
    files: Pieces<Arc<str>>,
}

impl SourceTable {
    /// A table in which no frame has a source location.
    pub(crate) fn empty() -> Self {
        Self {
            places: Pieces::default(),
            links: Pieces::default(),
            files: std::iter::once(Arc::default()).collect(),
        }
    }

    /// Returns the chain of a frame, innermost first; empty if none was set.
    #[inline]
    pub(crate) fn chain(&self, frame: FrameId) -> &[Link] {
        let place = self.places.value(frame.0 as usize);
        if place.len == 0 {
            return &[];
        }
        self.links.run(place.start as usize, place.len as usize)
    }

    /// Returns the file of a link; `None` if unknown.
    pub(crate) fn file(&self, link: Link) -> Option<&Arc<str>> {
        (link.file != NO_FILE).then(|| &self.files[link.file as usize])
    }

    /// Returns the locations with all file names replaced.
    pub(crate) fn moved(&self, file: impl FnMut(&Arc<str>) -> Arc<str>) -> Self {
        Self {
            files: self.files.iter().map(file).collect(),
            ..self.clone()
        }
    }

    /// The functions that are inlined in a frame, innermost first.
    #[inline]
    pub(crate) fn inlined_in(&self, frame: FrameId) -> &[Link] {
        match self.chain(frame) {
            [inlined @ .., _own] => inlined,
            [] => &[],
        }
    }
}

impl Deref for Sources {
    type Target = SourceTable;

    fn deref(&self) -> &SourceTable {
        &self.table
    }
}

impl Sources {
    pub(crate) fn new() -> Self {
        Self {
            table: SourceTable::empty(),
            dead_links: 0,
            by_file: HashMap::new(),
            letters: 0,
        }
    }

    pub(crate) fn table(&self) -> &SourceTable {
        &self.table
    }

    /// Sets the chain of a frame that has none: function, file and line of each link.
    pub(crate) fn set<'a>(
        &mut self,
        frame: FrameId,
        chain: impl ExactSizeIterator<Item = (FunctionId, &'a str, u32)>,
    ) {
        let at = frame.0 as usize;
        let left = PIECE - self.links.len() % PIECE;
        if chain.len() > left {
            self.dead_links += left;
            self.table.links.resize(self.links.len() + left);
        }
        let Ok(start) = u32::try_from(self.links.len()) else {
            return;
        };
        if self.places.len() <= at {
            self.table.places.resize(at + 1);
        }
        for (function, file, line) in chain {
            let file = self.intern_file(file);
            self.table.links.push(Link {
                function,
                file,
                line,
            });
        }
        let len = self.links.len() as u32 - start;
        *self.table.places.write(at) = ChainRange { start, len };
    }

    /// Removes the chain of a frame that was released.
    pub(crate) fn forget(&mut self, frame: FrameId) {
        let at = frame.0 as usize;
        if self.places.get(at).is_some_and(|place| place.len > 0) {
            let place = self.table.places.write(at);
            self.dead_links += place.len as usize;
            *place = ChainRange::default();
        }
    }

    /// Removes the chains of released frames, and the file names that only these used.
    pub(crate) fn compact(&mut self) {
        if self.dead_links < DEAD_LINKS_MIN || self.dead_links * 2 < self.links.len() {
            return;
        }
        let before = std::mem::replace(self, Self::new());
        self.table.places.resize(before.places.len());
        for (frame, place) in (0..).map(FrameId).zip(before.places.iter()) {
            if place.len > 0 {
                let chain = before.chain(frame).iter();
                let told = chain.map(|l| (l.function, &*before.files[l.file as usize], l.line));
                self.set(frame, told);
            }
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.places.memory_bytes()
            + self.links.memory_bytes()
            + self.files.len() * BYTES_PER_FILE
            + self.letters
    }

    /// Returns the number of a file, which is added if it is new.
    fn intern_file(&mut self, file: &str) -> u32 {
        if file.is_empty() {
            return NO_FILE;
        }
        if let Some(known) = self.by_file.get(file) {
            return *known;
        }
        let number = self.files.len() as u32;
        let name: Arc<str> = file.into();
        self.letters += file.len();
        self.table.files.push(Arc::clone(&name));
        self.by_file.insert(name, number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgotten_chains_leave_with_their_files() {
        let mut sources = Sources::new();
        for n in 0..10_000 {
            let file = format!("file{}.c", n / 10);
            let chain = [(FrameId(n), &*file, n), (FrameId(n), "main.c", 1)];
            sources.set(FrameId(n), chain.into_iter());
        }
        let before = sources.memory_bytes();
        (0..9_990).for_each(|n| sources.forget(FrameId(n)));
        sources.compact();
        assert!(sources.memory_bytes() < before / 2);
        assert!(sources.chain(FrameId(5)).is_empty());
        assert!(sources.chain(FrameId(20_000)).is_empty());
        let chain = sources.chain(FrameId(9_995));
        assert_eq!(chain.iter().map(|l| l.line).collect::<Vec<_>>(), [9_995, 1]);
        assert_eq!(sources.file(chain[0]).map(|f| &**f), Some("file999.c"));
        assert_eq!(sources.files.len(), 3);
    }
}
