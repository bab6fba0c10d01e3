//! An *order* is one thing that the user asks proftop to do to what it shows, with its arguments.
//! Keys, the palette, the plain dialog, the configuration and the command line all make orders;
//! `App::apply` checks each order once and carries it out.

use crate::choices::Theme;
use crate::code::Syntax;
use crate::knobs::{Narrowing, Unit, Window};
use crate::values;
use crate::view_id::ViewId;
use engine::probes::expression::Expression;
use engine::snapshot::Span;
use profile::filter::Clause;
use profile::{Filter, FunctionId};

mod table;

pub use table::{Kind, begun, said};

/// Something that the user asks for, with its arguments.
#[derive(Debug, Clone, PartialEq)]
pub enum Order {
    /// Count only the process with this pid.
    Process(u32),
    /// Count only these processes or threads.
    Narrow(Narrowing),
    /// Show the samples of this window.
    Window(Window),
    /// Start a window at the present moment.
    Mark,
    /// Replace the filter.
    Filter(Filter),
    /// Add one condition to the filter.
    Clause(Clause),
    /// Count in this unit. `None` stands for the default unit of each view.
    Unit(Option<Unit>),
    /// Count by the metric of this name. The first order for a metric of waits also starts their
    /// recording.
    Metric(String),
    /// Take this number of samples per second of a busy CPU.
    Rate(u32),
    /// Make what is shown now the baseline for comparisons.
    Baseline,
    /// Show the difference from the baseline (true), or the functions again (false).
    Difference(bool),
    /// Keep the samples that are shown (true), or follow the newest ones again (false). Sampling
    /// goes on in both cases.
    Freeze(bool),
    /// Undo the last step.
    Back,
    /// Redo the last step that was undone.
    Forward,
    /// Open this view.
    View(ViewId),
    /// Select the function with this name.
    GoTo(String),
    /// Sort the functions by the column with this name.
    Sort(String),
    Theme(Theme),
    Syntax(Syntax),
    /// Show or hide what drawing costs.
    Cost(bool),
    /// Start or stop fetching debug files from the servers that are configured.
    Fetch(bool),
    /// Write to the file of this name, whose extension tells the format.
    Write(String),
    /// Count and time the calls of a function.
    Probe(Probed),
    /// Let these probes live as long as if they had just been placed.
    Renew(ProbeChoice),
    /// Remove these probes.
    Unprobe(ProbeChoice),
    /// Read this value as well at each call of a probe. `None` stops reading a value.
    Value(ProbeChoice, Option<Box<Expression>>),
}

/// Which function gets a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Probed {
    /// A function that has samples.
    Function(FunctionId),
    /// All functions with this name, matching this pattern or at this source line, with samples or
    /// without.
    Named(String),
}

/// Which probes an order applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProbeChoice {
    /// The selected probe.
    Selected,
    /// Every probe.
    All,
    /// The probe with this number.
    One(u64),
}

impl Order {
    /// Parses an order such as `pid 4121`. Returns `None` if the text does not begin with the name
    /// of an order, or if the argument is missing. The error says what is wrong with the argument.
    pub fn parse(words: &str) -> Option<Result<Order, String>> {
        let (kind, argument) = said(words)?;
        Some(kind.order(argument))
    }
}

impl Kind {
    /// Returns the order of this kind with this argument, as the user typed it. The error says what
    /// is wrong with the argument.
    pub fn order(self, argument: &str) -> Result<Order, String> {
        Ok(match self {
            Kind::Pid => Order::Process(values::id(argument)?),
            Kind::Window => Order::Window(Window::Last(span(argument)?)),
            Kind::Filter => Order::Filter(filter(argument)?),
            Kind::Goto => Order::GoTo(argument.to_owned()),
            Kind::Write => Order::Write(argument.to_owned()),
            Kind::Probe => Order::Probe(Probed::Named(argument.to_owned())),
            Kind::Unprobe => Order::Unprobe(probe(argument)?),
            Kind::Renew => Order::Renew(probe(argument)?),
            Kind::Value if argument == "none" => Order::Value(ProbeChoice::Selected, None),
            Kind::Value => {
                let expression = Expression::parse(argument)?;
                Order::Value(ProbeChoice::Selected, Some(Box::new(expression)))
            }
            Kind::Rate => Order::Rate(values::rate(argument)?),
            Kind::Unit if argument == "usual" => Order::Unit(None),
            Kind::Unit => Order::Unit(Some(values::word(argument)?)),
            Kind::Metric => Order::Metric(argument.to_owned()),
            Kind::Sort => Order::Sort(argument.to_owned()),
            Kind::View => Order::View(view(argument)?),
            Kind::Theme => Order::Theme(values::word(argument)?),
            Kind::Syntax => Order::Syntax(values::word(argument)?),
            Kind::Cost => Order::Cost(on_or_off(argument)?),
            Kind::Fetch => Order::Fetch(on_or_off(argument)?),
        })
    }
}

fn on_or_off(argument: &str) -> Result<bool, String> {
    match argument {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("on or off?".into()),
    }
}

/// Parses which probes an order applies to: `this` or `all`.
fn probe(argument: &str) -> Result<ProbeChoice, String> {
    match argument {
        "this" => Ok(ProbeChoice::Selected),
        "all" => Ok(ProbeChoice::All),
        _ => Err("this or all?".into()),
    }
}

/// Parses the length of a window: `30s` or `all`.
fn span(words: &str) -> Result<Span, String> {
    if words == "all" {
        return Ok(Span::All);
    }
    let seconds = values::window(words)?.as_secs();
    Ok(Span::Seconds(
        seconds.clamp(1, u64::from(u32::MAX) - 1) as u32
    ))
}

/// Parses a filter: an expression, or `none` for no filter.
fn filter(words: &str) -> Result<Filter, String> {
    match words {
        "none" => Ok(Filter::default()),
        _ => words.parse().map_err(|error| format!("{error}")),
    }
}

/// Parses the name of a view that has a tab.
fn view(words: &str) -> Result<ViewId, String> {
    let mut views = ViewId::ALL.into_iter();
    let found = views.find(|view| view.word() == words);
    found.ok_or_else(|| format!("there are {}", ViewId::ALL.map(ViewId::word).join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_orders_or_say_what_is_wrong() {
        let parse = |words| Order::parse(words).expect("an order");
        assert_eq!(parse("pid 4121"), Ok(Order::Process(4121)));
        assert_eq!(
            parse("window all"),
            Ok(Order::Window(Window::Last(Span::All)))
        );
        assert_eq!(
            parse("window 2m"),
            Ok(Order::Window(Window::Last(Span::Seconds(120))))
        );
        assert_eq!(parse("filter none"), Ok(Order::Filter(Filter::default())));
        assert_eq!(parse("unit usual"), Ok(Order::Unit(None)));
        assert_eq!(parse("view tree"), Ok(Order::View(ViewId::Tree)));
        assert_eq!(parse("perf on"), Ok(Order::Cost(true)));
        let probe = Probed::Named("libc!malloc".into());
        assert_eq!(parse("probe libc!malloc"), Ok(Order::Probe(probe)));
        assert_eq!(parse("unprobe all"), Ok(Order::Unprobe(ProbeChoice::All)));
        assert!(matches!(parse("value arg1"), Ok(Order::Value(_, Some(_)))));
        assert!(matches!(parse("value none"), Ok(Order::Value(_, None))));
        for wrong in [
            "pid x",
            "window never",
            "unit miles",
            "view page",
            "perf maybe",
            "unprobe 7",
            "value arg0",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(Order::parse("pid").is_none());
        assert!(Order::parse("longer window").is_none());
    }
}
