//! Destinations of windows.

/// One connection to a server, with TLS and a token.
pub mod http;
/// Sends OpenTelemetry's profiles.
pub mod otlp;
/// Writes files of Parquet.
pub mod parquet;
/// Sends to Pyroscope's push API.
pub mod pyroscope;
/// Divides windows into requests to a server.
pub mod server;

use std::time::Duration;

/// The result of a request, by the rules of docs/fleet.md.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was accepted, except for profiles that the server reports as refused.
    Taken { refused: u64 },
    /// It may be accepted later, not before this time.
    Later {
        after: Option<Duration>,
        why: String,
    },
    /// It is too large for one request.
    TooLarge { why: String },
    /// The server refuses its content, and would refuse it later as well.
    Refused { why: String },
    /// The server refuses all requests with this configuration: the URL, the token or the
    /// certificate is wrong.
    NotAllowed { why: String },
}

/// The result of a request, and its size.
pub struct Sent {
    pub outcome: Outcome,
    pub bytes: u64,
}

/// Returns the result for the status of an answer. 408, 429 and 5xx are temporary; 413 and 422 are
/// about the size; statuses about a wrong address or missing rights concern the configuration, and
/// are no reason to drop samples.
pub fn by_status(status: u16, after: Option<Duration>, why: String) -> Outcome {
    match status {
        200..300 => Outcome::Taken { refused: 0 },
        408 | 429 | 500..600 => Outcome::Later { after, why },
        413 | 422 => Outcome::TooLarge { why },
        300..=399 | 401 | 403 | 404 | 405 | 407 => Outcome::NotAllowed { why },
        _ => Outcome::Refused { why },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_decides() {
        let of = |status| by_status(status, Some(Duration::from_secs(3)), String::new());
        assert_eq!(of(204), Outcome::Taken { refused: 0 });
        for status in [408, 429, 500, 502, 503, 504] {
            assert!(matches!(of(status), Outcome::Later { after: Some(_), .. }));
        }
        for status in [413, 422] {
            assert!(matches!(of(status), Outcome::TooLarge { .. }));
        }
        for status in [301, 401, 403, 404] {
            assert!(matches!(of(status), Outcome::NotAllowed { .. }));
        }
        for status in [400, 409, 410, 415] {
            assert!(matches!(of(status), Outcome::Refused { .. }));
        }
    }
}
