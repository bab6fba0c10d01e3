//! Encodes questions about the memory of a process that runs Python, and their answers.
//!
//! ```text
//! question: one byte for its kind, and what is known of the process
//! answer: 0 and what was found, or for two kinds of questions 1 and why that is unknown
//! ```
//!
//! The only file of a question is the open memory. Nothing in an answer is trusted: a layout is one
//! that a process of that version could tell, threads are among those of the question, texts are
//! sanitized, and all other numbers are addresses in the memory of that process.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use crate::Reason;
use crate::files::Reply;
use crate::python::{
    Check, FoundFunction, Function, LOOKED_AT, Lack, Layout, Look, Memory as _, Seen, Trampoline,
    Version, WantedCode, blocks_of, read_threads, take_function, write_function,
};
use crate::wire::{Taken, put_u32, put_u64};

/// Maximum time for the answer to one question, if the process answers late.
const LONGEST: Duration = Duration::from_secs(1);

/// Maximum length of an answer, except for one more function. The lines of a function with a hundred
/// thousand instructions take less.
const BYTES_MAX: usize = 4 << 20;

const LOOK: u8 = 0;
const FUNCTIONS: u8 = 1;
const TRAMPOLINE: u8 = 2;
const THREADS: u8 = 3;

const FOUND: u8 = 0;
const LACKING: u8 = 1;

/// A question about the memory of a process.
#[derive(Debug)]
pub(super) enum Question {
    /// Everything about the process as a whole.
    Look(Look),
    /// The functions of code objects.
    Functions {
        version: Version,
        layout: Layout,
        wanted: Vec<WantedCode>,
        check: Check,
    },
    /// The kind of trampolines in the mapping that begins there.
    Trampoline(u64),
    /// The number of its threads, up to `max`.
    Threads {
        version: Version,
        runtime: u64,
        max: u32,
    },
}

/// What is known after a question of the same name.
#[derive(Debug, PartialEq)]
pub(super) enum Answer {
    Look(Result<Box<Seen>, Lack>),
    /// If they are very long, the last ones are missing.
    Functions(Vec<FoundFunction>),
    Trampoline(Option<Trampoline>),
    Threads(Result<u32, Lack>),
}

/// Answers a question in the parser process. `check` is the one of the process that has asked.
pub fn answer(message: &[u8], files: Vec<OwnedFd>, check: Check) -> Result<Reply, Reason> {
    let question = Question::read(message, check).ok_or(Reason::Refused)?;
    let memory = files.into_iter().next().ok_or(Reason::Refused)?;
    let answer = question.answer(&memory.into())?;
    Ok(Reply {
        bytes: answer.write(&question),
        file: None,
    })
}

impl Question {
    /// Encodes the question.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Question::Look(look) => {
                out.push(LOOK);
                look.write(out);
            }
            Question::Functions {
                version,
                layout,
                wanted,
                ..
            } => {
                out.extend([FUNCTIONS, version.major, version.minor]);
                layout.write(*version, out);
                put_u32(out, wanted.len() as u32);
                for WantedCode { address, check } in wanted {
                    put_u64(out, *address);
                    put_u32(out, *check);
                }
            }
            Question::Trampoline(start) => {
                out.push(TRAMPOLINE);
                put_u64(out, *start);
            }
            Question::Threads {
                version,
                runtime,
                max,
            } => {
                out.extend([THREADS, version.major, version.minor]);
                put_u64(out, *runtime);
                put_u32(out, *max);
            }
        }
    }

    /// Decodes a question; `None` if it is malformed.
    pub fn read(message: &[u8], check: Check) -> Option<Question> {
        let mut bytes = Taken(message);
        Some(match bytes.u8()? {
            LOOK => Question::Look(Look::take(&mut bytes)?),
            FUNCTIONS => {
                let version = Version::take(&mut bytes)?;
                let layout = Layout::take(version, &mut bytes)?;
                let count = bytes.u32()?;
                let mut code = || {
                    let (address, check) = (bytes.u64()?, bytes.u32()?);
                    Some(WantedCode { address, check })
                };
                let wanted = (0..count).map(|_| code()).collect::<Option<_>>()?;
                Question::Functions {
                    version,
                    layout,
                    wanted,
                    check,
                }
            }
            TRAMPOLINE => Question::Trampoline(bytes.u64()?),
            THREADS => Question::Threads {
                version: Version::take(&mut bytes)?,
                runtime: bytes.u64()?,
                max: bytes.u32()?,
            },
            _ => return None,
        })
    }

    /// Answers the question in this thread, from the open memory. An error if the process has no
    /// memory any more, if that is the reason why there is no answer.
    pub fn answer(&self, memory: &File) -> Result<Answer, Reason> {
        let until = Instant::now() + LONGEST;
        let of_now = || blocks_of(memory, until);
        Ok(match self {
            Question::Look(look) => match Seen::read(look, &of_now(), &of_now()) {
                Err(Lack::Unreadable(Reason::FileGone)) => return Err(Reason::FileGone),
                seen => Answer::Look(seen.map(Box::new)),
            },
            Question::Functions {
                layout,
                wanted,
                check,
                ..
            } => {
                let (memory, again) = (of_now(), of_now());
                Answer::Functions(Function::read_all(wanted, layout, *check, &memory, &again))
            }
            Question::Trampoline(start) => {
                let code = of_now().read(*start, LOOKED_AT)?;
                Answer::Trampoline(Trampoline::recognize(&code))
            }
            Question::Threads {
                version,
                runtime,
                max,
            } => {
                let memory = of_now();
                let layout = Layout::of(*version, &memory, *runtime);
                let threads = layout.and_then(|layout| {
                    let threads = read_threads(&memory, *runtime, &layout, *max as usize)?;
                    Ok(threads.len() as u32)
                });
                Answer::Threads(threads)
            }
        })
    }
}

impl Answer {
    /// Encodes the answer to a question. Functions that do not fit are left out.
    fn write(&self, question: &Question) -> Vec<u8> {
        let mut out = Vec::new();
        match (self, question) {
            (Answer::Look(Ok(seen)), Question::Look(look)) => {
                out.push(FOUND);
                seen.write(look, &mut out);
            }
            (Answer::Threads(Ok(count)), _) => {
                out.push(FOUND);
                put_u32(&mut out, *count);
            }
            (Answer::Look(Err(lack)) | Answer::Threads(Err(lack)), _) => {
                out.push(LACKING);
                lack.write(&mut out);
            }
            (Answer::Trampoline(found), _) => {
                out.push(found.is_some().into());
                if let Some(found) = found {
                    found.write(&mut out);
                }
            }
            (Answer::Functions(found), _) => {
                for function in found {
                    write_function(function, &mut out);
                    if out.len() > BYTES_MAX {
                        break;
                    }
                }
            }
            // No other question has this answer.
            (Answer::Look(Ok(_)), _) => {}
        }
        out
    }

    /// Decodes the answer to a question, which is not trusted; `None` if it is malformed.
    pub fn read(question: &Question, bytes: &[u8]) -> Option<Answer> {
        let mut bytes = Taken(bytes);
        let answer = match question {
            Question::Look(look) => Answer::Look(match bytes.u8()? {
                FOUND => Ok(Box::new(Seen::take(look, &mut bytes)?)),
                LACKING => Err(Lack::take(&mut bytes)?),
                _ => return None,
            }),
            Question::Functions { wanted, .. } => {
                let mut found = Vec::new();
                while !bytes.0.is_empty() {
                    found.push(take_function(&mut bytes)?);
                }
                Answer::Functions(Some(found).filter(|it| it.len() <= wanted.len())?)
            }
            Question::Trampoline(_) => Answer::Trampoline(match bytes.u8()? {
                0 => None,
                1 => Some(Trampoline::take(&mut bytes)?),
                _ => return None,
            }),
            Question::Threads { max, .. } => Answer::Threads(match bytes.u8()? {
                FOUND => Ok(bytes.u32().filter(|count| count <= max)?),
                LACKING => Err(Lack::take(&mut bytes)?),
                _ => return None,
            }),
        };
        bytes.0.is_empty().then_some(answer)
    }
}

/// Reads bytes as the answer to each kind of question.
///
/// # Panics
///
/// As [`super::check_any_answer`].
pub(super) fn check_any_answer(bytes: &[u8]) {
    for minor in [12, 14] {
        let version = Version { major: 3, minor };
        let look = Look {
            pid: 100,
            version,
            runtime: 0,
            layout: None,
            threading: Vec::new(),
            wants_tasks: true,
            tids: [(1, 100), (7, 107)].into(),
        };
        check_answer(&Question::Look(look), bytes);
        let threads = Question::Threads {
            version,
            runtime: 0,
            max: 16,
        };
        check_answer(&threads, bytes);
    }
    check_answer(&Question::Trampoline(0), bytes);
    let version = Version { major: 3, minor: 8 };
    if let Some(layout) = Layout::take(version, &mut Taken(&[])) {
        let code = WantedCode {
            address: 0,
            check: 0,
        };
        let functions = Question::Functions {
            version,
            layout,
            wanted: vec![code; 256],
            check: |_, _| 0,
        };
        check_answer(&functions, bytes);
    }
}

/// Reads bytes as the answer to a question, and checks what is taken of them.
fn check_answer(question: &Question, bytes: &[u8]) {
    let is_safe = |text: &str| crate::sanitize(text.as_bytes()) == text;
    match (Answer::read(question, bytes), question) {
        (Some(Answer::Look(Ok(seen))), Question::Look(look)) => {
            let is_own = |tid: &u32| look.tids.values().any(|own| own == tid);
            assert!(seen.threads.keys().all(is_own));
            assert!(seen.names.keys().chain(&seen.nested).all(is_own));
            for name in seen.names.values() {
                assert!(is_safe(name) && name.chars().count() <= 64);
            }
        }
        (Some(Answer::Functions(found)), Question::Functions { wanted, .. }) => {
            assert!(found.len() <= wanted.len());
            for function in found.iter().flatten().flatten() {
                assert!(is_safe(&function.name) && is_safe(&function.file));
                for offset in [i32::MIN, -1, 0, 7, i32::MAX] {
                    function.lines.at(offset);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::python::{LineTable, Lines, ThreadPlace};
    use proptest::prelude::*;
    use std::collections::{BTreeMap, HashMap, HashSet};

    const VERSIONS: [u8; 8] = [8, 9, 10, 11, 12, 13, 14, 15];

    fn check(first_line: u32, _: &[u64; 4]) -> u32 {
        first_line
    }

    /// A layout of each version; from 3.13 on, of a process that tells these offsets.
    fn layouts() -> impl Iterator<Item = (Version, Layout)> {
        VERSIONS.into_iter().map(|minor| {
            let version = Version { major: 3, minor };
            let last = if minor < 15 { 152 } else { 176 };
            let offsets = [
                632,
                0,
                7344,
                7200,
                7208,
                8,
                72,
                last,
                last + 8,
                8,
                0,
                56,
                70,
                112,
                120,
                128,
                136,
                68,
                200,
            ];
            let bytes: Vec<u8> = offsets.into_iter().flat_map(u32::to_le_bytes).collect();
            let layout = Layout::take(version, &mut Taken(&bytes)).expect("it is plausible");
            (version, layout)
        })
    }

    fn look(version: Version, layout: Option<Layout>) -> Look {
        Look {
            pid: 100,
            version,
            runtime: 0x7000_0000,
            layout,
            threading: vec![1, u64::MAX],
            wants_tasks: true,
            tids: BTreeMap::from([(1, 100), (7, 107)]),
        }
    }

    fn seen(layout: Layout) -> Seen {
        let place = ThreadPlace {
            state: 5,
            identity: u64::MAX,
        };
        Seen {
            layout,
            gil: Some(9),
            own_state: Some(-16),
            has_one_gil: true,
            threads: HashMap::from([(100, place), (107, place)]),
            nested: HashSet::from([107]),
            threading: vec![3],
            names: HashMap::from([(107, "worker".into())]),
            running_tasks: None,
        }
    }

    fn functions() -> Vec<FoundFunction> {
        let lines = Lines::decode(LineTable::Steps, &[0, 1, 6, 1], 10);
        let function = Function {
            name: "module.function".into(),
            file: "/a/module.py".into(),
            lines,
        };
        vec![
            Ok(Some(function)),
            Ok(None),
            Err(Reason::CodeGone),
            Err(Reason::Remote),
        ]
    }

    /// Questions of each kind, each with an answer.
    fn all() -> Vec<(Question, Answer)> {
        let mut all = Vec::new();
        for (version, layout) in layouts() {
            for known in [None, Some(layout)] {
                let question = Question::Look(look(version, known));
                all.push((question, Answer::Look(Ok(Box::new(seen(layout))))));
            }
            let question = Question::Look(look(version, None));
            all.push((question, Answer::Look(Err(Lack::FreeThreaded))));
            let wanted = WantedCode {
                address: u64::MAX,
                check: 7,
            };
            let question = Question::Functions {
                version,
                layout,
                wanted: vec![wanted; 4],
                check,
            };
            all.push((question, Answer::Functions(functions())));
            for count in [Ok(16), Err(Lack::Implausible("a pointer"))] {
                let question = Question::Threads {
                    version,
                    runtime: 1,
                    max: 16,
                };
                all.push((question, Answer::Threads(count)));
            }
        }
        let one = b"\x48\x83\xec\x08\xff\xd1\x48\x83\xc4\x08\xc3\0\0\0\0\0";
        for found in [None, Trampoline::recognize(&one.repeat(3))] {
            all.push((Question::Trampoline(u64::MAX), Answer::Trampoline(found)));
        }
        all
    }

    #[test]
    fn questions_and_answers_arrive_as_they_were_given() {
        for (question, answer) in all() {
            let mut message = Vec::new();
            question.write(&mut message);
            let mut again = Vec::new();
            let arrived = Question::read(&message, check).expect("it is whole");
            arrived.write(&mut again);
            assert_eq!(again, message);
            for len in 0..message.len() {
                assert!(Question::read(&message[..len], check).is_none(), "{len}");
            }
            let bytes = answer.write(&question);
            assert_eq!(Answer::read(&question, &bytes).as_ref(), Some(&answer));
            for len in 0..bytes.len() {
                // Functions at the end may be left out.
                let cut = Answer::read(&question, &bytes[..len]);
                let is_less =
                    matches!(&cut, Some(Answer::Functions(some)) if some.len() < functions().len());
                assert!(cut.is_none() || is_less, "{len}");
            }
            let more = [&bytes[..], &[0]].concat();
            assert_eq!(Answer::read(&question, &more), None, "{question:?}");
        }
    }

    #[test]
    fn an_answer_is_about_threads_of_the_question() {
        for (version, layout) in layouts() {
            let question = Question::Look(look(version, None));
            let place = seen(layout).threads[&100];
            let with = |change: fn(&mut Seen, ThreadPlace)| {
                let mut seen = seen(layout);
                change(&mut seen, place);
                let bytes = Answer::Look(Ok(Box::new(seen))).write(&question);
                Answer::read(&question, &bytes)
            };
            assert!(with(|_, _| {}).is_some());
            // The tid is the kernel's, and not the one that the process sees.
            let others: [fn(&mut Seen, ThreadPlace); 4] = [
                |seen, place| _ = seen.threads.insert(101, place),
                |seen, place| _ = seen.threads.insert(7, place),
                |seen, _| _ = seen.nested.insert(101),
                |seen, _| _ = seen.names.insert(101, "a thread of another process".into()),
            ];
            for other in others {
                assert_eq!(with(other), None);
            }
            assert_eq!(with(|seen, _| seen.threading = vec![1; 257]), None);
        }
    }

    #[test]
    fn a_known_layout_stays_as_it_is() {
        let (version, layout) = layouts().last().expect("3.15");
        let other = {
            let mut other = layout;
            other.thread.frame += 8;
            other
        };
        let question = Question::Look(look(version, Some(layout)));
        let bytes = Answer::Look(Ok(Box::new(seen(other)))).write(&question);
        let Some(Answer::Look(Ok(seen))) = Answer::read(&question, &bytes) else {
            panic!("it is well-formed");
        };
        assert_eq!(seen.layout, layout);
    }

    #[test]
    fn texts_are_safe_and_names_of_threads_short() {
        let (version, layout) = layouts().next().expect("3.8");
        let mut seen = seen(layout);
        let hostile = "\u{1b}]0;x\u{7}".repeat(100);
        seen.names.insert(107, hostile.clone().into());
        let question = Question::Look(look(version, None));
        let bytes = Answer::Look(Ok(Box::new(seen))).write(&question);
        let Some(Answer::Look(Ok(seen))) = Answer::read(&question, &bytes) else {
            panic!("it is well-formed");
        };
        assert!(seen.names[&107].starts_with("\\u{1b}]0;x"));
        check_answer(&question, &bytes);
        let function = Function {
            name: hostile.clone().into(),
            file: hostile.into(),
            lines: Lines::decode(LineTable::Steps, &[], 1),
        };
        let mut bytes = Vec::new();
        write_function(&Ok(Some(function)), &mut bytes);
        let question = Question::Functions {
            version,
            layout,
            wanted: vec![WantedCode {
                address: 1,
                check: 1,
            }],
            check,
        };
        let Some(Answer::Functions(found)) = Answer::read(&question, &bytes) else {
            panic!("it is well-formed");
        };
        assert!(matches!(&found[..], [Ok(Some(_))]));
        check_answer(&question, &bytes);
        // One more than was asked for.
        let twice = bytes.repeat(2);
        assert_eq!(Answer::read(&question, &twice), None);
    }

    /// Reads bytes as the answer to each kind of question, and checks what is taken of them.
    fn check_answers(bytes: &[u8]) {
        for (question, _) in all() {
            check_answer(&question, bytes);
        }
    }

    #[test]
    fn memory_of_other_things_has_no_python_and_does_no_harm() {
        let own = File::open("/proc/self/mem").expect("our own");
        let text = [0x5au8; 4096];
        for (question, _) in all() {
            let question = match question {
                Question::Look(look) => Question::Look(Look {
                    runtime: text.as_ptr() as u64,
                    ..look
                }),
                other => other,
            };
            match question.answer(&own) {
                Ok(Answer::Look(seen)) => assert!(seen.is_err()),
                Ok(Answer::Functions(found)) => {
                    assert!(found.iter().all(|it| *it == Err(Reason::CodeGone)));
                }
                Ok(Answer::Threads(count)) => assert!(count.is_err()),
                Ok(Answer::Trampoline(found)) => assert_eq!(found, None),
                Err(reason) => assert_eq!(reason, Reason::Refused),
            }
        }
    }

    proptest! {
        #[test]
        fn damage_makes_another_answer_or_none(
            which in any::<prop::sample::Index>(),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let all = all();
            let (question, answer) = which.get(&all);
            let mut bytes = answer.write(question);
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            check_answers(&bytes);
        }

        #[test]
        fn any_answer_is_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            check_answers(&bytes);
        }

        #[test]
        fn any_question_is_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let own = || OwnedFd::from(File::open("/proc/self/mem").expect("our own"));
            _ = answer(&bytes, vec![own()], check);
            _ = answer(&bytes, Vec::new(), check);
        }

        #[test]
        fn damaged_questions_are_harmless(
            which in any::<prop::sample::Index>(),
            at in any::<prop::sample::Index>(),
            byte in any::<u8>(),
        ) {
            let mut message = Vec::new();
            which.get(&all()).0.write(&mut message);
            let at = at.index(message.len());
            message[at] = byte;
            let own = File::open("/proc/self/mem").expect("our own");
            _ = answer(&message, vec![own.into()], check);
        }
    }
}
