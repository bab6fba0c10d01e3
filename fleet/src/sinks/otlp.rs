//! OpenTelemetry's profiles over HTTP: a POST of a gzipped `ExportProfilesServiceRequest`.

use super::http::Client;
use super::{Outcome, Sent};
use crate::config::{Labels, Server};
use crate::encode::{Piece, otlp, pprof};
use crate::failure::Failure;
use crate::window::Window;

/// Maximum number of samples in one profile: with 64 frames each they stay far below the 64 MiB
/// that a receiver accepts.
pub const SAMPLES_MAX: usize = 100_000;

const PATH: &str = "/v1development/profiles";

/// A receiver of OpenTelemetry.
pub struct Otlp {
    pub client: Client,
    labels: Labels,
}

impl Otlp {
    pub fn new(server: &Server, labels: Labels) -> Result<Self, Failure> {
        let client = Client::new(server, PATH)?;
        Ok(Self { client, labels })
    }

    pub fn send(&mut self, window: &Window, pieces: &[Piece]) -> Sent {
        let body = pprof::gzip(&otlp::write(window, pieces, &self.labels));
        let headers = [
            ("Content-Type", "application/x-protobuf"),
            ("Content-Encoding", "gzip"),
        ];
        let answer = self.client.post(&headers, &body);
        let outcome = match answer.outcome {
            Outcome::Taken { .. } => Outcome::Taken {
                refused: rejected(&answer.body),
            },
            other => other,
        };
        Sent {
            outcome,
            bytes: body.len() as u64,
        }
    }
}

/// Returns `rejected_profiles` of `ExportProfilesServiceResponse.partial_success`; 0 if all were
/// accepted, or if the answer cannot be decoded.
fn rejected(answer: &[u8]) -> u64 {
    let Some(Field::Bytes(partial)) = find(answer, 1) else {
        return 0;
    };
    match find(partial, 1) {
        Some(Field::Number(rejected)) => rejected,
        _ => 0,
    }
}

/// The value of a message's field.
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Finds a field in a message.
fn find(mut message: &[u8], wanted: u64) -> Option<Field<'_>> {
    while !message.is_empty() {
        let key = varint(&mut message)?;
        let field = match key & 7 {
            0 => Field::Number(varint(&mut message)?),
            1 => {
                message = message.get(8..)?;
                continue;
            }
            2 => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                let (bytes, rest) = message.split_at_checked(length)?;
                message = rest;
                Field::Bytes(bytes)
            }
            5 => {
                message = message.get(4..)?;
                continue;
            }
            _ => return None,
        };
        if key >> 3 == wanted {
            return Some(field);
        }
    }
    None
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_receiver_rejects_is_counted_and_no_answer_does_harm() {
        assert_eq!(rejected(&[]), 0);
        // partial_success { rejected_profiles: 300, error_message: "no" }
        assert_eq!(rejected(&[10, 7, 8, 0xac, 2, 18, 2, b'n', b'o']), 300);
        for hostile in [&[10, 200][..], &[0x80; 20], &[15], &[10, 1, 8], &[9, 1]] {
            assert_eq!(rejected(hostile), 0);
        }
    }
}
