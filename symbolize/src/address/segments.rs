//! The loadable segments (PT_LOAD) of a file: which bytes of it the loader
//! puts at which link address.

use super::{FileOffset, LinkAddr};
use crate::wire::{Taken, put_u32, put_u64};

/// Maximum number of loadable segments. Real files have about ten; the look-up is linear.
pub const LOADS_MAX: usize = 256;

/// Page size that is assumed for the fallback below. 4 KiB is the smallest page there is; on
/// machines with larger pages only that fallback finds less.
const PAGE: u64 = 4096;

/// One PT_LOAD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Offset in the file.
    pub offset: u64,
    /// The link address of its first byte.
    pub vaddr: u64,
    /// Number of its bytes in the file.
    pub filesz: u64,
    /// Whether its bytes are code.
    pub executable: bool,
}

impl Segment {
    fn holds_offset(&self, offset: u64) -> bool {
        offset
            .checked_sub(self.offset)
            .is_some_and(|within| within < self.filesz)
    }

    /// Whether the kernel maps the offset with this segment: it maps from the page of the first
    /// byte to the end of the page of the last one.
    fn holds_offset_in_its_pages(&self, offset: u64) -> bool {
        let first = self.offset & !(PAGE - 1);
        let last = self.offset.saturating_add(self.filesz);
        self.filesz != 0 && first <= offset && offset < last.saturating_add(PAGE - 1) & !(PAGE - 1)
    }

    fn holds_addr(&self, addr: u64) -> bool {
        addr.checked_sub(self.vaddr)
            .is_some_and(|within| within < self.filesz)
    }

    /// `vaddr + (offset - self.offset)`, whichever sign the difference has.
    fn to_link(self, offset: u64) -> Option<LinkAddr> {
        let addr = if offset >= self.offset {
            self.vaddr.checked_add(offset - self.offset)
        } else {
            self.vaddr.checked_sub(self.offset - offset)
        };
        addr.map(LinkAddr)
    }
}

/// All PT_LOADs of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segments(Vec<Segment>);

impl Segments {
    /// The segments of a file, in the order of its program headers.
    pub fn new(segments: Vec<Segment>) -> Segments {
        Segments(segments)
    }

    /// Each segment, in the order of the program headers.
    pub fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.0.iter()
    }

    /// Encodes the segments for another process.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_u32(out, self.0.len() as u32);
        for segment in &self.0 {
            for word in [segment.offset, segment.vaddr, segment.filesz] {
                put_u64(out, word);
            }
            out.push(segment.executable.into());
        }
    }

    /// Decodes what [`Segments::write`] has encoded; `None` if it is malformed, or if there are
    /// more than [`LOADS_MAX`].
    pub(crate) fn take(bytes: &mut Taken<'_>) -> Option<Segments> {
        let count = bytes.u32()? as usize;
        if count > LOADS_MAX {
            return None;
        }
        let segments = (0..count).map(|_| {
            Some(Segment {
                offset: bytes.u64()?,
                vaddr: bytes.u64()?,
                filesz: bytes.u64()?,
                executable: bytes.u8()? != 0,
            })
        });
        segments.collect::<Option<_>>().map(Segments)
    }

    /// Returns the link address of the code at `offset`.
    ///
    /// Two segments may claim one page of the file, because the kernel maps whole pages. The
    /// segment that really contains the byte wins, then the executable one; whole pages are
    /// considered only if no segment contains the byte.
    pub fn to_link(&self, offset: FileOffset) -> Option<LinkAddr> {
        self.pick(|segment| segment.holds_offset(offset.0))
            .or_else(|| self.pick(|segment| segment.holds_offset_in_its_pages(offset.0)))?
            .to_link(offset.0)
    }

    /// Returns the file offset of the byte at `addr`; `None` for memory that is not in the file,
    /// such as `.bss`.
    pub fn to_file(&self, addr: LinkAddr) -> Option<FileOffset> {
        let segment = self.pick(|segment| segment.holds_addr(addr.0))?;
        let within = addr.0 - segment.vaddr;
        segment.offset.checked_add(within).map(FileOffset)
    }

    /// Whether `addr` is code.
    pub fn is_executable(&self, addr: LinkAddr) -> bool {
        self.executable_end(addr).is_some()
    }

    /// Returns the end of the code segment that contains `addr`.
    pub fn executable_end(&self, addr: LinkAddr) -> Option<LinkAddr> {
        let segment = self.pick(|s| s.executable && s.holds_addr(addr.0))?;
        Some(LinkAddr(segment.vaddr.saturating_add(segment.filesz)))
    }

    fn pick(&self, holds: impl Fn(&Segment) -> bool) -> Option<Segment> {
        let mut found = None;
        for segment in self.0.iter().filter(|segment| holds(segment)) {
            if segment.executable {
                return Some(*segment);
            }
            found.get_or_insert(*segment);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(offset: u64, vaddr: u64, filesz: u64, executable: bool) -> Segment {
        Segment {
            offset,
            vaddr,
            filesz,
            executable,
        }
    }

    #[track_caller]
    fn check(segments: &Segments, offset: u64, expected: Option<u64>) {
        assert_eq!(
            segments.to_link(FileOffset(offset)),
            expected.map(LinkAddr),
            "offset {offset:#x}"
        );
    }

    /// The layout that lld gives Go programs with cgo: the text's link address is not its offset,
    /// and the text's first page also holds the end of the read-only data.
    fn lld() -> Segments {
        Segments::new(vec![
            segment(0, 0x200000, 0x2260c0, false),
            segment(0x2260c0, 0x4270c0, 0x1000, true),
            segment(0x2270c0, 0x4290c0, 0x500, false),
        ])
    }

    #[test]
    fn non_congruent_segments() {
        check(&lld(), 0x2260c0, Some(0x4270c0));
        check(&lld(), 0x2270bf, Some(0x4280bf));
        check(&lld(), 0x100, Some(0x200100));
        check(&lld(), 0x9000000, None);
    }

    #[test]
    fn on_a_shared_page_the_containing_segment_wins() {
        check(&lld(), 0x226010, Some(0x426010));
        check(&lld(), 0x2270c0, Some(0x4290c0));
    }

    #[test]
    fn of_two_containing_segments_the_executable_one_wins() {
        let both = Segments::new(vec![
            segment(0, 0x1000, 0x800, false),
            segment(0, 0x5000, 0x800, true),
        ]);
        check(&both, 0x10, Some(0x5010));
    }

    #[test]
    fn rounding_to_pages_is_the_fallback() {
        let text = Segments::new(vec![segment(0x1200, 0x401200, 0x300, true)]);
        check(&text, 0x1000, Some(0x401000));
        check(&text, 0x1fff, Some(0x401fff));
        check(&text, 0xfff, None);
        check(&text, 0x2000, None);
        let empty = Segments::new(vec![segment(0x1200, 0x401200, 0, true)]);
        check(&empty, 0x1200, None);
    }

    #[test]
    fn hostile_headers_do_not_overflow() {
        let high = Segments::new(vec![
            segment(u64::MAX - 1, 5, u64::MAX, true),
            segment(0x100, 0x10, u64::MAX, true),
        ]);
        check(&high, 0x0, None);
        check(&high, u64::MAX, Some(6));
        assert_eq!(high.to_file(LinkAddr(u64::MAX)), None);
        assert_eq!(
            high.executable_end(LinkAddr(0x20)),
            Some(LinkAddr(u64::MAX))
        );
        let wrap = Segments::new(vec![segment(0, u64::MAX, 0x100, true)]);
        check(&wrap, 1, None);
    }

    #[test]
    fn there_and_back() {
        for offset in [0, 0x226000, 0x2260c0, 0x2270c0] {
            let link = lld().to_link(FileOffset(offset)).unwrap();
            assert_eq!(lld().to_file(link), Some(FileOffset(offset)));
        }
        assert_eq!(lld().to_file(LinkAddr(0x4295c0)), None, ".bss");
    }
}
