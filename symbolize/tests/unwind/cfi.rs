//! Sections of call frame information, made by hand. Addresses are absolute.

/// A section: `.eh_frame` or `.debug_frame`.
#[derive(Debug, Clone)]
pub struct Cfi {
    pub data: Vec<u8>,
    is_debug: bool,
    cie: usize,
}

/// The contents of a CIE besides its instructions.
#[derive(Debug, Clone, Copy)]
pub struct Common {
    pub augmentation: &'static [u8],
    pub code_alignment: u8,
    /// Signed, one byte of LEB128: -64 to 63.
    pub data_alignment: i8,
    pub return_address: u8,
}

impl Default for Common {
    fn default() -> Common {
        Common {
            augmentation: b"",
            code_alignment: 1,
            data_alignment: -8,
            return_address: 16,
        }
    }
}

/// What every CIE of x86-64 starts with: `DW_CFA_def_cfa: rsp, 8;
/// DW_CFA_offset: rip at cfa-8`.
pub const ENTRY: &[u8] = &[0x0c, 7, 8, 0x90, 1];

impl Cfi {
    pub fn eh_frame() -> Cfi {
        Cfi {
            data: Vec::new(),
            is_debug: false,
            cie: 0,
        }
    }

    pub fn debug_frame() -> Cfi {
        Cfi {
            is_debug: true,
            ..Cfi::eh_frame()
        }
    }

    /// Adds a CIE for the FDEs that follow.
    pub fn cie(mut self, common: Common, instructions: &[u8]) -> Cfi {
        self.cie = self.data.len();
        let id: u32 = if self.is_debug { u32::MAX } else { 0 };
        let mut entry = id.to_le_bytes().to_vec();
        entry.push(1);
        entry.extend(common.augmentation);
        entry.push(0);
        entry.push(common.code_alignment);
        entry.push(common.data_alignment as u8 & 0x7f);
        entry.push(common.return_address);
        if common.augmentation.starts_with(b"z") {
            entry.push(0);
        }
        entry.extend(instructions);
        self.entry(&entry);
        self
    }

    pub fn fde(mut self, start: u64, len: u64, instructions: &[u8]) -> Cfi {
        let id = if self.is_debug {
            self.cie
        } else {
            self.data.len() + 4 - self.cie
        };
        let mut entry = (id as u32).to_le_bytes().to_vec();
        entry.extend(start.to_le_bytes());
        entry.extend(len.to_le_bytes());
        entry.extend(instructions);
        self.entry(&entry);
        self
    }

    /// Adds an FDE of a CIE with an augmentation that starts with `z`.
    pub fn fde_z(self, start: u64, len: u64, instructions: &[u8]) -> Cfi {
        self.fde(start, len, &[&[0], instructions].concat())
    }

    pub fn raw(mut self, bytes: &[u8]) -> Cfi {
        self.data.extend(bytes);
        self
    }

    fn entry(&mut self, entry: &[u8]) {
        self.data.extend((entry.len() as u32).to_le_bytes());
        self.data.extend(entry);
    }
}
