//! The failure that most users see first: missing rights to sample.

use super::{Exit, Failure};
use probe::privilege::MissingRights;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;

/// The capabilities of a binary that any user may run, as docs/install.md explains them: `cap_bpf`
/// and `cap_perfmon` for sampling, the others for names of functions in the kernel and in programs
/// of other users. On two lines, because one would be too long for a terminal of 80 columns.
const FILE_CAPABILITIES: [&str; 2] = [
    "cap_bpf,cap_perfmon,cap_syslog+ep",
    "cap_sys_ptrace,cap_dac_read_search,cap_checkpoint_restore+ep",
];

/// Directories that sudo searches by default, whatever the user's PATH is.
const SUDO_PATH: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// How this run was started, for suggesting a command that does it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The path of the program, or only its name if sudo would find it.
    program: String,
    /// The path of the program, for commands that do not search for it.
    file: String,
    /// The arguments, quoted for a shell.
    args: String,
}

impl Invocation {
    /// Returns how this process was started.
    pub fn current() -> Invocation {
        let args: Vec<OsString> = std::env::args_os().skip(1).collect();
        let exe = std::env::current_exe().unwrap_or_else(|_| "proftop".into());
        let cwd = std::env::current_dir().unwrap_or_default();
        Invocation::new(&exe, &cwd, &args)
    }

    /// Creates an invocation from these words.
    #[cfg(test)]
    pub fn typed(program: &str, args: &str) -> Invocation {
        Invocation {
            program: program.into(),
            file: program.into(),
            args: args.into(),
        }
    }

    /// Returns the command that opens the screen of one process with the same program.
    pub fn for_process(self, pid: u32) -> Invocation {
        Invocation {
            args: format!("-p {pid}"),
            ..self
        }
    }

    /// Returns this run with one more option, which is put before `-- COMMAND`.
    pub fn with_option(&self, option: &str) -> String {
        let Invocation { program, args, .. } = self;
        // After `--` the option would belong to the command.
        if let Some(before) = args.strip_suffix("--")
            && (before.is_empty() || before.ends_with(' '))
        {
            return format!("{program} {before}{option}");
        }
        match args
            .split_once("-- ")
            .filter(|(before, _)| before.is_empty() || before.ends_with(' '))
        {
            Some((before, command)) => format!("{program} {before}{option} -- {command}"),
            None => format!("{self} {option}"),
        }
    }

    /// Returns the same program with other arguments.
    pub fn instead(&self, words: &str) -> Invocation {
        Invocation {
            args: words.into(),
            ..self.clone()
        }
    }

    /// Returns this run with a variable in its environment.
    pub fn with_variable(&self, name: &str, value: &str) -> String {
        format!("{name}={} {self}", quote(value))
    }

    fn new(exe: &Path, cwd: &Path, args: &[OsString]) -> Invocation {
        let on_sudo_path = exe
            .parent()
            .is_some_and(|dir| SUDO_PATH.iter().any(|known| dir == Path::new(known)));
        let program = if on_sudo_path {
            exe.file_name().unwrap_or_default().display().to_string()
        } else if let (Ok(below), true) = (exe.strip_prefix(cwd), cwd != Path::new("/")) {
            format!("./{}", below.display())
        } else {
            exe.display().to_string()
        };
        let file = if on_sudo_path {
            exe.display().to_string()
        } else {
            program.clone()
        };
        let args: Vec<_> = args
            .iter()
            .map(|arg| quote(&arg.to_string_lossy()))
            .collect();
        Invocation {
            program: quote(&program),
            file: quote(&file),
            args: args.join(" "),
        }
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Invocation { program, args, .. } = self;
        write!(f, "{}", format!("{program} {args}").trim_end())
    }
}

/// Returns the message for a user without the rights to sample, with advice for the user's
/// situation. `needs_bpf` means that what the user wants is impossible without BPF.
pub fn cannot_sample(
    missing: &MissingRights,
    paranoid: Option<i32>,
    invocation: &Invocation,
    needs_bpf: bool,
) -> Failure {
    let mut why = format!("you are {missing}");
    if let (Some(level), false) = (paranoid, missing.in_user_namespace) {
        why += &format!("; kernel.perf_event_paranoid = {level}");
    }
    let failure = Failure::new(
        Exit::NotPossible,
        "cannot sample: no right to load BPF programs and open CPU clocks",
    )
    .detail(why)
    .more(works_without_rights(paranoid, needs_bpf));
    let file = &invocation.file;
    if missing.in_user_namespace {
        return failure
            .detail("BPF asks for these rights outside of any container: run proftop on the host");
    }
    if missing.euid == 0 {
        return failure.remedy(
            "docker run --pid=host --cap-add=BPF \\\n  --cap-add=PERFMON --cap-add=SYS_PTRACE …",
            "as root on the host, for this container",
        );
    }
    let again = format!("sudo {invocation}");
    let [first, second] = FILE_CAPABILITIES;
    failure.remedy(again, "this run").remedy(
        format!("sudo setcap \"{first} \\\n  {second}\" \\\n  {file}"),
        "every run, whoever starts it",
    )
}

/// Returns the message for a user who has the capabilities to sample, on a kernel that opens CPU
/// clocks only for root because of this level of `kernel.perf_event_paranoid`.
pub fn cannot_open_clocks(level: i32, invocation: &Invocation) -> Failure {
    Failure::new(
        Exit::NotPossible,
        format!("cannot sample: kernel.perf_event_paranoid = {level} keeps CPU clocks for root"),
    )
    .detail("levels above 2 are this distribution's own: CAP_PERFMON does not count there")
    .remedy(
        "sudo sysctl kernel.perf_event_paranoid=2",
        "until the next boot",
    )
    .remedy(format!("sudo {invocation}"), "this run")
}

/// Returns what works without rights. With `kernel.perf_event_paranoid` up to 2, users may sample
/// their own processes by perf, but that does not help if BPF is needed.
fn works_without_rights(paranoid: Option<i32>, needs_bpf: bool) -> &'static str {
    match paranoid {
        Some(level) if level > 2 => "Works without rights: proftop doctor, proftop --help",
        _ if needs_bpf => {
            "Works without rights, but not with BPF: proftop -- COMMAND, -p PID of your own"
        }
        _ => "Works without rights: proftop doctor, proftop -- COMMAND, -p PID of your own",
    }
}

/// Returns the message for a user who chose `--engine perf` and may not even use that.
pub fn not_even_by_perf(error: &probe::Error, paranoid: Option<i32>) -> Failure {
    let failure = Failure::new(Exit::NotPossible, format!("cannot sample: {error}"));
    let Some(level) = paranoid.filter(|_| error.is_permission()) else {
        return failure;
    };
    let failure = failure.detail(format!("kernel.perf_event_paranoid = {level}"));
    if level > 2 {
        return failure.remedy(
            "sudo sysctl kernel.perf_event_paranoid=2",
            "everybody may sample processes of their own",
        );
    }
    failure
        .remedy("proftop -- COMMAND", "a process of your own")
        .remedy("proftop -p PID", "a process of your own")
}

/// Quotes a word for a shell. It stays unchanged if that is safe.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,:=+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    // Control characters are left out, because the text goes to a terminal.
    let visible: String = word.chars().filter(|c| !c.is_control()).collect();
    format!("'{}'", visible.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use probe::privilege::Capability;

    fn invocation(exe: &str, args: &[&str]) -> Invocation {
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        Invocation::new(Path::new(exe), Path::new("/src/proftop"), &args)
    }

    fn missing(euid: u32) -> MissingRights {
        MissingRights {
            euid,
            missing: vec![Capability::Bpf, Capability::Perfmon],
            in_user_namespace: false,
        }
    }

    #[test]
    fn an_ordinary_user_gets_two_ways_out() {
        let run = invocation("/src/proftop/target/release/proftop", &["-p", "12"]);
        let text = cannot_sample(&missing(1000), Some(2), &run, false).to_string();
        let expected = "\
proftop: cannot sample: no right to load BPF programs and open CPU clocks
  you are uid 1000 without CAP_BPF+CAP_PERFMON; kernel.perf_event_paranoid = 2
  Any one of these is enough:
    sudo ./target/release/proftop -p 12           this run
    sudo setcap \"cap_bpf,cap_perfmon,cap_syslog+ep \\
      cap_sys_ptrace,cap_dac_read_search,cap_checkpoint_restore+ep\" \\
      ./target/release/proftop                    every run, whoever starts it
  Works without rights: proftop doctor, proftop -- COMMAND, -p PID of your own
";
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn a_level_above_those_of_the_kernel_is_named() {
        let run = invocation("/usr/bin/proftop", &["-p", "12"]);
        let expected = "\
proftop: cannot sample: kernel.perf_event_paranoid = 3 keeps CPU clocks for root
  levels above 2 are this distribution's own: CAP_PERFMON does not count there
  Any one of these is enough:
    sudo sysctl kernel.perf_event_paranoid=2      until the next boot
    sudo proftop -p 12                            this run
";
        assert_eq!(cannot_open_clocks(3, &run).to_string(), expected);
    }

    #[test]
    fn the_message_and_the_document_name_the_same_capabilities() {
        let document = include_str!("../../../docs/install.md");
        let (_, table) = document
            .split_once("| capability | for |")
            .expect("the table");
        let (table, _) = table.split_once("\n\n").expect("its end");
        let mut documented: Vec<String> = table
            .split('`')
            .filter(|word| word.starts_with("CAP_"))
            .map(str::to_lowercase)
            .collect();
        let named = FILE_CAPABILITIES.map(|clause| clause.trim_end_matches("+ep"));
        let mut named: Vec<&str> = named.iter().flat_map(|names| names.split(',')).collect();
        documented.sort();
        named.sort();
        assert_eq!(documented, named);
    }

    #[test]
    fn what_needs_bpf_is_not_said_to_work_without() {
        let run = invocation("/usr/bin/proftop", &["trace", "f", "--", "x"]);
        let text = cannot_sample(&missing(1000), Some(2), &run, true).to_string();
        assert!(text.contains("not with BPF: proftop -- COMMAND"), "{text}");
        assert!(text.contains("\n      /usr/bin/proftop "), "{text}");
    }

    #[test]
    fn root_in_a_container_is_not_told_to_use_sudo() {
        let text =
            cannot_sample(&missing(0), None, &invocation("/bin/proftop", &[]), false).to_string();
        assert!(text.contains("--cap-add=BPF"), "{text}");
        assert!(!text.contains("sudo"), "{text}");
        let mut rootless = missing(0);
        rootless.missing.clear();
        rootless.in_user_namespace = true;
        let text =
            cannot_sample(&rootless, Some(2), &invocation("/bin/proftop", &[]), false).to_string();
        assert!(text.contains("on the host"), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }

    #[test]
    fn names_the_program_so_that_sudo_finds_it() {
        assert_eq!(invocation("/usr/bin/proftop", &[]).program, "proftop");
        // `setcap` does not search PATH.
        assert_eq!(invocation("/usr/bin/proftop", &[]).file, "/usr/bin/proftop");
        let home = invocation("/home/ann/.cargo/bin/proftop", &[]);
        assert_eq!(home.program, "/home/ann/.cargo/bin/proftop");
    }

    #[test]
    fn an_option_is_no_part_of_the_command() {
        let run = |args: &[&str]| invocation("/usr/bin/proftop", args).with_option("-f");
        assert_eq!(run(&["record"]), "proftop record -f");
        assert_eq!(run(&["-b", "--", "make"]), "proftop -b -f -- make");
        assert_eq!(run(&["--", "a", "--", "b"]), "proftop -f -- a -- b");
        assert_eq!(run(&["--"]), "proftop -f");
        assert_eq!(run(&["-b", "--"]), "proftop -b -f");
    }

    #[test]
    fn arguments_survive_the_shell() {
        let run = invocation("/usr/bin/proftop", &["--comm", "a b'c", "", "\x1b[2J"]);
        assert_eq!(run.args, r"--comm 'a b'\''c' '' '[2J'");
    }
}
