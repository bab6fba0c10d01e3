use super::super::program::tests::two_functions;
use super::super::{BpfCode, BpfExtent, BpfProgramInfo, BpfTypes};
use super::*;
use crate::kernel::btf::{kind, tests::btf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A kernel whose programs a test loads and unloads.
#[derive(Debug, Clone, Default)]
pub struct Loaded(Arc<LoadedState>);

#[derive(Debug, Default)]
pub struct LoadedState {
    programs: Mutex<Vec<(u32, u64)>>,
    programs_read: AtomicUsize,
    types_read: AtomicUsize,
}

impl Loaded {
    pub fn set(&self, programs: &[(u32, u64)]) {
        *self.0.programs.lock().unwrap() = programs.to_vec();
    }
}

impl BpfKernel for Loaded {
    fn next_program(&self, after: u32) -> Option<u32> {
        let programs = self.0.programs.lock().unwrap();
        programs
            .iter()
            .map(|(number, _)| *number)
            .find(|n| *n > after)
    }

    fn extents(&self, program: u32) -> Option<Vec<BpfExtent>> {
        Some(self.info(program)?.extents)
    }

    fn program(&self, program: u32) -> Option<BpfProgramInfo> {
        self.0.programs_read.fetch_add(1, Ordering::Relaxed);
        self.info(program)
    }

    fn code(&self, program: u32) -> Option<Vec<BpfCode>> {
        let functions = self.info(program)?.extents.into_iter();
        let code = |extent: BpfExtent| BpfCode {
            start: extent.start,
            bytes: vec![program as u8; extent.len as usize],
        };
        Some(functions.map(code).collect())
    }

    fn types(&self, number: u32) -> Option<BpfTypes> {
        self.0.types_read.fetch_add(1, Ordering::Relaxed);
        let func = kind::FUNC << 24;
        let (name, bytes) = match number {
            1 => (
                &b"vmlinux"[..],
                btf(&[1, func, 0, 6, func, 0], b"\0open\0read\0"),
            ),
            7 => (&b"nf"[..], btf(&[12, func, 0], b"\0hook\0")),
            _ => (&b""[..], btf(&[1, func, 0], b"\0theirs\0")),
        };
        Some(BpfTypes {
            name: name.to_vec(),
            is_kernel: !name.is_empty(),
            bytes,
        })
    }
}

impl Loaded {
    fn info(&self, program: u32) -> Option<BpfProgramInfo> {
        let programs = self.0.programs.lock().unwrap();
        let (_, base) = programs.iter().find(|(number, _)| *number == program)?;
        Some(two_functions(*base))
    }
}

fn pass(bpf: &CurrentBpf) {
    let mut state = bpf.state();
    let read = state.read.as_mut().unwrap();
    *read -= WAIT;
}

#[test]
fn programs_come_and_go() {
    let kernel = Loaded::default();
    let bpf = CurrentBpf::new(Box::new(kernel.clone()));
    let name = |addr: u64| bpf.find(addr).map(|place| (place.function, place.line));
    assert_eq!(name(0x5000_0020), None);
    kernel.set(&[(3, 0x5000_0000)]);
    assert_eq!(name(0x5000_0020), None, "asked for just before");
    pass(&bpf);
    assert_eq!(name(0x5000_0020), Some((b"helper".to_vec(), 30)));
    assert_eq!(name(0x5000_1000), Some((b"main".to_vec(), 10)));
    assert_eq!(name(0x5000_1100), None);

    // Another program covers an address that the first one had: the first one is gone.
    kernel.set(&[(9, 0x5000_0fe0)]);
    pass(&bpf);
    assert_eq!(name(0x5000_1000), Some((b"helper".to_vec(), 30)));
    assert_eq!(name(0x5000_0020), None);
    kernel.set(&[]);
    pass(&bpf);
    assert_eq!(name(0x5000_1000), None);
}

#[test]
fn lines_are_read_of_programs_with_samples_only() {
    let kernel = Loaded::default();
    let programs: Vec<(u32, u64)> = (1..100).map(|n| (n, u64::from(n) << 20)).collect();
    kernel.set(&programs);
    let bpf = CurrentBpf::new(Box::new(kernel.clone()));
    for _ in 0..3 {
        assert!(bpf.find((50 << 20) + 0x1000).is_some());
        assert!(bpf.find((51 << 20) + 0x20).is_some());
    }
    assert_eq!(kernel.0.programs_read.load(Ordering::Relaxed), 2);
}

#[test]
fn trampolines_are_known_by_what_they_are_attached_to() {
    let kernel = Loaded::default();
    kernel.set(&[(12, 0)]);
    let bpf = CurrentBpf::new(Box::new(kernel.clone()));
    let name = |key| {
        bpf.attached_to(key)
            .map(|name| String::from_utf8(name.to_vec()).unwrap())
    };
    let in_kernel = |object: u64, function: u64| object << 32 | 1 << 31 | function;
    assert_eq!(name(in_kernel(1, 2)).as_deref(), Some("read"));
    assert_eq!(name(in_kernel(7, 3)).as_deref(), Some("hook"));
    assert_eq!(name(in_kernel(7, 1)).as_deref(), Some("open"));
    assert_eq!(
        name(12 << 32 | 2).as_deref(),
        Some("helper"),
        "of a program"
    );
    for nothing in [
        in_kernel(1, 3),
        in_kernel(1, 0),
        in_kernel(8, 1),
        13 << 32 | 1,
        0,
        u64::MAX,
    ] {
        assert_eq!(name(nothing), None, "{nothing:#x}");
    }
    let read = kernel.0.types_read.load(Ordering::Relaxed);
    assert_eq!(name(in_kernel(1, 2)).as_deref(), Some("read"));
    assert_eq!(name(in_kernel(1, 3)), None);
    assert_eq!(
        kernel.0.types_read.load(Ordering::Relaxed),
        read,
        "once each"
    );
}

#[test]
fn the_code_of_the_function_at_an_address() {
    let kernel = Loaded::default();
    let bpf = CurrentBpf::new(Box::new(kernel.clone()));
    assert_eq!(bpf.code(0x5000_1010), None);
    kernel.set(&[(5, 0x5000_0000)]);
    pass(&bpf);
    let code = bpf.code(0x5000_1010).unwrap();
    assert_eq!((code.start, &code.bytes[..2]), (0x5000_1000, &[5, 5][..]));
    // A program was unloaded, and another one has its place.
    kernel.set(&[(6, 0x5000_0000)]);
    pass(&bpf);
    assert_eq!(bpf.code(0x5000_1010).unwrap().bytes[0], 6);
    assert_eq!(bpf.code(0x4fff_ffff), None);
}
