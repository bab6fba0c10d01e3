//! The background color of the terminal. We ask the terminal once and do not wait for the answer
//! (OSC 11). It arrives among the keys at any time and must not be taken for keys, because its
//! letters, such as `b` and `]`, have meanings as keys.

use crate::widgets::theme::Ground;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::time::{Duration, Instant};

/// The question for the background color: `OSC 11 ; ? ST`.
pub const QUESTION: &[u8] = b"\x1b]11;?\x1b\\";

/// Maximum time between the first and the last byte of an answer, which is sent at once. Slower
/// bytes were typed.
const PIECE: Duration = Duration::from_millis(500);
/// After this time we do not expect an answer any more.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum length of an answer, such as `11;rgba:ffff/ffff/ffff/ffff`.
const LENGTH_MAX: usize = 32;

/// Filters the answer to the question out of the keys.
#[derive(Debug)]
pub struct GroundReply {
    /// When the question was sent.
    asked: Instant,
    /// The part of the answer that has arrived, and when it started.
    text: Option<(String, Instant)>,
    /// Whether no answer is expected any more.
    is_over: bool,
}

/// Whether a key was pressed, or belongs to the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroundKey {
    /// The user pressed the key.
    Key,
    /// The key is a part of the answer.
    Part,
    /// The key ends the answer, which contains this background.
    Ground(Ground),
}

impl GroundReply {
    /// Expects the answer to a question that is sent now.
    pub fn asked(now: Instant) -> Self {
        GroundReply {
            asked: now,
            text: None,
            is_over: false,
        }
    }

    /// Expects no answer: all keys were pressed by the user.
    pub fn none(now: Instant) -> Self {
        GroundReply {
            is_over: true,
            ..Self::asked(now)
        }
    }

    /// Decides whether a key was pressed by the user or belongs to the answer. All keys have to
    /// pass through this function.
    pub fn handle_key(&mut self, key: KeyEvent, now: Instant) -> GroundKey {
        if self.is_over {
            return GroundKey::Key;
        }
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let Some((text, began)) = &mut self.text else {
            if now.duration_since(self.asked) > PATIENCE {
                self.is_over = true;
            } else if key.code == KeyCode::Char(']') && alt {
                self.text = Some((String::new(), now));
                return GroundKey::Part;
            }
            return GroundKey::Key;
        };
        if now.duration_since(*began) > PIECE || text.len() > LENGTH_MAX {
            self.is_over = true;
            return GroundKey::Key;
        }
        let is_end =
            (key.code == KeyCode::Char('\\') && alt) || (key.code == KeyCode::Char('g') && control);
        if is_end {
            self.is_over = true;
            return GroundKey::Ground(read(text));
        }
        if let KeyCode::Char(c) = key.code {
            text.push(c);
        }
        GroundKey::Part
    }
}

/// Parses an answer such as `11;rgb:1e1e/1e1e/1e1e`, with one to four digits for each color.
fn read(text: &str) -> Ground {
    let colors = text.strip_prefix("11;rgb").and_then(|rest| {
        let (_, colors) = rest.split_once(':')?;
        let mut parts = colors.split('/').map(part);
        Some([parts.next()??, parts.next()??, parts.next()??])
    });
    match colors {
        // The weights for brightness of ITU-R BT.601.
        Some([red, green, blue]) if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 => {
            Ground::Light
        }
        Some(_) => Ground::Dark,
        None => Ground::Unknown,
    }
}

/// Parses the intensity of one color, as a number from 0 to 1.
fn part(digits: &str) -> Option<f64> {
    if !(1..=4).contains(&digits.len()) {
        return None;
    }
    let value = u16::from_str_radix(digits, 16).ok()?;
    let max = (1u32 << (4 * digits.len())) - 1;
    Some(f64::from(value) / f64::from(max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: KeyCode, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent::new(code, modifiers)
    }

    /// Returns the keys into which the terminal library turns the bytes of an answer.
    fn keys(text: &str) -> Vec<KeyEvent> {
        let mut keys = vec![key(KeyCode::Char(']'), KeyModifiers::ALT)];
        keys.extend(
            text.chars()
                .map(|c| key(KeyCode::Char(c), KeyModifiers::NONE)),
        );
        keys.push(key(KeyCode::Char('\\'), KeyModifiers::ALT));
        keys
    }

    #[test]
    fn an_answer_is_no_keys() {
        for (text, ground) in [
            ("11;rgb:1e1e/1e1e/1e1e", Ground::Dark),
            ("11;rgb:ffff/ffff/ffff", Ground::Light),
            ("11;rgb:fd/f6/e3", Ground::Light),
            ("11;rgba:0000/2b2b/3636/ffff", Ground::Dark),
            ("11;rgb:", Ground::Unknown),
            ("11;rgb:fffff/f/f", Ground::Unknown),
        ] {
            let now = Instant::now();
            let mut reply = GroundReply::asked(now);
            let handled: Vec<GroundKey> = keys(text)
                .into_iter()
                .map(|k| reply.handle_key(k, now))
                .collect();
            let (last, before) = handled.split_last().expect("keys");
            assert_eq!(*last, GroundKey::Ground(ground), "{text}");
            assert!(
                before.iter().all(|handled| *handled == GroundKey::Part),
                "{text}"
            );
            // From now on all keys are the user's.
            let typed = key(KeyCode::Char(']'), KeyModifiers::ALT);
            assert_eq!(reply.handle_key(typed, now), GroundKey::Key);
        }
    }

    #[test]
    fn what_is_typed_is_not_an_answer() {
        let now = Instant::now();
        let typed = key(KeyCode::Char('b'), KeyModifiers::NONE);
        let begins = key(KeyCode::Char(']'), KeyModifiers::ALT);
        let mut reply = GroundReply::asked(now);
        assert_eq!(reply.handle_key(typed, now), GroundKey::Key);
        // The user presses Alt-] and goes on typing.
        assert_eq!(reply.handle_key(begins, now), GroundKey::Part);
        assert_eq!(reply.handle_key(typed, now + 2 * PIECE), GroundKey::Key);
        let mut late = GroundReply::asked(now);
        assert_eq!(late.handle_key(begins, now + 2 * PATIENCE), GroundKey::Key);
        let mut never = GroundReply::none(now);
        assert_eq!(never.handle_key(begins, now), GroundKey::Key);
        let mut long = GroundReply::asked(now);
        let letters = "1".repeat(100);
        let handled: Vec<GroundKey> = keys(&letters)
            .into_iter()
            .map(|k| long.handle_key(k, now))
            .collect();
        assert_eq!(handled.last(), Some(&GroundKey::Key));
    }
}
