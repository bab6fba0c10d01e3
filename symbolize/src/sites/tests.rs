use super::code::Code;
use super::entry::{behind_stack_check, choose};
use super::*;

fn decode(bytes: &[u8]) -> Code {
    Code::decode(bytes, LinkAddr(0x1000)).unwrap()
}

#[test]
fn the_first_emulated_instruction_is_behind_the_mark_of_indirect_branches() {
    // endbr64; push %rbp; mov %rsp,%rbp; pop %rbp; ret.
    let code = decode(b"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x5d\xc3");
    let wish = Wish {
        ends: Ends::Replaced,
        whole: ARGUMENTS,
        ..Wish::default()
    };
    let entry = choose(&code, wish).unwrap();
    assert_eq!((entry.number, entry.pushed), (1, 0));
}

#[test]
fn a_return_address_that_moved_is_no_place_to_replace_it() {
    // sub $0x18,%rsp; call +0; add $0x18,%rsp; ret.
    let code = decode(b"\x48\x83\xec\x18\xe8\0\0\0\0\x48\x83\xc4\x18\xc3");
    let count = choose(&code, Wish::default()).unwrap();
    assert_eq!((count.number, count.pushed), (1, 0x18));
    let returns = Wish {
        ends: Ends::Replaced,
        ..Wish::default()
    };
    assert_eq!(choose(&code, returns).unwrap().number, 0);
}

#[test]
fn where_there_are_shadow_stacks_calls_are_left_alone() {
    let wish = Wish {
        spares_calls: true,
        ..Wish::default()
    };
    // sub $0x18,%rsp; call +0; add $0x18,%rsp; ret.
    let code = decode(b"\x48\x83\xec\x18\xe8\0\0\0\0\x48\x83\xc4\x18\xc3");
    assert_eq!(choose(&code, wish).unwrap().number, 0);
    // mov %edi,%eax; call *%rax; ret. Then a call alone.
    let code = decode(b"\x89\xf8\xff\xd0\xc3");
    assert_eq!(choose(&code, wish).unwrap().number, 0);
    let code = decode(b"\xe8\0\0\0\0\xc3");
    assert!(choose(&code, wish).is_none());
    // push %rbp; call +0; ret.
    let code = decode(b"\x55\xe8\0\0\0\0\xc3");
    assert_eq!(choose(&code, wish).unwrap().number, 0);
}

#[test]
fn arguments_have_to_be_whole_if_they_are_wished() {
    // mov $1,%edi; call +0; ret.
    let code = decode(b"\xbf\x01\0\0\0\xe8\0\0\0\0\xc3");
    assert_eq!(choose(&code, Wish::default()).unwrap().number, 1);
    let arguments = Wish {
        whole: ARGUMENTS,
        ..Wish::default()
    };
    assert_eq!(choose(&code, arguments).unwrap().number, 0);
}

#[test]
fn a_loop_that_comes_back_would_be_counted_again() {
    // mov %edi,%eax; (loop) dec %eax; jne loop; ret.
    let code = decode(b"\x89\xf8\xff\xc8\x75\xfc\xc3");
    assert_eq!(choose(&code, Wish::default()).unwrap().number, 0);
    // The same jump to the first instruction is a call of the function by itself, which
    // is counted at any site alike: dec %edi; jne start; ret.
    let code = decode(b"\xff\xcf\x75\xfc\xc3");
    assert_eq!(choose(&code, Wish::default()).unwrap().number, 1);
}

#[test]
fn behind_a_jump_that_is_not_written_only_a_push_is_sure() {
    // mov %edi,%eax; nop; jmp *%rax.
    let code = decode(b"\x89\xf8\x90\xff\xe0");
    assert_eq!(choose(&code, Wish::default()).unwrap().number, 0);
    // mov %edi,%eax; push %rbx; jmp *%rax.
    let code = decode(b"\x89\xf8\x53\xff\xe0");
    assert_eq!(choose(&code, Wish::default()).unwrap().number, 1);
}

#[test]
fn go_is_counted_at_the_branch_of_its_stack_check() {
    // cmp 0x10(%r14),%rsp; jbe +5; push %rbp; pop %rbp; ret; nop; jmp start.
    let code = decode(b"\x49\x3b\x66\x10\x76\x05\x55\x5d\xc3\x90\x90\xeb\xf3");
    let wish = Wish {
        ends: Ends::Replaced,
        whole: GO_ARGUMENTS,
        ..Wish::default()
    };
    let entry = behind_stack_check(&code, wish).unwrap();
    assert_eq!((entry.number, entry.pushed), (1, 0));
    // lea -0x40(%rsp),%r12; cmp 0x10(%r14),%r12; jbe.
    let code = decode(b"\x4c\x8d\x64\x24\xc0\x4d\x3b\x66\x10\x76\x00\xc3");
    assert_eq!(behind_stack_check(&code, wish).unwrap().number, 2);
    // A function without a check: sub $0x18,%rsp; ret.
    let code = decode(b"\x48\x83\xec\x18\xc3");
    assert_eq!(behind_stack_check(&code, wish), None);
}

#[test]
fn what_the_kernel_refuses_is_no_site() {
    // lock addq $1,(%rdi); lea 1(%rdi),%rax; ret.
    let code = decode(b"\xf0\x48\x83\x07\x01\x48\x8d\x47\x01\xc3");
    assert_eq!(choose(&code, Wish::default()).unwrap().number, 1);
    // lock addq $1,(%rdi); ret: the `ret` is the only other one.
    let code = decode(b"\xf0\x48\x83\x07\x01\xc3");
    assert_eq!(choose(&code, Wish::default()).unwrap().number, 1);
    // lock addq $1,(%rdi); jmp start.
    let code = decode(b"\xf0\x48\x83\x07\x01\xf0\x48\x83\x07\x01\xf4");
    assert_eq!(choose(&code, Wish::default()), None);
}

#[test]
fn a_jump_into_another_file_is_no_jump_to_anywhere() {
    // lock incq x(%rip); cmp $0x20,%rsi; jmp *y(%rip): the first takes no probe.
    let code = decode(b"\xf0\x48\xff\x05\0\0\x01\0\x48\x83\xfe\x20\xff\x25\0\0\x02\0");
    assert!(!code.has_indirect_jumps);
    assert_eq!(choose(&code, Wish::default()).unwrap().number, 1);
    // The same with a jump that a register decides on.
    let code = decode(b"\xf0\x48\xff\x05\0\0\x01\0\x48\x83\xfe\x20\xff\xe0");
    assert_eq!(choose(&code, Wish::default()), None);
}
