//! Words for numbers in sentences.

/// Returns a number with the word for what it counts, which gets an `s` at its end: `1 host`,
/// `2 hosts`.
pub fn counted(number: u64, one: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {one}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_no_plural() {
        let told = [0, 1, 2].map(|number| counted(number, "host"));
        assert_eq!(told, ["0 hosts", "1 host", "2 hosts"]);
    }
}
