//! The list of crates that are in the program, as CycloneDX 1.5.

use super::build;
use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Returns the document: the program, every crate that is linked into it, and who needs whom.
/// Crates that only build or test something are left out.
pub fn of(root: &Path, version: &str, time: u64) -> Result<String> {
    let mut command = build::cargo();
    command.current_dir(root);
    command.args(["metadata", "--format-version", "1", "--locked", "--offline"]);
    command.args(["--filter-platform", build::TARGET]);
    let output = command.output().context("cannot start cargo")?;
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let lock: toml::Table = fs::read_to_string(root.join("Cargo.lock"))?.parse()?;
    let document = document(&metadata, &checksums(&lock), version, time)?;
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// Returns the checksums of crates by name and version.
fn checksums(lock: &toml::Table) -> BTreeMap<(String, String), String> {
    let text = |package: &toml::Value, key: &str| Some(package.get(key)?.as_str()?.to_owned());
    let packages = lock.get("package").and_then(toml::Value::as_array);
    let sum = |package: &toml::Value| {
        let key = (text(package, "name")?, text(package, "version")?);
        Some((key, text(package, "checksum")?))
    };
    packages.into_iter().flatten().filter_map(sum).collect()
}

fn document(
    metadata: &Value,
    sums: &BTreeMap<(String, String), String>,
    version: &str,
    time: u64,
) -> Result<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut needs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for node in list(&metadata["resolve"]["nodes"]) {
        let linked = |dependency: &Value| {
            let kinds = list(&dependency["dep_kinds"]);
            // Those of builds and tests have a kind.
            kinds.iter().any(|kind| kind["kind"].is_null())
        };
        let linked = list(&node["deps"]).into_iter().filter(|dep| linked(dep));
        needs.insert(
            text(&node["id"]),
            linked.map(|dep| text(&dep["pkg"])).collect(),
        );
    }
    let packages: BTreeMap<String, Value> = { list(&metadata["packages"]).into_iter() }
        .map(|package| (text(&package["id"]), package))
        .collect();
    let first = packages
        .iter()
        .find(|(_, package)| package["name"] == "proftop");
    let first = first.context("there is no package proftop")?.0.clone();
    let mut found = BTreeSet::from([first.clone()]);
    let mut open = vec![first.clone()];
    while let Some(id) = open.pop() {
        for next in needs.get(&id).into_iter().flatten() {
            if found.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    let url = |id: &String| {
        let package = &packages[id];
        format!(
            "pkg:cargo/{}@{}",
            text(&package["name"]),
            text(&package["version"])
        )
    };
    let component = |id: &String| {
        let package = &packages[id];
        let key = (text(&package["name"]), text(&package["version"]));
        let mut component = json!({
            "type": "library", "bom-ref": url(id), "purl": url(id), "name": key.0,
            "version": key.1,
        });
        if let Some(license) = package["license"].as_str() {
            // Cargo still reads the slash of old manifests.
            let license = license.replace('/', " OR ");
            component["licenses"] = json!([{ "expression": license }]);
        }
        if let Some(sum) = sums.get(&key) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        component
    };
    let mut components: Vec<Value> = found
        .iter()
        .filter(|id| **id != first)
        .map(component)
        .collect();
    components.sort_by_key(|component| text(&component["purl"]));
    let mut dependencies: Vec<Value> = found
        .iter()
        .map(|id| {
            let mut of: Vec<String> = needs.get(id).into_iter().flatten().map(url).collect();
            of.sort();
            json!({ "ref": url(id), "dependsOn": of })
        })
        .collect();
    dependencies.sort_by_key(|dependency| text(&dependency["ref"]));
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": timestamp(time),
            "component": {
                "type": "application", "bom-ref": url(&first), "name": "proftop",
                "version": version, "purl": url(&first),
            },
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// Returns a time as `2026-11-23T17:00:00Z`.
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
        for name in ["proptest", "vt100", "test-support", "framehop"] {
            assert!(find(name).is_none(), "{name}");
        }
        let of = document["dependencies"].as_array().unwrap();
        assert_eq!(of.len(), components.len() + 1);
    }
}
