use crate::few;
use crate::query::Selection;
use crate::tables::{Sample, ThreadSlot};
use crate::time::STAMPS_PER_SECOND;
use std::cmp::Reverse;
use std::sync::Arc;

/// What the rows of a heat map stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HeatBy {
    /// Equal parts of a second, from its start to its end.
    #[default]
    Parts,
    /// CPUs by their numbers.
    Cpus,
    /// Threads, those with the most samples first.
    Threads,
}

/// The rows of a heat map, so that several maps can have the same ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeatRows(Kind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Parts(usize),
    People {
        rows: Vec<HeatRow>,
        /// Index of the row of each CPU or thread.
        row_of: Vec<u32>,
        is_cpu: bool,
    },
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HeatRow {
    /// The part of a second with this number.
    Part(usize),
    /// A range of CPUs, both ends included. CPUs in between without a sample belong to it.
    Cpus {
        /// The first of them.
        first: u16,
        /// The last of them.
        last: u16,
    },
    /// One thread.
    Thread {
        /// Its number.
        tid: u32,
        /// Its name.
        comm: Arc<str>,
    },
    /// All CPUs or threads that have no row of their own, and their number.
    Others(usize),
}

impl HeatRows {
    /// Rows for equal parts of a second: 1 to 100, as sample times are kept to 10 ms.
    pub fn parts(rows: usize) -> Self {
        HeatRows(Kind::Parts(rows.clamp(1, STAMPS_PER_SECOND as usize)))
    }

    /// Number of rows, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "there is always a row")]
    pub fn len(&self) -> usize {
        match &self.0 {
            Kind::Parts(rows) => *rows,
            Kind::People { rows, .. } => rows.len().max(1),
        }
    }

    /// What the row with that index stands for; `None` if there is no such row.
    pub fn row(&self, at: usize) -> Option<HeatRow> {
        match &self.0 {
            Kind::Parts(rows) => (at < *rows).then_some(HeatRow::Part(at)),
            Kind::People { rows, .. } => rows.get(at).cloned(),
        }
    }

    /// Returns the index of the row that a sample belongs to.
    #[inline]
    pub(super) fn of(&self, sample: &Sample) -> usize {
        match &self.0 {
            Kind::Parts(rows) => {
                let part = (sample.stamp % STAMPS_PER_SECOND) as usize * rows;
                part / STAMPS_PER_SECOND as usize
            }
            Kind::People { row_of, is_cpu, .. } => {
                let number = if *is_cpu {
                    usize::from(sample.cpu)
                } else {
                    sample.thread.0 as usize
                };
                // CPUs or threads of another selection may have no row: they count in the last one.
                let row = row_of.get(number).map(|row| *row as usize);
                row.unwrap_or(usize::MAX).min(self.len() - 1)
            }
        }
    }
}

impl Selection {
    /// Returns at most `at_most` rows. If there are more CPUs, neighbours share a row; if there are
    /// more threads, the last row has all others.
    pub fn heat_rows(&self, by: HeatBy, at_most: usize) -> HeatRows {
        let at_most = at_most.max(1);
        match by {
            HeatBy::Parts => HeatRows::parts(at_most),
            HeatBy::Cpus => self.cpu_rows(at_most),
            HeatBy::Threads => self.thread_rows(at_most),
        }
    }

    /// Rows of the CPUs that have samples, in the order of their numbers.
    fn cpu_rows(&self, at_most: usize) -> HeatRows {
        let cpus: Vec<u16> = self.cpus.keys().copied().collect();
        let numbers = cpus.last().map_or(0, |last| usize::from(*last) + 1);
        let mut row_of = vec![0; numbers];
        let mut rows = Vec::new();
        for neighbours in cpus.chunks(cpus.len().div_ceil(at_most).max(1)) {
            for cpu in neighbours {
                row_of[usize::from(*cpu)] = rows.len() as u32;
            }
            if let (Some(&first), Some(&last)) = (neighbours.first(), neighbours.last()) {
                rows.push(HeatRow::Cpus { first, last });
            }
        }
        HeatRows(Kind::People {
            rows,
            row_of,
            is_cpu: true,
        })
    }

    /// Rows of the threads that have samples. If there are too many, the last row is for the rest.
    fn thread_rows(&self, at_most: usize) -> HeatRows {
        let table = &self.view.tables.processes;
        let counts = (0..).map(ThreadSlot).zip(&self.threads);
        let mut threads: Vec<(ThreadSlot, u64)> = counts
            .filter(|(_, counts)| counts.samples > 0)
            .map(|(slot, counts)| (slot, counts.samples))
            .collect();
        few::sort_by_key(&mut threads, |(slot, samples)| {
            let thread = table.thread(*slot);
            (Reverse(*samples), thread.tid, *slot)
        });
        let own = if threads.len() > at_most {
            at_most - 1
        } else {
            threads.len()
        };
        let mut row_of = vec![own as u32; self.threads.len()];
        let mut rows = Vec::with_capacity(own + 1);
        for (at, (slot, _)) in threads[..own].iter().enumerate() {
            let thread = table.thread(*slot);
            row_of[slot.0 as usize] = at as u32;
            rows.push(HeatRow::Thread {
                tid: thread.tid,
                comm: Arc::clone(&thread.comm),
            });
        }
        if own < threads.len() {
            rows.push(HeatRow::Others(threads.len() - own));
        }
        HeatRows(Kind::People {
            rows,
            row_of,
            is_cpu: false,
        })
    }
}
