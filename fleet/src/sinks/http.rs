//! Sends requests to one server over HTTP: TLS is used unless the URL says otherwise, redirections
//! are not followed, and tokens are removed from every message.

/// The token in a file.
mod token;

use super::{Outcome, by_status};
use crate::config::Server;
use crate::failure::{Failure, safe, shown};
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};
use token::Token;
use ureq::http::{HeaderMap, Response, StatusCode};
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};
use ureq::{Agent, Body};

/// Maximum time of a whole request, and of connecting.
const TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum bytes of an answer that are read, and maximum characters of it in a message.
const ANSWER_BYTES_MAX: u64 = 64 << 10;
const TOLD_CHARS_MAX: usize = 200;

/// Maximum length of a certificate or key file.
const PEM_BYTES_MAX: u64 = 1 << 20;

/// Maximum time that a server may request us to wait.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3600);

/// A server, and the connection to it.
pub struct Client {
    agent: Agent,
    url: String,
    tenant: String,
    token: Option<Token>,
}

/// What a server answered.
pub struct Answer {
    pub outcome: Outcome,
    /// The first bytes of the answer's body.
    pub body: Vec<u8>,
}

/// Why there is no whole answer of a server.
pub struct NoAnswer {
    /// The status, if it is the reason.
    pub status: Option<u16>,
    /// Whether the answer is longer than the limit.
    pub is_too_large: bool,
    /// The reason, in a sentence.
    pub why: String,
}

impl Client {
    /// Reads certificates and the token. `path` is appended to the server's URL.
    pub fn new(server: &Server, path: &str) -> Result<Self, Failure> {
        let mut tls = TlsConfig::builder();
        tls = match &server.ca {
            Some(file) => tls.root_certs(RootCerts::Specific(certificates(file)?.into())),
            None => tls.root_certs(RootCerts::PlatformVerifier),
        };
        if let Some((cert, key)) = &server.identity {
            let chain = certificates(cert)?;
            let key = PrivateKey::from_pem(&read(key)?)
                .map_err(|_| Failure::usage(format!("{} has no private key in PEM", shown(key))))?;
            tls = tls.client_cert(Some(ClientCert::new_with_certs(&chain, key)));
        }
        let agent = Agent::config_builder()
            .tls_config(tls.build())
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(TIMEOUT))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .user_agent(concat!("proftop-fleet/", env!("CARGO_PKG_VERSION")))
            .build();
        let token = server.token_file.as_deref().map(Token::read).transpose()?;
        Ok(Self {
            agent: agent.into(),
            url: format!("{}{path}", server.url),
            tenant: server.tenant.clone(),
            token,
        })
    }

    /// Whether the token's file has another token than the one that was last sent.
    pub fn has_new_token(&self) -> bool {
        self.token.as_ref().is_some_and(Token::is_changed)
    }

    /// Sends bytes with POST.
    pub fn post(&mut self, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        if let Some(token) = &mut self.token {
            token.refresh();
        }
        let mut request = self.agent.post(&self.url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if !self.tenant.is_empty() {
            request = request.header("X-Scope-OrgID", &self.tenant);
        }
        if let Some(token) = &self.token {
            request = request.header("Authorization", token.header());
        }
        match request.send(body) {
            Ok(response) => self.answer(response),
            Err(error) => Answer {
                outcome: Outcome::Later {
                    after: None,
                    why: self.told(&error.to_string()),
                },
                body: Vec::new(),
            },
        }
    }

    /// Sends a query, and reads the whole answer. Returns an error if there is none, or if it is
    /// longer than the limit.
    pub fn fetch(
        &mut self,
        headers: &[(&str, &str)],
        body: &[u8],
        bytes_max: u64,
        patience: Duration,
    ) -> Result<Vec<u8>, NoAnswer> {
        if let Some(token) = &mut self.token {
            token.refresh();
        }
        let mut request = self.agent.post(&self.url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if !self.tenant.is_empty() {
            request = request.header("X-Scope-OrgID", &self.tenant);
        }
        if let Some(token) = &self.token {
            request = request.header("Authorization", token.header());
        }
        let request = request.config().timeout_global(Some(patience)).build();
        let no_answer = |why: String| NoAnswer {
            status: None,
            is_too_large: false,
            why,
        };
        let response = request
            .send(body)
            .map_err(|error| no_answer(self.told(&error.to_string())))?;
        let (head, mut body) = response.into_parts();
        let limit = if head.status.is_success() {
            bytes_max
        } else {
            ANSWER_BYTES_MAX
        };
        let read = body.with_config().limit(limit).read_to_vec();
        match (head.status.is_success(), read) {
            (true, Ok(body)) => Ok(body),
            (true, Err(ureq::Error::BodyExceedsLimit(_))) => {
                let why = format!("the answer has more than {} MB", bytes_max >> 20);
                Err(NoAnswer {
                    is_too_large: true,
                    ..no_answer(why)
                })
            }
            (true, Err(error)) => Err(no_answer(
                self.told(&format!("the answer is cut off: {error}")),
            )),
            (false, body) => Err(NoAnswer {
                status: Some(head.status.as_u16()),
                ..no_answer(self.why(head.status, &body.unwrap_or_default()))
            }),
        }
    }

    fn answer(&self, response: Response<Body>) -> Answer {
        let (head, body) = response.into_parts();
        let mut body = body;
        let read = body
            .with_config()
            .limit(ANSWER_BYTES_MAX)
            .lossy_utf8(true)
            .read_to_vec();
        let body = match read {
            Ok(body) => body,
            // It is longer than what is needed, but not truncated.
            Err(ureq::Error::BodyExceedsLimit(_)) => Vec::new(),
            Err(error) if head.status.is_success() => {
                // It is unknown whether the request was accepted: it is sent again, with the same
                // UUID.
                let why = self.told(&format!("the answer is cut off: {error}"));
                let outcome = Outcome::Later { after: None, why };
                let body = Vec::new();
                return Answer { outcome, body };
            }
            Err(_) => Vec::new(),
        };
        let why = self.why(head.status, &body);
        let outcome = by_status(head.status.as_u16(), retry_after(&head.headers), why);
        Answer { outcome, body }
    }

    /// Describes a status and its body in a sentence.
    fn why(&self, status: StatusCode, body: &[u8]) -> String {
        let text = self.told(&String::from_utf8_lossy(body));
        if text.is_empty() {
            format!("it answers {status}")
        } else {
            format!("it answers {status}: {text}")
        }
    }

    /// Prepares a text from outside for a message: truncated, escaped, without the token.
    fn told(&self, text: &str) -> String {
        let text = match &self.token {
            Some(token) => token.remove_from(text),
            None => text.into(),
        };
        let text = safe(text.trim());
        let mut told: String = text.chars().take(TOLD_CHARS_MAX).collect();
        if told.len() < text.len() {
            told.push('…');
        }
        told
    }
}

/// Returns the time that a server requests us to wait: seconds, or a date of HTTP.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("retry-after")?.to_str().ok()?.trim();
    let after = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let at = httpdate::parse_http_date(text).ok()?;
            at.duration_since(SystemTime::now()).unwrap_or_default()
        }
    };
    Some(after.min(RETRY_AFTER_MAX))
}

fn certificates(file: &Path) -> Result<Vec<Certificate<'static>>, Failure> {
    let mut found = Vec::new();
    for item in ureq::tls::parse_pem(&read(file)?) {
        match item {
            Ok(ureq::tls::PemItem::Certificate(certificate)) => found.push(certificate),
            Ok(_) => {}
            Err(_) => {
                let name = shown(file);
                return Err(Failure::usage(format!(
                    "{name} has a certificate that is damaged"
                )));
            }
        }
    }
    if found.is_empty() {
        let name = shown(file);
        return Err(Failure::usage(format!("{name} has no certificate in PEM")));
    }
    Ok(found)
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |why: String| Failure::usage(format!("cannot read {}: {why}", shown(file)));
    let length = fs::metadata(file)
        .map_err(|error| failed(error.to_string()))?
        .len();
    if length > PEM_BYTES_MAX {
        return Err(failed("it is larger than 1 MB".into()));
    }
    fs::read(file).map_err(|error| failed(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(text: &str) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", text.parse().unwrap());
        retry_after(&headers).map(|it| it.as_secs())
    }

    #[test]
    fn a_server_may_ask_for_seconds_or_until_a_date() {
        assert_eq!(after("7"), Some(7));
        assert_eq!(after("999999"), Some(3600));
        assert_eq!(after("soon"), None);
        assert_eq!(after("Sun, 06 Nov 1994 08:49:37 GMT"), Some(0));
        let later = SystemTime::now() + Duration::from_secs(90);
        let date = httpdate::fmt_http_date(later);
        assert!((80..=90).contains(&after(&date).unwrap()));
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }
}
