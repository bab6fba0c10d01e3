//! The reasons for which frames have no names, as sentences.

use profile::NoName;

/// Returns the sentence for the reason for which a frame has no name.
pub fn why_unnamed(why: NoName) -> &'static str {
    match engine::alike::reason(why) {
        Some(reason) => reason.explain(),
        None if why == NoName::LeftOut => {
            "Names were left out when this was written; proftop resolve finds them again."
        }
        None => why.label(),
    }
}
