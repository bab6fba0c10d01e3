//! Opens in proftop what a server or a folder of many machines keeps: fetches one profile, and starts
//! `proftop open` in the place of this process, with the profile as its standard input. proftop itself
//! speaks to no network.
//!
//! `proftop open ADDRESS` does it the other way round: it starts this program with `--output=-` and
//! reads the profile from its standard output.

/// The address that a user writes: a server or a folder, what is selected, and the time.
mod address;
/// Asks Pyroscope for a profile.
mod pyroscope;

use crate::ask::{self, Asked};
use crate::config::Server;
use crate::encode::pprof;
use crate::failure::{Failure, safe, shown};
use crate::interrupt;
use crate::output::{self, print};
use crate::sinks::http::Client;
use address::{Address, Folder, Pyroscope};
use clap::Args;
use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal as _, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PROGRAM: &str = "proftop";

#[derive(Debug, Args)]
pub struct Open {
    /// pyroscope+https://HOST/?q={service_name="x"}&from=now-1h, parquet+DIR?since=1h&service=x or
    /// parquet+s3://BUCKET/PREFIX?since=1h; see docs/fleet.md
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// Write the profile into this file instead of opening it, or to standard output (-): of Pyroscope a pprof
    /// with gzip, of a folder a recording of proftop
    #[arg(short, long, value_name = "FILE", conflicts_with = "words")]
    output: Option<PathBuf>,
    /// Replace the file if there is one
    #[arg(long, requires = "output")]
    force: bool,
    /// The file with the token for the header Authorization
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The tenant: X-Scope-OrgID
    #[arg(long, value_name = "NAME", default_value = "")]
    tenant: String,
    /// Certificates (PEM) by which the server is known, instead of those of the system
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Words for `proftop open`, such as --plain
    #[arg(last = true, value_name = "WORDS")]
    words: Vec<std::ffi::OsString>,
}

/// Fetches the profile, and writes or opens it.
pub fn run(open: &Open) -> Result<(), Failure> {
    let wrong = |why: String| Failure::usage(format!("{}: {why}", safe(&open.address)));
    let address = Address::read(&open.address, crate::dates::now_ms()).map_err(wrong)?;
    if let Some(path) = &open.output {
        check_output(path, open.force)?;
    }
    let profile = match address {
        Address::Pyroscope(address) => open.of_server(&address)?,
        Address::Folder(folder) => open.of_folder(folder)?,
    };
    match &open.output {
        Some(path) if is_stdout(path) => pass_on(&profile),
        Some(path) => {
            output::write_file(path, |file| {
                file.write_all(&profile).map_err(|error| error.to_string())
            })?;
            print(&format!("{}: proftop open shows it\n", shown(path)))
        }
        None => Err(show(&profile, &open.words)),
    }
}

/// Returns an error if the profile cannot be written there: to a terminal, or in the place of a file without
/// `--force`.
fn check_output(path: &Path, is_forced: bool) -> Result<(), Failure> {
    if is_stdout(path) {
        return if io::stdout().is_terminal() {
            Err(Failure::usage(
                "standard output is a terminal, which cannot show a profile: choose a file",
            ))
        } else {
            Ok(())
        };
    }
    output::check_place(path, is_forced)
}

fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Writes the profile to standard output. A reader who has seen enough is not an error.
fn pass_on(profile: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(profile).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::failed(format!(
            "cannot write to standard output: {error}"
        ))),
        _ => Ok(()),
    }
}

impl Open {
    /// Fetches a profile from a server: a pprof with gzip.
    fn of_server(&self, address: &Pyroscope) -> Result<Vec<u8>, Failure> {
        if !self.tenant.bytes().all(|it| it.is_ascii_graphic()) {
            return Err(Failure::usage(
                "--tenant has characters that no header may have",
            ));
        }
        let client = |path: &str| {
            let server = Server {
                url: address.url.clone(),
                tenant: self.tenant.clone(),
                token_file: self.token_file.clone(),
                ca: self.ca.clone(),
                identity: None,
            };
            Client::new(&server, path)
        };
        let failed = |why: String| {
            let url = safe(&address.url);
            Failure::failed(format!("Pyroscope at {url}: {why}"))
        };
        let profile = pyroscope::fetch(address, client)?.map_err(failed)?;
        check(&profile, address).map_err(failed)?;
        Ok(pprof::gzip(&profile))
    }

    /// Reads the stacks of a folder: a recording of proftop.
    fn of_folder(&self, folder: Folder) -> Result<Vec<u8>, Failure> {
        if self.token_file.is_some() || self.ca.is_some() || !self.tenant.is_empty() {
            return Err(Failure::usage(
                "--token-file, --tenant and --ca are for a server, not for a folder",
            ));
        }
        let wrong = |why: String| Failure::usage(format!("{}: {why}", safe(&self.address)));
        let asked = Asked::of_folder(folder.dir, folder.values).map_err(wrong)?;
        interrupt::watch()?;
        ask::recording(&asked, folder.function.as_deref())
    }
}

/// Whether the profile can be read, and has samples. Says in a sentence why not.
fn check(profile: &[u8], address: &Pyroscope) -> Result<(), String> {
    let nothing = || {
        format!(
            "it has no samples of {} with {} in that time",
            safe(&address.profile_type),
            safe(&address.selector)
        )
    };
    if profile.is_empty() {
        return Err(nothing());
    }
    let read = profile::formats::pprof::read(profile, profile::Limits::default());
    let (store, _) =
        read.map_err(|error| format!("its answer is no pprof: {}", safe(&error.to_string())))?;
    if store.view().samples() == 0 {
        return Err(nothing());
    }
    Ok(())
}

/// Starts `proftop open` in the place of this process. Returns only if it cannot be started.
fn show(profile: &[u8], words: &[std::ffi::OsString]) -> Failure {
    let input = || -> io::Result<File> {
        // The file has no name, and is gone when the last program that has it ends.
        let file = rustix::fs::memfd_create("profile", rustix::fs::MemfdFlags::CLOEXEC)?;
        let mut file = File::from(file);
        file.write_all(profile)?;
        file.rewind()?;
        Ok(file)
    };
    let own = std::env::current_exe().ok();
    let beside = own.and_then(|it| Some(it.parent()?.join(PROGRAM)));
    // The one beside this program is tried first: both were installed together.
    for program in beside.into_iter().chain([PathBuf::from(PROGRAM)]) {
        let file = match input() {
            Ok(file) => file,
            Err(error) => return Failure::failed(format!("cannot keep the profile: {error}")),
        };
        let error = Command::new(&program)
            .args(["open", "-"])
            .args(words)
            .stdin(Stdio::from(file))
            .exec();
        if error.kind() != io::ErrorKind::NotFound {
            return Failure::failed(format!("cannot run {}: {error}", shown(&program)));
        }
    }
    Failure::failed(
        "proftop is neither beside proftop-fleet nor in a folder of PATH: write the profile with \
         --output FILE",
    )
}
