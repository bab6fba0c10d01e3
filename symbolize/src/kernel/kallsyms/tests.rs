use super::*;
use proptest::prelude::*;

const TEXT: &[u8] = b"\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T start_kernel
ffffffff81000040 t __pfx_helper
ffffffff81000050 t helper
ffffffff81000050 t __helper
ffffffff81000100 W weak_one
ffffffff81000180 t $d
ffffffff81000200 T _etext
ffffffff81400000 D some_data
ffffffff82000000 t early_init
ffffffffc0001000 t mod_read\t[ext4]
ffffffffc0000800 t mod_write\t[ext4]
ffffffffc0002000 t bpf_prog_6deef7357e7b4530_sd_fw_egress\t[bpf]
ffffffffc0002100 t bpf_prog_6deef7357e7b4530\t[bpf]
ffffffffc0002200 t bpf_trampoline_6442\t[bpf]
";

#[track_caller]
fn check(addr: u64, expected: Result<(&str, Option<&str>, u64), Reason>) {
    let symbols = KernelSymbols::parse(TEXT);
    let found = symbols.find(addr).map(|s| (s.name, s.module, s.offset));
    assert_eq!(found, expected, "{addr:#x}");
}

/// A reader that gives a few bytes at a time.
struct Slow<'t>(&'t [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let some = self.1.min(room.len());
        self.0.read(&mut room[..some])
    }
}

#[test]
fn a_text_that_is_read_in_pieces_is_the_same() {
    // Longer than a piece, with a line that is longer than a piece, and a last line without an end.
    let mut text = b"ffffffff81000000 T start_kernel\n".to_vec();
    text.extend(std::iter::repeat_n(b'x', 2 * PIECE_BYTES));
    text.push(b'\n');
    for number in 0..5_000u64 {
        let line = format!("{:016x} t f{number}\n", 0xffff_ffff_8200_0000 + number * 16);
        text.extend(line.as_bytes());
    }
    text.extend(b"ffffffff83000000 t last");
    let whole = KernelSymbols::parse(&text);
    assert_eq!(whole.len(), 5_002);
    for step in [1, 7, 4_096, usize::MAX] {
        let read = KernelSymbols::read(Slow(&text, step)).expect("a text");
        assert_eq!(read.len(), whole.len(), "{step}");
        for addr in [0x8100_0000u64, 0x8200_0010, 0x8201_3870, 0x8300_0004] {
            let addr = 0xffff_ffff_0000_0000 | addr;
            let of =
                |symbols: &KernelSymbols| symbols.find(addr).map(|found| found.name.to_owned());
            assert_eq!(of(&read), of(&whole), "{step} {addr:#x}");
        }
    }
}

#[test]
fn functions_extend_to_the_next_one() {
    check(0xffffffff81000000, Ok(("start_kernel", None, 0)));
    check(0xffffffff8100004f, Ok(("start_kernel", None, 0x4f)));
    check(0xffffffff81000050, Ok(("helper", None, 0)));
    check(0xffffffff810001ff, Ok(("weak_one", None, 0xff)));
    check(0xffffffffc0000fff, Ok(("mod_write", Some("ext4"), 0x7ff)));
    check(0xffffffffc0001000, Ok(("mod_read", Some("ext4"), 0)));
}

#[test]
fn the_nearest_name_is_not_given_to_what_is_far() {
    for addr in [
        0,
        0xffffffff80ffffff,
        0xffffffff81000200, // _etext
        0xffffffff81400000, // data
        0xffffffff82000000 + LAST_FUNCTION_BYTES_MAX,
        0xffffffffc00007ff,
        0xffffffffc0002200 + LAST_FUNCTION_BYTES_MAX,
        u64::MAX,
    ] {
        check(addr, Err(Reason::NotCovered));
    }
}

#[test]
fn bpf_programs_show_as_their_names() {
    let symbols = KernelSymbols::parse(TEXT);
    let program = symbols.find(0xffffffffc0002010).unwrap();
    assert_eq!(program.name, "sd_fw_egress");
    assert!(program.bpf);
    let nameless = symbols.find(0xffffffffc0002100).unwrap();
    assert_eq!(nameless.name, "bpf_prog_6deef7357e7b4530");
    let trampoline = symbols.find(0xffffffffc0002210).unwrap();
    assert_eq!(
        (trampoline.name, trampoline.bpf),
        ("bpf_trampoline_6442", true)
    );
    assert!(!symbols.find(0xffffffff81000000).unwrap().bpf);
}

#[test]
fn zeros_mean_hidden() {
    let zeros = b"0000000000000000 T start_kernel\n0000000000000000 t helper\n";
    for text in [&zeros[..], b""] {
        let symbols = KernelSymbols::parse(text);
        assert!(symbols.is_hidden());
        assert_eq!(symbols.find(0xffffffff81000000), Err(Reason::KernelHidden));
    }
}

#[test]
fn odd_lines_are_skipped() {
    let symbols = KernelSymbols::parse(
        b"\n \nT\nffffffff81000000\nffffffff81000000 T\nffffffff81000000 T \n\
          ffffffff8100000011 T long\nxyz T name\nffffffff81000010 T \xff\n\
          ffffffff81000020 T last [",
    );
    assert_eq!(symbols.len(), 1);
    assert_eq!(symbols.find(0xffffffff81000021).unwrap().name, "last");
}

#[test]
fn this_kernel() {
    let symbols = KernelSymbols::load();
    if symbols.is_hidden() {
        test_support::skip("the kernel hides its symbols");
        return;
    }
    assert!(symbols.len() > 10_000);
    let text = std::fs::read_to_string("/proc/kallsyms").unwrap();
    let line = text.lines().find(|line| line.ends_with(" T vfs_read"));
    let addr = line.and_then(|line| line.split(' ').next()).unwrap();
    let addr = u64::from_str_radix(addr, 16).unwrap();
    let found = symbols.find(addr + 3).unwrap();
    assert_eq!(
        (found.name, found.start, found.offset),
        ("vfs_read", addr, 3)
    );
}

proptest! {
    #[test]
    fn any_text_is_survived(
        text in "([0-9a-f]{0,17}[ \\t]?[tTDw]?[ ]?[a-z_$]{0,9}(\\t\\[[a-z]{0,4}\\])?\n)*",
        addrs in proptest::collection::vec(any::<u64>(), 10),
    ) {
        let symbols = KernelSymbols::parse(text.as_bytes());
        for addr in addrs {
            if let Ok(found) = symbols.find(addr) {
                prop_assert_eq!(found.start + found.offset, addr);
                prop_assert!(found.offset < FUNCTION_BYTES_MAX);
            }
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        KernelSymbols::parse(&bytes);
    }
}

#[test]
fn hidden_addresses_are_not_read_to_the_end() {
    let text = "0000000000000000 T hidden\n".repeat(100_000);
    let mut left = text.as_bytes();
    let symbols = KernelSymbols::read(&mut left).unwrap();
    assert!(symbols.is_hidden());
    assert!(left.len() > text.len() / 2);
}
