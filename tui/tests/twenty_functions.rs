//! Twenty functions each of four programs, counted by probes and by the programs: all counts
//! are equal, also where exceptions, panics and growing stacks pass.

use crate::common;

use common::dialog::Dialog;
use common::postgres::Postgres;
use common::traced::{Program, can_trace, trace};
use common::{can_sample, side_by_side};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// What a program prints about one function: its name, its calls, and how many of them ended
/// without a return.
struct Own {
    name: String,
    calls: u64,
    left: u64,
}

/// Parses lines `NAME TAB CALLS TAB LEFT`, among all else that was printed.
fn own_counts(said: &str) -> Vec<Own> {
    let counts = said.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let &[name, calls, left] = &fields[..] else {
            return None;
        };
        Some(Own {
            name: name.to_owned(),
            calls: calls.parse().ok()?,
            left: left.parse().ok()?,
        })
    });
    counts.collect()
}

/// Traces a program that counts, with and without the ends of calls, and compares.
fn compare(program: &Program, names: &[&str]) {
    assert_eq!(names.len(), 20);
    let list = names.join(",");
    let sums = Mutex::new(Vec::new());
    side_by_side(&[&[][..], &["--count"]], |&options| {
        let (report, said) = trace(&[options, &[&list]].concat(), &[program.path()]);
        let own = own_counts(&said);
        let (checksum, own) = own.split_last().expect("it counts");
        assert_eq!(checksum.name, "checksum");
        sums.lock().unwrap().push(checksum.calls);
        let probes = report["probes"].as_array().expect("probes");
        assert_eq!(probes.len(), 20, "{said}");
        // The probes are in the order of the command line.
        for (probe, own) in probes.iter().zip(own) {
            let name = &own.name;
            assert!(own.calls > 0, "{name} is not called");
            assert_eq!(probe["count"], own.calls, "{name}: {probe}");
            assert_eq!(probe["removed"], serde_json::Value::Null, "{name}");
            if options.is_empty() {
                assert_eq!(probe["unreturned"], own.left, "{name}: {probe}");
                assert_eq!(probe["strangers"], 0, "{name}: {probe}");
            }
        }
    });
    let sums = sums.into_inner().unwrap();
    assert_eq!(sums[0], sums[1], "the program's work is the same");
}

#[test]
fn of_cpp_with_templates_and_exceptions() {
    if !can_sample() || !can_trace() {
        return;
    }
    let source = include_str!("programs/twenty.cpp");
    let Some(program) = Program::compile("twenty.cpp", source, &["-O2"]) else {
        return;
    };
    let names = [
        "shop::Shelf<int>::put",
        "shop::Shelf<double>::put",
        "shop::Shelf<int>::take",
        "shop::Shelf<double>::take",
        "shop::pick(int)",
        "shop::pick(double)",
        "shop::pick(char const*)",
        "shop::largest<long>",
        "shop::largest<unsigned char>",
        "shop::Square::area",
        "shop::Circle::area",
        "shop::Guard::Guard",
        "shop::Guard::~Guard",
        "shop::Money::operator+",
        "shop::Adder::operator()",
        "shop::throws_deep",
        "shop::catches",
        "shop::rethrows",
        "shop::Counter::next",
        "hidden",
    ];
    compare(&program, &names);
}

#[test]
fn of_rust_with_traits_and_panics() {
    if !can_sample() || !can_trace() {
        return;
    }
    let source = include_str!("programs/twenty.rs");
    let flags = ["-O", "--edition=2024", "--crate-name=twenty"];
    let Some(program) = Program::compile("twenty.rs", source, &flags) else {
        return;
    };
    let names = [
        "twenty::plain",
        "twenty::recursive",
        "twenty::panics",
        "twenty::in_threads",
        "twenty::takes_closure",
        "twenty::first_of_slice",
        "twenty::text_length",
        "twenty::parse_number",
        "twenty::optional",
        "twenty::boxed",
        "twenty::matches",
        "twenty::long_loop",
        "twenty::float_sum",
        "twenty::sorts",
        "twenty::maps",
        "<twenty::Square as twenty::Shape>::area",
        "<twenty::Circle as twenty::Shape>::area",
        "twenty::Meter::read",
        "twenty::Meter::add",
        "twenty::Meter::reset",
    ];
    compare(&program, &names);
}

#[test]
fn of_a_stripped_web_server_in_go() {
    if !can_sample() || !can_trace() {
        return;
    }
    let source = include_str!("programs/twenty.go");
    let Some(program) = Program::compile("twenty.go", source, &["-ldflags=-s -w"]) else {
        return;
    };
    let names = [
        "main.index",
        "main.item",
        "main.search",
        "main.slow",
        "main.missing",
        "main.deepPage",
        "main.deep",
        "main.render",
        "main.escape",
        "main.parse",
        "main.sum",
        "main.spread",
        "main.(*store).get",
        "main.(*store).put",
        "main.(*store).size",
        "main.list.Len",
        "main.worker",
        "main.checked",
        "main.fetch",
        "main.clean",
    ];
    compare(&program, &names);
}

/// Functions of PostgreSQL 15 and later that a client's simple query calls once each; none of
/// another file inlines them.
const OF_A_QUERY: [&str; 20] = [
    "raw_parser",
    "parse_analyze_fixedparams",
    "QueryRewrite",
    "planner",
    "query_planner",
    "make_one_rel",
    "create_plan",
    "set_plan_references",
    "CreatePortal",
    "PortalDefineQuery",
    "PortalStart",
    "PortalSetResultFormat",
    "PortalRun",
    "PortalDrop",
    "ExecutorStart",
    "ExecutorRun",
    "ExecutorFinish",
    "ExecutorEnd",
    "ExecInitIndexScan",
    "EndCommand",
];

#[test]
fn of_postgresql_under_pgbench() {
    if !can_sample() || !can_trace() {
        return;
    }
    let Some(database) = Postgres::start_idle() else {
        return;
    };
    let mut dialog = Dialog::start(&["--plain", "-p", &database.pid().to_string()]);
    for name in OF_A_QUERY {
        let answer = dialog.probe(&format!("postgres!{name}"));
        if answer.contains("no function of that name") {
            test_support::skip(format_args!("this PostgreSQL has no {name}"));
            return;
        }
        assert!(answer.contains(&format!(" is on {name}")), "{answer}");
    }
    // To place the probes may have taken a while, and they live a minute.
    dialog.ask("renew all");
    let mut wanted = 0;
    for queries in [200, 300] {
        // The queries are slow enough that no probe costs too much.
        database.query(queries, 300);
        wanted += queries;
        test_support::wait_for("every call is counted", || {
            let answer = dialog.ask("probes");
            let counts = counts_by_name(&answer);
            for name in OF_A_QUERY {
                let counted = counts.get(name).copied().unwrap_or(0);
                assert!(counted <= wanted, "{name}: {counted} of {wanted}\n{answer}");
            }
            assert!(!answer.contains("taken away:"), "{answer}");
            let is_all = |name: &&str| counts.get(*name) == Some(&wanted);
            OF_A_QUERY.iter().all(is_all).then_some(())
        });
    }
    dialog.finish();
}

/// Returns the calls of each probe in the answer to `probes`.
fn counts_by_name(answer: &str) -> BTreeMap<&str, u64> {
    let mut counts = BTreeMap::new();
    let mut name = "";
    for line in answer.lines() {
        // `1. probe 1  planner  postgres  52s left, 300 calls/s`
        if let Some((_, rest)) = line.split_once("probe ") {
            name = rest.split("  ").nth(1).unwrap_or("");
        }
        if let Some((number, _)) = line.trim_start().split_once(" calls in ") {
            let number = number.replace(',', "").parse().expect("a number");
            counts.insert(name, number);
        }
    }
    counts
}
