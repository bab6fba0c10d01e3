//! The results of a trace as a recording, for its report and for `-o`.

use crate::cli::{TraceConfig, TraceOutput};
use crate::commands::pft_sink::Sink;
use crate::commands::{export, input};
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::stderr;
use profile::formats::{FormatError, pft};
use profile::probes::ProbeLog;
use profile::{Cancel, Info, Query, Store, View};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// A recording without samples, and the file of `-o`.
pub struct Recording<'c> {
    store: Store,
    file: Option<TraceFile<'c>>,
    hide_names: bool,
}

/// The file of `-o`.
enum TraceFile<'c> {
    /// A .pft, which is whole after every block: if proftop is killed, the written part remains.
    Growing(Box<pft::Writer<Sink>>, &'c TraceOutput),
    /// A file that is written at the end.
    Later(&'c TraceOutput),
}

impl<'c> Recording<'c> {
    /// Opens the recording. It is an error if the file cannot be written, before anything is
    /// traced. `scope` is the target in words.
    pub fn open(trace: &'c TraceConfig, scope: &str) -> Result<Self, Failure> {
        let file = trace.output.as_ref().map(open);
        let now_ns = probe::now_ns();
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now_ms = now.unwrap_or_default().as_millis() as i64;
        let mut store = Store::new(input::limits());
        store.set_info(Info {
            host: engine::host(),
            scope: scope.into(),
            epoch_unix_ms: now_ms - (now_ns / 1_000_000) as i64,
            ..Info::default()
        });
        Ok(Self {
            store,
            file: file.transpose()?,
            hide_names: trace.hide_names,
        })
    }

    /// Returns the results from `begin_ns` until now.
    pub fn view(&mut self, log: Arc<ProbeLog>, begin_ns: u64) -> View {
        self.store.begin(begin_ns);
        self.store.set_probes(log);
        self.store.end(probe::now_ns());
        self.store.view()
    }

    /// Whether the file is written while calls are counted.
    pub fn is_growing(&self) -> bool {
        matches!(self.file, Some(TraceFile::Growing(..)))
    }

    /// Appends new results to a growing file.
    pub fn append(&mut self, view: &View) -> Result<(), Failure> {
        let view = self.shown(view);
        let Some(TraceFile::Growing(writer, _)) = &mut self.file else {
            return Ok(());
        };
        writer.append(&view, None).map_err(|error| refused(&error))
    }

    /// Writes the rest, and the end of the file.
    pub fn finish(mut self, view: &View) -> Result<(), Failure> {
        let view = self.shown(view);
        let wanted = match self.file.take() {
            None => return Ok(()),
            Some(TraceFile::Growing(mut writer, wanted)) => {
                let end_ns = view.end_ns().unwrap_or_default();
                let written = writer
                    .append_last(&view, end_ns)
                    .and_then(|()| writer.finish(&view));
                written.map_err(|error| refused(&error))?;
                wanted
            }
            Some(TraceFile::Later(wanted)) => {
                write_whole(&view, wanted)?;
                wanted
            }
        };
        let name = input::name(&wanted.path);
        stderr::say(format_args!("what was counted is in {name}"));
        Ok(())
    }

    /// Returns the view for the file, which has no names with `--hide-names`.
    fn shown(&self, view: &View) -> View {
        if self.hide_names {
            view.anonymous()
        } else {
            view.clone()
        }
    }
}

/// Opens the file, as far as that is possible before there are results.
fn open(wanted: &TraceOutput) -> Result<TraceFile<'_>, Failure> {
    if !wanted.format.has_probes() {
        return Err(Failure::usage(format!(
            "{} has no place for what probes count: -o takes .pft, .pb.gz, .trace.json and \
             .firefox.json",
            wanted.format.word()
        )));
    }
    if wanted.is_streamed() {
        let output = Output::open(Some(&wanted.path), wanted.overwrite)?;
        let writer =
            pft::Writer::new(Sink::new(output, Rc::default())).map_err(|error| refused(&error))?;
        return Ok(TraceFile::Growing(Box::new(writer), wanted));
    }
    if !wanted.overwrite && output::is_there(&wanted.path) {
        // This gives the same error as writing at the end.
        Output::open(Some(&wanted.path), false)?;
    }
    Ok(TraceFile::Later(wanted))
}

/// Writes the results in the wanted format.
fn write_whole(view: &View, wanted: &TraceOutput) -> Result<(), Failure> {
    export::say_what_is_lost(wanted.format, view);
    let selection = view
        .select(&Query::default(), &Cancel::new())
        .expect("nobody cancels it");
    let mut bytes = Vec::new();
    let written = wanted
        .format
        .write_as(&wanted.path, false, &selection, &mut bytes);
    written.map_err(|error| Failure::failed(format!("cannot write: {error}")))?;
    Output::write_whole(Some(&wanted.path), wanted.overwrite, &bytes)
}

fn refused(error: &FormatError) -> Failure {
    Failure::failed(format!("cannot write what was counted: {error}"))
}
