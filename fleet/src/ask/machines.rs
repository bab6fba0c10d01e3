//! What the hosts report about themselves in the selected time.

use crate::engine::Engine;
use crate::failure::Failure;
use crate::sql::{Dialect, Selection, Statement};
use crate::words::counted;
use std::collections::HashMap;

/// Maximum number of hosts that are listed.
const HOSTS_MAX: usize = 200_000;

/// A host.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// The recorded time.
    pub recorded_ms: u64,
    /// Samples that the host has lost.
    pub lost_samples: u64,
    /// Number of windows that were lost between the first file of that time and the last one.
    pub lost_windows: u64,
    /// Number of CPUs.
    pub cores: u64,
    /// The kernel, or two different ones.
    pub kernels: Vec<String>,
}

/// The statement.
pub fn statement(dialect: &dyn Dialect, selection: &Selection) -> String {
    Statement::new(dialect, include_str!("../../sql/machines.sql"))
        .of(selection)
        .limit(HOSTS_MAX)
        .finish()
}

/// Returns the hosts that have selected samples, by name.
pub fn ask(
    engine: &dyn Engine,
    dialect: &dyn Dialect,
    selection: &Selection,
) -> Result<HashMap<String, Machine>, Failure> {
    let rows = engine.rows(&statement(dialect, selection))?;
    let mut machines = HashMap::new();
    for row in rows.iter() {
        let mut kernels = vec![row.text("least_kernel").to_string()];
        if row.text("greatest_kernel") != kernels[0] {
            kernels.push(row.text("greatest_kernel").into());
        }
        let machine = Machine {
            recorded_ms: row.whole("recorded_ms"),
            lost_samples: row.whole("lost_samples"),
            lost_windows: row.whole("lost_windows"),
            cores: row.whole("cores"),
            kernels,
        };
        machines.insert(row.text("host").into(), machine);
    }
    Ok(machines)
}

/// The losses of all hosts.
#[derive(Debug, Clone, Copy)]
pub struct Lost {
    pub samples: u64,
    pub windows: u64,
}

/// The sum of what was lost.
pub fn lost(machines: &HashMap<String, Machine>) -> Lost {
    Lost {
        samples: machines.values().map(|it| it.lost_samples).sum(),
        windows: machines.values().map(|it| it.lost_windows).sum(),
    }
}

impl Lost {
    /// Returns the losses as a sentence, also if there are none.
    pub fn sentence(self) -> String {
        format!(
            "lost on these hosts: {}, {}",
            counted(self.samples, "sample"),
            counted(self.windows, "window")
        )
    }
}
