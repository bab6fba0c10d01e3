//! An entry of the Python part of a record: two words.

/// A Python frame, the end of a group, or, behind all of these, an asyncio task that ran or that
/// awaits another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry {
    /// An address, and flags in the bits above it.
    place: u64,
    /// Of a frame: the offset in its code, and the code object's [`check`](super::check). Of a
    /// task: the length of its name, and the string's `state`. Of several tasks: their number.
    detail: u64,
}

const ENDS_GROUP: u64 = 1 << 63;
const IS_FRAME: u64 = 1 << 62;
const IS_TASK: u64 = 1 << 61;
const HAS_NAME: u32 = 60;
const AWAITS: u32 = 59;
const ARE_SEVERAL: u64 = 1 << 58;
const ADDRESS: u64 = (1 << 56) - 1;

impl Entry {
    /// Makes the entry of a frame. `offset` is where in its code it is, in bytes, negative before
    /// the first instruction; `ends_group` is 1 or 0.
    #[inline(always)]
    pub const fn frame(code: u64, offset: i32, check: u32, ends_group: u64) -> Self {
        Self {
            place: code & ADDRESS | IS_FRAME | ends_group << 63,
            detail: offset as u32 as u64 | (check as u64) << 32,
        }
    }

    /// Makes the entry of the end of a group whose outermost frame is at this address.
    #[inline(always)]
    pub const fn end(frame: u64) -> Self {
        Self {
            place: frame & ADDRESS | ENDS_GROUP,
            detail: 0,
        }
    }

    /// Makes the entry of a task whose coroutine has its frame at `frame`. The task ran, or awaits
    /// the one before if `awaits` is 1. If `has_name` is 1, the program gave it a name of `length`
    /// characters in a string of this `state`, and the entries behind have room for some of it.
    #[inline(always)]
    pub const fn task(frame: u64, awaits: u64, has_name: u64, length: u32, state: u32) -> Self {
        Self {
            place: frame & ADDRESS | IS_TASK | has_name << HAS_NAME | awaits << AWAITS,
            detail: length as u64 | (state as u64) << 32,
        }
    }

    /// Makes the entry of `count` tasks that await the one before and are not listed; 0 if unknown.
    #[inline(always)]
    pub const fn several(count: u64) -> Self {
        Self {
            place: IS_TASK | 1 << AWAITS | ARE_SEVERAL,
            detail: count,
        }
    }

    pub const fn from_words(place: u64, detail: u64) -> Self {
        Self { place, detail }
    }

    #[inline(always)]
    pub const fn words(self) -> (u64, u64) {
        (self.place, self.detail)
    }

    pub const fn is_frame(self) -> bool {
        self.place & IS_FRAME != 0
    }

    /// Returns whether this is a task, whose coroutine has its frame at the address, or several.
    pub const fn is_task(self) -> bool {
        self.place & IS_TASK != 0
    }

    /// Returns whether the task awaits the one before.
    pub const fn awaits(self) -> bool {
        self.place >> AWAITS & 1 != 0
    }

    /// Returns how many tasks await the one before, 0 if unknown. Returns None for a single task.
    pub const fn are_several(self) -> Option<u64> {
        match self.place & ARE_SEVERAL {
            0 => None,
            _ => Some(self.detail),
        }
    }

    /// Returns the length of a task's name and the string's `state`. Returns None without a name.
    pub const fn task_name(self) -> Option<(u32, u32)> {
        match self.place >> HAS_NAME & 1 {
            0 => None,
            _ => Some((self.detail as u32, (self.detail >> 32) as u32)),
        }
    }

    /// Returns whether the group ends here, this entry included.
    pub const fn ends_group(self) -> bool {
        self.place & ENDS_GROUP != 0
    }

    /// Returns the address of a frame's code object; for any other entry, the address of a frame.
    pub const fn address(self) -> u64 {
        self.place & ADDRESS
    }

    /// Returns the offset of a frame in its code, in bytes.
    pub const fn offset(self) -> i32 {
        self.detail as u32 as i32
    }

    /// Returns the [`check`](super::check) of a frame's code object.
    pub const fn check(self) -> u32 {
        (self.detail >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: u64 = 0x7fff_1234_5670;

    #[test]
    fn a_frame_gives_back_what_was_put_into_it() {
        for (offset, check, ends_group) in [(-2, 7, 1), (i32::MAX, u32::MAX, 0)] {
            let entry = Entry::frame(ADDRESS, offset, check, ends_group);
            let (place, detail) = entry.words();
            let entry = Entry::from_words(place, detail);
            assert!(entry.is_frame() && !entry.is_task());
            assert_eq!(entry.address(), ADDRESS);
            assert_eq!(entry.offset(), offset);
            assert_eq!(entry.check(), check);
            assert_eq!(entry.ends_group(), ends_group == 1);
        }
    }

    #[test]
    fn what_is_no_frame_gives_back_what_was_put_into_it() {
        let end = Entry::end(ADDRESS);
        assert!(end.ends_group() && !end.is_frame() && !end.is_task());
        assert_eq!(end.address(), ADDRESS);
        for (awaits, has_name, name) in [(0, 1, Some((7, 0xe4))), (1, 0, None)] {
            let task = Entry::task(ADDRESS, awaits, has_name, 7, 0xe4);
            assert!(task.is_task() && !task.is_frame() && !task.ends_group());
            assert_eq!((task.address(), task.task_name()), (ADDRESS, name));
            assert_eq!((task.awaits(), task.are_several()), (awaits == 1, None));
        }
        let several = Entry::several(3);
        assert!(several.is_task() && several.awaits() && !several.ends_group());
        assert_eq!(several.are_several(), Some(3));
    }
}
