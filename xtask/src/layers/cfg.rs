//! Finds code that is compiled only for tests.

use syn::punctuated::Punctuated;
use syn::{Attribute, Meta, Token};

/// Returns whether the attributes exclude an item from every build other than that of tests.
pub fn is_only_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        if attribute.path().is_ident("test") {
            return true;
        }
        let condition = attribute.parse_args::<Meta>();
        attribute.path().is_ident("cfg")
            && condition.is_ok_and(|condition| without_tests(&condition) == Some(false))
    })
}

/// Returns the value of a condition in a build without tests. Returns None if it depends on more
/// than that.
fn without_tests(condition: &Meta) -> Option<bool> {
    if condition.path().is_ident("test") {
        return Some(false);
    }
    let Meta::List(list) = condition else {
        return None;
    };
    let parts = list
        .parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)
        .ok()?;
    let parts: Vec<Option<bool>> = parts.iter().map(without_tests).collect();
    if condition.path().is_ident("not") {
        return parts.first()?.map(|part| !part);
    }
    // `all` is decided by one false part, `any` by one true part.
    let decides = condition.path().is_ident("any");
    if !decides && !condition.path().is_ident("all") {
        None
    } else if parts.contains(&Some(decides)) {
        Some(decides)
    } else if parts.contains(&None) {
        None
    } else {
        Some(!decides)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_no_other_build_has_is_left_out() {
        let check = |condition: &str, expected: bool| {
            let item: syn::ItemFn = syn::parse_str(&format!("#[{condition}] fn f() {{}}")).unwrap();
            assert_eq!(is_only_for_tests(&item.attrs), expected, "{condition}");
        };
        for condition in [
            "test",
            "cfg(test)",
            "cfg(all(test, unix))",
            "cfg(all(unix, any(test)))",
            "cfg(not(not(test)))",
        ] {
            check(condition, true);
        }
        for condition in [
            "inline",
            "cfg(unix)",
            "cfg(not(test))",
            "cfg(any(test, fuzzing))",
            "cfg(any(fuzzing, not(test)))",
            "cfg(feature = \"test\")",
            "cfg_attr(test, derive(Debug))",
        ] {
            check(condition, false);
        }
    }
}
