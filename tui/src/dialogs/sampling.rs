//! The *sampling dialog* shows how samples are taken, and changes the rate.

use crate::values;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use engine::snapshot::Sampler;
use std::sync::Arc;

/// The rates that arrow keys step through, in samples per second. None of them is a multiple of
/// ten, because programs have timers of such rates: a sampler in step with them would always or
/// never find them running.
pub const RATES: [u32; 6] = [19, 49, 99, 199, 499, 999];

/// The state of the sampling dialog.
#[derive(Debug)]
pub struct SamplingDialog {
    pub sampler: Arc<Sampler>,
    /// The chosen rate in Hz; 0 if the user deleted all digits.
    pub chosen: u32,
    /// Whether the next digit is appended to the number; otherwise it starts a new one.
    is_typing: bool,
    /// Why the last rate was refused.
    pub problem: Option<String>,
}

/// The result of a key in the dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Stay,
    Close,
    SetRate(u32),
    /// The dialog does not know the key.
    Unknown,
}

impl SamplingDialog {
    /// Opens the dialog with the present rate in Hz.
    pub fn new(sampler: Arc<Sampler>, rate_hz: u32) -> Self {
        SamplingDialog {
            sampler,
            chosen: rate_hz,
            is_typing: false,
            problem: None,
        }
    }

    /// Handles a key, and returns its result.
    pub fn press(&mut self, key: KeyEvent) -> Reply {
        if key
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
        {
            return Reply::Unknown;
        }
        match key.code {
            KeyCode::Esc | KeyCode::Char('q' | 'S') => return Reply::Close,
            KeyCode::Backspace if !self.is_typing => return Reply::Close,
            KeyCode::Enter if self.sampler.rate_is_fixed.is_some() => return Reply::Close,
            KeyCode::Enter => match check_rate(self.chosen, self.sampler.rate_max_hz) {
                Ok(hz) => return Reply::SetRate(hz),
                Err(why) => {
                    self.problem = Some(why);
                    return Reply::Stay;
                }
            },
            KeyCode::Left | KeyCode::Up | KeyCode::Char('h' | 'k' | '-') => {
                let lower = RATES.iter().rev().find(|hz| **hz < self.chosen);
                self.choose(lower);
            }
            KeyCode::Right | KeyCode::Down | KeyCode::Char('l' | 'j' | '+') => {
                let higher = RATES.iter().find(|hz| **hz > self.chosen);
                self.choose(higher);
            }
            KeyCode::Backspace => self.chosen /= 10,
            KeyCode::Char(c) => match c.to_digit(10) {
                Some(digit) => self.type_digit(digit),
                None => return Reply::Unknown,
            },
            _ => return Reply::Unknown,
        }
        self.problem = None;
        Reply::Stay
    }

    fn choose(&mut self, rate: Option<&u32>) {
        self.chosen = rate.copied().unwrap_or(self.chosen);
        self.is_typing = false;
    }

    /// Appends a digit to the number that is being typed. The first digit replaces the rate.
    fn type_digit(&mut self, digit: u32) {
        let before = if self.is_typing { self.chosen } else { 0 };
        let typed = before * 10 + digit;
        // One digit too many can be typed, so that the user sees that the number is too large.
        self.chosen = if typed > values::RATE_MAX * 10 {
            before
        } else {
            typed
        };
        self.is_typing = true;
    }
}

/// Returns the rate if it is possible. The error is a sentence that says why it is not. `max_hz` is
/// the limit of the kernel, if it has one.
pub fn check_rate(hz: u32, max_hz: Option<u32>) -> Result<u32, String> {
    let most = values::RATE_MAX.min(max_hz.unwrap_or(u32::MAX));
    match hz {
        0 => Err("a rate is a number from 1 on".into()),
        _ if hz <= most => Ok(hz),
        _ if most < values::RATE_MAX => Err(format!(
            "the kernel allows {most} Hz (kernel.perf_event_max_sample_rate)"
        )),
        _ => Err(format!("{most} Hz is the most")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dialog() -> SamplingDialog {
        let sampler = Sampler {
            rate_max_hz: Some(5_000),
            ..Sampler::default()
        };
        SamplingDialog::new(Arc::new(sampler), 99)
    }

    fn press(dialog: &mut SamplingDialog, keys: &str) -> Reply {
        let mut reply = Reply::Stay;
        for c in keys.chars() {
            reply = dialog.press(KeyEvent::from(match c {
                '\n' => KeyCode::Enter,
                '\u{8}' => KeyCode::Backspace,
                c => KeyCode::Char(c),
            }));
        }
        reply
    }

    #[test]
    fn arrows_step_and_digits_type() {
        let mut dialog = dialog();
        assert_eq!(press(&mut dialog, "ll\n"), Reply::SetRate(499));
        assert_eq!(press(&mut dialog, "250\n"), Reply::SetRate(250));
        press(&mut dialog, "l");
        assert_eq!(dialog.chosen, 499);
        press(&mut dialog, "hhhhhhh");
        assert_eq!(dialog.chosen, RATES[0]);
        assert_eq!(press(&mut dialog, "12\u{8}\n"), Reply::SetRate(1));
        assert_eq!(press(&mut dialog, "q"), Reply::Close);
    }

    #[test]
    fn what_cannot_be_is_not_asked_for() {
        let mut dialog = dialog();
        assert_eq!(press(&mut dialog, "0\n"), Reply::Stay);
        assert!(dialog.problem.is_some());
        assert_eq!(press(&mut dialog, "5001\n"), Reply::Stay);
        let why = dialog.problem.clone().expect("too much");
        assert!(why.contains("allows 5000 Hz"), "{why}");
        assert_eq!(press(&mut dialog, "99999999999\n"), Reply::Stay);
        dialog.sampler = Arc::new(Sampler {
            rate_is_fixed: Some("of single threads"),
            ..Sampler::default()
        });
        assert_eq!(press(&mut dialog, "49\n"), Reply::Close);
    }
}
