//! Conversions between enums that two crates define with the same variants.
//!
//! `probe` says how a walk ended and `symbolize` why there is no name; `profile` stores both and
//! depends on neither crate. Their variants have the same names, so one list makes each conversion,
//! and it compiles only if no variant is missing from it.

use profile::NoName;
use symbolize::Reason;

macro_rules! endings {
    ($($name:ident)+) => {
        /// Converts how a walk ended to the profile's enum.
        pub fn ending(ending: probe::Ending) -> profile::Ending {
            match ending {
                $(probe::Ending::$name => profile::Ending::$name,)+
            }
        }
    };
}

endings! {
    Root NoUserStack NoFramePointer BrokenChain ReadFault TooDeep NoMapping Compat32 Exec
    Unsupported Stuck CopyCut StackSwitch Remapped Exiting
}

/// Returns how the walk of a sample's stack ended, including the reasons that only the sample has.
pub fn how_it_ended(sample: &probe::Sample) -> profile::Ending {
    if sample.over_share {
        return profile::Ending::OverShare;
    }
    if sample.outside {
        return profile::Ending::Outside;
    }
    if sample.tables_late {
        return profile::Ending::TablesLate;
    }
    ending(sample.ending)
}

macro_rules! reasons {
    ($($name:ident)+) => {
        /// Converts why there is no name to the profile's enum.
        pub fn no_name(reason: Reason) -> NoName {
            match reason {
                $(Reason::$name => NoName::$name,)+
            }
        }

        /// Returns `symbolize`'s reason; `None` for reasons that only the profile has.
        pub fn reason(why: NoName) -> Option<Reason> {
            match why {
                $(NoName::$name => Some(Reason::$name),)+
                NoName::NoStack
                | NoName::EmptyName
                | NoName::NotTold
                | NoName::LeftOut
                | NoName::NotFoundInTime
                | NoName::Other => None,
            }
        }
    };
}

reasons! {
    Stripped NotCovered FileGone ChangedOnDisk Refused Damaged NoPermission Jit JitNotCovered
    JitMapRefused Unmapped KernelHidden Unsupported Remote CodeGone Mistake
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_has_one_word_in_both_crates_and_comes_back_from_a_file() {
        let told: Vec<Reason> = NoName::ALL.into_iter().filter_map(reason).collect();
        assert_eq!(told, Reason::ALL);
        for given in told {
            let kept = no_name(given);
            assert_eq!(kept.label(), given.label());
            assert_eq!(NoName::from_label(given.label()), kept);
            assert_eq!(reason(kept), Some(given));
        }
    }
}
