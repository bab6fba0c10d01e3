use super::*;
use test_support::Random;

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
fn types_that_enable_if_chooses_cost_the_types_only() {
    check(
        "_ZSt4swapI3RecENSt9enable_ifIXsrSt6__and_IJSt6__not_ISt15__is_tuple_likeIT_EE\
         St21is_move_constructibleIS5_ESt18is_move_assignableIS5_EEE5valueEvE4typeERS5_SF_",
        "std::swap<Rec>",
        "std::swap<Rec>",
    );
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

#[test]
fn deep_names() {
    // Qt's string builder, 42 levels deep; a name from a real program.
    let qt = format!(
        "_ZN13QConcatenableI14QStringBuilder{}I7QString{}E8appendToI5QCharEEvRKS15_RPT_",
        "IS0_".repeat(41),
        "S1_E".repeat(42)
    );
    let short = demangle(qt.as_bytes()).short().into_owned();
    assert!(
        short.starts_with("QConcatenable<QStringBuilder<"),
        "{short}"
    );
}

/// With the demangler's own limits alone, each of these names overflowed a stack of 8 MiB or took
/// more than 100 ms.
#[test]
fn names_made_to_hurt() {
    let names = [
        format!("_Z1fIX{}Li1EEEvv", "ad".repeat(1000)),
        format!("_Z1fIX{}{}EEvv", "pl".repeat(450), "Li1E".repeat(450)),
        format!("_Z1f{}i", "P".repeat(4000)),
        format!("_Z{}1fvE1g", "Z".repeat(200)),
        format!("_Z1f{}v{}", "DOLi1EF".repeat(80), "E".repeat(80)),
        format!("_RNvC1a{}", "INvC1a".repeat(600)),
        "_ZananananaatanagtAnanananananaatanananananaatananaatanananananaatananan1gttiana\
         3foo3foo3fooIIInan1gttiana3foo3foo3fooII"
            .into(),
        "_ZadAnananananaatanananananaatanananagttianananananaatanananagttianananaTaatanana\
         nananaatT0_T0_T0_anTaatanananananaatT0_T0_T0_anagttananagtti"
            .into(),
        "_ZUlzjjlZZL1zStUlSt7j_Z3kjIIjIjL1vfIIEEEjzjjfjzSt7j_Z3kjIIjfjzL4t3kjIIjfjtUlSt7j_Z\
         3kjIIjIjL1vfIIEEEjzjjfjzSt7j_Z3kjIIjfjzL4t3kjIIjfjzL4t7IjIjjzjjzSt7j_Z3kjIIjfjzStf"
            .into(),
        format!("_Z{}", "StIL1aI".repeat(5)),
        format!("_Z1aI{}", "CC1e".repeat(12)),
    ];
    for name in &names {
        let demangled = demangle(name.as_bytes());
        let (short, full) = (demangled.short(), demangled.full());
        assert!(!short.is_empty() && !full.is_empty());
        assert!(full.len() <= 64 << 10);
    }
}

/// Splices and changes of real names are demangled, or left as they are.
#[test]
fn any_name_is_survived() {
    let seeds = [
        "_ZNSt6vectorISt10unique_ptrIN4llvm6ModuleESt14default_deleteIS2_EESaIS5_EE9push_backEOS5_",
        "_ZN4llvm8erase_ifINS_13TinyPtrVectorIPNS_11AnalysisKeyEEEZNS_4LoopEvEUlS3_E_EEvRT_T0_",
        "_Z1fIXsr3std7is_sameIT_iEE5valueEEvS1_",
        "_RINvMsY_NtCseXNvpPnDBDp_3std4pathNtB6_4Path3neweECs7GXUxFxeJHL_4core",
        "_ZN4core3ptr85drop_in_place$LT$std..rt..lang_start$LT$$LP$$RP$$GT$17h0123456789abcdefE",
        "_ZZN1a1bEvENKUlvE_clEvDpT_DTcl1fspfp_E",
    ];
    let pieces = [
        "S_", "T_", "N", "E", "I", "X", "L", "Z", "_", "9", "Li1E", "Ul", "DT", "na",
    ];
    let mut random = Random::new(1);
    let mut below = |limit: usize| random.index(limit);
    for round in 0..3000 {
        let mut name = seeds[round % seeds.len()].as_bytes().to_vec();
        for _ in 0..=below(5) {
            if name.is_empty() {
                break;
            }
            let at = below(name.len());
            match below(4) {
                0 => name[at] = below(256) as u8,
                1 => name.truncate(at),
                2 => {
                    let part = name[at..].to_vec();
                    name.extend(part);
                }
                _ => {
                    let piece = pieces[below(pieces.len())].bytes();
                    name.splice(at..at, piece);
                }
            }
        }
        let demangled = demangle(&name);
        demangled.short();
        demangled.full();
    }
}
