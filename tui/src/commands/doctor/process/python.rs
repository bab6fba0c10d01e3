//! Whether the functions of Python in a process will be shown.

use super::maps::CodeMapping;
use probe::features::Finding;
use symbolize::object::Object;
use symbolize::python::{Interpreter, Lack, Layout, Version, memory_of, read_threads};
use symbolize::{FileOffset, Files, Mapping, ProcessAddr, Reason};

/// How many threads are counted at most.
const THREADS_MAX: usize = 16_384;

/// The Python interpreter of a process.
#[derive(Debug, PartialEq, Eq)]
pub struct PythonFacts {
    version: Version,
    /// How many threads run Python, or why that cannot be told.
    threads: Result<usize, Lack>,
}

/// Looks for an interpreter among the mapped files. None if there is none, or none of a
/// version that we know.
pub fn inspect(pid: u32, mappings: &[CodeMapping], way: &Files) -> Option<PythonFacts> {
    mappings.iter().find_map(|mapping| {
        let name = mapping.path.as_ref()?.file_name()?.as_encoded_bytes();
        // Checked first because it costs nothing: the names of most files rule them out.
        Version::of_file_name(name)?;
        let file = way.open_mapping(pid, mapping.range).ok()?;
        let interpreter = Interpreter::find(&Object::read(&file).ok()?, name).ok()??;
        let place = Mapping {
            start: ProcessAddr(mapping.range.0),
            end: ProcessAddr(mapping.range.1),
            file_offset: FileOffset(mapping.file_offset),
        };
        let runtime = interpreter.runtime_at(&place)?;
        Some(PythonFacts {
            version: interpreter.version,
            threads: threads(pid, interpreter.version, runtime, way),
        })
    })
}

/// Counts the threads that the interpreter knows, in the memory of the process.
fn threads(pid: u32, version: Version, runtime: u64, way: &Files) -> Result<usize, Lack> {
    let memory = memory_of(pid, way);
    let layout = Layout::of(version, &memory, runtime)?;
    Ok(read_threads(&memory, runtime, &layout, THREADS_MAX)?.len())
}

/// Says whether functions of Python will be shown, and if not, why.
pub fn judge(facts: &PythonFacts) -> Finding {
    let PythonFacts { version, threads } = facts;
    match threads {
        Ok(threads) => {
            let threads = match threads {
                1 => "1 thread".to_string(),
                threads => format!("{threads} threads"),
            };
            let what =
                format!("Python {version}, {threads}: its functions are shown by name and line");
            Finding::ok("process-python", what)
        }
        Err(lack @ Lack::Unreadable(Reason::NoPermission)) => {
            let what = format!("Python {version}: its functions are not shown: {lack}");
            Finding::warn("process-python", what).fix("run as root, or give proftop cap_sys_ptrace")
        }
        Err(lack) => {
            let what = format!("Python {version}: its functions are not shown: {lack}");
            Finding::warn("process-python", what)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_whether_functions_are_shown() {
        let version = Version {
            major: 3,
            minor: 16,
        };
        let what = |threads| judge(&PythonFacts { version, threads }).what;
        assert_eq!(
            what(Ok(1)),
            "Python 3.16, 1 thread: its functions are shown by name and line"
        );
        assert_eq!(
            what(Err(Lack::UnknownVersion(version))),
            "Python 3.16: its functions are not shown: \
             the structures of Python 3.16 are not known"
        );
    }
}
