//! Programs for breakpoints that are attached to many places at once (*uprobe multi*).
//!
//! The kernel requires an attach type when such a program is loaded, which aya does not set. So the
//! object is read once more, its programs are prepared as aya prepares them, with the maps that aya
//! has made, and are loaded from here.

use super::interrupted;
use crate::bpf_call::{UPROBE_MULTI, descriptor};
use crate::error::Error;
use aya::maps::{Map, MapData};
use aya::{Ebpf, features};
use aya_obj::Object;
use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd, RawFd};

/// As in uapi/linux/bpf.h.
const PROG_LOAD: u32 = 5;
const BTF_LOAD: u32 = 18;
const KPROBE: u32 = 2;

/// The maps that aya has made for an object, by name.
#[derive(Debug)]
pub struct MadeMaps(HashMap<String, OwnedFd>);

impl MadeMaps {
    /// Takes the maps of an object. Has to be called while it has all of them: later some are taken
    /// out.
    pub fn of(object: &Ebpf) -> MadeMaps {
        let held = |(name, map): (&str, &Map)| {
            let held = data_of(map)?.fd().as_fd().try_clone_to_owned();
            Some((name.to_string(), held.ok()?))
        };
        MadeMaps(object.maps().filter_map(held).collect())
    }
}

/// Loads these programs of an object whose maps exist already. An error is reported as a refusal of
/// the first program.
pub fn load<const N: usize>(
    object: &[u8],
    made: &MadeMaps,
    programs: [&'static str; N],
) -> Result<[OwnedFd; N], Error> {
    let refused = |program, reason| Error::Refused { program, reason };
    let prepared = prepare(object, made).map_err(|reason| refused(programs[0], reason))?;
    let loaded = programs.map(|name| prepared.load(name).map_err(|reason| refused(name, reason)));
    let loaded: Result<Vec<OwnedFd>, Error> = loaded.into_iter().collect();
    Ok(loaded?.try_into().expect("as many as there are names"))
}

/// Programs in which references to maps and to each other are resolved.
struct Prepared {
    object: Object,
    /// Its types (BTF), which the kernel needs to verify some functions separately.
    types: Option<OwnedFd>,
}

fn prepare(bytes: &[u8], made: &MadeMaps) -> Result<Prepared, String> {
    let mut object = Object::parse(bytes).map_err(|error| error.to_string())?;
    let types = load_types(&mut object)?;
    let maps = std::mem::take(&mut object.maps);
    let mut placed: Vec<(&str, RawFd, &aya_obj::Map)> = Vec::new();
    for (name, map) in &maps {
        let held = made.0.get(name);
        let held = held.ok_or_else(|| format!("the map {name} is not there"))?;
        placed.push((name, held.as_raw_fd(), map));
    }
    let sections: HashSet<usize> = object
        .functions
        .keys()
        .map(|(section, _)| *section)
        .collect();
    let placed = object.relocate_maps(placed.into_iter(), &sections);
    placed.map_err(|error| error.to_string())?;
    let called = object.relocate_calls(&sections);
    called.map_err(|error| error.to_string())?;
    object.sanitize_functions(features());
    Ok(Prepared { object, types })
}

/// Returns the data of a map; `None` for kinds of maps that the object does not have.
fn data_of(map: &Map) -> Option<&MapData> {
    match map {
        Map::Array(data)
        | Map::ArrayOfMaps(data)
        | Map::HashMap(data)
        | Map::LruHashMap(data)
        | Map::PerCpuArray(data)
        | Map::RingBuf(data) => Some(data),
        _ => None,
    }
}

fn load_types(object: &mut Object) -> Result<Option<OwnedFd>, String> {
    let Some(known) = features().btf() else {
        return Ok(None);
    };
    let types = object.fixup_and_sanitize_btf(known);
    let Some(types) = types.map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    #[repr(C)]
    #[derive(Default)]
    struct BtfLoad {
        bytes: u64,
        log: u64,
        size: u32,
        log_size: u32,
        log_level: u32,
        flags: u32,
    }
    let bytes = types.to_bytes();
    let mut request = BtfLoad {
        bytes: bytes.as_ptr() as u64,
        size: bytes.len() as u32,
        ..BtfLoad::default()
    };
    // SAFETY: the arm of that command; the bytes live until the call is over.
    let loaded = unsafe { descriptor(BTF_LOAD, &mut request) };
    loaded.map(Some).map_err(|error| error.to_string())
}

impl Prepared {
    fn load(&self, name: &str) -> Result<OwnedFd, String> {
        #[repr(C)]
        #[derive(Default)]
        struct ProgLoad {
            kind: u32,
            instructions: u32,
            code: u64,
            license: u64,
            log_level: u32,
            log_size: u32,
            log: u64,
            kernel_version: u32,
            flags: u32,
            name: [u8; 16],
            interface: u32,
            attach_type: u32,
            types: u32,
            function_size: u32,
            functions: u64,
            function_count: u32,
            line_size: u32,
            lines: u64,
            line_count: u32,
            attach_types: u32,
        }
        let program = self.object.programs.get(name).ok_or("it is not there")?;
        let function = self
            .object
            .functions
            .get(&program.function_key())
            .ok_or("it has no code")?;
        let functions = match self.types {
            Some(_) => function.func_info.func_info_bytes(),
            None => Vec::new(),
        };
        let mut short_name = [0; 16];
        // The last byte stays zero.
        let letters = short_name.iter_mut().take(15).zip(name.bytes());
        letters.for_each(|(into, letter)| *into = letter);
        let mut request = ProgLoad {
            kind: KPROBE,
            instructions: function.instructions.len() as u32,
            code: function.instructions.as_ptr() as u64,
            license: program.license.as_ptr() as u64,
            name: short_name,
            attach_type: UPROBE_MULTI,
            types: self
                .types
                .as_ref()
                .map_or(0, |types| types.as_raw_fd() as u32),
            function_size: if functions.is_empty() {
                0
            } else {
                function.func_info_rec_size as u32
            },
            functions: functions.as_ptr() as u64,
            function_count: if functions.is_empty() {
                0
            } else {
                function.func_info.num_info
            },
            ..ProgLoad::default()
        };
        // SAFETY: the arm of that command; what it points to lives until the call is over.
        let load = || unsafe { descriptor(PROG_LOAD, &mut request) };
        let loaded = interrupted::again(load, |error| Some(error));
        loaded.map_err(|error| error.to_string())
    }
}
