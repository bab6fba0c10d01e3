//! Separates Esc from the key after it if both arrive together. A terminal sends Esc as one byte,
//! and a key with Alt as the same byte followed by that key. So `Esc` `q` looks like `Alt-q` if the
//! two are typed faster than they are sent or read (over a slow connection, on a busy machine). We
//! use no key with Alt, so such bytes are always read as two keys.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Returns the keys that the user pressed: one, or Esc and the key after it.
pub fn apart(key: KeyEvent) -> impl Iterator<Item = KeyEvent> {
    // For keys such as arrows, Alt is encoded in another way, without a byte of Esc.
    let is_in_one_piece = key.modifiers.contains(KeyModifiers::ALT)
        && matches!(
            key.code,
            KeyCode::Char(_) | KeyCode::Enter | KeyCode::Backspace | KeyCode::Tab
        );
    let escape = is_in_one_piece.then(|| KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE));
    let mut second = key;
    if is_in_one_piece {
        second.modifiers.remove(KeyModifiers::ALT);
    }
    escape.into_iter().chain([second])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(code: KeyCode, modifiers: KeyModifiers) -> Vec<KeyCode> {
        let keys = apart(KeyEvent::new(code, modifiers));
        keys.map(|key| {
            assert!(key.code == code || key.modifiers.is_empty());
            key.code
        })
        .collect()
    }

    #[test]
    fn a_key_with_alt_is_two() {
        let alt = KeyModifiers::ALT;
        let space = KeyCode::Char(' ');
        assert_eq!(codes(space, alt), [KeyCode::Esc, space]);
        assert_eq!(codes(KeyCode::Enter, alt), [KeyCode::Esc, KeyCode::Enter]);
        let control = alt | KeyModifiers::CONTROL;
        let both: Vec<KeyEvent> = apart(KeyEvent::new(KeyCode::Char('l'), control)).collect();
        assert_eq!(both[1].modifiers, KeyModifiers::CONTROL);
    }

    #[test]
    fn other_keys_are_themselves() {
        let none = KeyModifiers::NONE;
        assert_eq!(codes(KeyCode::Esc, none), [KeyCode::Esc]);
        assert_eq!(codes(KeyCode::Char('q'), none), [KeyCode::Char('q')]);
        assert_eq!(codes(KeyCode::Up, KeyModifiers::ALT), [KeyCode::Up]);
    }
}
