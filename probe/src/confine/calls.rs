//! The allowed system calls, as filters of the kernel (seccomp). A forbidden call fails as if a
//! right were missing; it does not end the process, because C libraries try calls that they can do
//! without.

use libc::PROT_EXEC;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};
use std::collections::BTreeMap;
use std::io;

/// Compiled filters, each of which a call has to pass.
#[derive(Debug, Clone)]
pub struct Filter(Vec<BpfProgram>);

/// Calls that the C library and Rust's standard library make in any thread.
const ALWAYS: &[i64] = &[
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_yield,
    libc::SYS_sigaltstack,
];

/// Calls of a reader: messages with its other end, and opening, inspecting and reading files.
const READING: &[i64] = &[
    libc::SYS_fadvise64,
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_getdents64,
    libc::SYS_geteuid,
    libc::SYS_getuid,
    libc::SYS_lseek,
    libc::SYS_newfstatat,
    libc::SYS_openat2,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_preadv,
    libc::SYS_process_vm_readv,
    libc::SYS_read,
    libc::SYS_readlinkat,
    libc::SYS_readv,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_statx,
    // Only on x86-64: other machines have only the newer calls above.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
];

/// Calls that a thread which parses untrusted data never makes.
const ACTING: &[i64] = &[
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_bind,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_settime,
    libc::SYS_connect,
    libc::SYS_delete_module,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_finit_module,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_init_module,
    libc::SYS_io_uring_setup,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_kill,
    libc::SYS_listen,
    libc::SYS_mknodat,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_by_handle_at,
    libc::SYS_open_tree,
    libc::SYS_perf_event_open,
    libc::SYS_personality,
    libc::SYS_pidfd_getfd,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_send_signal,
    libc::SYS_pivot_root,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_rt_sigqueueinfo,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_setns,
    libc::SYS_settimeofday,
    libc::SYS_socket,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_tkill,
    libc::SYS_umount2,
    libc::SYS_unshare,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

/// Calls for reading open files, for writing to a file in memory, and for requesting further files.
const WITHOUT_FILES: &[i64] = &[
    libc::SYS_fstat,
    libc::SYS_fstatfs,
    libc::SYS_lseek,
    libc::SYS_memfd_create,
    libc::SYS_ppoll,
    libc::SYS_pread64,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_statx,
    libc::SYS_write,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
];

/// Further calls of a process that does one command without rights: reading from pipes, writing to
/// them, and finding out as whom it runs.
const OF_COMMAND: &[i64] = &[
    libc::SYS_geteuid,
    libc::SYS_getuid,
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_writev,
];

/// Calls of the C library in a new thread, about memory of that thread.
const OF_NEW_THREADS: &[i64] = &[libc::SYS_rseq, libc::SYS_set_robust_list];

/// Flags of clone(2) with which it starts a thread, not a process.
const THREAD: i32 = libc::CLONE_THREAD | libc::CLONE_VM | libc::CLONE_SIGHAND;

/// Commands of fcntl(2) about the descriptor itself.
const OF_DESCRIPTORS: &[i32] = &[
    libc::F_DUPFD,
    libc::F_DUPFD_CLOEXEC,
    libc::F_GETFD,
    libc::F_SETFD,
    libc::F_GETFL,
];

/// Commands of fcntl(2), and of ioctl(2), by which the kernel sends signals to any process that the
/// caller's user may kill, in uapi/asm-generic/fcntl.h and uapi/asm-generic/sockios.h.
const F_SETSIG: i32 = 10;
const F_SETOWN_EX: i32 = 15;
const FIOSETOWN: i32 = 0x8901;
const SIOCSPGRP: i32 = 0x8902;

impl Filter {
    /// The filter of a process that does one command without rights: it opens nothing, and uses what
    /// was open before.
    pub fn of_command() -> io::Result<Filter> {
        let mut rules = allowed(ALWAYS.iter().chain(WITHOUT_FILES).chain(OF_COMMAND));
        rules.extend(memory_alone()?);
        rules.insert(libc::SYS_fcntl, without_signals()?);
        Filter::new(rules, refused(), SeccompAction::Allow)
    }

    /// The filter of a process that unpacks or parses files: it opens nothing, and uses what was
    /// passed to it. It may start threads, for which the same holds.
    pub fn without_files() -> io::Result<Filter> {
        let mut rules = allowed(ALWAYS.iter().chain(WITHOUT_FILES).chain(OF_NEW_THREADS));
        rules.extend(memory_alone()?);
        rules.insert(libc::SYS_fcntl, without_signals()?);
        rules.insert(libc::SYS_setpriority, vec![of_this_process()?]);
        rules.insert(libc::SYS_clone, vec![masked(0, THREAD, THREAD)?]);
        // What clone3(2) starts is said in memory, where a filter cannot check it. The GNU C
        // library starts threads by clone(2) if the kernel seems not to know the call.
        rules.insert(libc::SYS_clone3, Vec::new());
        let mut filter = Filter::failing(libc::SYS_clone3, libc::ENOSYS)?;
        let allowed = Filter::new(rules, refused(), SeccompAction::Allow)?;
        filter.0.extend(allowed.0);
        Ok(filter)
    }

    /// The filter of a process that reads files of targets: it opens files only for reading, and
    /// maps no file into its memory. The flags of `openat2` are in memory, where a filter cannot
    /// check them; there the reader cannot write because it owns nothing.
    pub fn of_reader() -> io::Result<Filter> {
        let mut rules = allowed(ALWAYS.iter().chain(READING));
        rules.extend(memory_alone()?);
        rules.insert(libc::SYS_fcntl, without_signals()?);
        let writing = libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND;
        rules.insert(libc::SYS_openat, vec![masked(2, writing, 0)?]);
        #[cfg(target_arch = "x86_64")]
        rules.insert(libc::SYS_open, vec![masked(1, writing, 0)?]);
        Filter::new(rules, refused(), SeccompAction::Allow)
    }

    /// The filter of a thread that parses untrusted data: even if it is taken over, it starts no
    /// program, reaches no network and no other process, makes no code, and makes no calls that
    /// only root may make.
    pub fn of_parser() -> io::Result<Filter> {
        let mut rules = allowed(ACTING.iter());
        let owning = [libc::F_SETOWN, F_SETOWN_EX, F_SETSIG].map(|command| masked(1, -1, command));
        let owning = owning.into_iter().collect::<io::Result<_>>()?;
        rules.insert(libc::SYS_fcntl, owning);
        let owning = [FIOSETOWN, SIOCSPGRP].map(|command| masked(1, -1, command));
        rules.insert(
            libc::SYS_ioctl,
            owning.into_iter().collect::<io::Result<_>>()?,
        );
        rules.insert(libc::SYS_mmap, vec![masked(2, PROT_EXEC, PROT_EXEC)?]);
        rules.insert(libc::SYS_mprotect, vec![masked(2, PROT_EXEC, PROT_EXEC)?]);
        Filter::new(rules, SeccompAction::Allow, refused())
    }

    /// A filter that only makes one call fail with an error number.
    pub fn failing(call: i64, error: i32) -> io::Result<Filter> {
        let rules = allowed([call].iter());
        let error = SeccompAction::Errno(error.cast_unsigned());
        Filter::new(rules, SeccompAction::Allow, error)
    }

    /// Applies the filter to the calling thread and to everything that it starts, for good. These
    /// can then also not gain rights by starting a program.
    pub fn apply(&self) -> io::Result<()> {
        let mut filters = self.0.iter();
        filters.try_for_each(|one| seccompiler::apply_filter(one).map_err(io::Error::other))
    }

    fn new(
        rules: BTreeMap<i64, Vec<SeccompRule>>,
        otherwise: SeccompAction,
        matched: SeccompAction,
    ) -> io::Result<Filter> {
        let arch = std::env::consts::ARCH
            .try_into()
            .map_err(io::Error::other)?;
        let filter = SeccompFilter::new(rules, otherwise, matched, arch);
        let program = filter.and_then(BpfProgram::try_from);
        Ok(Filter(vec![program.map_err(io::Error::other)?]))
    }
}

fn refused() -> SeccompAction {
    SeccompAction::Errno(libc::EPERM.cast_unsigned())
}

/// Allows calls regardless of their arguments.
fn allowed<'a>(calls: impl Iterator<Item = &'a i64>) -> BTreeMap<i64, Vec<SeccompRule>> {
    let mut allowed = BTreeMap::new();
    allowed.extend(calls.map(|call| (*call, Vec::new())));
    allowed
}

/// Allows the commands of fcntl(2) that concern a descriptor and no process. With others
/// (`F_SETOWN`, `F_SETSIG`, `O_ASYNC`) the kernel would send a signal of the caller's choice to a
/// process of the caller's choice, and processes of root without rights have root's user id.
fn without_signals() -> io::Result<Vec<SeccompRule>> {
    let commands = OF_DESCRIPTORS.iter().map(|command| masked(1, -1, *command));
    let mut rules = commands.collect::<io::Result<Vec<_>>>()?;
    let set_flags = vec![
        condition(1, -1, libc::F_SETFL)?,
        condition(2, libc::O_ASYNC, 0)?,
    ];
    rules.push(SeccompRule::new(set_flags).map_err(io::Error::other)?);
    Ok(rules)
}

/// Allows anonymous memory that is not executable.
fn memory_alone() -> io::Result<[(i64, Vec<SeccompRule>); 2]> {
    let is_private = |protection| masked(2, protection, 0);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let anonymous = SeccompRule::new(vec![
        condition(2, PROT_EXEC, 0)?,
        condition(3, flags | libc::MAP_SHARED, flags)?,
    ])
    .map_err(io::Error::other)?;
    Ok([
        (libc::SYS_mmap, vec![anonymous]),
        (libc::SYS_mprotect, vec![is_private(PROT_EXEC)?]),
    ])
}

/// Allows a call whose first two arguments denote the calling process, such as setpriority(2).
fn of_this_process() -> io::Result<SeccompRule> {
    let conditions = vec![condition(0, -1, 0)?, condition(1, -1, 0)?];
    SeccompRule::new(conditions).map_err(io::Error::other)
}

/// Requires some bits of an argument to have a value.
fn masked(argument: u8, mask: i32, value: i32) -> io::Result<SeccompRule> {
    let rule = SeccompRule::new(vec![condition(argument, mask, value)?]);
    rule.map_err(io::Error::other)
}

fn condition(argument: u8, mask: i32, value: i32) -> io::Result<SeccompCondition> {
    let bits = |bits: i32| u64::from(bits.cast_unsigned());
    let is_so = SeccompCmpOp::MaskedEq(bits(mask));
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is_so, bits(value));
    condition.map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::net::TcpListener;
    use std::process::Command;

    /// Runs `work` on a thread with a filter, and returns its result.
    fn filtered<T: Send>(filter: io::Result<Filter>, work: impl FnOnce() -> T + Send) -> T {
        let filter = filter.expect("this processor has system calls");
        std::thread::scope(|scope| {
            let run = || filter.apply().map(|()| work());
            scope.spawn(run).join().expect("it ends").expect("applied")
        })
    }

    fn refused<T>(done: io::Result<T>) {
        let error = done.err().expect("it is refused");
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    }

    /// Tries each way to have the kernel send a signal to another process.
    fn no_signals_are_sent(file: &File) {
        use std::os::fd::AsRawFd as _;
        let done = |result: i32| match result {
            0.. => Ok(()),
            _ => Err(io::Error::last_os_error()),
        };
        let fcntl = |command: i32, value: i32| {
            // SAFETY: these commands take a number, and the descriptor is open.
            done(unsafe { libc::fcntl(file.as_raw_fd(), command, value) })
        };
        refused(fcntl(libc::F_SETOWN, 1));
        refused(fcntl(F_SETSIG, libc::SIGKILL));
        let owner = [1i32, 1];
        // SAFETY: this command reads two numbers, which live until the call is over.
        let own = unsafe { libc::fcntl(file.as_raw_fd(), F_SETOWN_EX, owner.as_ptr()) };
        refused(done(own));
        for request in [FIOSETOWN, SIOCSPGRP] {
            // SAFETY: these requests read a number, which lives until the call is over.
            let own = unsafe { libc::ioctl(file.as_raw_fd(), request as _, owner.as_ptr()) };
            refused(done(own));
        }
        assert!(rustix::fs::fcntl_getfl(file).is_ok());
        assert!(file.try_clone().is_ok());
    }

    /// Checks also that a descriptor cannot be made to send signals.
    fn no_flag_sends_signals(file: &File) {
        use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
        let flags = fcntl_getfl(file).expect("it is open");
        assert!(fcntl_setfl(file, flags | OFlags::NOATIME).is_ok());
        let asynchronous = OFlags::from_bits_retain(libc::O_ASYNC.cast_unsigned());
        refused(fcntl_setfl(file, flags | asynchronous).map_err(io::Error::from));
    }

    #[test]
    fn no_confined_process_or_thread_has_signals_sent() {
        let own = tempfile::tempfile().unwrap();
        for filter in [
            Filter::of_reader(),
            Filter::without_files(),
            Filter::of_command(),
        ] {
            filtered(filter, || {
                no_signals_are_sent(&own);
                no_flag_sends_signals(&own);
            });
        }
        filtered(Filter::of_parser(), || no_signals_are_sent(&own));
    }

    #[test]
    fn a_reader_reads_and_does_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "text").unwrap();
        let mut open = File::options().append(true).open(&path).unwrap();
        let (read, wrote) = filtered(Filter::of_reader(), || {
            let mut read = String::new();
            File::open(&path)
                .and_then(|mut file| file.read_to_string(&mut read))
                .unwrap();
            let at = rustix::fs::openat2(
                rustix::fs::CWD,
                &path,
                rustix::fs::OFlags::RDONLY,
                rustix::fs::Mode::empty(),
                rustix::fs::ResolveFlags::NO_SYMLINKS,
            );
            assert!(at.is_ok() && std::fs::metadata(&path).is_ok());
            refused(File::create(&path));
            refused(File::options().append(true).open(&path));
            refused(std::fs::remove_file(&path));
            refused(std::fs::rename(&path, folder.path().join("other")));
            refused(TcpListener::bind("127.0.0.1:0"));
            refused(Command::new("/bin/true").status());
            // A new thread would have other rights, so none can be started.
            refused(std::thread::Builder::new().spawn(|| ()));
            refused(
                rustix::thread::set_thread_uid(rustix::process::Uid::ROOT).map_err(io::Error::from),
            );
            (read, open.write(b"more"))
        });
        refused(wrote);
        assert_eq!(read, "text");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "text");
    }

    #[test]
    fn whoever_understands_files_opens_none_and_has_one_in_memory() {
        let own = File::open("/proc/self/exe").unwrap();
        filtered(Filter::without_files(), || {
            use std::os::unix::fs::FileExt as _;
            own.read_exact_at(&mut [0; 4], 0).unwrap();
            let memory = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC);
            let mut memory = File::from(memory.unwrap());
            memory.write_all(b"text").unwrap();
            let mut read = [0; 4];
            memory.read_exact_at(&mut read, 0).unwrap();
            assert_eq!(&read, b"text");
            // It may lower its own priority, but not that of others.
            rustix::process::setpriority_process(None, 19).unwrap();
            let other = Some(rustix::process::Pid::INIT);
            refused(rustix::process::setpriority_process(other, 19).map_err(io::Error::from));
            refused(File::open("/etc/passwd"));
            refused(TcpListener::bind("127.0.0.1:0"));
            // Its threads may do no more than it, and it starts no process.
            let thread = std::thread::spawn(|| refused(File::open("/etc/passwd")));
            thread.join().unwrap();
            refused(Command::new("/bin/true").status());
            // SAFETY: if a child were made, it would end at once.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: ends the child, which has run nothing else.
                unsafe { libc::_exit(0) };
            }
            assert_eq!(child, -1);
        });
    }

    #[test]
    fn a_command_without_rights_uses_what_is_open() {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        filtered(Filter::of_command(), || {
            writer.write_all(b"text").unwrap();
            let mut read = [0; 4];
            reader.read_exact(&mut read).unwrap();
            assert_eq!(&read, b"text");
            refused(File::open("/etc/passwd"));
            refused(TcpListener::bind("127.0.0.1:0"));
            refused(Command::new("/bin/true").status());
            let other = Some(rustix::process::Pid::INIT);
            refused(rustix::process::setpriority_process(other, 19).map_err(io::Error::from));
        });
    }

    #[test]
    fn a_parser_writes_its_caches_and_reaches_nobody() {
        let folder = tempfile::tempdir().unwrap();
        filtered(Filter::of_parser(), || {
            std::fs::write(folder.path().join("cache"), "table").unwrap();
            std::thread::spawn(|| refused(TcpListener::bind("127.0.0.1:0")))
                .join()
                .unwrap();
            refused(Command::new("/bin/true").status());
            let own = rustix::process::getpid();
            let kill = rustix::process::test_kill_process(own);
            refused(kill.map_err(io::Error::from));
        });
    }
}
