//! Values for each address of a function: the file, the line, the inlined call. They are stored as
//! pairs of differences, of the value and of the address.

use super::table::Table;

/// Maximum size of the table of one function: the largest known functions, which generators wrote,
/// stay below 1 MiB.
const BYTES_MAX: usize = 4 << 20;

const WINDOW_BYTES: usize = 512;

/// Returns the value for the address `target` from the table that starts at `offset`; `None` if
/// there is none. `start` is the start of the function.
pub fn value_at(table: &Table, offset: u64, start: u64, target: u64) -> Option<i32> {
    let mut bytes = Bytes {
        table,
        next: offset,
        window: [0; WINDOW_BYTES],
        have: 0,
        at: 0,
        left: BYTES_MAX,
    };
    let mut value = -1i32;
    let mut pc = start;
    let mut is_first = true;
    loop {
        let delta = bytes.varint()?;
        if delta == 0 && !is_first {
            return None;
        }
        is_first = false;
        // Zigzag encoding: the sign is in the lowest bit.
        let change = (delta >> 1) as i32 ^ -((delta & 1) as i32);
        value = value.wrapping_add(change);
        let step = u64::from(bytes.varint()?) * u64::from(table.header.quantum);
        pc = pc.checked_add(step)?;
        if target < pc {
            return Some(value);
        }
    }
}

struct Bytes<'t> {
    table: &'t Table,
    next: u64,
    window: [u8; WINDOW_BYTES],
    have: usize,
    at: usize,
    left: usize,
}

impl Bytes<'_> {
    fn byte(&mut self) -> Option<u8> {
        if self.at == self.have {
            self.left = self.left.checked_sub(self.have)?;
            self.have = self.table.read(self.next, &mut self.window);
            self.next += self.have as u64;
            self.at = 0;
        }
        let byte = *self.window[..self.have].get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u32> {
        let mut value = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}
