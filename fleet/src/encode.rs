//! Windows as messages of the protocols that carry profiles.

/// OpenTelemetry's profiles.
pub mod otlp;
/// pprof, of which Pyroscope gets one for each service.
pub mod pprof;
/// Messages of protobuf as bytes.
pub mod wire;

use crate::window::{Window, ids};

/// Some of the samples of a service, as they are sent in one profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// A place in the window's list of services.
    pub service: usize,
    /// Of the samples of that service, from this place to before that one.
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

    /// The samples: which stack, and how often.
    pub fn samples(self, window: &Window) -> &[(u32, u64)] {
        &window.services[self.service].samples[self.from..self.to]
    }

    /// A UUID of its own, the same each time that it is sent.
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
