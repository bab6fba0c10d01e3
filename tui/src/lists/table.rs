//! A *table* is a list of rows that can be sorted, searched and selected. The rows come from the
//! report. Their order, the selection and the search belong to the screen, and survive every new
//! report.

use super::cursor::{Cursor, visible};
use super::family;
use super::family::Member;
use super::find;
use super::find::{Find, Found};
use super::groups::{self, By, Common, LineKey};
use super::motion::Motion;
use profile::few;
use profile::{ProcessId, Report};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

/// A row of a report that can be in a table.
pub trait Item: Clone + Debug + Send + Sync + 'static {
    /// Identifies the row from one report to the next.
    type Key: Copy + Eq + Hash + Debug + Send + Sync;
    /// A column that the table can be sorted by.
    type Column: Copy + Eq + Debug + Default + Send + Sync + 'static;

    /// The columns to sort by, from left to right.
    const COLUMNS: &'static [Self::Column];

    /// The criteria by which rows can be grouped, in the order in which the user is offered them.
    const GROUPINGS: &'static [By] = &[];

    /// Whether grouping by this criterion is useful for the rows of this report.
    fn is_grouping_offered(_by: By, _report: &Report) -> bool {
        true
    }

    /// Whether rows are grouped if the screen does not have room for all of them. This holds until
    /// the user decides.
    const IS_GROUPED: bool = false;

    /// Returns the rows of a report.
    fn rows(report: &Report) -> &[Self];
    /// Returns the key of this row.
    fn key(&self) -> Self::Key;

    /// Returns the key that a row with an older key has in this report. Keys of functions change
    /// when names become known.
    fn current_key(_report: &Report, key: Self::Key) -> Self::Key {
        key
    }

    /// Compares two rows for the default order: the largest number first, words from A to Z.
    fn compare(column: Self::Column, a: &Self, b: &Self) -> Ordering;
    /// Whether a column has words, which rise in the default order. Otherwise it has numbers, which
    /// fall.
    fn is_word(column: Self::Column) -> bool;

    /// Returns the text that is searched, and copied.
    fn name(&self) -> &str;
    /// Returns the samples that a find or the rest of the table adds up.
    fn samples(&self) -> u64;

    /// Returns the process of the row, in tables that can be limited to some processes.
    fn process(&self) -> Option<ProcessId> {
        None
    }

    /// Returns the id of the row and of its parent, for the view as a tree. Returns `None` if rows
    /// have no parents.
    fn member(&self) -> Option<Member> {
        None
    }

    /// Returns rows without samples for the ancestors of this row, nearest first. In the view as a
    /// tree they are shown above it if the report does not have them.
    fn ancestors(&self) -> Vec<Self> {
        Vec::new()
    }

    /// Returns the name of the row outside of the table, such as `postgres[4121]`.
    fn words(&self) -> String {
        self.name().to_owned()
    }

    /// Returns the name of the row together with its kind, or a name for the sum of `count` rows:
    /// `300 threads worker`.
    fn scope_words(&self, _count: usize) -> String {
        self.words()
    }

    /// Returns what the row has in common with the rows of its group, or `None` if it always stays
    /// alone.
    fn common(&self, _by: By) -> Option<Common> {
        None
    }

    /// Returns the sum of rows that have something in common, or `None` if such rows cannot be
    /// summed up.
    fn sum(_rows: &[&Self], _by: By) -> Option<Self> {
        None
    }

    /// Returns the text that is shown and searched while rows are grouped.
    fn group_name(&self, _by: By) -> Cow<'_, str> {
        self.name().into()
    }
}

/// The state of a table that is needed to come back to it.
#[derive(Debug, Clone)]
pub struct TablePosition<I: Item> {
    column: I::Column,
    inverted: bool,
    is_family: bool,
    grouping: Option<By>,
    is_grouping_chosen: bool,
    cursor: Cursor<LineKey<I::Key>>,
    last_seen: Option<LastSeen<I>>,
}

/// Several rows of a report as one line.
#[derive(Debug)]
struct Group<I: Item> {
    /// The sum of the rows.
    sum: I,
    /// The keys of the rows, in the order of the report.
    keys: Vec<I::Key>,
}

/// A copy of the selected line, to be shown when it is gone from the report.
#[derive(Debug, Clone)]
struct LastSeen<I: Item> {
    row: I,
    /// Like [`Line::members`].
    members: Vec<I::Key>,
}

/// A line that is marked.
#[derive(Debug)]
struct Mark<I: Item> {
    key: LineKey<I::Key>,
    /// The rows that the line stood for when it was marked.
    rows: Vec<I::Key>,
    /// Words for these rows.
    words: String,
}

/// One line of a table.
#[derive(Debug)]
pub struct Line<'a, I: Item> {
    pub row: &'a I,
    /// The keys of the rows of which `row` is the sum. Empty if `row` is in the report.
    pub members: &'a [I::Key],
    pub selected: bool,
    /// Whether the row is not in the report any more. It then has its last numbers.
    pub gone: bool,
    /// Whether the row matches the search.
    pub found: bool,
    pub marked: bool,
    /// The guides before the name, which show how the row descends from rows above.
    pub guides: &'a str,
}

impl<I: Item> Line<'_, I> {
    /// Returns how many rows of the report the line stands for.
    pub fn count(&self) -> usize {
        self.members.len().max(1)
    }

    /// Returns the keys of the rows that the line stands for.
    pub fn row_keys(&self) -> Vec<I::Key> {
        match self.members {
            [] => vec![self.row.key()],
            members => members.to_vec(),
        }
    }

    /// Returns the name of the line: `postgres[4121]`, `300 threads worker`.
    pub fn words(&self) -> String {
        match self.count() {
            1 => self.row.words(),
            several => self.row.scope_words(several),
        }
    }
}

/// Where the numbers of a line come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    /// The row with this index in the report.
    Row(usize),
    /// The group with this index.
    Group(usize),
    /// `last_seen`: the row is not in the report any more.
    Gone,
}

/// Returns the key of the line of a row while rows are grouped.
fn line_key<I: Item>(row: &I, by: By) -> LineKey<I::Key> {
    match row.common(by) {
        Some(common) => common.line_key(),
        None => LineKey::Row(row.key()),
    }
}

/// Moves ancestors that have no row in the report to the place of their first descendant, so that
/// the place of a family depends only on its counted members.
fn raise_ancestors<K: Copy>(lines: &mut [((LineKey<K>, Slot), Member)]) {
    let is_ancestor = |slot: &Slot| matches!(slot, Slot::Group(_));
    let parents: HashMap<u32, Option<u32>> = lines
        .iter()
        .filter(|((_, slot), _)| is_ancestor(slot))
        .map(|(_, member)| (member.id, member.parent))
        .collect();
    let mut places: HashMap<u32, usize> = HashMap::new();
    for (at, ((_, slot), member)) in lines.iter().enumerate() {
        let mut above = member.parent.filter(|_| !is_ancestor(slot));
        while let Some(id) = above.filter(|id| parents.contains_key(id)) {
            if places.contains_key(&id) {
                break;
            }
            places.insert(id, at);
            above = parents[&id];
        }
    }
    let rank = |at: usize, slot: &Slot, member: &Member| {
        if is_ancestor(slot) {
            (places.get(&member.id).copied().unwrap_or(usize::MAX), false)
        } else {
            (at, true)
        }
    };
    let mut ranked: Vec<_> = lines
        .iter()
        .enumerate()
        .map(|(at, line)| (rank(at, &line.0.1, &line.1), *line))
        .collect();
    few::sort_by_key(&mut ranked, |(rank, _)| *rank);
    for (place, (_, line)) in lines.iter_mut().zip(ranked) {
        *place = line;
    }
}

/// A change of the order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Sort by the column this many columns to the right.
    Shift(isize),
    /// Sort by the column with this number.
    By(usize),
    /// Invert the present order.
    Invert,
}

/// Sorting, selection and search in a list of rows.
#[derive(Debug)]
pub struct Table<I: Item> {
    /// The keys of the rows in the order of the screen.
    /// `slots` has the same length and order.
    keys: Vec<LineKey<I::Key>>,
    slots: Vec<Slot>,
    /// The lines that stand for several rows, or for an ancestor without a row.
    groups: Vec<Group<I>>,
    /// In the view as a tree: the parents of ancestors that have no line.
    skipped: HashMap<u32, Option<u32>>,
    /// The guides of the rows in the same order if the table is shown as a tree. Otherwise empty.
    guides: Vec<Arc<str>>,
    is_family: bool,
    /// The criterion by which rows are grouped, or `None` if they are not.
    grouping: Option<By>,
    /// Whether the user has decided about grouping. Until then it depends on the available lines.
    is_grouping_chosen: bool,
    /// The column that rows are sorted by.
    column: I::Column,
    /// Whether the order is the opposite of the default.
    inverted: bool,
    /// If set, only rows of these processes are shown. It is sorted, because every row of a report
    /// is looked up here; usually there is one process.
    only: Option<Vec<ProcessId>>,
    cursor: Cursor<LineKey<I::Key>>,
    last_seen: Option<LastSeen<I>>,
    /// The marked lines. The scope can be narrowed to all of them together.
    marks: Vec<Mark<I>>,
    find: Option<Find>,
    /// Number of matching rows, and the sum of their samples.
    found: (usize, u64),
    /// Number of lines on the screen.
    height: usize,
}

impl<I: Item> Default for Table<I> {
    fn default() -> Self {
        Table {
            keys: Vec::new(),
            slots: Vec::new(),
            groups: Vec::new(),
            skipped: HashMap::new(),
            guides: Vec::new(),
            is_family: false,
            grouping: I::GROUPINGS.first().copied().filter(|_| I::IS_GROUPED),
            is_grouping_chosen: false,
            column: I::Column::default(),
            inverted: false,
            only: None,
            cursor: Cursor::default(),
            last_seen: None,
            marks: Vec::new(),
            find: None,
            found: (0, 0),
            height: 1,
        }
    }
}

impl<I: Item> Table<I> {
    /// Returns the number of rows, visible or not.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the index of the first row on the screen.
    pub fn offset(&self) -> usize {
        self.cursor.offset()
    }

    /// Returns the column that rows are sorted by.
    pub fn column(&self) -> I::Column {
        self.column
    }

    /// Whether the sort column rises from top to bottom.
    pub fn is_rising(&self) -> bool {
        I::is_word(self.column) != self.inverted
    }

    /// Returns the selected line, or `None` if the table is empty.
    pub fn selected<'a>(&'a self, report: &'a Report) -> Option<Line<'a, I>> {
        self.line(self.cursor.index(), report)
    }

    /// Returns the key of the row that the user has selected. Returns `None` while the cursor
    /// watches the top, and for a group.
    pub fn held(&self) -> Option<I::Key> {
        match self.cursor.held()? {
            LineKey::Row(key) => Some(key),
            LineKey::Group(_) => None,
        }
    }

    /// Selects a row by its key, if the table has a line of its own for it.
    pub fn select_key(&mut self, key: I::Key, report: &Report) {
        let key = LineKey::Row(key);
        if let Some(at) = self.keys.iter().position(|other| *other == key) {
            self.select(at, report);
        }
    }

    /// Returns the rows of a report that belong to this table, with their indices.
    fn own_rows<'a>(&'a self, report: &'a Report) -> impl Iterator<Item = (usize, &'a I)> {
        let is_own = move |row: &I| match &self.only {
            Some(only) => (row.process()).is_some_and(|own| only.binary_search(&own).is_ok()),
            None => true,
        };
        let rows = I::rows(report).iter().enumerate();
        rows.filter(move |(_, row)| is_own(row))
    }

    /// Shows only the rows of these processes. If none of them was shown before, the first row is
    /// selected.
    pub fn show_only(&mut self, mut processes: Vec<ProcessId>, report: &Report) {
        processes.sort_unstable();
        processes.dedup();
        let before = self.only.replace(processes);
        let is_changed = before != self.only;
        let is_shown = |process: &ProcessId| {
            let now = self.only.as_ref();
            now.is_some_and(|now| now.binary_search(process).is_ok())
        };
        if !before.is_some_and(|before| before.iter().any(is_shown)) {
            self.cursor = Cursor::default();
            (self.last_seen, self.keys) = (None, Vec::new());
            self.marks.clear();
        }
        if is_changed || self.keys.is_empty() {
            self.update(report, self.keys.is_empty());
        }
    }

    /// Drops the rows, but keeps the selection. Called when the table is not on the screen
    /// any more.
    pub fn release(&mut self) {
        (self.keys, self.slots, self.groups) = (Vec::new(), Vec::new(), Vec::new());
        self.guides.clear();
    }

    /// Whether only the rows of some processes are shown.
    pub fn is_of_some_processes(&self) -> bool {
        self.only.is_some()
    }

    /// Returns the selected line of the screen, counted from the first row.
    #[cfg(test)]
    pub fn selected_line(&self) -> usize {
        self.cursor.index() - self.cursor.offset()
    }

    /// Returns the rows that have no line on the screen.
    pub fn hidden_rows<'a>(&'a self, report: &'a Report) -> impl Iterator<Item = &'a I> {
        let rows = I::rows(report);
        let shown = self.offset()..self.offset() + visible(self.len(), self.height);
        let hidden = self
            .slots
            .iter()
            .enumerate()
            .filter(move |(at, _)| !shown.contains(at));
        hidden.filter_map(|(_, slot)| match slot {
            Slot::Row(number) => rows.get(*number),
            Slot::Group(number) => self.groups.get(*number).map(|group| &group.sum),
            Slot::Gone => None,
        })
    }

    /// Returns the lines on the screen.
    pub fn lines<'a>(&'a self, report: &'a Report) -> impl Iterator<Item = Line<'a, I>> {
        let end = self.offset() + visible(self.len(), self.height);
        (self.offset()..end.min(self.len())).filter_map(|at| self.line(at, report))
    }

    fn line<'a>(&'a self, at: usize, report: &'a Report) -> Option<Line<'a, I>> {
        let slot = *self.slots.get(at)?;
        let (row, members): (&I, &[I::Key]) = match slot {
            Slot::Row(number) => (I::rows(report).get(number)?, &[]),
            Slot::Group(number) => {
                let group = self.groups.get(number)?;
                (&group.sum, &group.keys)
            }
            Slot::Gone => {
                let last_seen = self.last_seen.as_ref()?;
                (&last_seen.row, &last_seen.members)
            }
        };
        let key = *self.keys.get(at)?;
        Some(Line {
            row,
            members,
            selected: at == self.cursor.index(),
            gone: slot == Slot::Gone,
            found: self
                .find
                .as_ref()
                .is_some_and(|f| f.matches(&self.name_of(row))),
            marked: self.marks.iter().any(|mark| mark.key == key),
            guides: self.guides.get(at).map_or("", |guides| guides),
        })
    }

    /// Takes the rows of another report. Without `sort` the rows stay in place, and new ones are
    /// appended.
    pub fn update(&mut self, report: &Report, sort: bool) {
        // Filtered only once: there may be a hundred thousand threads, of which a process has only
        // a few.
        let own: Vec<usize> = self.own_rows(report).map(|(number, _)| number).collect();
        self.group_by_room(own.len(), report);
        if let Some(LineKey::Row(held)) = self.cursor.held() {
            self.cursor
                .rename(LineKey::Row(I::current_key(report, held)));
        }
        let lines = self.gather(report, own);
        let mut slots = if sort {
            Vec::new()
        } else {
            self.kept(report, &lines)
        };
        self.append_sorted(report, lines, &mut slots);
        self.keep_gone(&mut slots);
        self.arrange(report, &mut slots);
        self.keys = slots.iter().map(|(key, _)| *key).collect();
        self.slots = slots.into_iter().map(|(_, slot)| slot).collect();
        self.cursor.settle(&self.keys, self.height);
        self.remember(report);
        self.count_found(report);
    }

    /// Groups rows if the screen does not have enough lines for all, until the user decides.
    /// Grouping starts when there are more rows than lines, but ends only when they fit into three
    /// quarters of them, so that a thread which comes and goes does not change the whole table each
    /// time. The selection is kept.
    fn group_by_room(&mut self, rows: usize, report: &Report) {
        let is_decided = self.is_grouping_chosen || self.is_family || !self.marks.is_empty();
        let Some(by) = I::GROUPINGS
            .first()
            .copied()
            .filter(|_| I::IS_GROUPED && !is_decided)
        else {
            return;
        };
        let room = match self.grouping {
            None => self.height,
            Some(_) => self.height - self.height / 4,
        };
        let grouping = Some(by).filter(|_| rows > room);
        if grouping == self.grouping {
            return;
        }
        if let Some(held) = self.cursor.held() {
            let is_it = |row: &&I| match held {
                LineKey::Row(key) => row.key() == key,
                LineKey::Group(_) => line_key(*row, by) == held,
            };
            if let Some(row) = I::rows(report).iter().find(is_it) {
                self.cursor.rename(match grouping {
                    Some(by) => line_key(row, by),
                    None => LineKey::Row(row.key()),
                });
            }
        }
        (self.grouping, self.last_seen) = (grouping, None);
    }

    /// Returns a line for each of these rows, or for each group of them.
    fn gather(&mut self, report: &Report, own: Vec<usize>) -> Vec<(LineKey<I::Key>, Slot)> {
        self.groups.clear();
        self.skipped.clear();
        let rows = I::rows(report);
        let Some(by) = self.grouping else {
            let line = |number: &usize| (LineKey::Row(rows[*number].key()), Slot::Row(*number));
            let mut lines: Vec<_> = own.iter().map(line).collect();
            if self.is_family {
                self.add_ancestors(&own, rows, &mut lines);
            }
            return lines;
        };
        let mut lines = Vec::new();
        for numbers in groups::gather(&own, |number| rows[number].common(by)) {
            let members: Vec<&I> = numbers.iter().map(|number| &rows[*number]).collect();
            // A group of one row is shown as that row.
            let sum = match members.len() {
                1 => None,
                _ => I::sum(&members, by),
            };
            let Some(sum) = sum else {
                let line = |number| (line_key(&rows[number], by), Slot::Row(number));
                lines.extend(numbers.into_iter().map(line));
                continue;
            };
            lines.push((line_key(&sum, by), Slot::Group(self.groups.len())));
            self.groups.push(Group {
                sum,
                keys: members.iter().map(|row| row.key()).collect(),
            });
        }
        lines
    }

    /// Adds a line for each ancestor that the report does not have, as a group without rows. Of a
    /// chain of such ancestors without other descendants, as between a login and a build, only the
    /// nearest one is added: a narrow screen has no room for all.
    fn add_ancestors(
        &mut self,
        own: &[usize],
        rows: &[I],
        lines: &mut Vec<(LineKey<I::Key>, Slot)>,
    ) {
        let members = own.iter().filter_map(|number| rows[*number].member());
        let members: Vec<Member> = members.collect();
        let mut present: HashSet<u32> = members.iter().map(|member| member.id).collect();
        let mut found: Vec<(Member, I)> = Vec::new();
        for number in own {
            for ancestor in rows[*number].ancestors() {
                // If an ancestor is already there, so are those above it.
                match ancestor.member().filter(|member| present.insert(member.id)) {
                    Some(member) => found.push((member, ancestor)),
                    None => break,
                }
            }
        }
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        let added = found.iter().map(|(member, _)| member);
        for member in members.iter().chain(added) {
            if let Some(parent) = member.parent {
                children.entry(parent).or_default().push(member.id);
            }
        }
        let has_row: HashSet<u32> = members.iter().map(|member| member.id).collect();
        for (member, sum) in found {
            let below = children.get(&member.id).map_or(&[][..], Vec::as_slice);
            if let [only] = below
                && !has_row.contains(only)
            {
                self.skipped.insert(member.id, member.parent);
                continue;
            }
            let key = Common {
                process: None,
                name: format!("ancestor {}", member.id).into(),
            };
            lines.push((key.line_key(), Slot::Group(self.groups.len())));
            self.groups.push(Group {
                sum,
                keys: Vec::new(),
            });
        }
    }

    /// Replaces the parent of a row by its nearest ancestor that has a line.
    fn parent_on_screen(&self, member: Member) -> Member {
        let mut parent = member.parent;
        // Ids may form a circle.
        for _ in 0..=self.skipped.len() {
            match parent.and_then(|id| self.skipped.get(&id)) {
                Some(above) => parent = *above,
                None => break,
            }
        }
        Member { parent, ..member }
    }

    /// Returns the lines on the screen that the report still has, in their present order.
    fn kept(
        &self,
        report: &Report,
        lines: &[(LineKey<I::Key>, Slot)],
    ) -> Vec<(LineKey<I::Key>, Slot)> {
        let slots: HashMap<LineKey<I::Key>, Slot> = lines.iter().copied().collect();
        let current = |key: &LineKey<I::Key>| match key {
            LineKey::Row(key) => LineKey::Row(I::current_key(report, *key)),
            group => *group,
        };
        // Two rows become one when a name arrives that they share.
        let mut seen = HashSet::new();
        self.keys
            .iter()
            .map(current)
            .filter(|key| seen.insert(*key))
            .filter_map(|key| match slots.get(&key) {
                Some(slot) => Some((key, *slot)),
                None if Some(key) == self.cursor.held() => Some((key, Slot::Gone)),
                None => None,
            })
            .collect()
    }

    /// Appends the lines that have no slot yet, in the order of the sort column: all lines if there
    /// are no slots, else only the new ones.
    fn append_sorted(
        &self,
        report: &Report,
        mut lines: Vec<(LineKey<I::Key>, Slot)>,
        slots: &mut Vec<(LineKey<I::Key>, Slot)>,
    ) {
        if !slots.is_empty() {
            let present: HashSet<LineKey<I::Key>> = slots.iter().map(|(key, _)| *key).collect();
            lines.retain(|(key, _)| !present.contains(key));
        }
        let rows = I::rows(report);
        let row = |slot: &Slot| match slot {
            Slot::Row(number) => rows.get(*number),
            Slot::Group(number) => self.groups.get(*number).map(|group| &group.sum),
            Slot::Gone => None,
        };
        // The sort is stable: equal rows stay in the order of the report.
        few::sort_by(&mut lines, |(_, a), (_, b)| {
            let (Some(a), Some(b)) = (row(a), row(b)) else {
                return Ordering::Equal;
            };
            let order = I::compare(self.column, a, b);
            if self.inverted {
                order.reverse()
            } else {
                order
            }
        });
        slots.extend(lines);
    }

    /// Moves rows below those that they descend from. The previous order remains among siblings.
    fn arrange(&mut self, report: &Report, slots: &mut Vec<(LineKey<I::Key>, Slot)>) {
        self.guides.clear();
        if !self.is_family {
            return;
        }
        let rows = I::rows(report);
        let member = |(_, slot): &(LineKey<I::Key>, Slot)| match slot {
            Slot::Row(number) => rows[*number].member(),
            // An ancestor without a row in the report. Other groups do not occur in a tree.
            Slot::Group(number) => self.groups.get(*number)?.sum.member(),
            Slot::Gone => self.last_seen.as_ref()?.row.member(),
        };
        let with_members = slots
            .iter()
            .map(|slot| Some((*slot, self.parent_on_screen(member(slot)?))));
        let Some(mut with_members) = with_members.collect::<Option<Vec<_>>>() else {
            return;
        };
        raise_ancestors(&mut with_members);
        *slots = with_members.iter().map(|(slot, _)| *slot).collect();
        let members: Vec<Member> = with_members.into_iter().map(|(_, member)| member).collect();
        let arranged = family::arrange(&members);
        *slots = arranged.iter().map(|(at, _)| slots[*at]).collect();
        self.guides = arranged.into_iter().map(|(_, guides)| guides).collect();
    }

    /// Switches between a tree, in which rows are below those that they descend from, and a list.
    pub fn toggle_family(&mut self, report: &Report) {
        self.is_family = !self.is_family;
        self.is_grouping_chosen = true;
        if self.grouping.is_none() && matches!(self.cursor.held(), Some(LineKey::Group(_))) {
            // An ancestor without a row in the report does not occur in the list.
            self.last_seen = None;
        }
        self.set_grouping(self.grouping.filter(|_| !self.is_family), report);
        self.update(report, true);
    }

    /// Switches to the next criterion by which rows are grouped; after the last one, rows are not
    /// grouped.
    pub fn next_grouping(&mut self, report: &Report) {
        let all = I::GROUPINGS.iter().copied();
        let all: Vec<By> = all
            .filter(|by| I::is_grouping_offered(*by, report))
            .collect();
        let next = match self.grouping {
            None => 0,
            Some(by) => all
                .iter()
                .position(|each| *each == by)
                .map_or(0, |at| at + 1),
        };
        let next = all.get(next).copied();
        self.is_family = self.is_family && next.is_none();
        self.is_grouping_chosen = true;
        self.set_grouping(next, report);
        self.update(report, true);
    }

    /// Groups rows by this criterion from now on.
    pub fn group_by(&mut self, by: By, report: &Report) {
        self.is_family = false;
        self.is_grouping_chosen = true;
        self.set_grouping(Some(by), report);
        self.update(report, true);
    }

    /// Changes the grouping. The selection is kept: the group of the selected row is selected, or
    /// the first row of the selected group. Marks are removed, because they belong to the old
    /// lines.
    fn set_grouping(&mut self, grouping: Option<By>, report: &Report) {
        if grouping == self.grouping {
            return;
        }
        self.marks.clear();
        let selected = self.selected(report).map(|line| {
            let first = line.members.first().copied().unwrap_or(line.row.key());
            let mut rows = I::rows(report).iter();
            let row = rows.find(|row| row.key() == first);
            match (grouping, row) {
                (Some(by), Some(row)) => line_key(row, by),
                _ => LineKey::Row(first),
            }
        });
        self.grouping = grouping;
        self.last_seen = None;
        if let Some(key) = selected {
            self.cursor.rename(key);
        }
    }

    /// Returns the criterion by which rows are grouped, or `None` if they are not.
    pub fn grouping(&self) -> Option<By> {
        self.grouping
    }

    /// Returns the text of a row that is searched and copied.
    fn name_of<'a>(&self, row: &'a I) -> Cow<'a, str> {
        match self.grouping {
            Some(by) => row.group_name(by),
            None => row.name().into(),
        }
    }

    /// Whether rows are below those that they descend from.
    pub fn is_family(&self) -> bool {
        self.is_family
    }

    /// If the selected row is not in the report any more, keeps it on its line until another row is
    /// selected.
    fn keep_gone(&self, slots: &mut Vec<(LineKey<I::Key>, Slot)>) {
        let Some(held) = self.cursor.held() else {
            return;
        };
        let known = slots.iter().any(|(key, _)| *key == held);
        if !known && self.last_seen.is_some() {
            let at = self.cursor.index().min(slots.len());
            slots.insert(at, (held, Slot::Gone));
        }
    }

    /// Forgets the stored row. If the next report does not have the selected row, it is not shown
    /// any more.
    pub fn forget_last_seen(&mut self) {
        self.last_seen = None;
    }

    /// Stores the selected row, in case the next report does not have it.
    fn remember(&mut self, report: &Report) {
        if self.cursor.held().is_none() {
            self.last_seen = None;
        } else if let Some(line) = self.selected(report)
            && !line.gone
        {
            self.last_seen = Some(LastSeen {
                row: line.row.clone(),
                members: line.members.to_vec(),
            });
        }
    }

    /// Sets the number of lines on the screen. Rows may have to be grouped now, or need not be
    /// grouped any more.
    pub fn resize(&mut self, height: usize, report: &Report) {
        if std::mem::replace(&mut self.height, height) != height && !self.keys.is_empty() {
            let before = self.grouping;
            let rows = self.own_rows(report).count();
            self.group_by_room(rows, report);
            if self.grouping != before {
                self.update(report, true);
            }
        }
        self.cursor.settle(&self.keys, height);
    }

    /// Moves the selection.
    pub fn go(&mut self, motion: Motion, report: &Report) {
        let at = self.cursor.index();
        if motion.watches_top(at) {
            return self.watch_top(report);
        }
        let rows = self.len();
        let page = visible(rows, self.height);
        self.select(motion.target(at, page, rows), report);
    }

    /// Selects the row on a line of the screen.
    pub fn select_line(&mut self, line: usize, report: &Report) {
        let at = self.offset() + line;
        if line < visible(self.len(), self.height) && at < self.len() {
            self.select(at, report);
        }
    }

    /// Selects a row by its index. A row that is not in the report any more disappears.
    fn select(&mut self, at: usize, report: &Report) {
        let target = self.keys.get(at).copied();
        if target != self.cursor.held() {
            self.drop_gone();
        }
        // The index of the target changes if the row that disappeared was above it.
        let at = target
            .and_then(|key| self.keys.iter().position(|k| *k == key))
            .unwrap_or(at);
        self.cursor.select(at, &self.keys, self.height);
        self.remember(report);
    }

    /// Selects the first row, whatever row that is.
    fn watch_top(&mut self, report: &Report) {
        self.drop_gone();
        self.cursor.watch_top();
        self.remember(report);
    }

    /// Removes the row that is not in the report any more.
    fn drop_gone(&mut self) {
        if let Some(at) = self.slots.iter().position(|slot| *slot == Slot::Gone) {
            self.slots.remove(at);
            self.keys.remove(at);
            if at < self.guides.len() {
                self.guides.remove(at);
            }
        }
    }

    /// Sorts by the column with this number. If the table is already sorted by it, the order is
    /// inverted.
    pub fn sort_by(&mut self, number: usize, report: &Report) {
        let Some(column) = I::COLUMNS.get(number) else {
            return;
        };
        if *column == self.column {
            return self.invert(report);
        }
        self.column = *column;
        self.inverted = false;
        self.update(report, true);
    }

    /// Sorts by a column, in the default order or inverted.
    pub fn set_order(&mut self, column: I::Column, inverted: bool, report: &Report) {
        self.column = column;
        self.inverted = inverted;
        self.update(report, true);
    }

    /// Whether the order is the opposite of the default.
    pub fn is_inverted(&self) -> bool {
        self.inverted
    }

    /// Sorts by the column `by` places to the right. After the last one comes the first.
    pub fn shift_column(&mut self, by: isize, report: &Report) {
        let columns = I::COLUMNS;
        let at = columns.iter().position(|c| *c == self.column).unwrap_or(0);
        let next = (at as isize + by).rem_euclid(columns.len() as isize);
        self.column = columns[next as usize];
        self.inverted = false;
        self.update(report, true);
    }

    /// Inverts the order.
    pub fn invert(&mut self, report: &Report) {
        self.inverted = !self.inverted;
        self.update(report, true);
    }

    /// Returns what is needed to come back to this state.
    pub fn place(&self) -> TablePosition<I> {
        TablePosition {
            column: self.column,
            inverted: self.inverted,
            is_family: self.is_family,
            grouping: self.grouping,
            is_grouping_chosen: self.is_grouping_chosen,
            cursor: self.cursor.clone(),
            last_seen: self.last_seen.clone(),
        }
    }

    /// Comes back to a state. [`Table::update`] has to be called afterwards.
    pub fn return_to(&mut self, place: TablePosition<I>) {
        self.column = place.column;
        self.inverted = place.inverted;
        self.is_family = place.is_family;
        self.grouping = place.grouping;
        self.is_grouping_chosen = place.is_grouping_chosen;
        self.cursor = place.cursor.come_back();
        self.last_seen = place.last_seen;
    }

    /// Marks the selected row, or removes its mark, and selects the next row.
    pub fn toggle_mark(&mut self, report: &Report) {
        let key = self.keys.get(self.cursor.index()).copied();
        let (Some(line), Some(key)) = (self.selected(report), key) else {
            return;
        };
        let mark = Mark {
            key,
            rows: line.row_keys(),
            words: line.row.scope_words(line.count()),
        };
        match self.marks.iter().position(|other| other.key == mark.key) {
            Some(at) => drop(self.marks.remove(at)),
            None => self.marks.push(mark),
        }
        self.go(Motion::Down(1), report);
    }

    /// Removes all marks.
    pub fn unmark(&mut self) {
        self.marks.clear();
    }

    /// Returns how many rows are marked.
    pub fn marked(&self) -> usize {
        self.marks.len()
    }

    /// Returns the keys of the marked rows, or else of the selected one, and words for them. A
    /// group stands for all its rows. Returns `None` if the table is empty.
    pub fn chosen(&self, report: &Report, plural: &str) -> Option<(Vec<I::Key>, Arc<str>)> {
        if self.marks.is_empty() {
            let line = self.selected(report)?;
            let words = line.row.scope_words(line.count());
            return Some((line.row_keys(), words.into()));
        }
        // A group may have more rows now than when it was marked.
        let rows_of = |mark: &Mark<I>| {
            let at = self.keys.iter().position(|key| *key == mark.key);
            let line = at.and_then(|at| self.line(at, report));
            line.map_or_else(|| mark.rows.clone(), |line| line.row_keys())
        };
        let keys: Vec<I::Key> = self.marks.iter().flat_map(rows_of).collect();
        let words = match &self.marks[..] {
            [mark] => mark.words.as_str().into(),
            _ => format!("{} {plural}", keys.len()).into(),
        };
        Some((keys, words))
    }

    /// Returns the name of the selected row, or `None` if the table is empty.
    pub fn selected_name(&self, report: &Report) -> Option<String> {
        Some(self.name_of(self.selected(report)?.row).into_owned())
    }

    /// Returns the pattern of the search and how many rows match it, or `None` if there is no
    /// search.
    pub fn matches(&self) -> Option<Found<'_>> {
        let (rows, samples) = self.found;
        Some(Found {
            find: self.find.as_ref()?,
            rows,
            samples,
            of: self.len(),
        })
    }

    /// Changes the order of the rows.
    pub fn order(&mut self, order: Sort, report: &Report) {
        match order {
            Sort::Shift(by) => self.shift_column(by, report),
            Sort::By(column) => self.sort_by(column, report),
            Sort::Invert => self.invert(report),
        }
    }

    /// Starts a search, or ends it with `None`.
    pub fn set_find(&mut self, find: Option<Find>, report: &Report) {
        self.find = find;
        self.count_found(report);
    }

    fn count_found(&mut self, report: &Report) {
        self.found = match &self.find {
            None => (0, 0),
            Some(_) => (0..self.len())
                .filter_map(|at| self.line(at, report))
                .filter(|line| line.found && !line.gone)
                .fold((0, 0), |(rows, samples), line| {
                    (rows + 1, samples + line.row.samples())
                }),
        };
    }

    /// Selects the next match below the selected row, or above it if `down` is false, and goes on
    /// at the other end. With `including` and `down`, the selected row itself may be the match.
    /// Returns the position of the match among all matches, counted from 1, or `None` if there is
    /// none.
    pub fn select_found(&mut self, down: bool, including: bool, report: &Report) -> Option<usize> {
        let found: Vec<usize> = (0..self.len())
            .filter(|at| self.line(*at, report).is_some_and(|line| line.found))
            .collect();
        let here = self.cursor.index();
        let place = find::next(&found, here, down, including)?;
        self.select(*found.get(place)?, report);
        Some(place + 1)
    }
}
