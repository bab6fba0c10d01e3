//! Values by the names and types that debug information has.

use crate::common;

use common::traced::{can_trace, top, trace};
use common::{can_sample, proftop, run, text};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use test_support::{Scratch, compile, run_tool};

const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/");

/// Compiles one of the programs. Returns None where that is not possible.
fn build(scratch: &Scratch, source: &str, name: &str, flags: &[&str]) -> Option<String> {
    let path = scratch.join(name);
    compile(Path::new(&format!("{PROGRAMS}{source}")), &path, flags)?;
    Some(path.to_str().expect("a path in UTF-8").to_string())
}

/// Returns the values of all calls of a function, and what proftop printed.
fn values(words: &[&str], expressions: &[&str], program: &str) -> (Value, String) {
    let options = expressions.iter().flat_map(|text| ["--value", *text]);
    let args: Vec<&str> = words.iter().copied().chain(options).collect();
    let (report, said) = trace(&args, &[program]);
    (report["probes"][0].clone(), said)
}

/// Fails unless each value came as often as expected.
fn check(report: &Value, expected: &[(&str, &[(&str, u64)])]) {
    let all = report["values"].as_array().expect("a list");
    for (expression, numbers) in expected {
        let found = all
            .iter()
            .find(|value| value["expression"] == *expression)
            .unwrap_or_else(|| panic!("no {expression} in {report}"));
        let mut shown = top(found);
        shown.sort();
        let mut numbers: Vec<(String, u64)> = numbers
            .iter()
            .map(|(value, count)| (value.to_string(), *count))
            .collect();
        numbers.sort();
        assert_eq!(shown, numbers, "{expression}");
        assert_eq!(found["unreadable"], 0, "{expression}");
    }
}

/// Returns what proftop prints about a value that is not possible. The program does not run.
fn refused(function: &str, value: &str, more: &[&str], program: &str) -> String {
    let words = [
        &["trace", function, "--value", value],
        more,
        &["--", program],
    ]
    .concat();
    let output = run(&mut proftop(&words));
    assert_eq!(text(&output.stdout), "", "{value}");
    assert_ne!(output.status.code(), Some(0), "{value}");
    text(&output.stderr)
}

#[test]
fn members_and_parameters_are_those_of_the_program() {
    if !can_sample() || !can_trace() {
        return;
    }
    let scratch = Scratch::new();
    let Some(program) = build(&scratch, "typed.c", "typed", &["-g", "-O2"]) else {
        return;
    };
    let expressions = [
        "job->id",
        "job.next.at.x",
        "job.at.y",
        "job->next->at.z",
        "job.tag",
        "job.next.number",
        "str(job.next.name)",
        "*(job.next->counts+8):i32",
    ];
    let (report, _) = values(&["handle"], &expressions, &program);
    let always: Vec<(&str, &[(&str, u64)])> = vec![
        ("job->id", &[("1", 100)]),
        ("job.next.at.x", &[("-3", 100)]),
        ("job.at.y", &[("9", 100)]),
        ("job->next->at.z", &[("2.5", 100)]),
        ("job.tag", &[("\"tag one\"", 100)]),
        ("job.next.number", &[("-9", 100)]),
        ("str(job.next.name)", &[("\"second\"", 100)]),
        ("*(job.next->counts+8):i32", &[("12", 100)]),
    ];
    check(&report, &always);
    // Types of parameters: flags, a truth value, a number with a sign, and errors by their names.
    let expressions = ["mode", "fast", "level", "job.state", "job.share", "ret"];
    let (report, _) = values(&["handle"], &expressions, &program);
    let expected: Vec<(&str, &[(&str, u64)])> = vec![
        ("mode", &[("READ|RUN (0x5)", 100)]),
        ("fast", &[("0", 50), ("1", 50)]),
        ("level", &[("-1", 25), ("1", 75)]),
        ("job.state", &[("BUSY", 100)]),
        ("job.share", &[("0.5", 100)]),
    ];
    check(&report, &expected);
    let returned = top(&report["returns"]);
    assert!(
        returned.contains(&("-2 (-ENOENT)".to_string(), 25)),
        "{returned:?}"
    );
    // A large structure lies on the stack; the first argument is replaced by the address where the
    // result is to be written.
    let (report, _) = values(&["by_value"], &["big.b", "after"], &program);
    check(
        &report,
        &[
            ("big.b", &[("40", 50), ("41", 50)]),
            ("after", &[("-8", 100)]),
        ],
    );
    let (report, _) = values(&["hidden"], &["job.id"], &program);
    check(&report, &[("job.id", &[("1", 100)])]);

    for (function, value, sentence) in [
        (
            "handle",
            "weight",
            "in a register of floating point numbers, which probes do not see",
        ),
        (
            "handle",
            "job.flag+1",
            "nothing can be added to a member of some bits",
        ),
        (
            "handle",
            "str(job.flag)",
            "a member of some bits is no address and no length",
        ),
        ("handle", "job.nothing", "there is no member `nothing`"),
        (
            "handle",
            "jib.id",
            "no parameter is called `jib`: job, weight, mode, fast, level",
        ),
        ("handle", "arg1:jib.id", "no type is called `jib`"),
        ("handle", "job.at", "`job.at` is a structure: name a member"),
        ("by_value", "last", "where `last` is passed is not known"),
    ] {
        let said = refused(function, value, &[], &program);
        assert!(
            said.contains(sentence) && said.lines().count() == 1,
            "{said}"
        );
    }
}

#[test]
fn members_of_some_bits_are_told_by_every_dwarf() {
    if !can_sample() || !can_trace() {
        return;
    }
    let scratch = Scratch::new();
    // Each format counts bits in another way, as do structures without padding.
    for (name, flags) in [
        ("typed5", ["-gdwarf-5", "-O2"]),
        ("typed2", ["-gdwarf-2", "-gstrict-dwarf"]),
        ("packed", ["-gdwarf-4", "-fpack-struct"]),
    ] {
        let Some(program) = build(&scratch, "typed.c", name, &flags) else {
            return;
        };
        let expressions = [
            "job.next.flag",
            "job.flag",
            "job.next.rest",
            "job.next.low",
            "job.next.high",
            "job.low",
            "job.next.then",
        ];
        let (report, _) = values(&["handle"], &expressions, &program);
        let expected: Vec<(&str, &[(&str, u64)])> = vec![
            ("job.next.flag", &[("5", 100)]),
            ("job.flag", &[("1", 100)]),
            ("job.next.rest", &[("268435457", 100)]),
            ("job.next.low", &[("-3", 100)]),
            ("job.next.high", &[("700", 100)]),
            ("job.low", &[("0", 100)]),
            ("job.next.then", &[("DONE", 100)]),
        ];
        check(&report, &expected);
        if name == "packed" {
            let said = refused("handle", "job.next.wide", &[], &program);
            assert!(
                said.contains("its bits lie in 9 bytes, and 8 can be read"),
                "{said}"
            );
        } else {
            let (report, _) = values(&["handle"], &["job.next.wide"], &program);
            check(
                &report,
                &[("job.next.wide", &[("0x1fffffff00000000", 100)])],
            );
        }
    }
}

#[test]
fn types_that_lie_elsewhere_are_told() {
    if !can_sample() || !can_trace() {
        return;
    }
    let scratch = Scratch::new();
    for (name, flags, sentence) in [
        (
            "split",
            ["-g", "-gsplit-dwarf"],
            "in .dwo files (-gsplit-dwarf), which are not read",
        ),
        (
            "units",
            ["-gdwarf-4", "-fdebug-types-section"],
            "in .debug_types (-fdebug-types-section with DWARF 4), which is not read",
        ),
    ] {
        let Some(program) = build(&scratch, "typed.c", name, &flags) else {
            return;
        };
        let said = refused("handle", "job->id", &[], &program);
        assert!(
            said.contains(sentence) && said.lines().count() == 1,
            "{said}"
        );
    }
}

#[test]
fn of_a_stripped_program_another_file_tells_the_names() {
    if !can_sample() || !can_trace() {
        return;
    }
    let scratch = Scratch::new();
    let Some(program) = build(&scratch, "typed.c", "typed", &["-g", "-O2"]) else {
        return;
    };
    // Another build, whose structures have the same layout.
    let Some(other) = build(&scratch, "typed.c", "other", &["-g", "-O0"]) else {
        return;
    };
    let path = |name: &str| scratch.join(name).display().to_string();
    let (named, stripped, debug) = (path("named"), path("stripped"), path("typed.debug"));
    for words in [
        vec!["objcopy", "--strip-debug", &program, &named],
        vec!["strip", "-o", &stripped, &program],
        vec!["objcopy", "--only-keep-debug", &program, &debug],
    ] {
        if run_tool(Command::new(words[0]).args(&words[1..])).is_none() {
            return;
        }
    }
    let state = "job.next.state";
    let done: &[(&str, &[(&str, u64)])] = &[(state, &[("DONE", 100)])];
    let said = refused("handle", state, &[], &named);
    assert!(
        said.contains("needs debug information, which named has not"),
        "{said}"
    );

    let (report, said) = values(&["handle", "--types", &debug], &[state], &named);
    check(&report, done);
    assert!(
        said.contains("typed.debug, of build-id ") && said.contains("the same build"),
        "{said}"
    );
    let (report, said) = values(&["handle", "--types", &other], &[state], &named);
    check(&report, done);
    let is_told = said.contains("; named is of build-id ") && said.contains("lie alike");
    assert!(is_told, "{said}");

    // A stripped function is given by its place, or its arguments by types that are typed.
    let Some(symbols) = run_tool(Command::new("nm").arg(&program)) else {
        return;
    };
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let line = symbols.lines().find(|line| line.ends_with(" T handle"));
    let start = line.expect("it is there").trim_start_matches('0');
    let place = format!("stripped+0x{}", start.split(' ').next().expect("digits"));
    let (report, _) = values(&[&place, "--types", &debug], &[state], &stripped);
    check(&report, done);
    let typed = "arg1:job.next.state";
    let (report, _) = values(&[&place, "--types", &other], &[typed], &stripped);
    check(&report, &[(typed, &[("DONE", 100)])]);
    let said = refused(&place, state, &["--types", &other], &stripped);
    assert!(said.contains("does not tell of this function"), "{said}");

    for (file, sentence) in [
        ("/etc/passwd", "not an ELF file"),
        ("/nothing", "there is no such file"),
        (&stripped, "it has no debug information"),
    ] {
        let said = refused("handle", state, &["--types", file], &named);
        let is_one = said.lines().count() == 1;
        assert!(
            said.contains("no types from ") && said.contains(sentence) && is_one,
            "{said}"
        );
    }
}

#[test]
fn objects_of_cpp_have_members_through_virtual_and_overloaded_functions() {
    if !can_sample() || !can_trace() {
        return;
    }
    let scratch = Scratch::new();
    // A type that one unit only declares is defined in the other unit.
    let depot = format!("{PROGRAMS}typed_depot.cpp");
    let flags = ["-g", "-O2", &depot];
    let Some(program) = build(&scratch, "typed.cpp", "objects", &flags) else {
        return;
    };
    let expressions = [
        "this->edges",
        "this.radius",
        "this.kind",
        "this->depot->stock",
        "this.depot.place",
        "str(this->title)",
        "scale",
    ];
    let (report, _) = values(&["shop::Round::area"], &expressions, &program);
    let expected: Vec<(&str, &[(&str, u64)])> = vec![
        ("this->edges", &[("65535", 50)]),
        ("this.radius", &[("1.5", 50)]),
        // A member of the base class.
        ("this.kind", &[("4", 50)]),
        ("this->depot->stock", &[("1234", 50)]),
        ("this.depot.place", &[("-5", 50)]),
        ("str(this->title)", &[("\"round one\"", 50)]),
        ("scale", &[("1", 25), ("2", 25)]),
    ];
    check(&report, &expected);
    let (report, _) = values(&["take"], &["this.item", "this.color", "*other"], &program);
    let expected: Vec<(&str, &[(&str, u64)])> = vec![
        ("this.item", &[("42", 50)]),
        ("this.color", &[("Green", 50)]),
        ("*other", &[("7", 50)]),
    ];
    check(&report, &expected);
    let (report, _) = values(
        &["shop::over(long, shop::Round*)"],
        &["a", "round.kind"],
        &program,
    );
    check(
        &report,
        &[("a", &[("5", 50)]), ("round.kind", &[("4", 50)])],
    );
    let (report, _) = values(&["shop::over(shop::Round&)"], &["round.edges"], &program);
    check(&report, &[("round.edges", &[("65535", 50)])]);
    // The result is an object, for which the caller provides the room.
    let list = ["shop::text"];
    let (report, _) = trace(
        &[&list[..], &["--value", "round.edges", "--value", "n"]].concat(),
        &[&program],
    );
    let text = &report["probes"][0];
    check(
        text,
        &[("round.edges", &[("65535", 50)]), ("n", &[("3", 50)])],
    );

    let (report, _) = values(&["shop::Virtual::area"], &["this.own"], &program);
    check(&report, &[("this.own", &[("11", 50)])]);
    let said = refused("shop::Virtual::area", "this.kind", &[], &program);
    assert!(said.contains("in a virtual base class"), "{said}");
}

const RUST: &str = r#"
use std::hint::black_box;
pub struct Point { pub x: i32, pub y: u64 }
pub enum Shape { Circle { radius: u32 }, Named(String, u16), Empty }
pub struct Order { pub id: u64, pub name: String, pub tag: &'static str, pub at: Point, pub shape: Shape, pub items: Vec<u32> }
#[inline(never)] pub fn greet(name: &str, count: u32) -> usize { black_box(name.len() + count as usize) }
#[inline(never)] pub fn take(order: &Order, factor: i16) -> i64 { black_box(order.id as i64 * factor as i64) }
#[inline(never)] pub fn own(text: String) -> usize { black_box(text.len()) }
pub struct Holder { pub shape: Shape }
#[inline(never)] pub fn area(holder: &Holder) -> u32 {
    match black_box(&holder.shape) { Shape::Circle { radius } => *radius, Shape::Named(_, n) => u32::from(*n), Shape::Empty => 0 } }
#[inline(never)] fn changed(name: &str, count: u32) -> usize { black_box(name.len() + count as usize) }
fn main() {
    let order = Order { id: 42, name: "order one".into(), tag: "tagged", at: Point { x: -7, y: 9 },
        shape: Shape::Circle { radius: 11 }, items: vec![1, 2, 3] };
    let shapes = [Shape::Named("box".into(), 77), Shape::Empty, Shape::Circle { radius: 3 }, Shape::Named("a".into(), 1)];
    let shapes = shapes.map(|shape| Holder { shape });
    // The compiler does not see who is called, and leaves the parameters as they are.
    let (greet, take, own, area) = black_box((
        greet as fn(&str, u32) -> usize, take as fn(&Order, i16) -> i64, own as fn(String) -> usize, area as fn(&Holder) -> u32));
    let mut sum = order.at.y as usize + order.items.len() + order.at.x as usize;
    for i in 0..100u32 {
        sum = sum.wrapping_add(greet(black_box("hello"), i % 2)).wrapping_add(own("owned".to_string()));
        sum = sum.wrapping_add(take(&order, black_box(-2)) as usize).wrapping_add(changed("fixed", i));
        sum = sum.wrapping_add(area(&shapes[i as usize % 4]) as usize);
    }
    println!("{sum}");
}
"#;

#[test]
fn texts_and_variants_of_rust_are_told() {
    if !can_sample() || !can_trace() {
        return;
    }
    let scratch = Scratch::new();
    let source = scratch.join("order.rs");
    std::fs::write(&source, RUST).expect("a file");
    let path = scratch.join("order");
    if compile(&source, &path, ["-g", "-Copt-level=1", "-Ccodegen-units=1"]).is_none() {
        return;
    }
    let program = path.to_str().expect("UTF-8");
    let (report, _) = values(
        &["order::greet"],
        &["name", "name.length", "count"],
        program,
    );
    let expected: Vec<(&str, &[(&str, u64)])> = vec![
        ("name", &[("\"hello\"", 100)]),
        ("name.length", &[("5", 100)]),
        ("count", &[("0", 50), ("1", 50)]),
    ];
    check(&report, &expected);
    let expressions = [
        "order.name",
        "str(order.tag)",
        "order.at.x",
        "order.shape",
        "order.items.len",
        "factor",
    ];
    let (report, _) = values(&["order::take"], &expressions, program);
    let expected: Vec<(&str, &[(&str, u64)])> = vec![
        ("order.name", &[("\"order one\"", 100)]),
        ("str(order.tag)", &[("\"tagged\"", 100)]),
        ("order.at.x", &[("-7", 100)]),
        ("order.shape", &[("Circle", 100)]),
        ("order.items.len", &[("3", 100)]),
        ("factor", &[("-2", 100)]),
    ];
    check(&report, &expected);
    let (report, _) = values(&["order::own"], &["text"], program);
    check(&report, &[("text", &[("\"owned\"", 100)])]);
    // Named has no tag of its own: any capacity that its string may have stands for it.
    let (report, _) = values(&["order::area"], &["holder.shape"], program);
    let expected: &[(&str, u64)] = &[("Circle", 25), ("Empty", 25), ("Named", 50)];
    check(&report, &[("holder.shape", expected)]);
    for (function, value, sentence) in [
        (
            "order::take",
            "str(order.at)",
            "it is a structure, and no text: name a member",
        ),
        (
            "order::changed",
            "name",
            "not passed as it stands in the source text",
        ),
    ] {
        let said = refused(function, value, &[], program);
        assert!(
            said.contains(sentence) && said.lines().count() == 1,
            "{said}"
        );
    }
}

const GO: &str = r#"package main
import "fmt"
type Point struct { X int32; Y uint64 }
type Job struct { ID int64; Name string; Tags []string; At *Point; Done bool; Ratio float64 }
//go:noinline
func handle(name string, count int) int { return len(name) + count }
//go:noinline
func work(job *Job, factor int16) int64 { return job.ID * int64(factor) }
//go:noinline
func total(list []int32) int32 { var s int32; for _, v := range list { s += v }; return s }
//go:noinline
func byValue(p Point, s string) uint64 { return uint64(p.X) + p.Y + uint64(len(s)) }
func main() {
    job := &Job{42, "job one", []string{"a", "bb"}, &Point{-7, 9}, true, 0.5}
    sum := 0
    for i := 0; i < 100; i++ {
        sum += handle("hello", i%2) + int(work(job, -2)) + int(total([]int32{1, 2, 3})) + int(byValue(Point{3, 4}, "text"))
    }
    fmt.Println(sum)
}
"#;

#[test]
fn texts_and_slices_of_go_are_told() {
    if !can_sample() || !can_trace() {
        return;
    }
    let scratch = Scratch::new();
    let (source, path) = (scratch.join("jobs.go"), scratch.join("jobs"));
    std::fs::write(&source, GO).expect("a file");
    let mut go = Command::new("go");
    go.arg("build")
        .arg("-o")
        .arg(&path)
        .arg(&source)
        .env("GO111MODULE", "off");
    if run_tool(&mut go).is_none() {
        return;
    }
    let program = path.to_str().expect("UTF-8");
    for (function, told) in [
        (
            "main.handle",
            vec![
                ("name", "\"hello\""),
                ("str(name)", "\"hello\""),
                ("name.len", "5"),
            ],
        ),
        (
            "main.work",
            vec![
                ("job.ID", "42"),
                ("job.Name", "\"job one\""),
                ("job.Tags.len", "2"),
                ("job.At.X", "-7"),
                ("job.Done", "1"),
                ("job.Ratio", "0.5"),
                ("factor", "-2"),
            ],
        ),
        (
            "main.total",
            vec![
                ("list.len", "3"),
                ("list.cap", "3"),
                ("*(list.array+4):i32", "2"),
            ],
        ),
        (
            "main.byValue",
            vec![("p.X", "3"), ("p.Y", "4"), ("s", "\"text\"")],
        ),
    ] {
        let expressions: Vec<&str> = told.iter().map(|(expression, _)| *expression).collect();
        let (report, _) = values(&[function], &expressions, program);
        for (expression, value) in told {
            check(&report, &[(expression, &[(value, 100)])]);
        }
    }
    let said = refused("main.total", "list", &[], program);
    assert!(said.contains("its parts are arg1, arg2, arg3"), "{said}");
}
