use super::*;
use crate::code::{Hit, Syntax};
use profile::FrameKind;
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::SystemTime;
use test_support::{Process, Scratch, compile};

/// A program that makes a function at run time, describes it in a perf map or a dump, prints its
/// address, and waits until its input ends.
const SOURCE: &str = r#"
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* again: dec %rdi; jne again; ret */
static const unsigned char code[] = {0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3};

static void dump(void *at, const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/jit-%d.dump", folder, getpid());
    int file = open(path, O_CREAT | O_TRUNC | O_RDWR, 0600);
    unsigned head[10] = {0x4a695444, 1, 40, 62};
    unsigned long place = (unsigned long)at;
    unsigned long load[7] = {(16 + 40 + 6 + sizeof code) << 32, 1, 0, place, place, sizeof code};
    write(file, head, sizeof head);
    write(file, load, sizeof load);
    write(file, "count", 6);
    write(file, code, sizeof code);
    mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
}

int main(int count, char **words)
{
    void *at = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(at, code, sizeof code);
    mprotect(at, 4096, PROT_READ | PROT_EXEC);
    if (count > 1) {
        dump(at, words[1]);
    } else {
        char path[64];
        snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
        FILE *map = fopen(path, "w");
        fprintf(map, "%lx %zx count\n", (unsigned long)at, sizeof code);
        fclose(map);
    }
    printf("%lu\n", (unsigned long)at);
    fflush(stdout);
    getchar();
    return 0;
}
"#;

/// A process that has made a function.
struct Runtime {
    child: Process,
    address: u64,
}

impl Runtime {
    /// Starts the program. None, with a message, if there is no compiler.
    fn start(scratch: &Scratch, dump: bool) -> Option<Self> {
        let source = scratch.write("runtime.c", SOURCE);
        let program = source.with_extension("");
        compile(&source, &program, ["-O1", "-w"])?;
        let mut command = Command::new(&program);
        if dump {
            command.arg(source.parent().expect("a folder"));
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = Process::start(&mut command);
        let mut line = String::new();
        let output = child.stdout.take().expect("a pipe");
        BufReader::new(output).read_line(&mut line).expect("a line");
        let address = line.trim().parse().expect("an address");
        Some(Self { child, address })
    }

    fn wanted(&self, name: &str) -> Wanted {
        Wanted {
            function: name.into(),
            module: "[anon]".into(),
            module_path: "[anon]".into(),
            build_id: [].into(),
            kind: FrameKind::Jit,
            is_recorded: false,
            pids: vec![self.child.id()],
            hits: vec![Hit {
                address: self.address + 3,
                samples: 1,
                host: None,
                file: None,
                line: 0,
            }],
            visit: 0,
        }
    }
}

fn lines(body: &Body) -> Vec<String> {
    let instructions = body.pieces.iter().flat_map(|piece| &piece.instructions);
    instructions.map(|i| i.text(Syntax::Att)).collect()
}

fn read(wanted: &Wanted) -> (Body, Result<(), String>) {
    let mut body = Body::default();
    let done = disassemble(wanted, &Files::default(), &mut body);
    (body, done)
}

const EXPECTED: [&str; 3] = ["dec    %rdi", "jne    +0x0", "ret"];

#[test]
fn code_is_read_in_the_memory_of_its_process() {
    let scratch = Scratch::new();
    let Some(mut runtime) = Runtime::start(&scratch, false) else {
        return;
    };
    let wanted = runtime.wanted("count");
    let (body, done) = read(&wanted);
    assert_eq!(done, Ok(()));
    assert_eq!(lines(&body), EXPECTED);
    assert_eq!(
        body.find(runtime.address + 3),
        Some((0, 1)),
        "where it was hit"
    );
    assert!(body.notes.concat().contains("memory"), "{:?}", body.notes);

    // Another function is at that address by now.
    let (body, done) = read(&runtime.wanted("other"));
    assert!(done.is_err_and(|why| why.contains("other code")));
    assert!(body.covers(runtime.address + 3));
    // An address that no map covers, and a process without a map.
    let mut beside = runtime.wanted("count");
    beside.hits[0].address = 0x1000;
    let (_, done) = read(&beside);
    assert!(done.is_err_and(|why| why.contains("perf map does not have")));
    std::fs::remove_file(format!("/tmp/perf-{}.map", runtime.child.id())).expect("removed");
    let (_, done) = read(&wanted);
    assert!(done.is_err_and(|why| why.contains("node --perf-basic-prof")));

    runtime.child.kill().expect("killed");
    runtime.child.wait().expect("gone");
    let (_, done) = read(&wanted);
    assert!(done.is_err_and(|why| why.contains("has ended")));
}

#[test]
fn a_dump_has_the_code_itself() {
    let scratch = Scratch::new();
    let Some(runtime) = Runtime::start(&scratch, true) else {
        return;
    };
    // A stale map of an earlier process with the same pid does not hide the dump.
    let map = format!("/tmp/perf-{}.map", runtime.child.id());
    let map = std::fs::File::create(map).expect("a map");
    map.set_modified(SystemTime::UNIX_EPOCH)
        .expect("an old map");
    let (body, done) = read(&runtime.wanted("count"));
    assert_eq!(done, Ok(()));
    assert_eq!(lines(&body), EXPECTED);
    assert!(body.notes.is_empty(), "it is as it was made");
}

#[test]
fn what_is_recorded_has_no_code() {
    let scratch = Scratch::new();
    let Some(runtime) = Runtime::start(&scratch, false) else {
        return;
    };
    let recorded = Wanted {
        is_recorded: true,
        ..runtime.wanted("count")
    };
    assert!(
        read(&recorded)
            .1
            .is_err_and(|why| why.contains("in no recording"))
    );
    for trouble in [
        Trouble::NoMemory(ErrorKind::PermissionDenied),
        Trouble::NoMemory(ErrorKind::TimedOut),
        Trouble::Foreign,
    ] {
        assert!(!trouble.words().contains("os error"), "{trouble:?}");
    }
    let denied = Trouble::NoMemory(ErrorKind::PermissionDenied);
    assert!(denied.words().contains("CAP_SYS_PTRACE"));
}
