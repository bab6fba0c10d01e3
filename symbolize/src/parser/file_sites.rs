//! The functions of a file that may be probed, on the asking side.

use std::sync::{Arc, OnceLock};

use super::opened::OpenedFile;
use super::searched_file::SearchedFile;
use super::sites_answer::{self as answer, Functions, LineFunctions, MarkerSites, SitesFacts};
use super::sites_order::{self, FUNCTIONS_MAX, SitesOrder, SitesQuestion};
use crate::debug_file::DebugFiles;
use crate::elf::Needed;
use crate::files::Work;
use crate::sites::spelling::Meant;
use crate::sites::{Fit, Function, Inlined, Marker, Placed, Refusal, Wish};
use crate::{FileOffset, Files, LinkAddr, Reason, Segments};

/// The functions of one file. If there are parser processes, one of them reads the file.
#[derive(Debug)]
pub struct FileSites {
    opened: Arc<OpenedFile>,
    /// Where its debug files may be.
    places: DebugFiles,
    /// Sends the questions to a parser process.
    way: Files,
    /// Answers the questions if there are no parser processes.
    here: Option<SearchedFile>,
    facts: SitesFacts,
    has_exceptions: OnceLock<bool>,
}

impl FileSites {
    /// Has the file read. An error if it is no program or library, or cannot be read.
    pub(crate) fn open(
        opened: Arc<OpenedFile>,
        places: DebugFiles,
        way: &Files,
    ) -> Result<FileSites, Reason> {
        let here = if way.has_parsers() {
            None
        } else {
            let file = opened.file().try_clone().map_err(|_| Reason::FileGone)?;
            Some(SearchedFile::new(file))
        };
        let mut file = FileSites {
            opened,
            places,
            way: way.clone(),
            here,
            facts: SitesFacts {
                build_id: Vec::new(),
                segments: Segments::default(),
                class: crate::object::Class::Wide,
                machine: 0,
            },
            has_exceptions: OnceLock::new(),
        };
        file.facts = file.told(&SitesQuestion::Facts, answer::read_facts)?;
        Ok(file)
    }

    /// What its headers tell.
    pub fn facts(&self) -> &SitesFacts {
        &self.facts
    }

    /// Whether exceptions may pass through its code; true if that cannot be found out.
    pub fn has_exceptions(&self) -> bool {
        let ask = || self.ask(&SitesQuestion::HasExceptions);
        *self
            .has_exceptions
            .get_or_init(|| ask().map_or(true, |bytes| bytes != [0]))
    }

    /// What it specifies for the dynamic loader.
    pub fn needed(&self) -> Result<Needed, Reason> {
        self.told(&SitesQuestion::Needed, answer::read_needed)
    }

    /// The functions that match a name best, and how well; `None` if none matches.
    pub fn named(&self, name: &str) -> Result<Option<(Fit, Functions)>, Reason> {
        self.told(&SitesQuestion::Named(name.into()), answer::read_fitting)
    }

    /// The functions whose names match a regular expression.
    pub fn matching(&self, pattern: &str) -> Result<Functions, Reason> {
        self.told(
            &SitesQuestion::Matching(pattern.into()),
            answer::read_functions,
        )
    }

    /// The function at an offset of the file.
    pub fn at(&self, offset: FileOffset) -> Result<Result<Function, Refusal>, Reason> {
        self.told(&SitesQuestion::At(offset), answer::read_at)
    }

    /// Where a line of a source file begins.
    pub fn of_line(&self, file: &str, line: u32) -> Result<LineFunctions, Reason> {
        self.told(&SitesQuestion::Line(file.into(), line), answer::read_line)
    }

    /// Into which functions the one with this name was inlined; `None` if it was into none.
    pub fn inlined(&self, name: &str) -> Result<Option<Inlined>, Reason> {
        self.told(&SitesQuestion::Inlined(name.into()), answer::read_inlined)
    }

    /// The sites of these functions, in their order.
    pub fn place(
        &self,
        functions: &[(Function, Wish)],
    ) -> Result<Vec<Result<Placed, Refusal>>, Reason> {
        let mut all = Vec::with_capacity(functions.len());
        while all.len() < functions.len() {
            let left = &functions[all.len()..];
            let asked = &left[..left.len().min(FUNCTIONS_MAX)];
            let question = SitesQuestion::Place(asked.to_vec());
            let placed = self.told(&question, |bytes| {
                let asked = asked.iter().map(|(function, _)| function);
                answer::read_placed(bytes, asked, &self.facts.segments)
            })?;
            // If there are many ends, the answer may lack the last ones.
            if placed.is_empty() {
                return Err(Reason::Refused);
            }
            all.extend(placed);
        }
        Ok(all)
    }

    /// All places that programmers marked; none if they cannot be read.
    pub fn markers(&self) -> Vec<Marker> {
        self.told(&SitesQuestion::Markers, answer::read_markers)
            .unwrap_or_default()
    }

    /// The language of the function at each of these markers, and its site.
    pub fn place_markers(&self, addrs: &[LinkAddr]) -> Result<MarkerSites, Reason> {
        let question = SitesQuestion::PlaceMarkers(addrs.to_vec());
        self.told(&question, |bytes| {
            answer::read_marker_sites(bytes, addrs, &self.facts.segments)
        })
    }

    /// The names of functions that contain a part, those that suit best; none if they cannot be
    /// read.
    pub fn names_containing(&self, part: &str) -> Vec<String> {
        self.told(&SitesQuestion::Containing(part.into()), answer::read_names)
            .unwrap_or_default()
    }

    /// The names of functions that may be meant by a word; none if they cannot be read.
    pub fn meant(&self, word: &str) -> Meant {
        self.told(&SitesQuestion::Meant(word.into()), answer::read_meant)
            .unwrap_or_default()
    }

    pub(super) fn ask(&self, question: &SitesQuestion) -> Result<Vec<u8>, Reason> {
        let (message, files) = sites_order::write(self.opened.file(), &self.places, question);
        let Some(here) = &self.here else {
            let reply = self
                .opened
                .order(&self.way, Work::Sites, &files, &message)?;
            return Ok(reply.bytes);
        };
        let files = files.iter().map(|file| file.try_clone_to_owned());
        let files = files
            .collect::<Result<_, _>>()
            .map_err(|_| Reason::FileGone)?;
        let order = SitesOrder::read(&message, files, &self.way).ok_or(Reason::Refused)?;
        here.answer(&order.question, order.places)
    }

    fn told<T>(
        &self,
        question: &SitesQuestion,
        read: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<T, Reason> {
        read(&self.ask(question)?).ok_or(Reason::Refused)
    }

    /// Bytes of heap in use in this process.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.here.as_ref().map_or(0, SearchedFile::heap_bytes)
    }
}
