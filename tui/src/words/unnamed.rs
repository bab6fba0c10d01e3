//! Why a frame has no name, as a sentence.

use symbolize::Reason;

/// Why a frame has no name, for a person. The words are the ones that scripts
/// see.
pub fn why_unnamed(reason: &str) -> &str {
    if reason == "left_out" {
        return "Who wrote the recording left names out; proftop resolve finds them again.";
    }
    let label = reason.replace(' ', "_");
    let known = Reason::ALL.into_iter().find(|known| known.label() == label);
    known.map_or(reason, |known| known.explain())
}
