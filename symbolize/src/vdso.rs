//! Code that the kernel maps into every process: the vDSO, an ELF file without a path, and
//! vsyscall, an older page of fixed entry points.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use crate::object::Object;
use crate::source::Source;
use crate::unwind::UnwindTable;
use crate::{ElfSymbols, FileOffset, OpenError, Reason, Symbol};

/// Maximum size. It has two pages of code; other architectures may have more.
const VDSO_BYTES_MAX: u64 = 1 << 20;

/// The vDSO of the running kernel, for 64-bit processes: 32-bit processes have another one.
#[derive(Debug)]
pub struct Vdso(ElfSymbols);

impl From<Vdso> for ElfSymbols {
    fn from(vdso: Vdso) -> ElfSymbols {
        vdso.0
    }
}

impl Vdso {
    /// Reads the vDSO that the kernel has mapped into this process.
    pub fn load() -> Result<Vdso, OpenError> {
        ElfSymbols::from_bytes(Vdso::image()?).map(Vdso)
    }

    /// Copies the ELF file from our own memory.
    pub fn image() -> Result<Box<[u8]>, OpenError> {
        let read = |source| OpenError::Read {
            what: "own memory",
            source,
        };
        let maps = fs::read_to_string("/proc/self/maps").map_err(read)?;
        let range = maps.lines().find_map(vdso_range);
        let (start, end) = range.ok_or(OpenError::Damaged("no vDSO is mapped"))?;
        let len = end.saturating_sub(start);
        if len > VDSO_BYTES_MAX {
            return Err(OpenError::Refused("vDSO"));
        }
        let mut image = vec![0; len as usize];
        let memory = File::open("/proc/self/mem").map_err(read)?;
        memory.read_exact_at(&mut image, start).map_err(read)?;
        Ok(image.into())
    }

    /// Returns the function at an offset from the start of `[vdso]`.
    pub fn find(&self, offset: FileOffset) -> Result<Symbol<'_>, Reason> {
        self.0.find(offset)
    }

    /// All its functions.
    pub fn symbols(&self) -> &ElfSymbols {
        &self.0
    }
}

impl UnwindTable {
    /// Returns the table of this kernel's vDSO; its addresses are offsets from the start of
    /// `[vdso]`.
    pub fn of_vdso() -> Result<UnwindTable, OpenError> {
        let image = Source::Memory(Vdso::image()?);
        UnwindTable::read(&Object::from_source(image)?)
    }
}

/// Parses a line such as `7ffd1c5f2000-7ffd1c5f4000 r-xp 00000000 00:00 0    [vdso]`.
fn vdso_range(line: &str) -> Option<(u64, u64)> {
    let range = line.strip_suffix("[vdso]")?.split(' ').next()?;
    let (start, end) = range.split_once('-')?;
    let number = |digits| u64::from_str_radix(digits, 16).ok();
    Some((number(start)?, number(end)?))
}

/// Address of `[vsyscall]`, on x86-64 (arch/x86/include/uapi/asm/vsyscall.h).
pub const VSYSCALL_START: u64 = 0xffff_ffff_ff60_0000;

/// Distance of two entry points.
const VSYSCALL_SLOT_BYTES: u64 = 0x400;

/// Returns the name of the entry point at an offset from the start of `[vsyscall]`.
pub fn find_vsyscall(offset: FileOffset) -> Result<&'static str, Reason> {
    match offset.0 / VSYSCALL_SLOT_BYTES {
        0 => Ok("gettimeofday"),
        1 => Ok("time"),
        2 => Ok("getcpu"),
        _ => Err(Reason::NotCovered),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vdso_has_a_clock() {
        let vdso = Vdso::load().unwrap();
        let mut functions = vdso.symbols().functions();
        let clock = functions
            .find(|symbol| symbol.name.ends_with(b"clock_gettime"))
            .expect("every vDSO reads the clock");
        let inside = FileOffset(clock.start.0 + clock.size / 2);
        assert_eq!(vdso.find(inside).unwrap(), clock);
        assert!(vdso.find(FileOffset(VDSO_BYTES_MAX)).is_err());
    }

    #[test]
    fn vsyscall_slots() {
        assert_eq!(find_vsyscall(FileOffset(0)), Ok("gettimeofday"));
        assert_eq!(find_vsyscall(FileOffset(0x7ff)), Ok("time"));
        assert_eq!(find_vsyscall(FileOffset(0x800)), Ok("getcpu"));
        assert_eq!(find_vsyscall(FileOffset(0xc00)), Err(Reason::NotCovered));
    }
}
