//! The names of a process's generated code, read in this process or in another one.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::jit_order::How;
use super::opened_jit::{NewNames, OpenedJit};
use crate::demangle::shown;
use crate::jit::written::Written;
use crate::{Files, JitNames};

/// The source of the names of one process's code.
#[derive(Debug)]
pub enum CodeNames {
    /// This process reads its maps.
    Here(JitNames),
    /// A parser process without privileges reads them.
    Elsewhere(OpenedJit),
}

impl CodeNames {
    /// Starts without names, for a process given by its directory in /proc ([`JitNames::hold`]). If
    /// there are parser processes, one of them reads the maps.
    pub fn new(process: Arc<OwnedFd>, way: Files) -> CodeNames {
        if way.has_parsers() {
            CodeNames::Elsewhere(OpenedJit::new(Written::new(process, way)))
        } else {
            CodeNames::Here(JitNames::new(process, way))
        }
    }

    /// Returns the names at these addresses. With `reads_on`, first reads what the process has
    /// written since the last call; with `only_if_new`, looks up names only if there was anything.
    pub fn names(&mut self, reads_on: bool, only_if_new: bool, addresses: &[u64]) -> NewNames {
        match self {
            CodeNames::Here(names) => {
                let is_new = reads_on && names.update();
                let wanted = addresses.iter().filter(|_| is_new || !only_if_new);
                let mut name = |address: &u64| names.find(*address).map(|name| shown(&name));
                NewNames {
                    is_new,
                    names: wanted.map(&mut name).collect(),
                }
            }
            CodeNames::Elsewhere(names) => {
                let how = How {
                    reads_on,
                    only_if_new,
                };
                names.names(how, addresses)
            }
        }
    }

    /// Whether the process had ended when its maps were last read, so that nothing more will be
    /// written.
    pub fn have_ended(&self) -> bool {
        match self {
            CodeNames::Here(names) => names.has_ended(),
            CodeNames::Elsewhere(names) => names.has_ended(),
        }
    }

    /// Bytes of heap that the maps take, in this process or in the other one.
    pub fn heap_bytes(&self) -> usize {
        match self {
            CodeNames::Here(names) => names.heap_bytes(),
            CodeNames::Elsewhere(names) => names.heap_bytes(),
        }
    }
}
