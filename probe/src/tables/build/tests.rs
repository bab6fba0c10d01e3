use super::*;
use crate::tables::cache::BYTES_MAX;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};
use symbolize::files::{Order, Proxy, Reply, Request};
use symbolize::object::Summary;
use symbolize::revision::Revision;
use symbolize::{Files, Reason, RemoteFiles};

fn file(path: impl AsRef<Path>) -> Content {
    let path = path.as_ref();
    let file = File::open(path).unwrap();
    let summary = Summary::read(&file);
    Content::File {
        revision: Revision::now(&file).ok(),
        summary: summary.map(Arc::new).map_err(|error| error.reason()),
        file: Arc::new(file.into()),
        path: path.to_owned(),
        root: None,
    }
}

fn own() -> Content {
    file("/proc/self/exe")
}

fn want(builder: &Builder, file: ModuleId, content: Content, hotness: u64) -> Option<ModuleId> {
    builder.want(Job {
        file,
        content,
        hotness,
        user: 0,
        wanted_by: 0,
    })
}

fn wait(builder: &Builder) -> Built {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60) {
        if let Some(built) = builder.next() {
            return built;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("nothing was built");
}

fn bytes(bytes: &[u8]) -> Content {
    Content::Bytes(bytes.into())
}

#[test]
fn our_own_table() {
    let builder = Builder::start(None, &Limits::default()).unwrap();
    assert_eq!(want(&builder, ModuleId(7), own(), 1), None);
    let built = wait(&builder);
    assert_eq!(built.file, ModuleId(7));
    assert!(built.table.unwrap().rows() > 10_000);
}

#[test]
fn why_there_is_none() {
    let builder = Builder::start(None, &Limits::default()).unwrap();
    let mut arm = std::fs::read("/proc/self/exe").unwrap();
    arm[18] = 183;
    let reason = |content| {
        want(&builder, ModuleId(1), content, 0);
        wait(&builder).table.unwrap_err()
    };
    assert_eq!(reason(bytes(b"#!/bin/sh\n")), NoTable::Damaged);
    assert_eq!(
        reason(bytes(&arm[..arm.len() / 2])),
        NoTable::UnsupportedMachine
    );
    arm[4] = 1;
    assert_eq!(reason(bytes(&arm)), NoTable::UnsupportedMachine);
    assert_eq!(reason(file("/")), NoTable::TooLarge);
}

#[test]
fn the_second_time_it_is_in_the_cache() {
    let base = tempfile::tempdir().unwrap();
    let built = |file| {
        let cache = Cache::open(base.path(), BYTES_MAX).unwrap();
        let builder = Builder::start(Some(cache), &Limits::default()).unwrap();
        want(&builder, file, own(), 0);
        let table = wait(&builder).table.unwrap();
        (builder, table)
    };
    let (builder, first) = built(ModuleId(1));
    let stored = base.path().join(crate::tables::cache::PARTS.join("/"));
    let began = Instant::now();
    let is_there = || {
        let mut files = std::fs::read_dir(&stored).unwrap().flatten();
        files.any(|file| !file.file_name().to_string_lossy().starts_with('.'))
    };
    while !is_there() && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(builder.cache().unwrap().hits(), 0);
    let (builder, second) = built(ModuleId(2));
    assert_eq!(builder.cache().unwrap().hits(), 1);
    assert_eq!(first, second);
}

/// No tables are taken; memory must not grow, and the threads must end.
#[test]
fn tables_that_nobody_takes_hold_up_the_work() {
    let builder = Builder::start(None, &Limits::default()).unwrap();
    for file in 0..20 {
        want(&builder, ModuleId(file), bytes(b"nothing"), 0);
    }
    std::thread::sleep(Duration::from_millis(200));
    assert!(builder.waiting() >= 20 - 3 * THREADS.len());
    let shared = Arc::downgrade(&builder.shared);
    drop(builder);
    let began = Instant::now();
    while shared.strong_count() > 0 && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(shared.strong_count(), 0);
}

/// Performs orders in this process, like a parser without rights.
#[derive(Debug)]
struct Here;

impl Proxy for Here {
    fn perform(&self, request: &Request<'_>, remote: RemoteFiles) -> Result<Reply, Reason> {
        Files::from(remote).perform(request)
    }

    fn has_parsers(&self) -> bool {
        true
    }

    fn parse(&self, order: &Order<'_>) -> Option<Result<Reply, Reason>> {
        let files = order.files.iter().map(|file| file.try_clone_to_owned());
        let files = files.collect::<Result<_, _>>().unwrap();
        let way = Files::from(RemoteFiles::Skip);
        Some(elsewhere::answer(order.message, files, &way))
    }
}

#[test]
fn a_table_made_elsewhere_is_the_same() {
    let table = |content: &Content, way: &Files| {
        let found = read::table(content, None, way, u64::MAX, Work::Tables);
        found.map(|found| found.table)
    };
    let (here, elsewhere) = (Files::from(RemoteFiles::Skip), Files::by(Arc::new(Here)));
    let made = table(&own(), &here).unwrap();
    assert!(made.rows() > 10_000);
    assert_eq!(table(&own(), &elsewhere).as_ref(), Ok(&made));
    let cut = tempfile::NamedTempFile::new().unwrap();
    let own = std::fs::read("/proc/self/exe").unwrap();
    // Section headers are at the end, and so are missing.
    std::fs::write(cut.path(), &own[..own.len() / 2]).unwrap();
    let cut = file(cut.path());
    assert_eq!(table(&cut, &elsewhere), table(&cut, &here));
}
