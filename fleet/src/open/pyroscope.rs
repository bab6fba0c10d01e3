//! Asks Pyroscope for one profile of all that is selected, as pprof:
//! `querier.v1.QuerierService/SelectMergeStacktraces` with the format pprof, and
//! `SelectMergeProfile` of servers that do not know this format yet. Numbers of fields are those of
//! `api/querier/v1/querier.proto` in `github.com/grafana/pyroscope`.

use super::address::Pyroscope;
use crate::encode::wire::Message;
use crate::failure::Failure;
use crate::sinks::http::{Client, NoAnswer};
use std::time::Duration;

const STACKTRACES: &str = "/querier.v1.QuerierService/SelectMergeStacktraces";
const PROFILE: &str = "/querier.v1.QuerierService/SelectMergeProfile";

/// `PROFILE_FORMAT_PPROF`.
const FORMAT_PPROF: u64 = 4;

/// Maximum size of the answer, which is in memory some times.
const BYTES_MAX: u64 = 64 << 20;

/// How long to wait for the answer.
const PATIENCE: Duration = Duration::from_secs(120);

const HEADERS: [(&str, &str); 2] = [
    ("Content-Type", "application/proto"),
    ("Connect-Protocol-Version", "1"),
];

/// Fetches the profile; empty if the server has none. The inner error says in a sentence why there
/// is none.
pub fn fetch(
    address: &Pyroscope,
    client: impl Fn(&str) -> Result<Client, Failure>,
) -> Result<Result<Vec<u8>, String>, Failure> {
    let mut request = Message::default();
    request
        .bytes(1, address.profile_type.as_bytes())
        .bytes(2, address.selector.as_bytes())
        .number(3, address.from_ms.max(0) as u64)
        .number(4, address.until_ms.max(0) as u64);
    let older = request.clone();
    request.number(6, FORMAT_PPROF);
    let answer = client(STACKTRACES)?.fetch(&HEADERS, &request.0, BYTES_MAX, PATIENCE);
    match answer {
        Ok(answer) => match profile(&answer) {
            Ok(Some(profile)) => return Ok(Ok(profile.to_vec())),
            // A server that does not know the format answers with a flame graph, or with nothing.
            Ok(None) => {}
            Err(why) => return Ok(Err(why)),
        },
        Err(no_answer) if is_of_older(&no_answer) => {}
        Err(no_answer) => return Ok(Err(told(no_answer))),
    }
    let answer = client(PROFILE)?.fetch(&HEADERS, &older.0, BYTES_MAX, PATIENCE);
    Ok(answer.map_err(told))
}

/// Whether a server may know the older question only.
fn is_of_older(no_answer: &NoAnswer) -> bool {
    matches!(no_answer.status, Some(400 | 404 | 501))
}

/// Says what can be done.
fn told(no_answer: NoAnswer) -> String {
    let advice = match no_answer.status {
        Some(401 | 403) => "; a token is given by --token-file, a tenant by --tenant",
        Some(404) => "; the address is that of Pyroscope itself, not of Grafana",
        Some(300..=399) => "; redirections are not followed: write the address that it leads to",
        _ if no_answer.is_too_large => "; ask for less time (from, until) or one service (q)",
        _ => "",
    };
    format!("{}{advice}", no_answer.why)
}

/// Returns the pprof in an answer: its field 5 is a message, whose field 1 is the profile. `None` if
/// it has none.
fn profile(answer: &[u8]) -> Result<Option<&[u8]>, String> {
    match field(answer, 5)? {
        Some(inner) => Ok(Some(field(inner, 1)?.unwrap_or_default())),
        None => Ok(None),
    }
}

/// Returns the bytes of the last field with a number, as readers of protobuf take the last one.
fn field(mut message: &[u8], wanted: u64) -> Result<Option<&[u8]>, String> {
    let mut found = None;
    while !message.is_empty() {
        let key = number(&mut message)?;
        let length = match key & 7 {
            0 => {
                number(&mut message)?;
                continue;
            }
            1 => 8,
            2 => number(&mut message)?,
            5 => 4,
            _ => return Err(strange()),
        };
        let length = usize::try_from(length).map_err(|_| strange())?;
        let (bytes, rest) = message.split_at_checked(length).ok_or_else(strange)?;
        message = rest;
        if key == wanted << 3 | 2 {
            found = Some(bytes);
        }
    }
    Ok(found)
}

/// Takes a number from the beginning of a message.
fn number(message: &mut &[u8]) -> Result<u64, String> {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let (byte, rest) = message.split_first().ok_or_else(strange)?;
        *message = rest;
        let bits = u64::from(byte & 0x7f);
        value |= bits.checked_shl(shift).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(strange())
}

fn strange() -> String {
    "its answer is not one of Pyroscope: is the address right?".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_found_among_other_fields() {
        let mut inner = Message::default();
        inner.bytes(1, b"profile");
        let mut answer = Message::default();
        answer.bytes(1, b"graph").number(3, 1 << 40).fixed64(4, 7);
        assert_eq!(profile(&answer.0), Ok(None));
        answer.message(5, &inner).bytes(7, b"later");
        assert_eq!(profile(&answer.0), Ok(Some(&b"profile"[..])));
        for cut in 1..answer.0.len() {
            // It is an error or has no profile, and never a part of one.
            if let Ok(Some(found)) = profile(&answer.0[..cut]) {
                assert_eq!(found, b"profile", "{cut}");
            }
        }
    }

    #[test]
    fn any_bytes_are_harmless() {
        let mut random = 1_u64;
        for length in 0..2000 {
            let bytes: Vec<u8> = (0..length % 40)
                .map(|_| {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    (random >> 56) as u8
                })
                .collect();
            let _ = profile(&bytes);
        }
        assert!(profile(b"<html>").is_err());
        assert!(number(&mut &[0xff; 11][..]).is_err());
    }
}
