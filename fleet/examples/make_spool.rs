//! Writes a spool as `proftop agent` does, with samples that are known: for tests of the shipper, and to
//! look at what it makes of many windows. Prints a JSON object with what is in them.
//!
//!     make_spool FOLDER FIRST COUNT [HOST [AGE [STACKS [SHARE]]]]
//!
//! FIRST is the number of the first window; each is a minute, and the last one ended AGE seconds ago.
//! STACKS is how many stacks each service has, and SHARE how many of a hundred samples of the service
//! `nginx` are in its function `regression` more.

use profile::formats::pft;
use profile::{
    Ending, Frame, FrameKind, Host, Info, Limits, ModuleId, NameState, NewSample, NoName,
    ProcessDetails, ProcessId, Rates, SourceFrame, Store,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

const SECOND_NS: u64 = 1_000_000_000;
const WINDOW_S: u64 = 60;
const ID: &str = "5eed5eed5eed5eed";

/// Service, name of its processes, control group, and the name of its program's file.
const SERVICES: [(&str, &str, &str, &str); 4] = [
    (
        "postgresql@15-main",
        "postgres",
        "/system.slice/system-postgresql.slice/postgresql@15-main.service",
        "postgres",
    ),
    ("nginx", "nginx", "/system.slice/nginx.service", "nginx"),
    (
        "api",
        "api",
        "/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        "api",
    ),
    ("kworker", "kworker/1:2", "/", ""),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let word = |at: usize, default: &str| words.get(at).cloned().unwrap_or(default.into());
    let number = |at: usize, default: &str| -> u64 { word(at, default).parse().expect("a number") };
    let folder = word(0, "spool");
    let (first, count) = (number(1, "1"), number(2, "1"));
    let (host, age, stacks) = (word(3, "db-01"), number(4, "10"), number(5, "40"));
    let share = number(6, "0");
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("a time")
        .as_secs();
    std::fs::create_dir_all(&folder).expect("a folder");
    let memory = format!(
        "{{\"version\":1,\"id\":\"{ID}\",\"next\":{}}}\n",
        first + count
    );
    std::fs::write(Path::new(&folder).join("spool.json"), memory).expect("spool.json");
    let mut windows = Vec::new();
    for at in 0..count {
        let begin_s = now - age - WINDOW_S * (count - at);
        let (bytes, sums) = window(&host, begin_s, first + at, stacks, share);
        let name = format!("{ID}-{:010}.20261121T140312Z.pft", first + at);
        let part = Path::new(&folder).join(format!(".{name}"));
        std::fs::write(&part, bytes).expect("a window");
        std::fs::rename(part, Path::new(&folder).join(name)).expect("its name");
        windows.push(serde_json::json!({ "number": first + at, "begin": begin_s, "stacks": sums }));
    }
    println!("{}", serde_json::json!({ "windows": windows }));
}

/// By service, samples by stack: names of functions, outermost first.
type Sums = BTreeMap<String, BTreeMap<String, u64>>;

fn window(host: &str, begin_s: u64, number: u64, stacks: u64, share: u64) -> (Vec<u8>, Sums) {
    let mut store = Store::new(Limits::default());
    store.set_info(Info {
        rates: Rates::always(19),
        host: Host {
            name: host.into(),
            kernel: "6.18.44".into(),
            arch: "x86-64".into(),
            cpus: 4,
            ..Host::default()
        },
        scope: "system".into(),
        epoch_unix_ms: begin_s as i64 * 1000,
        lost: number % 3,
        ..Info::default()
    });
    store.begin(0);
    store.add_module(ModuleId(100), "[kernel]", "");
    let mut sums = Sums::new();
    let mut random = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |bound: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % bound
    };
    for (at, (service, comm, cgroup, file)) in SERVICES.into_iter().enumerate() {
        let module = ModuleId(at as u32 + 1);
        store.add_module(module, file, &format!("/usr/bin/{file}"));
        store.set_build_id(module, &[at as u8 + 0xa0; 20]);
        for pid in [10, 11].map(|it| at as u32 * 100 + it) {
            store.add_process(ProcessId(pid), pid, comm);
            let details = ProcessDetails {
                cgroup: Some(cgroup.into()),
                ..ProcessDetails::default()
            };
            store.set_process_details(ProcessId(pid), details);
        }
        let is_kernel = file.is_empty();
        for stack in 0..stacks {
            let mut weight = 1 + below(20);
            if share > 0 && service == "nginx" && stack == 0 {
                weight += 20 * stacks * share / 100;
            }
            let frame = |address: u64| {
                if is_kernel {
                    Frame {
                        module: ModuleId(100),
                        address: 0xffff_ffff_8100_0000 + address,
                        kind: FrameKind::Kernel,
                    }
                } else {
                    Frame {
                        module,
                        address,
                        kind: FrameKind::User,
                    }
                }
            };
            let leaf = frame(0x10_000 + stack * 16);
            let frames = [leaf, frame(0x1000 + stack % 5), frame(0x100)];
            let is_cut = stack % 10 == 9 && !is_kernel;
            store.add_sample(NewSample {
                time_ns: 1 + below(WINDOW_S * SECOND_NS - 2),
                cpu: 0,
                process: ProcessId(at as u32 * 100 + 10 + below(2) as u32),
                tid: at as u32 * 100 + 10,
                comm,
                frames: &frames,
                kernel_frames: if is_kernel { 3 } else { 0 },
                ending: if is_cut {
                    Ending::TooDeep
                } else {
                    Ending::Root
                },
                weight,
            });
            let prefix = format!("{service}::");
            let mut path = Vec::new();
            for (depth, frame) in frames.iter().enumerate() {
                let id = store.find_frame(frame).expect("it was added");
                let name = match depth {
                    0 if stack == 0 && service == "nginx" => "regression".to_string(),
                    0 => format!("{prefix}leaf_{stack}"),
                    1 => format!("{prefix}middle_{}", stack % 5),
                    _ => format!("{prefix}main"),
                };
                if depth == 0 && stack % 7 == 6 && !is_kernel {
                    store.set_name(id, NameState::Unnamed(NoName::Stripped));
                    path.push(format!("/usr/bin/{file}+{:#x}", frame.address));
                    continue;
                }
                store.set_name(id, NameState::Named(name.as_str().into()));
                if depth == 0 && stack % 4 == 1 && !is_kernel {
                    let inner = format!("{prefix}inlined");
                    // What debug information calls the function is not what its symbol is called.
                    let debug = format!("{name}(int)");
                    let links = [(&*inner, 7), (&*debug, 12)].map(|(function, line)| SourceFrame {
                        function,
                        file: "src/main.c",
                        line,
                    });
                    store.set_source(id, &links);
                    path.push(inner.clone());
                }
                path.push(name);
            }
            if is_cut {
                path.push("[stopped: too_deep]".into());
            }
            path.reverse();
            let of_service = sums.entry(service.into()).or_default();
            *of_service.entry(path.join(";")).or_default() += weight;
        }
    }
    let view = store.view();
    let mut bytes = Vec::new();
    let mut writer = pft::Writer::new(&mut bytes).expect("a list of bytes takes it");
    writer
        .append_last(&view, WINDOW_S * SECOND_NS - 1)
        .expect("it is written");
    writer.finish(&view).expect("it is written");
    (bytes, sums)
}
