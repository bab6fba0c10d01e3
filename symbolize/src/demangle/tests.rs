use super::*;

#[track_caller]
fn check(name: &str, short: &str, full: &str) {
    let demangled = demangle(name.as_bytes());
    assert_eq!(demangled.short(), short);
    assert_eq!(demangled.full(), full);
}

#[test]
fn each_scheme() {
    check(
        "_RNvCs15kBYyAo9fc_7mycrate7example",
        "mycrate::example",
        "mycrate::example",
    );
    check(
        "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.llvm.77",
        "core::fmt::Formatter::pad",
        "core::fmt::Formatter::pad.llvm.77",
    );
    check(
        "_ZN2ns3BoxIiE3putEiPKc",
        "ns::Box<int>::put",
        "ns::Box<int>::put(int, char const*)",
    );
    check("main", "main", "main");
    check("main.main", "main.main", "main.main");
}

#[test]
fn suffixes_are_put_back() {
    check("_Z1fi.part.0.cold", "f.part.0.cold", "f(int).part.0.cold");
    check("_Z1fi@plt", "f@plt", "f(int)@plt");
    check("f.constprop.0", "f.constprop.0", "f.constprop.0");
}

#[test]
fn what_cannot_be_demangled_stays() {
    for name in [
        "_Z",
        "_R",
        "_ZN",
        "_RNvC",
        "_ZN17h0123456789abcdefE",
        "$s4main",
    ] {
        check(name, name, name);
    }
    assert_eq!(demangle(b"_Z1f\xff").short(), "_Z1f\\xff");
    let long = format!("_Z{}", "1f".repeat(MANGLED_BYTES_MAX));
    assert_eq!(demangle(long.as_bytes()).full(), long);
}
