//! Why a frame has no name, as a sentence.

use profile::NoName;

/// Why a frame has no name, for a person.
pub fn why_unnamed(why: NoName) -> &'static str {
    match engine::alike::reason(why) {
        Some(reason) => reason.explain(),
        None if why == NoName::LeftOut => {
            "Names were left out when this was written; proftop resolve finds them again."
        }
        None => why.label(),
    }
}
