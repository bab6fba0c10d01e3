//! `open ssh://…`: the screen for several machines at once. On each of them a proftop records to
//! its standard output, which comes here through the user's own ssh. No program listens on any
//! machine.
//!
//! ```text
//! db-01  proftop record -o - ─► ssh ─► thread of db-01 ─┐
//! db-02  proftop record -o - ─► ssh ─► thread of db-02 ─┴► one profile ─► snapshots ─► screen
//! ```

mod connection;
mod gathering;

use super::{open, recorded, top};
use crate::cli::MachinesConfig;
use crate::failure::{Exit, Failure};
use crate::words::units;
use crate::{kept, plain};
use connection::{Connected, Connection};
use engine::snapshot::{Lacks, Snapshot, Span, TargetState};
use gathering::{Gathering, OneOf};
use probe::confine::{self, Duty};
use probe::files::Opening;
use profile::formats::pft::MACHINES_MAX;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// Maximum time until the screen opens. It opens earlier if the first samples arrive.
const OPENS_AFTER: Duration = Duration::from_secs(3);

/// Runs `open` with addresses of machines: connects to all of them, and shows their samples until
/// the user leaves the screen. If all connections end before the first sample, that is an error.
pub fn run(config: &MachinesConfig) -> Result<Exit, Failure> {
    if !config.look.plain {
        top::check_terminal(&top::Remedies::Machines)?;
    }
    if config.addresses.len() > MACHINES_MAX {
        return Err(Failure::usage(format!(
            "these are {} machines; {MACHINES_MAX} at once are the most",
            config.addresses.len()
        )));
    }
    let seconds = config.window.as_secs().clamp(1, u64::from(u32::MAX) - 1);
    let baseline = top::open_baseline(&config.look)?;
    super::become_user(Opening::LikeUser)?;
    let options = top::screen_options(&config.look, baseline, Span::Seconds(seconds as u32))?;
    let gathering = Arc::new(Gathering::new(&config.names));
    // Dropping this ends the connections, however this function returns.
    let _connected = connect(config, &gathering)?;
    gathering.wait_for_samples(OPENS_AFTER);
    if let Some(failure) = gathering.failure() {
        return Err(failure);
    }
    let (publish, feed) = watch::channel(Arc::new(waiting(config, &gathering)));
    let (fail, failed) = oneshot::channel();
    let publisher = Arc::clone(&gathering);
    let name = name(config);
    thread::Builder::new()
        .name("publisher".into())
        .spawn(move || {
            confine::thread(Duty::Parsing);
            let published = faults::catch("publishing snapshots", || {
                publisher.publish(&name, &publish)
            });
            let failure = match published {
                Ok(None) => return,
                Ok(Some(failure)) => failure,
                Err(fault) => Failure::failed(fault.final_word()),
            };
            // If sending fails, the screen is closed already.
            let _ = fail.send(failure);
        })
        .map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
    let shown = open::Shown {
        target: format!("machines {}", kept::name(&config.names.join(","))),
        source: plain::Source::Live,
    };
    let screen = open::screen(&config.look, shown, feed, failed, options);
    super::event_loop()?.block_on(screen)
}

/// Starts a connection to each machine, and a thread that reads from it.
fn connect(config: &MachinesConfig, gathering: &Arc<Gathering>) -> Result<Connected, Failure> {
    let mut connected = Connected::default();
    for (number, address) in config.addresses.iter().enumerate() {
        let machine = OneOf::new(gathering, number);
        let connection = match Connection::begin(address, &config.record) {
            Ok(connection) => connection,
            Err(why) => {
                machine.goes(&why);
                continue;
            }
        };
        connected.add(&connection);
        thread::Builder::new()
            .name(format!("machine {number}"))
            .spawn(move || {
                confine::thread(Duty::Parsing);
                let read =
                    faults::catch("reading what a machine sends", || machine.read(connection));
                let why = read.unwrap_or_else(|fault| fault.to_string());
                machine.goes(&why);
            })
            .map_err(|error| Failure::failed(format!("cannot start a thread: {error}")))?;
    }
    Ok(connected)
}

/// Returns the name of all machines together.
fn name(config: &MachinesConfig) -> String {
    match &config.names[..] {
        [one] => one.clone(),
        several => units::counted(several.len() as u64, "machine"),
    }
}

/// Returns the snapshot that is shown before the first samples.
fn waiting(config: &MachinesConfig, gathering: &Gathering) -> Snapshot {
    let (view, _, machines) = gathering.look();
    let recording =
        recorded::recording(&name(config), Path::new(""), &view, Lacks::default(), None);
    let mut snapshot = Snapshot::default();
    snapshot.run.target = TargetState::Running;
    snapshot.source.recording = Some(recording);
    snapshot.source.machines = machines.into();
    snapshot
}
