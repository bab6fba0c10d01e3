use super::*;
use crate::events::Event;
use crate::loader::{self, Settings};
use crate::target::Target;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use symbolize::kernel::{BpfProgram, CurrentBpf};

/// Held by each test: two tests that run at once could see the same program number reused.
static LOADING: Mutex<()> = Mutex::new(());

/// Loads proftop's own programs for the duration of a test; `None` if they cannot be loaded.
fn loaded() -> Option<(loader::Loaded, MutexGuard<'static, ()>)> {
    let guard = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    match loader::load(&Settings::FOR_TESTS, &Target::default()) {
        Ok(loaded) => Some((loaded, guard)),
        Err(error) => {
            test_support::skip(format_args!("no BPF programs here: {error}"));
            None
        }
    }
}

fn programs() -> impl Iterator<Item = u32> {
    std::iter::successors(BpfPrograms.next_program(0), |last| {
        BpfPrograms.next_program(*last)
    })
}

/// Compares the lines of a program with the source text that it was built from: every line exists.
#[test]
fn our_own_program_has_functions_and_lines() {
    let Some(_held) = loaded() else {
        return;
    };
    let infos: Vec<BpfProgramInfo> = programs()
        .filter_map(|number| BpfPrograms.program(number))
        .collect();
    let mut seen = 0;
    for info in infos {
        let program = BpfProgram::new(&info);
        let Some(extent) = info.extents.first() else {
            continue;
        };
        let entry = program
            .find(extent.start)
            .expect("a function has its start");
        if entry.function != b"tick" || entry.file.is_empty() {
            continue;
        }
        assert!(info.extents.len() > 1, "it has subprograms");
        let all = info
            .extents
            .iter()
            .flat_map(|e| e.start..e.start + u64::from(e.len));
        let places: Vec<_> = all.map(|addr| program.find(addr).unwrap()).collect();
        assert!(places.iter().all(|place| !place.function.is_empty()));
        let in_ours = |place: &&symbolize::kernel::BpfPlace| {
            place.file.windows(10).any(|part| part == b"probe-ebpf")
        };
        let ours: Vec<_> = places.iter().filter(in_ours).collect();
        assert!(
            ours.len() * 3 > places.len(),
            "{} of {}",
            ours.len(),
            places.len()
        );
        seen += usize::from(
            ours.iter()
                .any(|place| place.file.ends_with(b"bpf/tick.rs")),
        );
        for place in ours {
            let path = String::from_utf8_lossy(&place.file);
            let inside = path.split("probe-ebpf/").last().unwrap();
            let path = Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../probe-ebpf")
                .join(inside);
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let lines = text.lines().count();
            assert!(
                (place.line as usize) <= lines,
                "{}:{}",
                path.display(),
                place.line
            );
        }
    }
    assert!(seen > 0, "our program is among those that are loaded");
}

/// The code that the kernel dumps is the code that it runs: the same bytes as in its memory.
#[test]
fn the_code_of_our_own_program_is_what_the_kernel_runs() {
    let Some((loaded, _guard)) = loaded() else {
        return;
    };
    let sampler = loaded.events[&Event::Tick]
        .as_fd()
        .try_clone_to_owned()
        .unwrap();
    let number = program_info(&sampler, ProgramInfo::default()).unwrap().id;
    let Some(code) = BpfPrograms.code(number) else {
        test_support::skip("the kernel keeps the code of programs to itself");
        return;
    };
    let extents: Vec<BpfExtent> = code
        .iter()
        .map(|function| BpfExtent {
            start: function.start,
            len: function.bytes.len() as u32,
        })
        .collect();
    assert_eq!(extents, BpfPrograms.extents(number).unwrap());
    assert!(extents.len() > 1, "it has subprograms");
    let Ok(core) = symbolize::kernel::KernelCore::open() else {
        test_support::skip("the kernel's memory cannot be read");
        return;
    };
    for function in &code {
        let len = function.bytes.len() as u64;
        assert_eq!(core.read(function.start, len).unwrap(), function.bytes);
    }
}

#[test]
fn a_program_that_is_gone_has_no_place() {
    let Some((loaded, _guard)) = loaded() else {
        return;
    };
    let sampler = loaded.events[&Event::Tick]
        .as_fd()
        .try_clone_to_owned()
        .unwrap();
    let number = program_info(&sampler, ProgramInfo::default()).unwrap().id;
    let start = BpfPrograms.extents(number).unwrap()[0].start;
    let bpf = CurrentBpf::new(Box::new(BpfPrograms));
    assert_eq!(bpf.find(start).expect("it is loaded").function, b"tick");
    drop((loaded, sampler));
    // The kernel removes programs some time after the last descriptor is closed.
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(100));
        if bpf.find(start).is_none() {
            assert!(BpfPrograms.program(number).is_none());
            return;
        }
    }
    panic!("program {number} is still there");
}

#[test]
fn the_kernels_functions_are_known_by_their_types() {
    let Some(types) = BpfPrograms.types(1) else {
        test_support::skip("the kernel's types cannot be read");
        return;
    };
    assert!(types.is_kernel);
    assert_eq!(types.name, b"vmlinux");
    let file = std::fs::read("/sys/kernel/btf/vmlinux").unwrap();
    assert!(types.bytes == file, "the same as the file");
    let btf = symbolize::kernel::Btf::parse(&types.bytes).unwrap();
    let is_read = |t: symbolize::kernel::BtfType<'_>| {
        t.kind == symbolize::kernel::btf_kind::FUNC && btf.string(t.name) == Some(b"vfs_read")
    };
    let number = btf.types().position(is_read).expect("it has vfs_read") as u64 + 1;
    let bpf = CurrentBpf::new(Box::new(BpfPrograms));
    let name = bpf.attached_to(1 << 32 | 1 << 31 | number);
    assert_eq!(name.as_deref(), Some(&b"vfs_read"[..]));
}
