//! What is said in the palette with a word behind it.

use super::{App, DrawCost, Effect};
use crate::app::mode::{Detail, Mode};
use crate::dialogs::palette::{OrderKind, said};
use crate::dialogs::write::{FileKind, Manner};
use crate::knobs::{Narrowing, Part, Unit, Window};
use crate::lists::table::Item as _;
use crate::notice::Notice;
use crate::values;
use crate::view_id::ViewId;
use engine::snapshot::Span;
use profile::FunctionRow;
use std::path::Path;
use std::sync::Arc;

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
            OrderKind::Unit => self.go_to_unit(words),
            OrderKind::Metric => self.choose_metric(words).map(|()| None),
            OrderKind::Sort => self.go_to_order(words),
            OrderKind::View => self.go_to_view(words),
            OrderKind::Theme => values::word(words).map(|theme| Some(Effect::SetTheme(theme))),
            OrderKind::Syntax => self.go_to_syntax(words),
            OrderKind::Cost => self.show_cost(words),
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
        self.open(ViewId::Functions);
        self.after_turning(&before);
        let report = &self.shown.report;
        self.views.functions.table.select_key(id, report);
        Ok(None)
    }

    fn go_to_unit(&mut self, words: &str) -> Result<Option<Effect>, String> {
        let unit = match words {
            "usual" => None,
            _ => Some(values::word::<Unit>(words)?),
        };
        if unit.is_some_and(Unit::needs_time) && !self.context().has_time() {
            return Err("without a rate and a time there are only percent and samples".into());
        }
        self.turn(|knobs| knobs.unit = unit);
        Ok(None)
    }

    fn go_to_order(&mut self, words: &str) -> Result<Option<Effect>, String> {
        let columns = FunctionRow::COLUMNS.iter();
        let named = columns.clone().find(|column| column.words() == words);
        let Some(column) = named else {
            let known: Vec<&str> = columns.map(|column| column.words()).collect();
            return Err(format!("there are {}", known.join(", ")));
        };
        if self.view != ViewId::Functions {
            self.remember();
            self.open(ViewId::Functions);
        }
        let report = Arc::clone(&self.shown.report);
        self.views
            .functions
            .table
            .set_order(*column, false, &report);
        Ok(None)
    }

    fn go_to_view(&mut self, words: &str) -> Result<Option<Effect>, String> {
        let mut views = ViewId::ALL.into_iter();
        let Some(view) = views.find(|view| view.word() == words) else {
            let known = ViewId::ALL.map(ViewId::word);
            return Err(format!("there are {}", known.join(", ")));
        };
        self.mode = Mode::Browse;
        self.open(view);
        Ok(None)
    }

    fn go_to_syntax(&mut self, words: &str) -> Result<Option<Effect>, String> {
        let syntax = values::word(words)?;
        self.views
            .code
            .set_look(self.views.code.wanted_layout(), syntax);
        self.detail = Detail::Notice(Notice::Syntax(syntax.name()));
        Ok(None)
    }

    fn show_cost(&mut self, words: &str) -> Result<Option<Effect>, String> {
        self.draw_cost = match words {
            "on" => Some(DrawCost::default()),
            "off" => None,
            _ => return Err("on or off?".into()),
        };
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
