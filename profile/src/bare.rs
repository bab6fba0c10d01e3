//! A view *without names of functions*, or *without build-ids*, to be given away: it
//! tells where in which file the CPUs were, and who has the files can find the names
//! again (`proftop resolve`); without build-ids it does not tell which build they were.

use crate::tables::Tag;
use crate::{Info, NoName, Selection, View};
use std::sync::Arc;

impl View {
    /// The same samples. Each function is called by one of its places, inlined ones are
    /// not told from those that they were inlined in, and nothing is known of source text.
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

    /// The same samples, of files that nobody can tell from other builds.
    pub fn without_build_ids(&self) -> View {
        View {
            tables: Arc::new(crate::tables::Tables {
                modules: self.tables.modules.without_build_ids(),
                ..self.noted("build-ids were left out")
            }),
        }
    }

    /// The same tables, whose info says in a note what was left out.
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
    /// The same samples, also of what was chosen by names: [`View::without_symbols`].
    pub fn without_symbols(mut self) -> Self {
        self.view = self.view.without_symbols();
        self.drop_inlined();
        // All that was counted by a name, or by the reason for having none.
        let frames = self.tags.iter().sum();
        self.tags = [0; Tag::COUNT];
        self.tags[Tag::unnamed(NoName::LeftOut).index()] = frames;
        self
    }

    /// The same samples: [`View::without_build_ids`].
    pub fn without_build_ids(mut self) -> Self {
        self.view = self.view.without_build_ids();
        self
    }
}
