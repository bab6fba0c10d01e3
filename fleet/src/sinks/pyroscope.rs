//! Sends to Pyroscope's push API, `push.v1.PusherService/Push`: a Connect call with one message, in
//! which each service of a window is a series with one gzipped pprof and its UUID.
//!
//! The limits are the defaults of Pyroscope 2 for a tenant (`pkg/validation/limits.go`).

use super::Sent;
use super::http::Client;
use crate::config::{Labels, Server};
use crate::encode::wire::Message;
use crate::encode::{Piece, pprof};
use crate::failure::Failure;
use crate::window::{Frame, Window, ids};
use std::time::Duration;

/// Maximum number of samples in one profile.
const SAMPLES_MAX: usize = 16_000;

/// Maximum size of one profile before compression.
const PROFILE_BYTES_MAX: usize = 4 << 20;

/// Maximum age of a profile: after an hour it is refused. Some minutes are left for the transfer
/// and for deviations of clocks.
pub const AGE_MAX: Duration = Duration::from_secs(55 * 60);

const PATH: &str = "/push.v1.PusherService/Push";

/// A server of Pyroscope.
pub struct Pyroscope {
    pub client: Client,
    labels: Labels,
}

impl Pyroscope {
    pub fn new(server: &Server, labels: Labels) -> Result<Self, Failure> {
        let client = Client::new(server, PATH)?;
        Ok(Self { client, labels })
    }

    pub fn send(&mut self, window: &Window, pieces: &[Piece]) -> Sent {
        let body = request(window, pieces, &self.labels);
        let headers = [
            ("Content-Type", "application/proto"),
            ("Connect-Protocol-Version", "1"),
        ];
        let answer = self.client.post(&headers, &body.0);
        Sent {
            outcome: answer.outcome,
            bytes: body.0.len() as u64,
        }
    }
}

/// Divides all samples into pieces that are within the limits.
pub fn pieces(window: &Window) -> Vec<Piece> {
    let mut open = Piece::all(window, SAMPLES_MAX);
    // Nearly always all of it together is small enough, which is known without encoding it.
    if bytes_max(window) <= PROFILE_BYTES_MAX {
        return open;
    }
    open.reverse();
    let mut pieces = Vec::new();
    while let Some(piece) = open.pop() {
        let is_small = pprof::write(window, piece).len() <= PROFILE_BYTES_MAX;
        match piece.halves().filter(|_| !is_small) {
            Some([first, second]) => open.extend([second, first]),
            None => pieces.push(piece),
        }
    }
    pieces
}

/// Returns an upper bound of the size of a profile with all samples of a window.
fn bytes_max(window: &Window) -> usize {
    // Numbers take at most five bytes, and each item has a few of them.
    const EACH: usize = 64;
    let frame = |it: &Frame| {
        let functions = it
            .functions
            .iter()
            .map(|it| EACH + it.name.len() + it.file.len());
        EACH + it.path.len() + it.module.len() + 2 * it.build_id.len() + functions.sum::<usize>()
    };
    let frames: usize = window.frames.iter().map(frame).sum();
    let stacks = window.services.iter().flat_map(|it| &it.samples);
    let stack = |number: u32| window.stacks[number as usize].frames.len();
    let samples: usize = stacks.map(|(it, _)| EACH + 5 * stack(*it)).sum();
    frames + samples
}

/// Returns the name of the profile, which is a part of its type together with the types in the
/// pprof.
fn profile_name(window: &Window) -> String {
    match &*window.event {
        "cpu" => "process_cpu".into(),
        "off-cpu" => "off_cpu".into(),
        other => other
            .chars()
            .map(|it| if it.is_ascii_alphanumeric() { it } else { '_' })
            .collect(),
    }
}

/// Makes a `PushRequest`. The name of the host is not a label: with some thousand hosts there would
/// be more series than a tenant may have.
fn request(window: &Window, pieces: &[Piece], labels: &Labels) -> Message {
    let name = profile_name(window);
    let mut request = Message::default();
    for piece in pieces {
        let service = &window.services[piece.service];
        let mut series = Message::default();
        for (key, value) in [
            ("__name__", &name),
            ("cluster", &labels.cluster),
            ("namespace", &labels.namespace),
            ("service_name", &service.name),
            ("version", &service.version),
        ] {
            if !value.is_empty() {
                let mut label = Message::default();
                label.bytes(1, key.as_bytes()).bytes(2, value.as_bytes());
                series.message(1, &label);
            }
        }
        let profile = pprof::gzip(&pprof::write(window, *piece));
        let id = ids::uuid_text(&piece.uuid(window));
        let mut sample = Message::default();
        sample.bytes(1, &profile).bytes(2, id.as_bytes());
        series.message(2, &sample);
        request.message(1, &series);
    }
    request
}
