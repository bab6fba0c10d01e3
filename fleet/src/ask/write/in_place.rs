//! Compacts the objects of a bucket in their place: the many objects of each folder become one, while
//! shippers go on writing and others ask. `fleet/src/bucket/compacted.rs` says how that is done without
//! a moment in which samples count twice or not at all.
//!
//! A folder is the unit, an hour of samples or a day of another table, and rows stay in the folder
//! that they are in. So the folders need not be in step with each other.

use super::steps::Steps;
use super::{Counts, FILES_OF_DAY_MAX, HOSTS, Made, SAMPLES};
use crate::bucket::{Bucket, Compacted, Look, Trouble, file_of, new_run};
use crate::engine::{self, Place, Span, Table, is_parquet};
use crate::failure::Failure;
use crate::interrupt;
use crate::output::print;
use crate::words::counted;
use std::path::{Path, PathBuf};

const DAY_MS: i64 = super::DAY_MS;

/// Each stack once. In place, all stacks of a day are kept: samples that need them may come later.
const STACKS: Made = Made {
    text: include_str!("../../../sql/compact_all_stacks.sql"),
    ..super::STACKS
};
const FRAMES: Made = Made {
    text: include_str!("../../../sql/compact_all_frames.sql"),
    ..super::FRAMES
};

/// Compacts all folders of the days that are in a time range as a whole.
pub fn run(place: &Place, span: Span, steps: &Steps, part: &Path) -> Result<(), Failure> {
    let Place::Bucket(bucket) = place else {
        return Err(Failure::usage(
            "--in-place is of object storage: of a folder, write another one with -o, and put its days in the \
             place of the old ones",
        ));
    };
    let days = engine::days(place, span)?;
    let days: Vec<i64> = days
        .into_iter()
        .filter(|day| is_whole(*day, span))
        .collect();
    if days.is_empty() {
        return Err(Failure::failed(format!(
            "{} has no day that is in that time as a whole",
            place.name()
        )));
    }
    let work = Work {
        place,
        bucket,
        steps,
        part,
    };
    let (mut made, mut others) = (Counts::default(), Counts::default());
    for begin_ms in days {
        let date = super::day_folder(begin_ms);
        for table in [FRAMES, STACKS, HOSTS] {
            others += work.folder(&table, &place.table(table.table).join(&date))?;
        }
        let mut hours = place.entries(&place.table(SAMPLES.table).join(&date))?;
        hours.sort();
        for hour in hours {
            made += work.folder(&SAMPLES, &hour)?;
        }
    }
    if made.files == 0 {
        let rest = match others.files {
            0 => String::new(),
            several => format!("; made {} of other tables", counted(several, "object")),
        };
        return print(&format!(
            "{}: each hour of samples of that time is one object already{rest}\n",
            place.name()
        ));
    }
    print(&format!(
        "{}: {} of samples, of {}, are in {} now\n",
        place.name(),
        counted(made.rows, "row"),
        counted(made.samples, "object"),
        counted(made.files, "object")
    ))
}

/// Whether a time range has all of a day.
fn is_whole(day_ms: i64, span: Span) -> bool {
    span.since_ms.is_none_or(|since| since <= day_ms)
        && span.until_ms.is_none_or(|until| day_ms + DAY_MS <= until)
}

struct Work<'a> {
    place: &'a Place,
    bucket: &'a Bucket,
    steps: &'a Steps<'a>,
    /// The folder for files before they are uploaded.
    part: &'a Path,
}

impl Work<'_> {
    /// Compacts a folder. Returns the rows that are in files of this run, the number of these, and of
    /// the files that they were made of (as `samples`).
    fn folder(&self, made: &Made, folder: &Path) -> Result<Counts, Failure> {
        interrupt::check()?;
        let told = |trouble: Trouble| trouble.failure(&self.bucket.shown(folder));
        let Look { objects, list } = Look::at(self.bucket, folder, is_parquet).map_err(told)?;
        let mut gone = objects.replaced;
        let mut counts = Counts::default();
        let is_many = objects.current.len() > 1;
        if is_many || !objects.unfinished.is_empty() {
            let (before, version) = list.unzip();
            let run = new_run();
            let mut file = before
                .as_ref()
                .map_or_else(String::new, |it| it.file().into());
            let mut current = Vec::new();
            if is_many {
                file = file_of(&run);
                counts = self.merge(made, folder, &objects.current, &file)?;
                current = objects.current;
            }
            // Without anything to merge, a list of another run makes sure that no run which is not
            // finished writes its own one: then its object can be removed.
            let next = Compacted::next(before.as_ref(), &run, file, &current);
            next.write(self.bucket, folder, version).map_err(|trouble| match trouble {
                Trouble::Changed => Failure::failed(format!(
                    "{}: another proftop-fleet has compacted it meanwhile; the work of this one is dropped",
                    self.bucket.shown(folder)
                )),
                trouble => told(trouble),
            })?;
            gone.extend(current);
            gone.extend(objects.unfinished);
        }
        let keys: Vec<PathBuf> = gone.iter().map(|name| folder.join(name)).collect();
        self.bucket.remove(&keys).map_err(told)?;
        Ok(counts)
    }

    /// Writes the rows of some objects to one object, which does not count yet.
    fn merge(
        &self,
        made: &Made,
        folder: &Path,
        names: &[String],
        file: &str,
    ) -> Result<Counts, Failure> {
        if names.len() > FILES_OF_DAY_MAX {
            return Err(Failure::failed(format!(
                "{} has more than {FILES_OF_DAY_MAX} objects",
                self.bucket.shown(folder)
            )));
        }
        let keys = names.iter().map(|name| folder.join(name)).collect();
        let table = Table::of_files(self.place, made.table, keys)?;
        let before: u64 = table.rows().map(|it| it.1).sum();
        let written = self.part.join(made.table).join(made.file_name(0));
        let rows = self
            .steps
            .write(made, table, &[], Span::default(), &written)?;
        if matches!(made.table, "samples" | "hosts") && rows != before {
            return Err(Failure::failed(format!(
                "{} has {before} rows, and {rows} of them were read: nothing is replaced",
                self.bucket.shown(folder)
            )));
        }
        self.bucket
            .put_file(&folder.join(file), &written)
            .map_err(|trouble| trouble.failure(&self.bucket.shown(folder)))?;
        Ok(Counts {
            rows,
            files: 1,
            samples: names.len() as u64,
        })
    }
}
