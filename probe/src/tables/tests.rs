use super::resting::REST_NS;
use super::*;
use probe_ebpf::rule::{Rule, special};
use probe_ebpf::table::NO_TABLE;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};
use symbolize::object::{Object, Summary};
use symbolize::revision::Revision;
use symbolize::unwind::{RbpRule, Register, Row, RuleId, UnwindRule, UnwindTable};
use symbolize::{LinkAddr, Segment, Segments};

mod live;

fn limits() -> Limits {
    Limits {
        cache_base: None,
        ..Limits::default()
    }
}

fn in_memory() -> Tables {
    Tables::new(TableMaps::in_memory(), &limits()).unwrap()
}

fn content(path: impl AsRef<Path>) -> Content {
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

fn job(file: ModuleId, content: Content, hotness: u64) -> Job {
    Job {
        file,
        content,
        hotness,
        user: 0,
        wanted_by: 0,
    }
}

/// Polls until something is ready.
fn wait(tables: &mut Tables, now_ns: u64) -> Vec<ModuleId> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60) {
        let ready = tables.poll(now_ns);
        if !ready.is_empty() {
            return ready;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("nothing became ready");
}

/// Returns the mappings of this process that belong to its own file.
fn own_layout(file: ModuleId) -> Vec<MappedRange> {
    let own = std::fs::read_link("/proc/self/exe").unwrap();
    let lines = crate::proc_maps::read(std::process::id(), &symbolize::Files::default()).unwrap();
    let own: &[u8] = own.as_os_str().as_encoded_bytes();
    lines
        .iter()
        .map(|line| MappedRange {
            start: line.start,
            end: line.end,
            file_offset: line.file_offset,
            file: (line.path == own).then_some(file),
        })
        .collect()
}

/// Checks that every address of this program has the rule in its file.
fn check_own_rules(tables: &Tables, tgid: u32) {
    let object = Object::read(&File::open("/proc/self/exe").unwrap()).unwrap();
    let unwind = UnwindTable::read(&object).unwrap();
    let reader = tables.reader();
    let list = tables.list_of(tgid).unwrap();
    let here = check_own_rules as *const () as u64;
    let mapping = reader.find(list, here).unwrap();
    assert_ne!(mapping.table, NO_TABLE);
    let mut checked = 0;
    for address in (mapping.start..mapping.end).step_by(61) {
        assert_eq!(reader.find(list, address), Some(mapping));
        let link = address - mapping.bias;
        let rule = unwind.lookup(LinkAddr(link));
        let expected = encode::encode(&rule.unwrap_or(UnwindRule::Hole));
        let found = reader.rule_at(&mapping, link);
        let found = match found.kind() {
            probe_ebpf::rule::kind::EXTENDED => {
                encode::Packed::Extended(reader.extended(found.offset()))
            }
            _ => encode::Packed::Word(found),
        };
        assert_eq!(found, expected, "at {link:#x}");
        checked += usize::from(expected != encode::Packed::HOLE);
    }
    assert!(checked > 1000);
}

#[test]
fn a_process_gets_its_table_when_it_is_built() {
    let mut tables = in_memory();
    let file = ModuleId(5);
    tables.publish(1, 0, &own_layout(file), 0);
    let before = tables.list_of(1).unwrap();
    assert_eq!(tables.table_of(file), None);
    tables.want(job(file, content("/proc/self/exe"), 1));
    assert_eq!(wait(&mut tables, 1), [file]);
    assert!(matches!(tables.table_of(file), Some(Ok(_))));
    let after = tables.list_of(1).unwrap();
    assert_ne!(before.generation(), after.generation());
    check_own_rules(&tables, 1);
    let stats = tables.stats();
    assert_eq!((stats.tables, stats.processes, stats.lists), (1, 1, 1));
    assert!(stats.rows > 10_000 && stats.used_bytes <= stats.rows as u64 * 5);
}

#[test]
fn a_table_goes_when_nobody_maps_the_file_for_long() {
    let mut tables = in_memory();
    let file = ModuleId(5);
    tables.publish(1, 0, &own_layout(file), 0);
    tables.want(job(file, content("/proc/self/exe"), 1));
    wait(&mut tables, 0);
    tables.unpublish(1, 10);
    tables.sweep(20);
    tables.sweep(20 + PATIENCE_NS - 1);
    assert_eq!(tables.stats().tables, 1);
    tables.sweep(20 + PATIENCE_NS);
    assert_eq!((tables.stats().tables, tables.stats().used_bytes), (0, 0));
    assert!(tables.stats().chunks > 0, "it rests");
    for _ in 0..tables.stats().chunks {
        tables.sweep(20 + PATIENCE_NS + REST_NS);
    }
    assert_eq!(tables.stats().chunks, 0);
    assert_eq!(tables.table_of(file), None);
}

/// Makes a table of `rows` rows, at link address 0.
fn table(rows: u32) -> FileTable {
    let rules = [
        UnwindRule::Hole,
        UnwindRule::frame(Register::Rsp, 8, RbpRule::Same),
        UnwindRule::frame(Register::Rsp, 16, RbpRule::Same),
    ];
    let rows: Vec<Row> = (0..rows)
        .map(|at| Row {
            start: at * 4,
            rule: RuleId(at as u16 % 2 + 1),
        })
        .collect();
    let segments = Segments::new(vec![Segment {
        offset: 0,
        vaddr: 0,
        filesz: 1 << 30,
        executable: true,
    }]);
    FileTable::build(&rows, &rules, &segments).unwrap()
}

#[test]
fn files_that_nobody_maps_make_room() {
    let limits = Limits {
        table_bytes: 1 << 20,
        ..limits()
    };
    let mut tables = Tables::new(TableMaps::in_memory(), &limits).unwrap();
    let big = table(200_000);
    assert_eq!(tables.load(ModuleId(1), 0, &big), Ok(()));
    let small = table(50_000);
    assert_eq!(tables.load(ModuleId(3), 7, &small), Err(NoTable::OverShare));
    assert_eq!(tables.load(ModuleId(2), 0, &big), Err(NoTable::NoRoom));
    tables.files.set_none(ModuleId(2), 0, NoTable::NoRoom);
    tables.files.set_none(ModuleId(3), 7, NoTable::OverShare);
    assert_eq!(tables.stats().files_without_room, 1);
    // This is what `poll` does when the first file is no longer mapped.
    tables.free_unused(Patience::NONE, 0);
    tables.sweep(REST_NS);
    for file in [2, 3] {
        let state = tables.table_of(ModuleId(file));
        assert_eq!(state, None, "it may be asked for again");
    }
    assert_eq!(tables.load(ModuleId(2), 0, &big), Ok(()));
}

#[test]
fn tables_that_nobody_uses_have_little_room() {
    let limits = Limits {
        table_bytes: 4 << 20,
        ..limits()
    };
    let mut tables = Tables::new(TableMaps::in_memory(), &limits).unwrap();
    let of_one = table(50_000);
    let words = (of_one.bytes() / 4) as u64;
    let room = tables.pool.words() / UNUSED_PART;
    let fitting = (room / words) as u32;
    for (number, now_ns) in (0..fitting + 2).zip(1..) {
        map(&mut tables, number + 1, 0, ModuleId(number));
        assert_eq!(tables.load(ModuleId(number), 0, &of_one), Ok(()));
        tables.unpublish(number + 1, now_ns);
        tables.sweep(now_ns);
    }
    let count = |tables: &Tables| tables.stats().tables as u32;
    tables.sweep(PATIENCE_LEAST_NS);
    assert_eq!(count(&tables), fitting + 2);
    assert_eq!(tables.take_dropped(), []);
    // Those that nobody has used for longest leave.
    tables.sweep(PATIENCE_LEAST_NS + 100);
    assert_eq!(count(&tables), fitting);
    assert_eq!(tables.table_of(ModuleId(1)), None);
    assert!(tables.table_of(ModuleId(2)).is_some());
    assert_eq!(tables.take_dropped(), [ModuleId(0), ModuleId(1)]);
    tables.sweep(PATIENCE_NS + 100);
    assert_eq!(count(&tables), 0);
    assert_eq!(tables.take_dropped().len() as u32, fitting);
}

/// Checks that the table of a file has the rules of [`table`].
fn check_rules(tables: &Tables, reader: &Reader, tgid: u32, rows: u32) {
    let mapping = reader.find(tables.list_of(tgid).unwrap(), 0x10_0000);
    let mapping = mapping.unwrap();
    for row in (0..rows - 1).step_by(97) {
        let rule = reader.rule_at(&mapping, u64::from(row) * 4);
        assert_eq!(rule.offset(), row % 2 + 1, "row {row}");
    }
}

/// Tables of programs that ended leave gaps between those that stay, in all chunks.
#[test]
fn what_stays_is_moved_together() {
    let mut tables = in_memory();
    // Several tables have parts in one chunk, and each has parts in several.
    let rows = |file: u32| 90_000 + file * 1000;
    let all = 40;
    for file in 0..all {
        let loaded = tables.load(ModuleId(file), 0, &table(rows(file)));
        assert_eq!(loaded, Ok(()));
        map(&mut tables, file + 1, 0, ModuleId(file));
    }
    let stays = |file: &u32| file % 7 == 3;
    for file in (0..all).filter(|file| !stays(file)) {
        tables.unpublish(file + 1, 0);
    }
    tables.sweep(0);
    let before = tables.stats().chunks;
    let mut now_ns = PATIENCE_NS;
    for _ in 0..4 * before {
        let reader = tables.reader();
        let lists: Vec<_> = (1..=all).map(|tgid| tables.list_of(tgid)).collect();
        tables.sweep(now_ns);
        // A sample that began before reads what it began with.
        for file in (0..all).filter(stays) {
            check_rules(&tables, &tables.reader(), file + 1, rows(file));
            let list = lists[file as usize].unwrap();
            let mapping = reader.find(list, 0x10_0000).unwrap();
            assert_eq!(reader.rule_at(&mapping, 8).offset(), 1);
        }
        now_ns += REST_NS;
    }
    let stats = tables.stats();
    let used = stats.used_bytes.div_ceil(1 << 20) as usize;
    assert_eq!(stats.tables, (0..all).filter(stays).count());
    assert!(
        before > 12 && stats.chunks <= used + used / 4 + 1,
        "{stats:?}"
    );
    for file in (0..all).filter(stays) {
        tables.unpublish(file + 1, now_ns);
    }
    for _ in 0..before {
        tables.sweep(now_ns);
        now_ns += PATIENCE_NS;
    }
    assert_eq!((tables.stats().chunks, tables.stats().used_bytes), (0, 0));
}

/// Adds a process of a user that maps a file, from its first byte on.
fn map(tables: &mut Tables, tgid: u32, user: u32, file: ModuleId) {
    let range = MappedRange {
        start: 0x10_0000,
        end: 0x20_0000,
        file_offset: 0,
        file: Some(file),
    };
    assert!(tables.publish(tgid, user, &[range], 0));
}

#[test]
fn a_user_who_comes_late_has_room_and_who_has_most_makes_more() {
    let limits = Limits {
        table_bytes: 4 << 20,
        ..limits()
    };
    let mut tables = Tables::new(TableMaps::in_memory(), &limits).unwrap();
    let (greedy, late) = (60_001, 60_002);
    let its = table(100_000);
    let mut files = 0;
    while tables.load(ModuleId(files), greedy, &its) == Ok(()) {
        map(&mut tables, files + 1, greedy, ModuleId(files));
        files += 1;
    }
    let refused = tables.load(ModuleId(files), greedy, &its);
    assert_eq!(refused, Err(NoTable::OverShare));
    let share = tables.pool.words() / 8;
    assert!(tables.pool.available_words() >= share);
    let (first, last) = (ModuleId(0), ModuleId(files - 1));
    let has_table = |tables: &Tables, file: ModuleId| {
        let list = tables.list_of(file.0 + 1).unwrap();
        tables.reader().find(list, 0x10_0000).unwrap().table != NO_TABLE
    };
    assert!(has_table(&tables, first) && has_table(&tables, last));
    // Another user finds room in the eighth that was left.
    let another = ModuleId(1000);
    assert_eq!(tables.load(another, late, &its), Ok(()));
    map(&mut tables, another.0 + 1, late, another);
    // Then the newest file of the user with most is removed, until an eighth is free again.
    tables.sweep(1);
    assert!(tables.pool.available_words() >= share);
    assert!(has_table(&tables, first) && has_table(&tables, another));
    assert!(!has_table(&tables, last));
    let cut = tables.over_share();
    assert_eq!(cut.len(), 1, "{cut:?}");
    assert_eq!((cut[0].user, cut[0].what), (greedy, Scarce::Tables));
    assert!(cut[0].count >= 1);
}

#[test]
fn the_vdso_has_a_table() {
    let mut tables = in_memory();
    let image = symbolize::Vdso::image().unwrap();
    tables.want(job(ModuleId(1), Content::Bytes(image.into()), 0));
    assert_eq!(wait(&mut tables, 0), [ModuleId(1)]);
}

#[test]
fn why_there_is_no_table_is_known() {
    let mut tables = in_memory();
    tables.want(job(
        ModuleId(1),
        Content::Bytes(b"text".as_slice().into()),
        0,
    ));
    let began = Instant::now();
    while tables.table_of(ModuleId(1)).is_none() && began.elapsed() < Duration::from_secs(60) {
        assert!(tables.poll(0).is_empty());
        std::thread::sleep(Duration::from_millis(2));
    }
    assert_eq!(tables.table_of(ModuleId(1)), Some(Err(NoTable::Damaged)));
    let reader = tables.reader();
    let no_table = probe_ebpf::table::Mapping {
        table: NO_TABLE,
        ..Default::default()
    };
    let hole = Rule::special(special::FRAME_POINTER);
    assert_eq!(reader.rule_at(&no_table, 0), hole);
}

/// Prints sizes and times: `cargo test --release -p probe -- --ignored --nocapture figures`
#[test]
#[ignore = "prints figures"]
fn figures() {
    for path in std::env::var("FILES").unwrap_or_default().split(':') {
        let Ok(file) = File::open(path) else { continue };
        let began = Instant::now();
        let object = Object::read(&file).unwrap();
        let unwind = UnwindTable::read(&object).unwrap();
        let read = began.elapsed();
        let began = Instant::now();
        let table = FileTable::build(unwind.rows(), unwind.rules(), object.segments()).unwrap();
        let packed = began.elapsed();
        let mut tables = in_memory();
        let began = Instant::now();
        tables.load(ModuleId(1), 0, &table).unwrap();
        let loaded = began.elapsed();
        let base = tempfile::tempdir().unwrap();
        let cache = Cache::open(base.path(), u64::MAX).unwrap();
        let key = cache::CacheKey::by_id(&symbolize::FileId::gnu(&[1; 20]), 1).unwrap();
        let began = Instant::now();
        cache.store(&key, &table);
        let stored = began.elapsed();
        let began = Instant::now();
        assert_eq!(cache.load(&key).as_ref(), Some(&table));
        let cached = began.elapsed();
        let stats = tables.stats();
        let extended = table
            .rules
            .iter()
            .filter(|rule| matches!(rule, encode::Packed::Extended(_)));
        println!(
            "{path}: {} rows, {} pages, {:.3} B/row ({:.3} of whole chunks), {} rules ({} extended), \
             read {read:?}, packed {packed:?}, loaded {loaded:?}, stored {stored:?}, from cache {cached:?}",
            unwind.rows().len(),
            table.page_rows.len(),
            stats.used_bytes as f64 / unwind.rows().len() as f64,
            (stats.chunks << 20) as f64 / unwind.rows().len() as f64,
            table.rules.len(),
            extended.count(),
        );
    }
}
