//! A report as a table for people. All lines except those of the table start with `#`.
//!
//! ```text
//! # proftop 0.1.0 host db-01 pid 4121 window 10.0s rate 99 Hz
//! # samples 3277 lost 0 whole 98.9% symbols 96.1% pending 0.4% own 0.8% of 1 CPU rss 34 MB
//! SELF%  ERR TOTAL%  SMP FUNCTION                     MODULE
//!  14.2  1.2   14.9  465 hash_search_with_hash_value  postgres
//!  85.8    -      -    - 416 more                     -
//! ```

use super::BatchReport;
use crate::words::plain::plain;
use crate::words::{held, metric, names, tasks, text, waits};
use probe::EngineKind;
use profile::{FunctionRow, Report, percent};
use std::borrow::Cow;
use std::fmt::Write;
use unicode_width::UnicodeWidthStr;

/// Minimum number of cells for a name. A line that is too long for the terminal is better than a
/// name that cannot be recognized.
const FUNCTION_WIDTH_MIN: usize = 12;

/// Maximum number of cells for a name in a file or pipe, so that one very long name does not push
/// the modules of all rows far to the right. CSV and JSON have every name in full.
const FUNCTION_WIDTH_MAX: usize = 80;

/// The heads of the columns of numbers. The fourth one becomes [`metric::column_head`] if the
/// metric is known. If waits are counted, [`WAIT_HEADS`] follow.
const HEADS: [&str; 4] = ["SELF%", "ERR", "TOTAL%", "SMP"];

/// The heads for the number of waits, and for their mean and maximum in milliseconds.
const WAIT_HEADS: [&str; 3] = ["WAITS", "MEAN", "LONGEST"];

/// The minimum width of each column of numbers, so that successive reports line up.
const NUMBER_WIDTHS: [usize; 7] = [5, 4, 6, 4, 5, 5, 7];

/// A line of the table. The heads are one, too.
struct Cells {
    /// Numbers, aligned at the right.
    numbers: Vec<String>,
    function: String,
    module: String,
}

/// Returns the report: lines that begin with `#`, heads, a row for each function, and a row that
/// sums up the functions that are not listed.
pub(super) fn render(report: &BatchReport<'_>) -> String {
    let mut out = String::new();
    head(report, &mut out).expect("a string takes everything");
    let (shown, rest) = report.split();
    let mut heads = HEADS.map(str::to_string).to_vec();
    if let Some(view) = &report.snapshot.view {
        heads[3] = metric::column_head(&view.info().metric).into();
    }
    let has_waits = shown.iter().any(|row| row.waits.is_some());
    if has_waits {
        heads.extend(WAIT_HEADS.map(str::to_string));
    }
    let mut table = vec![Cells {
        numbers: heads,
        function: "FUNCTION".into(),
        module: "MODULE".into(),
    }];
    table.extend(shown.iter().map(|row| cells(row, report, has_waits)));
    if !rest.is_empty() {
        let numbers = table[0].numbers.len();
        table.push(more(rest, &report.snapshot.report, numbers));
    }
    lay_out(&mut table, report.width, &mut out);
    out
}

/// Writes the lines that begin with `#`: the target, the completeness of the samples, and a line
/// for each note.
fn head(batch: &BatchReport<'_>, out: &mut String) -> std::fmt::Result {
    let snapshot = batch.snapshot;
    let (report, health) = (&snapshot.report, &snapshot.health);
    write!(out, "# proftop {}", plain(batch.version))?;
    // A recording may lack the name of its host and the rate.
    if !snapshot.source.host.name.is_empty() {
        write!(out, " host {}", plain(&snapshot.source.host.name))?;
    }
    if let [first, more @ ..] = batch.pids {
        write!(out, " pid {first}")?;
        more.iter().try_for_each(|pid| write!(out, ",{pid}"))?;
    }
    if (batch.pids.is_empty() || batch.has_other_filters) && !snapshot.run.scope.is_empty() {
        write!(out, " scope {}", plain(&snapshot.run.scope))?;
    }
    match batch.window_seconds() {
        Some(seconds) => write!(out, " window {seconds:.1}s")?,
        None => write!(out, " window -")?,
    }
    if snapshot.report.rate_hz > 0 {
        write!(out, " rate {} Hz", snapshot.report.rate_hz)?;
    }
    let is_live = snapshot.source.recording.is_none();
    if is_live && snapshot.source.engine != Some(EngineKind::Bpf) {
        write!(
            out,
            " engine {}",
            snapshot.source.engine.map_or("", EngineKind::label)
        )?;
    }
    writeln!(out)?;

    let lacks = &report.completeness;
    match (batch.counts_time(), batch.events()) {
        (true, _) => write!(out, "# {} {} ms", batch.metric_word(), ms(report.samples))?,
        (false, None) => write!(out, "# samples {}", report.samples)?,
        (false, Some(metric)) => {
            write!(out, "# {} {}", metric::unit_of(metric), report.samples)?;
        }
    }
    write!(out, " lost {}", health.lost)?;
    write!(out, " whole {}", part(lacks.whole, lacks.user_stacks))?;
    if snapshot
        .source
        .recording
        .as_ref()
        .is_some_and(|file| file.lacks.unnamed)
    {
        write!(out, " symbols -")?
    } else {
        write!(out, " symbols {}", part(lacks.named, lacks.frames))?
    }
    if lacks.pending > 0 {
        write!(out, " pending {}", part(lacks.pending, lacks.frames))?;
    }
    if is_live {
        write!(out, " own {:.1}% of 1 CPU", health.own_cpu_percent)?;
        write!(out, " rss {} MB", health.own_rss_bytes.div_ceil(1 << 20))?;
    }
    writeln!(out)?;
    let (shown, _) = batch.split();
    if shown.iter().any(waits::is_estimate) {
        writeln!(out, "# note: {}", waits::ESTIMATED)?;
    }
    for deadlock in snapshot
        .waited
        .iter()
        .flat_map(|waited| held::deadlocks(waited))
    {
        let (who, doing) = (deadlock.all(), deadlock.doing());
        writeln!(out, "# DEADLOCK: {} {doing}", plain(&who))?;
    }
    if let Some(line) = tasks_line(report) {
        writeln!(out, "{line}")?;
    }
    let is_empty = report.samples == 0;
    let nothing = is_empty
        .then(|| format!("nothing was sampled: {}", batch.nothing()))
        .into_iter()
        .map(Cow::Owned);
    nothing
        .chain(batch.notes())
        .try_for_each(|note| writeln!(out, "# note: {}", plain(&note)))
}

/// Maximum number of asyncio tasks that are named.
const TASKS_MAX: usize = 4;

/// Returns the line on asyncio tasks, as in `# tasks: worker 62.1%, serve 5.0% (awaits 30.2%), 3
/// more`. None without asyncio tasks.
fn tasks_line(report: &Report) -> Option<String> {
    let all = tasks::among(&report.functions);
    let percent = |part| format!("{:.1}%", percent(part, report.samples));
    let task = |task: &tasks::Task<'_>| {
        let name = plain(task.name);
        match (task.ran, task.awaited) {
            (ran, 0) => format!("{name} {}", percent(ran)),
            (ran, awaited) => format!("{name} {} (awaits {})", percent(ran), percent(awaited)),
        }
    };
    let mut words: Vec<String> = all.iter().take(TASKS_MAX).map(task).collect();
    if let more @ 1.. = all.len().saturating_sub(TASKS_MAX) {
        words.push(format!("{more} more"));
    }
    (!words.is_empty()).then(|| format!("# tasks: {}", words.join(", ")))
}

/// Returns how complete something is. Only a count that is not below `all` gives 100.0%: rounding
/// must not make an incomplete profile look complete.
fn part(count: u64, all: u64) -> String {
    match count {
        _ if all == 0 => "-".to_string(),
        _ if count >= all => "100.0%".to_string(),
        _ => format!("{:.1}%", percent(count, all).min(99.9)),
    }
}

/// Returns the cells of a function. Shares have as many digits as the number of samples
/// supports.
fn cells(row: &FunctionRow, batch: &BatchReport<'_>, has_waits: bool) -> Cells {
    let report = &batch.snapshot.report;
    let samples = report.samples;
    let digits = report.percent_digits(samples);
    // The smallest band that can be written. A band of 0 is right only if the stack of every wait
    // was taken.
    let band_min = 0.1f64.powi(digits as i32);
    let band = match report.band_points(row.self_samples, samples) {
        None => "?".into(),
        Some(0.0) => format!("{:.digits$}", 0.0),
        Some(band) => format!("{:.digits$}", band.max(band_min)),
    };
    let mut numbers = vec![
        format!("{:.digits$}", percent(row.self_samples, samples)),
        band,
        format!("{:.digits$}", percent(row.total_samples, samples)),
        if batch.counts_time() {
            ms(row.self_samples)
        } else {
            row.self_samples.to_string()
        },
    ];
    if has_waits {
        numbers.extend(match &row.waits {
            Some(waits) => {
                let sign = if waits.is_exact() { "" } else { "~" };
                [
                    format!("{sign}{}", waits.count),
                    waits.mean_ns().map_or_else(|| "-".to_string(), fine_ms),
                    waits::longest(waits, fine_ms),
                ]
            }
            None => ["-", "-", "-"].map(str::to_string),
        });
    }
    Cells {
        numbers,
        function: or_dash(&names::short(&row.name)),
        module: or_dash(names::module(&row.module)),
    }
}

/// Formats nanoseconds as milliseconds with three digits, for single waits, which may be short.
fn fine_ms(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}

/// Formats nanoseconds as milliseconds with one digit.
fn ms(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e6)
}

/// Returns the row that sums up the functions that are not listed, so that the first column
/// adds up to 100%.
fn more(rest: &[FunctionRow], report: &Report, numbers: usize) -> Cells {
    let samples = report.samples;
    let digits = report.percent_digits(samples);
    let self_samples = rest.iter().map(|row| row.self_samples).sum();
    let mut cells = vec!["-".to_string(); numbers];
    cells[0] = format!("{:.digits$}", percent(self_samples, samples));
    Cells {
        numbers: cells,
        function: format!("{} more", rest.len()),
        module: "-".to_string(),
    }
}

/// Returns a name as it is printed; `-` stands for an empty one.
fn or_dash(text: &str) -> String {
    match text {
        "" => "-".to_string(),
        _ => plain(text).into_owned(),
    }
}

/// Writes the table with columns that are as wide as their widest cell. Only names of
/// functions are cut.
fn lay_out(table: &mut [Cells], width: Option<usize>, out: &mut String) {
    let numbers = table.first().map_or(0, |heads| heads.numbers.len());
    let width_of = |table: &[Cells], at: usize| {
        let least = NUMBER_WIDTHS.get(at).copied().unwrap_or(0);
        widest(table, |row| &row.numbers[at]).max(least)
    };
    let room = match width {
        Some(width) => {
            let others: usize = (0..numbers).map(|at| width_of(table, at) + 1).sum();
            let module = widest(table, |row| &row.module) + 2;
            let room = width.saturating_sub(others + module);
            room.max(FUNCTION_WIDTH_MIN)
        }
        None => FUNCTION_WIDTH_MAX,
    };
    table
        .iter_mut()
        .for_each(|row| cut(&mut row.function, room));
    let widths: Vec<usize> = (0..numbers).map(|at| width_of(table, at)).collect();
    let function_width = widest(table, |row| &row.function);
    for row in table {
        for (cell, width) in row.numbers.iter().zip(&widths) {
            out.push_str(&" ".repeat(width - cell.width()));
            out.push_str(cell);
            out.push(' ');
        }
        out.push_str(&row.function);
        out.push_str(&" ".repeat(function_width - row.function.width() + 2));
        out.push_str(&row.module);
        out.push('\n');
    }
}

/// Returns the cells of a terminal that the widest text of a column needs.
fn widest(table: &[Cells], of: impl Fn(&Cells) -> &String) -> usize {
    let widths = table.iter().map(|row| of(row).width());
    widths.max().unwrap_or(0)
}

/// Cuts a name in the middle, because its end, the function's own name, says as much as its
/// beginning.
fn cut(name: &mut String, room: usize) {
    if name.width() > room {
        *name = text::cut_middle(name, room).into_owned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Format;
    use crate::batch::fixture::{Fixture, function, hostile};
    use profile::Waits;

    #[test]
    fn it_looks_as_documented() {
        let mut fixture = Fixture::postgres();
        fixture.notes(&["no kernel stacks: kptr_restrict is 2"]);
        let text = fixture.batch(Some(3)).render(Format::Text, true);
        assert_eq!(
            text,
            "\
# proftop 0.1.0 host db-01 pid 4121 window 10.0s rate 99 Hz
# samples 3277 lost 0 whole 98.9% symbols 96.1% pending 0.4% own 0.8% of 1 CPU rss 34 MB
# DEADLOCK: postgres[4130] and postgres[4131] wait for each other since 25.0s
# note: no kernel stacks: kptr_restrict is 2
SELF%  ERR TOTAL%  SMP FUNCTION                     MODULE
 14.2  1.2   14.9  465 hash_search_with_hash_value  postgres
  9.8  1.1   11.0  321 LWLockAcquire                postgres
  7.1  0.9   31.6  233 heap_hot_search_buffer       postgres
 68.9    -      -    - 2 more                       -
"
        );
    }

    #[test]
    fn tasks_of_asyncio_are_in_the_head() {
        let mut fixture = Fixture::postgres();
        let tasks = (1..=5).map(|number| {
            let mut task = function(&format!("task ‹t{number}›"), "shop.py", 0, 327 * number);
            task.kind = profile::FrameKind::Python;
            task
        });
        let mut all: Vec<FunctionRow> = tasks.collect();
        all.push(FunctionRow {
            name: "task ‹t5› awaits".into(),
            ..all[0].clone()
        });
        fixture.functions(all);
        let text = fixture.batch(Some(1)).render(Format::Text, true);
        let line = "# tasks: t5 49.9% (awaits 10.0%), t4 39.9%, t3 29.9%, t2 20.0%, 1 more\n";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn waits_have_columns_of_their_own() {
        let mut fixture = Fixture::postgres();
        let mut locked = function("LWLockAcquire", "postgres", 300, 2_000);
        locked.waits = Some(Waits {
            count: 1203,
            drawn: 88,
            is_estimate: true,
            ns: 2_406_000_000,
            longest_ns: 300_000_000,
            longest_is_open: false,
        });
        fixture.functions(vec![locked, function("runs", "postgres", 10, 10)]);
        let text = fixture.batch(None).render(Format::Text, true);
        let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            rows,
            [
                "SELF%  ERR TOTAL%  SMP WAITS  MEAN LONGEST FUNCTION       MODULE",
                "  9.2  1.0   61.0  300 ~1203 2.000 300.000 LWLockAcquire  postgres",
                "  0.3  0.3    0.3   10     -     -       - runs           postgres",
            ]
        );
        assert!(
            text.contains("# note: waits with ~ are an estimate"),
            "{text}"
        );
    }

    #[test]
    fn all_that_narrows_the_target_is_in_the_head() {
        let fixture = Fixture::postgres();
        let mut batch = fixture.batch(Some(1));
        assert!(batch.render(Format::Text, true).contains("pid 4121 window"));
        batch.has_other_filters = true;
        let scope = &fixture.snapshot.run.scope;
        let text = batch.render(Format::Text, true);
        assert!(
            text.contains(&format!("pid 4121 scope {scope} window")),
            "{text}"
        );
    }

    #[test]
    fn no_samples_and_no_time_are_said() {
        let mut fixture = Fixture::postgres();
        let empty = profile::Report::default();
        fixture.snapshot.report = std::sync::Arc::new(empty);
        fixture.snapshot.source.recording = Some(engine::snapshot::Recording {
            lacks: engine::snapshot::Lacks {
                time: true,
                people: true,
                unnamed: true,
            },
            ..engine::snapshot::Recording::default()
        });
        let text = fixture.batch(None).render(Format::Text, true);
        assert!(text.contains(" window -\n"), "{text}");
        assert!(text.contains(" symbols -"), "{text}");
        assert!(text.contains("# note: nothing was sampled"), "{text}");
    }

    #[test]
    fn the_first_column_adds_up() {
        let fixture = Fixture::postgres();
        for top in [None, Some(0), Some(1), Some(4), Some(5), Some(900)] {
            let text = fixture.batch(top).render(Format::Text, true);
            let rows: Vec<f64> = text
                .lines()
                .filter(|line| !line.starts_with('#') && !line.contains("SELF%"))
                .map(|line| line.split_whitespace().next().unwrap().parse().unwrap())
                .collect();
            let sum: f64 = rows.iter().sum();
            assert!((sum - 100.0).abs() < 0.05 * rows.len() as f64, "{sum}");
            assert_eq!(text.contains(" more "), top.is_some_and(|n| n < 5));
        }
    }

    #[test]
    fn names_are_cut_only_to_a_width() {
        let mut fixture = Fixture::postgres();
        let long = "core::iter::adapters::map::Map<I,F> as core::iter::Iterator>::fold";
        fixture.functions(vec![function(long, "bench", 5, 5)]);
        let whole = fixture.batch(None).render(Format::Csv, true);
        assert!(whole.contains(long));

        let mut batch = fixture.batch(None);
        batch.width = Some(60);
        let cut = batch.render(Format::Text, true);
        let rows = cut.lines().filter(|line| !line.starts_with('#'));
        assert!(rows.map(|line| line.width()).max() <= Some(60), "{cut}");
        assert!(cut.contains("core::iter::") && cut.contains("…fold  bench"));
        batch.width = Some(1);
        assert!(batch.render(Format::Text, true).contains('…'));
    }

    #[test]
    fn wide_letters_count_as_two_columns() {
        let mut name = "関数関数関数関数".to_string();
        cut(&mut name, 10);
        assert_eq!((name.as_str(), name.width()), ("関数関…数", 9));
    }

    #[test]
    fn digits_follow_the_samples() {
        for (samples, expected) in [(10, "  50"), (10_000, " 50.0"), (200_000, "50.00")] {
            let mut fixture = Fixture::postgres();
            fixture.samples(samples);
            let report = fixture.batch(None);
            let row = cells(&function("f", "m", samples / 2, samples), &report, false);
            let [own, band, ..] = &row.numbers[..] else {
                panic!("{:?}", row.numbers)
            };
            assert_eq!(format!("{own:>5}"), format!("{expected:>5}"));
            assert_ne!(band.trim_matches(['0', '.']), "", "never ±0");
        }
    }

    #[test]
    fn an_empty_report_says_that_nothing_is_known() {
        let mut fixture = Fixture::postgres();
        fixture.clear();
        let text = fixture.batch(Some(3)).render(Format::Text, true);
        assert!(text.contains("# samples 0 lost 0 whole - symbols - own"));
        assert_eq!(
            text.lines().count(),
            5,
            "header, a deadlock, a note, the heads"
        );
    }

    #[test]
    fn nothing_is_whole_by_rounding() {
        assert_eq!(part(99_999, 100_000), "99.9%");
        assert_eq!(part(100_000, 100_000), "100.0%");
        assert_eq!(part(0, 5), "0.0%");
    }

    #[test]
    fn without_a_pid_the_scope_is_named() {
        let fixture = Fixture::postgres();
        let mut batch = fixture.batch(None);
        batch.pids = &[];
        let text = batch.render(Format::Text, true);
        assert!(text.contains("host db-01 scope postgres[4121] window"));
        batch.pids = &[1, 2];
        assert!(batch.render(Format::Text, true).contains(" pid 1,2 window"));
    }

    #[test]
    fn no_control_character_gets_through() {
        let fixture = hostile();
        let text = fixture.batch(None).render(Format::Text, true);
        assert!(
            text.chars().all(|c| c == '\n' || !c.is_control()),
            "{text:?}"
        );
        assert!(!text.contains('\u{202e}'));
        // Two header lines, a deadlock, a note, the target's end, heads, the rows.
        let rows = fixture.batch(None).split().0.len();
        assert_eq!(text.lines().count(), 6 + rows);
    }
}
