//! Writes a recording of any length from a short one: `repeat IN OUT SAMPLES SEED`.
//!
//! Samples are drawn from those of the given recording by their weight, and there are 10,000 of
//! them in a second, as of a hundred CPUs at 99 Hz. A long recording has more different stacks
//! than a short one, but not as many more as it has samples: some samples get a stack that is
//! new, the caller's part of one stack and the callee's part of another one of the same process,
//! so that a million samples have about a hundred thousand stacks, and a hundred million a million.

use profile::formats::pft;
use profile::query::StackFrame;
use profile::{Cancel, Ending, Frame, FrameKind, Info, Limits, NewSample, ProcessId, Query, Rates};
use std::collections::HashMap;
use std::io::BufWriter;
use std::time::Duration;
use test_support::Random;

const SAMPLES_PER_SECOND: u64 = 10_000;
const CPUS: u64 = 100;
const HZ: u32 = 99;
const SECOND_NS: u64 = 1_000_000_000;
/// One of four samples has a new stack in the beginning, one of six after this number of samples, and
/// one of forty after a hundred times that number.
const SAMPLES_OF_VARIETY: f64 = 40_000.0;
/// Processes that the given recording has are numbered below this.
const PROCESSES: u32 = 1 << 20;

/// A stack of the given recording.
struct Stack {
    process: usize,
    frames: Vec<Frame>,
    ending: Ending,
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, input, output, samples, seed] = &words[..] else {
        panic!("usage: repeat IN OUT SAMPLES SEED");
    };
    let samples: u64 = samples.parse().expect("a number of samples");
    let mut random = Random::new(seed.parse().expect("a number to begin with"));

    let file = std::fs::read(input).expect("a file");
    let limits = Limits {
        keep: Duration::MAX,
        memory_bytes: 6 << 30,
    };
    let (mut store, _) = pft::read(&file[..], limits).expect("a recording");
    let selection = store.view().select(&Query::default(), &Cancel::new());
    let selection = selection.expect("nobody cancels it");
    let view = selection.view().clone();
    let (processes, counted) = selection.process_stacks();
    let mut stacks = Vec::new();
    let mut of_process: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut ends = Vec::new();
    let mut total = 0;
    for each in counted {
        let frames = each.frames.iter().filter_map(|frame| match frame {
            StackFrame::Frame(frame) => view.frame(*frame),
            StackFrame::Note(_) => None,
        });
        let frames: Vec<Frame> = frames.collect();
        let is_whole = frames.len() == each.frames.len();
        total += each.samples;
        ends.push(total);
        of_process
            .entry(each.process)
            .or_default()
            .push(stacks.len());
        stacks.push(Stack {
            process: each.process,
            frames,
            ending: if is_whole {
                Ending::Root
            } else {
                Ending::BrokenChain
            },
        });
    }

    // The recording that is written has all files and names of the given one, and samples of its
    // own, which begin where those of the given one have ended.
    let begin_second = view.end_ns().unwrap_or(0) / SECOND_NS + 2;
    store.set_info(Info {
        rates: Rates::always(HZ),
        ..Info::clone(view.info())
    });
    for (at, process) in processes.iter().enumerate() {
        store.add_process(ProcessId(PROCESSES + at as u32), process.pid, &process.comm);
    }
    let out = BufWriter::new(std::fs::File::create(output).expect("a file to write"));
    let mut writer = pft::Writer::new(out).expect("a file to write");
    writer.begin_at(begin_second * SECOND_NS);
    let mut frames = Vec::new();
    for at in 0..samples {
        let second = begin_second + at / SAMPLES_PER_SECOND;
        let place = random.below(total);
        let stack = &stacks[ends.partition_point(|end| *end <= place)];
        frames.clear();
        let odds = (SAMPLES_OF_VARIETY / (SAMPLES_OF_VARIETY + at as f64)).sqrt() / 4.0;
        if (random.below(1 << 30) as f64) < odds * f64::from(1 << 30) {
            let others = &of_process[&stack.process];
            let other = &stacks[others[random.below(others.len() as u64) as usize]];
            splice(&other.frames, &stack.frames, &mut random, &mut frames);
        } else {
            frames.extend_from_slice(&stack.frames);
        }
        let process = &processes[stack.process];
        let is_kernel = |frame: &&Frame| frame.kind == FrameKind::Kernel;
        let in_second = at % SAMPLES_PER_SECOND;
        store.add_sample(NewSample {
            time_ns: second * SECOND_NS + in_second * (SECOND_NS / SAMPLES_PER_SECOND),
            cpu: random.below(CPUS) as u16,
            process: ProcessId(PROCESSES + stack.process as u32),
            tid: process.pid,
            comm: &process.comm,
            frames: &frames,
            kernel_frames: frames.iter().take_while(is_kernel).count(),
            ending: stack.ending,
            weight: 1,
        });
        if in_second + 1 == SAMPLES_PER_SECOND || at + 1 == samples {
            writer.append(&store.view(), None).expect("a block");
        }
    }
    writer.finish(&store.view()).expect("an end");
    println!("{samples} samples, {} bytes", writer.bytes());
}

/// Puts a stack together of the outer half of `outside` and the inner part of `inside`, kernel
/// frames included.
fn splice(outside: &[Frame], inside: &[Frame], random: &mut Random, into: &mut Vec<Frame>) {
    let is_kernel = |frame: &&Frame| frame.kind == FrameKind::Kernel;
    let kernel = inside.iter().take_while(is_kernel).count();
    let user = inside.len() - kernel;
    into.extend_from_slice(&inside[..kernel + random.index(user + 1)]);
    let of_outside = outside.iter().filter(|frame| !is_kernel(frame));
    let outside: Vec<Frame> = of_outside.copied().collect();
    into.extend_from_slice(&outside[random.index(outside.len() + 1)..]);
}
