//! Finds all parts of a function that a compiler has put into several places, without any symbols:
//! by the targets of its jumps, and by the function starts in unwind information.
//!
//! GCC moves code that is rarely executed according to a profile to another section, `NAME.cold`.
//! For the loop of CPython 3.14 that is 84 of 85 KiB, and stripped files have no symbol for it.

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl};

use crate::object::Object;
use crate::unwind::{Extents, Register, UnwindRule, UnwindTable};
use crate::{LinkAddr, OpenError};

/// Maximum number of parts of one function. Compilers make two or three.
const PARTS_MAX: usize = 8;

/// Maximum size of one part. The largest known loop has 130 KiB.
const BYTES_MAX: u64 = 1 << 20;

/// Returns all parts of the functions of which some are known. A jump leads to another part if its
/// target is
///
/// 1. in the middle of an entry of unwind information: a call of another function would lead to its
///    start;
/// 2. or at the start of an entry that begins with a frame already on the stack.
pub fn all_parts(object: &Object, known: Vec<Range<u64>>) -> Result<Vec<Range<u64>>, OpenError> {
    let extents = Extents::read(object)?;
    let mut table = None;
    let mut parts = known;
    for part in &mut parts {
        // The size of a symbol may be that of one part, or missing.
        if let Some(extent) = extents.find(object, LinkAddr(part.start)) {
            part.end = part.end.max(extent.end);
        }
    }
    let mut next = 0;
    while let Some(part) = parts.get(next).cloned() {
        next += 1;
        for target in targets(object, &part) {
            if parts.len() >= PARTS_MAX || parts.iter().any(|part| part.contains(&target)) {
                continue;
            }
            let Some(extent) = extents.find(object, LinkAddr(target)) else {
                continue;
            };
            let is_part = target != extent.start || {
                let table = match &mut table {
                    Some(table) => table,
                    None => table.insert(UnwindTable::read(object)?),
                };
                has_frame(table.lookup(LinkAddr(target)))
            };
            if is_part {
                parts.push(extent);
            }
        }
    }
    Ok(parts)
}

/// Whether a rule differs from those at the start of a function.
fn has_frame(rule: Option<UnwindRule>) -> bool {
    let Some(UnwindRule::Frame { cfa, .. } | UnwindRule::FrameWithRbx { cfa, .. }) = rule else {
        return false;
    };
    cfa.deref || cfa.base != Register::Rsp || cfa.offset != 8
}

/// The targets of jumps that are outside of a part.
fn targets(object: &Object, part: &Range<u64>) -> Vec<u64> {
    let Some(offset) = object.segments().to_file(LinkAddr(part.start)) else {
        return Vec::new();
    };
    let len = (part.end - part.start).min(BYTES_MAX);
    let Ok(bytes) = object.source().read(offset.0, len, "a function's code") else {
        return Vec::new();
    };
    let mut decoder = Decoder::with_ip(64, &bytes, part.start, DecoderOptions::NONE);
    let mut targets = Vec::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        // What follows may be data.
        if instruction.is_invalid() {
            break;
        }
        let is_jump = matches!(
            instruction.flow_control(),
            FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch
        );
        let target = instruction.near_branch_target();
        if is_jump && !part.contains(&target) {
            targets.push(target);
        }
    }
    targets.sort_unstable();
    targets.dedup();
    targets
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::process::Command;
    use test_support::{Scratch, compile, run_tool};

    /// A function whose rare part makes many calls, and one that it ends in a jump to.
    const SOURCE: &str = r#"
        __attribute__((noinline, cold)) void rare(int n) { __asm__ volatile("" :: "r"(n)); }
        __attribute__((noinline)) int other(int n) { __asm__ volatile("" : "+r"(n)); return n; }
        __attribute__((noinline)) int loop(volatile int *at, int n) {
            int sum = 0, kept[16];
            __asm__ volatile("" :: "r"(kept) : "memory");
            for (int i = 0; i < n; i++) {
                sum += at[i & 7];
                if (sum < 0) { rare(sum); rare(kept[i & 15]); kept[sum & 15] = at[1]; }
            }
            return other(sum + kept[n & 15]);
        }
        int main(int argc, char **argv) {
            volatile int numbers[8] = { argc, 1, 2, 3, 4, 5, 6, 7 };
            return loop(numbers, argc * 3) + argv[0][0];
        }
    "#;

    #[test]
    fn a_part_without_a_name_is_found_by_the_jumps_to_it() {
        let scratch = Scratch::new();
        let source = scratch.write("split.c", SOURCE);
        let program = scratch.join("split");
        let flags = ["-O2", "-fno-inline", "-fno-ipa-sra", "-fcf-protection=none"];
        if compile(&source, &program, flags).is_none() {
            return;
        }
        let Some(listed) = run_tool(Command::new("nm").arg("-S").arg(&program)) else {
            return;
        };
        let listed = String::from_utf8(listed.stdout).unwrap();
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let place = |name: &str| {
            let is_it = |line: &&str| line.split(' ').next_back() == Some(name);
            let mut words = listed.lines().find(is_it)?.split(' ');
            let start = number(words.next()?);
            Some(start..start + number(words.next()?))
        };
        let own = place("loop").unwrap();
        let Some(cold) = place("loop.cold") else {
            test_support::skip("this compiler keeps rare code where it is");
            return;
        };
        if run_tool(Command::new("strip").arg(&program)).is_none() {
            return;
        }
        let object = Object::read(&File::open(&program).unwrap()).unwrap();
        let parts = all_parts(&object, vec![own.clone()]).unwrap();
        assert_eq!(parts.len(), 2, "{parts:x?}, {listed}");
        assert!(parts[0].start == own.start && parts[0].end >= own.end);
        assert!(parts[1].start <= cold.start && cold.end <= parts[1].end);
    }
}
