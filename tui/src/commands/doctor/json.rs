//! `doctor --json`: one object, described in `docs/doctor-json.md`. A field is
//! never removed or given another meaning without a new schema number.

use super::process::{ModuleFacts, OnDisk, ProcessFacts, SampledFacts};
use super::{Diagnosis, Section, level_word};
use crate::failure::Failure;
use probe::features::Level;
use serde::Serialize;
use symbolize::parser::SymbolTable;
use symbolize::sanitize::is_unsafe;

/// Version of the format. It goes up when a field changes its meaning or is removed.
const SCHEMA: u32 = 1;

/// The whole document. `docs/doctor-json.md` says what each field means.
#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    version: &'static str,
    findings: Vec<FindingRow<'a>>,
    process: Option<ProcessRow<'a>>,
    problems: usize,
    warnings: usize,
    exit_status: u8,
}

/// One line of the text that doctor prints, with an id that scripts can rely on.
#[derive(Serialize)]
struct FindingRow<'a> {
    section: &'static str,
    id: &'static str,
    level: &'static str,
    what: &'a str,
    fix: Option<&'a str>,
}

/// The findings on the process that was examined.
#[derive(Serialize)]
struct ProcessRow<'a> {
    pid: u32,
    comm: &'a str,
    exe: Option<String>,
    bits: Option<u8>,
    shares_pid_namespace: Option<bool>,
    shares_mount_namespace: Option<bool>,
    anonymous_code: bool,
    perf_map: Option<String>,
    modules: Option<Vec<ModuleRow<'a>>>,
    samples: Option<SamplesRow<'a>>,
}

/// Results of sampling. The field `samples` of the process is None if it was not sampled.
#[derive(Serialize)]
struct SamplesRow<'a> {
    count: u64,
    stacks: u64,
    stacks_whole: u64,
    frames: u64,
    frames_unnamed: u64,
    unnamed: Vec<UnnamedRow<'a>>,
}

/// Frames without a name in one file, for one reason.
#[derive(Serialize)]
struct UnnamedRow<'a> {
    module: &'a str,
    path: Option<&'a str>,
    reason: &'static str,
    frames: u64,
}

/// A mapped file. If it could not be read, `error` says why, and all that only the file contains is
/// None.
#[derive(Serialize)]
struct ModuleRow<'a> {
    path: String,
    on_disk: &'static str,
    build_id: Option<&'a str>,
    symbols: Option<&'static str>,
    debug_file: Option<bool>,
    eh_frame: Option<bool>,
    walkable: Option<f64>,
    frame_pointers: Option<bool>,
    package: Option<&'a str>,
    symbols_package: Option<&'a str>,
    error: Option<&'a str>,
}

/// Returns the whole diagnosis as indented JSON with a newline at its end.
pub fn render(diagnosis: &Diagnosis) -> Result<String, Failure> {
    let document = Document {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION"),
        findings: diagnosis.findings.iter().map(finding_row).collect(),
        process: diagnosis.process.as_ref().map(process_row),
        problems: diagnosis.count(Level::Fail),
        warnings: diagnosis.count(Level::Warn),
        exit_status: diagnosis.exit().code(),
    };
    let mut text = serde_json::to_string_pretty(&document)
        .map_err(|error| Failure::failed(format!("failed to write JSON: {error}")))?;
    text.push('\n');
    Ok(without_active(&text))
}

/// Returns equivalent JSON without characters that a terminal acts on. Paths are written unchanged,
/// for scripts, and the name of a file may contain any character. Such a character can only be
/// inside a string, where an escape may replace it.
fn without_active(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || !is_unsafe(c) {
            escaped.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            escaped.push_str(&format!("\\u{unit:04x}"));
        }
    }
    escaped
}

/// Returns the row of a finding.
fn finding_row((section, finding): &(Section, probe::features::Finding)) -> FindingRow<'_> {
    FindingRow {
        section: match section {
            Section::Machine => "machine",
            Section::Terminal => "terminal",
            Section::Process => "process",
        },
        id: finding.id,
        level: level_word(finding.level),
        what: &finding.what,
        fix: finding.fix.as_deref(),
    }
}

fn process_row(facts: &ProcessFacts) -> ProcessRow<'_> {
    ProcessRow {
        pid: facts.pid,
        comm: &facts.comm,
        exe: facts.exe.as_ref().map(|p| p.to_string_lossy().into_owned()),
        bits: facts.is_64_bit.map(|yes| if yes { 64 } else { 32 }),
        shares_pid_namespace: facts.shares_pid_namespace,
        shares_mount_namespace: facts.shares_mount_namespace,
        anonymous_code: facts.has_anonymous_code,
        perf_map: facts
            .perf_map
            .as_ref()
            .map(|p| p.to_string_lossy().into_owned()),
        modules: facts
            .modules
            .as_ref()
            .ok()
            .map(|modules| modules.iter().map(module_row).collect()),
        samples: facts.sampled.as_ref().ok().map(samples_row),
    }
}

fn samples_row(facts: &SampledFacts) -> SamplesRow<'_> {
    let unnamed = facts.files.iter().map(|row| UnnamedRow {
        module: &row.module,
        path: (!row.path.is_empty()).then_some(&row.path),
        reason: row.reason.label(),
        frames: row.frames,
    });
    SamplesRow {
        count: facts.samples,
        stacks: facts.stacks,
        stacks_whole: facts.whole,
        frames: facts.frames,
        frames_unnamed: facts.unnamed,
        unnamed: unnamed.collect(),
    }
}

fn module_row(module: &ModuleFacts) -> ModuleRow<'_> {
    let advice = module.advice.as_ref();
    let elf = module.elf.as_ref().ok();
    ModuleRow {
        path: module.path.to_string_lossy().into_owned(),
        on_disk: match module.on_disk {
            OnDisk::Same => "same",
            OnDisk::Deleted => "deleted",
            OnDisk::Replaced => "replaced",
            OnDisk::Unreadable => "unreadable",
        },
        build_id: elf.and_then(|elf| elf.build_id.as_deref()),
        symbols: elf.map(|elf| match elf.symbols {
            SymbolTable::Symtab => "symtab",
            SymbolTable::Dynsym => "dynsym",
            SymbolTable::None => "none",
        }),
        debug_file: elf.map(|_| module.has_debug_file),
        eh_frame: elf.map(|elf| elf.has_eh_frame),
        walkable: elf.and_then(|elf| elf.walkable.as_ref().ok().copied()),
        // ELF files do not say whether code has frame pointers. The field stays because schema 1
        // promised it.
        frame_pointers: None,
        package: advice.and_then(|advice| advice.package.as_deref()),
        symbols_package: advice.and_then(|advice| advice.symbols.as_deref()),
        error: module.elf.as_ref().err().map(String::as_str),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::json_fields;
    use serde_json::Value;
    use std::collections::BTreeSet;

    const DOCUMENT: &str = include_str!("../../../../docs/doctor-json.md");

    fn own_output() -> Value {
        let sample = |_| Ok(SampledFacts::example());
        let diagnosis = Diagnosis::make(Some(std::process::id()), sample).unwrap();
        serde_json::from_str(&render(&diagnosis).unwrap()).unwrap()
    }

    fn documented(prefix: &str) -> BTreeSet<String> {
        let rows = DOCUMENT
            .lines()
            .filter_map(|line| line.strip_prefix(prefix));
        rows.filter_map(|rest| Some(rest.split_once('`')?.0.to_owned()))
            .collect()
    }

    #[test]
    fn every_field_is_in_the_document_and_no_other() {
        assert_eq!(documented("| field `"), json_fields(&own_output(), &[]));
    }

    #[test]
    fn every_finding_is_in_the_document() {
        let known = documented("| id `");
        let output = own_output();
        for finding in output["findings"].as_array().unwrap() {
            let id = finding["id"].as_str().unwrap();
            assert!(known.contains(id), "docs/doctor-json.md lacks {id}");
        }
    }

    #[test]
    fn the_example_has_the_same_shape() {
        let (_, rest) = DOCUMENT.split_once("```json\n").unwrap();
        let (example, _) = rest.split_once("```").unwrap();
        let example: Value = serde_json::from_str(example).unwrap();
        assert_eq!(json_fields(&example, &[]), json_fields(&own_output(), &[]));
        assert_eq!(example["schema"], SCHEMA);
    }

    #[test]
    fn without_a_process_the_field_is_null() {
        let diagnosis =
            Diagnosis::make(None, |_| unreachable!("no process was asked for")).unwrap();
        let value: Value = serde_json::from_str(&render(&diagnosis).unwrap()).unwrap();
        assert!(value["process"].is_null());
        let fails = value["problems"].as_u64().unwrap() > 0;
        assert_eq!(value["exit_status"], if fails { 4 } else { 0 });
    }

    #[test]
    fn the_document_says_the_same_without_what_acts() {
        let path = "/tmp/\u{1b}[2J\u{9b}x\u{202e}\u{e0041}\n\"größe";
        let json = serde_json::to_string_pretty(&[path]).expect("a string");
        let escaped = without_active(&json);
        let acts = |c: char| c != '\n' && is_unsafe(c);
        assert!(json.contains(acts) && !escaped.contains(acts), "{escaped}");
        let read: Vec<String> = serde_json::from_str(&escaped).expect("still JSON");
        assert_eq!(read, [path]);
    }
}
