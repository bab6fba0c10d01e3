//! The list of crates that are in the program, as CycloneDX 1.5.

use super::build;
use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// A crate by name and version.
type Crate = (String, String);

/// Returns the document: the program, every crate that is linked into it, and their dependencies.
/// Crates that are only used to build or test are left out, and so are those that only other
/// programs of the workspace need: `cargo tree` needs only the program's own crates, whereas `cargo
/// metadata` requires all of them to be available.
pub fn of(root: &Path, version: &str, time: u64) -> Result<String> {
    let mut command = build::cargo();
    command.current_dir(root);
    command.args(["tree", "--package", "proftop", "--edges", "normal"]);
    command.args(["--prefix", "depth", "--format", "\t{p}\t{l}\t"]);
    command.args(["--target", build::TARGET, "--locked", "--offline"]);
    let output = command.output().context("cannot start cargo")?;
    if !output.status.success() {
        bail!("cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    }
    let tree = Tree::read(&String::from_utf8_lossy(&output.stdout))?;
    let lock: toml::Table = fs::read_to_string(root.join("Cargo.lock"))?.parse()?;
    let document = document(&tree, &checksums(&lock), version, time);
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// The output of `cargo tree`: crates with their licenses, and their dependencies.
#[derive(Debug, Default)]
struct Tree {
    first: Crate,
    licenses: BTreeMap<Crate, String>,
    needs: BTreeMap<Crate, BTreeSet<Crate>>,
}

impl Tree {
    /// Parses lines of depth, crate and license. The dependencies of a crate are listed below its
    /// first occurrence.
    fn read(text: &str) -> Result<Self> {
        let mut tree = Self::default();
        let mut path: Vec<Crate> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let strange = || format!("cargo tree says {line:?}");
            let mut parts = line.split('\t');
            let mut next = || parts.next().with_context(strange);
            let (depth, package, license) = (next()?, next()?, next()?);
            let depth: usize = depth.parse().with_context(strange)?;
            let mut words = package.split(' ');
            let name = words.next().with_context(strange)?;
            let version = words.next().and_then(|it| it.strip_prefix('v'));
            let one = (name.to_owned(), version.with_context(strange)?.to_owned());
            path.truncate(depth);
            match path.last() {
                Some(above) => {
                    _ = tree
                        .needs
                        .entry(above.clone())
                        .or_default()
                        .insert(one.clone())
                }
                None => tree.first = one.clone(),
            }
            tree.licenses.insert(one.clone(), license.to_owned());
            tree.needs.entry(one.clone()).or_default();
            path.push(one);
        }
        Ok(tree)
    }
}

/// Returns the checksums of crates by name and version.
fn checksums(lock: &toml::Table) -> BTreeMap<Crate, String> {
    let text = |package: &toml::Value, key: &str| Some(package.get(key)?.as_str()?.to_owned());
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let sum = |package: &toml::Value| {
        let key = (text(package, "name")?, text(package, "version")?);
        Some((key, text(package, "checksum")?))
    };
    packages.into_iter().flatten().filter_map(sum).collect()
}

fn document(tree: &Tree, sums: &BTreeMap<Crate, String>, version: &str, time: u64) -> Value {
    let url = |(name, version): &Crate| format!("pkg:cargo/{name}@{version}");
    let component = |(one, license): (&Crate, &String)| {
        let mut component = json!({
            "type": "library", "bom-ref": url(one), "purl": url(one), "name": one.0,
            "version": one.1,
        });
        if !license.is_empty() {
            // Cargo still accepts the slash of old manifests.
            let license = license.replace('/', " OR ");
            component["licenses"] = json!([{ "expression": license }]);
        }
        if let Some(sum) = sums.get(one) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        component
    };
    let others = tree.licenses.iter().filter(|(one, _)| **one != tree.first);
    let components: Vec<Value> = others.map(component).collect();
    let needs = |(one, of): (&Crate, &BTreeSet<Crate>)| {
        let of: Vec<String> = of.iter().map(url).collect();
        json!({ "ref": url(one), "dependsOn": of })
    };
    let dependencies: Vec<Value> = tree.needs.iter().map(needs).collect();
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": timestamp(time),
            "component": {
                "type": "application", "bom-ref": url(&tree.first), "name": "proftop",
                "version": version, "purl": url(&tree.first),
            },
        },
        "components": components,
        "dependencies": dependencies,
    })
}

/// Formats a time, for example `2026-11-23T17:00:00Z`.
fn timestamp(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days from 0000-03-01, so that a leap day is the last of its year; see "chrono-Compatible
    // Low-Level Date Algorithms" by Howard Hinnant.
    let day = days + 719_468;
    let era = day / 146_097;
    let of_era = day % 146_097;
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, late) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = year + era * 400 + late;
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fingerprint;

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00Z");
        assert_eq!(timestamp(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(timestamp(1_000_000_000), "2001-09-09T01:46:40Z");
        assert_eq!(timestamp(4_107_542_399), "2100-02-28T23:59:59Z");
    }

    #[test]
    fn what_is_linked_is_listed_with_its_checksum_and_what_tests_need_is_not() {
        let text = of(fingerprint::workspace(), "1.2.3", 0).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        let components = document["components"].as_array().unwrap();
        let find = |name: &str| {
            components
                .iter()
                .find(|component| component["name"] == name)
        };
        let aya = find("aya").expect("it is linked");
        assert!(aya["hashes"][0]["content"].as_str().unwrap().len() == 64);
        assert!(aya["licenses"][0]["expression"].is_string());
        assert!(find("profile").is_some(), "ours");
        // The first four are needed by tests, the others by another program of the workspace.
        for name in [
            "proptest",
            "vt100",
            "test-support",
            "framehop",
            "parquet",
            "ureq",
        ] {
            assert!(find(name).is_none(), "{name}");
        }
        let of = document["dependencies"].as_array().unwrap();
        assert_eq!(of.len(), components.len() + 1);
        let engine = of
            .iter()
            .find(|it| it["ref"].as_str().unwrap().contains("/engine@"));
        let needs = engine.unwrap()["dependsOn"].as_array().unwrap();
        assert!(
            needs
                .iter()
                .any(|it| it.as_str().unwrap().contains("/profile@"))
        );
    }
}
