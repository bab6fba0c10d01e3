//! JSON-RPC 2.0: reading messages and making answers.

use serde_json::{Map, Value, json};

/// Maximum length of a request's identifier in bytes. The answer repeats the identifier.
const ID_MAX: usize = 256;

/// The identifier that a client gave to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Id {
    /// The identifier is not known, as in a message that is not JSON.
    Null,
    Number(i64),
    Text(String),
}

impl Id {
    /// Reads an identifier. None if it is neither a string nor a whole number, or is too long.
    pub fn read(value: &Value) -> Option<Id> {
        match value {
            Value::String(text) if text.len() <= ID_MAX => Some(Id::Text(text.clone())),
            Value::Number(number) => number.as_i64().map(Id::Number),
            _ => None,
        }
    }

    fn value(&self) -> Value {
        match self {
            Id::Null => Value::Null,
            Id::Number(number) => json!(number),
            Id::Text(text) => json!(text),
        }
    }
}

/// A message of the client.
#[derive(Debug, PartialEq)]
pub enum Incoming {
    Request {
        id: Id,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// An answer. This server sends no requests that it could belong to.
    Response,
}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    pub code: i32,
    pub message: String,
    pub data: Option<Value>,
}

impl Error {
    fn new(code: i32, message: impl Into<String>) -> Error {
        Error {
            code,
            message: message.into(),
            data: None,
        }
    }

    /// The message is not JSON.
    pub fn parse(why: impl Into<String>) -> Error {
        Error::new(-32700, format!("cannot read the message: {}", why.into()))
    }

    /// The message is JSON, but not a valid request.
    pub fn request(why: &str) -> Error {
        Error::new(-32600, why)
    }

    /// The method does not exist.
    pub fn method() -> Error {
        Error::new(-32601, "there is no such method")
    }

    /// The method exists, but its parameters are wrong.
    pub fn params(why: impl Into<String>) -> Error {
        Error::new(-32602, why)
    }

    /// Too many requests wait. The code is from the range that servers may define.
    pub fn busy(calls: usize) -> Error {
        let why = format!("busy: {calls} calls wait for their turn already; ask again later");
        Error::new(-32000, why)
    }

    /// The client's version of the protocol is not supported.
    pub fn version(requested: &str, supported: &[&str]) -> Error {
        Error {
            data: Some(json!({ "supported": supported, "requested": requested })),
            ..Error::new(-32022, "this version of the protocol is not supported")
        }
    }
}

/// Reads a message. The error has the identifier of the request, or `Null` if it is not known.
pub fn read(line: &[u8]) -> Result<Incoming, (Id, Error)> {
    // The parser's line and column numbers are of no use to a client, so they are left out.
    let value: Value = serde_json::from_slice(line)
        .map_err(|_| (Id::Null, Error::parse("it is not JSON in UTF-8")))?;
    let Value::Object(mut message) = value else {
        let why = "a message is one JSON object; batches are not read";
        return Err((Id::Null, Error::request(why)));
    };
    let id = message.get("id").map(Id::read);
    let invalid = |why: &str| {
        let id = id.clone().flatten().unwrap_or(Id::Null);
        Err((id, Error::request(why)))
    };
    if message.get("jsonrpc") != Some(&json!("2.0")) {
        return invalid("`jsonrpc` has to be \"2.0\"");
    }
    let params = message.remove("params").unwrap_or(json!({}));
    let method = match message.remove("method") {
        Some(Value::String(method)) => method,
        Some(_) => return invalid("`method` has to be a string"),
        None if is_response(&message) => return Ok(Incoming::Response),
        None => return invalid("there is no `method`"),
    };
    if !params.is_object() {
        return invalid("`params` has to be an object");
    }
    match id {
        None => Ok(Incoming::Notification { method, params }),
        Some(Some(id)) => Ok(Incoming::Request { id, method, params }),
        Some(None) => invalid("`id` has to be a short string or a whole number"),
    }
}

fn is_response(message: &Map<String, Value>) -> bool {
    message.contains_key("result") || message.contains_key("error")
}

/// Returns the answer with a result.
pub fn succeeded(id: &Id, result: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.value(), "result": result })
}

/// Returns the answer with an error.
pub fn failed(id: &Id, error: &Error) -> Value {
    let mut body = json!({ "code": error.code, "message": error.message });
    if let Some(data) = &error.data {
        body["data"] = data.clone();
    }
    json!({ "jsonrpc": "2.0", "id": id.value(), "error": body })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(line: &str) -> (Id, i32) {
        let (id, error) = read(line.as_bytes()).expect_err("it is none");
        (id, error.code)
    }

    #[test]
    fn requests_notifications_and_responses_are_told_apart() {
        let request = read(br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#).unwrap();
        assert_eq!(
            request,
            Incoming::Request {
                id: Id::Text("a".into()),
                method: "ping".into(),
                params: json!({}),
            }
        );
        let told = read(br#"{"jsonrpc":"2.0","method":"x","params":{"a":1}}"#).unwrap();
        assert!(matches!(told, Incoming::Notification { .. }));
        let response = read(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#).unwrap();
        assert_eq!(response, Incoming::Response);
    }

    #[test]
    fn what_is_no_message_has_the_code_of_the_standard() {
        assert_eq!(code("nonsense"), (Id::Null, -32700));
        assert_eq!(code("{\"jsonrpc\":\"2.0\","), (Id::Null, -32700));
        assert_eq!(code("[]"), (Id::Null, -32600));
        assert_eq!(code("1"), (Id::Null, -32600));
        assert_eq!(
            code("{\"id\":7,\"method\":\"ping\"}"),
            (Id::Number(7), -32600)
        );
        let wrong = [
            r#"{"jsonrpc":"2.0","id":7}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":1}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"x","params":[1]}"#,
            r#"{"jsonrpc":"1.0","id":7,"method":"x"}"#,
        ];
        for line in wrong {
            assert_eq!(code(line), (Id::Number(7), -32600), "{line}");
        }
        for id in ["null", "1.5", "{}", "[1]", "true"] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"x"}}"#);
            assert_eq!(code(&line), (Id::Null, -32600), "{line}");
        }
        let deep = "[".repeat(100_000);
        assert_eq!(code(&deep), (Id::Null, -32700));
        let id = "x".repeat(ID_MAX + 1);
        let line = format!(r#"{{"jsonrpc":"2.0","id":"{id}","method":"x"}}"#);
        assert_eq!(code(&line), (Id::Null, -32600));
        assert!(read(b"\xff\xfe").is_err());
    }

    #[test]
    fn an_answer_has_the_identifier_of_its_request() {
        let answer = succeeded(&Id::Number(3), json!({"a": 1}));
        assert_eq!(
            answer,
            json!({"jsonrpc": "2.0", "id": 3, "result": {"a": 1}})
        );
        let answer = failed(&Id::Null, &Error::version("1", &["2"]));
        assert_eq!(answer["id"], Value::Null);
        assert_eq!(answer["error"]["code"], -32022);
        assert_eq!(answer["error"]["data"]["supported"], json!(["2"]));
    }
}
