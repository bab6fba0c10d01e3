//! The colors of modules. A module keeps its color as long as it has a bar, so that the picture
//! does not change its colors while the user looks at it.

use super::layout::Layout;
use crate::widgets::theme::Tint;
use profile::few;
use profile::{FrameKind, Function, Role};
use std::collections::HashMap;
use std::sync::Arc;

/// Number of modules that have a color of their own, besides the kernel.
pub const MODULES: usize = 4;

/// The modules that have a color of their own. Each color has a slot, which is `None` while the
/// color is free.
#[derive(Debug, Default)]
pub struct Colors {
    slots: [Option<Arc<str>>; MODULES],
}

impl Colors {
    /// Takes the colors from modules that have no bar any more, and gives free colors to the
    /// modules without one whose bars are widest in total.
    pub fn follow(&mut self, layout: &Layout) {
        let mut widths: HashMap<&Arc<str>, u64> = HashMap::new();
        for bar in layout.rows.iter().flatten() {
            if let Some(function) = bar.function.as_deref().filter(|f| has_module(f)) {
                *widths.entry(&function.module).or_default() += u64::from(bar.width);
            }
        }
        if widths.is_empty() {
            return;
        }
        let is_here = |module: &Arc<str>| widths.contains_key(module);
        for slot in &mut self.slots {
            if slot.as_ref().is_some_and(|module| !is_here(module)) {
                *slot = None;
            }
        }
        let mut without: Vec<(&Arc<str>, u64)> = widths
            .into_iter()
            .filter(|(module, _)| !self.slots.iter().flatten().any(|has| has == *module))
            .collect();
        few::sort_by(&mut without, |a, b| {
            b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0))
        });
        let free = self.slots.iter_mut().filter(|slot| slot.is_none());
        for (slot, (module, _)) in free.zip(without) {
            *slot = Some(Arc::clone(module));
        }
    }

    /// Returns the color of a function: that of the kernel, of its module, or of all other modules.
    /// Sums and the ends of stacks have no color.
    pub fn of(&self, function: Option<&Function>) -> Tint {
        let Some(function) = function.filter(|f| f.role == Role::Function) else {
            return Tint::None;
        };
        if function.kind == FrameKind::Kernel {
            return Tint::Kernel;
        }
        let mut slots = self.slots.iter();
        let has_it = |slot: &Option<Arc<str>>| slot.as_ref() == Some(&function.module);
        slots.position(has_it).map_or(Tint::Other, Tint::Module)
    }

    /// Returns the modules that have a color of their own, with that color.
    pub fn legend(&self) -> impl Iterator<Item = (Tint, &str)> {
        let slots = self.slots.iter().enumerate();
        slots.filter_map(|(at, slot)| Some((Tint::Module(at), slot.as_deref()?)))
    }
}

fn has_module(function: &Function) -> bool {
    function.role == Role::Function && function.kind != FrameKind::Kernel
}
