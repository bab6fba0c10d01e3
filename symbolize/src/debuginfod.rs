//! Reads the cache of elfutils' debuginfod client, which keeps debug files by build-id. Nothing is
//! downloaded here; that is left to programs that may use a network.

use std::path::{Path, PathBuf};

/// Returns the client's cache directory, by its own rules (debuginfod-client-config(7)).
pub fn default_cache() -> Option<PathBuf> {
    cache_of(|name| std::env::var_os(name).filter(|value| !value.is_empty()))
}

fn cache_of(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
    if let Some(path) = variable("DEBUGINFOD_CACHE_PATH") {
        return Some(path.into());
    }
    let home = || variable("HOME").map(PathBuf::from);
    // The directory of old versions is used as long as it exists.
    if let Some(old) = home().map(|home| home.join(".debuginfod_client_cache"))
        && old.is_dir()
    {
        return Some(old);
    }
    let base = variable("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(home()?.join(".cache")))?;
    Some(base.join("debuginfod_client"))
}

/// Returns the path of a build's debug file in such a cache.
pub fn debug_file(cache: &Path, build_id: &[u8]) -> PathBuf {
    let id: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    cache.join(id).join("debuginfo")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsString;

    #[test]
    fn where_the_client_would_look() {
        let home = tempfile::tempdir().unwrap();
        let cache = |set: &[(&str, &str)]| {
            cache_of(|name| {
                let found = set.iter().find(|(key, _)| *key == name);
                let home = (name == "HOME").then(|| home.path().as_os_str().to_owned());
                found.map(|(_, value)| OsString::from(value)).or(home)
            })
        };
        let by_default = home.path().join(".cache/debuginfod_client");
        assert_eq!(cache(&[]), Some(by_default));
        let xdg = cache(&[("XDG_CACHE_HOME", "/c")]);
        assert_eq!(xdg, Some("/c/debuginfod_client".into()));
        let old = home.path().join(".debuginfod_client_cache");
        std::fs::create_dir(&old).unwrap();
        assert_eq!(cache(&[("XDG_CACHE_HOME", "/c")]), Some(old));
        let own = cache(&[("DEBUGINFOD_CACHE_PATH", "/d")]);
        assert_eq!(own, Some("/d".into()));
        assert_eq!(cache_of(|_| None), None);
    }

    #[test]
    fn files_are_in_directories_of_their_build() {
        let file = debug_file(Path::new("/d"), &[0x0a, 0xbc]);
        assert_eq!(file, Path::new("/d/0abc/debuginfo"));
    }
}
