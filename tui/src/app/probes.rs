//! Places probes on functions, renews and removes them.

use super::apply::Applied;
use super::{App, Effect};
use crate::app::mode::{Detail, Mode};
use crate::dialogs::palette::Palette;
use crate::knobs::CountedAlone;
use crate::lists::people;
use crate::notice::Notice;
use crate::order::{Order, ProbeChoice, Probed};
use crate::view_id::ViewId;
use engine::probes::expression::Expression;
use engine::probes::{ProbeOrder, ProbedFunction, Sampled, Stage, Suggested, Which, Whose};
use engine::snapshot::TargetState;
use probe::EngineKind;
use profile::{FrameKind, Function, FunctionId, ProcessRow, Role, RowName, WAITING_MODULE};
use std::borrow::Cow;
use std::sync::Arc;

impl App {
    /// Asks for a probe on the selected function.
    pub(super) fn probe_here(&mut self) -> Vec<Effect> {
        match self.function_for_code() {
            Some(function) => self.apply_for_key(Order::Probe(Probed::Function(function))),
            None => {
                self.lines.detail = Detail::Notice(if self.is_row_gone() {
                    Notice::RowGone
                } else {
                    Notice::NothingSelected
                });
                Vec::new()
            }
        }
    }

    /// Whether a probe can be placed on the selected function, as far as that is known without
    /// reading its file.
    pub fn can_probe_here(&self) -> bool {
        let Some(function) = self.function_for_code() else {
            return false;
        };
        // A function whose samples are all gone is refused later, with a notice that says so.
        let is_never = self.shown.view.as_ref().is_some_and(|view| {
            let function = view.function(view.function_of(function));
            view.frame(function.id).is_some() && unprobed(&function).is_some()
        });
        self.may_probe().is_ok() && !is_never
    }

    /// Opens the line in which an expression for a value is typed.
    pub(super) fn open_value(&mut self) {
        let chosen = self.chosen_probe(ProbeChoice::Selected);
        if let Err(why) = chosen.and_then(|_| self.may_change_probes()) {
            self.lines.detail = Detail::Notice(why);
            return;
        }
        self.mode = Mode::Palette(Palette::typed("value "));
    }

    /// Returns the effect that asks the engine to place a probe, and opens the view of probes. The
    /// error says why this function, or any function, cannot be probed.
    pub(super) fn probe(&mut self, probed: Probed) -> Result<Applied, Notice> {
        self.may_probe().map_err(Notice::Refused)?;
        // The selected function has samples, so its address is known. A typed name has to be
        // searched for.
        let place = match probed {
            Probed::Function(function) => self.place_of(function)?,
            Probed::Named(name) => ProbedFunction::Named(name.into()),
        };
        let whose = self.whose_calls()?;
        self.mode = Mode::Browse;
        if self.view != ViewId::Probes {
            self.remember();
            self.open(ViewId::Probes);
        }
        let order = ProbeOrder::Place { place, whose };
        Ok(Applied {
            said: self
                .feed
                .freezing
                .frozen
                .is_some()
                .then_some(Notice::ProbeUnseen),
            effect: Some(Effect::Probe(order)),
        })
    }

    /// Returns an error if nothing can be probed now. It says why.
    fn may_probe(&self) -> Result<(), String> {
        let base = &self.feed.base;
        match (&base.run.target, base.source.engine) {
            _ if base.source.recording.is_some() => {
                Err("no probe: this is a recording, and its programs do not run".into())
            }
            (TargetState::Exited { .. } | TargetState::Failed(_), _) => {
                Err("no probe: nothing is sampled any more".into())
            }
            (_, Some(EngineKind::Perf)) => {
                Err("no probe: samples are taken by perf; probes need BPF (proftop doctor)".into())
            }
            (_, Some(EngineKind::Bpf)) => Ok(()),
            (_, None) => Err("no probe: sampling has not begun".into()),
        }
    }

    /// Returns an error if the probes belong to a recording.
    fn may_change_probes(&self) -> Result<(), Notice> {
        if self.feed.base.source.recording.is_some() {
            Err(Notice::Refused(
                "these probes are of a recording: they stay as they were recorded".into(),
            ))
        } else {
            Ok(())
        }
    }

    /// Returns where the code of a function is. The error says why it cannot be probed.
    fn place_of(&self, function: FunctionId) -> Result<ProbedFunction, Notice> {
        let Some(view) = &self.shown.view else {
            return Err(Notice::Refused("no samples have come yet".into()));
        };
        let function = view.function(view.function_of(function));
        let name = &function.name;
        if let Some(why) = unprobed(&function) {
            return Err(Notice::Refused(format!("no probe on {name}: {why}")));
        }
        let Some(frame) = view.frame(function.id) else {
            return Err(Notice::RowGone);
        };
        Ok(ProbedFunction::Sampled(Sampled {
            module: frame.module,
            address: frame.address,
            name: (function.name_state == RowName::Named).then(|| Arc::clone(name)),
            shown: Arc::clone(name),
            file: Arc::clone(&function.module),
        }))
    }

    /// Returns whose calls are counted: those of the processes that the scope is narrowed to, or of
    /// all targets.
    fn whose_calls(&self) -> Result<Whose, Notice> {
        let Some(narrowed) = self.knobs.scope.last() else {
            return Ok(Whose::Target);
        };
        let (ids, words) = match &narrowed.part {
            // Several machines are shown as a recording, in which no probe can be placed.
            CountedAlone::Hosts(_) => return Ok(Whose::Target),
            CountedAlone::Processes(ids) => (ids.clone(), Arc::clone(&narrowed.words)),
            CountedAlone::Families(families) => {
                let is_of = |row: &&ProcessRow| people::is_of(row, families);
                let rows = self.shown.report.processes.iter().filter(is_of);
                let ids = rows.map(|row| row.id).collect();
                (ids, Arc::clone(&narrowed.words))
            }
            // A breakpoint belongs to a process: all of its threads hit it.
            CountedAlone::Threads(threads) => {
                let mut ids: Vec<_> = threads.iter().map(|(process, _)| *process).collect();
                ids.sort_unstable();
                ids.dedup();
                (ids, format!("the process of {}", narrowed.words).into())
            }
        };
        let rows = self
            .shown
            .report
            .processes
            .iter()
            .filter(|row| ids.contains(&row.id) && !row.exited);
        let mut pids: Vec<u32> = rows.map(|row| row.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        if pids.is_empty() {
            Err(Notice::Refused(format!("no probe: {words} has ended")))
        } else {
            Ok(Whose::Processes { pids, words })
        }
    }

    /// Returns which probes a choice means. The error says that there are no probes, or none with
    /// this number.
    fn chosen_probe(&self, choice: ProbeChoice) -> Result<Which, Notice> {
        let list = &self.shown.probes.list;
        match choice {
            _ if list.is_empty() => Err(Notice::NoProbes),
            ProbeChoice::All => Ok(Which::All),
            ProbeChoice::One(number) => {
                if list.iter().any(|probe| probe.number == number) {
                    Ok(Which::One(number))
                } else {
                    Err(Notice::Refused(format!("there is no probe {number}")))
                }
            }
            ProbeChoice::Selected => {
                let selected = self
                    .views
                    .probes
                    .selected(&self.shown)
                    .or(list.last())
                    .map(|probe| probe.number);
                selected.map(Which::One).ok_or(Notice::NoProbes)
            }
        }
    }

    /// Returns the effect that lets probes live longer, or places them again.
    pub(super) fn renew_probe(&mut self, choice: ProbeChoice) -> Result<Applied, Notice> {
        let which = self.chosen_probe(choice)?;
        self.may_probe().map_err(Notice::Refused)?;
        Ok(Applied {
            said: Some(Notice::ProbeRenewed),
            effect: Some(Effect::Probe(ProbeOrder::Renew(which))),
        })
    }

    /// Returns the effect that removes probes.
    pub(super) fn take_probe_away(&mut self, choice: ProbeChoice) -> Result<Applied, Notice> {
        let which = self.chosen_probe(choice)?;
        self.may_change_probes()?;
        Ok(Applied {
            said: Some(Notice::ProbeTaken(which == Which::All)),
            effect: Some(Effect::Probe(ProbeOrder::Remove(which))),
        })
    }

    /// Returns the effect that reads one more value at each call of a probe, or no values any more
    /// if `expression` is `None`.
    pub(super) fn read_value(
        &mut self,
        choice: ProbeChoice,
        expression: Option<Expression>,
    ) -> Result<Applied, Notice> {
        let Which::One(number) = self.chosen_probe(choice)? else {
            return Err(Notice::Refused("a value of one probe at a time".into()));
        };
        self.may_change_probes()?;
        let probe = self
            .shown
            .probes
            .list
            .iter()
            .find(|probe| probe.number == number);
        let known = probe
            .and_then(|probe| probe.seen.as_ref())
            .map_or(&[][..], |seen| &seen.values);
        // These texts were made from expressions, so that they can be parsed again.
        let known = known
            .iter()
            .map(|value| Expression::parse(&value.expression));
        let mut values: Vec<Expression> = if expression.is_some() {
            known.filter_map(Result::ok).collect()
        } else {
            Vec::new()
        };
        values.extend(expression.filter(|new| !values.contains(new)));
        self.mode = Mode::Browse;
        Ok(Applied {
            said: Some(Notice::ProbeAnew),
            effect: Some(Effect::Probe(ProbeOrder::Values { number, values })),
        })
    }

    /// Shows once why a probe was refused or removed.
    pub(super) fn say_of_probes(&mut self) {
        let Some(word) = &self.shown.probes.word else {
            return;
        };
        // The engine repeats its last sentence in every snapshot; it is shown only when it is new.
        if word.number > self.lines.probes_said {
            self.lines.probes_said = word.number;
            self.lines.detail = Detail::Notice(Notice::Refused(word.sentence.to_string()));
        }
    }

    /// Returns the names found for the text that is being typed, also while the screen is frozen.
    pub fn suggested(&self) -> Option<&Suggested> {
        self.feed.base.probes.suggested.as_deref()
    }

    /// Whether a probe is still being placed, or has no counts yet.
    pub fn seeks_probe(&self) -> bool {
        let mut list = self.shown.probes.list.iter();
        list.any(|probe| match &probe.stage {
            Stage::Sought => true,
            Stage::InPlace { .. } => probe.seen.is_none(),
            Stage::Missing | Stage::Gone(_) | Stage::Recorded(_) => false,
        })
    }
}

/// Returns why a function of this kind can never be probed, or `None` if it may be possible.
fn unprobed(function: &Function) -> Option<Cow<'static, str>> {
    if function.role != Role::Function {
        return Some("it is no function: it stands for what is missing".into());
    }
    if *function.module == *WAITING_MODULE {
        return Some("it is no function: it says what its callers wait for".into());
    }
    match function.kind {
        FrameKind::Kernel => Some("it is in the kernel; only programs are probed".into()),
        FrameKind::Jit => Some("its code is made at run time".into()),
        FrameKind::Python => Some("Python runs it: it has no instructions of its own".into()),
        FrameKind::User if function.module.starts_with('[') => {
            Some(format!("its code is in no file ({})", function.module).into())
        }
        FrameKind::User => None,
    }
}
