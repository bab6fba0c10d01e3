//! A profile of several machines that are sampled at the same time. On each of them runs a proftop
//! whose recording is read here while it is made.

use crate::formats::FormatError;
use crate::formats::pft::Reader;
use crate::merge::merged_info;
use crate::{Info, Limits, Store, View};
use std::io::Read;

/// The samples of all machines in one store. Each machine has a number, as in
/// [`Machine`](crate::formats::pft::Machine).
#[derive(Debug)]
pub struct Machines {
    store: Store,
    /// The description of each machine, by number; `None` until its recording has one.
    infos: Vec<Option<Info>>,
}

impl Machines {
    /// An empty profile for `count` machines, whose clock is 0 at `epoch_unix_ms`.
    pub fn new(count: usize, limits: Limits, epoch_unix_ms: i64) -> Self {
        let mut store = Store::new(limits);
        store.join_equal_modules();
        store.set_info(Info {
            epoch_unix_ms,
            ..Info::default()
        });
        Self {
            store,
            infos: vec![None; count],
        }
    }

    /// Adds the block that was waited for; `now_ns` is the time on the profile's clock. Returns
    /// `false` if there are no more blocks.
    pub fn add_block<R: Read>(
        &mut self,
        number: usize,
        reader: &mut Reader<R>,
        now_ns: u64,
    ) -> Result<bool, FormatError> {
        reader.set_now(now_ns);
        let goes_on = reader.add_block(&mut self.store)?;
        let told = reader.info();
        if self
            .infos
            .get(number)
            .is_some_and(|known| known.as_ref() != Some(told))
        {
            self.infos[number] = Some(told.clone());
            self.update_info();
        }
        Ok(goes_on)
    }

    /// A view of all samples read so far.
    pub fn view(&self) -> View {
        self.store.view()
    }

    /// The store with the samples of all machines.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Joins the descriptions of the machines. Their CPUs are added up, as they are sampled at the
    /// same time.
    fn update_info(&mut self) {
        let told: Vec<Info> = self.infos.iter().flatten().cloned().collect();
        // Cannot fail: the reader refuses a recording that counts another metric than those before.
        let Ok(mut info) = merged_info(&told) else {
            return;
        };
        info.host.cpus = told.iter().map(|info| info.host.cpus_sampled()).sum();
        info.host.sampled_cpus = Vec::new();
        info.pauses = Vec::new();
        info.epoch_unix_ms = self.store.info().epoch_unix_ms;
        self.store.set_info(info);
    }
}
