//! The short forms of names of functions and modules, for rows. The whole name is on the detail
//! line, in copied text and in every file.

use crate::words::text;
pub use profile::short_module as module;
use profile::{Ending, FrameKind};
use std::borrow::Cow;

/// The suffixes that compilers append to the name of a copy or a part of a function.
const SUFFIXES: [&str; 8] = [
    "isra",
    "constprop",
    "part",
    "cold",
    "llvm",
    "lto_priv",
    "clone",
    "localalias",
];

/// Replaces the suffixes, however many there are.
const SUFFIX_MARK: &str = ".…";

/// The words that are names themselves between `<` and `>`, and not template arguments.
const NAMES_IN_BRACKETS: [&str; 12] = [
    "anonymous",
    "clinit",
    "dictcomp",
    "eval",
    "genexpr",
    "init",
    "lambda",
    "listcomp",
    "locals",
    "module",
    "setcomp",
    "string",
];

/// Returns the language of a function, as far as its kind shows it. Empty for native code.
pub fn language(kind: FrameKind) -> &'static str {
    match kind {
        FrameKind::User => "",
        FrameKind::Kernel => "kern",
        FrameKind::Jit => "jit",
        FrameKind::Python => "py",
    }
}

/// Returns the name in a short form: with template arguments folded (`sort<…>`), without the hashes
/// of Rust, with one mark for all suffixes of the compiler, and with only the last part of a path
/// to a source file.
pub fn short(name: &str) -> Cow<'_, str> {
    if is_stop(name) {
        return Cow::Owned(name.replace('_', " "));
    }
    // Most names are those of C functions, which have no shorter form.
    if !name
        .bytes()
        .any(|byte| matches!(byte, b'<' | b'.' | b':' | b'/'))
    {
        return Cow::Borrowed(name);
    }
    let stem = stem(name);
    let is_copy = stem.len() < name.len();
    let stem = without_hash(stem);
    let folded = if stem.contains('<') {
        fold(stem)
    } else {
        stem.to_owned()
    };
    let mut short = without_folders(folded);
    if is_copy {
        short.push_str(SUFFIX_MARK);
    }
    if short == name {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(short)
    }
}

/// Maximum width of a name in a sentence, in cells: about a third of a narrow screen.
const CELLS_IN_A_SENTENCE: usize = 28;

/// Returns the short name, cut in the middle if it is long, for a sentence.
pub fn brief(name: &str) -> String {
    text::cut_middle(&short(name), CELLS_IN_A_SENTENCE).into_owned()
}

/// Whether [`short`] leaves out a part of the name, which the detail line has.
pub fn is_folded(name: &str) -> bool {
    !is_stop(name) && short(name) != name
}

/// Returns the name of the row for the missing part of a stack.
pub fn stopped(ending: Ending) -> String {
    short(&format!("{STOPPED}{}]", ending.label())).into_owned()
}

/// The beginning of the name of a row for the missing part of a stack.
const STOPPED: &str = "[stopped: ";

/// Whether a name stands for the missing part of a stack. It has the label of the cause in it.
fn is_stop(name: &str) -> bool {
    name.starts_with(STOPPED)
}

/// Returns a name without the suffixes of compilers: `.isra.0`, `.cold`, `.llvm.123`.
fn stem(name: &str) -> &str {
    let mut stem = name;
    while let Some((rest, last)) = stem.rsplit_once('.') {
        // A number may follow a suffix: `.isra.0` is one suffix of two parts.
        let (word, before) = if last.bytes().all(|byte| byte.is_ascii_digit()) {
            match rest.rsplit_once('.') {
                Some((before, word)) => (word, before),
                None => break,
            }
        } else {
            (last, rest)
        };
        if before.is_empty() || !SUFFIXES.contains(&word) {
            break;
        }
        stem = before;
    }
    stem
}

/// Returns a name without `::h0123456789abcdef`, which older tools leave at names of Rust.
fn without_hash(name: &str) -> &str {
    let Some((before, hash)) = name.rsplit_once("::h") else {
        return name;
    };
    let is_hash = hash.len() == 16 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hash { before } else { name }
}

/// Returns a name with `…` for what is between `<` and `>` behind a name. The type of a method
/// (`<Vec<T> as Extend<T>>::extend`) is not an argument, so it stays.
fn fold(name: &str) -> String {
    let bytes = name.as_bytes();
    let mut out = String::with_capacity(name.len());
    let mut at = 0;
    let mut copied = 0;
    // The end of an operator's sign, which is not a letter of a name but may precede arguments.
    let mut operator = None;
    while at < bytes.len() {
        if let Some(end) = operator_end(name, at) {
            (at, operator) = (end, Some(end));
            continue;
        }
        let follows = || operator == Some(at) || follows_a_name(&out, &name[copied..at]);
        if bytes[at] == b'<' && follows() {
            let Some(end) = closing(bytes, at) else {
                break;
            };
            let inside = &name[at + 1..end];
            // A single letter is not longer than the sign that would replace it.
            if inside.chars().count() > 1 && !is_name(inside) {
                out.push_str(&name[copied..=at]);
                out.push('…');
                copied = end;
            }
            at = end;
        }
        at += 1;
    }
    out.push_str(&name[copied..]);
    out
}

/// Returns the end of the sign of a C++ operator, if `operator` and a sign are here.
fn operator_end(name: &str, at: usize) -> Option<usize> {
    const OPERATORS: [&str; 40] = [
        "<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "<", ">", "()", "[]", "==", "!=",
        "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=", "&&", "||", "+", "-", "*", "/",
        "%", "^", "&", "|", "~", "!", "=", ",", "\"\"",
    ];
    let is_inside_a_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let word = name.as_bytes()[at..].starts_with(b"operator");
    if !word || at > 0 && is_inside_a_word(&name.as_bytes()[at - 1]) {
        return None;
    }
    let rest = &name[at + "operator".len()..];
    let sign = OPERATORS.iter().find(|sign| rest.starts_with(**sign))?;
    // A blank separates the sign from template arguments of the operator.
    let blank = usize::from(rest[sign.len()..].starts_with(" <"));
    Some(at + "operator".len() + sign.len() + blank)
}

/// Whether a `<` behind this text begins arguments: it does behind a name. Behind a blank it does
/// only if an operator is before the blank.
fn follows_a_name(before: &str, since: &str) -> bool {
    let last = since.chars().next_back().or(before.chars().next_back());
    let is_operator = || {
        let all = format!("{before}{since}");
        all.trim_end()
            .trim_end_matches(['<', '>', '=', '-', '*'])
            .ends_with("operator")
    };
    match last {
        Some(' ') => is_operator(),
        Some(c) => {
            c.is_alphanumeric() || matches!(c, '_' | ':' | '}' | ')' | '<' | '>') && c != '<'
        }
        None => false,
    }
}

/// Returns the position of the `>` that closes this bracket. That of `->` and `=>` closes none.
fn closing(bytes: &[u8], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for at in open..bytes.len() {
        match bytes[at] {
            b'<' => depth += 1,
            b'>' if at > 0 && matches!(bytes[at - 1], b'-' | b'=') => {}
            b'>' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

/// Whether the text in brackets is a name itself, such as `<lambda>`.
fn is_name(inside: &str) -> bool {
    NAMES_IN_BRACKETS.contains(&inside) || inside.starts_with("frozen ")
}

/// Removes the folders of a source file, which runtimes add to the name of a function:
/// `py::decode:/usr/lib/python3/json.py`, `JS:*handle file:///srv/app/server.js:12`.
fn without_folders(name: String) -> String {
    let starts = ["file:///", ":/", " /"];
    let found = starts
        .iter()
        .find_map(|start| Some((name.find(start)?, start.len())));
    let Some((at, length)) = found else {
        return name;
    };
    let path = at + length - 1;
    // The end of the part of the name that stays.
    let head = if name[at..].starts_with("file:") {
        at
    } else {
        path
    };
    let Some(slash) = name[path..].rfind('/').map(|slash| path + slash) else {
        return name;
    };
    if head == 0 || slash + 1 == name.len() {
        return name;
    }
    format!("{}{}", &name[..head], &name[slash + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn arguments_and_suffixes_are_folded() {
        let names = [
            ("memcpy", "memcpy"),
            ("[stopped: read_fault]", "[stopped: read fault]"),
            ("list_encode.isra.0", "list_encode.…"),
            ("copy.constprop.0.isra.1.cold", "copy.…"),
            ("work.llvm.1234567890", "work.…"),
            (
                "std::__unguarded_partition<int*, __ops::_Iter_less_iter>",
                "std::__unguarded_partition<…>",
            ),
            (
                "std::vector<int, std::allocator<int> >::push_back",
                "std::vector<…>::push_back",
            ),
            ("Vec<T>::push", "Vec<T>::push"),
            (
                "alloc::vec::Vec::<u8, Global>::push",
                "alloc::vec::Vec::<…>::push",
            ),
            (
                "<alloc::vec::Vec<u8> as core::iter::Extend<u8>>::extend",
                "<alloc::vec::Vec<…> as core::iter::Extend<…>>::extend",
            ),
            (
                "core::ops::FnOnce<fn() -> u8>::call_once",
                "core::ops::FnOnce<…>::call_once",
            ),
            ("operator<", "operator<"),
            (
                "std::operator<< <std::char_traits<char> >",
                "std::operator<< <…>",
            ),
            ("ns::A<int>::operator->", "ns::A<…>::operator->"),
            ("operator<=><int, int>", "operator<=><…>"),
            (
                "__gnu_cxx::operator-<int*, std::vector<int, std::allocator<int> > >",
                "__gnu_cxx::operator-<…>",
            ),
            (
                "std::operator==<char, std::char_traits<char> >",
                "std::operator==<…>",
            ),
            (
                "ns::A<int>::operator[]<int, long>",
                "ns::A<…>::operator[]<…>",
            ),
            (
                "sort_them(int*)::{lambda(auto:1, auto:2)#1}::operator()<int, int>",
                "sort_them(int*)::{lambda(auto:1, auto:2)#1}::operator()<…>",
            ),
            ("core::fmt::write::h0123456789abcdef", "core::fmt::write"),
            ("core::fmt::hello", "core::fmt::hello"),
            ("Foo.<init>", "Foo.<init>"),
            ("py::<module>:/srv/app/main.py", "py::<module>:main.py"),
            (
                "py::decode:/usr/lib/python3.11/json/decoder.py",
                "py::decode:decoder.py",
            ),
            (
                "JS:*handle file:///srv/app/server.js:12:5",
                "JS:*handle server.js:12:5",
            ),
            ("main.(*Server).Serve", "main.(*Server).Serve"),
            (
                "net/http.(*conn).serve.func1",
                "net/http.(*conn).serve.func1",
            ),
            ("a<b", "a<b"),
            ("/usr/bin/postgres+0x12", "/usr/bin/postgres+0x12"),
            ("cold", "cold"),
            (".cold", ".cold"),
        ];
        for (name, expected) in names {
            assert_eq!(short(name), expected, "{name}");
            assert_eq!(short(&short(name)), short(name), "{name}: once is enough");
        }
    }

    #[test]
    fn in_a_sentence_a_name_takes_a_third_of_the_line() {
        assert_eq!(brief("memcpy"), "memcpy");
        let long = "std::__introsort_loop<Row*, long, __ops::_Iter_comp_iter<By> >";
        assert_eq!(brief(long), "std::__introsort_loop<…>");
        let cut = brief("a_name_of_c_that_is_longer_than_a_third_of_the_line");
        assert_eq!(text::width(&cut), CELLS_IN_A_SENTENCE, "{cut}");
        let whose = brief("sort_them(int*)::{lambda(int, int)#1}::operator()");
        assert!(whose.starts_with("sort_them"), "{whose}");
    }

    proptest! {
        #[test]
        fn any_name_gets_one_that_is_not_longer(name in "\\PC{0,40}|[a-z<>:.*/ =-]{0,40}|(operator|a)[<>=+() -]{0,6}[a-z<>]{0,20}") {
            // All suffixes are longer than the mark that replaces them.
            prop_assert!(short(&name).chars().count() <= name.chars().count());
        }
    }
}
