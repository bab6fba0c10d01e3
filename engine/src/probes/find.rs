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
use probe::call_orders::{Orders, order};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use symbolize::sites::{
    self, Ends, Function, Language, NoLine, Placed, Refusal, Returns, Site, Wish,
};
use symbolize::{FileOffset, Symbolizer};
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

/// Finds every matching function of these files. All functions with a given name are one probe; for
/// a pattern each name is one. A source line is one probe, with a site for each piece of its code;
/// `symbolizer` is used to read the lines of the files.
pub fn find(
    modules: &[Module],
    wanted: &Wanted,
    search: &Search,
    symbolizer: &Symbolizer,
) -> Result<(Vec<Found>, Vec<Refused>), NotFound> {
    let meant = modules
        .iter()
        .filter(|module| wanted.fits_module(&module.name()));
    let meant: Vec<&Module> = meant.collect();
    if let (Some(name), true) = (&wanted.module, meant.is_empty()) {
        let why = format!("no file `{name}` with code is mapped");
        return Err(NotFound::Missing(why));
    }
    let (mut found, mut refused) = (BTreeMap::new(), Vec::new());
    // Computed once, because it reads through the files.
    let has_exceptions = search.returns && modules.iter().any(throws);
    let ends = |module: &Module| ends(module, search, has_exceptions);
    match &wanted.what {
        What::Line(file, line) => {
            let mut text = Text::default();
            for module in &meant {
                let functions = text.look(module, (file, *line), symbolizer);
                // Code at the first instruction of a function is a call of it, and the ends of
                // calls are not those of the line.
                let ends = (*module, Ends::Unseen);
                add(
                    ends,
                    functions,
                    Some(&wanted.text),
                    search,
                    &mut found,
                    &mut refused,
                );
            }
            if found.is_empty() && refused.is_empty() {
                return Err(NotFound::Missing(text.explain(file, *line)));
            }
            found
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
                let addr = module.symbols.segments().to_link(FileOffset(*offset));
                let functions = match addr {
                    Some(addr) => sites::functions(&module.symbols, sites::Wanted::At(addr)),
                    None => Err(Refusal::NoCode),
                };
                match functions {
                    Ok(functions) => {
                        add(
                            (module, ends(module)),
                            functions,
                            None,
                            search,
                            &mut found,
                            &mut refused,
                        );
                    }
                    Err(reason) => refused.push(Refused {
                        name: wanted.text.clone(),
                        module: module.name(),
                        reason,
                        no_value: None,
                    }),
                }
            }
        }
        What::Name(name, pattern) => {
            let symbols = meant.iter().map(|module| &*module.symbols);
            let by_module = sites::functions_named(symbols, name);
            for (module, by_name) in meant.iter().zip(by_module) {
                add(
                    (module, ends(module)),
                    by_name,
                    Some(name),
                    search,
                    &mut found,
                    &mut refused,
                );
            }
            // A text is a pattern only if no function has it as its name.
            if let (true, true, Some(pattern)) = (found.is_empty(), refused.is_empty(), pattern) {
                for module in &meant {
                    let fits = |name: &str| pattern.is_match(name);
                    let matching = sites::Wanted::Matching(&fits);
                    let matching = sites::functions(&module.symbols, matching).unwrap_or_default();
                    add(
                        (module, ends(module)),
                        matching,
                        None,
                        search,
                        &mut found,
                        &mut refused,
                    );
                }
            }
        }
    }
    // If a value cannot be found, nothing is probed.
    let no_value = refused.iter().find_map(|refused| refused.no_value.clone());
    if let (true, Some(why)) = (found.is_empty(), no_value) {
        return Err(NotFound::Refused(why));
    }
    Ok((found.into_values().collect(), refused))
}

/// The names of all markers of these files, in the form in which they are typed.
pub fn marker_names(modules: &[Module]) -> impl Iterator<Item = String> {
    let markers = modules
        .iter()
        .flat_map(|module| sites::markers(&module.symbols));
    markers.map(|marker| format!("usdt:{}", marker.name))
}

/// The names of all functions of these files, without parameters.
pub fn names(modules: &[Module]) -> impl Iterator<Item = String> {
    let functions = modules
        .iter()
        .flat_map(|module| module.symbols.functions())
        .map(|symbol| symbolize::demangle(symbol.name).short().into_owned());
    // Includes functions of stripped Go programs.
    let go = modules.iter().filter_map(|module| module.symbols.go());
    let go = go.flat_map(|go| go.starts().filter_map(|start| go.name_at(start)));
    functions.chain(go.map(|name| symbolize::sanitize(&name).into_owned()))
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
    fn look(
        &mut self,
        module: &Module,
        (file, line): (&str, u32),
        symbolizer: &Symbolizer,
    ) -> Vec<Function> {
        let Some(table) = module.lines(symbolizer) else {
            return Vec::new();
        };
        self.has_lines = true;
        match sites::of_line(&module.symbols, &table, file, line) {
            Ok(functions) => functions,
            Err(NoLine::NoSuchFile) => Vec::new(),
            Err(NoLine::NoCode(next)) => {
                self.has_file = true;
                self.next = self.next.into_iter().chain(next).min();
                Vec::new()
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
    let (mut found, mut refusals) = (BTreeMap::new(), Vec::new());
    let name = sampled.shown.to_string();
    for module in copies {
        let functions = sampled_in(module, sampled).map_err(|reason| Refused {
            name: name.clone(),
            module: module.name(),
            reason,
            no_value: None,
        })?;
        let ends = ends(module, search, may_throw);
        add(
            (module, ends),
            functions,
            Some(&name),
            search,
            &mut found,
            &mut refusals,
        );
    }
    let refused = refusals.pop().unwrap_or_else(|| Refused {
        name: name.clone(),
        module: sampled.file.to_string(),
        reason: Refusal::NoCode,
        no_value: None,
    });
    let mut found = found.into_values().next().ok_or(refused)?;
    found.name = name;
    Ok(found)
}

/// Returns the functions of one file that a sampled address belongs to: those with its name, else
/// the one that contains the address.
fn sampled_in(module: &Module, sampled: &Sampled) -> Result<Vec<Function>, Refusal> {
    let symbols = &module.symbols;
    let addr = symbols.segments().to_link(FileOffset(sampled.address));
    let start = addr.and_then(|addr| symbols.extent(addr));
    let start = start.map(|extent| extent.start);
    let named = sampled.name.as_ref().map(|name| {
        let named = sites::functions(symbols, sites::Wanted::Named(name));
        named.unwrap_or_default()
    });
    let mut functions = named.unwrap_or_default();
    // Go names are displayed without their package path, so several packages may have the same.
    if let Some(here) = functions.iter().position(|f| Some(f.start) == start)
        && functions[here].language == Language::Go
    {
        functions = vec![functions.swap_remove(here)];
    }
    if functions.is_empty() {
        let start = start.ok_or(Refusal::NoCode)?;
        functions = sites::functions(symbols, sites::Wanted::At(start))?;
        let is_other = |function: &Function| !function.name.is_empty();
        if sampled.name.is_some() && functions.iter().any(is_other) {
            // Its code exists only inside of another function.
            return Err(Refusal::Inlined);
        }
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
    found: &mut BTreeMap<String, Found>,
    refused: &mut Vec<Refused>,
) {
    for function in functions {
        let shown = match function
            .inside
            .or(function.name.is_empty().then_some(function.start))
        {
            Some(addr) => {
                let offset = module.symbols.segments().to_file(addr);
                format!(
                    "{}+{:#x}",
                    module.name(),
                    offset.map_or(addr.0, |offset| offset.0)
                )
            }
            None => function.name.clone(),
        };
        let refuse = |reason, no_value| Refused {
            name: shown.clone(),
            module: module.name(),
            reason,
            no_value,
        };
        let typed = match typed(&search.values, module, &function, search.types.as_ref()) {
            Ok(typed) => typed,
            Err(why) => {
                refused.push(refuse(Refusal::NoArgument, Some(why)));
                continue;
            }
        };
        let wish = wish(&function, ends, &typed.values, search.caution.spares_calls);
        let placed = sites::check_file(&module.path)
            .and_then(|()| sites::place(&module.symbols, &function, wish));
        match placed {
            Ok(placed) => {
                let key = name.cloned().unwrap_or_else(|| shown.clone());
                let probe = found.entry(key).or_insert_with(|| Found {
                    name: shown.clone(),
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
                    probe.add(module, &function, &placed);
                } else {
                    let why = "its values are elsewhere than in the first copy".to_string();
                    refused.push(refuse(Refusal::NoArgument, Some(why)));
                }
            }
            Err(reason) => refused.push(refuse(reason, None)),
        }
    }
}

/// Whether code of the file itself throws exceptions: the program's own, or the C++ library.
pub(super) fn throws(module: &Module) -> bool {
    let is_cpp = module.name().starts_with("libstdc++") || module.name().starts_with("libc++");
    is_cpp || (module.is_program && module.symbols.has_exceptions())
}

/// Returns how the ends of calls in a file may be detected. An exception that is thrown through a
/// replaced return address ends the program. So no return address is replaced in files that handle
/// exceptions, nor in libraries that are called between such files.
fn ends(module: &Module, search: &Search, has_exceptions: bool) -> Ends {
    if !search.returns {
        Ends::Unseen
    } else if search.caution.keeps_return_addresses
        || module.symbols.has_exceptions()
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
        if let Some(start) = module.symbols.segments().to_file(function.start) {
            self.extents.push(Extent {
                path: module.path.clone(),
                build_id: module.build_id(),
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
