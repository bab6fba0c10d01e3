//! A user whose processes map as much as the kernel lets them: the stacks of another user's programs
//! stay whole, also of programs that have just begun.

use crate::common::{can_sample, list, number, proftop, reports_until};
use serde_json::Value;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use test_support::{Process, Scratch, compile, skip, wait_until};

/// Maps its own code again and again, and then takes some time on a CPU now and then.
const GREEDY: &str = r#"
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char **words) {
    int self = open("/proc/self/exe", O_RDONLY);
    for (int left = atoi(words[count - 1]); left > 0; left--)
        if (mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, self, 0) == MAP_FAILED) return 1;
    write(1, "mapped\n", 7);
    for (volatile unsigned sum = 0;; usleep(20000))
        for (unsigned i = 0; i < 1000000; i++) sum += i;
}
"#;

/// Runs for some tenths of a second. Without frame pointers each caller is found by `.eh_frame`.
const SHORT: &str = "
static volatile unsigned sum;
__attribute__((noinline)) void leaf(unsigned rounds) {
    volatile unsigned room[24];
    while (rounds--) { room[rounds % 24] = sum; sum += rounds; }
}
__attribute__((noinline)) void caller(unsigned rounds) {
    volatile unsigned room[40];
    room[rounds % 40] = rounds;
    leaf(rounds);
    sum += room[rounds % 40];
}
int main(void) {
    for (int i = 0; i < 100; i++) caller(2000000);
}
";

/// Held by tests beside which no other test may map as much.
pub static ALONE: Mutex<()> = Mutex::new(());

const GREEDY_USER: u32 = 60_322;
const PROCESSES: usize = 8;
const MAPPINGS: &str = "60000";

/// Share of the samples in `leaf` that must have its callers.
const WHOLE_PERCENT: u64 = 99;

/// Number of reports in a row in which that must be so.
const LATEST: usize = 4;

/// Compiles the program without frame pointers. Returns None if there is no compiler.
fn compiled(scratch: &Scratch, text: &str, name: &str) -> Option<PathBuf> {
    let flags = ["-O1", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];
    let program = scratch.join(name);
    compile(&scratch.write(format!("{name}.c"), text), &program, flags)?;
    Some(program)
}

/// Starts the processes of the greedy user, and waits until each has mapped all. Has to be called by
/// root. Returns None if there is no compiler.
pub fn greedy_processes(scratch: &Scratch) -> Option<Vec<Process>> {
    let folder = scratch.join("");
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).expect("ours");
    let program = compiled(scratch, GREEDY, "greedy")?;
    let start = || {
        let mut command = Command::new(&program);
        Process::start_load(command.arg(MAPPINGS).uid(GREEDY_USER))
    };
    let processes: Vec<Process> = (0..PROCESSES).map(|_| start()).collect();
    let mappings = |process: &Process| {
        let maps = fs::read_to_string(format!("/proc/{}/maps", process.pid()));
        maps.unwrap_or_default().lines().count()
    };
    let least: usize = MAPPINGS.parse().expect("a number");
    for process in &processes {
        wait_until("all is mapped", || mappings(process) >= least);
    }
    Some(processes)
}

#[test]
fn eight_processes_with_sixty_thousand_mappings_cut_nobody_elses_stacks() {
    if !can_sample() {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return skip("only root starts programs of another user");
    }
    let scratch = Scratch::new();
    let _alone = ALONE.lock();
    let Some(_greedy) = greedy_processes(&scratch) else {
        return;
    };
    let Some(short) = compiled(&scratch, SHORT, "short") else {
        return;
    };
    let again = format!("while :; do {}; done", short.display());
    let _short = Process::start_load(Command::new("sh").args(["-c", &again]));

    let total = |reports: &[Value], name: &str| -> u64 {
        let rows = reports.iter().flat_map(|report| list(report, "functions"));
        rows.filter(|row| row["name"] == name && row["module"] == "short")
            .map(|row| number(row, "total"))
            .sum()
    };
    // At the start the mappings of all these processes are read, half a million in the first seconds,
    // which takes longer beside other tests. If their user had taken the room of others, stacks would
    // stay cut.
    let live = ["-b", "--format", "json", "-F", "499", "-d", "1"];
    reports_until(&mut proftop(&live), "whole stacks", |reports| {
        let latest = &reports[reports.len().saturating_sub(LATEST)..];
        let leaf = total(latest, "leaf");
        let is_whole = |name| total(latest, name) * 100 >= leaf * WHOLE_PERCENT;
        latest.len() == LATEST && leaf > 200 && is_whole("caller") && is_whole("main")
    });
}
