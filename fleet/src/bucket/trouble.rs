//! Why a request to object storage has no answer, in one sentence.

use crate::failure::{Failure, safe};
use object_store::Error;

/// Why there is no answer.
#[derive(Debug)]
pub enum Trouble {
    /// There is no object of that key.
    Missing,
    /// Another one has written the object meanwhile.
    Changed,
    /// No request is answered until the configuration is right: the bucket, the region, the
    /// credentials or their rights.
    NotAllowed(String),
    /// It may be answered later.
    Later(String),
    /// The user has ended the program.
    Ended(Failure),
}

/// Codes of the store that are about credentials.
const OF_CREDENTIALS: [&str; 8] = [
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidSecurity",
    "InvalidToken",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];

/// Codes of the store that are about the region.
const OF_REGION: [&str; 4] = [
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
    "PermanentRedirect",
    "TemporaryRedirect",
];

/// What the text of an error has where credentials were asked of the machine: addresses and paths of
/// the services that hand them out.
const OF_INSTANCE: [&str; 4] = [
    "/latest/api/token",
    "/latest/meta-data",
    "//169.254.170.2",
    "//169.254.169.254",
];

impl Trouble {
    /// Converts an error. The crate's types of errors do not have the status and the code of an
    /// answer, but their texts have.
    pub fn of(error: &Error) -> Self {
        let text = whole(error);
        let code = between(&text, "<Code>", "</Code>");
        let told = code
            .map(|it| format!(" ({})", safe(it)))
            .unwrap_or_default();
        let status = status(&text);
        let is = |codes: &[&str]| code.is_some_and(|it| codes.contains(&it));
        if OF_INSTANCE.iter().any(|it| text.contains(it)) {
            return Self::NotAllowed(
                "there are no credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set, and this \
                 machine hands out none"
                    .into(),
            );
        }
        if text.contains("URL scheme is not allowed") {
            return Self::NotAllowed(
                "AWS_ENDPOINT_URL is http://, which everybody on the way can read: use https://, or set \
                 AWS_ALLOW_HTTP=true"
                    .into(),
            );
        }
        if is(&["NoSuchBucket"]) {
            return Self::NotAllowed("there is no such bucket (NoSuchBucket)".into());
        }
        if is(&OF_REGION) || text.contains("incorrectly configured region") {
            let region = between(&text, "<Region>", "</Region>");
            let region = region.map(|it| format!(", {}", safe(it)));
            return Self::NotAllowed(format!(
                "the bucket is in another region{}: set AWS_REGION{told}",
                region.unwrap_or_default()
            ));
        }
        if is(&OF_CREDENTIALS) || status == Some(401) {
            return Self::NotAllowed(format!("the credentials are not accepted{told}"));
        }
        match error {
            Error::NotFound { .. } => return Self::Missing,
            Error::AlreadyExists { .. } | Error::Precondition { .. } => return Self::Changed,
            _ => {}
        }
        match status {
            // Questions without a document in the answer have no code in it.
            Some(403) if code.is_none() => Self::NotAllowed(
                "the credentials are not accepted, or have no right to that (403)".into(),
            ),
            Some(403) => Self::NotAllowed(format!("these credentials have no right to that{told}")),
            Some(status @ (408 | 429 | 500..600)) => {
                Self::Later(format!("the store answers {status}{told}"))
            }
            Some(status) => Self::NotAllowed(format!("the store answers {status}{told}")),
            None if text.contains("timed out") => {
                Self::Later("the store does not answer in time".into())
            }
            None => Self::Later(format!(
                "the store cannot be reached: {}",
                safe(&last(error))
            )),
        }
    }

    /// Converts this to the failure of a question.
    pub fn failure(self, what: &str) -> Failure {
        match self {
            Self::Missing => Failure::failed(format!(
                "{what}: it is gone: somebody has removed or compacted it meanwhile, so ask again"
            )),
            Self::Changed => {
                Failure::failed(format!("{what}: another one has written it meanwhile"))
            }
            Self::NotAllowed(why) | Self::Later(why) => Failure::failed(format!("{what}: {why}")),
            Self::Ended(failure) => failure,
        }
    }
}

/// Whether an object has no bytes of which to return the end.
pub fn is_empty(error: &Error) -> bool {
    let text = whole(error);
    status(&text) == Some(416) || text.contains("non-partial response")
}

/// Returns the texts of an error and of what has caused it.
fn whole(error: &Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text += " | ";
        text += &inner.to_string();
        cause = inner.source();
    }
    text
}

/// Returns the text of the innermost cause.
fn last(error: &Error) -> String {
    let mut innermost: &dyn std::error::Error = error;
    while let Some(inner) = innermost.source() {
        innermost = inner;
    }
    innermost.to_string()
}

/// Returns the status of an answer.
fn status(text: &str) -> Option<u16> {
    let (_, rest) = text.split_once("non-2xx status code: ")?;
    rest.get(..3)?.parse().ok()
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(begin)?;
    let (inner, _) = rest.split_once(end)?;
    Some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> String {
        let error = Error::Generic {
            store: "S3",
            source: format!("Error performing PUT http://s/b/k in 1ms - {text}").into(),
        };
        match Trouble::of(&error) {
            Trouble::NotAllowed(why) => format!("no: {why}"),
            Trouble::Later(why) => format!("later: {why}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_status_and_a_code_decide() {
        let answer = |status: &str, code: &str| {
            told(&format!(
                "Server returned non-2xx status code: {status}: <Error><Code>{code}</Code></Error>"
            ))
        };
        for (status, code, expected) in [
            (
                "404 Not Found",
                "NoSuchBucket",
                "no: there is no such bucket",
            ),
            (
                "403 Forbidden",
                "AccessDenied",
                "no: these credentials have no right",
            ),
            (
                "403 Forbidden",
                "SignatureDoesNotMatch",
                "no: the credentials are not accepted",
            ),
            (
                "400 Bad Request",
                "ExpiredToken",
                "no: the credentials are not accepted",
            ),
            (
                "301 Moved",
                "PermanentRedirect",
                "no: the bucket is in another region",
            ),
            (
                "400 Bad Request",
                "EntityTooLarge",
                "no: the store answers 400 (EntityTooLarge)",
            ),
            (
                "429 Too Many Requests",
                "TooMany",
                "later: the store answers 429 (TooMany)",
            ),
            (
                "503 Slow Down",
                "SlowDown",
                "later: the store answers 503 (SlowDown)",
            ),
        ] {
            let told = answer(status, code);
            assert!(told.starts_with(expected), "{code}: {told}");
        }
    }

    #[test]
    fn what_has_no_answer_is_told_from_what_has_one() {
        assert!(
            told("HTTP error: operation timed out").starts_with("later: the store does not answer")
        );
        assert!(
            told("HTTP error: connection refused")
                .starts_with("later: the store cannot be reached")
        );
        let region = "Received redirect without LOCATION, this normally indicates an incorrectly configured region";
        assert!(told(region).starts_with("no: the bucket is in another region"));
        assert!(
            told("PUT http://169.254.169.254/latest/api/token")
                .starts_with("no: there are no credentials")
        );
    }
}
