//! Where windows are sent to.

/// One connection to a server, with TLS and a token.
pub mod http;
/// OpenTelemetry's protocol.
pub mod otlp;
/// Files of Parquet.
pub mod parquet;
/// Pyroscope's push API.
pub mod pyroscope;
/// What may be sent to a server, in one request.
pub mod server;

use std::time::Duration;

/// What became of a request, by the rules of docs/fleet.md.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was taken. Profiles that the server says it has refused are counted.
    Taken { refused: u64 },
    /// It may be taken later, not before this time.
    Later {
        after: Option<Duration>,
        why: String,
    },
    /// It is too much at once.
    TooLarge { why: String },
    /// The server does not want what is in it, and will not want it later.
    Refused { why: String },
    /// The server takes nothing from us as it is set up: the URL, the token or the certificate.
    NotAllowed { why: String },
}

/// What became of a request, and how many bytes it had.
pub struct Sent {
    pub outcome: Outcome,
    pub bytes: u64,
}

/// Decides by the status of an answer. 408, 429 and 5xx pass; 413 and 422 are about the size; what says
/// that address or rights are wrong is a matter of the configuration, and no reason to give up samples.
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
