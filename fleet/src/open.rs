//! Opens in proftop what a server keeps: asks for one merged profile, and starts `proftop open` in the
//! place of this process, with the profile as its standard input. proftop itself speaks to no
//! network.

/// The address that a user writes: server, selection and time.
mod address;
/// Asks Pyroscope for a profile.
mod pyroscope;

use crate::config::Server;
use crate::encode::pprof;
use crate::failure::{Failure, safe, shown};
use crate::output::print;
use crate::sinks::http::Client;
use address::Address;
use clap::Args;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const PROGRAM: &str = "proftop";

#[derive(Debug, Args)]
pub struct Open {
    /// pyroscope+https://HOST/?q={service_name="x"}&from=now-1h; see docs/fleet.md
    #[arg(value_name = "URL")]
    url: String,
    /// Write the profile into this file, a pprof with gzip, instead of opening it
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
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
    let wrong = |why: String| Failure::usage(format!("{}: {why}", safe(&open.url)));
    let address = Address::read(&open.url, crate::dates::now_ms()).map_err(wrong)?;
    if !open.tenant.bytes().all(|it| it.is_ascii_graphic()) {
        return Err(Failure::usage(
            "--tenant has characters that no header may have",
        ));
    }
    if let Some(path) = &open.output
        && path.symlink_metadata().is_ok()
    {
        return Err(Failure::usage(format!(
            "{} is there already: choose another name",
            shown(path)
        )));
    }
    let client = |path: &str| {
        let server = Server {
            url: address.url.clone(),
            tenant: open.tenant.clone(),
            token_file: open.token_file.clone(),
            ca: open.ca.clone(),
            identity: None,
        };
        Client::new(&server, path)
    };
    let failed = |why: String| {
        let url = safe(&address.url);
        Failure::failed(format!("Pyroscope at {url}: {why}"))
    };
    let profile = pyroscope::fetch(&address, client)?.map_err(failed)?;
    check(&profile, &address).map_err(failed)?;
    let packed = pprof::gzip(&profile);
    match &open.output {
        Some(path) => {
            let write = || File::create_new(path)?.write_all(&packed);
            write().map_err(|error| {
                Failure::failed(format!("cannot write {}: {error}", shown(path)))
            })?;
            print(&format!("{}: proftop open shows it\n", shown(path)))
        }
        None => Err(show(&packed, &open.words)),
    }
}

/// Whether the profile can be read, and has samples. Says in a sentence why not.
fn check(profile: &[u8], address: &Address) -> Result<(), String> {
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
