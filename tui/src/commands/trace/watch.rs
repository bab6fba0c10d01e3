//! The probes of a run: placing them, removing those that cost too much, and reading them.

use crate::cli::TraceConfig;
use crate::failure::{Exit, Failure};
use crate::stderr;
use crate::values;
use engine::probes::modules::{self, Module};
use engine::probes::needed::{self, Environment};
use engine::probes::no_code;
use engine::probes::{
    Found, FrameKey, Guard, NotFound, Placing, ProbeLimits, Reach, Recorder, Search, TooMuch,
    Track, TypesFile, Wanted, What, cut_of, find, guess,
};
use probe::call::{Calls, Caution, Cost};
use probe::call_orders::{Orders, PROBES_MAX, order};
use probe::{Frame, ModuleId, Sample};
use profile::probes::ProbeLog;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use symbolize::{Reason, Symbolizer};

/// Maximum number of stacks of one probe in a second: enough for shares, and cheap compared with
/// the hits.
const STACKS_PER_SECOND: f64 = 200.0;

/// All probes of a run, and the functions that are still searched.
pub struct Watch<'c> {
    /// Places probes in the kernel, and reads their counts.
    calls: Calls,
    config: &'c TraceConfig,
    /// Whether ends of calls are traced, and which values are read.
    search: Search,
    /// The limits of the cost of one probe.
    limits: ProbeLimits,
    /// The cost of a hit on this machine, measured before the first probe is placed.
    cost: Cost,
    symbolizer: Symbolizer,
    /// The files with code that a command maps at its start. Empty without a command.
    at_start: Vec<Module>,
    /// Those of them that could not be read.
    unreadable_at_start: Vec<(PathBuf, Reason)>,
    /// The files with code that were searched last.
    looked_at: Vec<Module>,
    /// Mapped files that could not be read in the last search.
    unreadable: Vec<(PathBuf, Reason)>,
    /// Wanted functions that are not found yet.
    missing: Vec<Missing>,
    probes: Vec<Probe>,
    /// The counts of all probes, by the second.
    recorder: Recorder,
}

/// A wanted function that was not found.
struct Missing {
    wanted: Wanted,
    /// The reason, unless it is that no function has this name.
    why: Option<String>,
}

/// A probe, in place or removed.
pub struct Probe {
    pub found: Found,
    /// Its number in the kernel, which its records contain.
    pub number: u8,
    /// The orders for each hit. They are changed while the probe is in place, to take fewer stacks.
    orders: Orders,
    /// Decides by the rate of hits whether the probe costs too much.
    guard: Guard,
    /// Whether the probe was removed before the end.
    is_removed: bool,
    /// The state of its log. None if the log has no more room.
    track: Option<Track>,
}

impl<'c> Watch<'c> {
    /// Measures the cost of a hit on this machine. Places no probe yet.
    pub fn new(mut calls: Calls, config: &'c TraceConfig) -> Result<Watch<'c>, Failure> {
        let cost = calls
            .measure_cost()
            .map_err(|error| Failure::new(Exit::NotPossible, error.to_string()))?;
        let types = config
            .types
            .as_deref()
            .map(TypesFile::open)
            .transpose()
            .map_err(Failure::failed)?
            .map(Arc::new);
        let search = Search {
            returns: config.is_timed,
            values: config.values.clone(),
            caution: Caution::default(),
            types,
        };
        let wanted = config.functions.iter().map(|text| {
            let wanted = Wanted::parse(text)?;
            Ok(Missing { wanted, why: None })
        });
        let missing: Result<_, String> = wanted.collect();
        let missing = missing.map_err(Failure::usage)?;
        Ok(Watch {
            calls,
            config,
            search,
            limits: config.limits,
            cost,
            symbolizer: Symbolizer::new().with_files(probe::files::of_targets()),
            at_start: Vec::new(),
            unreadable_at_start: Vec::new(),
            looked_at: Vec::new(),
            unreadable: Vec::new(),
            missing,
            probes: Vec::new(),
            recorder: Recorder::default(),
        })
    }

    /// Probes the functions that can be found now: in the program of a command that has not run yet
    /// and the libraries that it needs, or else in the target's processes.
    pub fn place(&mut self, reach: &Reach) -> Result<(), Failure> {
        let modules = match &reach.program {
            Some(program) => {
                let environment = Environment::own();
                let (modules, unreadable) =
                    needed::of_program(program, &environment, &self.symbolizer);
                self.at_start = modules;
                self.unreadable_at_start = unreadable;
                self.unreadable.clone_from(&self.unreadable_at_start);
                self.at_start.clone()
            }
            None => self.modules_of(&reach.processes()),
        };
        self.place_in(&modules, reach, false)?;
        // All tracepoints of the kernel exist from the start, so there is no use in looking again.
        let of_kernel = self
            .missing
            .iter()
            .filter(|missing| matches!(missing.wanted.what, What::Tracepoint(..)))
            .find_map(|missing| missing.why.clone());
        of_kernel.map_or(Ok(()), |why| Err(Failure::failed(why)))
    }

    /// Searches again for functions that were not found before: by now a command may have loaded
    /// more libraries, or have started other programs.
    pub fn place_late(&mut self, reach: &Reach) -> Result<(), Failure> {
        if self.missing.is_empty() {
            return Ok(());
        }
        let mut modules = self.modules_of(&reach.processes());
        // A command that has ended, or is in exec, has no mappings. The messages about functions
        // that were not found still refer to its program.
        if !modules.iter().any(|module| module.is_program) {
            modules.extend(self.at_start.iter().cloned());
            self.unreadable
                .extend(self.unreadable_at_start.iter().cloned());
        }
        self.place_in(&modules, reach, true)
    }

    /// Prints which functions are not in a command's program or the libraries that it needs, so
    /// that the user does not learn of a mistyped name only at the end of the command.
    pub fn say_missing(&self, program: &str) {
        for missing in &self.missing {
            let text = &missing.wanted.text;
            if let Some(why) = &missing.why {
                stderr::say(format_args!(
                    "{why}; looking in what {program} loads or starts"
                ));
                continue;
            }
            let what = kind(&missing.wanted);
            let near = self
                .guess(missing)
                .map(|name| format!(" (did you mean {name}?)"));
            let unread = || self.unread().map(|unread| format!(" ({unread})"));
            let guess = match self.no_code(missing) {
                Some(why) => format!(": {why}"),
                None => near.or_else(unread).unwrap_or_default(),
            };
            stderr::say(format_args!(
                "no {what} is called `{text}` in {program} and the libraries that it \
                 needs{guess}; looking in what it loads or starts"
            ));
        }
    }

    /// Returns why no code has the name of a function that was not found, and what to probe
    /// instead.
    fn no_code(&self, missing: &Missing) -> Option<String> {
        no_code::explain(&self.looked_at, &missing.wanted)
    }

    /// Returns a sentence on files that could not be searched.
    fn unread(&self) -> Option<String> {
        modules::explain_unreadable(&self.unreadable)
    }

    /// Returns the name of a function whose spelling is similar to one that was not found.
    fn guess(&self, missing: &Missing) -> Option<String> {
        let Wanted { text, what, .. } = &missing.wanted;
        guess(text, what, &self.looked_at)
    }

    /// Returns the files with code that processes have mapped, and notes those that cannot be read:
    /// the wanted functions may be in them.
    fn modules_of(&mut self, pids: &[u32]) -> Vec<Module> {
        let way = probe::files::of_targets();
        let (modules, unreadable) = modules::of_processes(pids, &way, &self.symbolizer);
        self.unreadable = unreadable;
        modules
    }

    /// Searches these modules for the missing functions, and probes those that are found. The
    /// others stay missing, with the reason, to be searched again. It is an error if more functions
    /// match than can be probed, or if a value is refused; if `is_late`, a refused value is only
    /// printed.
    fn place_in(
        &mut self,
        modules: &[Module],
        reach: &Reach,
        is_late: bool,
    ) -> Result<(), Failure> {
        if self.missing.is_empty() {
            return Ok(());
        }
        self.looked_at = modules.to_vec();
        let before = std::mem::replace(&mut self.search.caution, Caution::now());
        let is_new = before != self.search.caution && self.search.returns;
        if let Some(why) = self.search.caution.explain().filter(|_| is_new) {
            stderr::say(why);
        }
        for Missing { wanted, .. } in std::mem::take(&mut self.missing) {
            // A function that is not mapped yet may be later.
            let (found, refused) = match find(modules, &wanted, &self.search) {
                Ok((found, refused)) if !found.is_empty() || !refused.is_empty() => {
                    (found, refused)
                }
                Err(NotFound::Refused(why)) => {
                    if is_late {
                        stderr::say(format_args!("no probe on {}: {why}", wanted.text));
                        continue;
                    }
                    return Err(Failure::failed(why));
                }
                result => {
                    let why = result.err().map(NotFound::why);
                    self.missing.push(Missing { wanted, why });
                    continue;
                }
            };
            let room = PROBES_MAX - self.probes.len();
            if found.len() > room {
                let text = &wanted.text;
                let many = found.len();
                return Err(Failure::usage(format!(
                    "`{text}` fits {many} functions; {PROBES_MAX} can be probed at a time"
                ))
                .detail(IS_REGULAR));
            }
            for refused in &refused {
                let (name, module) = (&refused.name, &refused.module);
                let why = refused.explain();
                stderr::say(format_args!("no probe on {name} ({module}): {why}"));
            }
            for found in found {
                if let Some(types) = &found.types {
                    stderr::say(types);
                }
                self.place_one(found, reach)?;
            }
        }
        Ok(())
    }

    /// Places the probe of one function. If only targets can hit it, the kernel need not check the
    /// process at each hit.
    fn place_one(&mut self, found: Found, reach: &Reach) -> Result<(), Failure> {
        let mut orders = self.orders(&found)?;
        let scope = reach.scope(&found);
        if reach.is_exact(&scope) {
            orders.flags |= order::EVERYBODY;
        }
        let calls = &mut self.calls;
        let placed = found.place(calls, &mut orders, &scope, self.cost, self.limits);
        let (number, guard) = placed.map_err(|error| {
            let (name, module) = (&found.name, &found.module);
            Failure::failed(format!("no probe on {name} ({module}): {error}"))
        })?;
        let placing = Placing {
            whose: "",
            hit_ns: guard.cost_ns,
            floor_ns: guard.floor_ns,
            min_ns: orders.min_ns,
            placed_ns: probe::now_ns(),
        };
        let track = self.recorder.begin(&found, placing);
        self.probes.push(Probe {
            found,
            number,
            orders,
            guard,
            is_removed: false,
            track,
        });
        Ok(())
    }

    /// Returns the orders of a probe for each hit. Stacks are taken at the beginning of a call or,
    /// if only slow calls count, at its end, when it is known to be slow.
    fn orders(&self, found: &Found) -> Result<Orders, Failure> {
        let mut orders = Orders {
            stack_odds: u32::MAX,
            min_ns: self.config.min.as_nanos() as u64,
            ..Orders::default()
        };
        let lowered = found.values.lower(found.language, &mut orders);
        lowered.map_err(Failure::usage)?;
        if found.sees_ends {
            orders.flags |= order::TIMED;
        }
        if self.config.stacks {
            orders.flags |= if orders.min_ns > 0 && found.sees_ends {
                order::SLOW_STACKS
            } else {
                order::STACKS
            };
        }
        Ok(orders)
    }

    /// Returns an error if some function was not found, or none could be probed.
    pub fn check_all_found(&self) -> Result<(), Failure> {
        if let Some(missing) = self.missing.first() {
            let no_code = self.no_code(missing);
            let guess = self.guess(missing).filter(|_| no_code.is_none());
            let failure = not_found(missing, guess.as_deref());
            let failure = match no_code {
                Some(why) => failure.detail(why),
                None => failure,
            };
            return Err(match self.unread() {
                Some(unread) => failure.detail(unread),
                None => failure,
            });
        }
        if self.probes.is_empty() {
            return Err(Failure::failed("no function got a probe"));
        }
        Ok(())
    }

    /// Prints which functions were not found. It is an error if none was probed: then there is
    /// nothing to report.
    pub fn check_some_found(&self) -> Result<(), Failure> {
        if self.probes.is_empty() {
            return self.check_all_found();
        }
        for missing in &self.missing {
            let no_code = self.no_code(missing);
            let guess = self.guess(missing).filter(|_| no_code.is_none());
            stderr::say(not_found(missing, guess.as_deref()).message);
            no_code.into_iter().for_each(stderr::say);
        }
        Ok(())
    }

    /// Whether a probe is in place, or may still be placed.
    pub fn has_probes(&self) -> bool {
        let in_place = self.probes.iter().any(|probe| !probe.is_removed);
        in_place || !self.missing.is_empty()
    }

    /// Removes probes that cost too much, and adjusts how many stacks the others take. `since` is
    /// the time since the last call.
    pub fn judge(&mut self, since: Duration) {
        self.calls.end_measuring();
        for probe in self.probes.iter_mut().filter(|probe| !probe.is_removed) {
            let Ok((reading, texts)) = self.calls.read_with_values(probe.number) else {
                continue;
            };
            let now_ns = probe::now_ns();
            if let Some(track) = &mut probe.track {
                let values = &probe.found.values;
                self.recorder.look(track, now_ns, &reading, &texts, values);
            }
            // A hit of a process outside of the target costs as much as one that counts.
            let hits = reading.calls + reading.others;
            let per_second = probe.guard.per_second(hits, since);
            if let Some(too_much) = probe.guard.judge(hits, since) {
                self.calls.remove(probe.number);
                let why = too_much.explain(self.limits);
                let why = format!("{why} ({})", option(too_much));
                stderr::say(format_args!(
                    "the probe on {} was taken away: {why}",
                    probe.found.name
                ));
                probe.is_removed = true;
                if let Some(track) = &mut probe.track {
                    self.recorder.end(track, now_ns, &why);
                }
                continue;
            }
            if self.config.stacks {
                // The probability that a call gives its stack: 1 up to that many calls in a second;
                // above, it is so low that about as many stacks are taken. The kernel compares it
                // with a random number of 32 bits.
                let odds = (STACKS_PER_SECOND / per_second.max(1.0)).min(1.0);
                probe.orders.stack_odds = (odds * f64::from(u32::MAX)) as u32;
                // If this fails, the probe takes stacks as often as before.
                let _ = self.calls.set_orders(probe.number, &probe.orders);
            }
        }
    }

    /// Adds a sampled stack to its probe. `file` returns the short name of a module.
    pub fn take_stack(
        &mut self,
        number: u8,
        is_slow: bool,
        sample: &Sample,
        file: impl Fn(u32) -> Arc<str>,
        kernel_address: impl Fn(&Frame) -> Option<u64>,
    ) {
        // After a probe is removed, its number is used again. The last one is meant.
        let mut probes = self.probes.iter_mut().rev();
        let Some(probe) = probes.find(|probe| probe.number == number) else {
            return;
        };
        let Some(track) = &mut probe.track else {
            return;
        };
        // The stack of a slow call is taken at its end, in the function or after it returned.
        let is_own = |address: u64| {
            let mut extents = probe.found.extents.iter();
            extents.any(|extent| extent.range.contains(&address))
        };
        let first = sample.frames.first();
        let own = !is_slow || first.is_some_and(|frame| is_own(frame.address));
        let callers = probe.found.callers(&sample.frames, kernel_address, own);
        let keys = callers.iter().map(|frame| (frame.module.0, frame.address));
        // Aliases of threads would be numbered as threads appear, and a file that grows could use
        // one alias for two threads.
        let comm = if self.config.hide_names {
            &Arc::default()
        } else {
            &sample.comm
        };
        let thread = (sample.tid, comm);
        self.recorder
            .take_stack(track, keys, file, thread, cut_of(sample));
    }

    /// Reads the counts of all probes, and removes the probes.
    pub fn finish(&mut self) {
        for probe in self.probes.iter_mut().filter(|probe| !probe.is_removed) {
            // The counts are read while all breakpoints of the probe are in place: removing them
            // takes some time.
            if let Ok((reading, texts)) = self.calls.read_at_one_moment(probe.number)
                && let Some(track) = &mut probe.track
            {
                let values = &probe.found.values;
                let now_ns = probe::now_ns();
                self.recorder.look(track, now_ns, &reading, &texts, values);
            }
            self.calls.remove(probe.number);
        }
    }

    /// Returns the results. `name` returns the names of callers.
    pub fn log(&mut self, name: impl Fn(Frame, &Symbolizer) -> Option<String>) -> Arc<ProbeLog> {
        for probe in &mut self.probes {
            if let Some(track) = &mut probe.track {
                self.recorder.settle(track);
            }
        }
        let unnamed: Vec<FrameKey> = self.recorder.unnamed().collect();
        for key in unnamed {
            let frame = Frame {
                module: ModuleId(key.0),
                address: key.1,
            };
            if let Some(name) = name(frame, &self.symbolizer) {
                self.recorder.name_frame(key, &name.into());
            }
        }
        Arc::clone(self.recorder.log())
    }

    /// Returns when the first probe was placed. None if none was.
    pub fn begin_ns(&self) -> Option<u64> {
        self.recorder.log().begin_ns()
    }
}

/// Returns the option that raises the limit.
fn option(too_much: TooMuch) -> &'static str {
    match too_much {
        TooMuch::Share(_) => "--max-cost",
        TooMuch::Hits(_) => "--max-hits",
    }
}

/// The hint for a user who typed a pattern as for file names.
const IS_REGULAR: &str = "functions are given by name or regular expression: those whose names \
                          begin with work_ are '^work_'";

fn not_found(missing: &Missing, guess: Option<&str>) -> Failure {
    let text = &missing.wanted.text;
    if let Some(why) = &missing.why {
        return Failure::failed(why.clone());
    }
    if is_of_kernel(text) {
        let why = if std::path::Path::new("/sys/bus/event_source/devices/kprobe").exists() {
            "only code of programs can be probed so far"
        } else {
            "this kernel has no probes of its own code (CONFIG_KPROBE_EVENTS)"
        };
        return Failure::new(
            Exit::NotPossible,
            format!("{text} is a function of the kernel: {why}"),
        );
    }
    if let What::Name(name, None) = &missing.wanted.what
        && values::regex(name).is_err()
    {
        let what = format!("no function is called `{text}`, which is no regular expression");
        return Failure::failed(what).detail(IS_REGULAR);
    }
    let guess = guess.map_or(String::new(), |name| format!("; did you mean {name}?"));
    let what = kind(&missing.wanted);
    let failure = Failure::failed(format!(
        "no {what} is called `{text}` in the code that is mapped{guess}"
    ));
    if what == MARKER {
        return failure.detail("markers of a file are listed by readelf -n FILE");
    }
    failure.remedy(
        "proftop trace MODULE+0xOFFSET",
        "takes a place, where a name is missing",
    )
}

const MARKER: &str = "marker";

/// Returns the word for what a user wants to probe.
fn kind(wanted: &Wanted) -> &'static str {
    match wanted.what {
        What::Marker(..) => MARKER,
        What::Tracepoint(..) => "tracepoint",
        _ => "function",
    }
}

fn is_of_kernel(name: &str) -> bool {
    let symbols = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    symbols.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace();
        fields.nth(2) == Some(name)
    })
}
