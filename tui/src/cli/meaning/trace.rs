//! The configuration of `proftop trace`.

use super::super::args::{ProbeLimitArgs, Record, SampleArgs, Trace};
use super::super::{Config, Mode, ShowConfig, TraceConfig, TraceOutput};
use super::{Configuration, LookArgs, RECORD_STEP, look, recorded_format, sample, target};
use crate::choices::EngineChoice;
use crate::failure::Failure;
use engine::FirstProbes;
use engine::probes::expression::{Expression, Values};
use engine::probes::{ProbeLimits, Wanted, split};
use std::sync::Arc;
use std::time::Duration;

/// Turns the arguments of `proftop trace` into a configuration. The error says which of them do not
/// fit together.
pub fn config(words: Trace, configuration: Configuration) -> Result<Config, Failure> {
    let functions = functions(&words.functions)?;
    if functions.is_empty() {
        return Err(Failure::usage("no function is named"));
    }
    let values = values(&words)?;
    if words.count && values.has_results() {
        return Err(Failure::usage(
            "--count does not see what is returned: leave out `ret`",
        ));
    }
    let (target, command) = target(words.target, words.command)?;
    if !target.cpus.is_empty() {
        return Err(Failure::usage("probes are hit on any CPU: leave out -C"));
    }
    let output = match words.output {
        Some(path) if path.as_os_str() == "-" => {
            return Err(Failure::usage(
                "the report is on standard output: -o takes the name of a file",
            ));
        }
        Some(path) => Some(TraceOutput {
            format: recorded_format(Some(&path), "")?,
            path,
            overwrite: words.force,
        }),
        None => None,
    };
    let arguments = SampleArgs {
        rate: None,
        metric: None,
        engine: Some(EngineChoice::Bpf),
        max_depth: None,
        budget: None,
    };
    Ok(Config {
        target,
        sample: sample(&arguments, &configuration.0),
        show: ShowConfig {
            window: RECORD_STEP,
            delay: RECORD_STEP,
            freeze_after: None,
        },
        look: look(&LookArgs::default(), configuration),
        mode: Mode::Trace(TraceConfig {
            functions,
            duration: words.duration,
            is_timed: !words.count,
            values,
            types: words.types,
            min: words.min.unwrap_or(Duration::ZERO),
            stacks: words.stacks,
            limits: limits(&words.limits),
            hide_names: words.hide_names,
            format: words.format,
            output,
        }),
        command,
    })
}

/// Returns the functions in several comma-separated lists. The error names the one that is
/// malformed.
fn functions(lists: &[String]) -> Result<Vec<String>, Failure> {
    let functions = lists.iter().flat_map(|list| split(list));
    let functions: Vec<String> = functions.map(str::to_string).collect();
    for function in &functions {
        Wanted::parse(function).map_err(Failure::usage)?;
    }
    Ok(functions)
}

/// Returns the probes of `proftop record`.
pub fn recorded(words: &Record) -> Result<FirstProbes, Failure> {
    let functions = functions(&words.probes)?
        .into_iter()
        .map(Arc::from)
        .collect();
    let values: Result<Vec<Expression>, String> = words
        .values
        .iter()
        .map(|text| Expression::parse(text))
        .collect();
    let values = values.and_then(Values::new).map_err(Failure::usage)?;
    Ok(FirstProbes {
        functions,
        values,
        limits: limits(&words.limits),
    })
}

/// Returns the limits above which a probe is removed.
fn limits(words: &ProbeLimitArgs) -> ProbeLimits {
    ProbeLimits {
        cost_percent: words.max_cost,
        hits_per_second: words.max_hits,
    }
}

/// Returns which values are read at each call. With `--hide-names` none are, so that the data of
/// the program is never read.
fn values(words: &Trace) -> Result<Values, Failure> {
    if words.hide_names {
        return Ok(Values::default());
    }
    let arguments = (1..=words.args.unwrap_or(0)).map(|number| format!("arg{number}"));
    let strings = words
        .strings
        .iter()
        .map(|number| format!("str(arg{number})"));
    let ret = words.ret.then(|| "ret".to_string());
    let typed = words.values.iter().cloned();
    let all = arguments.chain(strings).chain(typed).chain(ret);
    let all: Result<Vec<Expression>, String> = all.map(|text| Expression::parse(&text)).collect();
    all.and_then(Values::new).map_err(Failure::usage)
}
