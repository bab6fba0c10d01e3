//! *Diff*: which functions take more time in one selection than in another, and whether the
//! difference could be chance.
//!
//! A function is considered the same on both sides if build-id and name are equal, else if module
//! and name are equal, else if the names are equal and the modules were recognized as one program
//! whose file was renamed ([`Renamed`]). Shares of self samples are compared by the two-proportion
//! z-test; where time is compared, rates are compared by the test of two rates. Both tests take
//! into account that samples are not independent of each other, using how much they vary within
//! each side ([`spread`]). As many functions are tested at once, significance is corrected by the
//! procedure of Benjamini and Hochberg: of all changes called *sure*, one in twenty is expected to
//! be chance.

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

/// The expected fraction of false findings among the changes that are called sure.
pub const FALSE_RATE: f64 = 0.05;

/// With fewer samples on both sides together nothing is sure: the test needs
/// counts that are nearly normal.
pub const SAMPLES_MIN: f64 = 10.0;

/// CPU time in percent that other programs may use before a side counts as crowded. proftop itself
/// and the usual system activity stay below it.
const OTHERS_PERCENT: f64 = 5.0;

/// Two selections compared.
#[derive(Debug, Clone)]
pub struct Diff {
    /// The earlier selection, the baseline of the comparison.
    pub a: Side,
    /// The later selection.
    pub b: Side,
    /// The compared functions, in this order: significant growth of the self share, largest first;
    /// then significant decreases; then changes that may be chance. Growth is first because all
    /// shares are parts of one whole: a function that grew makes the others fall, and the growth is
    /// what one looks for.
    pub rows: Vec<DiffRow>,
    /// Whether the time that each function takes is tested, instead of its share.
    tests_time: bool,
    /// The tested p-values and their corrected values.
    corrected: Corrected,
    /// How much more the samples of all functions together vary than independent samples would.
    /// Used for values that do not belong to one function.
    spreads: Spreads,
    /// Number of functions that were matched by the build-id of their module.
    pub same_by_build_id: usize,
    /// Number of functions that were matched by the name of their module.
    pub same_by_module: usize,
    /// Files that have another name in B and were recognized as the same program.
    pub renamed: Vec<Renamed>,
}

/// One side of the comparison: the totals that its shares and rates refer to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// Samples that count on this side.
    pub samples: u64,
    /// Length of its window in seconds.
    pub seconds: f64,
    /// Samples per second of one busy CPU; 0 if unknown.
    pub rate_hz: u32,
    /// How busy the CPUs were in the whole recording, as far as known.
    pub busy: Busy,
    /// Number of sampled CPUs; 0 if unknown, or if samples do not measure CPU time.
    cpus: u32,
    /// Weight of one sample as statistical evidence: less than 1 where the sampling rate changed.
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

    /// Number of samples that one CPU busy for the whole window would have.
    fn ticks(&self) -> f64 {
        f64::from(self.rate_hz) * self.seconds * self.evidence
    }

    /// Whether other programs limited the CPU time of this side: the CPUs were nearly all busy, and
    /// others used more than `OTHERS_PERCENT` of that time, or an unknown part of it.
    pub fn is_crowded(&self) -> bool {
        self.busy.is_crowded()
            && self
                .others_percent()
                .is_none_or(|part| part > OTHERS_PERCENT)
    }

    /// CPU time of other programs in percent of all CPU time; `None` if unknown.
    fn others_percent(&self) -> Option<f64> {
        let own_cpus = self.cpu_ms_per_s(self.samples)? / 1000.0;
        let own = (self.cpus > 0).then(|| own_cpus * 100.0 / f64::from(self.cpus));
        Some(self.busy.percent()? - own?)
    }

    /// `samples` in percent of this side.
    pub fn share(&self, samples: u64) -> f64 {
        crate::percent(samples, self.samples)
    }

    /// CPU time of `samples` in milliseconds per second, which makes sides of different length and
    /// load comparable. `None` if the rate or the duration is unknown.
    pub fn cpu_ms_per_s(&self, samples: u64) -> Option<f64> {
        let is_known = self.rate_hz > 0 && self.seconds > 0.0;
        is_known.then(|| samples as f64 * 1000.0 / f64::from(self.rate_hz) / self.seconds)
    }
}

/// The two sides of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sides {
    /// The earlier side.
    pub a: Side,
    /// The later side.
    pub b: Side,
}

impl Sides {
    /// Returns the totals of two selections; `b` is the later one.
    pub fn of(a: &Selection, b: &Selection) -> Self {
        Self {
            a: Side::of(a),
            b: Side::of(b),
        }
    }

    /// Whether the sides can be compared in time instead of in shares. Both must know how much CPU
    /// time a sample stands for, and neither may have been limited by other programs
    /// ([`Side::is_crowded`]).
    pub fn have_time(&self) -> bool {
        let knows = |side: &Side| side.cpu_ms_per_s(0).is_some();
        knows(&self.a) && knows(&self.b) && !self.are_crowded()
    }

    /// Whether other programs limited the CPU time of at least one side.
    pub fn are_crowded(&self) -> bool {
        self.a.is_crowded() || self.b.is_crowded()
    }

    /// Whether the number of samples of at least one side is unknown. Then no change is called
    /// sure.
    pub fn hide_samples(&self) -> bool {
        let hides = |side: &Side| side.samples > 0 && side.evidence == 0.0;
        hides(&self.a) || hides(&self.b)
    }

    /// Converts a number of samples of one side to milliseconds of CPU per second, or to percent of
    /// the side if the time of one of the sides is unknown.
    pub fn amount(&self, side: &Side, samples: u64) -> f64 {
        match side.cpu_ms_per_s(samples) {
            Some(time) if self.have_time() => time,
            _ => side.share(samples),
        }
    }

    /// Difference between `now` and `before`, each in the unit of [`Sides::amount`].
    pub fn change(&self, before: u64, now: u64) -> f64 {
        self.amount(&self.b, now) - self.amount(&self.a, before)
    }
}

/// Finds the function of `selection` that matches `function` of another selection, by name and
/// module: function numbers differ between selections.
pub fn same_function(selection: &Selection, function: &Function) -> Option<FunctionId> {
    let rows = selection.functions().into_iter();
    let mut same = rows.filter(|row| row.name == function.name && row.module == function.module);
    same.next().map(|row| row.id)
}

/// One function and its samples on both sides.
#[derive(Debug, Clone, PartialEq)]
pub struct DiffRow {
    /// The function's number in B; `None` if B has no sample of it.
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
    /// The p-value of the difference of self samples: how likely it is by chance alone.
    pub chance: f64,
    /// Whether the change of its self samples is significant: of all rows marked so, one in twenty
    /// is expected to be chance.
    pub sure: bool,
    /// How much more its samples vary than independent samples would.
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
        // Lists, not single entries: two files may share a name, and so may functions in them.
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
        // Build-ids are used for all functions before module names are: two modules can have the
        // same name.
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

    /// Switches the comparison from shares to the time that each function takes, if both sides know
    /// their time; *sure* then refers to the change of time. Rows are sorted as described at
    /// [`Diff::rows`], by this change.
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

    /// Whether a change from `a` samples in A to `b` samples in B, of anything countable, is as
    /// significant as a function's change must be to be called sure.
    pub fn is_sure(&self, a: u64, b: u64) -> bool {
        self.is_tested(a, b) && self.corrected(self.chance(a, b)) <= FALSE_RATE
    }

    /// Whether `a` samples of A and `b` samples of B are enough to test for a difference.
    pub fn is_tested(&self, a: u64, b: u64) -> bool {
        is_enough(self.a.counted(a), self.b.counted(b))
    }

    /// Corrects a p-value for the number of functions that were tested at once; at most
    /// [`FALSE_RATE`] means sure.
    pub fn corrected(&self, chance: f64) -> f64 {
        self.corrected.of(chance)
    }

    /// How many functions had enough samples to be tested.
    pub fn tested(&self) -> usize {
        self.corrected.0.len()
    }

    /// P-value of a change from `a` to `b` samples, for anything that varies as functions do on
    /// average. For a single function use [`DiffRow::chance`], which uses the function's own
    /// variation.
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

    /// Whether time is tested, instead of shares.
    pub fn tests_time(&self) -> bool {
        self.tests_time
    }
}

/// A function and the keys by which it is matched.
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

    /// Key of module and name. A place without a name matches only within the same build, as far as
    /// builds can be told apart.
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

/// Builds the row of a function that at least one side has. Its name is the one of the newer side
/// if it is there. Significance is decided later, when all rows are known.
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

/// Returns the spread of all functions together, and the spread of each pair.
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

/// The tested p-values in rising order, each with its value corrected by Benjamini and Hochberg:
/// the smallest rate of false findings at which it counts as a finding.
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

    /// Returns the corrected value of a p-value. One that was not among the tested ones counts as
    /// one additional test, and is never less sure than the next larger tested value.
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

/// Sorts rows as described at [`Diff::rows`], by `change`. Rows with the same change keep their
/// order.
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

/// Marks the tested rows whose corrected p-value is small enough, and returns the corrected values.
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
        // The corrected value of a smaller p-value is never larger.
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
