//! The names of frames, and the functions that they form.
//!
//! A *function* is every frame of one module with the same name. A frame without a name is a
//! function of its own, or belongs to the function of all frames with the same start, if the start
//! is known. A function is identified by its *owner*, the first frame that had the name. The owner
//! of a frame only ever changes from "itself" to "the first frame of that name", once, and once
//! more for frames that were grouped by their start when that gets a name. So the function of a
//! frame is always found by one look-up in the table of owners.

use super::texts::Texts;
use crate::intern::RESERVED;
use crate::pieces::Pieces;
use crate::shards::Shards;
use crate::{FrameId, FunctionId, ModuleId, NameState, NoName};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

/// The state of a frame's name, in a byte. It is the only part that each query needs for each frame
/// of each stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tag(u8);

impl Tag {
    /// The name was not requested yet.
    const NEW: Tag = Tag(0);
    /// The name was requested; there is no answer yet.
    const ASKED: Tag = Tag(1);
    pub(crate) const NAMED: Tag = Tag(2);
    /// The frame was released: it has no name, and answers are ignored.
    const RELEASED: Tag = Tag(3);
    /// Tags from here on are reasons for having no name.
    const REASONS: u8 = 4;
    /// Number of values that a tag can have.
    pub(crate) const COUNT: usize = 256;

    pub(crate) fn index(self) -> usize {
        self.0.into()
    }

    pub(crate) fn is_new(self) -> bool {
        self == Tag::NEW
    }

    pub(crate) fn is_asked(self) -> bool {
        self == Tag::ASKED
    }

    pub(crate) fn is_released(self) -> bool {
        self == Tag::RELEASED
    }

    pub(crate) fn is_pending(self) -> bool {
        self == Tag::NEW || self == Tag::ASKED
    }

    /// The tag of frames without a name for that reason.
    pub(crate) const fn unnamed(reason: NoName) -> Self {
        Tag(Tag::REASONS + reason as u8)
    }

    /// The reason that the tag stands for; `None` if it is another tag.
    pub(crate) fn reason(self) -> Option<NoName> {
        let at = self.0.checked_sub(Tag::REASONS)?;
        NoName::ALL.get(usize::from(at)).copied()
    }
}

const _: () = assert!(Tag::REASONS as usize + NoName::ALL.len() <= Tag::COUNT);

/// Memory of a function's name in addition to its text: its entries in two maps.
const BYTES_PER_NAME: usize = 80;

/// The name of the function for all code of a process that was made at run time and is in no map.
pub(crate) const UNMAPPED_CODE: &str = "[JIT, no map]";

/// The part that only the store has: functions by their names, to find the owner.
#[derive(Debug)]
pub(crate) struct Names {
    table: NameTable,
    by_name: HashMap<(ModuleId, Arc<str>), FunctionId>,
    /// The text of each name, once: many programs have the same functions, and a program that is
    /// built again has all of its own.
    texts: Texts,
}

/// The part that is shared with views and reports.
#[derive(Debug, Clone, Default)]
pub(crate) struct NameTable {
    /// Tags by frame; as long as `owners`.
    tags: Pieces<Tag>,
    /// Function of each frame; the frame itself if it is the owner.
    owners: Pieces<FunctionId>,
    /// Names by owner. A function that is grouped by its start has a name made of that here, and
    /// the tags of its frames say so.
    names: Shards<FunctionId, Arc<str>>,
}

impl NameTable {
    /// Returns the tag of a frame; that of an unknown frame means that its name was not requested.
    #[inline]
    pub(crate) fn tag(&self, frame: FrameId) -> Tag {
        let tag = self.tags.get(frame.0 as usize);
        tag.copied().unwrap_or(Tag::NEW)
    }

    /// Tags by frame.
    pub(crate) fn tags(&self) -> &Pieces<Tag> {
        &self.tags
    }

    /// The function of each frame, by frame.
    pub(crate) fn owners(&self) -> &Pieces<FunctionId> {
        &self.owners
    }

    /// Returns the name of a function, if it has one.
    pub(crate) fn name(&self, function: FunctionId) -> Option<&Arc<str>> {
        self.names.get(function)
    }

    /// Returns what is known about a frame's name. The name of a frame that was released, or
    /// requested and not answered, is pending.
    pub(crate) fn state(&self, frame: FrameId) -> NameState {
        let Some(tag) = self.tags.get(frame.0 as usize) else {
            return NameState::Pending;
        };
        if let Some(reason) = tag.reason() {
            return NameState::Unnamed(reason);
        }
        match self.name(self.owners[frame.0 as usize]) {
            Some(name) if *tag == Tag::NAMED => NameState::Named(Arc::clone(name)),
            _ => NameState::Pending,
        }
    }

    /// The functions of all frames that are not owners.
    pub(crate) fn members(&self) -> impl Iterator<Item = FunctionId> {
        let frames = (0..).zip(self.owners.iter()).zip(self.tags.iter());
        frames
            .filter(|((frame, owner), tag)| *frame != owner.0 && !tag.is_released())
            .map(|((_, owner), _)| *owner)
    }

    /// Returns the functions without names: each is named after one of its addresses, and its
    /// frames have no name for that one reason. What is not a place in a program keeps its name.
    pub(crate) fn without_names(
        &self,
        reason: NoName,
        place: impl Fn(FunctionId) -> Option<Arc<str>>,
    ) -> Self {
        let is_place = |function: FunctionId| function.0 >= RESERVED;
        let named = self.names.iter().filter_map(|(function, name)| {
            let name = if is_place(function) {
                place(function)?
            } else {
                Arc::clone(name)
            };
            Some((function, name))
        });
        let tag = |(frame, tag): (u32, &Tag)| {
            if frame < RESERVED {
                *tag
            } else {
                Tag::unnamed(reason)
            }
        };
        Self {
            tags: (0..).zip(self.tags.iter()).map(tag).collect(),
            owners: self.owners.clone(),
            names: named.collect(),
        }
    }
}

impl Deref for Names {
    type Target = NameTable;

    fn deref(&self) -> &NameTable {
        &self.table
    }
}

impl Names {
    pub(crate) fn new() -> Self {
        Self {
            table: NameTable::default(),
            by_name: HashMap::new(),
            texts: Texts::default(),
        }
    }

    /// Adds an entry for a frame, or resets the entry of one that was released.
    pub(crate) fn add(&mut self, frame: FrameId) {
        let at = frame.0 as usize;
        let NameTable { tags, owners, .. } = &mut self.table;
        while owners.len() <= at {
            owners.push(FrameId(owners.len() as u32));
            tags.push(Tag::NEW);
        }
        *owners.write(at) = frame;
        *tags.write(at) = Tag::NEW;
    }

    /// Records that the frame's name was requested: the frame is not released meanwhile.
    pub(crate) fn set_asked(&mut self, frame: FrameId) {
        self.set_tag(frame, Tag::ASKED);
    }

    /// Undoes [`Names::set_asked`]: the name is not being looked up any more.
    pub(crate) fn set_unasked(&mut self, frame: FrameId) {
        self.set_tag(frame, Tag::NEW);
    }

    /// Sets why a frame has no name; the frame is a function of its own then.
    pub(crate) fn set_unnamed(&mut self, frame: FrameId, reason: NoName) {
        self.set_tag(frame, Tag::unnamed(reason));
    }

    /// Names a frame, which becomes part of the function of that name in its module.
    pub(crate) fn set_named(&mut self, frame: FrameId, module: ModuleId, name: Arc<str>) {
        if name.is_empty() {
            // An empty name could not be told from a missing entry in the table.
            return self.set_unnamed(frame, NoName::EmptyName);
        }
        self.set_tag(frame, Tag::NAMED);
        self.join(frame, module, name);
    }

    /// Sets why a frame has no name, and makes it part of the function with that start.
    pub(crate) fn set_unnamed_in(
        &mut self,
        frame: FrameId,
        module: ModuleId,
        reason: NoName,
        place: Arc<str>,
    ) {
        self.set_unnamed(frame, reason);
        self.join(frame, module, place);
    }

    /// Sets why a frame has no name, and counts it in the function `of`.
    pub(crate) fn set_unnamed_of(&mut self, frame: FrameId, reason: NoName, of: FunctionId) {
        self.set_unnamed(frame, reason);
        *self.table.owners.write(frame.0 as usize) = of;
    }

    /// Whether the frame has a reason for having no name, so that a name can still be set.
    pub(crate) fn has_reason(&self, frame: FrameId) -> bool {
        self.tag(frame).reason().is_some()
    }

    /// Names a frame that had a reason for having no name, and with it all other frames of its
    /// function, if that was grouped by its start.
    pub(crate) fn set_named_late(&mut self, frame: FrameId, module: ModuleId, name: Arc<str>) {
        if name.is_empty() {
            return;
        }
        let owner = self.owners[frame.0 as usize];
        if self
            .name(owner)
            .is_some_and(|name| **name == *UNMAPPED_CODE)
        {
            // The other frames there belong to other functions.
            if owner != frame {
                *self.table.owners.write(frame.0 as usize) = frame;
                self.set_named(frame, module, name);
            }
            return;
        }
        // A frame that was a function of its own is named like any other.
        let Some(place) = self.table.names.remove(owner) else {
            return self.set_named(frame, module, name);
        };
        self.by_name.remove(&(module, place));
        let members = self
            .owners
            .iter()
            .enumerate()
            .filter(|(_, of)| **of == owner);
        // Searches all frames; only names that are set late need it.
        let members: Vec<FrameId> = members.map(|(frame, _)| FrameId(frame as u32)).collect();
        self.set_named(owner, module, name);
        // Differs from `owner` if a frame had that name before.
        let function = self.owners[owner.0 as usize];
        for member in members {
            if self.has_reason(member) {
                self.set_tag(member, Tag::NAMED);
            }
            *self.table.owners.write(member.0 as usize) = function;
        }
    }

    /// Makes the frame part of the function with that name.
    fn join(&mut self, frame: FrameId, module: ModuleId, name: Arc<str>) {
        let key = (module, self.texts.shared(name));
        if let Some(owner) = self.by_name.get(&key) {
            let owner = *owner;
            *self.table.owners.write(frame.0 as usize) = owner;
        } else {
            self.table.names.insert(frame, Arc::clone(&key.1));
            self.by_name.insert(key, frame);
        }
    }

    /// Returns the function of that name, if a frame had it before.
    pub(crate) fn find(&self, module: ModuleId, name: &Arc<str>) -> Option<FunctionId> {
        self.by_name.get(&(module, Arc::clone(name))).copied()
    }

    /// Removes a frame that was released. If it owns a function, no other frame of that function
    /// may be left.
    pub(crate) fn forget(&mut self, frame: FrameId, module: ModuleId) {
        if let Some(name) = self.table.names.remove(frame) {
            self.by_name.remove(&(module, name));
        }
        // It keeps its owner: a selected line that refers to a member of a function still finds the
        // function, if that is still in use.
        self.set_tag(frame, Tag::RELEASED);
    }

    /// Frees the memory of what was removed.
    pub(crate) fn shrink(&mut self) {
        self.by_name.shrink_to(self.by_name.len() * 2);
        self.table.names.shrink();
        self.texts.forget_unused();
    }

    /// Names a frame that is not a place in a program.
    pub(crate) fn set_reserved(&mut self, frame: FrameId, name: Arc<str>) {
        self.add(frame);
        self.set_tag(frame, Tag::NAMED);
        self.table.names.insert(frame, name);
    }

    fn set_tag(&mut self, frame: FrameId, tag: Tag) {
        *self.table.tags.write(frame.0 as usize) = tag;
    }

    pub(crate) fn table(&self) -> &NameTable {
        &self.table
    }

    /// Number of functions that have a name, including those that are not places in programs.
    pub(crate) fn functions(&self) -> usize {
        self.names.len()
    }

    /// Estimates the memory without walking through the maps.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.tags.memory_bytes()
            + self.owners.memory_bytes()
            + self.names.len() * BYTES_PER_NAME
            + self.texts.memory_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three_frames() -> Names {
        let mut names = Names::new();
        (0..=3).for_each(|frame| names.add(FrameId(frame)));
        names
    }

    #[test]
    fn frames_of_one_module_and_name_are_one_function() {
        let mut names = three_frames();
        names.set_named(FrameId(1), ModuleId(1), "main".into());
        names.set_named(FrameId(2), ModuleId(1), "main".into());
        names.set_named(FrameId(3), ModuleId(2), "main".into());
        assert_eq!(
            *names.owners().run(1, 3),
            [FrameId(1), FrameId(1), FrameId(3)],
            "the third is another module's main"
        );
        assert_eq!(names.state(FrameId(2)), NameState::Named("main".into()));
        assert_eq!(names.functions(), 2);
    }

    #[test]
    fn an_empty_name_is_none() {
        let mut names = three_frames();
        names.set_named(FrameId(1), ModuleId(1), "".into());
        assert_eq!(
            names.state(FrameId(1)),
            NameState::Unnamed(NoName::EmptyName)
        );
    }

    #[test]
    fn a_late_name_is_that_of_all_frames_in_its_place() {
        let mut names = Names::new();
        (0..=4).for_each(|frame| names.add(FrameId(frame)));
        for frame in [1, 2] {
            names.set_unnamed_in(
                FrameId(frame),
                ModuleId(1),
                NoName::Stripped,
                "a+0x10".into(),
            );
        }
        names.set_unnamed_in(FrameId(3), ModuleId(1), NoName::Stripped, "a+0x90".into());
        names.set_named_late(FrameId(2), ModuleId(1), "work".into());
        for frame in [1, 2] {
            assert_eq!(names.state(FrameId(frame)), NameState::Named("work".into()));
        }
        assert_eq!(
            *names.owners().run(1, 3),
            [FrameId(1), FrameId(1), FrameId(3)]
        );
        // Its other half, which has the name already.
        names.set_named(FrameId(4), ModuleId(1), "rest".into());
        names.set_named_late(FrameId(3), ModuleId(1), "rest".into());
        assert_eq!(names.owners()[3], FrameId(4));
        assert_eq!(names.state(FrameId(3)), NameState::Named("rest".into()));
        assert_eq!(names.functions(), 2);
        names.shrink();
        assert_eq!(names.texts.letters(), "work".len() + "rest".len());
    }

    #[test]
    fn frames_without_a_name_in_one_place_are_one_function() {
        let mut names = three_frames();
        for frame in [1, 2] {
            names.set_unnamed_in(
                FrameId(frame),
                ModuleId(1),
                NoName::Stripped,
                "a+0x10".into(),
            );
        }
        names.set_unnamed_in(FrameId(3), ModuleId(1), NoName::Stripped, "a+0x20".into());
        assert_eq!(
            *names.owners().run(1, 3),
            [FrameId(1), FrameId(1), FrameId(3)]
        );
        assert_eq!(
            names.state(FrameId(2)),
            NameState::Unnamed(NoName::Stripped)
        );
        assert_eq!(&**names.name(FrameId(1)).unwrap(), "a+0x10");
    }

    #[test]
    fn forgetting_an_owner_forgets_its_function() {
        let mut names = three_frames();
        names.set_named(FrameId(1), ModuleId(1), "main".into());
        names.forget(FrameId(1), ModuleId(1));
        assert_eq!(names.functions(), 0);
        names.set_named(FrameId(2), ModuleId(1), "main".into());
        assert_eq!(names.owners()[2], FrameId(2));
    }
}
