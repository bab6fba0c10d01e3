//! Handles keys while the palette is open.

use super::{App, Effect, keys};
use crate::app::mode::Mode;
use crate::dialogs::palette::Palette;
use crate::notice::Notice;
use crate::order::Order;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use engine::probes::ProbeOrder;

impl App {
    /// Opens an empty palette.
    pub(super) fn open_palette(&mut self) {
        self.mode = Mode::Palette(Palette::default());
    }

    /// Handles a key while the palette is open: Enter carries out a typed order or the chosen
    /// action, arrows choose, Esc closes.
    pub(super) fn press_in_palette(&mut self, key: KeyEvent) -> Vec<Effect> {
        let view = self.focus();
        let Mode::Palette(palette) = &mut self.mode else {
            return Vec::new();
        };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let probes = &self.feed.base.probes;
        let completions = palette.completions(
            probes.suggested.as_deref(),
            self.views.probes.selected(&self.shown),
        );
        match key.code {
            KeyCode::Down | KeyCode::Tab if !completions.is_empty() => {
                palette.complete(true, &completions);
            }
            KeyCode::Up | KeyCode::BackTab if !completions.is_empty() => {
                palette.complete(false, &completions);
            }
            KeyCode::Esc => self.mode = Mode::Browse,
            KeyCode::Backspace if palette.line.text().is_empty() => self.mode = Mode::Browse,
            KeyCode::Enter => {
                let typed = palette.line.text().to_owned();
                // An order consists of a name and an argument. Any other text is a part of an
                // action's name.
                if let Some(order) = Order::parse(&typed) {
                    return self.apply_typed(order);
                }
                let Mode::Palette(palette) = &self.mode else {
                    return Vec::new();
                };
                let chosen = palette.chosen(&self.input.keymap, view);
                self.mode = Mode::Browse;
                return chosen.map_or_else(Vec::new, |action| keys::act(self, action));
            }
            KeyCode::Down | KeyCode::Tab => palette.step(true, &self.input.keymap, view),
            KeyCode::Up | KeyCode::BackTab => palette.step(false, &self.input.keymap, view),
            KeyCode::Char('n') if control => palette.step(true, &self.input.keymap, view),
            KeyCode::Char('p') if control => palette.step(false, &self.input.keymap, view),
            _ if palette.line.press(key) => {
                palette.begin_anew();
                return look_for_names(palette);
            }
            _ => return keys::leave_anyway(self, key),
        }
        Vec::new()
    }
}

/// Returns the effect that looks up names for the text that is being typed, if the text is an order
/// for a probe.
fn look_for_names(palette: &Palette) -> Vec<Effect> {
    let part = palette.part_of_probe();
    let order = part.map(|part| Effect::Probe(ProbeOrder::Suggest(part.into())));
    order.into_iter().collect()
}

impl App {
    /// Carries out an order that was typed. If something is wrong with it, the palette stays open
    /// and shows the reason.
    fn apply_typed(&mut self, order: Result<Order, String>) -> Vec<Effect> {
        let refused = match order.map(|order| self.apply(order)) {
            Ok(Ok(applied)) => {
                if matches!(self.mode, Mode::Palette(_)) {
                    self.mode = Mode::Browse;
                }
                return self.show_applied(applied);
            }
            Ok(Err(notice)) => notice,
            Err(why) => Notice::Refused(why),
        };
        if let Mode::Palette(palette) = &mut self.mode {
            palette.error = Some(refused);
        }
        Vec::new()
    }
}
