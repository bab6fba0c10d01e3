use super::*;
use crate::tables::reader::Reader;
use crate::tables::resting::REST_NS;
use probe_ebpf::table::NO_TABLE;
use proptest::prelude::*;
use std::io;
use std::sync::Mutex;

const MAPPINGS: usize = 256;

type Told = Arc<Mutex<HashMap<u32, MappingList>>>;

/// A replacement of `PROCESSES` that the test can read.
struct Kernel(Told);

impl Processes for Kernel {
    fn set(&mut self, tgid: u32, list: MappingList) -> io::Result<()> {
        self.0.lock().unwrap().insert(tgid, list);
        Ok(())
    }

    fn remove(&mut self, tgid: u32) -> io::Result<()> {
        self.0.lock().unwrap().remove(&tgid);
        Ok(())
    }
}

struct Fixture {
    lists: Lists,
    told: Told,
    memory: Arc<Shared>,
    /// The files that have tables.
    ready: HashSet<u32>,
}

impl Fixture {
    fn new() -> Self {
        let memory = Arc::new(Shared::heap(MAPPINGS * size_of::<Mapping>()));
        let told = Told::default();
        Self {
            lists: Lists::new(memory.clone(), Box::new(Kernel(told.clone()))),
            told,
            memory,
            ready: HashSet::new(),
        }
    }

    fn publish(&mut self, tgid: u32, layout: &[MappedRange], now_ns: u64) {
        // Each process belongs to a user of its own.
        self.publish_of(tgid, tgid, layout, now_ns);
    }

    fn publish_of(&mut self, user: u32, tgid: u32, layout: &[MappedRange], now_ns: u64) -> bool {
        let ready = &self.ready;
        let resolve: Resolve<'_> = &|layout| resolve(layout, ready);
        self.lists.publish(tgid, user, layout, now_ns, resolve)
    }

    fn becomes_ready(&mut self, file: u32, now_ns: u64) {
        self.ready.insert(file);
        let ready = &self.ready;
        let files = HashSet::from([ModuleId(file)]);
        self.lists
            .refresh(&files, now_ns, &|layout| resolve(layout, ready));
    }

    fn sweep(&mut self, now_ns: u64) {
        let ready = &self.ready;
        self.lists.sweep(now_ns, &|layout| resolve(layout, ready));
    }

    fn told(&self, tgid: u32) -> Option<MappingList> {
        self.told.lock().unwrap().get(&tgid).copied()
    }

    fn read(&self, list: MappingList) -> Vec<Mapping> {
        let none = || Arc::new(Shared::heap(0));
        let reader = Reader::new(Arc::new([]), none(), none(), self.memory.clone());
        let mapping = |index| reader.mapping(list, index).unwrap();
        (0..list.length()).map(mapping).collect()
    }

    fn generation(&self, tgid: u32) -> u32 {
        self.told(tgid).unwrap().generation()
    }
}

fn resolve(layout: &[MappedRange], ready: &HashSet<u32>) -> Vec<Mapping> {
    let mapping = |range: &MappedRange| Mapping {
        start: range.start,
        end: range.end,
        table: match range.file {
            Some(file) if ready.contains(&file.0) => file.0,
            _ => NO_TABLE,
        },
        ..Mapping::default()
    };
    layout.iter().map(mapping).collect()
}

/// One mapping for each `(start, file)`.
fn layout(mappings: &[(u64, u32)]) -> Vec<MappedRange> {
    let range = |&(start, file): &(u64, u32)| MappedRange {
        start,
        end: start + 10,
        file_offset: 0,
        file: Some(ModuleId(file)),
    };
    mappings.iter().map(range).collect()
}

#[test]
fn a_list_says_what_was_published() {
    let mut fixture = Fixture::new();
    let mappings = layout(&[(10, 0), (20, 1), (90, 2)]);
    fixture.publish(7, &mappings, 0);
    let list = fixture.told(7).unwrap();
    assert_eq!(fixture.read(list), resolve(&mappings, &HashSet::new()));
    assert_eq!(fixture.lists.list_of(7), Some(list));
    assert!(fixture.lists.is_mapped(ModuleId(2)));
    fixture.lists.unpublish(7, 1);
    assert_eq!(fixture.told(7), None);
    assert!(!fixture.lists.is_mapped(ModuleId(2)));
    assert_eq!((fixture.lists.processes(), fixture.lists.lists()), (0, 0));
}

#[test]
fn a_child_shares_its_parents_list() {
    let mut fixture = Fixture::new();
    let mappings = layout(&[(10, 0)]);
    fixture.publish(7, &mappings, 0);
    fixture.publish(8, &mappings, 1);
    assert_eq!(fixture.told(7), fixture.told(8));
    fixture.lists.unpublish(7, 2);
    fixture.sweep(3 * REST_NS);
    assert_eq!(
        fixture.read(fixture.told(8).unwrap()),
        resolve(&mappings, &HashSet::new())
    );
}

#[test]
fn an_addition_keeps_the_generation_and_all_else_does_not() {
    let mut fixture = Fixture::new();
    fixture.publish(7, &layout(&[(10, 0)]), 0);
    let first = fixture.generation(7);
    assert_ne!(first, 0);
    fixture.publish(7, &layout(&[(10, 0), (20, 1)]), 1);
    assert_eq!(fixture.generation(7), first, "dlopen");
    fixture.publish(7, &layout(&[(20, 1)]), 2);
    let second = fixture.generation(7);
    assert!(second > first, "munmap");
    fixture.becomes_ready(1, 3);
    let third = fixture.generation(7);
    assert!(third > second, "a table");
    fixture.publish(7, &layout(&[(20, 0)]), 4);
    assert!(fixture.generation(7) > third, "exec");
}

#[test]
fn what_others_share_is_not_added_to() {
    let mut fixture = Fixture::new();
    for tgid in [7, 8] {
        fixture.publish(tgid, &layout(&[(10, 0)]), 0);
    }
    let shared = fixture.generation(7);
    // Both load a library at the same address, but different ones.
    fixture.publish(7, &layout(&[(10, 0), (20, 1)]), 1);
    fixture.publish(8, &layout(&[(10, 0), (20, 2)]), 1);
    assert_ne!(fixture.generation(7), fixture.generation(8));
    assert_ne!(fixture.generation(7), shared);
}

#[test]
fn a_table_reaches_all_processes_that_map_the_file() {
    let mut fixture = Fixture::new();
    fixture.publish(7, &layout(&[(10, 0)]), 0);
    fixture.publish(8, &layout(&[(10, 0)]), 0);
    fixture.publish(9, &layout(&[(10, 5)]), 0);
    let other = fixture.told(9);
    fixture.becomes_ready(0, 1);
    assert_eq!(fixture.told(7), fixture.told(8));
    assert_eq!(fixture.read(fixture.told(7).unwrap())[0].table, 0);
    assert_eq!(fixture.told(9), other);
}

#[test]
fn an_empty_list_is_a_list() {
    let mut fixture = Fixture::new();
    fixture.publish(7, &[], 0);
    assert_eq!(fixture.told(7).unwrap().length(), 0);
}

#[test]
fn the_least_recently_used_make_room() {
    let mut fixture = Fixture::new();
    let list = |file: u32| -> Vec<(u64, u32)> { (0..30).map(|at| (at * 10, file)).collect() };
    for tgid in 1..=7 {
        fixture.publish(tgid, &layout(&list(tgid)), u64::from(tgid));
        assert_eq!(fixture.told(tgid).unwrap().length(), 30);
    }
    fixture.lists.touch(1, 8);
    // There is no room now, but soon.
    fixture.publish(8, &layout(&list(8)), 9);
    assert_eq!(fixture.told(8), None);
    assert!(fixture.told(1).is_some() && fixture.told(2).is_none());
    fixture.sweep(9 + REST_NS);
    assert_eq!(fixture.told(8).unwrap().length(), 30);
    let counts = fixture.lists.counts();
    assert_eq!((counts.evicted, counts.postponed), (1, 1));
}

/// With 256 mappings, a share is 32 of them.
#[test]
fn no_user_takes_the_room_that_others_want() {
    const MANY: u32 = 60_001;
    const OTHER: u32 = 60_002;
    let list = |tgid: u32| layout(&(0..30).map(|at| (at * 10, tgid)).collect::<Vec<_>>());
    let mut fixture = Fixture::new();
    let mut refused = Vec::new();
    for tgid in 1..=20 {
        if !fixture.publish_of(MANY, tgid, &list(tgid), u64::from(tgid)) {
            refused.push(tgid);
        }
    }
    // Refused processes are not walked, and their stacks are not copied.
    assert_eq!(refused, (7..=20).collect::<Vec<_>>());
    assert_eq!(fixture.read(fixture.told(20).unwrap())[0].end, 2);
    assert_eq!(fixture.lists.counts().over_share, 14);
    // Other users get their share at once, and room is made to replace it.
    for (tgid, now_ns) in [(31, REST_NS), (32, 3 * REST_NS), (33, 5 * REST_NS)] {
        assert!(fixture.publish_of(tgid, tgid, &list(tgid), now_ns));
        assert_eq!(fixture.told(tgid).unwrap().length(), 30, "{tgid}");
        fixture.sweep(now_ns + 1);
        fixture.sweep(now_ns + 1 + REST_NS);
    }
    let many = |fixture: &Fixture| (1..=6).filter(|tgid| fixture.told(*tgid).is_some()).count();
    assert_eq!(many(&fixture), 3);
    // One process of a user is within the share, however many others have.
    assert!(fixture.publish_of(OTHER, 50, &list(50), 9 * REST_NS));
    assert!(fixture.told(50).is_some());
    // There is room again when the others are gone.
    for tgid in 31..=33 {
        fixture.lists.unpublish(tgid, 10 * REST_NS);
    }
    fixture.sweep(12 * REST_NS);
    assert!(fixture.publish_of(MANY, 20, &list(20), 12 * REST_NS));
    fixture.lists.unpublish(8, 12 * REST_NS);
    assert_eq!(fixture.told(8), None, "it has ended");
}

#[test]
fn more_processes_than_there_may_be() {
    let mut fixture = Fixture::new();
    for tgid in 0..=PROCESSES_MAX as u32 {
        fixture.publish(tgid, &layout(&[(10, 0)]), u64::from(tgid));
    }
    assert_eq!(fixture.lists.processes(), PROCESSES_MAX);
    assert_eq!((fixture.told(0), fixture.lists.counts().evicted), (None, 1));
}

#[derive(Debug, Clone)]
enum Step {
    Publish(u32, Vec<(u64, u32)>),
    Fork(u32, u32),
    Exit(u32),
    Ready(u32),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let mappings =
        proptest::collection::btree_map((0u64..60).prop_map(|at| at * 10), 0u32..6, 0..40);
    prop_oneof![
        4 => (0u32..6, mappings).prop_map(|(tgid, mappings)| Step::Publish(tgid, mappings.into_iter().collect())),
        2 => (0u32..6, 0u32..6).prop_map(|(from, to)| Step::Fork(from, to)),
        1 => (0u32..6).prop_map(Step::Exit),
        1 => (0u32..6).prop_map(Step::Ready),
        2 => (0u64..2 * REST_NS).prop_map(Step::Wait),
    ]
}

proptest! {
    /// Invariants under all operations: a list is what its process has; a place is not written
    /// again before its rest is over; and an address has the same rule as long as a generation
    /// lives, in all processes that have it.
    #[test]
    fn lists_rest_and_generations_mean_one_thing(steps in proptest::collection::vec(step(), 1..80)) {
        let mut fixture = Fixture::new();
        let mut layouts: HashMap<u32, Vec<MappedRange>> = HashMap::new();
        let mut meanings: HashMap<(u32, u64), Mapping> = HashMap::new();
        let mut gone: Vec<(u64, MappingList, Vec<Mapping>)> = Vec::new();
        let mut now_ns = 0;
        for step in steps {
            let before = fixture.told.lock().unwrap().clone();
            let contents: HashMap<u32, Vec<Mapping>> =
                before.iter().map(|(tgid, list)| (*tgid, fixture.read(*list))).collect();
            match step {
                Step::Publish(tgid, mappings) => {
                    layouts.insert(tgid, layout(&mappings));
                    if !fixture.publish_of(tgid, tgid, &layouts[&tgid], now_ns) {
                        layouts.remove(&tgid);
                    }
                }
                Step::Fork(from, to) => {
                    let Some(mappings) = layouts.get(&from).cloned() else { continue };
                    if fixture.publish_of(to, to, &mappings, now_ns) {
                        layouts.insert(to, mappings);
                    } else {
                        layouts.remove(&to);
                    }
                }
                Step::Exit(tgid) => {
                    layouts.remove(&tgid);
                    fixture.lists.unpublish(tgid, now_ns);
                }
                Step::Ready(file) if !fixture.ready.contains(&file) => {
                    fixture.becomes_ready(file, now_ns);
                }
                Step::Ready(_) => {}
                Step::Wait(ns) => {
                    now_ns += ns;
                    fixture.sweep(now_ns);
                }
            }
            let told = fixture.told.lock().unwrap().clone();
            for (tgid, list) in before {
                if told.get(&tgid) != Some(&list) {
                    gone.push((now_ns, list, contents[&tgid].clone()));
                }
            }
            gone.retain(|(since, _, _)| now_ns - since < REST_NS);
            for (_, list, content) in &gone {
                prop_assert_eq!(&fixture.read(*list), content, "written over during its rest");
            }
            for (tgid, list) in &told {
                let content = fixture.read(*list);
                let Some(layout) = layouts.get(tgid) else {
                    prop_assert_eq!((content[0].start, content[0].end), (1, 2), "refused");
                    continue;
                };
                let expected = resolve(layout, &fixture.ready);
                prop_assert_eq!(content.len(), expected.len());
                for (mapping, mut expected) in content.into_iter().zip(expected) {
                    // The list with the new table may wait for room.
                    if mapping.table == NO_TABLE {
                        expected.table = NO_TABLE;
                    }
                    prop_assert_eq!(mapping, expected);
                    let meaning = meanings.entry((list.generation(), mapping.start)).or_insert(mapping);
                    prop_assert_eq!(*meaning, mapping);
                }
            }
        }
    }
}
