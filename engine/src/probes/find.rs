//! The functions that are meant, and the sites of each.
//!
//! One name may be many functions: copies of a file in several containers, and
//! functions of that name in several files or several times in one. Whether they are
//! one probe or several depends on how they were meant:
//!
//! ```text
//! a name, `malloc`          all that have it are one probe
//! a pattern, `^pg_.*`       each name is one probe, if no function is called so itself
//! a line, `scan.c:120`      one probe, with a site for each piece of code of the line
//! an offset, `app+0x1a40`   the function there
//! a row of the screen       the function of that file, in all copies of it
//! a tracepoint              a place in the kernel; of a pattern each is one probe
//! ```

/// Places that a programmer has marked (USDT), with their arguments.
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

/// What is wanted of the calls.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// How they end.
    pub returns: bool,
    /// What is read of each call.
    pub values: Values,
    /// What must not be done, so that no process is ended by it.
    pub caution: Caution,
    /// Where names in the values are looked up that the probed file does not tell of.
    pub types: Option<Arc<TypesFile>>,
}

/// Why nothing was found that gets a probe: a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotFound {
    /// There is no such function in what is mapped now.
    Missing(String),
    /// There is one, and what is wanted of it cannot be.
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

/// A function that gets one probe, and all its copies.
#[derive(Debug, Clone)]
pub struct Found {
    /// The function, demangled; `module+0xstart` if it has no name.
    pub name: String,
    /// Its file; of several copies the first one's.
    pub module: String,
    /// Where it starts, as the linker wrote it.
    pub address: u64,
    /// Which rules its calls follow.
    pub language: Language,
    /// Where the calls are seen, of each copy.
    pub sites: Vec<Site>,
    /// Breakpoints at returns, of all copies.
    pub return_sites: usize,
    /// What is to be attached, for each copy.
    pub plans: Vec<FunctionPlan>,
    /// The ends of its calls are seen, of all copies.
    pub sees_ends: bool,
    /// Only probed by this process or all: a library that others may have mapped too.
    pub is_program: bool,
    /// Where its code is, of each copy. Empty for what is no function.
    pub extents: Vec<Extent>,
    /// What is read of each call, with arguments where this place has them.
    pub values: Values,
    /// Whose types the values were found by, in words, if that is another file than that of the
    /// function.
    pub types: Option<String>,
    /// It is this tracepoint of the kernel, and no function.
    pub point: Option<Point>,
}

/// The code of one copy of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent {
    /// Its file, as its processes see it.
    pub path: PathBuf,
    /// The build-id of that file; empty if it has none.
    pub build_id: Vec<u8>,
    /// Bytes of the file.
    pub range: Range<u64>,
}

/// A function that is meant and gets no probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The function.
    pub name: String,
    /// Its file.
    pub module: String,
    /// Why it gets none.
    pub reason: Refusal,
    /// What of its values cannot be found, in words, if that is the reason.
    pub no_value: Option<String>,
}

impl Refused {
    /// Why it gets no probe: a clause.
    pub fn explain(&self) -> &str {
        self.no_value.as_deref().unwrap_or(self.reason.explain())
    }
}

/// Every function of these files that is meant: of a name all that it fits are one
/// probe, of a pattern each name is one. A line of source text is one probe, with a site for
/// each piece of code that it has; `symbolizer` reads the lines of the files then.
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
    // Asked once: it reads through the files.
    let has_exceptions = search.returns && modules.iter().any(throws);
    let ends = |module: &Module| ends(module, search, has_exceptions);
    match &wanted.what {
        What::Line(file, line) => {
            let mut text = Text::default();
            for module in &meant {
                let functions = text.look(module, (file, *line), symbolizer);
                // What is at the first instruction of a function is a call of it, and its
                // ends are not those of the line.
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
            // Only what is no name of a function is a pattern.
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
    // Nothing gets a probe for the sake of a value that cannot be found.
    let no_value = refused.iter().find_map(|refused| refused.no_value.clone());
    if let (true, Some(why)) = (found.is_empty(), no_value) {
        return Err(NotFound::Refused(why));
    }
    Ok((found.into_values().collect(), refused))
}

/// The names of all markers of these files, as they are typed.
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
    // Also of what is stripped.
    let go = modules.iter().filter_map(|module| module.symbols.go());
    let go = go.flat_map(|go| go.starts().filter_map(|start| go.name_at(start)));
    functions.chain(go.map(|name| symbolize::sanitize(&name).into_owned()))
}

/// What is known of a file of source text that was not found in the code so far.
#[derive(Default)]
struct Text {
    has_lines: bool,
    has_file: bool,
    /// The next line that has code.
    next: Option<u32>,
}

impl Text {
    /// Where a line begins in a module.
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

    /// Why there is no place of it.
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

/// The function that has samples at an address of a file, in all copies of the file; by its
/// name every copy of the function. `may_throw`: exceptions may pass through its code.
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

/// The functions of one file that a sampled place belongs to: those of its name, else
/// the one whose code is there.
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
    // Names of Go are cut to their last part, which several packages may have.
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
            // It is in the code of another function, and nowhere else.
            return Err(Refusal::Inlined);
        }
    }
    Ok(functions)
}

/// Places the functions of a file. `name` is the probe that they all belong to; without,
/// each name is one.
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
                // What the kernel reads is the same at all copies.
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

/// Whether code of the file itself throws: the program's own, or the library of C++.
pub(super) fn throws(module: &Module) -> bool {
    let is_cpp = module.name().starts_with("libstdc++") || module.name().starts_with("libc++");
    is_cpp || (module.is_program && module.symbols.has_exceptions())
}

/// Returns by which means the ends of calls into a file may be seen. An exception that is
/// thrown through a replaced return address ends the program: so no return address is
/// replaced in files that say what to do when an exception passes, nor in libraries that lie
/// between such files.
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

/// What is wanted of the sites of a function.
fn wish(function: &Function, ends: Ends, values: &Values, spares_calls: bool) -> Wish {
    Wish {
        // What is inside of a function has no end.
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
    /// Places its probe, and gives its number in the kernel and what a hit costs. A call of it
    /// has all its hits.
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
        // Every process passes it, so that who is meant is looked up at each hit.
        if let Scope::Processes(pids) = scope {
            orders.flags |= order::FEW;
            let few = orders.few.get_mut(..pids.len());
            few.ok_or(AttachError::TooManyProcesses)?
                .copy_from_slice(pids);
        }
        let (number, hit_ns) = calls.place_point(&point.name, orders)?;
        Ok((number, Guard::of_point(hit_ns, limits)))
    }

    /// The frames of a stack that are a caller's: without those of the function itself, or of
    /// what runs programs at a tracepoint. `is_own` says whether the first one is.
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

    /// Where calls are seen, in a word.
    pub fn site(&self) -> &'static str {
        match (&self.point, self.sites.first()) {
            (Some(_), _) => "tracepoint",
            (None, Some(site)) => site.kind.label(),
            (None, None) => "",
        }
    }

    /// Copies of it that have the probe.
    pub fn copies(&self) -> usize {
        match self.point {
            Some(_) => 1,
            None => self.sites.len(),
        }
    }

    /// Adds one copy of the function. What holds for the probe is what holds for every
    /// copy.
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

/// Frames at the beginning of a stack among which those are that run programs at a tracepoint:
/// our own, which are a few, and theirs.
pub const RUNNERS_MAX: usize = 16;

fn plan(site: &Site) -> SitePlan {
    SitePlan {
        offset: site.offset.0,
        pushed: site.pushed,
        unless_taken: site.unless_taken,
        semaphore: None,
    }
}
