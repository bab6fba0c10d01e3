//! *speedscope*: one JSON document for <https://www.speedscope.app>, a viewer that runs in the
//! browser and uploads nothing.
//!
//! `speedscope/src/lib/file-format-spec.ts` of `github.com/jlfwong/speedscope`
//! describes it. There is one profile for each thread or thread name, the busiest first;
//! equal stacks are one sample with their weight.

mod reader;
mod writer;

pub use writer::write;

pub(super) use reader::read;

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";
