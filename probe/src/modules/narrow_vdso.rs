//! The vDSO of 32-bit processes, which differs from proftop's own: it is read from their memory.
//!
//! It comes from the kernel, but a process may write into its own copy. So images are distinguished
//! by their bytes, and a modified image in one process never names the code of another.

use std::collections::HashMap;
use std::sync::Arc;

use super::Seen;
use crate::ids::ModuleId;
use symbolize::Files;

/// Maximum size of an image: it has two pages on all kernels so far.
const IMAGE_BYTES_MAX: u64 = 64 << 10;

/// Maximum number of different images; one kernel has one.
const IMAGES_MAX: usize = 16;

/// The images seen so far, and the module for processes whose memory could not be read.
#[derive(Debug, Default)]
pub struct NarrowVdsos {
    by_image: HashMap<Arc<[u8]>, ModuleId>,
    unread: Option<ModuleId>,
}

impl NarrowVdsos {
    /// Returns the module of a mapped `[vdso]`; calls `add` to number a new one.
    pub fn find(
        &mut self,
        seen: &Seen<'_>,
        files: &Files,
        add: impl FnOnce(Option<Arc<[u8]>>) -> ModuleId,
    ) -> ModuleId {
        let image = read(seen, files);
        match image {
            Some(image) => self.of_image(image, add),
            None => *self.unread.get_or_insert_with(|| add(None)),
        }
    }

    fn of_image(
        &mut self,
        image: Arc<[u8]>,
        add: impl FnOnce(Option<Arc<[u8]>>) -> ModuleId,
    ) -> ModuleId {
        if let Some(id) = self.by_image.get(&image) {
            return *id;
        }
        if self.by_image.len() >= IMAGES_MAX {
            return *self.unread.get_or_insert_with(|| add(None));
        }
        let id = add(Some(image.clone()));
        self.by_image.insert(image, id);
        id
    }
}

/// Whether a `[vdso]` mapping belongs to a 32-bit process: only those have memory for it at such
/// low addresses.
pub fn is_narrow(seen: &Seen<'_>) -> bool {
    seen.end <= 1 << 32
}

fn read(seen: &Seen<'_>, files: &Files) -> Option<Arc<[u8]>> {
    let len = seen.end.checked_sub(seen.start)?;
    if len > IMAGE_BYTES_MAX {
        return None;
    }
    let image = files.memory(seen.pid, seen.start, len as u32).ok()?;
    Some(image.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_image_is_a_module() {
        let mut vdsos = NarrowVdsos::default();
        let mut next = 0;
        let mut find = |image: u8| {
            vdsos.of_image(Arc::from(vec![image; 8]), |_| {
                next += 1;
                ModuleId(next)
            })
        };
        assert_eq!([find(1), find(2), find(1)], [1, 2, 1].map(ModuleId));
        let last = (0..100).map(&mut find).last();
        assert_eq!(last, Some(find(200)), "beyond the bound all are one");
        assert_eq!(find(2), ModuleId(2));
    }
}
