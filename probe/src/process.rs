//! The processes of the machine and their mappings, kept current by the side band, so that an
//! address is looked up in the mappings as they were at its time.

mod kept;

use crate::ids::{ModuleId, ProcessId};
use crate::lineage::Lineages;
use crate::mappings::{Backing, MAPPINGS_MAX, Mapping, Mappings};
use crate::modules::{Modules, Seen};
use crate::owner::{Owner, real_uid};
use crate::proc_maps;
use crate::sample::ProcessInfo;
use crate::scans::Scans;
use crate::shares::{NOBODY, OverShare, Scarce};
use crate::sideband::record::{Event, Identity, Map, What};
use crate::titles::{Title, Titles, Whose};
use foldhash::{HashMap, HashMapExt as _, HashSet};
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use symbolize::sanitize;

/// How long a process is remembered after its exit: its last samples may still be queued, and exec
/// of the same pid looks like an exit for a moment.
const REMEMBERED_NS: u64 = 10_000_000_000;

/// How long all processes are looked for after reports of ends were lost.
const DOUBTED_NS: u64 = 5_000_000_000;

/// Minimum interval at which the mappings of a process are read again when an address is in none of
/// them.
const RESCAN_NS: u64 = 1_000_000_000;
/// The minimum interval for a process that has more mappings than are kept.
const RESCAN_CUT_NS: u64 = 30_000_000_000;

/// Maximum number of files that are opened for one process, which costs work and memory: an eighth
/// of the mappings that are kept of it, and more than any known program has.
const FILES_MAX: usize = MAPPINGS_MAX / 8;

/// Maximum number of mappings of a process that are prepared at once: more than a program starts
/// with.
const PREPARED_MAX: usize = 256;

/// For how long a note counts a process whose mappings are read later, after that was last put off.
const LEFT_NS: u64 = 10_000_000_000;

/// How often it is looked whether too many mappings are kept of all processes. A user can make a look
/// take milliseconds.
const ROOM_NS: u64 = 3_000_000_000;

/// Number of executable mappings of which most processes have fewer.
const LINES_USUAL: u64 = 512;

/// How often the title of a running process is read again, and when next if that was refused or
/// took too long.
const TITLE_NS: u64 = 2_000_000_000;
const TITLE_REFUSED_NS: u64 = 60_000_000_000;

/// All known processes.
#[derive(Debug)]
pub struct ProcessTable {
    by_pid: HashMap<u32, Process>,
    next_id: u32,
    /// Changes that were not reported to the engine yet.
    changes: Vec<ProcessInfo>,
    titles: Titles,
    scans: Scans,
    /// When the processes ended whose end was read with the events of this turn.
    ends: HashMap<u32, u64>,
    /// Until when all processes are looked for, because some ends were not reported.
    doubted_until_ns: u64,
    /// When it is next looked whether too many mappings are kept of all processes.
    room_due_ns: u64,
    /// Maximum number of mappings that are kept of one process.
    mappings_max: usize,
    /// The modules of all mappings.
    pub modules: Modules,
    /// The ancestors of processes.
    lineages: Lineages,
}

/// A process from its start, or from exec, to its end.
#[derive(Debug, Clone)]
pub struct Process {
    /// The number for the engine, which differs from that of earlier processes with this pid.
    pub id: ProcessId,
    /// The name of its main thread.
    pub comm: Arc<str>,
    /// The executable mappings as of the last event.
    pub mappings: Arc<Mappings>,
    /// Number of execs since the process was first seen.
    execs: u32,
    exited_ns: Option<u64>,
    /// Whether its main thread has ended: nothing is reported when its other threads end.
    is_headless: bool,
    /// Whether /proc did not have it when it was last looked for there.
    is_missing: bool,
    /// How many more files may be opened for it, until /proc is read again.
    may_open: usize,
    /// When /proc was read: earlier events are already contained in the result.
    scanned_ns: u64,
    /// When it was last left for later, as too much was read of its user's processes, or its mappings
    /// were given up; `None` if they are known.
    left_for_later_ns: Option<u64>,
    /// When its mappings were given up, as too many were kept of all processes; 0 if never.
    given_up_ns: u64,
    /// Its owner, as far as it is known: read when the process is first sampled, unless it has
    /// ended by then.
    owner: Owner,
    /// Whether its owner was read.
    has_owner: bool,
    /// When its title is read again.
    title_due_ns: u64,
    /// Whether it was reported to the engine, so that changes must be reported as well.
    announced: bool,
}

impl ProcessTable {
    /// Makes an empty table.
    pub fn new() -> Self {
        Self {
            by_pid: HashMap::new(),
            next_id: 0,
            changes: Vec::new(),
            titles: Titles::read_by(crate::files::for_those_aside()),
            scans: Scans::default(),
            ends: HashMap::new(),
            doubted_until_ns: 0,
            room_due_ns: 0,
            mappings_max: MAPPINGS_MAX,
            modules: Modules::new(),
            lineages: Lineages::default(),
        }
    }

    /// Keeps at most that many mappings of a process from now on, which are no more than
    /// [`MAPPINGS_MAX`].
    pub fn keep_mappings(&mut self, max: usize) {
        self.mappings_max = max.min(MAPPINGS_MAX);
    }

    /// Begins a turn of the sampler. Processes what was read on the other thread.
    pub fn begin_turn(&mut self, now_ns: u64) {
        self.titles.begin_turn();
        self.scans.begin_turn(now_ns);
        self.modules.begin_turn();
        while let Some(title) = self.titles.next() {
            self.entitle(title, now_ns);
        }
    }

    /// Prepares for the events of a turn, before each is applied; `later` are those that were read
    /// and are applied in another turn. Checks the files that many events need at once.
    pub fn prepare(&mut self, events: &[Event], later: &[Event]) {
        self.ends.clear();
        for event in events.iter().chain(later) {
            if let What::Exit { pid, tid } = event.what
                && pid == tid
            {
                self.ends.insert(pid, event.time_ns);
            }
        }
        let mut maps: HashMap<u32, Vec<&Map>> = HashMap::new();
        for event in events {
            if let What::Map(map) = &event.what {
                maps.entry(map.pid).or_default().push(map);
            }
        }
        // For a process with very many mappings, each file is checked when its event is applied, if
        // at all.
        maps.retain(|_, maps| maps.len() <= PREPARED_MAX);
        for (pid, maps) in maps {
            self.modules.look_at(pid, &maps);
        }
    }

    /// Applies an event. Events must come in the order of their times.
    pub fn apply(&mut self, event: &Event) {
        match &event.what {
            What::Fork { pid, parent_pid } => self.fork(*pid, *parent_pid, event.time_ns),
            What::Exit { pid, tid } if pid == tid => self.exit(*pid, event.time_ns),
            What::Comm {
                pid,
                tid,
                comm,
                exec,
            } if pid == tid => {
                self.rename(*pid, comm, *exec, event.time_ns);
            }
            What::Map(map) => self.map(map, event.time_ns),
            What::Lost(_) => self.doubted_until_ns = event.time_ns.saturating_add(DOUBTED_NS),
            What::Comm { .. } | What::Exit { .. } => {}
        }
    }

    /// Returns the process that had the number `pid` at `time_ns`. An unknown process is read from
    /// /proc, as far as it still exists.
    pub fn at(&mut self, pid: u32, comm: &[u8], time_ns: u64, now_ns: u64) -> &mut Process {
        if !self.by_pid.contains_key(&pid) {
            self.scan_in_turn(pid, now_ns);
        }
        let has_ended = self.ends_after(pid, time_ns);
        let next_id = &mut self.next_id;
        let process = self
            .by_pid
            .entry(pid)
            .or_insert_with(|| Process::new(next_id, comm));
        // The leader of a thread group may end before its other threads.
        if process
            .exited_ns
            .is_some_and(|exited_ns| exited_ns < time_ns)
        {
            process.exited_ns = None;
            process.report_to(pid, &mut self.changes);
        }
        // Nothing can be read any more of a process that has ended; it has the owner of its parent.
        let is_wanted = !process.has_owner && !has_ended && process.exited_ns.is_none();
        if is_wanted {
            process.has_owner = true;
            process.owner.update(pid, &mut self.lineages);
            process.title_due_ns = now_ns.saturating_add(TITLE_NS);
            self.titles.ask(process.whose(pid), process.user());
        }
        if is_wanted || !process.announced {
            process.announced = true;
            process.report_to(pid, &mut self.changes);
        } else if process.title_due_ns <= now_ns
            && process.exited_ns.is_none()
            && !has_ended
            && self.titles.ask_again(process.whose(pid), process.user())
        {
            process.title_due_ns = now_ns.saturating_add(TITLE_NS);
        }
        process
    }

    /// Whether the process that had this number at `time_ns` has ended by now, as far as events of
    /// this turn tell.
    fn ends_after(&self, pid: u32, time_ns: u64) -> bool {
        self.ends.get(&pid).is_some_and(|end_ns| *end_ns >= time_ns)
    }

    /// Records that a mapping without a file has Python's trampolines, which are walked by this
    /// table.
    pub fn set_trampolines(&mut self, pid: u32, start: u64, table: ModuleId) {
        let Some(process) = self.by_pid.get_mut(&pid) else {
            return;
        };
        let found = process.mappings.find(start).copied();
        let is_it = |it: &Mapping| it.start == start && it.backing == Backing::Anonymous;
        if let Some(mapping) = found.filter(is_it) {
            let backing = Backing::Trampolines { table, base: start };
            Arc::make_mut(&mut process.mappings).insert(Mapping { backing, ..mapping });
        }
    }

    /// Reads the mappings again, if that was not done just before. Returns whether it was done.
    pub fn rescan(&mut self, pid: u32, now_ns: u64) -> bool {
        let recently = |process: &&mut Process| {
            let patience_ns = if process.mappings.is_cut() || process.given_up_ns > 0 {
                RESCAN_CUT_NS
            } else {
                RESCAN_NS
            };
            let known_ns = process.scanned_ns.max(process.given_up_ns);
            now_ns.saturating_sub(known_ns) < patience_ns
        };
        if let Some(process) = self.by_pid.get_mut(&pid).filter(recently) {
            // It is put off once more.
            if let Some(left_ns) = &mut process.left_for_later_ns {
                *left_ns = now_ns;
            }
            return false;
        }
        self.scan_in_turn(pid, now_ns)
    }

    /// Reads a process that existed at the start, unless too much was read of those of its user. Then
    /// it is known without its mappings, which are read when it is sampled.
    pub fn read_existing(&mut self, pid: u32, now_ns: u64) {
        let begun = Instant::now();
        // Finding its user out takes as long as reading a usual process.
        if self.scans.is_any_over(now_ns) {
            self.scan_in_turn(pid, now_ns);
        } else {
            let lines = self.scan(pid, now_ns);
            if lines > LINES_USUAL {
                let user = self.user_of(pid);
                self.scans.took(user, lines, begun.elapsed(), now_ns);
            }
        }
    }

    /// Reads a process from /proc, unless too much was read of those of its user.
    fn scan_in_turn(&mut self, pid: u32, now_ns: u64) -> bool {
        let user = self.user_of(pid);
        if !self.scans.may_read(user, now_ns) {
            self.leave_for_later(pid, now_ns);
            return false;
        }
        let begun = Instant::now();
        let lines = self.scan(pid, now_ns);
        self.scans.took(user, lines, begun.elapsed(), now_ns);
        true
    }

    /// Records that a process is read later, if nothing that it maps is known. It is added if it is not
    /// known itself.
    fn leave_for_later(&mut self, pid: u32, now_ns: u64) {
        let next_id = &mut self.next_id;
        let process = match self.by_pid.entry(pid) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => match comm(pid) {
                Ok(comm) => place.insert(Process::new(next_id, &comm)),
                Err(_) => return,
            },
        };
        if process.mappings.is_empty() {
            process.left_for_later_ns = Some(now_ns);
        }
    }

    /// Returns the user to whom the reading of a process is charged.
    fn user_of(&self, pid: u32) -> u32 {
        let known = || self.by_pid.get(&pid)?.owner.real_uid;
        known().or_else(|| real_uid(pid)).unwrap_or(NOBODY)
    }

    /// Reads a process from /proc. If something cannot be read, the known value is kept.
    /// Returns the number of lines that were read.
    fn scan(&mut self, pid: u32, now_ns: u64) -> u64 {
        // One more line than is kept tells that there are more.
        let lines_max = u32::try_from(self.mappings_max + 1).unwrap_or(u32::MAX);
        let text = proc_maps::text(pid, lines_max, self.modules.way());
        let comm = comm(pid);
        if text.is_err() && comm.is_err() {
            return 0;
        }
        let mut mappings = Mappings::default();
        if let Err(error) = &text
            && error.kind() == io::ErrorKind::TimedOut
            && let Some(known) = self.by_pid.get(&pid)
        {
            // It may still exist, with mappings that the side band has reported.
            mappings = Mappings::clone(&known.mappings);
        }
        let mut may_open = FILES_MAX;
        let text = text.unwrap_or_default();
        let mut lines = 0;
        for (number, line) in proc_maps::lines(&text).enumerate() {
            lines += 1;
            if number == self.mappings_max {
                mappings.cut();
                break;
            }
            let identity = Identity {
                device: line.device,
                inode: line.inode,
                generation: 0,
            };
            let seen = Seen {
                pid,
                start: line.start,
                end: line.end,
                path: &line.path,
                identity: &identity,
            };
            match self.modules.backing(&seen, &mut may_open) {
                Some(backing) => {
                    mappings.insert(mapping(line.start, line.end, line.file_offset, backing));
                }
                None => mappings.cut(),
            }
        }
        let comm = comm.unwrap_or_default();
        let next_id = &mut self.next_id;
        let process = self
            .by_pid
            .entry(pid)
            .or_insert_with(|| Process::new(next_id, &comm));
        process.mappings = Arc::new(mappings);
        process.may_open = may_open;
        process.scanned_ns = now_ns;
        process.left_for_later_ns = None;
        process.given_up_ns = 0;
        lines
    }

    /// Whether the process has been seen.
    pub fn is_known(&self, pid: u32) -> bool {
        self.by_pid.contains_key(&pid)
    }

    /// Returns the reported processes that have changed since the last call.
    pub fn take_changes(&mut self) -> Vec<ProcessInfo> {
        std::mem::take(&mut self.changes)
    }

    /// Removes processes that ended long ago, and returns their numbers. Has to be called about once
    /// a second.
    pub fn sweep(&mut self, now_ns: u64) -> Vec<u32> {
        self.end_those_missing(now_ns);
        self.make_room(now_ns);
        let modules = &mut self.modules;
        let gone = self.by_pid.extract_if(|_, process| {
            process
                .exited_ns
                .is_some_and(|exited_ns| now_ns.saturating_sub(exited_ns) > REMEMBERED_NS)
        });
        let forgotten = gone.map(|(pid, process)| {
            modules.forget_process(process.id);
            pid
        });
        forgotten.collect()
    }

    /// Gives up the mappings of some processes if too many are kept of all together. They are read
    /// again when the processes are sampled.
    fn make_room(&mut self, now_ns: u64) {
        if now_ns < self.room_due_ns {
            return;
        }
        self.room_due_ns = now_ns.saturating_add(ROOM_NS);
        let max = kept::kept_max(self.mappings_max, MAPPINGS_MAX);
        let lengths = self.by_pid.values().map(|process| process.mappings.len());
        if lengths.sum::<usize>() <= max {
            return;
        }
        let processes = self.by_pid.iter();
        let mut processes: Vec<_> = processes
            .map(|(pid, process)| (*pid, process.user(), &*process.mappings))
            .collect();
        processes.sort_unstable_by_key(|(pid, ..)| *pid);
        for pid in kept::given_up(processes.into_iter(), max) {
            if let Some(process) = self.by_pid.get_mut(&pid) {
                process.mappings = Arc::default();
                process.given_up_ns = now_ns;
                // Nothing is said of it before it is sampled.
                process.left_for_later_ns = Some(0);
            }
        }
    }

    /// Records the end of processes whose end is not reported: of those that had samples after
    /// their main thread had ended, and of all if reports were lost. A process counts as ended when
    /// /proc did not have it twice: by then its last samples were read.
    fn end_those_missing(&mut self, now_ns: u64) {
        let mut ended = Vec::new();
        for (pid, process) in &mut self.by_pid {
            let is_in_doubt = process.is_headless || now_ns < self.doubted_until_ns;
            let is_missing = is_in_doubt
                && process.exited_ns.is_none()
                // 0 stands for all processes that have no number here.
                && *pid != 0
                && !Path::new(&format!("/proc/{pid}")).exists();
            if std::mem::replace(&mut process.is_missing, is_missing) && is_missing {
                ended.push(*pid);
            }
        }
        for pid in ended {
            self.exit(pid, now_ns);
        }
    }

    /// Returns how many processes of each user have more mappings, or files, than are kept of one, and
    /// how many have been left for later.
    pub fn over_share(&self, now_ns: u64) -> Vec<OverShare> {
        let is_left = |process: &Process| {
            let left_ns = process.left_for_later_ns;
            left_ns.is_some_and(|left_ns| now_ns.saturating_sub(left_ns) < LEFT_NS)
        };
        let mut by_user = BTreeMap::<(u32, Scarce), usize>::new();
        for (pid, process) in &self.by_pid {
            let what = match process {
                Process {
                    exited_ns: Some(_), ..
                } => continue,
                _ if is_left(process) => Scarce::Scans,
                _ if process.mappings.is_cut() => Scarce::OfOneProcess,
                _ => continue,
            };
            *by_user.entry((self.user_of(*pid), what)).or_default() += 1;
        }
        let over = by_user
            .into_iter()
            .map(|((user, what), count)| OverShare { user, what, count });
        over.collect()
    }

    /// Returns the mappings of a process that has not ended; `None` if it is unknown.
    pub fn mapped(&self, pid: u32) -> Option<&Arc<Mappings>> {
        let process = self.by_pid.get(&pid)?;
        process.exited_ns.is_none().then_some(&process.mappings)
    }

    /// Returns the files that any process has mapped, those that ended a moment ago included.
    pub fn mapped_files(&self) -> HashSet<ModuleId> {
        let mappings = self
            .by_pid
            .values()
            .flat_map(|process| process.mappings.iter());
        mappings
            .filter_map(|mapping| match mapping.backing {
                Backing::Module(file) => Some(file),
                Backing::Trampolines { .. } | Backing::Anonymous => None,
            })
            .collect()
    }

    /// Returns the user to whom a process is charged that may not have been sampled yet: what its
    /// parent was, it may have ceased to be.
    pub fn current_user(&self, pid: u32) -> u32 {
        let known = || self.by_pid.get(&pid)?.owner.real_uid;
        real_uid(pid).or_else(known).unwrap_or(NOBODY)
    }

    /// Returns the name of a process, if it is known.
    pub fn comm_of(&self, pid: u32) -> Option<Arc<str>> {
        self.by_pid.get(&pid).map(|process| process.comm.clone())
    }

    fn fork(&mut self, pid: u32, parent_pid: u32, time_ns: u64) {
        // /proc has shown this child already.
        if self
            .by_pid
            .get(&pid)
            .is_some_and(|known| known.scanned_ns > time_ns)
        {
            return;
        }
        let parent = self.by_pid.get(&parent_pid);
        let mut child = Process::new(&mut self.next_id, b"");
        if let Some(parent) = parent {
            child.comm = parent.comm.clone();
            child.mappings = parent.mappings.clone();
            child.left_for_later_ns = parent.left_for_later_ns;
            child.given_up_ns = parent.given_up_ns;
            child.owner = parent.owner.clone();
            child.owner.started_unix_ms = None;
        }
        child.owner.parent = Some(parent_pid);
        if let Some(before) = self.by_pid.insert(pid, child) {
            self.modules.forget_process(before.id);
        }
    }

    fn exit(&mut self, pid: u32, time_ns: u64) {
        let Some(process) = self.by_pid.get_mut(&pid) else {
            return;
        };
        process.exited_ns = Some(time_ns);
        process.is_headless = true;
        if process.announced {
            process.report_to(pid, &mut self.changes);
        }
    }

    fn rename(&mut self, pid: u32, comm: &[u8], exec: bool, time_ns: u64) {
        let has_ended = self.ends_after(pid, time_ns);
        let next_id = &mut self.next_id;
        let process = self
            .by_pid
            .entry(pid)
            .or_insert_with(|| Process::new(next_id, comm));
        if process.scanned_ns > time_ns {
            return;
        }
        if exec {
            process.is_headless = false;
            process.left_for_later_ns = None;
            process.given_up_ns = 0;
            process.mappings = Arc::default();
            process.may_open = FILES_MAX;
            process.execs = process.execs.wrapping_add(1);
            // The child may end before its own command line can be read.
            process.owner.command_line = None;
        }
        process.comm = sanitize(comm).into();
        if process.announced {
            if exec && has_ended {
                process.has_owner = false;
            } else if exec {
                process.has_owner = true;
                process.owner.update(pid, &mut self.lineages);
                self.titles.ask(process.whose(pid), process.user());
            }
            process.report_to(pid, &mut self.changes);
        }
    }

    /// Stores a title that was read; the title of a process that has ended since is reported as
    /// well.
    fn entitle(&mut self, title: Title, now_ns: u64) {
        let Whose {
            process,
            pid,
            execs,
        } = title.whose;
        let is_it = |known: &&mut Process| known.id == process && known.execs == execs;
        let Some(process) = self.by_pid.get_mut(&pid).filter(is_it) else {
            return;
        };
        match title.words {
            Err(_) => process.title_due_ns = now_ns.saturating_add(TITLE_REFUSED_NS),
            Ok(Some(words)) if process.owner.command_line.as_ref() != Some(&words) => {
                process.owner.command_line = Some(words);
                process.report_to(pid, &mut self.changes);
            }
            Ok(_) => {}
        }
    }

    fn map(&mut self, map: &Map, time_ns: u64) {
        let known_from_proc = self
            .by_pid
            .get(&map.pid)
            .is_some_and(|process| process.scanned_ns > time_ns);
        if known_from_proc {
            return;
        }
        let end = map.start.saturating_add(map.length);
        if let Some(process) = self
            .by_pid
            .get_mut(&map.pid)
            .filter(|process| process.mappings.len() >= self.mappings_max)
        {
            // Its file is not even opened.
            Arc::make_mut(&mut process.mappings).cover(map.start, end);
            return;
        }
        let seen = Seen {
            pid: map.pid,
            start: map.start,
            end,
            path: &map.path,
            identity: &map.identity,
        };
        let next_id = &mut self.next_id;
        let process = self
            .by_pid
            .entry(map.pid)
            .or_insert_with(|| Process::new(next_id, b""));
        let backing = self.modules.backing(&seen, &mut process.may_open);
        let mappings = Arc::make_mut(&mut process.mappings);
        match backing {
            Some(backing) => {
                mappings.insert(mapping(map.start, end, map.file_offset, backing));
            }
            None => mappings.cover(map.start, end),
        }
    }
}

impl Process {
    /// Whether it has executed another program since it was first seen.
    pub fn has_execed(&self) -> bool {
        self.execs > 0
    }

    /// Returns the program that it runs now, as the process with this number.
    fn whose(&self, pid: u32) -> Whose {
        Whose {
            process: self.id,
            pid,
            execs: self.execs,
        }
    }

    /// Returns the user to whom it is charged; all processes of unknown users count as one user.
    pub fn user(&self) -> u32 {
        self.owner.real_uid.unwrap_or(NOBODY)
    }

    fn new(next_id: &mut u32, comm: &[u8]) -> Self {
        let id = ProcessId(*next_id);
        *next_id += 1;
        Self {
            id,
            comm: sanitize(comm).into(),
            mappings: Arc::default(),
            execs: 0,
            exited_ns: None,
            is_headless: false,
            is_missing: false,
            may_open: FILES_MAX,
            scanned_ns: 0,
            left_for_later_ns: None,
            given_up_ns: 0,
            owner: Owner::default(),
            has_owner: false,
            title_due_ns: 0,
            announced: false,
        }
    }

    /// Whether its mappings are read later, because too much was read of its user's processes or kept of
    /// all.
    pub fn is_left_for_later(&self) -> bool {
        self.left_for_later_ns.is_some()
    }

    fn report_to(&self, pid: u32, changes: &mut Vec<ProcessInfo>) {
        changes.push(ProcessInfo {
            id: self.id,
            pid,
            comm: self.comm.clone(),
            owner: self.owner.clone(),
            exited: self.exited_ns.is_some(),
        });
    }
}

/// Reads the name of a process.
fn comm(pid: u32) -> io::Result<Vec<u8>> {
    let mut comm = fs::read(format!("/proc/{pid}/comm"))?;
    if comm.last() == Some(&b'\n') {
        comm.pop();
    }
    Ok(comm)
}

/// Positions in anonymous memory are addresses. Positions in the vDSO count from its start, as its
/// symbols do.
fn mapping(start: u64, end: u64, file_offset: u64, backing: Backing) -> Mapping {
    let file_offset = match backing {
        Backing::Anonymous | Backing::Trampolines { .. } => start,
        Backing::Module(_) => file_offset,
    };
    Mapping {
        start,
        end,
        file_offset,
        backing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;
    use symbolize::files::{Proxy, Reply, Request};
    use symbolize::{Files, Reason, RemoteFiles};
    use test_support::wait_until;

    fn event(time_ns: u64, what: What) -> Event {
        Event { time_ns, what }
    }

    fn exec(pid: u32, comm: &str) -> What {
        What::Comm {
            pid,
            tid: pid,
            comm: comm.as_bytes().to_vec(),
            exec: true,
        }
    }

    fn map(pid: u32, start: u64, inode: u8) -> What {
        What::Map(Map {
            pid,
            start,
            length: 0x1000,
            file_offset: 0x5000,
            path: b"/nowhere/lib.so".to_vec(),
            identity: Identity {
                device: (0, 0),
                inode: inode.into(),
                generation: 1,
            },
        })
    }

    /// A pid that no process of this machine has.
    const PID: u32 = 0x7fff_0001;
    const CHILD: u32 = 0x7fff_0002;

    fn backing_at(table: &mut ProcessTable, pid: u32, address: u64) -> Option<Backing> {
        table
            .at(pid, b"", 0, 0)
            .mappings
            .find(address)
            .map(|mapping| mapping.backing)
    }

    /// Nothing is reported when the other threads end.
    #[test]
    fn a_process_whose_main_thread_ended_before_its_others_ends_with_them() {
        let mut table = ProcessTable::new();
        let alive = std::process::id();
        for pid in [PID, alive] {
            table.apply(&event(1, exec(pid, "threads")));
            table.apply(&event(2, What::Exit { pid, tid: pid }));
            let process = table.at(pid, b"threads", 3, 3);
            assert_eq!(process.exited_ns, None, "another thread runs");
        }
        table.apply(&event(4, exec(CHILD, "alone")));
        let mut forgotten = Vec::new();
        for now_ns in [5, 6, 7, 7 + REMEMBERED_NS] {
            forgotten.push(table.sweep(now_ns));
        }
        assert_eq!(forgotten, [vec![], vec![], vec![], vec![PID]]);
        let is_told = |info: &ProcessInfo| info.pid == PID && info.exited;
        assert!(table.take_changes().iter().any(is_told));
        // No end of others was lost.
        assert!(table.is_known(alive) && table.is_known(CHILD));
        table.apply(&event(REMEMBERED_NS, What::Lost(1)));
        for now_ns in [0, 1, 2, 3 + REMEMBERED_NS] {
            forgotten.push(table.sweep(REMEMBERED_NS + now_ns));
        }
        assert_eq!(forgotten.pop(), Some(vec![CHILD]));
        assert!(table.is_known(alive));
    }

    #[test]
    fn a_process_is_left_for_later_if_too_much_was_read_of_its_users() {
        const USER: u32 = 1000;
        let pid = std::process::id();
        let mut table = ProcessTable::new();
        table.leave_for_later(pid, 0);
        let process = table.by_pid.get_mut(&pid).unwrap();
        process.owner.real_uid = Some(USER);
        table.scans.took(USER, 1 << 20, Duration::ZERO, 0);
        table.read_existing(pid, 1);
        assert!(table.by_pid[&pid].is_left_for_later());
        assert!(!table.rescan(pid, RESCAN_NS));
        let told = table.over_share(RESCAN_NS);
        let left = OverShare {
            user: USER,
            what: Scarce::Scans,
            count: 1,
        };
        assert_eq!(told, [left]);
        assert_eq!(table.over_share(RESCAN_NS + LEFT_NS), []);
        let later_ns = 1 << 40;
        assert!(table.rescan(pid, later_ns));
        assert!(!table.by_pid[&pid].is_left_for_later());
        assert!(!table.mapped(pid).unwrap().is_empty());
        // What is known of its mappings stays in use.
        table.scans.took(USER, 1 << 20, Duration::ZERO, later_ns);
        assert!(!table.rescan(pid, later_ns + RESCAN_NS));
        assert!(!table.by_pid[&pid].is_left_for_later());
        // One that has ended stays unknown.
        table.leave_for_later(u32::MAX, later_ns);
        assert!(!table.is_known(u32::MAX));
    }

    #[test]
    fn exec_forgets_the_old_program() {
        let mut table = ProcessTable::new();
        table.apply(&event(1, exec(PID, "sh")));
        table.apply(&event(2, map(PID, 0x1000, 1)));
        assert!(backing_at(&mut table, PID, 0x1000).is_some());
        table.apply(&event(3, exec(PID, "make")));
        assert_eq!(backing_at(&mut table, PID, 0x1000), None);
        assert_eq!(&*table.at(PID, b"", 3, 3).comm, "make");
    }

    #[test]
    fn a_child_has_its_parents_mappings_and_then_its_own() {
        let mut table = ProcessTable::new();
        table.apply(&event(1, exec(PID, "sh")));
        table.apply(&event(2, map(PID, 0x1000, 1)));
        table.apply(&event(
            3,
            What::Fork {
                pid: CHILD,
                parent_pid: PID,
            },
        ));
        assert_eq!(
            backing_at(&mut table, CHILD, 0x1000),
            backing_at(&mut table, PID, 0x1000)
        );
        table.apply(&event(4, map(CHILD, 0x1000, 2)));
        assert_ne!(
            backing_at(&mut table, CHILD, 0x1000),
            backing_at(&mut table, PID, 0x1000)
        );
    }

    /// A program that writes another title over its arguments when it reads a line.
    const RENAMES: &str = r#"
        #include <stdio.h>
        #include <string.h>
        int main(int argc, char **argv) {
            (void)argc;
            puts("begun");
            fflush(stdout);
            while (getchar() == 'r') {
                memset(argv[0], 0, strlen(argv[0]));
                strcpy(argv[0], "worker: busy");
                puts("renamed");
                fflush(stdout);
            }
            return 0;
        }
    "#;

    #[test]
    fn a_process_goes_by_its_newest_title() {
        use std::io::{BufRead as _, BufReader, Write as _};
        use std::process::{Command, Stdio};
        let folder = test_support::Scratch::new();
        let source = folder.write("renames.c", RENAMES);
        let program = folder.path().join("a-program-with-a-long-name");
        if test_support::compile(&source, &program, ["-O1"]).is_none() {
            return;
        }
        let mut child = Command::new(&program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        let mut says = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut tell = child.stdin.take().expect("piped");
        let mut heard = || says.next().expect("a line").expect("text");
        assert_eq!(heard(), "begun");
        let pid = child.id();
        let mut table = ProcessTable::new();
        let title = |table: &mut ProcessTable, now_ns| -> Vec<String> {
            table.at(pid, b"", now_ns, now_ns);
            wait_until("what was asked for is read", || {
                table.begin_turn(now_ns);
                table.titles.outstanding() == 0
            });
            let changes = table.take_changes().into_iter();
            changes
                .filter_map(|told| told.owner.command_line)
                .map(|it| it.to_string())
                .collect()
        };
        let first = title(&mut table, 1);
        assert!(
            first[0].ends_with("a-program-with-a-long-name"),
            "{first:?}"
        );
        tell.write_all(b"r").expect("it reads");
        assert_eq!(heard(), "renamed");
        // A moment later it is not read again.
        assert_eq!(title(&mut table, 2), [""; 0]);
        assert_eq!(title(&mut table, 1 + TITLE_NS), ["worker: busy"]);
        // Nothing is reported if nothing is new.
        assert_eq!(title(&mut table, 1 + 2 * TITLE_NS), [""; 0]);
        drop(tell);
        child.wait().expect("it ends");
        // What is known of it is kept.
        assert_eq!(title(&mut table, 1 + 3 * TITLE_NS), [""; 0]);
    }

    #[test]
    fn a_title_of_the_program_before_is_nobodys() {
        let mut table = ProcessTable::new();
        table.apply(&event(1, exec(PID, "sh")));
        table.at(PID, b"", 1, 1);
        let asked = |table: &ProcessTable| table.by_pid[&PID].whose(PID);
        let answer = |table: &mut ProcessTable, whose: Whose, words: &str| {
            let words = Ok(Some(words.into()));
            table.entitle(Title { whose, words }, 2);
            table.by_pid[&PID].owner.command_line.clone()
        };
        let early = asked(&table);
        table.apply(&event(3, exec(PID, "gzip")));
        assert_eq!(answer(&mut table, early, "sh ./script"), None);
        let late = asked(&table);
        let title = answer(&mut table, late, "gzip -9");
        assert_eq!(title.as_deref(), Some("gzip -9"));
    }

    #[test]
    fn a_program_that_has_ended_is_not_called_as_who_started_it() {
        // No process has this number, so nothing can be read of it.
        const ENDED: u32 = u32::MAX - 1;
        let mut table = ProcessTable::new();
        table.apply(&event(1, exec(PID, "sh")));
        table.at(PID, b"", 1, 1);
        let whose = table.by_pid[&PID].whose(PID);
        let words = Ok(Some("sh ./script".into()));
        table.entitle(Title { whose, words }, 2);
        table.apply(&event(
            3,
            What::Fork {
                pid: ENDED,
                parent_pid: PID,
            },
        ));
        assert_eq!(
            table.by_pid[&ENDED].owner.command_line.as_deref(),
            Some("sh ./script")
        );
        table.apply(&event(4, exec(ENDED, "gzip")));
        let program = table.at(ENDED, b"", 5, 5);
        assert_eq!(program.owner.command_line, None);
        assert_eq!(program.owner.parent, Some(PID));
        assert_eq!(&*program.comm, "gzip");
    }

    #[test]
    fn nothing_is_read_of_a_process_that_has_ended_unless_it_goes_on() {
        let pid = std::process::id();
        let mut table = ProcessTable::new();
        table.apply(&event(1, exec(pid, "leader")));
        let end = event(5, What::Exit { pid, tid: pid });
        table.prepare(&[], std::slice::from_ref(&end));
        assert_eq!(table.at(pid, b"", 3, 6).owner, Owner::default());
        assert_eq!(table.take_changes().len(), 1, "it is reported");
        assert_eq!(table.titles.outstanding(), 0);
        // In the turn of its end, and when a sample comes that was held.
        for events in [&[end][..], &[]] {
            table.prepare(events, &[]);
            events.iter().for_each(|event| table.apply(event));
            assert_eq!(table.at(pid, b"", 4, 7).owner, Owner::default());
        }
        // Other threads of it go on.
        let uid = table.at(pid, b"", 8, 9).owner.uid;
        assert_eq!(uid, Some(rustix::process::geteuid().as_raw()));
        assert_eq!(table.titles.outstanding(), 1);
    }

    /// Gives no answer until the test permits it.
    #[derive(Debug)]
    struct Silent(Mutex<Receiver<()>>);

    impl Proxy for Silent {
        fn perform(&self, _: &Request<'_>, _: RemoteFiles) -> Result<Reply, Reason> {
            _ = self.0.lock().expect("nobody panics").recv();
            Err(Reason::Remote)
        }
    }

    #[test]
    fn a_process_that_does_not_answer_holds_up_nobody() {
        let (answer, silence) = channel();
        let mut table = ProcessTable::new();
        let silent = Silent(Mutex::new(silence));
        table.titles = Titles::read_by(Files::by(Arc::new(silent)));
        // The call would wait here.
        table.at(PID, b"a", 1, 1);
        table.at(CHILD, b"b", 1, 1);
        assert_eq!(table.take_changes().len(), 2);
        assert_eq!(table.titles.outstanding(), 2);
        drop(answer);
        wait_until("both are given up", || {
            table.begin_turn(2);
            table.titles.outstanding() == 0
        });
        // They are not read for a while.
        table.at(PID, b"a", TITLE_NS + 3, TITLE_NS + 3);
        assert_eq!(table.titles.outstanding(), 0);
        let later = TITLE_REFUSED_NS + 3;
        table.at(PID, b"a", later, later);
        assert_eq!(table.titles.outstanding(), 1);
    }

    #[test]
    fn a_pid_that_is_used_again_is_another_process() {
        let mut table = ProcessTable::new();
        table.apply(&event(
            1,
            What::Fork {
                pid: CHILD,
                parent_pid: PID,
            },
        ));
        let first = table.at(CHILD, b"", 1, 1).id;
        table.apply(&event(
            2,
            What::Exit {
                pid: CHILD,
                tid: CHILD,
            },
        ));
        table.apply(&event(
            3,
            What::Fork {
                pid: CHILD,
                parent_pid: PID,
            },
        ));
        assert_ne!(table.at(CHILD, b"", 3, 3).id, first);
    }

    #[test]
    fn changes_are_told_of_those_who_were_sampled() {
        let mut table = ProcessTable::new();
        table.apply(&event(1, exec(PID, "quiet")));
        assert!(table.take_changes().is_empty());
        table.at(PID, b"", 1, 1);
        assert_eq!(table.take_changes().len(), 1);
        table.apply(&event(2, What::Exit { pid: PID, tid: PID }));
        let changes = table.take_changes();
        assert!(changes.len() == 1 && changes[0].exited);
    }

    #[test]
    fn the_dead_are_forgotten_after_a_while() {
        let mut table = ProcessTable::new();
        table.apply(&event(1, exec(PID, "x")));
        table.apply(&event(2, What::Exit { pid: PID, tid: PID }));
        table.sweep(3);
        assert_eq!(table.by_pid.len(), 1);
        table.sweep(3 + REMEMBERED_NS);
        assert_eq!(table.by_pid.len(), 0);
    }

    #[test]
    fn our_own_process_is_read_from_proc() {
        let mut table = ProcessTable::new();
        let here = our_own_process_is_read_from_proc as fn() as usize as u64;
        let own = std::process::id();
        assert!(matches!(
            backing_at(&mut table, own, here),
            Some(Backing::Module(_))
        ));
    }
}
