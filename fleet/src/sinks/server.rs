//! A server that takes profiles: what of a window goes into which request.

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
    /// Makes ready to speak to the server of a sink; `None` if it is none.
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

    /// The requests of a window, each as the pieces that it has. They are the same each time.
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

    /// Whether the file of the token has another one than that which was sent last.
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

/// Two requests with half as much each; `None` if there is nothing to divide.
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
