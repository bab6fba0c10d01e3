//! The token in a file. The file is read again when it has changed, so that the shipper need not be
//! restarted when the token is renewed. While the file cannot be read, the previous token stays in
//! use.

use crate::failure::{Failure, shown};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Maximum length of the token.
const BYTES_MAX: u64 = 64 << 10;

pub struct Token {
    path: PathBuf,
    changed: Option<SystemTime>,
    text: String,
    header: String,
}

impl Token {
    /// Reads the file. Returns an error if it has no token.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let name = shown(path);
        let text = read(path).map_err(|why| Failure::usage(format!("token_file {name}: {why}")))?;
        Ok(Self {
            path: path.into(),
            changed: changed(path),
            header: header(&text),
            text,
        })
    }

    /// Whether the file was changed since it was read.
    pub fn is_changed(&self) -> bool {
        let changed = changed(&self.path);
        changed.is_some() && changed != self.changed
    }

    /// Reads the file again if it was changed.
    pub fn refresh(&mut self) {
        if self.is_changed()
            && let Ok(text) = read(&self.path)
        {
            self.changed = changed(&self.path);
            self.header = header(&text);
            self.text = text;
        }
    }

    /// Returns the value of the header `Authorization`.
    pub fn header(&self) -> &str {
        &self.header
    }

    /// Removes the token from a text: a server may repeat what it was sent.
    pub fn remove_from(&self, text: &str) -> String {
        text.replace(&self.text, "…")
    }
}

/// Returns the header's value. A token that names its scheme, as in `Basic dTpw`, is used as it is.
fn header(text: &str) -> String {
    if text.contains(' ') {
        text.into()
    } else {
        format!("Bearer {text}")
    }
}

fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

fn read(path: &Path) -> Result<String, String> {
    let status = fs::metadata(path).map_err(|error| error.to_string())?;
    if status.len() > BYTES_MAX {
        return Err("it is no token, as it is larger than 64 kB".into());
    }
    let text = fs::read_to_string(path).map_err(|error| error.to_string())?;
    let text = text.trim();
    if text.is_empty() {
        return Err("it is empty".into());
    }
    if !text.bytes().all(|it| it == b' ' || it.is_ascii_graphic()) {
        return Err("it has characters that no token has".into());
    }
    Ok(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_token_is_read_again_when_its_file_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        assert!(Token::read(&path).is_err());
        for bad in ["", " \n", "a\nb", "\u{e9}"] {
            fs::write(&path, bad).unwrap();
            assert!(Token::read(&path).is_err(), "{bad:?}");
        }
        fs::write(&path, "first\n").unwrap();
        let mut token = Token::read(&path).unwrap();
        assert_eq!(token.header(), "Bearer first");
        let change = |text: &str, seconds| {
            fs::write(&path, text).unwrap();
            let file = fs::File::options().write(true).open(&path).unwrap();
            let at = SystemTime::now() + Duration::from_secs(seconds);
            file.set_modified(at).unwrap();
        };
        change("Basic dTpw", 10);
        token.refresh();
        assert_eq!(token.header(), "Basic dTpw");
        // The file is just being written.
        change("", 20);
        token.refresh();
        assert_eq!(token.header(), "Basic dTpw");
        assert_eq!(token.remove_from("no Basic dTpw here"), "no … here");
    }
}
