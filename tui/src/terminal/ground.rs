//! What the terminal draws on: it is asked once, and never waited for. Its
//! answer (OSC 11) comes the way keys come, at any time, and must not be taken
//! for keys: `b` and `]` would mean something.

use crate::widgets::theme::Ground;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use std::time::{Duration, Instant};

/// `OSC 11 ; ? ST`
pub const QUESTION: &[u8] = b"\x1b]11;?\x1b\\";

/// An answer comes in one piece; what takes longer was typed.
const PIECE: Duration = Duration::from_millis(500);
/// Who has not answered by then will not.
const PATIENCE: Duration = Duration::from_secs(20);
/// `11;rgba:ffff/ffff/ffff/ffff`
const LENGTH_MAX: usize = 32;

/// The one answer that is waited for.
#[derive(Debug)]
pub struct GroundReply {
    asked: Instant,
    /// What has come of it, and since when.
    text: Option<(String, Instant)>,
    is_over: bool,
}

/// Whose a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// The user's.
    Key,
    /// Part of the answer.
    Part,
    /// The end of it.
    Ground(Ground),
}

impl GroundReply {
    pub fn asked(now: Instant) -> Self {
        GroundReply {
            asked: now,
            text: None,
            is_over: false,
        }
    }

    /// None was asked for.
    pub fn none(now: Instant) -> Self {
        GroundReply {
            is_over: true,
            ..Self::asked(now)
        }
    }

    pub fn hear(&mut self, key: KeyEvent, now: Instant) -> Heard {
        if self.is_over {
            return Heard::Key;
        }
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let Some((text, began)) = &mut self.text else {
            if now.duration_since(self.asked) > PATIENCE {
                self.is_over = true;
            } else if key.code == KeyCode::Char(']') && alt {
                self.text = Some((String::new(), now));
                return Heard::Part;
            }
            return Heard::Key;
        };
        if now.duration_since(*began) > PIECE || text.len() > LENGTH_MAX {
            self.is_over = true;
            return Heard::Key;
        }
        let is_end =
            (key.code == KeyCode::Char('\\') && alt) || (key.code == KeyCode::Char('g') && control);
        if is_end {
            self.is_over = true;
            return Heard::Ground(read(text));
        }
        if let KeyCode::Char(c) = key.code {
            text.push(c);
        }
        Heard::Part
    }
}

/// `11;rgb:1e1e/1e1e/1e1e`, with one to four digits each.
fn read(text: &str) -> Ground {
    let colors = text.strip_prefix("11;rgb").and_then(|rest| {
        let (_, colors) = rest.split_once(':')?;
        let mut parts = colors.split('/').map(part);
        Some([parts.next()??, parts.next()??, parts.next()??])
    });
    match colors {
        // As the eye weighs them.
        Some([red, green, blue]) if 0.299 * red + 0.587 * green + 0.114 * blue > 0.5 => {
            Ground::Light
        }
        Some(_) => Ground::Dark,
        None => Ground::Unknown,
    }
}

/// From 0 to 1.
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

    /// As the terminal library gives the bytes of an answer to us.
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
            let heard: Vec<Heard> = keys(text).into_iter().map(|k| reply.hear(k, now)).collect();
            let (last, before) = heard.split_last().expect("keys");
            assert_eq!(*last, Heard::Ground(ground), "{text}");
            assert!(before.iter().all(|heard| *heard == Heard::Part), "{text}");
            // From now on everything is the user's.
            let typed = key(KeyCode::Char(']'), KeyModifiers::ALT);
            assert_eq!(reply.hear(typed, now), Heard::Key);
        }
    }

    #[test]
    fn what_is_typed_is_not_an_answer() {
        let now = Instant::now();
        let typed = key(KeyCode::Char('b'), KeyModifiers::NONE);
        let begins = key(KeyCode::Char(']'), KeyModifiers::ALT);
        let mut reply = GroundReply::asked(now);
        assert_eq!(reply.hear(typed, now), Heard::Key);
        // Somebody presses Alt-] and goes on typing.
        assert_eq!(reply.hear(begins, now), Heard::Part);
        assert_eq!(reply.hear(typed, now + 2 * PIECE), Heard::Key);
        let mut late = GroundReply::asked(now);
        assert_eq!(late.hear(begins, now + 2 * PATIENCE), Heard::Key);
        let mut never = GroundReply::none(now);
        assert_eq!(never.hear(begins, now), Heard::Key);
        let mut long = GroundReply::asked(now);
        let letters = "1".repeat(100);
        let heard: Vec<Heard> = keys(&letters)
            .into_iter()
            .map(|k| long.hear(k, now))
            .collect();
        assert_eq!(heard.last(), Some(&Heard::Key));
    }
}
