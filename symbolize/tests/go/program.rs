//! A Go program of two functions, made by hand: `main.f`, and `main.g` into
//! which `main.f` is inlined.

use crate::elf::{Elf, TEXT};

pub const TABLE: u64 = 0x3_0000;
const TREES: u64 = 0x4_0000;
const RECORD: u64 = 0x5_0000;

/// Where the functions start, and the last one ends, from the start of the text.
pub const F: u32 = 0;
pub const G: u32 = 0x40;
pub const END: u32 = 0x80;

/// The inlined part of `main.g`.
pub const INLINED: std::ops::Range<u32> = 0x50..0x60;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    Go1_2,
    Go1_16,
    Go1_18,
    Go1_20,
    /// Like the one before, but without the start of the text.
    Go1_26,
}

pub const LAYOUTS: [Layout; 5] = [
    Layout::Go1_2,
    Layout::Go1_16,
    Layout::Go1_18,
    Layout::Go1_20,
    Layout::Go1_26,
];

/// Strings, each ended by a zero; places refer to their offsets.
const NAMES: &[u8] = b"\0main.f\0main.g\0";
const NAME_F: u32 = 1;
const NAME_G: u32 = 8;
const FILES: &[u8] = b"/src/f.go\0/src/g.go\0";
const FILE_G: u32 = 10;

pub struct Program {
    layout: Layout,
    names: Vec<u8>,
    units: Vec<u8>,
    files: Vec<u8>,
    pc_values: Vec<u8>,
    list: Vec<u8>,
    told: Vec<u8>,
}

/// The offsets of the pc-value tables of one function.
struct Numbers {
    files: u32,
    lines: u32,
    inlined: u32,
}

/// Makes a file with the table. In the newest layout only the runtime's record says where the text
/// starts.
pub fn elf(layout: Layout, with_section: bool) -> Elf {
    elf_called_at(layout, with_section, INLINED.start - 1)
}

/// Makes a file whose inline tree says that `main.f` was called at the place `call`.
pub fn elf_called_at(layout: Layout, with_section: bool, call: u32) -> Elf {
    let table = table(layout);
    let name = if with_section {
        ".gopclntab"
    } else {
        ".data.rel.ro"
    };
    let record = record(layout, &table);
    Elf::new()
        .with(name, TABLE, table)
        .with(".rodata", TREES, trees(layout, call))
        .with(".go.module", RECORD, record)
}

pub fn table(layout: Layout) -> Vec<u8> {
    let mut program = Program {
        layout,
        names: NAMES.to_vec(),
        units: [0u32, FILE_G]
            .iter()
            .flat_map(|word| word.to_le_bytes())
            .collect(),
        files: FILES.to_vec(),
        pc_values: vec![0],
        list: Vec::new(),
        told: Vec::new(),
    };
    match layout {
        Layout::Go1_2 => program.in_one_piece(),
        _ => program.in_parts(),
    }
}

impl Program {
    fn in_parts(&mut self) -> Vec<u8> {
        let (f, g) = self.numbers(0);
        let wide = self.layout == Layout::Go1_16;
        let list_len = 5 * if wide { 8 } else { 4 };
        let behind = (list_len as u64).next_multiple_of(8);
        let at_f = behind + self.write_function(F, NAME_F, &f, None);
        let at_g = behind + self.write_function(G, NAME_G, &g, Some(0));
        self.list(&[(F, at_f), (G, at_g)]);
        self.list.resize(behind as usize, 0);
        self.list.append(&mut self.told);

        let words = if wide { 7 } else { 8 };
        let mut parts = Vec::new();
        let mut offsets = Vec::new();
        for part in [
            &self.names,
            &self.units,
            &self.files,
            &self.pc_values,
            &self.list,
        ] {
            offsets.push(8 + words * 8 + parts.len() as u64);
            parts.extend(part);
            parts.resize(parts.len().next_multiple_of(8), 0);
        }
        let magic: u32 = match self.layout {
            Layout::Go1_16 => 0xffff_fffa,
            Layout::Go1_18 => 0xffff_fff0,
            _ => 0xffff_fff1,
        };
        let text = match self.layout {
            Layout::Go1_26 => 0,
            _ => TEXT,
        };
        let mut table = magic.to_le_bytes().to_vec();
        table.extend([0, 0, 1, 8]);
        let mut head = vec![2, 2];
        head.extend((!wide).then_some(text));
        head.extend(offsets);
        table.extend(head.iter().flat_map(|word: &u64| word.to_le_bytes()));
        table.extend(parts);
        // Real tables are longer than their head.
        table.resize(table.len() + 64, 0);
        table
    }

    /// Makes a table of before Go 1.16: head, list, and everything else after them.
    fn in_one_piece(&mut self) -> Vec<u8> {
        let list_len = 5 * 8;
        let names = 8 + 8 + list_len + 8;
        let files = names + self.names.len() as u32;
        let numbers = (files + self.files.len() as u32).next_multiple_of(4);
        let file_table = numbers;
        let pc_values = numbers + 3 * 4;
        let (f, g) = self.numbers(pc_values);
        let told = (pc_values + self.pc_values.len() as u32).next_multiple_of(8);
        let at_f = u64::from(told) + self.write_function(F, names + NAME_F, &f, None);
        let at_g = u64::from(told) + self.write_function(G, names + NAME_G, &g, None);
        self.list(&[(F, at_f), (G, at_g)]);

        let mut table = 0xffff_fffbu32.to_le_bytes().to_vec();
        table.extend([0, 0, 1, 8]);
        table.extend(2u64.to_le_bytes());
        table.extend(&self.list);
        table.extend(file_table.to_le_bytes());
        table.resize(names as usize, 0);
        table.extend(&self.names);
        table.extend(&self.files);
        table.resize(file_table as usize, 0);
        // The first number is the count; files are numbered from 1 on.
        for word in [3, files, files + FILE_G] {
            table.extend(word.to_le_bytes());
        }
        table.extend(&self.pc_values);
        table.resize(told as usize, 0);
        table.extend(&self.told);
        table.resize(table.len() + 64, 0);
        table
    }

    /// Writes the pc-value tables of both functions; offsets count from `base`.
    fn numbers(&mut self, base: u32) -> (Numbers, Numbers) {
        let first = i32::from(self.layout == Layout::Go1_2);
        let half = INLINED.start - G;
        let done = INLINED.end - G;
        let f = Numbers {
            files: self.pc_value(&[(first, END - G)]),
            lines: self.pc_value(&[(10, 0x20), (11, 0x40)]),
            inlined: 0,
        };
        let g = Numbers {
            files: self.pc_value(&[(first + 1, half), (first, done), (first + 1, 0x40)]),
            lines: self.pc_value(&[(20, half), (10, done), (22, 0x40)]),
            inlined: self.pc_value(&[(-1, half), (0, done), (-1, 0x40)]),
        };
        let moved = |n: Numbers| Numbers {
            files: n.files + base,
            lines: n.lines + base,
            inlined: n.inlined,
        };
        (moved(f), moved(g))
    }

    fn pc_value(&mut self, values: &[(i32, u32)]) -> u32 {
        let offset = self.pc_values.len() as u32;
        let (mut last, mut pc) = (-1, 0);
        for (value, end) in values {
            let delta = value - last;
            varint(&mut self.pc_values, ((delta << 1) ^ (delta >> 31)) as u32);
            varint(&mut self.pc_values, end - pc);
            (last, pc) = (*value, *end);
        }
        self.pc_values.push(0);
        offset
    }

    /// Writes the record of a function; returns its position.
    fn write_function(
        &mut self,
        start: u32,
        name: u32,
        numbers: &Numbers,
        tree: Option<u32>,
    ) -> u64 {
        let at = self.told.len() as u64;
        let wide = matches!(self.layout, Layout::Go1_2 | Layout::Go1_16);
        if wide {
            self.told.extend((TEXT + u64::from(start)).to_le_bytes());
        } else {
            self.told.extend(start.to_le_bytes());
        }
        let mut words = vec![name, 0, 0, 0, numbers.files, numbers.lines];
        match self.layout {
            Layout::Go1_2 => words.extend([0, 0]),
            _ => words.extend([3, 0]),
        }
        if matches!(self.layout, Layout::Go1_20 | Layout::Go1_26) {
            words.push(20);
        }
        if self.layout != Layout::Go1_2 {
            // Four kinds of data, of which the last are inline trees.
            words.extend([4 << 24, 0, 0, numbers.inlined]);
        }
        self.told
            .extend(words.iter().flat_map(|word| word.to_le_bytes()));
        if self.layout == Layout::Go1_16 {
            self.told.resize(self.told.len().next_multiple_of(8), 0);
            let tree = tree.map_or(0, |tree| TREES + 8 + u64::from(tree));
            for data in [0, 0, 0, tree] {
                self.told.extend(data.to_le_bytes());
            }
        } else if self.layout != Layout::Go1_2 {
            for data in [u32::MAX, u32::MAX, u32::MAX, tree.unwrap_or(u32::MAX)] {
                self.told.extend(data.to_le_bytes());
            }
        }
        self.told.resize(self.told.len().next_multiple_of(8), 0);
        at
    }

    fn list(&mut self, functions: &[(u32, u64)]) {
        let wide = matches!(self.layout, Layout::Go1_2 | Layout::Go1_16);
        let mut push = |value: u64| {
            if wide {
                self.list.extend(value.to_le_bytes())
            } else {
                self.list.extend((value as u32).to_le_bytes())
            }
        };
        let start = |start: u32| u64::from(start) + if wide { TEXT } else { 0 };
        for (function, told) in functions {
            push(start(*function));
            push(*told);
        }
        push(start(END));
    }
}

/// The inline tree of `main.g`, after eight bytes of something else.
fn trees(layout: Layout, call: u32) -> Vec<u8> {
    let mut tree = vec![0xaa; 8];
    let parent_pc = call - G;
    let words = match layout {
        Layout::Go1_20 | Layout::Go1_26 => vec![0, NAME_F, parent_pc, 10],
        // No parent; the file of the call, its line, and the function.
        _ => vec![0xffff, 1, 21, NAME_F, parent_pc],
    };
    tree.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    tree.resize(64, 0);
    tree
}

/// The runtime's record, with the fields that are read.
fn record(layout: Layout, table: &[u8]) -> Vec<u8> {
    let mut words = [0u64; 64];
    let part = |index: usize| {
        let at = 8 + 8 * index;
        TABLE + u64::from_le_bytes(table[at..at + 8].try_into().unwrap())
    };
    let first = if layout == Layout::Go1_16 { 2 } else { 3 };
    words[0] = TABLE;
    words[1] = part(first);
    words[13] = part(first + 4);
    words[22] = TEXT;
    // The start of the data, which is not a tree, then where trees count from.
    words[39] = TREES;
    words[40] = TREES + 8;
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn varint(out: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
