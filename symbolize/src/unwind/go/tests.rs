use super::code::frame_pointer;
use super::*;
use crate::unwind::rule::Goroutine;

/// Converts the bytes in lines of objdump.
fn bytes(text: &str) -> Vec<u8> {
    let digits = text.split_whitespace();
    let byte = |digits| u8::from_str_radix(digits, 16).unwrap();
    digits.map(byte).collect()
}

#[test]
fn the_frame_pointer_is_pushed() {
    // push %rbp; mov %rsp,%rbp; sub $0x18,%rsp
    let code = bytes("55 48 89 e5 48 83 ec 18");
    let expected = FramePointer {
        slot: -16,
        saved_from: 1,
        set_from: Some(4),
        delta: 8,
    };
    assert_eq!(frame_pointer(&code, 8, 1), Some(expected));
    // Another register is pushed.
    assert_eq!(frame_pointer(&bytes("50 48 89 e5"), 8, 1), None);
    assert_eq!(frame_pointer(&[], 8, 1), None);
}

#[test]
fn the_frame_pointer_is_stored() {
    // sub $0x30,%rsp; mov %rbp,0x28(%rsp); lea 0x28(%rsp),%rbp
    let code = bytes("30 48 89 6c 24 28 48 8d 6c 24 28");
    let expected = FramePointer {
        slot: -16,
        saved_from: 9,
        set_from: Some(14),
        delta: 0x30,
    };
    assert_eq!(frame_pointer(&code, 0x30, 4), Some(expected));
    // sub $0x220,%rsp; mov %rbp,0x218(%rsp); lea 0x218(%rsp),%rbp
    let code = bytes("00 48 89 ac 24 18 02 00 00 48 8d ac 24 18 02 00 00");
    let expected = FramePointer {
        slot: -16,
        saved_from: 15,
        set_from: Some(23),
        delta: 0x220,
    };
    assert_eq!(frame_pointer(&code, 0x220, 7), Some(expected));
    // rbp is saved at another place, as C does it.
    let code = bytes("30 48 89 6c 24 08 48 89 1c 24");
    let expected = FramePointer {
        slot: -48,
        saved_from: 9,
        set_from: None,
        delta: 0x30,
    };
    assert_eq!(frame_pointer(&code, 0x30, 4), Some(expected));
}

fn rows(rows: &[(u64, UnwindRule)]) -> Vec<GoRow> {
    let row = |(start, rule)| GoRow { start, rule };
    rows.iter().copied().map(row).collect()
}

fn frame(offset: i32) -> UnwindRule {
    UnwindRule::frame(Register::Rsp, offset, RbpRule::Same)
}

#[test]
fn parts_go_over_rows() {
    let part = |start, end| switch::RuleSpan {
        start,
        end,
        rule: UnwindRule::EndOfStack,
    };
    let mut list = rows(&[(0, frame(8)), (10, frame(16)), (20, frame(8))]);
    switch::apply(&[part(5, 15)], &mut list);
    let expected = [
        (0, frame(8)),
        (5, UnwindRule::EndOfStack),
        (15, frame(16)),
        (20, frame(8)),
    ];
    assert_eq!(list, rows(&expected));
    // A part from one row to the next.
    let mut list = rows(&[(0, frame(8)), (10, frame(16)), (20, frame(8))]);
    switch::apply(&[part(10, 20)], &mut list);
    let expected = [(0, frame(8)), (10, UnwindRule::EndOfStack), (20, frame(8))];
    assert_eq!(list, rows(&expected));
}

/// `runtime.asmcgocall` of Go 1.24, from the change of stacks.
const ASMCGOCALL: &str = "
    48 8b 66 38  48 83 ec 10  48 83 e4 f0  48 89 7c 24 08  48 8b 7f 08
    48 29 d7  48 89 3c 24  e8 7c ff ff ff  48 8b 7c 24 08  48 8b 77 08
    48 2b 34 24  64 48 89 3c 25 f8 ff ff ff  48 89 f4  89 44 24 20  5d  c3
    48 83 ec 10  48 83 e4 f0  48 c7 44 24 08 00 00 00 00  48 89 14 24
    e8 43 ff ff ff  48 8b 34 24  48 89 f4  89 44 24 20  5d  c3";

#[test]
fn calls_of_c() {
    let code = bytes(ASMCGOCALL);
    let with_frame = rows(&[(0, UnwindRule::StackSwitch)]);
    let parts = Layout::default().parts(b"runtime.asmcgocall", &code, &with_frame);
    let rule = UnwindRule::CgoCall {
        goroutine: 8,
        above: 16,
        rbp: RbpRule::AtCfa(-16),
    };
    let found: Vec<_> = parts.iter().map(|p| (p.start, p.end, p.rule)).collect();
    // Both calls, up to where the stack is left.
    assert_eq!(found, [(28, 55, rule), (85, 94, rule)]);
    // Code that is cut does not cause a panic.
    for cut in 0..code.len() {
        let _ = Layout::default().parts(b"runtime.asmcgocall", &code[..cut], &[]);
    }
}

/// `runtime.systemstack` of Go 1.19, from the change of stacks.
const SYSTEMSTACK: &str = "
    48 8b 5a 38  48 89 dc  48 89 fa  48 8b 3f  ff d7
    48 8b 58 30  48 8b 83 c0 00 00 00  48 8b 60 38  c3  48 89 fa  ff e7";

#[test]
fn work_for_a_goroutine() {
    let code = bytes(SYSTEMSTACK);
    let layout = Layout::default();
    let parts = layout.parts(b"runtime.systemstack", &code, &[]);
    let rule = UnwindRule::Goroutine(Goroutine {
        current: 0,
        rbp: 0,
        is_called: true,
    });
    let found: Vec<_> = parts.iter().map(|p| (p.start, p.end, p.rule)).collect();
    assert_eq!(found, [(7, 30, rule)]);
    // Later versions have a frame pointer there, which leads back.
    let with_frame = rows(&[(0, UnwindRule::StackSwitch)]);
    assert_eq!(layout.parts(b"runtime.systemstack", &code, &with_frame), []);
    // The stack ends where the scheduler takes over.
    let parts = layout.parts(b"runtime.mcall", &code, &[]);
    assert_eq!((parts[0].start, parts[0].rule), (7, UnwindRule::EndOfStack));
}
