//! Checks the stacks of all programs. Kernels before 6.13 refuse a program if it needs more than
//! 512 bytes together with what it calls, where that is deepest; newer ones may give each function
//! as many. There each frame counts as a multiple of 32 bytes; since 6.8 often of 16.

use super::objects::BpfObject;
use aya_obj::Object;
use aya_obj::generated::bpf_insn;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// As the kernel's `MAX_BPF_STACK` and `MAX_CALL_FRAMES`.
const STACK_BYTES: u32 = 512;
const FRAMES_MAX: usize = 8;

/// As in uapi/linux/bpf.h: the register of the frame, the operations that are looked for, and
/// the kinds of source that make an operand a function of the same program.
const FRAME: u8 = 10;
const CALL: u8 = 0x85;
const MOVE: u8 = 0xbf;
const ADD: u8 = 0x07;
const LOAD_ADDRESS: u8 = 0x18;
const PSEUDO_CALL: u8 = 1;
const PSEUDO_FUNCTION: u8 = 4;

/// A function of a program: the bytes of its own frame, and where the functions begin that it calls,
/// or that it gives to a helper to call.
#[derive(Default)]
struct Function {
    bytes: u32,
    called: BTreeSet<usize>,
}

/// Returns the functions of a program, by the place of their first instruction.
fn functions(code: &[bpf_insn]) -> BTreeMap<usize, Function> {
    let mut functions = BTreeMap::from([(0, Function::default())]);
    let target = |at: usize| (at as i64 + 1 + i64::from(code[at].imm)) as usize;
    let is_reference = |at: &usize| {
        let kind = (code[*at].code, code[*at].src_reg());
        kind == (CALL, PSEUDO_CALL) || kind == (LOAD_ADDRESS, PSEUDO_FUNCTION)
    };
    let references: Vec<usize> = (0..code.len()).filter(is_reference).collect();
    for at in &references {
        functions.entry(target(*at)).or_default();
    }
    let own = |at: usize| function_at(&functions, at);
    let calls: Vec<(usize, usize)> = references
        .iter()
        .map(|at| (own(*at), target(*at)))
        .collect();
    let mut frames = Vec::new();
    for (at, instruction) in code.iter().enumerate() {
        let is_memory = matches!(instruction.code & 7, 1..=3);
        let at_frame = [instruction.dst_reg(), instruction.src_reg()].contains(&FRAME);
        if is_memory && at_frame && instruction.off < 0 {
            frames.push((own(at), u32::from(instruction.off.unsigned_abs())));
        }
        // The address of something in the frame: r10 is copied, and a number added.
        let is_copy = instruction.code == MOVE && instruction.src_reg() == FRAME;
        if is_copy && let Some(next) = code.get(at + 1) {
            let is_sum = next.code == ADD && next.dst_reg() == instruction.dst_reg();
            assert!(is_sum, "the frame's own address is used at {at}");
            frames.push((own(at), next.imm.unsigned_abs()));
        }
    }
    for (function, called) in calls {
        functions
            .get_mut(&function)
            .expect("its own")
            .called
            .insert(called);
    }
    for (function, bytes) in frames {
        let function = functions.get_mut(&function).expect("its own");
        function.bytes = function.bytes.max(bytes);
    }
    functions
}

/// Returns where the function begins that an instruction belongs to.
fn function_at(functions: &BTreeMap<usize, Function>, at: usize) -> usize {
    let before = functions.range(..=at).next_back();
    *before.expect("one begins at 0").0
}

/// Returns the most bytes and frames that a function and what it calls need.
fn depth(functions: &BTreeMap<usize, Function>, from: usize) -> (u32, usize) {
    let function = &functions[&from];
    let deepest = function
        .called
        .iter()
        .map(|called| depth(functions, *called));
    let (bytes, frames) = deepest.fold((0, 0), |a, b| (a.0.max(b.0), a.1.max(b.1)));
    (
        bytes + function.bytes.max(1).next_multiple_of(32),
        frames + 1,
    )
}

fn check(object: &BpfObject) {
    let mut parsed = Object::parse(&object.bytes).expect("our own");
    let sections: HashSet<usize> = parsed
        .functions
        .keys()
        .map(|(section, _)| *section)
        .collect();
    parsed.relocate_calls(&sections).expect("our own");
    assert!(!parsed.programs.is_empty());
    for (name, program) in &parsed.programs {
        let function = &parsed.functions[&program.function_key()];
        let (bytes, frames) = depth(&functions(&function.instructions), 0);
        println!("{name}: {bytes} bytes in {frames} frames");
        assert!(bytes <= STACK_BYTES, "{name}: {bytes} bytes");
        assert!(frames <= FRAMES_MAX, "{name}: {frames} frames");
    }
}

#[test]
fn programs_need_no_more_stack_than_older_kernels_give() {
    check(&BpfObject::usual());
    if let Some(object) = BpfObject::without_loop() {
        check(&object);
    }
    let of_arm = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../assets/proftop.aarch64.bpf.o"
    );
    check(&BpfObject {
        bytes: std::fs::read(of_arm).expect("it is committed"),
        is_without_loop: false,
    });
}
