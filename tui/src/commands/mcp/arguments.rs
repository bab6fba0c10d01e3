//! The *arguments* of a tool call, checked against the arguments that the tool has.

use profile::Filter;
use serde_json::{Map, Value};

/// Maximum length of a text, in bytes.
const TEXT_MAX: usize = 4096;
/// Default for the maximum length of an answer, in tokens.
const TOKENS_DEFAULT: u64 = 1500;
/// The range from which a client may choose.
pub const TOKENS_MIN: u64 = 200;
pub const TOKENS_MAX: u64 = 100_000;

/// The arguments of one call. Errors are sentences for the client that made it.
#[derive(Debug, Clone, Default)]
pub struct Arguments(Map<String, Value>);

impl Arguments {
    /// Takes the arguments that a client has sent. Those that the tool does not have are an error:
    /// ignored, they would look as if they had worked.
    pub fn new(sent: Map<String, Value>, known: &[&str]) -> Result<Self, String> {
        match sent.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(format!(
                "there is no argument {}; there are: {}",
                crate::words::markdown::quoted(name),
                known.join(", ")
            )),
            None => Ok(Arguments(sent)),
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// Returns a text, which is not empty. None if it was not sent.
    pub fn text(&self, name: &str) -> Result<Option<&str>, String> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let text = value.as_str().map(str::trim);
        match text.filter(|text| !text.is_empty() && text.len() <= TEXT_MAX) {
            Some(text) if !text.contains('\0') => Ok(Some(text)),
            _ => Err(format!(
                "`{name}` has to be a text of 1 to {TEXT_MAX} bytes"
            )),
        }
    }

    /// Returns a text that is required.
    pub fn needed(&self, name: &str) -> Result<&str, String> {
        let text = self.text(name)?;
        text.ok_or_else(|| format!("`{name}` is missing"))
    }

    /// Returns a whole number from `min` to `max`. None if it was not sent.
    pub fn number(&self, name: &str, min: u64, max: u64) -> Result<Option<u64>, String> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        match value.as_u64() {
            Some(number) if (min..=max).contains(&number) => Ok(Some(number)),
            _ => Err(format!(
                "`{name}` has to be a whole number from {min} to {max}"
            )),
        }
    }

    /// Returns a process or thread id. None if it was not sent.
    pub fn id(&self, name: &str) -> Result<Option<u32>, String> {
        let id = self.number(name, 1, u64::from(u32::MAX >> 1))?;
        Ok(id.and_then(|id| u32::try_from(id).ok()))
    }

    /// Returns a flag, which is false if it was not sent.
    pub fn flag(&self, name: &str) -> Result<bool, String> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(wanted)) => Ok(*wanted),
            Some(_) => Err(format!("`{name}` has to be true or false")),
        }
    }

    /// Returns one of `words`. None if it was not sent.
    pub fn word<'a>(&self, name: &str, words: &[&'a str]) -> Result<Option<&'a str>, String> {
        let Some(sent) = self.text(name)? else {
            return Ok(None);
        };
        let known = words.iter().find(|word| **word == sent);
        let unknown = || format!("`{name}` has to be one of: {}", words.join(", "));
        known.copied().map(Some).ok_or_else(unknown)
    }

    /// Returns the filter, with a clause for the process if one was sent.
    pub fn filter(&self) -> Result<Filter, String> {
        let mut text = self.text("filter")?.unwrap_or_default().to_owned();
        if let Some(pid) = self.id("pid")? {
            text += &format!(" pid:{pid}");
        }
        crate::values::filter(text.trim()).map_err(|why| format!("`filter`: {why}"))
    }

    /// Returns the maximum length of the answer, in tokens.
    pub fn tokens(&self) -> Result<usize, String> {
        let tokens = self.number("budget_tokens", TOKENS_MIN, TOKENS_MAX)?;
        Ok(usize::try_from(tokens.unwrap_or(TOKENS_DEFAULT)).unwrap_or(usize::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments(sent: Value) -> Arguments {
        let Value::Object(sent) = sent else {
            panic!("no object")
        };
        Arguments(sent)
    }

    #[test]
    fn what_a_tool_does_not_know_is_refused_and_quoted() {
        let Value::Object(sent) = json!({ "pid": 1, "x`\n": 2 }) else {
            unreachable!()
        };
        let why = Arguments::new(sent, &["pid"]).unwrap_err();
        assert_eq!(why, "there is no argument `x'\\x0a`; there are: pid");
    }

    #[test]
    fn values_have_kinds_and_bounds() {
        let sent = arguments(json!({
            "a": "x", "empty": " ", "zero": "a\0b", "n": 7, "minus": -1, "half": 1.5, "none": null,
            "yes": true, "pid": 4_294_967_295u64,
        }));
        assert_eq!(sent.text("a"), Ok(Some("x")));
        assert_eq!(sent.text("missing"), Ok(None));
        assert_eq!(sent.text("none"), Ok(None));
        assert_eq!(sent.number("n", 1, 7), Ok(Some(7)));
        assert_eq!(sent.flag("yes"), Ok(true));
        assert_eq!(sent.word("a", &["x", "y"]), Ok(Some("x")));
        assert!(sent.text("empty").is_err());
        assert!(sent.text("zero").is_err());
        assert!(sent.text("n").is_err());
        assert!(sent.number("n", 8, 9).is_err());
        assert!(sent.number("minus", 0, 9).is_err());
        assert!(sent.number("half", 0, 9).is_err());
        assert!(sent.flag("n").is_err());
        assert!(sent.word("a", &["y"]).is_err());
        assert!(sent.id("pid").is_err());
        assert!(sent.needed("missing").is_err());
        assert_eq!(sent.tokens(), Ok(1500));
        let long = arguments(json!({ "a": "x".repeat(TEXT_MAX + 1) }));
        assert!(long.text("a").is_err());
    }

    #[test]
    fn a_process_narrows_the_filter() {
        let sent = arguments(json!({ "filter": "comm:nginx", "pid": 7 }));
        assert_eq!(sent.filter().unwrap().to_string(), "comm:nginx pid:7");
        let wrong = arguments(json!({ "filter": "fn~(" }));
        assert!(wrong.filter().is_err());
    }
}
