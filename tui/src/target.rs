//! A *target* is what is sampled, looked up on this machine: pids that exist, a control group that
//! was found, and the words for the header.

pub mod nobody;

use crate::failure::{Exit, Failure};
use engine::snapshot::Run;
use probe::cgroup::{Cgroup, CgroupError, Hierarchy};
use probe::privilege::{Capability, Rights};
use regex::Regex;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use symbolize::sanitize;

/// How many users can be given. The BPF program has no room for more.
const USERS_MAX: usize = 1024;

/// What to sample. Kinds combine with "and", values of one kind with "or".
#[derive(Debug, Clone, Default)]
pub struct TargetSpec {
    pub pids: Vec<u32>,
    pub tids: Vec<u32>,
    pub comm: Option<Regex>,
    /// A path, the name of a unit or the id of a container; not looked up yet.
    pub cgroup: Option<String>,
    /// Names or numbers; not looked up yet.
    pub users: Vec<String>,
    /// The only CPUs that are sampled, in rising order. If empty, all are.
    pub cpus: Vec<u32>,
    /// Leave out the processes that the given ones start.
    pub no_children: bool,
}

impl TargetSpec {
    /// Whether anything but pids restricts what is sampled.
    pub fn has_other_filters(&self) -> bool {
        !self.tids.is_empty()
            || self.comm.is_some()
            || self.cgroup.is_some()
            || !self.users.is_empty()
            || !self.cpus.is_empty()
    }
}

/// What is sampled, looked up on this machine. Kinds combine with "and", values of one kind with
/// "or". Without any, it is the whole machine.
#[derive(Debug, Clone)]
pub struct Target {
    pub pids: Vec<u32>,
    pub tids: Vec<u32>,
    pub comm: Option<Regex>,
    pub cgroup: Option<Cgroup>,
    pub uids: Vec<u32>,
    /// The only CPUs that are sampled. If empty, all are.
    pub cpus: Vec<u32>,
    /// Whether processes that `pids` start are sampled as well.
    pub children: bool,
    /// The target in words: `system`, `postgres[4121]`, `3 processes`, `cgroup /x, comm ~
    /// ^ann`.
    pub words: Arc<str>,
}

impl Target {
    /// Looks up what the user specified. The error says what does not exist.
    pub fn resolve(spec: &TargetSpec) -> Result<Target, Failure> {
        let processes = each(&spec.pids, find_process)?;
        let threads = each(&spec.tids, find_thread)?;
        let cgroup = match &spec.cgroup {
            Some(name) => Some(find_cgroup(name)?),
            None => None,
        };
        let uids = each_user(&spec.users)?;
        check_cpus(&spec.cpus)?;
        let words = words(&processes, &threads, cgroup.as_ref(), spec);
        Ok(Target {
            pids: spec.pids.clone(),
            tids: spec.tids.clone(),
            comm: spec.comm.clone(),
            cgroup,
            uids,
            cpus: spec.cpus.clone(),
            children: !spec.no_children,
            words: words.into(),
        })
    }

    /// Returns this target with a command that we have started as its only process. The name of the
    /// process is the last part of the program's path.
    pub fn of_command(self, pid: u32, program: &str, spec: &TargetSpec) -> Target {
        let name = program.rsplit('/').next().unwrap_or(program);
        let process = format!("{}[{pid}]", sanitize(name.as_bytes()));
        Target {
            pids: vec![pid],
            words: words(&[process], &[], None, spec).into(),
            ..self
        }
    }
}

/// Returns the pids of the processes that these threads belong to, in rising order. A thread that
/// has ended is replaced by its own id: an empty list would mean all processes.
pub fn processes_of(tids: &[u32]) -> Vec<u32> {
    let process_of = |tid: &u32| read_status(*tid).map_or(*tid, |thread| thread.tgid);
    let mut pids: Vec<u32> = tids.iter().map(process_of).collect();
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// Looks up each id and returns its name for the header. The error is about the first id that does
/// not exist.
fn each(ids: &[u32], find: fn(u32) -> Result<String, Failure>) -> Result<Vec<String>, Failure> {
    ids.iter().map(|&id| find(id)).collect()
}

/// Returns the target in words: its parts with commas between them, or `system` for the whole
/// machine.
fn words(
    processes: &[String],
    threads: &[String],
    cgroup: Option<&Cgroup>,
    spec: &TargetSpec,
) -> String {
    let mut parts = Vec::new();
    parts.extend(count(processes, "processes"));
    match threads {
        [] => {}
        [thread] => parts.push(format!("thread {thread}")),
        several => parts.extend(count(several, "threads")),
    }
    if let Some(cgroup) = cgroup {
        parts.push(format!(
            "cgroup {}",
            sanitize(cgroup.path.as_os_str().as_bytes())
        ));
    }
    match &spec.users[..] {
        [] => {}
        [user] => parts.push(format!("user {}", sanitize(user.as_bytes()))),
        several => parts.extend(count(several, "users")),
    }
    if let Some(comm) = &spec.comm {
        parts.push(format!("comm ~ {}", sanitize(comm.as_str().as_bytes())));
    }
    if !spec.cpus.is_empty() {
        let cpus = probe::cpus::list(spec.cpus.iter().copied());
        parts.push(format!("cpu {cpus}"));
    }
    if parts.is_empty() {
        return Run::WHOLE_MACHINE.into();
    }
    parts.join(", ")
}

/// Returns the name if there is only one, a count such as `3 threads` if there are several, and
/// `None` if there are none.
fn count(names: &[String], kind: &str) -> Option<String> {
    match names {
        [] => None,
        [name] => Some(name.clone()),
        several => Some(format!("{} {kind}", several.len())),
    }
}

/// Returns a process as `postgres[4121]`.
fn find_process(pid: u32) -> Result<String, Failure> {
    Ok(format!("{}[{pid}]", process_name(pid)?))
}

/// Returns the name of a process; kernel threads and zombies have one as well. Returns an error if
/// there is no such process, or if the id is that of a thread.
pub fn process_name(pid: u32) -> Result<String, Failure> {
    let Some(process) = read_status(pid) else {
        return Err(Failure::new(Exit::Failed, format!("no process {pid}")));
    };
    // `/proc/TID` exists for every thread, but a listing of `/proc` does not show it.
    if process.tgid != pid {
        let message = format!(
            "{pid} is no process but a thread of {}; to watch it: -t {pid}",
            process.tgid
        );
        return Err(Failure::new(Exit::Failed, message));
    }
    Ok(process.name)
}

/// Returns the sentence that says why the mapped files of a process cannot be read.
pub fn unseen_code(pid: u32, error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => format!("no process {pid}"),
        std::io::ErrorKind::PermissionDenied => {
            format!("which code process {pid} has is not ours to see")
        }
        _ => format!("it cannot be seen which code process {pid} has: {error}"),
    }
}

/// Returns the advice how to read the mapped files of other users' processes.
pub fn sees_code() -> &'static str {
    let may_trace = |rights: Rights| rights.allow(Capability::SysPtrace);
    if Rights::current().is_ok_and(may_trace) {
        "we have cap_sys_ptrace: the system refuses it nonetheless (a security module, \
             or the rules of a container or virtual machine)"
    } else {
        "run as root, or give proftop cap_sys_ptrace"
    }
}

/// Returns a thread as `name[tid]`.
fn find_thread(tid: u32) -> Result<String, Failure> {
    match read_status(tid) {
        Some(thread) => Ok(format!("{}[{tid}]", thread.name)),
        None => Err(Failure::new(Exit::Failed, format!("no thread {tid}"))),
    }
}

/// Finds a control group by its path, the name of its unit, or the id of its container.
fn find_cgroup(name: &str) -> Result<Cgroup, Failure> {
    let found = Hierarchy::mounted().and_then(|hierarchy| hierarchy.resolve(name));
    found.map_err(|error| match error {
        CgroupError::NotMounted => Failure::new(Exit::NotPossible, format!("-g {name}: {error}")),
        CgroupError::NotFound(_) => Failure::failed(error.to_string()).detail(
            "a container is given by the first 8 or more digits of its id, a unit by its full name",
        ),
        other => Failure::failed(other.to_string()),
    })
}

/// Returns the uid of each user. Like `chown`, it tries a name first and then a number, because a
/// name may consist of digits.
fn each_user(users: &[String]) -> Result<Vec<u32>, Failure> {
    let find = |user: &String| {
        let uid = probe::privilege::uid_of(user).or_else(|| user.parse().ok());
        uid.ok_or_else(|| Failure::failed(format!("no user '{}'", sanitize(user.as_bytes()))))
    };
    let uids: Vec<u32> = users.iter().map(find).collect::<Result<_, _>>()?;
    if uids.len() > USERS_MAX {
        return Err(Failure::failed(format!("-u takes up to {USERS_MAX} users")));
    }
    Ok(uids)
}

/// Returns an error if a CPU does not exist or is offline, because it would never give a sample.
fn check_cpus(cpus: &[u32]) -> Result<(), Failure> {
    if cpus.is_empty() {
        return Ok(());
    }
    let online = probe::cpus::online().map_err(|error| {
        Failure::failed(format!("-C: cannot tell which CPUs there are: {error}"))
    })?;
    let (there, missing): (Vec<u32>, Vec<u32>) = cpus
        .iter()
        .filter(|cpu| !online.contains(cpu))
        .partition(|cpu| probe::cpus::is_present(**cpu));
    let online = probe::cpus::list(online);
    let what = match (&missing[..], &there[..]) {
        ([], []) => return Ok(()),
        ([], [cpu]) => format!("CPU {cpu} is offline"),
        ([], _) => format!("CPUs {} are offline", probe::cpus::list(there)),
        ([cpu], _) => format!("there is no CPU {cpu}"),
        _ => format!("there are no CPUs {}", probe::cpus::list(missing)),
    };
    Err(Failure::failed(format!("{what}; online are {online}")))
}

/// Fields of `/proc/ID/status`: the name, and the pid of the process that the thread belongs to.
struct Status {
    name: String,
    tgid: u32,
}

/// Reads the status of a process or thread. Returns `None` if it does not exist.
fn read_status(id: u32) -> Option<Status> {
    // A process can set its name to any bytes.
    let status = fs::read(format!("/proc/{id}/status")).ok()?;
    let status = String::from_utf8_lossy(&status);
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name));
    Some(Status {
        name: sanitize(field("Name:\t")?.as_bytes()).into_owned(),
        tgid: field("Tgid:\t")?.trim().parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// A number above the largest possible pid.
    const NO_PID: u32 = 4_194_305;

    fn pids(pids: &[u32]) -> TargetSpec {
        TargetSpec {
            pids: pids.to_vec(),
            ..TargetSpec::default()
        }
    }

    #[test]
    fn nothing_given_is_the_system() {
        let target = Target::resolve(&TargetSpec::default()).unwrap();
        assert_eq!(&*target.words, "system");
        assert!(target.children);
    }

    #[test]
    fn one_process_is_named_and_several_are_counted() {
        let own = std::process::id();
        let target = Target::resolve(&pids(&[own])).unwrap();
        assert!(
            target.words.ends_with(&format!("[{own}]")),
            "{}",
            target.words
        );
        let target = Target::resolve(&pids(&[1, own])).unwrap();
        assert_eq!(&*target.words, "2 processes");
    }

    #[test]
    fn a_pid_that_does_not_exist_fails_with_1() {
        let failure = Target::resolve(&pids(&[NO_PID])).unwrap_err();
        assert_eq!(
            failure.to_string(),
            format!("proftop: no process {NO_PID}\n")
        );
        assert_eq!(failure.exit, Exit::Failed);
        let spec = TargetSpec {
            tids: vec![NO_PID],
            ..TargetSpec::default()
        };
        let failure = Target::resolve(&spec).unwrap_err();
        assert_eq!(failure.message, format!("no thread {NO_PID}"));
    }

    #[test]
    fn a_thread_given_as_a_process_is_explained() {
        let tid = std::thread::spawn(|| {
            let tid = rustix::thread::gettid().as_raw_nonzero().get();
            find_process(tid.cast_unsigned()).unwrap_err().message
        });
        let message = tid.join().unwrap();
        assert!(
            message.contains("is no process but a thread of"),
            "{message}"
        );
    }

    #[test]
    fn kinds_are_joined() {
        let cgroup = Cgroup {
            path: PathBuf::from("/system.slice/x\x1b.service"),
            directory: PathBuf::new(),
            id: 1,
            level: 2,
        };
        let spec = TargetSpec {
            comm: Some(Regex::new("^ann").unwrap()),
            users: vec!["bo\tb".into()],
            cpus: vec![0, 1, 2, 7],
            ..TargetSpec::default()
        };
        assert_eq!(
            words(&["a[1]".into()], &["b[2]".into()], Some(&cgroup), &spec),
            "a[1], thread b[2], cgroup /system.slice/x\\u{1b}.service, user bo\\tb, comm ~ ^ann, cpu 0-2,7"
        );
    }

    #[test]
    fn users_are_found_by_name_or_number() {
        let uids = |users: &[&str]| {
            let users: Vec<String> = users.iter().map(ToString::to_string).collect();
            each_user(&users).map_err(|failure| failure.message)
        };
        assert_eq!(uids(&["root", "4711"]), Ok(vec![0, 4711]));
        assert_eq!(
            uids(&["no-such\nuser"]),
            Err("no user 'no-such\\nuser'".into())
        );
    }

    #[test]
    fn a_cpu_that_is_not_there_is_said() {
        let first = probe::cpus::online().unwrap().into_iter().next().unwrap();
        assert!(check_cpus(&[first]).is_ok());
        let failure = check_cpus(&[first, 60_000]).unwrap_err();
        assert!(
            failure
                .message
                .starts_with("there is no CPU 60000; online are "),
            "{}",
            failure.message
        );
    }

    #[test]
    fn a_command_is_known_by_its_file_name() {
        let spec = TargetSpec::default();
        let target = Target::resolve(&spec)
            .unwrap()
            .of_command(7, "./build/bench", &spec);
        assert_eq!(&*target.words, "bench[7]");
        assert_eq!(target.pids, [7]);
    }

    #[test]
    fn an_unknown_group_says_how_to_name_one() {
        let failure = find_cgroup("no-such-group-here").unwrap_err();
        assert!(matches!(failure.exit, Exit::Failed | Exit::NotPossible));
    }
}
