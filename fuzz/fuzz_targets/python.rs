//! The memory of a process that says that it runs Python: whatever it holds, its threads and
//! code objects are read to an end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbolize::Reason;
use symbolize::python::{
    Asyncio, Function, IDENTITY_WORDS, Layout, LineTable, Lines, Look, Seen, Version, WantedCode,
    find_running_tasks, find_threading, module_of, read_codes, read_thread_names, read_threads,
};

/// Where the bytes are in the memory of the process. Pointers to there are easily made.
const START: u64 = 0x1000;

fuzz_target!(|data: &[u8]| {
    let Some((minor, bytes)) = data.split_first() else {
        return;
    };
    let memory = |address: u64, length: u32| {
        let start = address
            .checked_sub(START)
            .and_then(|at| usize::try_from(at).ok());
        let rest = start.and_then(|start| bytes.get(start..));
        let piece = rest.and_then(|rest| rest.get(..length as usize));
        piece.map(Vec::from).ok_or(Reason::FileGone)
    };
    let version = Version {
        major: 3,
        minor: 8 + minor % 9,
    };
    for kind in [LineTable::Steps, LineTable::Ranges, LineTable::Locations] {
        let lines = Lines::decode(kind, bytes, 1);
        for offset in [i32::MIN, -1, 0, 100, i32::MAX] {
            lines.at(offset);
        }
    }
    module_of(&String::from_utf8_lossy(bytes));
    Asyncio::read(bytes);
    let look = Look {
        pid: 100,
        version,
        runtime: START,
        layout: None,
        threading: Vec::new(),
        wants_tasks: true,
        tids: [(1, 100), (7, 107)].into(),
    };
    if let Ok(seen) = Seen::read(&look, &memory, &memory) {
        assert!(seen.threads.keys().all(|tid| [100, 107].contains(tid)));
    }
    let Ok(layout) = Layout::of(version, &memory, START) else {
        return;
    };
    if let Ok(threads) = read_threads(&memory, START, &layout, 100) {
        assert!(threads.len() <= 100);
    }
    _ = find_threading(&memory, START, &layout);
    _ = find_running_tasks(&memory, START, &layout);
    let codes = [0, 64, 512].map(|at| WantedCode {
        address: START + at,
        check: 0,
    });
    let found = Function::read_all(&codes, &layout, |_, _| 0, &memory, &memory);
    assert_eq!(found.len(), codes.len());
    for address in [START, START + 64, START + 512] {
        let any = |_, _: &[u64; IDENTITY_WORDS]| true;
        _ = read_codes(&memory, &memory, &[(address, any)], &layout);
        _ = read_thread_names(&memory, &memory, address, &layout);
    }
});
