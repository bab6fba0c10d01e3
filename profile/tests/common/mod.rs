//! Profiles that contain everything that files can and cannot hold.

pub mod perf_file;

use profile::formats::folded;
use profile::{
    Cancel, Ending, Frame, FrameKind, Host, Info, Limits, ModuleId, NameState, NewSample,
    ProcessId, Query, Rates, Selection, SourceFrame, Store,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::process::Command;

pub const HOSTILE: &str = "<img src=x onerror=\"a()\">\u{2028}&'];";

/// Output of `perf script` with everything in it that is hard to parse.
pub const TEXT_OF_PERF: &str = "\
# ========
# captured on    : Sat Nov 21 08:22:13 2026
#
my [odd] prog 22010/22011 [003] 25934.314797:    1001001 cpu-clock:u: 
\t           704e4 __sin_fma+0x224 (/usr/lib/x86_64-linux-gnu/libm.so.6)
\t            1081 in1+0x21 (inlined)
\t            1081 main+0x21 (/tmp/my prog (deleted))
  my prog.c:5
\t           2724a std::f(int)::{lambda()#1}::operator()() const+0x7a (/usr/lib/libc.so.6)

my [odd] prog 22010/22011 [003] 25934.315814:    1001001 cpu-clock:u: 
\tffffffff81000100 do_syscall_64+0x1 ([kernel.kallsyms])
\tffffffff81000200 [unknown] ([kernel.kallsyms])
\t            1081 in1+0x21 (inlined)
\t            1081 main+0x21 (/tmp/my prog (deleted))

my [odd] prog 22010/22011 [003] 25934.400000: PERF_RECORD_COMM: my
swapper     0/0     [000] 25935.000000:    1001001 cpu-clock:u: ffffffff81000100 do_syscall_64+0x1 ([kernel.kallsyms])
node 5/5 [000] 25935.100000: 77 cycles: 7f00 f (/tmp/perf-5.map)
node 5/5 [000] 25935.200000: 1001001 cpu-clock:u: 7f00 LazyCompile:*\u{1b}[2J f.js:1 (/tmp/perf-5.map)
";

pub fn limits() -> Limits {
    Limits {
        keep: std::time::Duration::MAX,
        memory_bytes: 1 << 30,
    }
}

pub fn frame(address: u64) -> Frame {
    Frame {
        module: ModuleId((address % 3) as u32),
        address: address << 12 | u64::from(address.is_multiple_of(3)) << 63,
        kind: [FrameKind::Kernel, FrameKind::User, FrameKind::Jit][address as usize % 3],
    }
}

/// A random sample: addresses, thread, index of the ending, weight.
pub type Given = (Vec<u64>, u32, usize, u64);

pub fn given() -> impl Strategy<Value = Given> {
    let frames = prop::collection::vec(0..40u64, 0..9);
    (frames, 0..5u32, 0..Ending::ALL.len(), 1..1000u64)
}

pub fn store(samples: &[Given]) -> Store {
    let mut store = Store::new(limits());
    for (id, path) in [(0, "[kernel]"), (1, "/usr/lib/libc.so.6"), (2, "[anon]")] {
        let name = path.rsplit('/').next().unwrap();
        store.add_module(ModuleId(id), name, path);
    }
    store.set_build_id(ModuleId(1), &[0xab; 20]);
    for process in 0..2 {
        store.add_process(
            ProcessId(process),
            process + 100,
            &format!("{HOSTILE}{process}"),
        );
    }
    store.set_info(Info {
        rates: Rates::always(99),
        epoch_unix_ms: 1_700_000_000_000,
        host: Host {
            name: "db-01".into(),
            ..Host::default()
        },
        lost: 7,
        notes: vec!["a note".into()],
        ..Info::default()
    });
    store.begin(0);
    for (addresses, tid, ending, weight) in samples {
        let frames: Vec<Frame> = addresses.iter().map(|address| frame(*address)).collect();
        let in_kernel = frames.first().is_some_and(|f| f.kind == FrameKind::Kernel);
        assert!(store.add_sample(NewSample {
            time_ns: 3_000_000_000,
            cpu: 1,
            process: ProcessId(tid % 2),
            tid: *tid,
            comm: "worker",
            frames: &frames,
            kernel_frames: usize::from(in_kernel),
            ending: Ending::ALL[*ending],
            weight: *weight,
        }));
    }
    for id in store.frames_to_name(usize::MAX) {
        let address = store.frame(id).expect("asked for").address >> 12 & 0xff;
        let name = match address % 7 {
            0 => HOSTILE.into(),
            _ => format!("f{}", address / 3),
        };
        match address % 5 {
            0 => store.set_name(id, NameState::Unnamed(profile::NoName::NotTold)),
            _ => store.set_name(id, NameState::Named(name.into())),
        }
        if !address.is_multiple_of(5) && address.is_multiple_of(4) {
            let link = |function, line| SourceFrame {
                function,
                file: "src/a.c",
                line,
            };
            store.set_source(id, &[link("inner", 7), link("middle", 8), link("", 9)]);
        }
    }
    store
}

pub fn select(store: &Store, filter: &str) -> Selection {
    let query = Query {
        filter: filter.parse().unwrap(),
        ..Query::default()
    };
    store.view().select(&query, &Cancel::new()).unwrap()
}

/// Writes the stacks of a selection in the folded format.
pub fn stacks(selection: &Selection) -> String {
    let mut text = Vec::new();
    folded::write(selection, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// Returns as text those contents of a selection that pprof can hold.
pub fn text(selection: &Selection) -> Vec<String> {
    let report = selection.report();
    let mut lines = vec![stacks(selection), format!("{:?}", report.completeness)];
    for row in report.functions {
        let counts = (row.self_samples, row.total_samples);
        lines.push(format!("{} {} {counts:?}", row.name, row.module));
    }
    for row in report.processes {
        lines.push(format!("{} {} {}", row.pid, row.comm, row.samples));
    }
    for row in report.threads {
        lines.push(format!("{} {} {}", row.tid, row.comm, row.samples));
    }
    lines[2..].sort();
    lines
}

/// Counts the folded stacks without the marks of kinds, for formats whose functions have no kind
/// unless they have a place.
pub fn unmarked(selection: &Selection) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for line in stacks(selection).lines() {
        let (stack, count) = line.rsplit_once(' ').unwrap();
        let plain = ["_[i]", "_[j]", "_[k]"]
            .iter()
            .fold(stack.to_string(), |s, mark| s.replace(mark, ""));
        *counts.entry(plain).or_insert(0) += count.parse::<u64>().unwrap();
    }
    counts
}

/// Runs the perf of this machine and returns its output; `None`, with a message, if perf is missing
/// or fails.
pub fn perf(arguments: &[&str]) -> Option<String> {
    let output = test_support::run_tool(Command::new("perf").args(arguments))?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}
