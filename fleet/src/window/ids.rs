//! Computes numbers of frames and stacks that are the same on every host without a central
//! registry: hashes of their identity, not of where they were loaded.

use super::{Frame, Kind};
use sha2::{Digest as _, Sha256};
use std::iter;

/// Number of bits of a number. Sorted numbers take half as many bytes in a file as those of 64 bits,
/// and of 100 million stacks some 18 pairs have the same number.
const NUMBER_BITS: u32 = 48;

/// Returns the number of a frame: for native code from its file, by build-id, and its functions with
/// their source lines; without a name from the position in the file. Otherwise from names. The
/// kernel has other addresses after each boot, so its functions are identified by name as well.
///
/// Without the position, all instructions of a function are one frame. With it, most stacks would
/// occur only once, as each sample stops at another instruction.
pub fn frame(frame: &Frame) -> u64 {
    let name = frame.functions.last().map_or("", |it| &*it.name);
    let file = frame.functions.last().map_or("", |it| &*it.file);
    match frame.kind {
        Kind::Native if !frame.functions.is_empty() => {
            let of_file = if frame.build_id.is_empty() {
                frame.module.as_bytes()
            } else {
                &frame.build_id
            };
            let lines: Vec<[u8; 4]> = frame
                .functions
                .iter()
                .map(|it| it.line.to_le_bytes())
                .collect();
            let functions = frame.functions.iter().zip(&lines);
            let functions =
                functions.flat_map(|(it, line)| [it.name.as_bytes(), it.file.as_bytes(), line]);
            let parts: Vec<&[u8]> = iter::once(of_file).chain(functions).collect();
            hash(b"f", &parts)
        }
        Kind::Native if !frame.build_id.is_empty() => {
            hash(b"b", &[&frame.build_id, &frame.address.to_le_bytes()])
        }
        Kind::Native => hash(
            b"m",
            &[frame.module.as_bytes(), &frame.address.to_le_bytes()],
        ),
        Kind::Kernel if name.is_empty() => {
            hash(b"a", &[&frame.build_id, &frame.address.to_le_bytes()])
        }
        Kind::Kernel => hash(b"k", &[name.as_bytes()]),
        // Without a name nothing about it is the same elsewhere.
        Kind::Jit if name.is_empty() => hash(b"j", &[frame.module.as_bytes()]),
        Kind::Jit | Kind::Python | Kind::Note => {
            let kind = [frame.kind as u8];
            hash(b"n", &[&kind, name.as_bytes(), file.as_bytes()])
        }
    }
}

/// Returns the number of a stack from those of its frames, innermost first.
pub fn stack(frames: impl Iterator<Item = u64>) -> u64 {
    let mut hash = Sha256::new();
    hash.update(b"s");
    frames.for_each(|id| hash.update(id.to_le_bytes()));
    first(&hash.finalize())
}

/// Returns a UUID for a part of a window, which is the same each time that it is sent: version 8 of
/// RFC 9562.
pub fn uuid(parts: &[&[u8]]) -> [u8; 16] {
    let digest = digest(b"u", parts);
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&digest[..16]);
    uuid[6] = uuid[6] & 0x0f | 0x80;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}

/// Formats a UUID.
pub fn uuid_text(uuid: &[u8; 16]) -> String {
    let hex = hex(uuid);
    let [a, b, c, d, e] = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &hex[range]);
    format!("{a}-{b}-{c}-{d}-{e}")
}

/// Formats bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash(kind: &[u8], parts: &[&[u8]]) -> u64 {
    first(&digest(kind, parts))
}

/// Hashes each part with its length, so that different lists never give the same bytes.
fn digest(kind: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(kind);
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

fn first(digest: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(bytes) >> (u64::BITS - NUMBER_BITS)
}

#[cfg(test)]
mod tests {
    use super::super::Function;
    use super::*;
    use std::sync::Arc;

    fn native(build_id: &[u8], address: u64, name: &str) -> Frame {
        Frame {
            id: 0,
            kind: Kind::Native,
            module: "libc.so.6".into(),
            path: "/usr/lib/libc.so.6".into(),
            build_id: build_id.into(),
            address,
            functions: [Function {
                name: name.into(),
                file: "".into(),
                line: 0,
            }]
            .into(),
        }
    }

    #[test]
    fn a_function_is_one_frame_and_without_a_name_each_place_is_one() {
        let named = native(&[1; 20], 16, "memcpy");
        assert_eq!(frame(&named), frame(&native(&[1; 20], 17, "memcpy")));
        assert_ne!(frame(&named), frame(&native(&[2; 20], 16, "memcpy")));
        assert_ne!(frame(&named), frame(&native(&[1; 20], 16, "memmove")));
        let mut on_a_line = named.clone();
        Arc::make_mut(&mut on_a_line.functions)[0].line = 7;
        assert_ne!(frame(&named), frame(&on_a_line));
        let mut inlined = named.clone();
        inlined.functions = [&*named.functions, &*named.functions].concat().into();
        assert_ne!(frame(&named), frame(&inlined));
        let unnamed = |address| Frame {
            functions: [].into(),
            address,
            ..named.clone()
        };
        assert_eq!(frame(&unnamed(16)), frame(&unnamed(16)));
        assert_ne!(frame(&unnamed(16)), frame(&unnamed(17)));
        assert_ne!(frame(&unnamed(16)), frame(&named));
    }

    #[test]
    fn numbers_have_no_more_than_their_bits() {
        let numbers = (0..1000).map(|at| frame(&native(&[1; 20], 16, &format!("f{at}"))));
        let all = numbers.fold(0, |all, it| all | it);
        assert_eq!(all, (1 << NUMBER_BITS) - 1);
    }

    #[test]
    fn a_function_of_the_kernel_is_the_same_after_each_start() {
        let kernel = |address| Frame {
            kind: Kind::Kernel,
            ..native(&[], address, "schedule")
        };
        assert_eq!(frame(&kernel(1)), frame(&kernel(2)));
    }

    #[test]
    fn a_uuid_is_one() {
        let text = uuid_text(&uuid(&[b"spool", b"1"]));
        assert_eq!(text, uuid_text(&uuid(&[b"spool", b"1"])));
        assert_ne!(text, uuid_text(&uuid(&[b"spool1", b""])));
        assert_eq!((text.len(), &text[14..15]), (36, "8"));
    }
}
