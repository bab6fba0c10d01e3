//! Finds the functions that the user specified, and the sites of each.
//!
//! One name may refer to many functions: copies of a file in several containers, and functions of
//! that name in several files or several times in one. Whether they are one probe or several
//! depends on the kind of specification:
//!
//! ```text
//! a name, `malloc`          all that have it are one probe
//! a pattern, `^pg_.*`       each name is one probe, if no function is called so itself
//! a line, `scan.c:120`      one probe, with a site for each piece of code of the line
//! an offset, `app+0x1a40`   the function there
//! a row of the screen       the function of that file, in all copies of it
//! a tracepoint              a place in the kernel; of a pattern each is one probe
//! ```

/// Places that programmers marked (USDT), with their arguments.
mod markers;
/// Tracepoints of the kernel.
mod tracepoints;

use super::expression::Values;
use super::guard::{Guard, ProbeLimits};
use super::modules::Module;
use super::order::Sampled;
use super::typed::{TypesFile, typed};
use super::wanted::{Wanted, What};
use probe::call::{AttachError, Calls, Caution, Cost, EndPlan, FunctionPlan, Scope, SitePlan};
use probe::call_orders::{Orders, PROBES_MAX, order};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use symbolize::parser::{Functions, LineFunctions};
use symbolize::sites::{
    self, Ends, Function, Language, NoLine, Placed, Refusal, Returns, Site, Wish,
};
use symbolize::{FileOffset, Reason};
pub(super) use tracepoints::names as tracepoint_names;
pub use tracepoints::{Point, check_point, runner_code};

/// What is to be observed of the calls.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// Whether their ends are observed.
    pub returns: bool,
    /// The values that are read at each call.
    pub values: Values,
    /// What must be avoided, so that no process is killed by it.
    pub caution: Caution,
    /// A file in which names in the values are looked up that the probed file does not have.
    pub types: Option<Arc<TypesFile>>,
}

/// Why no probe can be placed: a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotFound {
    /// There is no such function in the files that are mapped now.
    Missing(String),
    /// There is one, but it cannot be probed as requested.
    Refused(String),
}

impl From<String> for NotFound {
    fn from(why: String) -> Self {
        NotFound::Refused(why)
    }
}

impl From<&str> for NotFound {
    fn from(why: &str) -> Self {
        NotFound::Refused(why.to_string())
    }
}

impl NotFound {
    /// The sentence.
    pub fn why(self) -> String {
        match self {
            NotFound::Missing(why) | NotFound::Refused(why) => why,
        }
    }
}

/// A function that gets one probe, with all its copies.
#[derive(Debug, Clone)]
pub struct Found {
    /// The function, demangled; `module+0xstart` if it has no name.
    pub name: String,
    /// Name of its file; of several copies the first one's.
    pub module: String,
    /// Link address of its start.
    pub address: u64,
    /// Language, which determines the calling convention.
    pub language: Language,
    /// Sites of the calls, of all copies.
    pub sites: Vec<Site>,
    /// Number of breakpoints at returns, of all copies.
    pub return_sites: usize,
    /// What is to be attached, for each copy.
    pub plans: Vec<FunctionPlan>,
    /// Whether the ends of its calls are seen, in all copies.
    pub sees_ends: bool,
    /// Whether the file is a program, and not a library that processes outside of the target may
    /// have mapped, too.
    pub is_program: bool,
    /// The ranges of its code, of all copies. Empty if it is not a function.
    pub extents: Vec<Extent>,
    /// The values that are read at each call, with the places of arguments filled in.
    pub values: Values,
    /// Name of the file whose types were used for the values, if it is not the function's own file.
    pub types: Option<String>,
    /// The tracepoint of the kernel, if it is not a function.
    pub point: Option<Point>,
}

/// The code of one copy of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent {
    /// Path of its file, as its processes see it.
    pub path: PathBuf,
    /// The build-id of that file; empty if it has none.
    pub build_id: Vec<u8>,
    /// Range of bytes in the file.
    pub range: Range<u64>,
}

/// A function that matches but cannot be probed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The function.
    pub name: String,
    /// Its file.
    pub module: String,
    /// Why it cannot be probed.
    pub reason: Refusal,
    /// The value that cannot be found, in words, if that is the reason.
    pub no_value: Option<String>,
}

impl Refused {
    /// Explains why it cannot be probed, as a clause.
    pub fn explain(&self) -> &str {
        self.no_value.as_deref().unwrap_or(self.reason.explain())
    }
}

/// What was found so far.
#[derive(Debug, Default)]
struct Sought {
    /// Probes by their names.
    found: BTreeMap<String, Found>,
    refused: Vec<Refused>,
    /// A sentence about the first file that could not be looked through.
    unread: Option<String>,
}

impl Sought {
    /// Returns what the process that reads a file has answered; `None`, with a note, if it could not
    /// read it.
    fn answer<T>(&mut self, module: &Module, answer: Result<T, Reason>) -> Option<T> {
        answer
            .inspect_err(|reason| {
                self.unread.get_or_insert_with(|| module.unread(*reason));
            })
            .ok()
    }
}

/// Finds every matching function of these files. All functions with a given name are one probe; for
/// a pattern each name is one. A source line is one probe, with a site for each piece of its code.
pub fn find(
    modules: &[Module],
    wanted: &Wanted,
    search: &Search,
) -> Result<(Vec<Found>, Vec<Refused>), NotFound> {
    let meant = modules
        .iter()
        .filter(|module| wanted.fits_module(&module.name()));
    let meant: Vec<&Module> = meant.collect();
    if let (Some(name), true) = (&wanted.module, meant.is_empty()) {
        let why = format!("no file `{name}` with code is mapped");
        return Err(NotFound::Missing(why));
    }
    let mut sought = Sought::default();
    // Computed once, because it reads through the files.
    let has_exceptions = search.returns && modules.iter().any(throws);
    let ends = |module: &Module| ends(module, search, has_exceptions);
    match &wanted.what {
        What::Line(file, line) => {
            let mut text = Text::default();
            for module in &meant {
                let answer = module.sites.of_line(file, *line);
                let Some(answer) = sought.answer(module, answer) else {
                    continue;
                };
                let functions = all_of(text.take(answer), &wanted.text, module)?;
                // Code at the first instruction of a function is a call of it, and the ends of
                // calls are not those of the line.
                let ends = (*module, Ends::Unseen);
                add(ends, functions, Some(&wanted.text), search, &mut sought);
            }
            if sought.found.is_empty() && sought.refused.is_empty() {
                let why = match sought.unread {
                    Some(unread) => return Err(NotFound::Refused(unread)),
                    None => text.explain(file, *line),
                };
                return Err(NotFound::Missing(why));
            }
            sought
                .found
                .values_mut()
                .for_each(|probe| probe.name.clone_from(&wanted.text));
        }
        What::Tracepoint(subsystem, name, pattern) => {
            let points = tracepoints::find(subsystem.as_deref(), name, pattern.as_ref(), search);
            return points.map_err(NotFound::Missing);
        }
        What::Marker(name, pattern) => {
            return markers::find(&meant, name, pattern.as_ref(), search)
                .map_err(NotFound::Refused);
        }
        What::Offset(offset) => {
            for module in &meant {
                let answer = module.sites.at(FileOffset(*offset));
                match sought.answer(module, answer) {
                    None => {}
                    Some(Ok(function)) => {
                        let ends = (*module, ends(module));
                        add(ends, vec![function], None, search, &mut sought);
                    }
                    Some(Err(reason)) => sought.refused.push(Refused {
                        name: wanted.text.clone(),
                        module: module.name(),
                        reason,
                        no_value: None,
                    }),
                }
            }
        }
        What::Name(name, pattern) => {
            let fitting = meant.iter().map(|module| {
                let answer = module.sites.named(name);
                sought.answer(module, answer).flatten()
            });
            let mut fitting: Vec<_> = fitting.collect();
            for (module, found) in meant.iter().zip(&mut fitting) {
                check_all_told(found.as_ref().map(|(_, functions)| functions), name, module)?;
            }
            let fitting = fitting
                .into_iter()
                .map(|found| found.map(|(fit, functions)| (fit, functions.told)));
            for (module, by_name) in meant.iter().zip(sites::best_of(fitting.collect())) {
                let ends = (*module, ends(module));
                add(ends, by_name, Some(name), search, &mut sought);
            }
            // A text is a pattern only if no function has it as its name.
            let is_nothing = sought.found.is_empty() && sought.refused.is_empty();
            if let (true, Some(pattern)) = (is_nothing, pattern) {
                for module in &meant {
                    let answer = module.sites.matching(pattern.as_str());
                    let matching = sought.answer(module, answer).unwrap_or_default();
                    let matching = all_of(matching, name, module)?;
                    let ends = (*module, ends(module));
                    add(ends, matching, None, search, &mut sought);
                }
            }
        }
    }
    let Sought {
        found,
        refused,
        unread,
    } = sought;
    // If a value cannot be found, nothing is probed.
    let no_value = refused.iter().find_map(|refused| refused.no_value.clone());
    if let (true, Some(why)) = (found.is_empty(), no_value) {
        return Err(NotFound::Refused(why));
    }
    if let (true, true, Some(why)) = (found.is_empty(), refused.is_empty(), unread) {
        return Err(NotFound::Refused(why));
    }
    Ok((found.into_values().collect(), refused))
}

/// Returns the functions of a file that match. If there are more than a parser's answer holds,
/// returns a sentence for the user instead.
fn all_of(functions: Functions, text: &str, module: &Module) -> Result<Vec<Function>, NotFound> {
    check_all_told(Some(&functions), text, module)?;
    Ok(functions.told)
}

fn check_all_told(
    functions: Option<&Functions>,
    text: &str,
    module: &Module,
) -> Result<(), NotFound> {
    match functions {
        Some(functions) if functions.all > functions.told.len() as u64 => {
            Err(NotFound::Refused(format!(
                "`{text}` fits {} functions of {}, of which at most {PROBES_MAX} can be probed at a time",
                functions.all,
                module.name()
            )))
        }
        _ => Ok(()),
    }
}

/// A source file of which no code was found so far.
#[derive(Default)]
struct Text {
    has_lines: bool,
    has_file: bool,
    /// The next line that has code.
    next: Option<u32>,
}

impl Text {
    /// Returns where a line begins in a module.
    fn take(&mut self, answer: LineFunctions) -> Functions {
        let LineFunctions::Known(found) = answer else {
            return Functions::default();
        };
        self.has_lines = true;
        match found {
            Ok(functions) => functions,
            Err(NoLine::NoSuchFile) => Functions::default(),
            Err(NoLine::NoCode(next)) => {
                self.has_file = true;
                self.next = self.next.into_iter().chain(next).min();
                Functions::default()
            }
        }
    }

    /// Explains why a line has no code.
    fn explain(&self, file: &str, line: u32) -> String {
        match (self.has_lines, self.has_file, self.next) {
            (false, ..) => format!(
                "{file}:{line}: no file that is mapped has debug information, which tells of lines"
            ),
            (true, false, _) => format!("no code that is mapped was made of {file}"),
            (true, true, Some(next)) => {
                format!("line {line} of {file} has no code; line {next} has")
            }
            (true, true, None) => format!("{file} has no code at line {line} or behind it"),
        }
    }
}

/// Finds the function that was sampled at an address of a file, in all copies of the file; if it
/// has a name, every copy of the function. `may_throw`: whether exceptions may pass through its
/// code.
pub(super) fn find_sampled(
    copies: &[Module],
    sampled: &Sampled,
    may_throw: bool,
    search: &Search,
) -> Result<Found, Refused> {
    let mut sought = Sought::default();
    let name = sampled.shown.to_string();
    for module in copies {
        let functions = sampled_in(module, sampled).map_err(|reason| Refused {
            name: name.clone(),
            module: module.name(),
            reason,
            no_value: None,
        })?;
        let ends = ends(module, search, may_throw);
        add((module, ends), functions, Some(&name), search, &mut sought);
    }
    let refused = sought.refused.pop().unwrap_or_else(|| Refused {
        name: name.clone(),
        module: sampled.file.to_string(),
        reason: Refusal::NoCode,
        no_value: None,
    });
    let mut found = sought.found.into_values().next().ok_or(refused)?;
    found.name = name;
    Ok(found)
}

/// Returns the functions of one file that a sampled address belongs to: those with its name, else
/// the one that contains the address.
fn sampled_in(module: &Module, sampled: &Sampled) -> Result<Vec<Function>, Refusal> {
    let unread = |_| Refusal::Unreadable;
    let here = module
        .sites
        .at(FileOffset(sampled.address))
        .map_err(unread)?;
    let start = here.as_ref().ok().map(|function| function.start);
    let named = match &sampled.name {
        Some(name) => module.sites.named(name).map_err(unread)?,
        None => None,
    };
    let mut functions = named.map_or_else(Vec::new, |(_, functions)| functions.told);
    // Go names are displayed without their package path, so several packages may have the same.
    if let Some(here) = functions.iter().position(|f| Some(f.start) == start)
        && functions[here].language == Language::Go
    {
        functions = vec![functions.swap_remove(here)];
    }
    if functions.is_empty() {
        let here = here?;
        if sampled.name.is_some() && !here.name.is_empty() {
            // Its code exists only inside of another function.
            return Err(Refusal::Inlined);
        }
        // Its calls are meant, and not the instruction that was sampled.
        functions.push(Function {
            inside: None,
            ..here
        });
    }
    Ok(functions)
}

/// Places the functions of a file. If `name` is given, they all belong to one probe; otherwise each
/// name is one.
fn add(
    (module, ends): (&Module, Ends),
    functions: Vec<Function>,
    name: Option<&String>,
    search: &Search,
    sought: &mut Sought,
) {
    let refuse = |function: &Function, reason, no_value| Refused {
        name: shown(module, function),
        module: module.name(),
        reason,
        no_value,
    };
    if let Err(reason) = sites::check_file(&module.path) {
        let refused = functions.iter().map(|one| refuse(one, reason, None));
        sought.refused.extend(refused);
        return;
    }
    // The sites of all functions are asked for together.
    let (mut wishes, mut all_typed) = (Vec::new(), Vec::new());
    for function in functions {
        match typed(&search.values, module, &function, search.types.as_ref()) {
            Ok(typed) => {
                let wish = wish(&function, ends, &typed.values, search.caution.spares_calls);
                wishes.push((function, wish));
                all_typed.push(typed);
            }
            Err(why) => {
                let refused = refuse(&function, Refusal::NoArgument, Some(why));
                sought.refused.push(refused);
            }
        }
    }
    let placed = module.sites.place(&wishes);
    let placed = placed.unwrap_or_else(|_| vec![Err(Refusal::Unreadable); wishes.len()]);
    for (((function, _), typed), placed) in wishes.iter().zip(all_typed).zip(placed) {
        let placed = match placed {
            Ok(placed) => placed,
            Err(reason) => {
                sought.refused.push(refuse(function, reason, None));
                continue;
            }
        };
        let shown = shown(module, function);
        let key = name.unwrap_or(&shown).clone();
        let probe = sought.found.entry(key).or_insert_with(|| Found {
            name: shown,
            module: module.name(),
            address: function.start.0,
            language: function.language,
            sites: Vec::new(),
            return_sites: 0,
            plans: Vec::new(),
            sees_ends: true,
            is_program: module.is_program,
            extents: Vec::new(),
            values: typed.values.clone(),
            types: search
                .types
                .as_ref()
                .filter(|_| typed.by_file)
                .map(|file| file.explain(module)),
            point: None,
        });
        // The kernel has to read the same at all copies.
        if probe.values.is_read_alike(&typed.values, function.language) {
            probe.add(module, function, &placed);
        } else {
            let why = "its values are elsewhere than in the first copy".to_string();
            let refused = refuse(function, Refusal::NoArgument, Some(why));
            sought.refused.push(refused);
        }
    }
}

/// Returns the displayed name of a function: its place if it has none, or if a place inside of it is
/// meant.
fn shown(module: &Module, function: &Function) -> String {
    let nameless = function.name.is_empty().then_some(function.start);
    match function.inside.or(nameless) {
        Some(addr) => {
            let offset = module.segments().to_file(addr);
            let offset = offset.map_or(addr.0, |offset| offset.0);
            format!("{}+{offset:#x}", module.name())
        }
        None => function.name.clone(),
    }
}

/// Whether code of the file itself throws exceptions: the program's own, or the C++ library.
pub(super) fn throws(module: &Module) -> bool {
    let is_cpp = module.name().starts_with("libstdc++") || module.name().starts_with("libc++");
    is_cpp || (module.is_program && module.sites.has_exceptions())
}

/// Returns how the ends of calls in a file may be detected. An exception that is thrown through a
/// replaced return address ends the program. So no return address is replaced in files that handle
/// exceptions, nor in libraries that are called between such files.
fn ends(module: &Module, search: &Search, has_exceptions: bool) -> Ends {
    if !search.returns {
        Ends::Unseen
    } else if search.caution.keeps_return_addresses
        || module.sites.has_exceptions()
        || (has_exceptions && !module.is_program)
    {
        Ends::AtReturns
    } else {
        Ends::Replaced
    }
}

/// What is required of the sites of a function.
fn wish(function: &Function, ends: Ends, values: &Values, spares_calls: bool) -> Wish {
    Wish {
        // A place inside of a function has no end.
        ends: if function.inside.is_some() {
            Ends::Unseen
        } else {
            ends
        },
        whole: values.registers_at_entry(function.language),
        spares_calls,
    }
}

impl Found {
    /// Places its probe; returns its number in the kernel and the cost of a hit. The hits at all
    /// its copies and ends count for it.
    pub fn place(
        &self,
        calls: &mut Calls,
        orders: &mut Orders,
        scope: &Scope,
        cost: Cost,
        limits: ProbeLimits,
    ) -> Result<(u8, Guard), AttachError> {
        let Some(point) = &self.point else {
            let number = calls.place(&self.plans, orders, scope)?;
            let timed = orders.flags & order::TIMED != 0;
            let guard = Guard::new(&self.sites, self.return_sites, timed, cost, limits);
            return Ok((number, guard));
        };
        orders.arguments = point.arguments.len() as u64;
        if !point.has_stacks {
            orders.flags &= !order::STACKS;
        }
        // A tracepoint is hit by every process, so the kernel checks at each hit whether the
        // process is a target.
        if let Scope::Processes(pids) = scope {
            orders.flags |= order::FEW;
            let few = orders.few.get_mut(..pids.len());
            few.ok_or(AttachError::TooManyProcesses)?
                .copy_from_slice(pids);
        }
        let (number, hit_ns) = calls.place_point(&point.name, orders)?;
        Ok((number, Guard::of_point(hit_ns, limits)))
    }

    /// Returns the frames of a stack that belong to callers: without those of the function itself,
    /// or of the code that runs programs at a tracepoint. `is_own` says whether the first one is
    /// the function's own.
    pub fn callers<'f, F>(
        &self,
        frames: &'f [F],
        kernel_address: impl Fn(&F) -> Option<u64>,
        is_own: bool,
    ) -> &'f [F] {
        let Some(point) = &self.point else {
            return frames.get(usize::from(is_own)..).unwrap_or_default();
        };
        let is_runner = |frame: &F| {
            let address = kernel_address(frame);
            address.is_some_and(|at| point.runners.iter().any(|code| code.contains(&at)))
        };
        let first = frames.get(..RUNNERS_MAX).unwrap_or(frames);
        let last = first.iter().rposition(is_runner);
        &frames[last.map_or(0, |last| last + 1)..]
    }

    /// Identifier of where calls are seen.
    pub fn site(&self) -> &'static str {
        match (&self.point, self.sites.first()) {
            (Some(_), _) => "tracepoint",
            (None, Some(site)) => site.kind.label(),
            (None, None) => "",
        }
    }

    /// Number of copies that have the probe.
    pub fn copies(&self) -> usize {
        match self.point {
            Some(_) => 1,
            None => self.sites.len(),
        }
    }

    /// Adds one copy of the function. Properties of the probe are those that all copies have.
    fn add(&mut self, module: &Module, function: &Function, placed: &Placed) {
        self.is_program &= module.is_program;
        self.sees_ends &= placed.returns.is_some();
        self.sites.push(placed.entry);
        if let Some(start) = module.segments().to_file(function.start) {
            self.extents.push(Extent {
                path: module.path.clone(),
                build_id: module.build_id().to_vec(),
                range: start.0..start.0.saturating_add(function.len),
            });
        }
        let ends = match &placed.returns {
            None => EndPlan::Unseen,
            Some(Returns::Replaced) => EndPlan::Replaced,
            Some(Returns::At(sites)) => {
                self.return_sites += sites.len();
                EndPlan::At(sites.iter().map(plan).collect())
            }
        };
        self.plans.push(FunctionPlan {
            file: Arc::clone(&module.file),
            entry: plan(&placed.entry),
            ends,
            is_go: function.language == Language::Go,
        });
    }
}

/// Number of frames at the beginning of a stack among which the frames that run programs at a
/// tracepoint are searched: our own, which are few, and the kernel's.
pub const RUNNERS_MAX: usize = 16;

fn plan(site: &Site) -> SitePlan {
    SitePlan {
        offset: site.offset.0,
        pushed: site.pushed,
        unless_taken: site.unless_taken,
        semaphore: None,
    }
}
