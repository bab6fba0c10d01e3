//! The machines that deliver samples to this run: their state, and what is missing from each.

use super::{Finding, Topic, Value, heading};
use crate::failure::without_numbers;
use crate::words::units;
use engine::snapshot::{Machine, MachineState, Snapshot};
use std::time::Duration;

/// A machine that has sent nothing for this long is called silent. Machines send every second.
const SILENT_AFTER: Duration = Duration::from_secs(5);

/// Returns a line for each machine if there are several.
pub fn findings(snapshot: &Snapshot) -> Vec<Finding> {
    let machines = &snapshot.source.machines;
    if machines.is_empty() {
        return Vec::new();
    }
    let head = "The machines that are sampled, each by a proftop of its own over ssh.";
    let mut lines = vec![heading("MACHINES", head)];
    lines.extend(machines.iter().enumerate().map(|(number, machine)| {
        let text = words(machine);
        Finding {
            topic: Topic::Machine(number, machine.state == MachineState::Sampling),
            label: machine.name.to_string(),
            value: Value::Count(machine.samples),
            explain: format!(
                "{}: {} came; {text}.",
                machine.name,
                units::counted(machine.samples, "sample")
            ),
            text,
        }
    }));
    lines
}

/// Returns what there is to say about a machine besides its samples, the most important first.
fn words(machine: &Machine) -> String {
    let silent = machine.silent.filter(|silent| *silent >= SILENT_AFTER);
    let mut words = Vec::new();
    match (&machine.state, silent) {
        (MachineState::Connecting, _) => words.push("connecting".to_owned()),
        (MachineState::Gone(why), _) => words.push(format!("gone: {}", without_numbers(why))),
        (MachineState::Sampling, Some(silent)) => {
            words.push(format!("nothing came for {}", units::clock(silent)));
        }
        (MachineState::Sampling, None) => words.push("samples come".into()),
    }
    if machine.lost > 0 {
        words.push(format!("{} lost there", units::count(machine.lost)));
    }
    if machine.ahead_ms != 0 {
        let (by, which) = (machine.ahead_ms.unsigned_abs(), machine.ahead_ms > 0);
        let seconds = by as f64 / 1000.0;
        let which = if which { "ahead of" } else { "behind" };
        words.push(format!(
            "its clock is {seconds:.1} s {which} ours, and was corrected"
        ));
    }
    words.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_says_what_is_the_matter() {
        let machine = Machine {
            name: "db-01".into(),
            state: MachineState::Sampling,
            samples: 7,
            lost: 0,
            silent: Some(Duration::from_secs(1)),
            ahead_ms: 0,
        };
        assert_eq!(words(&machine), "samples come");
        let silent = Machine {
            silent: Some(Duration::from_secs(12)),
            lost: 3,
            ahead_ms: -1500,
            ..machine.clone()
        };
        assert_eq!(
            words(&silent),
            "nothing came for 00:00:12; 3 lost there; its clock is 1.5 s behind ours, and was corrected"
        );
        let gone = Machine {
            state: MachineState::Gone("the connection ended".into()),
            ..machine
        };
        assert_eq!(words(&gone), "gone: the connection ended");
    }
}
