//! A view *without names of functions*, or *without build-ids*, so that a recording can be given
//! away. It shows where in which file the CPUs were, and a user who has the files can add the names
//! again (`proftop resolve`). Without build-ids it also does not reveal which build of a file ran.

use crate::tables::Tag;
use crate::{Info, NoName, Selection, View};
use std::sync::Arc;

impl View {
    /// Returns a view with the same samples and no symbol names. Each function is named after one
    /// of its addresses, inlined functions are merged into the function that contains them, and
    /// source locations are dropped.
    pub fn without_symbols(&self) -> View {
        let tables = &*self.tables;
        let place = |function| {
            let frame = self.frame(function)?;
            let module = tables.modules.get(frame.module);
            Some(format!("{}+{:#x}", module.name, frame.address).into())
        };
        View {
            tables: Arc::new(crate::tables::Tables {
                names: tables.names.without_names(NoName::LeftOut, place),
                sources: crate::tables::SourceTable::empty(),
                probes: Arc::new(tables.probes.without_symbols()),
                ..self.noted("names of functions were left out")
            }),
        }
    }

    /// Returns a view with the same samples and no build-ids: builds of a file cannot be told
    /// apart.
    pub fn without_build_ids(&self) -> View {
        View {
            tables: Arc::new(crate::tables::Tables {
                modules: self.tables.modules.without_build_ids(),
                ..self.noted("build-ids were left out")
            }),
        }
    }

    /// Returns a copy of the tables with `note` added to its info; the note says what was left out.
    fn noted(&self, note: &str) -> crate::tables::Tables {
        let tables = &*self.tables;
        let mut info = Info::clone(&tables.info);
        info.notes.push(note.into());
        crate::tables::Tables {
            info: Arc::new(info),
            ..tables.clone()
        }
    }
}

impl Selection {
    /// Returns the same selection of samples, names removed as in [`View::without_symbols`].
    /// Samples that a filter selected by name stay selected.
    pub fn without_symbols(mut self) -> Self {
        self.view = self.view.without_symbols();
        self.drop_inlined();
        // The counts by tag depend on names, and on the reasons why names are missing: now every
        // frame has no name because names were left out.
        let frames = self.tags.iter().sum();
        self.tags = [0; Tag::COUNT];
        self.tags[Tag::unnamed(NoName::LeftOut).index()] = frames;
        self
    }

    /// Returns the same selection of samples, build-ids removed as in [`View::without_build_ids`].
    pub fn without_build_ids(mut self) -> Self {
        self.view = self.view.without_build_ids();
        self
    }
}
