//! Returns the functions that were inlined at an address.

use super::frame::GoFrame;
use super::function::Function;
use super::header::Layout;
use super::table::Table;
use crate::LinkAddr;

/// Maximum length of a chain; longer ones are cut. The compiler inlines only small functions.
const DEPTH_MAX: usize = 64;

/// An inlined call.
#[derive(Debug, Clone, Copy)]
struct Call {
    name: u32,
    /// The call into which this one was inlined, in the older format.
    parent: Option<u32>,
    /// Source file of the call, in the older format.
    file: i32,
    line: i32,
    /// Offset of an instruction of the caller, at the call.
    parent_pc: i32,
    /// Whether the fields that the compiler leaves empty are empty, and the call is in the
    /// outermost function: true for every first call of a tree.
    is_first: bool,
}

/// The chain of functions at an address.
#[derive(Debug)]
pub struct Chain {
    /// Innermost first; the last one contains the code.
    pub frames: Vec<GoFrame>,
    /// Whether all calls that were inlined there are known.
    pub is_whole: bool,
}

/// Returns the chain of functions at an address. Tree addresses are relative to `base`.
pub fn chain(table: &Table, function: &Function, base: Option<u64>, addr: u64) -> Chain {
    match table.header.layout {
        Layout::Go1_20 => by_pc(table, function, base, addr),
        _ => by_parent(table, function, base, addr),
    }
}

/// Since Go 1.20: the caller's position is found through the instruction at the call.
///
/// In some large `init` functions that instruction belongs to the inlined call itself, so that the
/// chain would never end. It is then cut, and the position in the outermost function is unknown.
fn by_pc(table: &Table, function: &Function, base: Option<u64>, mut addr: u64) -> Chain {
    let mut frames = Vec::new();
    let mut visited = Vec::new();
    let mut next = function.inlined_at(table, addr);
    while let Some(index) = next.filter(|_| frames.len() < DEPTH_MAX) {
        if visited.contains(&index) {
            push_outermost(table, function, Vec::new(), 0, &mut frames);
            let is_whole = false;
            return Chain { frames, is_whole };
        }
        let Some((call, name)) = named_call(table, function, base, index) else {
            break;
        };
        visited.push(index);
        let (file, line) = function.position(table, addr);
        frames.push(GoFrame { name, file, line });
        addr = function.start.wrapping_add_signed(call.parent_pc.into());
        next = function.inlined_at(table, addr);
    }
    let (file, line) = function.position(table, addr);
    push_outermost(table, function, file, line, &mut frames);
    let is_whole = next.is_none();
    Chain { frames, is_whole }
}

/// Before Go 1.20: each call has its own position. Before Go 1.16 no calls are known.
fn by_parent(table: &Table, function: &Function, base: Option<u64>, addr: u64) -> Chain {
    let mut frames = Vec::new();
    let mut next = function.inlined_at(table, addr);
    let (mut file, mut line) = function.position(table, addr);
    while let Some(index) = next.filter(|_| frames.len() < DEPTH_MAX) {
        let Some((call, name)) = named_call(table, function, base, index) else {
            break;
        };
        frames.push(GoFrame { name, file, line });
        file = function.file(table, call.file).unwrap_or_default();
        line = u32::try_from(call.line).unwrap_or_default();
        next = call.parent;
    }
    push_outermost(table, function, file, line, &mut frames);
    let is_whole = next.is_none() && table.header.layout != Layout::Go1_2;
    Chain { frames, is_whole }
}

/// Returns an inlined call and the name of the called function.
fn named_call(
    table: &Table,
    function: &Function,
    base: Option<u64>,
    index: u32,
) -> Option<(Call, Vec<u8>)> {
    let call = call(table, function, base, index)?;
    let name = table.name(call.name)?;
    Some((call, name))
}

fn push_outermost(
    table: &Table,
    function: &Function,
    file: Vec<u8>,
    line: u32,
    frames: &mut Vec<GoFrame>,
) {
    let name = table.name(function.name).unwrap_or_default();
    if !name.is_empty() {
        frames.push(GoFrame { name, file, line });
    }
}

/// Whether a function's tree is valid if tree addresses are relative to `base`.
pub fn has_tree(table: &Table, function: &Function, base: u64) -> bool {
    let call = call(table, function, Some(base), 0);
    call.is_some_and(|call| {
        let name = table.name(call.name);
        let within = u64::try_from(call.parent_pc).is_ok_and(|pc| pc < function.len());
        // Much of a file consists of zeros, which are not a call.
        let is_told = call.name != 0 || call.parent_pc != 0;
        call.is_first && is_told && within && name.is_some_and(|name| is_name(&name))
    })
}

fn is_name(name: &[u8]) -> bool {
    name.len() > 2 && name.contains(&b'.') && name.iter().all(|byte| *byte >= b' ')
}

fn call(table: &Table, function: &Function, base: Option<u64>, index: u32) -> Option<Call> {
    let layout = table.header.layout;
    let base = match layout {
        Layout::Go1_2 | Layout::Go1_16 => 0,
        Layout::Go1_18 | Layout::Go1_20 => base?,
    };
    let size: u64 = if layout == Layout::Go1_20 { 16 } else { 20 };
    let tree = base.checked_add(function.inline_tree?)?;
    let addr = tree.checked_add(u64::from(index) * size)?;
    let offset = table.object().segments().to_file(LinkAddr(addr))?;
    let mut bytes = [0u8; 20];
    let bytes = &mut bytes[..size as usize];
    let have = table.object().source().read_some(offset.0, bytes);
    if have < bytes.len() {
        return None;
    }
    let word = |at: usize| {
        let field = bytes[at..].first_chunk().copied().unwrap_or_default();
        i32::from_le_bytes(field)
    };
    let is_new = layout == Layout::Go1_20;
    let parent = i16::from_le_bytes([bytes[0], bytes[1]]);
    let is_first = if is_new {
        bytes[1..4] == [0; 3]
    } else {
        parent == -1 && bytes[3] == 0
    };
    Some(Call {
        name: word(if is_new { 4 } else { 12 }) as u32,
        parent: u32::try_from(parent).ok().filter(|_| !is_new),
        file: word(4),
        line: word(8),
        parent_pc: word(if is_new { 8 } else { 16 }),
        is_first,
    })
}
