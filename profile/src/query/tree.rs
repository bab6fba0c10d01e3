//! *Call trees* as ranges of sorted stacks.
//!
//! A node is a range of stacks that begin alike, so a tree consists of nothing but the sorted
//! stacks, and a node's children are found when it is opened. The full tree of 100,000 stacks would
//! have two million nodes and take seconds to build; here opening any node takes microseconds.
//!
//! ```text
//! span   stack      samples   sums       node "a" is spans 0 to 3:
//! 0      a          2         0          own: those of length 1, span 0
//! 1      a b        3         2          child "b": spans 1 and 2
//! 2      a b c      1         5          child "d": span 3
//! 3      a d        4         6
//! 4      e          1         10         samples of "a": sums[4] − sums[0] = 10
//!                             11
//! ```

mod grouped;
mod pairs;

pub use pairs::Pair;

use super::selection::{Entry, Selection};
use super::shape::Step;
use super::sort::{self, Span};
use super::{Cancel, Cancelled};
use crate::few;
use crate::intern::stopped;
use crate::tables::ThreadSlot;
use crate::{Function, FunctionId, View};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// Which end of the stacks the tree begins at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// Callees below their callers.
    #[default]
    TopDown,
    /// Callers below their callees: the first level has the functions on top of stacks.
    BottomUp,
}

/// What the first level of a tree is, above all functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GroupBy {
    /// No such level: the first one has functions.
    #[default]
    None,
    /// By the name of threads.
    Comm,
    /// By process.
    Process,
    /// By thread.
    Thread,
}

/// A call tree. It never changes.
#[derive(Debug)]
pub struct CallTree {
    view: View,
    /// The stacks as words, see [`NodeKind::of_word`], from the root of the tree on; spans hold
    /// where each begins and ends.
    words: Vec<u32>,
    /// The sorted stacks, group by group: stacks that begin alike are adjacent.
    spans: Vec<Span>,
    /// The word of each span's group, which comes before its own words. Empty without groups.
    first_words: Vec<u32>,
    /// Sum of the samples before each span, and at the end the sum of all.
    sums: Vec<u64>,
    /// Names of groups, by number.
    groups: HashMap<u32, Arc<str>>,
    direction: Direction,
}

/// One place in the tree. It is valid only for the tree that returned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// What it stands for.
    pub kind: NodeKind,
    /// Samples of this node and of all nodes below.
    pub samples: u64,
    /// Samples whose stack ends at this node. Bottom-up, these are the samples of stacks whose
    /// outermost function is this one.
    pub own: u64,
    /// Depth below the root, which has 0.
    pub depth: u32,
    /// The first span whose stack goes through the node; the last one is before `end`.
    first: u32,
    end: u32,
}

/// What a node stands for. The path of kinds from the root identifies a node in different trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeKind {
    /// The root, with all samples of the tree.
    Root,
    /// A thread, process or thread name; see [`CallTree::group_name`]. The number of a thread or
    /// process is the same in all trees of one store.
    Group(u32),
    /// A function, or a row for something missing, as [`Function::role`] says.
    Function {
        /// The function, or the row.
        id: FunctionId,
        /// Whether it was inlined there into the function above it.
        inlined: bool,
    },
}

/// Marks a word that is a group. Bit 30 marks an inlined function.
const GROUP: u32 = 1 << 31;

impl NodeKind {
    /// Returns what a word of a stack stands for.
    fn of_word(word: u32) -> Self {
        if word & GROUP != 0 {
            return NodeKind::Group(word & !GROUP);
        }
        NodeKind::Function {
            id: Step(word).function(),
            inlined: Step(word).is_inlined(),
        }
    }
}

impl Selection {
    /// Builds the call tree of all selected samples.
    pub fn tree(
        &self,
        direction: Direction,
        group_by: GroupBy,
        cancel: &Cancel,
    ) -> Result<CallTree, Cancelled> {
        let mut builder = Builder::default();
        for (at, entry) in (0u32..).zip(&self.entries) {
            if (at as usize).is_multiple_of(super::selection::STEP) {
                cancel.check()?;
            }
            builder.push(self, direction, entry, at);
        }
        sort::sort(&builder.words, &mut builder.items, cancel)?;
        // Entries in the order of their sorted stacks.
        let ranked: Vec<u32> = builder.items.iter().map(|(_, entry)| *entry).collect();
        let mut tree = CallTree {
            view: self.view.clone(),
            words: builder.words,
            spans: Vec::new(),
            first_words: Vec::new(),
            sums: vec![0],
            groups: HashMap::new(),
            direction,
        };
        if group_by == GroupBy::None {
            tree.spans = builder.items.into_iter().map(|(span, _)| span).collect();
            for entry in ranked {
                tree.add_sum(self.entries[entry as usize].samples);
            }
            return Ok(tree);
        }
        let (group_of, names) = self.group_threads(group_by);
        let groups = names.len();
        let spans = builder.items;
        grouped::count(
            self,
            &ranked,
            &group_of,
            groups,
            cancel,
            |group, rank, samples| {
                tree.spans.push(spans[rank as usize].0);
                tree.first_words.push(names[group as usize].0 | GROUP);
                tree.add_sum(samples);
            },
        )?;
        tree.groups = names.into_iter().collect();
        Ok(tree)
    }

    /// The group of each thread, and the number and name of each group.
    fn group_threads(&self, group_by: GroupBy) -> (Vec<u32>, Vec<(u32, Arc<str>)>) {
        let table = &self.view.tables.processes;
        let mut names: Vec<(u32, Arc<str>)> = Vec::new();
        // Groups by process, thread and name; parts that do not distinguish groups are left empty.
        let mut known: HashMap<(u32, u32, Arc<str>), u32> = HashMap::new();
        let group_of = (0..)
            .map(ThreadSlot)
            .zip(&self.threads)
            .map(|(slot, tally)| {
                if tally.samples == 0 {
                    return 0;
                }
                let thread = table.thread(slot);
                let process = table.get(thread.process);
                let comm = process.map_or(&thread.comm, |p| &p.comm);
                let (key, name) = match group_by {
                    GroupBy::None | GroupBy::Comm => {
                        ((0, 0, thread.comm.clone()), thread.comm.clone())
                    }
                    GroupBy::Process => {
                        let pid = process.map_or(thread.tid, |p| p.pid);
                        let name = format!("{comm}[{pid}]");
                        ((thread.process.0, 0, Arc::default()), name.into())
                    }
                    GroupBy::Thread => {
                        let name = format!("{}/{}", thread.comm, thread.tid);
                        ((thread.process.0, thread.tid, Arc::default()), name.into())
                    }
                };
                *known.entry(key).or_insert_with(|| {
                    let number = match group_by {
                        GroupBy::Process => thread.process.0,
                        _ => slot.0,
                    };
                    names.push((number & !GROUP, name));
                    names.len() as u32 - 1
                })
            })
            .collect();
        (group_of, names)
    }
}

#[derive(Default)]
struct Builder {
    words: Vec<u32>,
    /// The words of each entry, with the number of the entry.
    items: Vec<(Span, u32)>,
}

impl Builder {
    /// Adds an entry's path from the root of the tree.
    fn push(&mut self, selection: &Selection, direction: Direction, entry: &Entry, number: u32) {
        let start = self.words.len() as u32;
        // If the walk did not reach the root, the reason takes the place of the root.
        let is_cut = entry.ending.is_user_stack() && !entry.ending.is_whole();
        let cut = is_cut.then(|| stopped(entry.ending).0);
        let shape = selection.shape(entry.shape);
        match direction {
            Direction::TopDown => {
                self.words.extend(cut);
                self.words.extend(shape.iter().rev());
            }
            Direction::BottomUp => {
                self.words.extend(shape);
                self.words.extend(cut);
            }
        }
        let len = self.words.len() as u32 - start;
        self.items.push((Span { start, len }, number));
    }
}

impl CallTree {
    /// Whether callers are above or below their callees.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// The node of all samples.
    pub fn root(&self) -> Node {
        Node {
            kind: NodeKind::Root,
            samples: self.sums.last().copied().unwrap_or(0),
            own: 0,
            depth: 0,
            first: 0,
            end: self.spans.len() as u32,
        }
    }

    /// The nodes directly below `node`, by samples, falling.
    pub fn children(&self, node: &Node) -> Vec<Node> {
        let mut children = self.children_unsorted(node);
        few::sort_by_key(&mut children, |child| Reverse(child.samples));
        children
    }

    /// The nodes directly below `node`, in an order that does not depend on counts.
    pub(super) fn children_unsorted(&self, node: &Node) -> Vec<Node> {
        let mut children = Vec::new();
        let mut first = self.end_of_own(node);
        while first < node.end {
            let word = self.word(first, node.depth);
            let end = self.run_end(first, node.end, node.depth, word);
            let mut child = Node {
                kind: NodeKind::of_word(word),
                samples: self.sum(first, end),
                own: 0,
                depth: node.depth + 1,
                first,
                end,
            };
            child.own = self.sum(first, self.end_of_own(&child));
            children.push(child);
            first = end;
        }
        children
    }

    /// Whether there are nodes below `node`.
    pub fn has_children(&self, node: &Node) -> bool {
        self.end_of_own(node) < node.end
    }

    /// Returns the node at the end of a path from the root, if there is one.
    pub fn find(&self, path: &[NodeKind]) -> Option<Node> {
        path.iter().try_fold(self.root(), |node, kind| {
            let mut children = self.children_unsorted(&node).into_iter();
            children.find(|child| child.kind == *kind)
        })
    }

    /// Returns the path from a node down to the heaviest child, repeated while the child has at
    /// least `share` of the node's samples.
    pub fn hot_path(&self, node: &Node, share: f64) -> Vec<Node> {
        let mut path = Vec::new();
        let mut at = *node;
        while let Some(next) = self.children(&at).into_iter().next()
            && next.samples as f64 >= at.samples as f64 * share
        {
            path.push(next);
            at = next;
        }
        path
    }

    /// Returns the stack below a node that has most samples, root first, and its samples.
    pub fn heaviest_stack(&self, node: &Node) -> Option<(Vec<NodeKind>, u64)> {
        let mut best: Option<(u32, u64)> = None;
        for (at, end) in self.runs(node.first, node.end) {
            let samples = self.sum(at, end);
            if best.is_none_or(|(_, most)| samples > most) {
                best = Some((at, samples));
            }
        }
        let (at, samples) = best?;
        Some((self.path(at), samples))
    }

    /// All stacks from the root, in sorted order, with their samples; used to write files.
    pub fn stacks(&self) -> impl Iterator<Item = (Vec<NodeKind>, u64)> {
        let runs = self.runs(0, self.spans.len() as u32);
        runs.map(|(at, end)| (self.path(at), self.sum(at, end)))
    }

    /// Runs of equal stacks, each as its first span and its end.
    fn runs(&self, first: u32, end: u32) -> impl Iterator<Item = (u32, u32)> {
        let mut at = first;
        std::iter::from_fn(move || {
            let start = at;
            if start >= end {
                return None;
            }
            at += 1;
            while at < end && self.is_same(start, at) {
                at += 1;
            }
            Some((start, at))
        })
    }

    /// Whether two spans are the same stack of the same group: entries that differ only in their
    /// ending can be.
    fn is_same(&self, a: u32, b: u32) -> bool {
        let (a, b) = (a as usize, b as usize);
        self.first_words.get(a) == self.first_words.get(b)
            && self.spans[a].words(&self.words) == self.spans[b].words(&self.words)
    }

    /// The path from the root to the end of a span's stack.
    fn path(&self, span: u32) -> Vec<NodeKind> {
        let first = self.first_words.get(span as usize);
        let words = self.spans[span as usize].words(&self.words);
        first
            .into_iter()
            .chain(words)
            .map(|word| NodeKind::of_word(*word))
            .collect()
    }

    /// Returns the description of a function node.
    pub fn function(&self, id: FunctionId) -> Function {
        self.view.function(id)
    }

    /// Whether waiting time is counted and a node stands for a function of a program's own code.
    /// Callers show such a node even where they shorten a path: the frames of libraries and of the
    /// kernel around it are much the same for all waits.
    pub fn waits_in_own_code(&self, kind: NodeKind) -> bool {
        let NodeKind::Function { id, .. } = kind else {
            return false;
        };
        self.view.info().metric.is_waiting() && self.view.is_own_code(id)
    }

    /// The name of a [`NodeKind::Group`]; `None` if the tree has no such group.
    pub fn group_name(&self, group: u32) -> Option<&Arc<str>> {
        self.groups.get(&group)
    }

    /// The displayed name of a node.
    pub fn name(&self, kind: NodeKind) -> Arc<str> {
        match kind {
            NodeKind::Root => "all".into(),
            NodeKind::Group(group) => self.group_name(group).cloned().unwrap_or_default(),
            NodeKind::Function { id, .. } => self.view.function(id).name,
        }
    }

    /// Sum of the samples of the spans from `first` up to `end`, by one subtraction.
    fn sum(&self, first: u32, end: u32) -> u64 {
        self.sums[end as usize] - self.sums[first as usize]
    }

    /// Adds the sum for the next span.
    fn add_sum(&mut self, samples: u64) {
        let before = self.sums.last().copied().unwrap_or(0);
        self.sums.push(before + samples);
    }

    /// Number of words before the words of the spans.
    fn ahead(&self) -> u32 {
        u32::from(!self.first_words.is_empty())
    }

    /// The word of a span at a depth, where 0 is the first level below the root.
    #[inline]
    fn word(&self, span: u32, depth: u32) -> u32 {
        match depth.checked_sub(self.ahead()) {
            Some(depth) => self.words[(self.spans[span as usize].start + depth) as usize],
            None => self.first_words[span as usize],
        }
    }

    /// The end of the stacks that end at the node: they are sorted first.
    fn end_of_own(&self, node: &Node) -> u32 {
        let spans = &self.spans[node.first as usize..node.end as usize];
        let ahead = self.ahead();
        node.first + spans.partition_point(|span| span.len + ahead <= node.depth) as u32
    }

    /// Returns the end of the run of spans that have `word` at `depth`, by doubling steps and then
    /// a binary search.
    fn run_end(&self, first: u32, end: u32, depth: u32, word: u32) -> u32 {
        let mut step = 1;
        let mut low = first;
        while low + step < end && self.word(low + step, depth) == word {
            low += step;
            step *= 2;
        }
        let mut high = end.min(low + step);
        // The first one that is another.
        low += 1;
        while low < high {
            let middle = low + (high - low) / 2;
            if self.word(middle, depth) == word {
                low = middle + 1
            } else {
                high = middle
            }
        }
        low
    }
}
