//! Answers one line of the dialog: finds and runs the command, and returns its answer below a line
//! about the samples to which the shares refer.

use super::answer::Trouble;
use super::command;
use super::dialog::Dialog;
use crate::status;

impl Dialog {
    /// Returns the answer to a typed line. Empty for an empty line.
    pub fn answer(&mut self, line: &str) -> Vec<String> {
        if line.trim().is_empty() {
            return Vec::new();
        }
        self.session.begin();
        let found = command::find(line);
        // Leaving is possible at any moment, and so is asking how.
        if (found.as_ref()).is_ok_and(|(command, _)| command.is_about_samples()) {
            self.session.await_samples();
        }
        let mut lines = Vec::new();
        lines.extend(self.news());
        let answer = found.and_then(|(command, rest)| {
            let used = |trouble| match trouble {
                Trouble::Usage(what) => Trouble::Say(format!("{what}; usage: {}", command.usage())),
                trouble => trouble,
            };
            (command.run)(self, rest).map_err(used)
        });
        // The state may have changed with the answer.
        lines.extend(self.news());
        match answer {
            Ok(_) if self.is_over => {}
            Ok(answer) => {
                lines.push(status::base(&self.session.app));
                lines.extend(answer.lines);
                if !answer.rows.is_empty() {
                    self.rows = answer.rows;
                }
            }
            Err(Trouble::Say(what) | Trouble::Usage(what)) => lines.push(what),
            Err(Trouble::Stopped) => lines.push("stopped".into()),
        }
        self.session.end();
        self.clean(lines)
    }
}
