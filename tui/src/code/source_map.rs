//! Where source text is, if it is not where the compiler found it: `FROM=TO` means that files below
//! FROM are now below TO.

use profile::few;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// All mappings of folders. If several fit, the one with the longest FROM is used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceMap(Arc<[Mapping]>);

/// A folder, and the folder that replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    from: PathBuf,
    to: PathBuf,
}

impl FromStr for Mapping {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, to) = text
            .split_once('=')
            .ok_or("FROM=TO is wanted, as in /build/app=/home/ann/app")?;
        let to = std::path::absolute(to).map_err(|_| "there is nothing behind the =")?;
        let from = from.into();
        Ok(Mapping { from, to })
    }
}

impl Mapping {
    /// Returns a mapping of a configuration file. None unless `to` begins with `/` or `~/`: a
    /// relative path would depend on the working directory.
    pub fn written(from: &str, to: &str) -> Option<Mapping> {
        let is_full = to.starts_with('/') || to.starts_with("~/");
        is_full.then(|| Mapping {
            from: from.into(),
            to: to.into(),
        })
    }

    /// Replaces `~` in the target by the home directory.
    pub fn at_home(self, home: Option<&Path>) -> Mapping {
        let rest = self.to.strip_prefix("~").ok().map(Path::to_path_buf);
        match (rest, home) {
            (Some(rest), Some(home)) => Mapping {
                to: home.join(rest),
                ..self
            },
            _ => self,
        }
    }

    /// Returns the folder in the debug information, and the folder that replaces it.
    pub fn sides(&self) -> (Cow<'_, str>, Cow<'_, str>) {
        (self.from.to_string_lossy(), self.to.to_string_lossy())
    }
}

impl SourceMap {
    /// Returns a map of mappings, which may be in any order.
    pub fn new(mappings: impl IntoIterator<Item = Mapping>) -> Self {
        let mut mappings: Vec<Mapping> = mappings.into_iter().collect();
        few::sort_by_key(&mut mappings, |mapping| {
            std::cmp::Reverse(mapping.from.as_os_str().len())
        });
        SourceMap(mappings.into())
    }

    /// Returns the path of a file by the best mapping. None if none fits.
    pub fn apply(&self, path: &Path) -> Option<PathBuf> {
        self.0.iter().find_map(|mapping| {
            let rest = path.strip_prefix(&mapping.from).ok()?;
            Some(if rest.as_os_str().is_empty() {
                mapping.to.clone()
            } else {
                mapping.to.join(rest)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_folder_that_fits() {
        let mapping = |text: &str| text.parse::<Mapping>().expect(text);
        let map = SourceMap::new([
            mapping("/build=/src"),
            mapping("/build/lib=/lib src"),
            mapping("runtime=/usr/go/src/runtime"),
        ]);
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(
                map.apply(Path::new(path)).as_deref(),
                expected.map(Path::new)
            );
        };
        check("/build/a.c", Some("/src/a.c"));
        check("/build/lib/a.c", Some("/lib src/a.c"));
        check("/builder/a.c", None);
        check("runtime/proc.go", Some("/usr/go/src/runtime/proc.go"));
        check("a.c", None);
        check("/build/lib", Some("/lib src"));
        assert!("nothing".parse::<Mapping>().is_err());
        assert!("/a=".parse::<Mapping>().is_err());
        // A relative path is relative to the working directory.
        assert!(mapping("/a=b").to.is_absolute());
    }

    #[test]
    fn a_configuration_says_it_in_full() {
        assert_eq!(Mapping::written("/build", "src"), None);
        assert_eq!(Mapping::written("/build", ""), None);
        let at = |to: &str, home| {
            let mapping = Mapping::written("/a=b", to).expect(to).at_home(home);
            mapping.sides().1.into_owned()
        };
        assert_eq!(at("~/src", Some(Path::new("/home/ann"))), "/home/ann/src");
        assert_eq!(at("~/src", None), "~/src");
        assert_eq!(at("/src", Some(Path::new("/home/ann"))), "/src");
    }
}
