//! Runs a command and prints every stack that is not whole: when it was taken, how the walk ended,
//! where, and its frames as `module+0xoffset`. At the end it counts the endings; those of the first
//! seconds separately, in which a slow machine still makes tables. With `perf` it samples without
//! BPF.
//!
//! ```text
//! cargo run --release -p probe --example stops -- [perf] 99 COMMAND [ARGUMENT]...
//! ```

use probe::child::{Streams, hold_command};
use probe::{BpfSource, Config, Ending, ModuleId, ModuleKind, PerfSource, Sample, Source, Target};
use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Time from the start of the command during which endings are counted separately.
const WARM_UP: Duration = Duration::from_secs(8);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).peekable();
    let by_perf = arguments.next_if(|word| word == "perf").is_some();
    let rate = arguments.next().ok_or("a rate, and a command")?;
    let program = arguments.next().ok_or("a command")?;
    let held = hold_command(program, arguments.collect(), None, Streams::OutputToStderr)?;
    let config = Config {
        target: Target {
            pids: vec![held.pid()],
            children: true,
            ..Target::default()
        },
        rate_hz: rate.to_string_lossy().parse()?,
        ..Config::default()
    };
    let mut source: Box<dyn Source> = if by_perf {
        Box::new(PerfSource::start(&config)?)
    } else {
        Box::new(BpfSource::start(&config)?)
    };
    let _running = held.release()?;
    let mut names: HashMap<ModuleId, String> = HashMap::new();
    let [mut first, mut then] = [(); 2].map(|()| BTreeMap::<String, u64>::new());
    let started = Instant::now();
    let started_ns = probe::now_ns();
    let mut last = Instant::now();
    while last.elapsed() < Duration::from_secs(2) {
        let batch = source.poll(Duration::from_millis(50))?;
        if batch.targets_alive != Some(0) {
            last = Instant::now();
        }
        for module in batch.modules {
            names.insert(module.id, name(&module.kind));
        }
        for sample in &batch.samples {
            let early = if sample.tables_late {
                " before its table"
            } else {
                ""
            };
            let key = format!("{:?}{early}", sample.ending);
            let is_first = sample.time_ns < started_ns + WARM_UP.as_nanos() as u64;
            let endings = if is_first { &mut first } else { &mut then };
            *endings.entry(key).or_default() += 1;
            let is_whole = matches!(sample.ending, Ending::Root | Ending::NoUserStack);
            if !is_whole || sample.tables_late {
                print(sample, started_ns, &names);
            }
        }
    }
    println!("{:?} first {WARM_UP:?}: {first:?}", started.elapsed());
    println!("then: {then:?}");
    Ok(())
}

fn print(sample: &Sample, started_ns: u64, names: &HashMap<ModuleId, String>) {
    let after_ms = sample.time_ns.saturating_sub(started_ns) / 1_000_000;
    let user = &sample.frames[sample.kernel_frames..];
    let frames: Vec<String> = user
        .iter()
        .map(|frame| {
            let name = names.get(&frame.module).map_or("?", String::as_str);
            format!("{name}+{:#x}", frame.address)
        })
        .collect();
    println!(
        "{after_ms:6} ms {} {:?}{} at {:#x} kernel {}: {}",
        sample.comm,
        sample.ending,
        if sample.tables_late {
            " before its table"
        } else {
            ""
        },
        sample.stopped_at,
        sample.kernel_frames,
        frames.join(" ")
    );
}

fn name(kind: &ModuleKind) -> String {
    match kind {
        ModuleKind::File { path, .. } => {
            let name = path.file_name().unwrap_or(path.as_os_str());
            name.to_string_lossy().into_owned()
        }
        ModuleKind::Kernel => "kernel".into(),
        ModuleKind::Vdso => "[vdso]".into(),
        ModuleKind::NarrowVdso { .. } => "[vdso32]".into(),
        ModuleKind::Vsyscall => "[vsyscall]".into(),
        ModuleKind::Anonymous { .. } => "[anon]".into(),
        ModuleKind::Python { .. } => "[python]".into(),
        ModuleKind::Unmapped { .. } => "[unmapped]".into(),
    }
}
