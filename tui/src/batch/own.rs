//! The functions of a program's own code that call what is hot in libraries, runtimes and the
//! kernel: the developer of the program can change only these.

use crate::words::markdown::{code, share};
use profile::few;
use profile::filter::without_foreign;
use profile::{Cancel, Report, Role, Selection};

/// The maximum number of functions that are named.
const FUNCTIONS_MAX: usize = 3;
/// The minimum share of all samples, in percent, that a named function has.
const PERCENT_MIN: u64 = 5;

/// Returns a line with the functions of programs' own code that cause most samples. None if there
/// are none, or if the only one is the hottest function, which the report names anyway.
pub(super) fn line(selection: &Selection, report: &Report, cancel: &Cancel) -> Option<String> {
    let mut query = selection.query().clone();
    for clause in without_foreign() {
        query.filter.push(clause);
    }
    let view = selection.view();
    let own = view.select(&query, cancel).ok()?;
    let all = selection.samples();
    let mut rows = own.functions();
    rows.retain(|row| {
        let is_much = row.self_samples * 100 >= all * PERCENT_MIN;
        is_much && view.function(row.id).role == Role::Function
    });
    few::sort_by_key(&mut rows, |row| std::cmp::Reverse(row.self_samples));
    let first = rows.first()?;
    let hottest = selection.functions();
    let hottest = hottest.iter().max_by_key(|row| row.self_samples);
    if hottest.is_some_and(|row| row.id == first.id) && rows.len() == 1 {
        return None;
    }
    let named = rows.iter().take(FUNCTIONS_MAX).map(|row| {
        format!(
            "{} {}",
            code(&row.name),
            share(report, row.self_samples, all)
        )
    });
    let named: Vec<String> = named.collect();
    Some(format!(
        "Asked for by programs' own code: {} (with what each calls in libraries and the kernel).",
        named.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::{
        Ending, Frame, FrameKind, Limits, ModuleId, NameState, NewSample, ProcessId, Query, Store,
    };

    /// Returns the samples of one stack. Its frames are from the leaf to the root, as name and
    /// module.
    fn selection(stack: &[(&str, &str)]) -> Selection {
        let mut store = Store::new(Limits::default());
        store.add_process(ProcessId(1), 7, "server");
        store.begin(0);
        let mut frames = Vec::new();
        for (at, (_, path)) in (0..).zip(stack) {
            let name = path.rsplit('/').next().unwrap();
            store.add_module(ModuleId(at), name, path);
            frames.push(Frame {
                module: ModuleId(at),
                address: 0x1000,
                kind: FrameKind::User,
            });
        }
        store.add_sample(NewSample {
            time_ns: 1,
            cpu: 0,
            process: ProcessId(1),
            tid: 7,
            comm: "server",
            frames: &frames,
            kernel_frames: 0,
            ending: Ending::Root,
            weight: 100,
        });
        store.end(2);
        for id in store.frames_to_name(100) {
            let module = store.frame(id).expect("it was asked for").module;
            let (name, _) = stack[module.0 as usize];
            store.set_name(id, NameState::Named(name.into()));
        }
        let all = store.view().select(&Query::default(), &Cancel::new());
        all.expect("nobody cancels it")
    }

    fn named(stack: &[(&str, &str)]) -> Option<String> {
        let line = line(&selection(stack), &Report::default(), &Cancel::new())?;
        line.split('`').nth(1).map(str::to_owned)
    }

    #[test]
    fn libraries_are_charged_to_who_asks_for_them() {
        const OWN: &str = "/srv/shop/server";
        let main = ("main", OWN);
        for foreign in [
            ("__memmove_avx", "/usr/lib/x86_64-linux-gnu/libc.so.6"),
            ("[waiting: lock]", "[waiting]"),
            ("core::hash::sip::write", OWN),
            (
                "<alloc::string::String as core::fmt::Write>::write_str",
                OWN,
            ),
            ("<&mut core::x::Y as core::fmt::Write>::write_str", OWN),
            ("<T as alloc::slice::ToVec>::to_vec", OWN),
            (
                "<u8 as <[_]>::to_vec_in::ConvertVec>::to_vec::<Global>",
                OWN,
            ),
            ("<[u8]>::copy_from_slice", OWN),
            ("std::_Rb_tree<int>::_M_insert", OWN),
            ("runtime.mallocgc", OWN),
            ("encoding/json.mapEncoder.encode", OWN),
            ("_PyEval_EvalFrameDefault", "/usr/bin/python3.11"),
            ("Builtins_ArrayTimSort", OWN),
            ("memcpy@plt", OWN),
        ] {
            let found = named(&[foreign, ("load_orders", OWN), main]);
            assert_eq!(found.as_deref(), Some("load_orders"), "{foreign:?}");
        }
        // Names of own functions that only look like those of runtimes.
        for own in [
            "standard_planner",
            "iota",
            "corelate",
            "net_read",
            "main.run",
            "<shop::Order as core::clone::Clone>::clone",
            "time_it",
        ] {
            let libc = ("read", "/lib/x86_64-linux-gnu/libc.so.6");
            let found = named(&[libc, (own, OWN), main]);
            assert_eq!(found.as_deref(), Some(own));
        }
        let plugin = ("filter_image", "/opt/shop/lib/libplugin.so");
        let libc = ("read", "/lib/x86_64-linux-gnu/libc.so.6");
        assert_eq!(
            named(&[libc, plugin, main]).as_deref(),
            Some("filter_image")
        );
    }

    #[test]
    fn what_is_said_already_is_not_said_again() {
        assert_eq!(named(&[("work", "/srv/a"), ("main", "/srv/a")]), None);
        assert_eq!(named(&[("read", "/lib/libc.so.6")]), None, "nobody asks");
    }
}
