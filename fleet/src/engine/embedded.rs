//! Runs DataFusion in this process, on files of a folder or a bucket. Its memory is limited: what sorts and
//! groups need beyond that goes to files in the folder for temporary files.

use super::any_value;
use super::files::{Folder, Table};
use super::place::Place;
use super::{ANSWER_BYTES_MAX, Engine, too_long};
use crate::bucket::{Asks, KnownStore, Trouble};
use crate::failure::{Failure, safe, shown};
use crate::interrupt;
use crate::rows::{Cell, Rows};
use crate::sinks::parquet::SORTED_BY;
use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, UInt64Type};
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::error::DataFusionError;
use datafusion::execution::memory_pool::{FairSpillPool, GreedyMemoryPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::prelude::{SessionConfig, SessionContext, col};
use futures_util::future::try_join_all;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::ObjectMeta;
use object_store::local::LocalFileSystem;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::UNIX_EPOCH;
use tokio::runtime::Runtime;

/// Maximum number of threads that read files.
const BLOCKING_THREADS: usize = 8;

/// The limits of a run.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Maximum memory of the engine.
    pub memory_bytes: usize,
    /// Maximum number of rows of samples that are read.
    pub rows_max: u64,
}

/// The engine, and the tables that it has.
pub struct Embedded {
    runtime: &'static Runtime,
    context: SessionContext,
    /// The same tables, with an equal share of the memory for each operator. `None` if `context` has
    /// that already.
    with_shares: Option<SessionContext>,
    bounds: Bounds,
    /// The folder or bucket that is read, as it is shown.
    place: String,
    is_bucket: bool,
}

impl Embedded {
    /// Starts the engine with the tables of a folder. Each operator of a statement that can go on in
    /// temporary files (a sort, a group) has an equal share of the memory.
    pub fn new(folder: &Folder, bounds: Bounds) -> Result<Self, Failure> {
        let shares = Arc::new(FairSpillPool::new(bounds.memory_bytes));
        Self::with_pool(folder, bounds, shares)
    }

    /// Starts the engine for questions. Memory is for the operator that asks first: a statement has
    /// twenty and more operators, of which few need much at the same time, and with equal shares those
    /// wrote temporary files while most of the memory was free. A statement that fails for want of
    /// memory is run once more with equal shares; so it must not be one that writes.
    pub fn for_questions(folder: &Folder, bounds: Bounds) -> Result<Self, Failure> {
        let first_come = Arc::new(GreedyMemoryPool::new(bounds.memory_bytes));
        let shares = Arc::new(FairSpillPool::new(bounds.memory_bytes));
        Self::with_pool(folder, bounds, first_come)?.or_with(shares)
    }

    /// Makes the engine run statements with this memory if they fail for want of the other one.
    fn or_with(mut self, pool: Arc<dyn MemoryPool>) -> Result<Self, Failure> {
        let environment = RuntimeEnvBuilder::from_runtime_env(&self.context.runtime_env())
            .with_memory_pool(pool)
            .build_arc()
            .map_err(not_started)?;
        let state = SessionStateBuilder::new_from_existing(self.context.state())
            .with_runtime_env(environment)
            .build();
        self.with_shares = Some(SessionContext::new_with_state(state));
        Ok(self)
    }

    fn with_pool(
        folder: &Folder,
        bounds: Bounds,
        pool: Arc<dyn MemoryPool>,
    ) -> Result<Self, Failure> {
        let sample_rows = folder.sample_rows();
        if sample_rows > bounds.rows_max {
            return Err(Failure::failed(format!(
                "{} rows of samples are to be read, and {} are the most: ask for less time (--since, --until), \
                 ask a cluster (--engine), or allow more (--rows-max)",
                sample_rows, bounds.rows_max,
            )));
        }
        let runtime = runtime()?;
        let cpus = cpus();
        // Files that are merged are read side by side, each in its own partition.
        let merged = folder.tables.iter().filter(|it| it.is_merged);
        let parts = merged.map(|it| it.files.len()).max().unwrap_or(cpus);
        let config = SessionConfig::new()
            .with_target_partitions(parts)
            // With statistics the ends of all files would be read once more, before the query is
            // known.
            .with_collect_statistics(false)
            // The rows on the left of a join are in memory in any case. Dividing both sides among threads
            // before takes longer than to have one table of them.
            .with_repartition_joins(false)
            .set_bool("datafusion.execution.parquet.pushdown_filters", true);
        let environment = RuntimeEnvBuilder::new()
            .with_memory_pool(pool)
            .build_arc()
            .map_err(not_started)?;
        let context = SessionContext::new_with_config_rt(config, environment);
        let files = Arc::new(KnownStore::new(LocalFileSystem::new(), Asks::First));
        let root = ListingTableUrl::parse("file:///").map_err(not_started)?;
        context.register_object_store(root.object_store().as_ref(), Arc::clone(&files) as _);
        context.register_udaf(any_value::function());
        for table in &folder.tables {
            register(&context, table, &files)?;
        }
        let first = folder.tables.first().map(|it| &it.place);
        Ok(Self {
            runtime,
            context,
            with_shares: None,
            bounds,
            place: first.map(Place::name).unwrap_or_default(),
            is_bucket: first.is_some_and(|it| matches!(it, Place::Bucket(_))),
        })
    }

    /// Returns the results of statements, which run at the same time. If they fail for want of memory,
    /// they are run with equal shares of it, one after the other.
    async fn ask(&self, statements: &[&str]) -> Result<Vec<Rows>, Failure> {
        let asked = statements.iter().map(|sql| answer(&self.context, sql));
        let mut answers = try_join_all(asked).await;
        if let (Err(Unanswered::Engine(error)), Some(context)) = (&answers, &self.with_shares)
            && is_memory_short(error)
        {
            let asked = stream::iter(statements).then(|sql| answer(context, sql));
            answers = asked.try_collect().await;
        }
        answers.map_err(|it| self.failure(it))
    }

    fn failure(&self, unanswered: Unanswered) -> Failure {
        match unanswered {
            Unanswered::Engine(error) => self.told(&error),
            Unanswered::Reading(failure) => failure,
        }
    }

    /// Converts an error of the engine to a sentence.
    fn told(&self, error: &DataFusionError) -> Failure {
        if is_memory_short(error) {
            return Failure::failed(format!(
                "this needs more memory than {} MB, or more room for temporary files: ask for less time \
                 (--since, --until) or one service, or allow more (--memory)",
                self.bounds.memory_bytes >> 20
            ));
        }
        let text = error.to_string();
        match of_store(error, &text) {
            Some(trouble) if self.is_bucket => {
                return trouble.failure(&format!("an object in {}", self.place));
            }
            // Other errors of files have a better text than those of a store.
            Some(trouble @ Trouble::Missing) => {
                return trouble.failure(&format!("a file in {}", self.place));
            }
            _ => {}
        }
        let first = text.lines().next().unwrap_or_default();
        Failure::failed(format!("the engine fails: {}", safe(first)))
    }
}

/// Why there is no answer.
enum Unanswered {
    Engine(DataFusionError),
    /// The engine's answer cannot be read, or is too long.
    Reading(Failure),
}

impl From<DataFusionError> for Unanswered {
    fn from(error: DataFusionError) -> Self {
        Self::Engine(error)
    }
}

/// Runs a statement.
async fn answer(context: &SessionContext, sql: &str) -> Result<Rows, Unanswered> {
    let frame = context.sql(sql).await?;
    let columns = frame.schema().fields().iter();
    let mut rows = Rows {
        columns: columns.map(|it| it.name().clone()).collect(),
        cells: Vec::new(),
    };
    let mut stream = frame.execute_stream().await?;
    let mut bytes = 0;
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        // Batches may be parts of one buffer, so that the sum of their sizes can be many times
        // the real one.
        bytes += batch.num_rows() * batch.num_columns() * size_of::<Cell>();
        if bytes > ANSWER_BYTES_MAX {
            return Err(Unanswered::Reading(too_long()));
        }
        bytes += add(&mut rows, &batch).map_err(|error| {
            let sentence = format!("cannot read the answer: {error}");
            Unanswered::Reading(Failure::failed(sentence))
        })?;
    }
    Ok(rows)
}

fn is_memory_short(error: &DataFusionError) -> bool {
    matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
}

fn not_started(error: DataFusionError) -> Failure {
    Failure::failed(format!("cannot start the engine: {error}"))
}

fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the threads of all engines. Memory that threads have given back is theirs again: new threads
/// for each engine would need more with each.
fn runtime() -> Result<&'static Runtime, Failure> {
    static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let begin = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(cpus())
            // These threads read files. Files that are merged would have one each otherwise.
            .max_blocking_threads(BLOCKING_THREADS)
            .enable_all()
            .build()
    };
    let runtime = RUNTIME.get_or_init(begin).as_ref();
    runtime.map_err(|error| Failure::failed(format!("cannot start threads: {error}")))
}

impl Engine for Embedded {
    fn rows(&self, sql: &str) -> Result<Rows, Failure> {
        let mut answers = self.rows_of_all(&[sql])?;
        Ok(answers.pop().expect("an answer to the statement"))
    }

    fn rows_of_all(&self, statements: &[&str]) -> Result<Vec<Rows>, Failure> {
        interrupt::check()?;
        self.runtime.block_on(async {
            // Temporary files are removed when the future that made them is dropped.
            tokio::select! {
                answers = self.ask(statements) => answers,
                failure = interrupt::wait() => Err(failure),
            }
        })
    }
}

/// Returns what a store has answered, if that is why the engine fails.
fn of_store(error: &DataFusionError, text: &str) -> Option<Trouble> {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        if let Some(error) = inner.downcast_ref::<object_store::Error>() {
            return Some(Trouble::of(error));
        }
        cause = inner.source();
    }
    // On the way through the reader of Parquet it becomes a text.
    let is_gone = text.contains("Object at location") && text.contains("not found");
    is_gone.then_some(Trouble::Missing)
}

/// Registers a table with its files. `local` is the store of files on this machine.
fn register(context: &SessionContext, table: &Table, local: &KnownStore) -> Result<(), Failure> {
    let failed = |error: DataFusionError| {
        Failure::failed(format!(
            "cannot look at {}: {}",
            table.name,
            safe(&error.to_string())
        ))
    };
    let scheme = match &table.place {
        Place::Folder(_) => "file://".into(),
        Place::Bucket(bucket) => {
            let root = format!("s3://{}/", bucket.url().name);
            let store = ListingTableUrl::parse(&root).map_err(failed)?;
            context.register_object_store(store.object_store().as_ref(), bucket.store());
            root
        }
    };
    let mut urls = Vec::with_capacity(table.files.len());
    for file in &table.files {
        let (path, told) = match &table.place {
            Place::Folder(_) => (absolute(file)?, Some(metadata(file)?)),
            Place::Bucket(_) => (file.clone(), None),
        };
        let url = ListingTableUrl::parse(url(&scheme, &path)).map_err(failed)?;
        if let Some(told) = told {
            local.add(&ObjectMeta {
                location: url.prefix().clone(),
                last_modified: told.modified().unwrap_or(UNIX_EPOCH).into(),
                size: told.len(),
                e_tag: None,
                version: None,
            });
        }
        urls.push(url);
    }
    let format =
        ParquetFormat::default().with_options(context.state().default_table_options().parquet);
    let mut options = ListingOptions::new(Arc::new(format));
    if table.is_merged {
        let order = SORTED_BY.map(|it| col(it).sort(true, false));
        options = options.with_file_sort_order(vec![order.into()]);
    }
    let config = ListingTableConfig::new_with_multi_paths(urls)
        .with_listing_options(options)
        .with_schema(Arc::clone(&table.schema));
    let listed = ListingTable::try_new(config).map_err(failed)?;
    context
        .register_table(table.name, Arc::new(listed))
        .map_err(failed)?;
    Ok(())
}

fn absolute(file: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(file).map_err(|error| cannot_read(file, &error))
}

fn metadata(file: &Path) -> Result<Metadata, Failure> {
    fs::metadata(file).map_err(|error| cannot_read(file, &error))
}

fn cannot_read(file: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("cannot read {}: {error}", shown(file)))
}

/// Converts a path to a URL in which each byte is literal: in a path, `*` and `[` would be
/// patterns.
fn url(scheme: &str, path: &Path) -> String {
    let mut url = String::from(scheme);
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                url.push(char::from(*byte));
            }
            other => url += &format!("%{other:02X}"),
        }
    }
    url
}

/// Adds the rows of a batch. Returns the bytes of its texts and lists.
fn add(rows: &mut Rows, batch: &RecordBatch) -> Result<usize, arrow::error::ArrowError> {
    let columns: Vec<Vec<Cell>> = batch
        .columns()
        .iter()
        .map(|column| cells(column))
        .collect::<Result<_, _>>()?;
    let bytes = columns.iter().flatten().map(Cell::bytes).sum();
    let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
    for _ in 0..batch.num_rows() {
        let cells = columns.iter_mut().map(|it| it.next().unwrap_or(Cell::None));
        rows.cells.push(cells.collect());
    }
    Ok(bytes)
}

fn cells(column: &dyn Array) -> Result<Vec<Cell>, arrow::error::ArrowError> {
    let all = 0..column.len();
    let of = |is: &dyn Fn(usize) -> Cell| -> Vec<Cell> {
        let cell = |at| {
            if column.is_null(at) {
                Cell::None
            } else {
                is(at)
            }
        };
        all.clone().map(cell).collect()
    };
    Ok(match column.data_type() {
        kind if kind.is_unsigned_integer() => {
            let numbers = cast(column, &DataType::UInt64)?;
            let numbers = numbers.as_primitive::<UInt64Type>();
            of(&|at| Cell::Whole(numbers.value(at)))
        }
        kind if kind.is_numeric() => {
            let numbers = cast(column, &DataType::Float64)?;
            let numbers = numbers.as_primitive::<Float64Type>();
            of(&|at| Cell::Number(numbers.value(at)))
        }
        DataType::List(_) => {
            let lists = column.as_list::<i32>();
            let mut cells = Vec::new();
            for at in all {
                let numbers = cast(&lists.value(at), &DataType::UInt64)?;
                let numbers = numbers.as_primitive::<UInt64Type>();
                cells.push(Cell::List(numbers.values().to_vec()));
            }
            cells
        }
        _ => {
            let texts = cast(column, &DataType::Utf8)?;
            let texts = texts.as_string::<i32>();
            of(&|at| Cell::Text(texts.value(at).into()))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Span;
    use crate::generate::Fleet;

    const BOUNDS: Bounds = Bounds {
        memory_bytes: 64 << 20,
        rows_max: 1000,
    };

    /// Writes the files of a small fleet, with 80 samples.
    fn small_fleet(dir: &Path) -> Folder {
        let fleet = Fleet {
            seed: 1,
            hosts: 2,
            windows: 2,
            services: 1,
            stacks: 5,
            samples: 20,
            versions: 1,
            planted: 0.0,
        };
        fleet.write(dir).unwrap();
        Folder::look(&Place::Folder(dir.into()), Span::default()).unwrap()
    }

    #[test]
    fn what_fails_for_want_of_memory_is_asked_once_more_with_shares() {
        let folder = tempfile::tempdir().unwrap();
        let found = small_fleet(folder.path());
        let hosts = "SELECT host, sum(value) AS counted FROM samples GROUP BY host ORDER BY host";
        let all = "SELECT sum(value) AS counted FROM samples";
        let engine = |bytes: usize| {
            let none = Arc::new(GreedyMemoryPool::new(1));
            let engine = Embedded::with_pool(&found, BOUNDS, none).unwrap();
            engine.or_with(Arc::new(FairSpillPool::new(bytes))).unwrap()
        };
        let enough = engine(64 << 20);
        let counted =
            |rows: &Rows| -> Vec<u64> { rows.iter().map(|row| row.whole("counted")).collect() };
        assert_eq!(counted(&enough.rows(hosts).unwrap()), [40, 40]);
        let answers = enough.rows_of_all(&[hosts, all]).unwrap();
        let answers: Vec<Vec<u64>> = answers.iter().map(counted).collect();
        assert_eq!(answers, [vec![40, 40], vec![80]]);
        let said = engine(1).rows(hosts).unwrap_err().to_string();
        assert!(said.starts_with("this needs more memory"), "{said}");
    }

    #[test]
    fn a_file_that_is_removed_during_a_question_is_an_error_and_no_smaller_number() {
        let folder = tempfile::tempdir().unwrap();
        let found = small_fleet(folder.path());
        let engine = Embedded::for_questions(&found, BOUNDS).unwrap();
        let sum = || engine.rows("SELECT sum(value) AS counted FROM samples");
        assert_eq!(sum().unwrap().only().unwrap().whole("counted"), 80);
        fs::remove_file(&found.tables[0].files[0]).unwrap();
        let said = sum().unwrap_err().to_string();
        assert!(said.starts_with("a file in "), "{said}");
        assert!(said.contains("it is gone"), "{said}");
    }
}
