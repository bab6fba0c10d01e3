//! What parsers find in the memory of processes that run Python is the same as what this process
//! finds, or it is missing, with a reason.

use super::{KILLS, all_are_confined, parsers, while_they_are_killed};
use probe::files;
use probe_ebpf::python::check;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use symbolize::parser::{ProcessMemory, python_order};
use symbolize::python::{
    Found, FoundFunction, Lack, Layout, Look, Seen, Version, WantedCode, read_codes,
};
use symbolize::{FileOffset, Files, Mapping, ProcessAddr, Reason};
use test_support::{NO_PYTHON, Process, Scratch, pythons, skip, wait_for};

/// Number of functions of the program, besides those of its threads.
const FUNCTIONS: usize = 100;

/// Number of its threads.
const THREADS: usize = 4;

/// A process that runs Python, and changes nothing in its memory any more.
struct Program {
    process: Process,
    version: Version,
    runtime: u64,
    /// The addresses of the code of its functions.
    codes: Vec<u64>,
}

impl Program {
    /// Starts a program whose threads and functions have names with this word.
    fn start(python: &Path, word: &str, scratch: &Scratch) -> Program {
        let told = scratch.join(word);
        let text = format!(
            "import sys, threading, time\n\
             for n in range({FUNCTIONS}): exec(f'def {word}_{{n}}():\\n x = n\\n return {{n}}\\n')\n\
             made = [globals()[f'{word}_{{n}}'] for n in range({FUNCTIONS})]\n\
             ready = threading.Barrier({THREADS} + 1)\n\
             def wait(): ready.wait(); time.sleep(1000)\n\
             for n in range({THREADS}): threading.Thread(target=wait, name=f'{word} {{n}}').start()\n\
             ready.wait()\n\
             with open(sys.argv[1], 'w') as told: print(*[id(f.__code__) for f in made], file=told)\n\
             time.sleep(1000)\n"
        );
        let mut command = Command::new(python);
        let process = Process::start(command.args(["-S", "-c", &text]).arg(&told));
        let codes = wait_for("the addresses of functions", || {
            let text = fs::read_to_string(&told).ok()?;
            let text = text.strip_suffix('\n')?;
            let addresses = text.split(' ').map(|it| it.parse().expect("a number"));
            Some(addresses.collect())
        });
        let (version, runtime) = interpreter(process.pid()).expect("it maps its interpreter");
        Program {
            process,
            version,
            runtime,
            codes,
        }
    }

    fn open(&self) -> ProcessMemory {
        let memory = ProcessMemory::open(self.process.pid(), &files::of_targets());
        memory.expect("it lives")
    }

    fn look(&self) -> Look {
        let pid = self.process.pid();
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
        let tids = tasks.flatten().map(|task| {
            let tid = task.file_name().to_str().and_then(|it| it.parse().ok());
            tid.expect("a number")
        });
        Look {
            pid,
            version: self.version,
            runtime: self.runtime,
            layout: None,
            threading: Vec::new(),
            wants_tasks: true,
            tids: tids.map(|tid: u32| (tid.into(), tid)).collect(),
        }
    }

    /// The code objects of its functions, with the checks that a sample would have.
    fn wanted(&self, layout: &Layout) -> Vec<WantedCode> {
        let file = fs::File::open(format!("/proc/{}/mem", self.process.pid())).expect("it lives");
        let memory = |address: u64, length: u32| {
            let mut bytes = vec![0; length as usize];
            let read = file.read_exact_at(&mut bytes, address);
            read.map(|()| bytes).map_err(|_| Reason::Refused)
        };
        let any = |_, _: &[u64; 4]| true;
        let codes: Vec<_> = self.codes.iter().map(|address| (*address, any)).collect();
        let found = read_codes(&memory, &memory, &codes, layout).into_iter();
        let code = |(found, address): (_, &u64)| match found {
            Ok(Found::Code(code)) => WantedCode {
                address: *address,
                check: check(code.first_line, &code.identity),
            },
            other => panic!("{other:?}"),
        };
        found.zip(&self.codes).map(code).collect()
    }

    fn functions(
        &self,
        memory: &ProcessMemory,
        layout: Layout,
        way: &Files,
    ) -> Result<Vec<FoundFunction>, Reason> {
        let wanted = self.wanted(&layout);
        memory.functions(wanted, (self.version, layout), check, way)
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.process.pid().cast_signed()).expect("a process")
    }
}

/// Finds the interpreter among the files that a process has mapped.
fn interpreter(pid: u32) -> Option<(Version, u64)> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    maps.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let (range, rights) = (fields.next()?, fields.next()?);
        let (start, end) = range.split_once('-')?;
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let file_offset = FileOffset(number(fields.next()?)?);
        let path = Path::new(fields.nth(2)?);
        if !rights.contains('x') || !path.is_absolute() {
            return None;
        }
        let name = path.file_name()?.as_encoded_bytes();
        let file = fs::File::open(path).ok()?;
        let found = python_order::ask(file, name, &Files::default()).ok()?;
        let interpreter = found.interpreter?;
        let mapping = Mapping {
            start: ProcessAddr(number(start)?),
            end: ProcessAddr(number(end)?),
            file_offset,
        };
        Some((interpreter.version, interpreter.runtime_at(&mapping)?))
    })
}

/// Runs all of it, if there is an interpreter.
pub fn memory_is_read_by_parsers() {
    let pythons: Vec<_> = pythons().into_iter().collect();
    let Some((_, newest)) = pythons.last() else {
        skip(NO_PYTHON);
        return;
    };
    let scratch = Scratch::new();
    for (number, (version, python)) in pythons.iter().enumerate() {
        println!("memory of Python {version}");
        the_same_is_found_whoever_looks(python, &format!("any{number}"), &scratch);
    }
    while_parsers_are_killed(newest, &scratch);
    each_process_has_a_parser_of_its_own(newest, &scratch);
    a_parser_that_does_not_answer_costs_one_process(newest, &scratch);
}

fn the_same_is_found_whoever_looks(python: &Path, word: &str, scratch: &Scratch) {
    let program = Program::start(python, word, scratch);
    let (here, parsed) = (Files::default(), files::of_targets());
    let memory = program.open();
    let seen = memory.look(program.look(), &here).expect("it runs Python");
    check_seen(&program, &seen, word);
    assert_eq!(memory.look(program.look(), &parsed).as_ref(), Ok(&seen));
    all_are_confined();
    // What is known is not looked for again.
    let known = Look {
        layout: Some(seen.layout),
        threading: seen.threading.clone(),
        ..program.look()
    };
    assert_eq!(memory.look(known, &parsed).as_ref(), Ok(&seen));
    let functions = program.functions(&memory, seen.layout, &here);
    check_functions(functions.as_ref().expect("it lives"), word);
    assert_eq!(program.functions(&memory, seen.layout, &parsed), functions);
    let count = |way| memory.count_threads(program.version, program.runtime, 100, way);
    assert_eq!(count(&here), Ok(THREADS as u32 + 1));
    assert_eq!(count(&parsed), count(&here));
    assert_eq!(memory.trampoline(program.runtime, &parsed), Ok(None));
    // The memory of a process that has ended is that of nobody.
    let look = program.look();
    kill_process(program.pid(), Signal::KILL).expect("it lives");
    let gone = wait_for("its end", || {
        let seen = memory.look(look.clone(), &parsed);
        // Until then a parser may be late, or the process has memory and no threads any more.
        seen.err().filter(|lack| {
            !matches!(
                lack,
                Lack::Unreadable(Reason::Remote) | Lack::Implausible(_)
            )
        })
    });
    assert_eq!(gone, Lack::Unreadable(Reason::FileGone));
    let here = memory.look(look, &Files::default());
    assert_eq!(here.err(), Some(Lack::Unreadable(Reason::FileGone)));
}

fn check_seen(program: &Program, seen: &Seen, word: &str) {
    assert_eq!(seen.threads.len(), THREADS + 1);
    assert!(seen.has_one_gil && seen.gil.is_some());
    let mut names: Vec<_> = seen.names.values().map(|name| &**name).collect();
    names.sort_unstable();
    let expected: Vec<_> = (0..THREADS).map(|n| format!("{word} {n}")).collect();
    assert_eq!(names, expected);
    assert!(!seen.names.contains_key(&program.process.pid()));
}

fn check_functions(functions: &[FoundFunction], word: &str) {
    assert_eq!(functions.len(), FUNCTIONS);
    for (number, function) in functions.iter().enumerate() {
        let Ok(Some(function)) = function else {
            panic!("{number}: {function:?}");
        };
        assert!(function.name.ends_with(&format!("{word}_{number}")));
        assert_eq!(&*function.file, "<string>");
        assert_eq!(function.lines.at(-1), Some(1));
    }
}

fn while_parsers_are_killed(python: &Path, scratch: &Scratch) {
    let program = Program::start(python, "killed", scratch);
    let parsed = files::of_targets();
    let right = program
        .open()
        .look(program.look(), &parsed)
        .expect("it is there");
    let functions = |memory: &ProcessMemory| program.functions(memory, right.layout, &parsed);
    let all = functions(&program.open()).expect("they are there");
    check_functions(&all, "killed");
    let begin = Instant::now();
    let memory = program.open();
    assert_eq!(memory.look(program.look(), &parsed).as_ref(), Ok(&right));
    assert_eq!(functions(&memory).as_ref(), Ok(&all));
    let undisturbed = begin.elapsed();
    let missing = [Reason::Refused, Reason::Remote];
    while_they_are_killed("memory of Python", KILLS, undisturbed, || {
        // A parser that has failed four times is not asked again about the same memory.
        let memory = program.open();
        match memory.look(program.look(), &parsed) {
            Ok(seen) => assert_eq!(seen, right, "wrong threads"),
            Err(Lack::Unreadable(reason)) if missing.contains(&reason) => return false,
            Err(lack) => panic!("{lack:?}"),
        }
        match functions(&memory) {
            Ok(found) => assert_eq!(found, all, "wrong functions"),
            Err(reason) => assert!(missing.contains(&reason), "{reason:?}"),
        }
        true
    });
    assert_eq!(functions(&program.open()), Ok(all), "no disturbance lasts");
}

/// A parser that has the memory of one process does not get that of another one.
fn each_process_has_a_parser_of_its_own(python: &Path, scratch: &Scratch) {
    let words = ["one", "two", "three"];
    let programs = words.map(|word| Program::start(python, word, scratch));
    let way = files::of_targets();
    for (program, word) in programs.iter().zip(words) {
        let memory = program.open();
        let before = parsers();
        let ask = || {
            let seen = memory.look(program.look(), &way).expect("it is there");
            check_seen(program, &seen, word);
            let functions = program.functions(&memory, seen.layout, &way);
            check_functions(&functions.expect("they are there"), word);
        };
        ask();
        let is_new = |parser: &u32| !before.contains(parser);
        assert!(parsers().iter().any(is_new), "none that was there has it");
        // It may be ended in between, if that takes long.
        wait_for("a parser that is asked again", || {
            let before = parsers();
            ask();
            let is_new = |parser: &u32| !before.contains(parser);
            (!parsers().iter().any(is_new)).then_some(())
        });
    }
}

/// Stops the parser of a process, as memory does on a file system that does not answer.
fn a_parser_that_does_not_answer_costs_one_process(python: &Path, scratch: &Scratch) {
    let programs = ["held", "free"].map(|word| Program::start(python, word, scratch));
    let [held, free] = &programs;
    let way = files::of_targets();
    let memory = held.open();
    let before = parsers();
    assert!(memory.look(held.look(), &way).is_ok());
    let mut own = parsers();
    own.retain(|parser| !before.contains(parser));
    let [parser] = own[..] else {
        panic!("{before:?} {own:?}");
    };
    let parser = Pid::from_raw(parser.cast_signed()).expect("a process");
    kill_process(parser, Signal::STOP).expect("it is idle");
    let remote = Err(Lack::Unreadable(Reason::Remote));
    assert_eq!(memory.look(held.look(), &way), remote);
    // A new parser would wait as well.
    let parsers_before = parsers();
    assert_eq!(memory.look(held.look(), &way), remote);
    assert!(parsers().iter().all(|it| parsers_before.contains(it)));
    assert!(free.open().look(free.look(), &way).is_ok());
    let notes = files::notes();
    let told = format!("process {}", held.process.pid());
    assert!(notes.iter().any(|note| note.contains(&told)), "{notes:?}");
}
