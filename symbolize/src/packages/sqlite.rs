//! The part of SQLite's file format that is needed to read rows of a table
//! (<https://www.sqlite.org/fileformat2.html>). Recent changes that are still in a log beside the
//! file are not seen.

/// Maximum number of pages from the root of a tree to a leaf.
const DEPTH_MAX: usize = 20;

/// Maximum size of a row that is spread over several pages.
const ROW_BYTES_MAX: usize = 64 << 20;

/// A database in memory.
pub struct Database<'a> {
    bytes: &'a [u8],
    page_size: usize,
    /// Used bytes of a page; extensions may reserve some at its end.
    usable: usize,
}

/// A value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'r> {
    /// SQL's NULL.
    Null,
    /// A signed number of up to 64 bits.
    Integer(i64),
    /// Text or any bytes.
    Bytes(&'r [u8]),
}

impl Value<'_> {
    /// Returns the number; None if the value is of another kind.
    pub fn integer(self) -> Option<i64> {
        match self {
            Value::Integer(number) => Some(number),
            _ => None,
        }
    }
}

/// A row: its values in their encoding.
pub struct Row {
    record: Vec<u8>,
}

impl<'a> Database<'a> {
    /// Reads the file header; None if it is not the start of a valid SQLite 3 database.
    pub fn new(bytes: &'a [u8]) -> Option<Database<'a>> {
        if !bytes.starts_with(b"SQLite format 3\0") {
            return None;
        }
        let page_size = match u16::from_be_bytes([*bytes.get(16)?, *bytes.get(17)?]) {
            1 => 65_536,
            size => usize::from(size),
        };
        let reserved = usize::from(*bytes.get(20)?);
        let is_valid = page_size >= 512 && page_size.is_power_of_two();
        let usable = page_size.checked_sub(reserved)?;
        (is_valid && usable >= 480).then_some(Database {
            bytes,
            page_size,
            usable,
        })
    }

    /// Returns the first page of a table.
    pub fn table(&self, name: &str) -> Option<u32> {
        let mut found = None;
        // The table of tables begins at the first page. Its columns: type, name, table, page, text.
        self.visit(1, &mut |row| {
            let is_it = row.value(0) == Some(Value::Bytes(b"table"))
                && row.value(1) == Some(Value::Bytes(name.as_bytes()));
            if is_it {
                found = row.value(3).and_then(Value::integer);
            }
            !is_it
        });
        found.and_then(|page| u32::try_from(page).ok())
    }

    /// Calls `look` with every row of a table until it returns false.
    pub fn visit(&self, root: u32, look: &mut dyn FnMut(&Row) -> bool) {
        let mut left = Left {
            pages: self.bytes.len() / self.page_size + 1,
            row_bytes: self.bytes.len(),
        };
        self.visit_below(root, DEPTH_MAX, &mut left, look);
    }

    fn visit_below(
        &self,
        page: u32,
        depth: usize,
        left: &mut Left,
        look: &mut dyn FnMut(&Row) -> bool,
    ) -> Option<()> {
        left.pages = left.pages.checked_sub(1)?;
        let depth = depth.checked_sub(1)?;
        let page = Page::new(self, page)?;
        for cell in 0..page.cells {
            if page.is_leaf {
                // A row that cannot be read whole has cost what was read of it.
                let row = page.row(self, cell, &mut left.row_bytes);
                if left.row_bytes == 0 {
                    return None;
                }
                if let Some(row) = row {
                    look(&row).then_some(())?;
                }
            } else {
                self.visit_below(page.child(cell)?, depth, left, look)?;
            }
        }
        if page.is_leaf {
            Some(())
        } else {
            self.visit_below(page.last_child?, depth, left, look)
        }
    }

    /// Returns the row with that number.
    pub fn row(&self, root: u32, number: i64) -> Option<Row> {
        let mut at = root;
        for _ in 0..DEPTH_MAX {
            let page = Page::new(self, at)?;
            if page.is_leaf {
                let cell = (0..page.cells).find(|cell| page.number(*cell) == Some(number))?;
                return page.row(self, cell, &mut ROW_BYTES_MAX.clone());
            }
            let cell = (0..page.cells).find(|cell| page.number(*cell) >= Some(number));
            at = match cell {
                Some(cell) => page.child(cell)?,
                None => page.last_child?,
            };
        }
        None
    }

    fn page(&self, number: u32) -> Option<&'a [u8]> {
        let start = (number as usize)
            .checked_sub(1)?
            .checked_mul(self.page_size)?;
        self.bytes.get(start..)?.get(..self.page_size)
    }
}

/// What is left of a visit of a table. An intact file has each page, and each byte of a row, in one
/// place only; in others pages form cycles, and rows lie in each other.
struct Left {
    pages: usize,
    row_bytes: usize,
}

/// A page of a table's tree.
struct Page<'a> {
    bytes: &'a [u8],
    is_leaf: bool,
    cells: usize,
    last_child: Option<u32>,
    /// Offset of the list of cells.
    list: usize,
}

impl<'a> Page<'a> {
    fn new(database: &Database<'a>, number: u32) -> Option<Page<'a>> {
        let bytes = database.page(number)?;
        // On the first page the header of the file comes before that of the page.
        let header = if number == 1 { 100 } else { 0 };
        let is_leaf = match bytes.get(header)? {
            13 => true,
            5 => false,
            _ => return None,
        };
        let cells = [*bytes.get(header + 3)?, *bytes.get(header + 4)?];
        Some(Page {
            bytes,
            is_leaf,
            cells: usize::from(u16::from_be_bytes(cells)),
            last_child: if is_leaf {
                None
            } else {
                word(bytes, header + 8)
            },
            list: header + if is_leaf { 8 } else { 12 },
        })
    }

    fn cell(&self, cell: usize) -> Option<&'a [u8]> {
        let at = self.list + 2 * cell;
        let start = u16::from_be_bytes([*self.bytes.get(at)?, *self.bytes.get(at + 1)?]);
        self.bytes.get(usize::from(start)..)
    }

    fn child(&self, cell: usize) -> Option<u32> {
        word(self.cell(cell)?, 0)
    }

    /// The number of a row in a leaf; in another page the largest number below a child.
    fn number(&self, cell: usize) -> Option<i64> {
        let bytes = self.cell(cell)?;
        let (_, length) = if self.is_leaf { varint(bytes)? } else { (0, 4) };
        Some(varint(bytes.get(length..)?)?.0.cast_signed())
    }

    /// Reads the row of a cell. Takes its bytes from `bytes_left`, which is 0 and ends the row when there
    /// are not as many.
    fn row(&self, database: &Database<'_>, cell: usize, bytes_left: &mut usize) -> Option<Row> {
        let mut take = |bytes: usize| {
            let left = bytes_left.checked_sub(bytes);
            *bytes_left = left.unwrap_or_default();
            left.map(|_| ())
        };
        let bytes = self.cell(cell)?;
        let (len, first) = varint(bytes)?;
        let (_, second) = varint(bytes.get(first..)?)?;
        let len = usize::try_from(len)
            .ok()
            .filter(|len| *len <= ROW_BYTES_MAX)?;
        let rest = bytes.get(first + second..)?;
        let here = bytes_here(len, database.usable);
        take(here)?;
        let mut record = rest.get(..here)?.to_vec();
        let mut next = word(rest, here);
        while record.len() < len {
            // Each overflow page has the number of the next one.
            let page = database.page(next?)?;
            let wanted = (len - record.len()).min(database.usable - 4);
            take(wanted)?;
            record.extend_from_slice(page.get(4..4 + wanted)?);
            next = word(page, 0);
        }
        Some(Row { record })
    }
}

/// Returns how many bytes of a row are in its cell; the rest is on overflow pages ("Cell Payload
/// Overflow Pages").
fn bytes_here(len: usize, usable: usize) -> usize {
    let most = usable - 35;
    if len <= most {
        return len;
    }
    let least = (usable - 12) * 32 / 255 - 23;
    let here = least + (len - least) % (usable - 4);
    if here <= most { here } else { least }
}

impl Row {
    /// Returns the value in a column, counted from 0.
    pub fn value(&self, column: usize) -> Option<Value<'_>> {
        let (header, first) = varint(&self.record)?;
        let header = self.record.get(..usize::try_from(header).ok()?)?;
        let (mut at, mut start) = (first, header.len());
        for number in 0.. {
            let (kind, len) = varint(header.get(at..)?)?;
            at += len;
            let len = match kind {
                0 | 8 | 9 => 0,
                1..=4 => kind as usize,
                5 => 6,
                6 | 7 => 8,
                10 | 11 => return None,
                _ => usize::try_from((kind - 12) / 2).ok()?,
            };
            let bytes = self.record.get(start..)?.get(..len)?;
            start += len;
            if number < column {
                continue;
            }
            return Some(match kind {
                0 | 7 => Value::Null,
                8 => Value::Integer(0),
                9 => Value::Integer(1),
                1..=6 => Value::Integer(integer(bytes)),
                _ => Value::Bytes(bytes),
            });
        }
        None
    }
}

/// Decodes an integer of one to eight bytes, the first of which has the sign.
fn integer(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
    let start = if negative { -1 } else { 0 };
    bytes
        .iter()
        .fold(start, |number, byte| number << 8 | i64::from(*byte))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*bytes))
}

/// Decodes a number of up to nine bytes, and returns it with its length.
fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut number = 0;
    for (at, byte) in bytes.iter().take(8).enumerate() {
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((number, at + 1));
        }
    }
    Some((number << 8 | u64::from(*bytes.get(8)?), 9))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a database of one page, whose cells are all the same row of 40,000 bytes.
    fn nested_rows() -> Vec<u8> {
        const CELLS: u16 = 10_000;
        let mut page = vec![0; 65_536];
        page[..16].copy_from_slice(b"SQLite format 3\0");
        page[16..18].copy_from_slice(&1_u16.to_be_bytes());
        page[100] = 13;
        page[103..105].copy_from_slice(&CELLS.to_be_bytes());
        let row = 108 + 2 * CELLS;
        for cell in page[108..usize::from(row)].chunks_exact_mut(2) {
            cell.copy_from_slice(&row.to_be_bytes());
        }
        // Its length, its number, and a value of NULL.
        page[usize::from(row)..][..6].copy_from_slice(&[0x82, 0xb8, 0x40, 1, 2, 0]);
        page
    }

    #[test]
    fn no_more_is_read_of_rows_than_the_file_has() {
        let bytes = nested_rows();
        let database = Database::new(&bytes).expect("a header");
        let mut rows = Vec::new();
        database.visit(1, &mut |row| {
            assert_eq!(row.value(0), Some(Value::Null));
            rows.push(row.record.len());
            true
        });
        assert_eq!(rows, [40_000]);
    }

    #[test]
    fn rows_that_are_cut_off_count_as_well() {
        let mut bytes = nested_rows();
        let row = 108 + 2 * 10_000;
        // A length of 1,000,000, of which 17,020 bytes are in the cell, and then page 2.
        bytes[row..][..3].copy_from_slice(&[0xbd, 0x84, 0x40]);
        bytes[row + 4 + 17_020..][..4].copy_from_slice(&2_u32.to_be_bytes());
        // A page that has no next one.
        bytes.resize(2 * 65_536, 0);
        let database = Database::new(&bytes).expect("a header");
        let mut left = Left {
            pages: 3,
            row_bytes: 2 * (17_020 + 65_532),
        };
        let visited = database.visit_below(1, DEPTH_MAX, &mut left, &mut |_| panic!("no row"));
        assert_eq!((visited, left.row_bytes), (None, 0), "two rows were read");
    }
}
