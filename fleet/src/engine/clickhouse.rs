//! A server of ClickHouse, or a cluster behind it, over HTTP. Its tables have the names and columns of the
//! files (docs/fleet.md): views of files, or tables of its own.

use super::{ANSWER_BYTES_MAX, Engine};
use crate::config::{Server, is_this_machine};
use crate::failure::{Failure, safe};
use crate::rows::{Cell, Rows};
use crate::sinks::http::Client;
use serde::Deserialize;
use serde_json::Value;
use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

/// How long to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(600);

/// Settings of each query. The answer is sent when it is complete, so that the status shows errors;
/// tables that are distributed over shards are joined with complete results of subqueries; integers
/// wider than 53 bits are texts.
const SETTINGS: &str = "wait_end_of_query=1&distributed_product_mode=global&\
                        join_default_strictness=ALL&output_format_json_quote_64bit_integers=1";

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The URL without a path.
    url: String,
    database: String,
}

impl Address {
    /// Parses the text after `clickhouse+`: `http://HOST:PORT[/DATABASE]`.
    pub fn read(url: &str) -> Result<Self, String> {
        let uri: ureq::http::Uri = url.parse().map_err(|_| "it is no URL".to_string())?;
        let (Some(scheme), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err("write clickhouse+https://HOST:PORT or clickhouse+http://HOST:PORT".into());
        };
        if authority.as_str().contains('@') {
            return Err("it has a password in it: use --token-file".into());
        }
        match scheme {
            "https" => {}
            "http" if is_this_machine(authority.host()) => {}
            "http" => {
                return Err(
                    "http:// is what everybody on the way can read and change: use https://, or a \
                     tunnel to this machine"
                        .into(),
                );
            }
            _ => return Err("write clickhouse+https:// or clickhouse+http://".into()),
        }
        let database = uri.path().trim_matches('/');
        let is_letter = |it: u8| it.is_ascii_alphanumeric() || it == b'_';
        if uri.query().is_some() || !database.bytes().all(is_letter) {
            return Err("behind the port may stand a database: letters, digits and _".into());
        }
        Ok(Self {
            url: format!("{scheme}://{authority}"),
            database: match database {
                "" => "default".into(),
                database => database.into(),
            },
        })
    }
}

/// A server, and the connection to it.
pub struct ClickHouse {
    client: RefCell<Client>,
    url: String,
}

impl ClickHouse {
    /// Reads the token and the certificates. No query is sent yet.
    pub fn new(
        address: &Address,
        token_file: Option<PathBuf>,
        ca: Option<PathBuf>,
    ) -> Result<Self, Failure> {
        let server = Server {
            url: address.url.clone(),
            tenant: String::new(),
            token_file,
            ca,
            identity: None,
        };
        let path = format!("/?database={}&{SETTINGS}", address.database);
        Ok(Self {
            client: RefCell::new(Client::new(&server, &path)?),
            url: address.url.clone(),
        })
    }
}

impl Engine for ClickHouse {
    fn rows(&self, sql: &str) -> Result<Rows, Failure> {
        let failed =
            |why: &str| Failure::failed(format!("ClickHouse at {}: {why}", safe(&self.url)));
        let body = format!("{sql}\nFORMAT JSONCompact");
        let answer = self
            .client
            .borrow_mut()
            .fetch(
                &[("Content-Type", "text/plain")],
                body.as_bytes(),
                ANSWER_BYTES_MAX as u64,
                PATIENCE,
            )
            .map_err(|it| failed(&it.why))?;
        read(&answer).map_err(|why| failed(&format!("it answers something else than rows: {why}")))
    }
}

#[derive(Deserialize)]
struct Answer {
    meta: Vec<Meta>,
    data: Vec<Vec<Value>>,
}

#[derive(Deserialize)]
struct Meta {
    name: String,
}

/// Parses an answer. Servers are not trusted: each row must have as many values as there are
/// columns.
fn read(bytes: &[u8]) -> Result<Rows, String> {
    let answer: Answer = serde_json::from_slice(bytes).map_err(|error| safe(&error.to_string()))?;
    let columns: Vec<String> = answer.meta.into_iter().map(|it| it.name).collect();
    let mut cells = Vec::with_capacity(answer.data.len());
    for row in answer.data {
        if row.len() != columns.len() {
            return Err("a row has not as many values as there are columns".into());
        }
        cells.push(row.iter().map(cell).collect::<Result<_, _>>()?);
    }
    Ok(Rows { columns, cells })
}

fn cell(value: &Value) -> Result<Cell, String> {
    Ok(match value {
        Value::Null => Cell::None,
        Value::String(text) => Cell::Text(text.clone()),
        Value::Array(list) => {
            let number = |it: &Value| match it {
                Value::String(text) => text.parse().ok(),
                other => other.as_u64(),
            };
            let numbers: Option<Vec<u64>> = list.iter().map(number).collect();
            Cell::List(numbers.ok_or("a list has something else than numbers")?)
        }
        Value::Number(number) => match number.as_u64() {
            Some(whole) => Cell::Whole(whole),
            None => Cell::Number(number.as_f64().unwrap_or(0.0)),
        },
        Value::Bool(_) | Value::Object(_) => {
            return Err("a value is neither number nor text".into());
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_perhaps_a_database() {
        let local = Address::read("http://127.0.0.1:8123").unwrap();
        assert_eq!(
            (&*local.url, &*local.database),
            ("http://127.0.0.1:8123", "default")
        );
        let far = Address::read("https://ch.example:8443/fleet").unwrap();
        assert_eq!(
            (&*far.url, &*far.database),
            ("https://ch.example:8443", "fleet")
        );
        for wrong in [
            "",
            "ch.example",
            "http://ch.example:8123",
            "ftp://127.0.0.1",
            "https://user:secret@ch.example",
            "https://ch.example/a?b=c",
            "https://ch.example/a%20b",
        ] {
            assert!(Address::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_answer_is_read_and_what_is_none_is_refused() {
        let text = br#"{"meta":[{"name":"a","type":"UInt64"},{"name":"b"}],
            "data":[["18446744073709551615",[1,"2"]],[1.5,null]],"rows":2}"#;
        let rows = read(text).unwrap();
        assert_eq!(rows.row(0).whole("a"), u64::MAX);
        assert_eq!(rows.cells[0][1], Cell::List(vec![1, 2]));
        assert_eq!((rows.row(1).number("a"), rows.row(1).text("b")), (1.5, ""));
        for wrong in [
            &b""[..],
            b"Code: 60. DB::Exception",
            br#"{"meta":[{"name":"a"}],"data":[[1,2]]}"#,
            br#"{"meta":[{"name":"a"}],"data":[[{"b":1}]]}"#,
            br#"{"meta":[{"name":"a"}],"data":[[["x"]]]}"#,
        ] {
            assert!(read(wrong).is_err());
        }
    }
}
