//! *Diff*: what takes more time in one selection than in another, and whether
//! that could be chance.
//!
//! A function is the same in both if build-id and name are equal, else if
//! module and name are, else if the names are and the modules are taken for one program
//! whose file was renamed ([`Renamed`]). Shares of self samples are compared by the
//! two-proportion z-test, and where time is compared, rates by the test of two
//! rates. Both take into account that samples are not independent of each other, by how much
//! they vary within each side ([`spread`]). As many functions are compared at once, what is
//! called *sure* is corrected by Benjamini and Hochberg: of all that is called
//! so, one in twenty is expected to be chance.

mod apart;
mod binomial;
mod chance;
mod renamed;
mod spread;
mod student;

pub use apart::{Apart, PartTest, apart};
pub use renamed::Renamed;
pub use student::chance as student_chance;

use crate::few;
use crate::{Busy, Function, FunctionId, FunctionRow, Metric, RowName, Selection};
use chance::{Counted, is_enough, of_rates, of_shares};
use spread::{BothParts, Measured, Spreads};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// The share of the changes called sure that may be chance.
pub const FALSE_RATE: f64 = 0.05;

/// With fewer samples on both sides together nothing is sure: the test needs
/// counts that are nearly normal.
pub const SAMPLES_MIN: f64 = 10.0;

/// As much as this others may have had of busy CPUs without a word: proftop itself, and what a
/// system does always.
const OTHERS_PERCENT: f64 = 5.0;

/// Two selections compared.
#[derive(Debug, Clone)]
pub struct Diff {
    /// The earlier selection, which the other is compared with.
    pub a: Side,
    /// The later selection.
    pub b: Side,
    /// First what surely grew, by how much its self share changed, most first; then what
    /// surely fell, and then what may be chance. Of one busy CPU all shares are parts: what
    /// grew makes others fall, and is what somebody who compares looks for.
    pub rows: Vec<DiffRow>,
    /// What is tested is how much time each takes, and not which share.
    tests_time: bool,
    /// What the correction makes of the chances that were tested.
    corrected: Corrected,
    /// How much more the samples of all functions together vary than independent ones, for what
    /// is no function.
    spreads: Spreads,
    /// Functions that were told to be the same by the build-id of their module.
    pub same_by_build_id: usize,
    /// Functions that were told to be the same by the name of their module.
    pub same_by_module: usize,
    /// Files that are called otherwise in B, and were taken for the same program.
    pub renamed: Vec<Renamed>,
}

/// What one side's numbers are shares of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// Samples that count on this side.
    pub samples: u64,
    /// Length of its window.
    pub seconds: f64,
    /// 0 if it is not known.
    pub rate_hz: u32,
    /// How busy the CPUs were in the whole recording, as far as that is known.
    pub busy: Busy,
    /// CPUs that were sampled; 0 if that is not known, or if samples are not of time on CPUs.
    cpus: u32,
    /// What one of them tells: less than one sample, where the rate changed.
    evidence: f64,
}

impl Side {
    fn of(selection: &Selection) -> Self {
        let info = selection.view().info();
        let is_on_cpu = info.metric == Metric::default();
        Self {
            samples: selection.samples(),
            seconds: selection.window().seconds(),
            rate_hz: selection.rate_hz(),
            busy: selection.view().busy(),
            cpus: if is_on_cpu {
                info.host.cpus_sampled()
            } else {
                0
            },
            evidence: selection.evidence(),
        }
    }

    fn counted(&self, samples: u64) -> Counted {
        Counted {
            of_all: self.samples as f64 * self.evidence,
            samples: samples as f64 * self.evidence,
        }
    }

    /// Samples that one busy CPU would have.
    fn ticks(&self) -> f64 {
        f64::from(self.rate_hz) * self.seconds * self.evidence
    }

    /// Whether what else ran decided how much CPU time this side has: hardly any was left, and
    /// others had a part of it.
    pub fn is_crowded(&self) -> bool {
        self.busy.is_crowded()
            && self
                .others_percent()
                .is_none_or(|part| part > OTHERS_PERCENT)
    }

    /// How much of the time of the CPUs other programs had than those of this side; `None` if that
    /// is not known.
    fn others_percent(&self) -> Option<f64> {
        let own_cpus = self.cpu_ms_per_s(self.samples)? / 1000.0;
        let own = (self.cpus > 0).then(|| own_cpus * 100.0 / f64::from(self.cpus));
        Some(self.busy.percent()? - own?)
    }

    /// In percent of this side.
    pub fn share(&self, samples: u64) -> f64 {
        crate::percent(samples, self.samples)
    }

    /// Milliseconds of CPU per second: what makes sides of different length and
    /// load comparable. `None` where rate or time are not known.
    pub fn cpu_ms_per_s(&self, samples: u64) -> Option<f64> {
        let is_known = self.rate_hz > 0 && self.seconds > 0.0;
        is_known.then(|| samples as f64 * 1000.0 / f64::from(self.rate_hz) / self.seconds)
    }
}

/// Both of what is compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sides {
    /// The earlier one.
    pub a: Side,
    /// The later one.
    pub b: Side,
}

impl Sides {
    /// What the numbers of two selections are shares of; `b` is the later one.
    pub fn of(a: &Selection, b: &Selection) -> Self {
        Self {
            a: Side::of(a),
            b: Side::of(b),
        }
    }

    /// Whether both know how much CPU time a sample stands for, and it was not others who decided
    /// how much there was ([`Side::is_crowded`]): only then do sides of different length and load
    /// compare in time.
    pub fn have_time(&self) -> bool {
        let knows = |side: &Side| side.cpu_ms_per_s(0).is_some();
        knows(&self.a) && knows(&self.b) && !self.are_crowded()
    }

    /// Whether what else ran decided how much CPU time one of the two has.
    pub fn are_crowded(&self) -> bool {
        self.a.is_crowded() || self.b.is_crowded()
    }

    /// Whether it is not known of one of the two how many samples it was made of: no change is
    /// sure then.
    pub fn hide_samples(&self) -> bool {
        let hides = |side: &Side| side.samples > 0 && side.evidence == 0.0;
        hides(&self.a) || hides(&self.b)
    }

    /// So many samples of one side in milliseconds of CPU per second, or, where
    /// time is not known of both, in percent of the side.
    pub fn amount(&self, side: &Side, samples: u64) -> f64 {
        match side.cpu_ms_per_s(samples) {
            Some(time) if self.have_time() => time,
            _ => side.share(samples),
        }
    }

    /// By how much that became more.
    pub fn change(&self, before: u64, now: u64) -> f64 {
        self.amount(&self.b, now) - self.amount(&self.a, before)
    }
}

/// The function of a selection that is this one of another: by name and module, as
/// its number may be another there.
pub fn same_function(selection: &Selection, function: &Function) -> Option<FunctionId> {
    let rows = selection.functions().into_iter();
    let mut same = rows.filter(|row| row.name == function.name && row.module == function.module);
    same.next().map(|row| row.id)
}

/// One function on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct DiffRow {
    /// In B; `None` if it is gone.
    pub id: Option<FunctionId>,
    /// Its name, or `module+0xoffset` while it has none.
    pub name: Arc<str>,
    /// The short name of its module.
    pub module: Arc<str>,
    /// Samples in A with it on top of the stack.
    pub a_self: u64,
    /// Samples in A with it anywhere on the stack.
    pub a_total: u64,
    /// Samples in B with it on top of the stack.
    pub b_self: u64,
    /// Samples in B with it anywhere on the stack.
    pub b_total: u64,
    /// How likely such a difference of self samples is by chance alone.
    pub chance: f64,
    /// Whether the change of its self samples is significant: of the rows that are called
    /// so, one in twenty is expected to be so by chance.
    pub sure: bool,
    /// How much more its samples vary than independent ones.
    spreads: Spreads,
}

impl DiffRow {
    /// Whether A has no sample of it.
    pub fn is_new(&self) -> bool {
        self.a_total == 0
    }

    /// Whether B has no sample of it.
    pub fn is_gone(&self) -> bool {
        self.b_total == 0
    }
}

impl Diff {
    /// Compares `b`, the later one, with `a`.
    pub fn new(a: &Selection, b: &Selection) -> Self {
        let mut before: Vec<Option<Known>> = known(a).into_iter().map(Some).collect();
        let after = known(b);
        // Two files may share a name, and so may functions in them.
        let mut by_build_id: HashMap<BuildKey, Vec<usize>> = HashMap::new();
        let mut by_module: HashMap<ModuleKey, Vec<usize>> = HashMap::new();
        for (at, function) in before.iter().flatten().enumerate() {
            if let Some(key) = function.build_key() {
                by_build_id.entry(key).or_default().push(at);
            }
            if let Some(key) = function.module_key() {
                by_module.entry(key).or_default().push(at);
            }
        }
        let mut matched: Vec<Option<usize>> = vec![None; after.len()];
        let mut taken = vec![false; before.len()];
        let mut same = [0, 0];
        // All that build-ids tell first: a module's name may be that of two.
        for pass in [0, 1] {
            for (function, found) in after.iter().zip(&mut matched) {
                let candidates = match pass {
                    0 => function.build_key().and_then(|key| by_build_id.get(&key)),
                    _ => function.module_key().and_then(|key| by_module.get(&key)),
                };
                let mut free = candidates.into_iter().flatten().filter(|at| !taken[**at]);
                if found.is_none()
                    && let Some(at) = free.next().copied()
                {
                    (*found, taken[at]) = (Some(at), true);
                    same[pass] += 1;
                }
            }
        }
        let all_before: Vec<&Known> = before.iter().flatten().collect();
        let (renamed, places) = renamed::find(&all_before, &after);
        for (before_at, after_at) in places {
            if !taken[before_at] && matched[after_at].is_none() {
                (matched[after_at], taken[before_at]) = (Some(before_at), true);
            }
        }
        let (side_a, side_b) = (Side::of(a), Side::of(b));
        let mut pairs: Vec<[Option<Known>; 2]> = Vec::new();
        for (function, found) in after.into_iter().zip(matched) {
            let other = found.and_then(|at| before[at].take());
            pairs.push([other, Some(function)]);
        }
        let gone = before.into_iter().flatten();
        pairs.extend(gone.map(|function| [Some(function), None]));
        let (spreads, of_pairs) = measure_spreads(a, b, &pairs);
        let rows = pairs.iter().zip(of_pairs).map(|([a, b], spreads)| DiffRow {
            spreads,
            ..row(a.as_ref().map(|k| &k.row), b.as_ref().map(|k| &k.row))
        });
        let mut rows: Vec<DiffRow> = rows.collect();
        for row in &mut rows {
            let (a, b) = (side_a.counted(row.a_self), side_b.counted(row.b_self));
            row.chance = of_shares(a, b, row.spreads.shares);
        }
        let is_tested =
            |row: &DiffRow| is_enough(side_a.counted(row.a_self), side_b.counted(row.b_self));
        let corrected = mark_sure(&mut rows, is_tested);
        few::sort_by(&mut rows, |x, y| {
            (Reverse(x.b_total), &x.name).cmp(&(Reverse(y.b_total), &y.name))
        });
        let change = |row: &DiffRow| side_b.share(row.b_self) - side_a.share(row.a_self);
        order(&mut rows, change);
        Self {
            a: side_a,
            b: side_b,
            rows,
            tests_time: false,
            corrected,
            spreads,
            same_by_build_id: same[0],
            same_by_module: same[1],
            renamed,
        }
    }
}

impl Diff {
    /// Both sides, without the rows.
    pub fn sides(&self) -> Sides {
        Sides {
            a: self.a,
            b: self.b,
        }
    }

    /// Compares the time that each function takes, where both sides know time, and no
    /// longer its share: what is called sure is then a change of what is shown. The order of
    /// rows is that of [`Diff::rows`], by this change.
    pub fn compare_time(&mut self) {
        let sides = self.sides();
        if sides.have_time() {
            self.tests_time = true;
            let chances: Vec<f64> = self
                .rows
                .iter()
                .map(|row| self.chance_spread(row.a_self, row.b_self, row.spreads))
                .collect();
            for (row, chance) in self.rows.iter_mut().zip(chances) {
                row.chance = chance;
            }
            let is_tested =
                |row: &DiffRow| is_enough(sides.a.counted(row.a_self), sides.b.counted(row.b_self));
            self.corrected = mark_sure(&mut self.rows, is_tested);
        }
        order(&mut self.rows, |row| sides.change(row.a_self, row.b_self));
    }

    /// Whether so many samples of A against so many of B, of whatever, are as sure
    /// a change as that of a function that is called so.
    pub fn is_sure(&self, a: u64, b: u64) -> bool {
        self.is_tested(a, b) && self.corrected(self.chance(a, b)) <= FALSE_RATE
    }

    /// Whether `a` samples of A and `b` samples of B are enough to test for a difference.
    pub fn is_tested(&self, a: u64, b: u64) -> bool {
        is_enough(self.a.counted(a), self.b.counted(b))
    }

    /// A chance corrected for how many functions were tested at once: what is at most
    /// [`FALSE_RATE`] is called sure.
    pub fn corrected(&self, chance: f64) -> f64 {
        self.corrected.of(chance)
    }

    /// How many functions had enough samples to be tested.
    pub fn tested(&self) -> usize {
        self.corrected.0.len()
    }

    /// How likely such a difference is by chance alone, of anything that varies as functions do
    /// in the mean. That of a function is [`DiffRow::chance`], by how much it varies itself.
    pub fn chance(&self, a: u64, b: u64) -> f64 {
        self.chance_spread(a, b, self.spreads)
    }

    fn chance_spread(&self, a: u64, b: u64, spreads: Spreads) -> f64 {
        let (a, b) = (self.a.counted(a), self.b.counted(b));
        if self.tests_time {
            of_rates(
                (a.samples, self.a.ticks()),
                (b.samples, self.b.ticks()),
                spreads.time,
            )
        } else {
            of_shares(a, b, spreads.shares)
        }
    }

    /// Whether what is tested is time, and not shares.
    pub fn tests_time(&self) -> bool {
        self.tests_time
    }
}

/// A function and what it is known by.
struct Known {
    row: FunctionRow,
    build_id: Arc<[u8]>,
}

type BuildKey = (Arc<[u8]>, Arc<str>);
type ModuleKey = (Arc<str>, Arc<str>);

impl Known {
    fn build_key(&self) -> Option<BuildKey> {
        (!self.build_id.is_empty()).then(|| (self.build_id.clone(), self.row.name.clone()))
    }

    /// A place without a name is the same only in the same build, as far as that
    /// can be told.
    fn module_key(&self) -> Option<ModuleKey> {
        let is_named = self.row.name_state == RowName::Named;
        (is_named || self.build_id.is_empty())
            .then(|| (self.row.module.clone(), self.row.name.clone()))
    }
}

fn known(selection: &Selection) -> Vec<Known> {
    let rows = selection.functions().into_iter();
    rows.map(|row| Known {
        build_id: selection.view().function(row.id).build_id,
        row,
    })
    .collect()
}

/// The row of a function that is in at least one side. It is called as in the newer one
/// if it is there. Whether the difference is sure is decided later, when all rows are
/// known.
fn row(a: Option<&FunctionRow>, b: Option<&FunctionRow>) -> DiffRow {
    let shown = b.or(a);
    DiffRow {
        id: b.map(|row| row.id),
        name: shown.map(|row| row.name.clone()).unwrap_or_default(),
        module: shown.map(|row| row.module.clone()).unwrap_or_default(),
        a_self: a.map_or(0, |row| row.self_samples),
        a_total: a.map_or(0, |row| row.total_samples),
        b_self: b.map_or(0, |row| row.self_samples),
        b_total: b.map_or(0, |row| row.total_samples),
        chance: 1.0,
        sure: false,
        spreads: Spreads::NONE,
    }
}

/// Returns the spread of all functions together, and that of each pair.
fn measure_spreads(
    a: &Selection,
    b: &Selection,
    pairs: &[[Option<Known>; 2]],
) -> (Spreads, Vec<Spreads>) {
    let parts = BothParts::of(a, b);
    let measure = |pair: &[Option<Known>; 2]| {
        let [a, b] = pair;
        parts.measure([a, b].map(|side| side.as_ref().map(|known| known.row.id)))
    };
    let measured: Vec<Measured> = pairs.iter().map(measure).collect();
    let mut all = Measured::default();
    measured.iter().for_each(|of_pair| all.add(of_pair));
    let of_pairs = measured.iter().map(|of_pair| of_pair.spreads(&all));
    (all.spreads(&all), of_pairs.collect())
}

/// The chances that were tested, in rising order, each with what Benjamini and Hochberg's
/// correction makes of it: the smallest rate of false findings at which it is one.
#[derive(Debug, Clone, Default)]
struct Corrected(Vec<(f64, f64)>);

impl Corrected {
    fn new(mut chances: Vec<f64>) -> Self {
        few::sort_by(&mut chances, f64::total_cmp);
        let tests = chances.len() as f64;
        let mut least = 1.0_f64;
        let mut corrected: Vec<(f64, f64)> = (1..)
            .zip(chances)
            .map(|(rank, chance)| (chance, chance * tests / f64::from(rank)))
            .collect();
        for (_, corrected) in corrected.iter_mut().rev() {
            least = least.min(*corrected);
            *corrected = least;
        }
        Self(corrected)
    }

    /// What is made of a chance; one that was not tested counts as one test more, and is no
    /// less sure than the next larger that was.
    fn of(&self, chance: f64) -> f64 {
        let at = self.0.partition_point(|(tested, _)| *tested < chance);
        let next = self.0.get(at);
        if let Some((_, corrected)) = next.filter(|(tested, _)| *tested == chance) {
            return *corrected;
        }
        let own = chance * (self.0.len() + 1) as f64 / (at + 1) as f64;
        next.map_or(1.0, |(_, corrected)| *corrected).min(own)
    }
}

/// Puts rows into the order of [`Diff::rows`], by this change of each. Rows that changed as
/// much keep their order.
fn order(rows: &mut [DiffRow], change: impl Fn(&DiffRow) -> f64) {
    let part = |row: &DiffRow| match (row.sure, change(row) > 0.0) {
        (true, true) => 0,
        (true, false) => 1,
        (false, _) => 2,
    };
    few::sort_by(rows, |x, y| {
        let by_change = change(y).abs().total_cmp(&change(x).abs());
        part(x).cmp(&part(y)).then(by_change)
    });
}

/// Marks the rows whose corrected chance is small enough.
fn mark_sure(rows: &mut [DiffRow], tested: impl Fn(&DiffRow) -> bool) -> Corrected {
    let chances = rows.iter().filter(|row| tested(row));
    let corrected = Corrected::new(chances.map(|row| row.chance).collect());
    for row in rows {
        row.sure = tested(row) && corrected.of(row.chance) <= FALSE_RATE;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corrected_chance_counts_what_was_tested() {
        let corrected = Corrected::new(vec![0.04, 0.5, 0.001, 0.03]);
        let of = |chance| (corrected.of(chance) * 1e6).round() / 1e6;
        assert_eq!(of(0.001), 0.004);
        // That of a smaller chance is never larger.
        assert_eq!([of(0.03), of(0.04)], [0.053333, 0.053333]);
        assert_eq!(of(0.5), 0.5);
        // One test more, of five: the second, the first, and the last.
        assert_eq!([of(0.002), of(1e-5), of(0.9)], [0.005, 0.00005, 0.9]);
        assert_eq!(Corrected::default().of(0.001), 0.001);
    }

    #[test]
    fn many_tests_need_smaller_chances() {
        let row = |chance| DiffRow {
            chance,
            ..DiffRow {
                id: None,
                name: "f".into(),
                module: "m".into(),
                a_self: 50,
                a_total: 50,
                b_self: 50,
                b_total: 50,
                chance: 0.0,
                sure: false,
                spreads: Spreads::NONE,
            }
        };
        // 0.0125, 0.025, 0.0375 and 0.05 are the bounds of four.
        let mut rows = [0.01, 0.03, 0.035, 0.9].map(row);
        mark_sure(&mut rows, |_| true);
        assert_eq!(rows.map(|row| row.sure), [true, true, true, false]);
        let mut rows = [0.02, 0.03, 0.04, 0.9].map(row);
        mark_sure(&mut rows, |_| true);
        assert_eq!(rows.map(|row| row.sure), [false; 4]);
    }
}
