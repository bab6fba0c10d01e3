//! The results of sampling a process for a short time. Only samples show the share of frames
//! without a name, by file.

use crate::commands::live::{self, Live};
use crate::words::units::{completeness, count, percent};
use probe::features::Finding;
use profile::filter::FilterError;
use profile::query::Nameless;
use profile::{Cancel, Filter, NoName, Query};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long the process is sampled: that gives some two hundred samples if it keeps one CPU busy,
/// and the user does not wait long.
const DURATION: Duration = Duration::from_secs(2);

/// Maximum number of files that are listed. Further files have only few of the frames.
const FILES_MAX: usize = 4;

/// If a smaller share of frames has a name, or of stacks is whole, that is a warning.
const ENOUGH: f64 = 0.95;

/// Minimum number of stacks for the conclusion that all stacks are whole.
const STACKS_ENOUGH: u64 = 50;

/// The results of sampling, or why the process was not sampled.
pub type Sampled = Result<SampledFacts, String>;

/// The results of sampling.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SampledFacts {
    pub samples: u64,
    /// Samples with a user stack, and the number of those whose stack is whole.
    pub stacks: u64,
    pub whole: u64,
    /// Samples with a Python function.
    pub python: u64,
    /// Frames of all samples, and the number of those without a name.
    pub frames: u64,
    pub unnamed: u64,
    /// The files of frames without a name, those with most of them first.
    pub files: Vec<UnnamedRow>,
}

/// Frames without a name in one file, or in code that is in no file, for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnnamedRow {
    /// The last part of the path, or `[JIT]` and similar words.
    pub module: Arc<str>,
    /// Empty if the code is in no file.
    pub path: Arc<str>,
    pub reason: NoName,
    pub frames: u64,
}

/// Samples a process and all that it starts, and counts frames without a name. The error says why
/// the process was not sampled.
pub fn sample(pid: u32) -> Sampled {
    live::check(pid).map_err(|failure| failure.message)?;
    let recorded = Live::start(pid, DURATION).map_err(|failure| failure.message)?;
    let opened = recorded.open_quietly()?;
    let query = Query {
        // The processes that it has started are sampled, too, but not counted.
        filter: format!("pid:{pid}")
            .parse::<Filter>()
            .map_err(|error| error.to_string())?,
        ..Query::default()
    };
    let cancelled = |_| "it was interrupted".to_owned();
    let cancel = Cancel::new();
    let selection = opened.view.select(&query, &cancel).map_err(cancelled)?;
    let python = Query {
        filter: format!("pid:{pid} lang:python")
            .parse()
            .map_err(|error: FilterError| error.to_string())?,
        ..Query::default()
    };
    let python = opened.view.select(&python, &cancel).map_err(cancelled)?;
    let nameless = selection.nameless(&cancel).map_err(cancelled)?;
    let found = selection.completeness();
    Ok(SampledFacts {
        samples: selection.samples(),
        stacks: found.user_stacks,
        whole: found.whole,
        python: python.samples(),
        frames: found.frames,
        unnamed: nameless.iter().map(|row| row.frames).sum(),
        files: nameless.into_iter().map(UnnamedRow::from).collect(),
    })
}

impl From<Nameless> for UnnamedRow {
    fn from(row: Nameless) -> Self {
        UnnamedRow {
            module: row.module,
            path: row.path,
            reason: row.reason,
            frames: row.frames,
        }
    }
}

impl SampledFacts {
    /// Returns the number of sampled stacks as text. None if they are too few for a conclusion, or
    /// if not all of them are whole.
    pub fn all_whole(&self) -> Option<String> {
        (self.stacks >= STACKS_ENOUGH && self.whole == self.stacks).then(|| count(self.stacks))
    }

    /// Returns how many frames in a file have no name.
    pub fn unnamed_in(&self, path: &Path) -> u64 {
        let of_it = self
            .files
            .iter()
            .filter(|row| Path::new(&*row.path) == path);
        of_it.map(|row| row.frames).sum()
    }

    /// Returns the share of a file's unnamed frames in all frames as text. None if all of its
    /// frames have names.
    pub fn words_of(&self, path: &Path) -> Option<String> {
        match self.unnamed_in(path) {
            0 => None,
            frames => Some(format!("{} % of all frames", percent(frames, self.frames))),
        }
    }
}

/// Says what sampling showed, or why the process was not sampled.
pub fn judge(pid: u32, sampled: &Sampled) -> Finding {
    const ID: &str = "process-samples";
    let facts = match sampled {
        Ok(facts) => facts,
        Err(why) => {
            let what = format!("not sampled, so that no share of frames can be told: {why}");
            return Finding::ok(ID, what);
        }
    };
    let seconds = DURATION.as_secs();
    if facts.samples == 0 {
        let what = format!(
            "used no CPU in {seconds} s, so that no share of frames can be told: \
             proftop -p {pid}, key 8, tells it when it does; proftop --metric off-cpu -p {pid} \
             shows what its threads wait for, and for whom"
        );
        return Finding::ok(ID, what);
    }
    let named = facts.frames - facts.unnamed.min(facts.frames);
    let what = format!(
        "{} samples in {seconds} s: {} % of stacks are whole, {} % of frames have a name{}",
        count(facts.samples),
        completeness(facts.whole, facts.stacks),
        completeness(named, facts.frames),
        lacking(facts),
    );
    let share = |part: u64, of: u64| of == 0 || part as f64 >= of as f64 * ENOUGH;
    if share(facts.whole, facts.stacks) && share(named, facts.frames) {
        Finding::ok(ID, what)
    } else {
        Finding::warn(ID, what).fix(format!(
            "proftop -p {pid}, key 8: Enter on a cause opens it"
        ))
    }
}

/// Says in which files the frames without a name are, as the end of a sentence.
fn lacking(facts: &SampledFacts) -> String {
    let words = |row: &UnnamedRow| {
        format!(
            "{} % in {} ({})",
            percent(row.frames, facts.frames),
            row.module,
            row.reason.label().replace('_', " ")
        )
    };
    if facts.files.is_empty() {
        return String::new();
    }
    let listed = &facts.files[..facts.files.len().min(FILES_MAX)];
    let others: u64 = facts.files[listed.len()..]
        .iter()
        .map(|row| row.frames)
        .sum();
    let mut words: Vec<String> = listed.iter().map(words).collect();
    if others > 0 {
        words.push(format!("{} % in others", percent(others, facts.frames)));
    }
    format!("; the others: {}", words.join(", "))
}

#[cfg(test)]
impl SampledFacts {
    /// Returns results as of a process with one stripped file.
    pub fn example() -> Self {
        SampledFacts {
            samples: 198,
            python: 0,
            stacks: 190,
            whole: 190,
            frames: 4_000,
            unnamed: 40,
            files: vec![UnnamedRow {
                module: "libz.so.1".into(),
                path: "/lib/libz.so.1".into(),
                reason: NoName::Stripped,
                frames: 40,
            }],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::features::Level;

    fn facts(whole: u64, unnamed: u64) -> SampledFacts {
        let mut facts = SampledFacts::example();
        facts.whole = whole;
        facts.unnamed = unnamed;
        facts.files[0].frames = unnamed;
        facts
    }

    #[test]
    fn it_says_where_names_are_missing() {
        let few = judge(7, &Ok(facts(190, 40)));
        assert_eq!(
            few.what,
            "198 samples in 2 s: 100 % of stacks are whole, 99.0 % of frames have a name; \
             the others: 1.0 % in libz.so.1 (stripped)"
        );
        assert_eq!(few.level, Level::Ok);
        assert_eq!(judge(7, &Ok(facts(190, 400))).level, Level::Warn);
        assert_eq!(judge(7, &Ok(facts(90, 40))).level, Level::Warn);
        let words = facts(190, 40).words_of(Path::new("/lib/libz.so.1"));
        assert_eq!(words.as_deref(), Some("1.0 % of all frames"));
        assert_eq!(facts(190, 40).words_of(Path::new("/lib/libm.so.6")), None);
    }

    #[test]
    fn without_samples_it_says_why() {
        let idle = judge(7, &Ok(SampledFacts::default()));
        assert!(idle.what.starts_with("used no CPU in 2 s"), "{idle:?}");
        let waits = "proftop --metric off-cpu -p 7 shows what its threads wait for";
        assert!(idle.what.contains(waits), "{idle:?}");
        let refused = judge(7, &Err("no right to load BPF programs".into()));
        assert!(
            refused
                .what
                .ends_with("told: no right to load BPF programs"),
            "{refused:?}"
        );
    }
}
