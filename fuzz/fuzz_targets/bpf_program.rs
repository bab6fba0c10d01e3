//! What the kernel tells of a BPF program. Its BTF was written by whoever loaded it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use symbolize::kernel::{BpfExtent, BpfProgram, BpfProgramInfo, Btf};

const BASE: u64 = 0xffff_ffff_c000_0000;

// Three lengths, then functions, lines, and where their code is; the rest is BTF.
fuzz_target!(|bytes: &[u8]| {
    let Some((&[functions, lines, addrs], mut rest)) = bytes.split_first_chunk() else {
        return;
    };
    let mut take = |len: u8, size: usize| {
        let (taken, behind) = rest.split_at(rest.len().min(usize::from(len) * size));
        rest = behind;
        taken.to_vec()
    };
    let (functions, lines, addrs) = (take(functions, 8), take(lines, 16), take(addrs, 2));
    let (offsets, _) = addrs.as_chunks::<2>();
    let info = BpfProgramInfo {
        extents: (0..functions.len() as u64 / 8)
            .map(|index| BpfExtent {
                start: BASE + 256 * index,
                len: 200,
            })
            .collect(),
        functions,
        function_bytes: 8,
        lines,
        line_bytes: 16,
        line_addrs: offsets
            .iter()
            .map(|offset| BASE + u64::from(u16::from_le_bytes(*offset)))
            .collect(),
        btf: rest.to_vec(),
    };
    let program = BpfProgram::new(&info);
    assert!(program.heap_bytes() <= (17 << 20) + 64 * bytes.len());
    for addr in (BASE - 1..BASE + 0x2000).step_by(17) {
        if let Some(place) = program.find(addr) {
            assert!(place.line == 0 || !place.file.is_empty());
        }
    }
    if let Some(btf) = Btf::parse(&info.btf) {
        for number in [0, 1, 2, 7, u32::MAX] {
            _ = (btf.type_name(number), btf.type_name_above(&btf, number));
        }
    }
});
