//! *Firefox Profiler*: the JSON of <https://profiler.firefox.com>, which other tools such as samply
//! write, too.
//!
//! `docs-developer/processed-profile-format.md` of
//! `github.com/firefox-devtools/profiler` describes it. Its version 48 is
//! written, whose tables belong to threads, as every reader of it knows that;
//! newer ones, whose threads share their tables, are read as well. What is
//! missing of a stack is a function `[stopped: cause]` or `[no stack]` there.
//!
//! - [`layout`]: the document as it is read
//! - [`tables`]: the stacks of a thread, resolved
//! - [`reader`]: a document as a store
//! - [`writer`]: a selection as a document

mod layout;
mod reader;
mod tables;
mod writer;

pub use writer::write;

pub(super) use reader::read;

/// Returns the identifier that Breakpad makes of a build-id, by which libraries are known in the
/// document: the first sixteen bytes as a GUID of little-endian words, and an age of 0.
fn breakpad_id(build_id: &[u8]) -> String {
    let mut guid = [0u8; 16];
    for (to, from) in guid.iter_mut().zip(build_id) {
        *to = *from;
    }
    guid[..4].reverse();
    guid[4..6].reverse();
    guid[6..8].reverse();
    let digits: String = guid.iter().map(|byte| format!("{byte:02X}")).collect();
    digits + "0"
}

#[cfg(test)]
mod tests {
    #[test]
    fn breakpad_swaps_the_words_of_a_build_id() {
        let build_id = super::super::import::hex("510d0a5c19eadf8043f203b4525be9be3dcb9554");
        let wanted = "5C0A0D51EA1980DF43F203B4525BE9BE0";
        assert_eq!(super::breakpad_id(&build_id), wanted);
    }
}
