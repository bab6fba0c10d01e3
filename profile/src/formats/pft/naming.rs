//! Reads names and sources of a file into a store, in the layouts of both versions.
//!
//! Version 1 stores rows, with all values of one frame side by side; version 2 stores columns. In
//! both, a name may come long after its frame, and for a frame that the store does not have because
//! all its samples were dropped. Such a name is read and ignored.

use super::columns::{Strings, kind};
use super::tables::Tables;
use crate::formats::FormatError;
use crate::formats::wire::Bytes;
use crate::{Frame, NameState, NoName, SourceFrame, Store};
use std::sync::Arc;

/// Longest chain of one frame that is read, in links.
const CHAIN_MAX: usize = 256;

/// The frames without names and the reasons, if they are kept from the store
/// ([`Reader::keep_reasons`](super::Reader::keep_reasons)); else `None`.
pub(super) type Reasons = Option<Vec<(Frame, NameState)>>;

fn damaged(what: &str) -> FormatError {
    FormatError::Damaged(what.into())
}

/// Reads names of version 1, as rows: the number of a frame, whether it has a name, and the name or
/// the reason why it has none.
pub(super) fn add_names(
    mut bytes: Bytes<'_>,
    tables: &Tables,
    reasons: &mut Reasons,
    store: &mut Store,
) -> Result<(), FormatError> {
    while !bytes.is_empty() {
        let frame = tables.frame(bytes.u32()?)?;
        let is_unnamed = bytes.byte()? != 0;
        let text = tables.string(&mut bytes)?;
        let state = if is_unnamed {
            unnamed(text, bytes.number()?.checked_sub(1))
        } else {
            NameState::Named(Arc::clone(text))
        };
        set_name_state(frame, state, reasons, store);
    }
    Ok(())
}

/// Reads names of version 2, as columns of frames, kinds and texts, followed by the starts of
/// functions, for those frames whose kind says that there is one.
pub(super) fn add_name_columns(
    mut bytes: Bytes<'_>,
    tables: &Tables,
    reasons: &mut Reasons,
    store: &mut Store,
) -> Result<(), FormatError> {
    let mut frames = Bytes(bytes.bytes()?);
    let mut kinds = Bytes(bytes.bytes()?);
    let mut texts = Strings::new(bytes.bytes()?);
    let mut starts = bytes;
    let mut number = 0u32;
    while !frames.is_empty() {
        number = number.saturating_add(frames.u32()?);
        let frame = tables.frame(number)?;
        let text = tables.string_of(texts.next()?)?;
        let state = match kinds.byte()? {
            kind::NAMED => NameState::Named(Arc::clone(text)),
            kind::UNNAMED => unnamed(text, None),
            kind::UNNAMED_IN => {
                let address = frame.map_or(0, |frame| frame.address);
                unnamed(text, Some(address.wrapping_add_signed(starts.signed()?)))
            }
            _ => return Err(damaged("a name of a kind that is not known")),
        };
        set_name_state(frame, state, reasons, store);
    }
    Ok(())
}

/// Returns the state of a frame without a name. An unknown reason, from a newer writer, becomes
/// [`NoName::Other`].
fn unnamed(text: &str, start: Option<u64>) -> NameState {
    let reason = NoName::from_label(text);
    match start {
        Some(start) => NameState::UnnamedIn { reason, start },
        None => NameState::Unnamed(reason),
    }
}

/// Sets the name of a frame, or the reason why it has none; a later call replaces an earlier one.
fn set_name_state(
    frame: Option<Frame>,
    state: NameState,
    reasons: &mut Reasons,
    store: &mut Store,
) {
    let Some(frame) = frame else { return };
    match reasons {
        Some(reasons) if !matches!(state, NameState::Named(_)) => reasons.push((frame, state)),
        _ => {
            if let Some(id) = store.find_frame(&frame) {
                store.set_name(id, state);
            }
        }
    }
}

/// Reads sources of version 1, as rows: the number of a frame and the links of its chain, each with
/// function, file and line.
pub(super) fn add_sources(
    mut bytes: Bytes<'_>,
    tables: &Tables,
    store: &mut Store,
) -> Result<(), FormatError> {
    while !bytes.is_empty() {
        let frame = tables.frame(bytes.u32()?)?;
        let mut chain = Vec::new();
        for _ in 0..checked_links(bytes.number()?)? {
            chain.push(SourceFrame {
                function: tables.string(&mut bytes)?,
                file: tables.string(&mut bytes)?,
                line: bytes.u32()?,
            });
        }
        set_source(frame, &chain, store);
    }
    Ok(())
}

/// Reads sources of version 2, as columns of frames, counts of links, functions and files, followed
/// by the lines, each as the difference to the one before.
pub(super) fn add_source_columns(
    mut bytes: Bytes<'_>,
    tables: &Tables,
    store: &mut Store,
) -> Result<(), FormatError> {
    let mut frames = Bytes(bytes.bytes()?);
    let mut counts = Bytes(bytes.bytes()?);
    let mut functions = Strings::new(bytes.bytes()?);
    let mut files = Strings::new(bytes.bytes()?);
    let mut lines = bytes;
    let (mut number, mut line) = (0u32, 0u32);
    while !frames.is_empty() {
        number = number.saturating_add(frames.u32()?);
        let frame = tables.frame(number)?;
        let mut chain = Vec::new();
        for _ in 0..checked_links(counts.number()?)? {
            let next = i64::from(line)
                .checked_add(lines.signed()?)
                .and_then(|line| u32::try_from(line).ok());
            line = next.ok_or_else(|| damaged("a line of no number"))?;
            chain.push(SourceFrame {
                function: tables.string_of(functions.next()?)?,
                file: tables.string_of(files.next()?)?,
                line,
            });
        }
        set_source(frame, &chain, store);
    }
    Ok(())
}

/// Returns a count of links, or an error if it is above `CHAIN_MAX`. The store keeps at most 64 of
/// them.
fn checked_links(links: u64) -> Result<usize, FormatError> {
    match usize::try_from(links) {
        Ok(links) if links <= CHAIN_MAX => Ok(links),
        _ => Err(damaged("more functions at one place than can be")),
    }
}

/// Sets the source of a frame; ignored for `None` and for a frame that the store does not have.
fn set_source(frame: Option<Frame>, chain: &[SourceFrame<'_>], store: &mut Store) {
    if let Some(id) = frame.and_then(|frame| store.find_frame(&frame)) {
        store.set_source(id, chain);
    }
}
