//! A program's *own code*: not its libraries, not the runtime of its language, not the kernel. The
//! time of these is charged to the program's own function that called them, because that is the
//! code its developer can change.
//!
//! Own code is recognized by the folder of its file and the beginning of its name. This is a guess:
//! a library copied into a program's folder counts as own code.

use super::{Action, Clause, FrameTest, Text};
use std::sync::LazyLock;

/// Modules that are not own code: libraries of the system, libraries of C and of compilers wherever
/// they lie, interpreters (a Python program's own code is what the interpreter runs), and the
/// pseudo-files `[vdso]` and `[waiting]`. Code made at run time is own code, so it is not listed.
const MODULES: [&str; 6] = [
    r"^\[(vdso|waiting)",
    r"^/(usr/)?(local/)?lib(32|64|x32)?/.*\.so[.0-9]*$",
    r"^/(nix|gnu)/store/.*\.so[.0-9]*$",
    r"/(lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\+\+|c\+\+|c\+\+abi|unwind|gomp)|ld|ld-linux[^/]*|ld-musl[^/]*)(-[0-9.]+)?\.so[.0-9]*$",
    r"/(python|node|nodejs|java|ruby|perl|php)[-.0-9]*$",
    r"/lib(python|node|jvm|ruby|perl)[^/]*\.so",
];

/// Source paths of standard libraries and of fetched packages.
const SOURCES: [&str; 3] = [
    r"^/rustc/|/rustlib/src/|/\.cargo/registry/|^/usr/(include|src|share)/",
    r"^/usr/(local/|lib/)go[^/]*/src/|/go/pkg/mod/|/lib/python[.0-9]+/|^<frozen",
    r"^node:|/node_modules/|/sysdeps/",
];

/// Names of library functions, for programs without debug information: C++ and Rust, node, C, then
/// the packages of Go.
const NAMES: [&str; 6] = [
    r"^<?&?(mut )?(std|core|alloc|__gnu_cxx)::|^__(rust|cxa|gxx)_|@plt$",
    // Generic parts of Rust's library, and implementations for the library's own types.
    r"^<([A-Z]|&?str|bool|char|[uif](8|16|32|64|128|size)|\[.*\]) as |^<(\[.*\]|str|[uif][0-9]+)>::",
    r"^Builtins_",
    // Functions of a statically linked libc.
    r"^_*(pthread_[a-z_]+|(clock_)?nanosleep|epoll_p?wait2?|futex_?wait|lll_lock_wait|syscall)(@.*)?$",
    r"^(runtime|reflect|sync|syscall|strings|bytes|fmt|sort|strconv|bufio|io|os|net|time|math|regexp|errors|context)(/[a-z0-9/]+)?\.|^type:\.|^gogo$",
    r"^(internal|encoding|compress|crypto|hash|unicode|container|database|html|text)/[a-z0-9/]+\.",
];

/// The tests for code that is not own code, compiled once.
static FOREIGN: LazyLock<Vec<FrameTest>> = LazyLock::new(|| {
    let text = |expression: &&str| Text::regex(expression).expect("a test reads it");
    let mut tests = vec![FrameTest::Kernel];
    tests.extend(MODULES.iter().map(|of| FrameTest::Module(text(of))));
    tests.extend(SOURCES.iter().map(|of| FrameTest::File(text(of))));
    tests.extend(NAMES.iter().map(|of| FrameTest::Name(text(of))));
    tests
});

/// The tests for code that is not own code: a frame that passes one of them is foreign.
pub(crate) fn foreign() -> &'static [FrameTest] {
    &FOREIGN
}

/// Returns filter steps that charge foreign code to its callers.
pub fn without_foreign() -> impl Iterator<Item = Clause> {
    foreign().iter().map(|test| Clause::Stack {
        action: Action::Hide,
        test: test.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex::Regex;

    fn is_foreign(path: &str) -> bool {
        let matches = |of: &&str| Regex::new(of).unwrap().is_match(path);
        MODULES.iter().any(matches)
    }

    #[test]
    fn libraries_of_c_are_nobodys_own_wherever_they_lie() {
        for path in [
            "/usr/lib/x86_64-linux-gnu/libc.so.6",
            "/opt/app/lib/libc.so.6",
            "/opt/app/lib/libc-2.31.so",
            "/opt/app/lib/ld-linux-x86-64.so.2",
            "/snap/core22/1/lib/ld-musl-x86_64.so.1",
            "/srv/app/libstdc++.so.6.0.30",
            "/nix/store/abc-zlib-1.3/lib/libz.so.1.3",
            "[vdso]",
        ] {
            assert!(is_foreign(path), "{path}");
        }
        for path in [
            "/opt/app/bin/server",
            "/opt/app/lib/libcart.so",
            "/opt/app/lib/libmine.so.1",
            "/opt/app/lib/libcrunch.so.6",
        ] {
            assert!(!is_foreign(path), "{path}");
        }
    }
}
