//! A *table* is a list of rows that is sorted, searched and selected from. The
//! rows are the report's; their order, the selection and the search are the
//! screen's, and they survive every new report.

use super::cursor::{Cursor, visible};
use super::family;
use super::family::Member;
use super::find;
use super::find::{Find, Found};
use super::motion::Motion;
use profile::{ProcessId, Report};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

/// A row of a report that can be in a table.
pub trait Item: Clone + Debug + Send + Sync + 'static {
    /// Identifies the row from one report to the next.
    type Key: Copy + Eq + Hash + Debug + Send + Sync;
    type Column: Copy + Eq + Debug + Default + Send + Sync + 'static;

    /// The columns to sort by, from left to right.
    const COLUMNS: &'static [Self::Column];

    /// Returns the rows of a report.
    fn rows(report: &Report) -> &[Self];
    /// Returns what identifies this row.
    fn key(&self) -> Self::Key;

    /// Returns the key that a row with an older key has in this report. Keys of functions
    /// change when names become known.
    fn current_key(_report: &Report, key: Self::Key) -> Self::Key {
        key
    }

    /// Compares two rows for the usual order: the largest number first, words from A to Z.
    fn compare(column: Self::Column, a: &Self, b: &Self) -> Ordering;
    /// Whether a column has words, which rise in the usual order, and no numbers, which
    /// fall.
    fn is_word(column: Self::Column) -> bool;

    /// Returns the text that is searched, and copied.
    fn name(&self) -> &str;
    /// Returns the samples that a find or a rest of the table adds up.
    fn samples(&self) -> u64;

    /// Returns the process of the row, in tables that can be limited to one process.
    fn process(&self) -> Option<ProcessId> {
        None
    }

    /// Returns the row and its parent for the view as a tree. None if rows have no parents.
    fn member(&self) -> Option<Member> {
        None
    }

    /// Returns how the row is called outside of the table, such as `postgres[4121]`.
    fn words(&self) -> String {
        self.name().to_owned()
    }
}

/// The state of a table that is needed to come back to it.
#[derive(Debug, Clone)]
pub struct Place<I: Item> {
    column: I::Column,
    inverted: bool,
    is_family: bool,
    cursor: Cursor<I::Key>,
    last_seen: Option<I>,
}

/// One line of a table.
#[derive(Debug)]
pub struct Line<'a, I> {
    pub row: &'a I,
    pub selected: bool,
    /// Whether the row is no longer in the report. It then has its last numbers.
    pub gone: bool,
    pub found: bool,
    pub marked: bool,
    /// The lines that are drawn before the name, which show how it descends from rows
    /// above.
    pub guides: &'a str,
}

/// Where the numbers of a line are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    /// The row of that number in the report.
    Row(usize),
    /// From `last_seen`: the row is no longer in the report.
    Gone,
}

/// How the order of rows changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Sort by the column that lies this many columns further.
    Shift(isize),
    /// Sort by the column of that number.
    By(usize),
    Invert,
}

/// Sorting, selection and search of a list of rows.
#[derive(Debug)]
pub struct Table<I: Item> {
    /// The keys of the rows in the order of the screen. `slots` has the same length and
    /// order.
    keys: Vec<I::Key>,
    slots: Vec<Slot>,
    /// The guides of the rows in the same order, if the table is drawn as a tree; else
    /// empty.
    guides: Vec<Arc<str>>,
    is_family: bool,
    column: I::Column,
    inverted: bool,
    /// If set, only rows of this process are shown.
    only: Option<ProcessId>,
    cursor: Cursor<I::Key>,
    /// The selected row with its last numbers, to be shown when it is gone from the report.
    last_seen: Option<I>,
    /// The marked rows with their words; they can be counted alone together.
    marks: Vec<(I::Key, String)>,
    find: Option<Find>,
    /// How many rows match, and how many samples they have together.
    found: (usize, u64),
    height: usize,
}

impl<I: Item> Default for Table<I> {
    fn default() -> Self {
        Table {
            keys: Vec::new(),
            slots: Vec::new(),
            guides: Vec::new(),
            is_family: false,
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
    /// Returns how many rows the table has, on the screen or not.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns the index of the first row on the screen.
    pub fn offset(&self) -> usize {
        self.cursor.offset()
    }

    /// Returns the column by which rows are sorted.
    pub fn column(&self) -> I::Column {
        self.column
    }

    /// Whether the sort column rises from top to bottom.
    pub fn is_rising(&self) -> bool {
        I::is_word(self.column) != self.inverted
    }

    /// Returns the selected line. None if the table is empty.
    pub fn selected<'a>(&'a self, report: &'a Report) -> Option<Line<'a, I>> {
        self.line(self.cursor.index(), report)
    }

    /// Returns the key of the row that the user has selected. None while the cursor watches
    /// the top.
    pub fn held(&self) -> Option<I::Key> {
        self.cursor.held()
    }

    /// Selects a row by its key, if the table has it.
    pub fn select_key(&mut self, key: I::Key, report: &Report) {
        if let Some(at) = self.keys.iter().position(|other| *other == key) {
            self.select(at, report);
        }
    }

    /// The rows of a report that are this table's, with their numbers.
    fn own_rows<'a>(&self, report: &'a Report) -> impl Iterator<Item = (usize, &'a I)> {
        let only = self.only;
        let rows = I::rows(report).iter().enumerate();
        rows.filter(move |(_, row)| only.is_none() || row.process() == only)
    }

    /// Shows the rows of another process, the first of them selected.
    pub fn show_only(&mut self, process: ProcessId, report: &Report) {
        if self.only != Some(process) {
            self.only = Some(process);
            self.cursor = Cursor::default();
            (self.last_seen, self.keys) = (None, Vec::new());
            self.marks.clear();
        }
        if self.keys.is_empty() {
            self.update(report, true);
        }
    }

    /// Drops the rows, but keeps the selection. Called when the table is not on the screen
    /// any more.
    pub fn release(&mut self) {
        (self.keys, self.slots) = (Vec::new(), Vec::new());
        self.guides.clear();
    }

    /// Whether it shows the rows of one process only.
    pub fn is_of_one_process(&self) -> bool {
        self.only.is_some()
    }

    /// The selected line of the screen, counted from the first row.
    #[cfg(test)]
    pub fn selected_line(&self) -> usize {
        self.cursor.index() - self.cursor.offset()
    }

    /// Returns the rows for which there is no line on the screen.
    pub fn hidden_rows<'a>(&'a self, report: &'a Report) -> impl Iterator<Item = &'a I> {
        let rows = I::rows(report);
        let shown = self.offset()..self.offset() + visible(self.len(), self.height);
        let hidden = self.slots.iter().enumerate();
        let hidden = hidden.filter(move |(at, _)| !shown.contains(at));
        hidden.filter_map(|(_, slot)| match slot {
            Slot::Row(number) => rows.get(*number),
            Slot::Gone => None,
        })
    }

    /// Returns the lines that are on the screen.
    pub fn lines<'a>(&'a self, report: &'a Report) -> impl Iterator<Item = Line<'a, I>> {
        let end = self.offset() + visible(self.len(), self.height);
        (self.offset()..end.min(self.len())).filter_map(|at| self.line(at, report))
    }

    fn line<'a>(&'a self, at: usize, report: &'a Report) -> Option<Line<'a, I>> {
        let slot = *self.slots.get(at)?;
        let row = match slot {
            Slot::Row(number) => I::rows(report).get(number)?,
            Slot::Gone => self.last_seen.as_ref()?,
        };
        Some(Line {
            row,
            selected: at == self.cursor.index(),
            gone: slot == Slot::Gone,
            found: self.find.as_ref().is_some_and(|f| f.matches(row.name())),
            marked: self.marks.iter().any(|(key, _)| *key == row.key()),
            guides: self.guides.get(at).map_or("", |guides| guides),
        })
    }

    /// Takes the rows of another report. Without `sort` the rows stay where
    /// they are, and new ones come last.
    pub fn update(&mut self, report: &Report, sort: bool) {
        // Filtered once: there may be a hundred thousand threads, of which a process has
        // only a few.
        let own: Vec<usize> = self.own_rows(report).map(|(number, _)| number).collect();
        if let Some(held) = self.cursor.held() {
            self.cursor.rename(I::current_key(report, held));
        }
        let mut slots = if sort {
            Vec::new()
        } else {
            self.kept(report, &own)
        };
        self.append_sorted(report, own, &mut slots);
        self.keep_gone(&mut slots);
        self.arrange(report, &mut slots);
        self.keys = slots.iter().map(|(key, _)| *key).collect();
        self.slots = slots.into_iter().map(|(_, slot)| slot).collect();
        self.cursor.settle(&self.keys, self.height);
        self.remember(report);
        self.count_found(report);
    }

    /// The rows on the screen that the report still has, where they are.
    fn kept(&self, report: &Report, own: &[usize]) -> Vec<(I::Key, Slot)> {
        let rows = I::rows(report);
        let numbers = own.iter().map(|number| (rows[*number].key(), *number));
        let numbers: HashMap<I::Key, usize> = numbers.collect();
        // Two rows become one when a name arrives that they share.
        let mut seen = HashSet::new();
        self.keys
            .iter()
            .map(|key| I::current_key(report, *key))
            .filter(|key| seen.insert(*key))
            .filter_map(|key| match numbers.get(&key) {
                Some(number) => Some((key, Slot::Row(*number))),
                None if Some(key) == self.cursor.held() => Some((key, Slot::Gone)),
                None => None,
            })
            .collect()
    }

    /// Adds the rows that have no slot yet, in the order of the sort column: all of them if
    /// none has, else only the new ones.
    fn append_sorted(
        &self,
        report: &Report,
        mut numbers: Vec<usize>,
        slots: &mut Vec<(I::Key, Slot)>,
    ) {
        let rows = I::rows(report);
        if !slots.is_empty() {
            let present: HashSet<I::Key> = slots.iter().map(|(key, _)| *key).collect();
            numbers.retain(|number| !present.contains(&rows[*number].key()));
        }
        // The sort is stable: equal rows are in the order of the report.
        numbers.sort_by(|a, b| {
            let order = I::compare(self.column, &rows[*a], &rows[*b]);
            if self.inverted {
                order.reverse()
            } else {
                order
            }
        });
        slots.extend(
            numbers
                .into_iter()
                .map(|number| (rows[number].key(), Slot::Row(number))),
        );
    }

    /// Puts rows below those that they descend from. The order that they came in is that of
    /// each generation.
    fn arrange(&mut self, report: &Report, slots: &mut Vec<(I::Key, Slot)>) {
        self.guides.clear();
        if !self.is_family {
            return;
        }
        let rows = I::rows(report);
        let member = |(_, slot): &(I::Key, Slot)| match slot {
            Slot::Row(number) => rows[*number].member(),
            Slot::Gone => self.last_seen.as_ref()?.member(),
        };
        let members: Option<Vec<Member>> = slots.iter().map(member).collect();
        let Some(members) = members else { return };
        let arranged = family::arrange(&members);
        *slots = arranged.iter().map(|(at, _)| slots[*at]).collect();
        self.guides = arranged.into_iter().map(|(_, guides)| guides).collect();
    }

    /// Shows rows below those that they descend from, or as a list again.
    pub fn toggle_family(&mut self, report: &Report) {
        self.is_family = !self.is_family;
        self.update(report, true);
    }

    /// Whether rows are below those that they descend from.
    pub fn is_family(&self) -> bool {
        self.is_family
    }

    /// A selected row that vanished stays on its line until it is left.
    fn keep_gone(&self, slots: &mut Vec<(I::Key, Slot)>) {
        let Some(held) = self.cursor.held() else {
            return;
        };
        let known = slots.iter().any(|(key, _)| *key == held);
        if !known && self.last_seen.is_some() {
            let at = self.cursor.index().min(slots.len());
            slots.insert(at, (held, Slot::Gone));
        }
    }

    /// Forgets the selected row: if the next report does not have it, it is not kept.
    pub fn forget_last_seen(&mut self) {
        self.last_seen = None;
    }

    /// Keeps the selected row, in case the next report does not have it.
    fn remember(&mut self, report: &Report) {
        if self.cursor.held().is_none() {
            self.last_seen = None;
        } else if let Some(line) = self.selected(report)
            && !line.gone
        {
            self.last_seen = Some(line.row.clone());
        }
    }

    /// Sets how many lines there are on the screen for rows.
    pub fn resize(&mut self, height: usize) {
        self.height = height;
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

    /// Selects a row by its number. A row that was kept though it is gone leaves the table
    /// now.
    fn select(&mut self, at: usize, report: &Report) {
        let target = self.keys.get(at).copied();
        if target != self.cursor.held() {
            self.drop_gone();
        }
        // Dropping the gone row may have moved the target up by one.
        let at = target
            .and_then(|key| self.keys.iter().position(|k| *k == key))
            .unwrap_or(at);
        self.cursor.select(at, &self.keys, self.height);
        self.remember(report);
    }

    /// Lets the selection be the first row, whichever that is.
    fn watch_top(&mut self, report: &Report) {
        self.drop_gone();
        self.cursor.watch_top();
        self.remember(report);
    }

    /// Removes the row that is no longer in the report.
    fn drop_gone(&mut self) {
        if let Some(at) = self.slots.iter().position(|slot| *slot == Slot::Gone) {
            self.slots.remove(at);
            self.keys.remove(at);
            if at < self.guides.len() {
                self.guides.remove(at);
            }
        }
    }

    /// Sorts by the column with this number. If it is sorted by that column already, the
    /// order is inverted.
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

    /// Sorts by a column, the usual way round or the other.
    pub fn set_order(&mut self, column: I::Column, inverted: bool, report: &Report) {
        self.column = column;
        self.inverted = inverted;
        self.update(report, true);
    }

    /// Whether the order is the other way round than usual.
    pub fn is_inverted(&self) -> bool {
        self.inverted
    }

    /// Sorts by the column that is `by` places to the right. After the last comes the
    /// first.
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
    pub fn place(&self) -> Place<I> {
        Place {
            column: self.column,
            inverted: self.inverted,
            is_family: self.is_family,
            cursor: self.cursor.clone(),
            last_seen: self.last_seen.clone(),
        }
    }

    /// Comes back to a state. Call [`Table::update`] afterwards.
    pub fn return_to(&mut self, place: Place<I>) {
        self.column = place.column;
        self.inverted = place.inverted;
        self.is_family = place.is_family;
        self.cursor = place.cursor.come_back();
        self.last_seen = place.last_seen;
    }

    /// Marks the selected row, or removes its mark, and selects the next one.
    pub fn toggle_mark(&mut self, report: &Report) {
        let Some(line) = self.selected(report) else {
            return;
        };
        let (key, words) = (line.row.key(), line.row.words());
        match self.marks.iter().position(|(marked, _)| *marked == key) {
            Some(at) => drop(self.marks.remove(at)),
            None => self.marks.push((key, words)),
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

    /// Returns the keys of the marked rows, or else of the selected one, and words for
    /// them. None if the table is empty.
    pub fn chosen(&self, report: &Report, plural: &str) -> Option<(Vec<I::Key>, Arc<str>)> {
        if self.marks.is_empty() {
            let row = self.selected(report)?.row;
            return Some((vec![row.key()], row.words().into()));
        }
        let keys = self.marks.iter().map(|(key, _)| *key).collect();
        let words = match &self.marks[..] {
            [(_, words)] => words.as_str().into(),
            several => format!("{} {plural}", several.len()).into(),
        };
        Some((keys, words))
    }

    /// Returns the name of the selected row. None if the table is empty.
    pub fn selected_name(&self, report: &Report) -> Option<String> {
        Some(self.selected(report)?.row.name().to_owned())
    }

    /// Returns what is searched for and what was found. None if nothing is searched for.
    pub fn matches(&self) -> Option<Found<'_>> {
        let (rows, samples) = self.found;
        Some(Found {
            find: self.find.as_ref()?,
            rows,
            samples,
            of: self.len(),
        })
    }

    /// Orders the rows in another way.
    pub fn order(&mut self, order: Sort, report: &Report) {
        match order {
            Sort::Shift(by) => self.shift_column(by, report),
            Sort::By(column) => self.sort_by(column, report),
            Sort::Invert => self.invert(report),
        }
    }

    /// Begins to search, or ends the search with None.
    pub fn set_find(&mut self, find: Option<Find>, report: &Report) {
        self.find = find;
        self.count_found(report);
    }

    fn count_found(&mut self, report: &Report) {
        self.found = match &self.find {
            None => (0, 0),
            Some(find) => self
                .own_rows(report)
                .filter(|(_, row)| find.matches(row.name()))
                .fold((0, 0), |(rows, samples), (_, row)| {
                    (rows + 1, samples + row.samples())
                }),
        };
    }

    /// Selects the next match, round about, `including` the selected row.
    /// Returns which of the matches it is, from 1.
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
