//! Encodes windows in the protocols for profiles.

/// Encodes OpenTelemetry's profiles.
pub mod otlp;
/// Encodes pprof profiles, of which Pyroscope gets one for each service.
pub mod pprof;
/// Encodes messages of protobuf.
pub mod wire;

use crate::window::{Window, ids};

/// Some of the samples of a service, as they are sent in one profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Index in the window's list of services.
    pub service: usize,
    /// Range of samples of that service: from this index, up to but excluding the next field.
    pub from: usize,
    pub to: usize,
}

impl Piece {
    /// Divides the samples of all services into pieces, each of at most `samples_max` samples of one
    /// service.
    pub fn all(window: &Window, samples_max: usize) -> Vec<Piece> {
        let services = window.services.iter().enumerate();
        let pieces = services.flat_map(|(service, it)| {
            let count = it.samples.len();
            (0..count).step_by(samples_max).map(move |from| Piece {
                service,
                from,
                to: count.min(from + samples_max),
            })
        });
        pieces.collect()
    }

    /// Two pieces of half as many samples; `None` if it has only one.
    pub fn halves(self) -> Option<[Piece; 2]> {
        let middle = self.from + (self.to - self.from) / 2;
        (middle > self.from).then_some([
            Piece { to: middle, ..self },
            Piece {
                from: middle,
                ..self
            },
        ])
    }

    /// Returns the samples: index of the stack, and value.
    pub fn samples(self, window: &Window) -> &[(u32, u64)] {
        &window.services[self.service].samples[self.from..self.to]
    }

    /// Returns a unique UUID, which is the same each time that the piece is sent.
    pub fn uuid(self, window: &Window) -> [u8; 16] {
        let service = &window.services[self.service];
        ids::uuid(&[
            window.spool.as_bytes(),
            &window.number.to_le_bytes(),
            service.name.as_bytes(),
            service.version.as_bytes(),
            service.container.as_bytes(),
            &(self.from as u64).to_le_bytes(),
            &(self.to as u64).to_le_bytes(),
        ])
    }
}
