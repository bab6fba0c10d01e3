//! What is said in the palette with a word behind it.

use super::{App, Effect};
use crate::cli::values;
use crate::screen::knobs::{Narrowing, Part, Window};
use crate::screen::palette::{OrderKind, said};
use crate::screen::write::{FileKind, Manner};
use crate::screen::{Mode, View};
use crate::snapshot::Span;
use std::path::Path;

impl App {
    /// Does what is said. An error stays in the palette, which stays open.
    pub(super) fn obey(&mut self, typed: &str) -> Option<Vec<Effect>> {
        let (kind, words) = said(typed)?;
        let done = match kind {
            OrderKind::Pid => self.go_to_process(words),
            OrderKind::Window => self.go_to_window(words),
            OrderKind::Filter => self.go_to_filter(words),
            OrderKind::Goto => self.go_to_function(words),
            OrderKind::Write => self.write_to(words),
            OrderKind::Rate => values::rate(words).and_then(|hz| self.change_rate(hz)),
        };
        match (done, &mut self.mode) {
            (Ok(effect), Mode::Palette(_)) => {
                self.mode = Mode::Browse;
                Some(effect.into_iter().collect())
            }
            (Ok(effect), _) => Some(effect.into_iter().collect()),
            (Err(why), Mode::Palette(palette)) => {
                palette.error = Some(why);
                Some(Vec::new())
            }
            (Err(_), _) => Some(Vec::new()),
        }
    }

    fn go_to_process(&mut self, words: &str) -> Result<Option<Effect>, String> {
        let pid = values::id(words)?;
        let rows = self.shown.report.processes.iter();
        let lives: Vec<_> = rows.filter(|row| row.pid == pid).collect();
        let Some(first) = lives.first() else {
            return Err(format!("no process {pid} has samples here"));
        };
        let narrowing = Narrowing {
            words: format!("{}[{pid}]", first.comm).into(),
            part: Part::Processes(lives.iter().map(|row| row.id).collect()),
        };
        self.turn(|knobs| knobs.scope.push(narrowing));
        Ok(None)
    }

    fn go_to_window(&mut self, words: &str) -> Result<Option<Effect>, String> {
        let recording = self.shown.recording.as_ref();
        if recording.is_some_and(|recording| recording.lacks.time) {
            return Err("this file does not say when a sample was taken".into());
        }
        let span = match words {
            "all" => Span::All,
            _ => {
                let seconds = values::window(words)?.as_secs();
                Span::Seconds(seconds.clamp(1, u64::from(u32::MAX) - 1) as u32)
            }
        };
        self.set_window(Window::Last(span));
        Ok(None)
    }

    fn go_to_filter(&mut self, words: &str) -> Result<Option<Effect>, String> {
        let filter = words.parse().map_err(|error| format!("{error}"));
        self.set_filter(filter?);
        Ok(None)
    }

    /// The one of that name, else the heaviest that has it in its name.
    fn go_to_function(&mut self, words: &str) -> Result<Option<Effect>, String> {
        let rows = self.shown.report.functions.iter();
        let found = rows
            .filter(|row| row.name.contains(words))
            .max_by_key(|row| (*row.name == *words, row.total_samples));
        let id = found.map(|row| row.id);
        let id = id.ok_or_else(|| format!("no function here has '{words}' in its name"))?;
        self.mode = Mode::Browse;
        self.remember();
        let before = self.knobs.clone();
        self.knobs.shows_difference = false;
        self.open(View::Functions);
        self.after_turning(&before);
        let report = &self.shown.report;
        self.views.functions.select_key(id, report);
        Ok(None)
    }

    fn write_to(&mut self, name: &str) -> Result<Option<Effect>, String> {
        let Some(kind) = FileKind::of_path(Path::new(name)) else {
            return Err("its name tells no format: .pft .pb.gz .folded .svg .txt".into());
        };
        let job = self.write(kind, name, false, Manner::default());
        let effect = job.map(|job| Some(Effect::Write(job)));
        effect.ok_or_else(|| "no samples to write".into())
    }
}
