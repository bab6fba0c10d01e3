//! Creates a socket in a folder, and removes it at the end. From the first moment on no other user
//! can connect. It replaces nothing but a socket at which no program listens.

use crate::failure::Failure;
use crate::user_files::UserFiles;
use probe::privilege::UserRights;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 8;

/// How long to wait for a locked folder: two seconds in total.
const LOCK_TRIES: u32 = 40;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// A socket that this process has created.
#[derive(Debug)]
pub struct OwnSocket {
    path: PathBuf,
    /// Its device and inode. At the end its path may belong to another file.
    identity: Option<(u64, u64)>,
}

impl OwnSocket {
    /// Creates the socket, with the rights of the user who called proftop.
    pub fn take(path: &Path) -> Result<(Self, UnixListener), Failure> {
        let failed = |why: io::Error| {
            let name = symbolize::sanitize(path.as_os_str().as_encoded_bytes());
            Failure::failed(format!("cannot make the control socket {name}: {why}"))
        };
        let listener = UserRights::current().run(|| make(path)).map_err(failed)?;
        let identity = UserFiles::current().identity(path).map_err(failed)?;
        let path = path.into();
        Ok((Self { path, identity }, listener))
    }

    /// Returns the path of the socket for a message.
    pub fn name(&self) -> String {
        symbolize::sanitize(self.path.as_os_str().as_encoded_bytes()).into_owned()
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        let files = UserFiles::current();
        if self.identity.is_some() && files.identity(&self.path).ok() == Some(self.identity) {
            _ = files.remove(&self.path);
        }
    }
}

fn make(path: &Path) -> io::Result<UnixListener> {
    let address = address(path)?;
    let folder = path.parent().filter(|path| !path.as_os_str().is_empty());
    // The lock prevents that two recorders find the same stale socket, and one of them removes the
    // new socket of the other.
    let folder = File::open(folder.unwrap_or(Path::new(".")))?;
    lock(&folder)?;
    match bind(&address) {
        Err(Errno::ADDRINUSE) => {
            refuse_unless_left_over(path, &address)?;
            std::fs::remove_file(path)?;
            bind(&address)
        }
        bound => bound,
    }
    .map_err(io::Error::from)
}

/// Locks a folder. A program that cleans up there, such as systemd-tmpfiles(8), may hold the lock
/// for a moment.
fn lock(folder: &File) -> io::Result<()> {
    for _ in 0..LOCK_TRIES {
        if folder.try_lock().is_ok() {
            return Ok(());
        }
        thread::sleep(LOCK_PAUSE);
    }
    Err(io::Error::other("another program has locked its folder"))
}

fn address(path: &Path) -> io::Result<SocketAddrUnix> {
    match SocketAddrUnix::new(path) {
        Err(Errno::NAMETOOLONG) => Err(io::Error::other(
            "the kernel takes paths of 107 bytes at most",
        )),
        address => Ok(address?),
    }
}

/// Creates the socket. It is an error if the name exists, even as a dangling link (bind(2)).
fn bind(address: &SocketAddrUnix) -> rustix::io::Result<UnixListener> {
    let socket = socket()?;
    // Linux gives the file the mode of the socket, so there is no moment at which others could
    // connect.
    rustix::fs::fchmod(&socket, Mode::from_raw_mode(0o600))?;
    rustix::net::bind(&socket, address)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

fn refuse_unless_left_over(path: &Path, address: &SocketAddrUnix) -> io::Result<()> {
    let kind = std::fs::symlink_metadata(path)?.file_type();
    if !kind.is_socket() {
        return Err(io::Error::other(
            "something else has that name, and stays: --control names another",
        ));
    }
    match rustix::net::connect(socket()?, address) {
        Err(Errno::CONNREFUSED) => Ok(()),
        // If too many connections wait to be accepted, a program is listening as well.
        Ok(()) | Err(Errno::AGAIN) => Err(io::Error::other("another recorder answers there")),
        Err(error) => Err(error.into()),
    }
}

/// Creates a socket that never blocks.
fn socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    fn refused(path: &Path) -> String {
        OwnSocket::take(path)
            .map(|(place, _)| place)
            .unwrap_err()
            .message
    }

    #[test]
    fn a_socket_is_its_owners_alone_and_goes_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let (place, listener) = OwnSocket::take(&path).unwrap();
        let mode = path.symlink_metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert!(refused(&path).contains("another recorder answers"));
        drop((place, listener));
        assert!(!path.exists());
    }

    #[test]
    fn one_that_is_left_over_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let (first, _listener) = OwnSocket::take(&path).unwrap();
        // Another recorder has replaced the socket by its own.
        std::fs::remove_file(&path).unwrap();
        let (_second, _other) = OwnSocket::take(&path).unwrap();
        drop(first);
        assert!(path.exists());
    }

    #[test]
    fn what_is_no_socket_stays_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("file"), "precious").unwrap();
        symlink(path("file"), path("link")).unwrap();
        symlink(path("nowhere"), path("dangling")).unwrap();
        let _answers = UnixListener::bind(path("socket")).unwrap();
        symlink(path("socket"), path("to-socket")).unwrap();
        for name in ["file", "link", "dangling", "to-socket", "."] {
            assert!(refused(&path(name)).contains("something else"), "{name}");
        }
        assert_eq!(std::fs::read(path("file")).unwrap(), b"precious");
        assert!(!path("nowhere").exists());
        assert!(refused(&path("none/control")).contains("No such file"));
        assert!(refused(&path(&"x".repeat(120))).contains("107 bytes"));
    }
}
