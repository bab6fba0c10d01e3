//! Small workspaces that must be refused, each for its own reason, and ones that
//! must be accepted.

use super::*;
use std::collections::HashMap;

/// Returns the violations in a workspace of one crate `c`, with these files below `src/` and
/// these lines below its entry in the list.
fn wrong(layers: &str, files: &[(&str, &str)]) -> Vec<String> {
    let document = format!("# Title\n\n```layers\nc\n{layers}```\n");
    let mut all = HashMap::from([
        ("ARCHITECTURE.md".into(), document),
        ("Cargo.toml".into(), "[workspace]\nmembers = [\"c\"]".into()),
        ("c/Cargo.toml".into(), "[package]\nname = \"c\"".into()),
    ]);
    for (path, text) in files {
        all.insert(PathBuf::from("c/src").join(path), (*text).into());
    }
    find(&|path| all.get(path).cloned()).unwrap().wrong
}

fn check_accepted(layers: &str, files: &[(&str, &str)]) {
    let found = wrong(layers, files);
    assert!(found.is_empty(), "{files:?}: {found:#?}");
}

/// Checks that an import of `b` by `a` closes a circle, if `b` imports `a`.
#[track_caller]
fn check_seen(a: &str) {
    let root = "mod a; mod b; pub use b::renamed as facade;";
    let b = "use crate::a::A; pub mod deep { pub struct D; pub fn f() {} } \
             pub fn renamed() {} pub struct B; pub use deep::D as Other; \
             #[macro_export] macro_rules! from_b { () => {} }";
    let found = wrong("", &[("lib.rs", root), ("a.rs", a), ("b.rs", b)]);
    assert_eq!(found.len(), 1, "{a}: {found:#?}");
    assert!(
        found[0].starts_with("circle between a, b in c/src/lib.rs:"),
        "{found:#?}"
    );
    assert!(
        found[0].contains("\n    c/src/a.rs -> c/src/b.rs: "),
        "{found:#?}"
    );
    assert!(found[0].contains("\n    c/src/b.rs -> c/src/a.rs: crate::a::A (line 1)"));
}

#[test]
fn a_path_is_seen_wherever_it_stands() {
    check_seen("use crate::b::B;");
    check_seen("use super::b::B as C;");
    check_seen("use super::{b::{deep::{self, D}}};");
    check_seen("use crate::b;");
    check_seen("fn f() { crate::b::renamed() }");
    check_seen("fn f() { super::b::deep::f() }");
    check_seen("fn f() { use crate::b::*; }");
    check_seen("mod inside { fn f(_: super::super::b::B) {} }");
    check_seen("fn f() -> Vec<Option<crate::b::B>> { Vec::new() }");
    check_seen("impl From<u8> for A { fn from(_: u8) -> A { let _ = crate::b::B; A } }");
    check_seen("fn f(x: u8) -> bool { matches!(x, crate::b::X | 3) }");
    check_seen("fn f() { println!(\"{}\", [crate::b::renamed()]) }");
    check_seen("macro_rules! m { () => { use $crate::{b::B}; } }");
    check_seen("#[error(\"{}\", crate::b::renamed(1))] struct E;");
    check_seen("fn f() { from_b!() }");
}

#[test]
fn a_name_is_followed_to_the_module_that_defines_it() {
    check_seen("use crate::facade;");
    check_seen("fn f() { crate::facade() }");
    check_seen("use super::facade as other; fn f() { other() }");
    check_seen("use crate as root; fn f() { root::b::renamed() }");
    check_seen("use super::*; fn f() { facade() }");
    check_seen("use super::*; fn f() { b::renamed() }");
}

#[test]
fn what_only_looks_like_an_import_is_none() {
    let b = "use crate::a::A; pub struct B; pub struct Y;";
    for a in [
        "",
        "#[cfg(test)] mod tests { use crate::b::B; }",
        "#[cfg(test)] use crate::b::B;",
        "impl A { #[cfg(all(test, unix))] fn f(_: crate::b::B) {} }",
        "fn f() { #[cfg(test)] let x = crate::b::B; }",
        "// use crate::b::B;\nconst TEXT: &str = \"crate::b::B\";",
        "/// [`crate::b::B`]\nfn f() {}",
        "use ::b::B;",
        "use b::B; fn f() { println!(\"{}\", ::b::B) }",
        "mod b { pub struct B; } use b::B;",
        "use std::fmt; fn f(_: fmt::Error) -> u8 { u8::max(1, 2) }",
        "use regex::regex; fn f() { regex::regex::x() }",
        "use super::*; fn f(fmt: u8) {}",
    ] {
        let root = "mod a; mod b; mod unused {} pub use b::Y;";
        check_accepted("", &[("lib.rs", root), ("a.rs", a), ("b.rs", b)]);
    }
}

#[test]
fn a_module_and_its_parts_may_know_each_other() {
    check_accepted(
        "",
        &[
            ("lib.rs", "mod a; mod b; pub struct Root;"),
            (
                "a.rs",
                "mod x; mod y; use x::X; pub struct A(X); use crate::Root;",
            ),
            (
                "a/x.rs",
                "mod deep; use super::A; use deep::D; pub struct X;",
            ),
            (
                "a/x/deep.rs",
                "use crate::a::A; use super::X; pub struct D;",
            ),
            ("a/y.rs", "use super::x::deep::D; use crate::Root;"),
            ("b/mod.rs", "use crate::a::{A, x::X};"),
        ],
    );
}

#[test]
fn a_circle_of_folders_is_one_though_no_file_is_in_a_circle() {
    let found = wrong(
        "",
        &[
            ("main.rs", "mod a; mod b;"),
            ("a.rs", "mod x; mod y;"),
            ("a/x.rs", "use crate::b::x::B; pub struct A;"),
            ("a/y.rs", "pub struct A;"),
            ("b.rs", "pub mod x; mod y;"),
            ("b/x.rs", "pub struct B;"),
            (
                "b/y.rs",
                "use crate::a::y::A;\n\nfn f() { super::super::a::y::A; }",
            ),
        ],
    );
    let expected = "circle between a, b in c/src/main.rs:\
        \n    c/src/a/x.rs -> c/src/b/x.rs: crate::b::x::B (line 1)\
        \n    c/src/b/y.rs -> c/src/a/y.rs: crate::a::y::A (line 1), super::super::a::y::A (line 3)";
    assert_eq!(found, [expected]);
}

#[test]
fn a_circle_inside_of_a_folder_is_one() {
    let found = wrong(
        "    a\n",
        &[
            ("lib.rs", "mod a;"),
            ("a.rs", "mod x; mod y; mod z;"),
            ("a/x.rs", "use super::y::Y;"),
            ("a/y.rs", "use super::z::Z;"),
            ("a/z.rs", "fn f() { super::x::f() }"),
        ],
    );
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].starts_with("circle between x, y, z in c/src/a.rs:"));
}

#[test]
fn an_import_goes_down_or_to_its_own_layer() {
    let files = |low: &'static str| {
        [
            ("lib.rs", "mod high; mod left; mod right; mod low;"),
            ("high.rs", "use crate::{left::L, low};"),
            ("left.rs", "use crate::right::R; pub struct L;"),
            ("right.rs", "use crate::low; pub struct R;"),
            ("low.rs", low),
        ]
    };
    let layers = "    high\n    left right # of one kind\n    low\n";
    check_accepted(layers, &files(""));
    let upside_down = "    low\n    left right\n    high\n";
    let found = wrong(upside_down, &files(""));
    assert_eq!(found.len(), 3, "{found:#?}");
    let first = "high imports left, of a layer above it, in c/src/lib.rs:\
        \n    c/src/high.rs -> c/src/left.rs: crate::left::L (line 1)";
    assert_eq!(found[0], first);
    // An arrow up is refused where it makes no circle, too.
    let found = wrong("    low\n    high left right\n", &files(""));
    assert_eq!(found.len(), 2, "{found:#?}");
}

#[test]
fn layers_of_a_module_are_checked_like_those_of_a_crate() {
    let files = [
        ("lib.rs", "mod a;"),
        ("a.rs", "mod x; mod y;"),
        ("a/x.rs", "use super::y::Y;"),
        ("a/y.rs", "pub struct Y;"),
    ];
    check_accepted("c::a\n    x\n    y\n", &files);
    let found = wrong("c::a\n    y\n    x\n", &files);
    assert!(found[0].starts_with("x imports y, of a layer above it, in c/src/a.rs:"));
}

#[test]
fn the_nearest_entry_says_whether_a_module_is_checked() {
    let files = [
        ("lib.rs", "mod a; mod b;"),
        ("a.rs", "mod x; mod y;"),
        ("a/x.rs", "use super::y::Y; pub struct X;"),
        ("a/y.rs", "use super::x::X; pub struct Y;"),
        ("b.rs", ""),
    ];
    check_accepted("c::a unchecked\n", &files);
    assert_eq!(wrong("c::b unchecked\n", &files).len(), 1);
    assert_eq!(wrong("c::a::x unchecked\n", &files).len(), 1);
}

#[test]
fn the_list_says_all_and_no_more() {
    let files = [
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", ""),
        ("b.rs", ""),
        ("c.rs", ""),
    ];
    let missing = wrong("    a\n", &files);
    assert_eq!(missing, ["ARCHITECTURE.md gives no layer to b, c in c"]);
    let unknown = wrong("    a b c\n    d\n", &files);
    assert_eq!(
        unknown,
        ["ARCHITECTURE.md lists d, which is no module of c"]
    );
    let unknown = wrong("c::d\n", &files);
    assert_eq!(unknown, ["ARCHITECTURE.md lists c::d, which is no module"]);
}

#[test]
fn a_member_without_a_line_is_missing() {
    let source = |path: &Path| match path.to_str() {
        Some("ARCHITECTURE.md") => Some("\n```layers\na unchecked\n```\n".into()),
        Some("Cargo.toml") => Some("[workspace]\nmembers = [\"a\", \"b\"]".into()),
        _ => None,
    };
    let found = find(&source).unwrap().wrong;
    let expected = "ARCHITECTURE.md has no line for the crate b in its layers";
    assert_eq!(found, [expected]);
}

#[test]
fn a_list_that_cannot_be_read_is_refused() {
    let check = |list: &str, expected: &str| {
        let error = List::parse(list).err().expect(list);
        assert_eq!(error.to_string(), expected);
    };
    check("# Title\n", "ARCHITECTURE.md has no block marked `layers`");
    check("\n```layers\n    a\n```\n", "the layers begin with `a`");
    check(
        "\n```layers\na off\n```\n",
        "`a off` is neither a crate nor a module",
    );
    check("\n```layers\na\na\n```\n", "the layers list a twice");
    check("\n```layers\na\n    x y\n    x\n```\n", "a lists x twice");
}

#[test]
fn what_cannot_be_read_is_an_error_and_no_pass() {
    let all = |path: &Path| match path.to_str() {
        Some("ARCHITECTURE.md") => Some("\n```layers\nc\n```\n".into()),
        Some("Cargo.toml") => Some("[workspace]\nmembers = [\"c\"]".into()),
        Some("c/Cargo.toml") => Some("[[bin]]\nname = \"x\"\npath = \"other/x.rs\"".to_string()),
        Some("c/other/x.rs") => Some("mod gone;".into()),
        _ => None,
    };
    let error = find(&all).err().unwrap();
    let message = format!("{error:#}");
    assert!(
        message.ends_with("cannot read c/other/gone/mod.rs"),
        "{message}"
    );
}

#[test]
fn this_workspace_keeps_its_layers() {
    let folder = crate::fingerprint::workspace();
    let found = find(&|path| std::fs::read_to_string(folder.join(path)).ok()).unwrap();
    assert!(found.wrong.is_empty(), "{}", found.wrong.join("\n"));
}
