//! A server that accepts profiles: divides windows into its requests.

use super::{Sent, otlp, pyroscope};
use crate::config::{Kind, Labels, Sink};
use crate::encode::Piece;
use crate::failure::Failure;
use crate::window::Window;

/// A server of one of the protocols.
pub enum Server {
    Pyroscope(pyroscope::Pyroscope),
    Otlp(otlp::Otlp),
}

impl Server {
    /// Prepares the connection to the server of a sink; `None` if the sink is not a server.
    pub fn of_sink(sink: &Sink, labels: &Labels) -> Result<Option<Self>, Failure> {
        Ok(match &sink.kind {
            Kind::Pyroscope(server) => Some(Self::Pyroscope(pyroscope::Pyroscope::new(
                server,
                labels.clone(),
            )?)),
            Kind::Otlp(server) => Some(Self::Otlp(otlp::Otlp::new(server, labels.clone())?)),
            Kind::Parquet { .. } => None,
        })
    }

    /// Returns the requests for a window, each as its pieces. The result is the same each time.
    pub fn requests(&self, window: &Window) -> Vec<Vec<Piece>> {
        let pieces = match self {
            Self::Pyroscope(_) => pyroscope::pieces(window),
            Self::Otlp(_) => Piece::all(window, otlp::SAMPLES_MAX),
        };
        if pieces.is_empty() {
            Vec::new()
        } else {
            vec![pieces]
        }
    }

    /// Whether the token's file has another token than the one that was last sent.
    pub fn has_new_token(&self) -> bool {
        match self {
            Self::Pyroscope(server) => server.client.has_new_token(),
            Self::Otlp(server) => server.client.has_new_token(),
        }
    }

    /// Sends one request.
    pub fn send(&mut self, window: &Window, pieces: &[Piece]) -> Sent {
        match self {
            Self::Pyroscope(server) => server.send(window, pieces),
            Self::Otlp(server) => server.send(window, pieces),
        }
    }
}

/// Returns two requests with half as much each; `None` if nothing can be divided.
pub fn halves(pieces: &[Piece]) -> Option<[Vec<Piece>; 2]> {
    match pieces {
        [] => None,
        [one] => one.halves().map(|halves| halves.map(|half| vec![half])),
        several => {
            let (first, second) = several.split_at(several.len() / 2);
            Some([first.to_vec(), second.to_vec()])
        }
    }
}
