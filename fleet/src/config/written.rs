//! Parses the configuration file, and checks it.

use super::{CATCH_UP_DEFAULT, Config, Kind, Labels, Server, Sink, Target, Version};
use crate::bucket::BucketUrl;
use crate::failure::safe;
use crate::schedule::Schedule;
use serde::Deserialize;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// Default of the folder in which the shipper stores its positions.
const STATE_DEFAULT: &str = "/var/lib/proftop-fleet";

/// Default of the time range of one Parquet file: files of a minute take three times the bytes.
const ROLL_DEFAULT: Duration = Duration::from_secs(15 * 60);
const ROLL_MIN: Duration = Duration::from_secs(10);
const ROLL_MAX: Duration = Duration::from_secs(3600);

/// Range of `catch_up`: with less than the first, what has waited takes more than twice the time of an
/// outage.
const CATCH_UP: RangeInclusive<f64> = 1.5..=1000.0;

/// Defaults of the schedules, and the longest period: a cohort of a day.
const COHORT_PERIOD_DEFAULT: Duration = Duration::from_secs(3600);
const DUTY_PERIOD_DEFAULT: Duration = Duration::from_secs(600);
const PERIOD_MAX: Duration = Duration::from_secs(24 * 3600);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    spool: WrittenSpool,
    #[serde(default)]
    ship: WrittenShip,
    #[serde(default)]
    labels: WrittenLabels,
    #[serde(default)]
    schedule: WrittenSchedule,
    #[serde(default)]
    sink: Vec<WrittenSink>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSpool {
    dir: PathBuf,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenShip {
    state: Option<PathBuf>,
    catch_up: Option<f64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenLabels {
    namespace: String,
    cluster: String,
    version: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct WrittenSchedule {
    mode: Option<String>,
    share: Option<f64>,
    on: Option<String>,
    period: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenSink {
    name: Option<String>,
    r#type: String,
    url: Option<String>,
    tenant: Option<String>,
    token_file: Option<PathBuf>,
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    #[serde(default)]
    plain_http: bool,
    dir: Option<PathBuf>,
    roll: Option<String>,
}

/// Parses and checks a text. The error is appended to the name of the file, for example `:3:
/// unknown field …`.
pub fn check(text: &str) -> Result<Config, String> {
    let written: Written = toml::from_str(text).map_err(|error| {
        let message = safe(error.message());
        match error.span() {
            Some(span) => format!(":{}: {message}", line_of(text, span.start)),
            None => format!(": {message}"),
        }
    })?;
    let labels = labels(written.labels).map_err(|why| format!(": labels: {why}"))?;
    let schedule = schedule(written.schedule).map_err(|why| format!(": schedule: {why}"))?;
    let catch_up = written.ship.catch_up.unwrap_or(CATCH_UP_DEFAULT);
    if !CATCH_UP.contains(&catch_up) {
        return Err(format!(
            ": ship: catch_up is how many times as fast as usual what has waited is sent, from {} to {}",
            CATCH_UP.start(),
            CATCH_UP.end()
        ));
    }
    if written.sink.is_empty() {
        return Err(": there is no [[sink]] to send to".into());
    }
    let mut sinks: Vec<Sink> = Vec::new();
    for written in written.sink {
        let name = written
            .name
            .clone()
            .unwrap_or_else(|| written.r#type.clone());
        let mistake = |why: String| format!(": sink \"{}\": {why}", safe(&name));
        let sink = sink(written, name.clone()).map_err(mistake)?;
        if sinks.iter().any(|other| other.name == sink.name) {
            return Err(mistake(
                "another sink has this name: give it a name of its own".into(),
            ));
        }
        sinks.push(sink);
    }
    Ok(Config {
        spool: written.spool.dir,
        state: written.ship.state.unwrap_or(STATE_DEFAULT.into()),
        labels,
        schedule,
        catch_up,
        sinks,
    })
}

fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    1 + before.iter().filter(|byte| **byte == b'\n').count()
}

fn labels(written: WrittenLabels) -> Result<Labels, String> {
    let texts = [&written.namespace, &written.cluster, &written.version];
    if texts
        .iter()
        .any(|it| it.len() > 200 || it.chars().any(char::is_control))
    {
        return Err("a label is one line of 200 bytes at most".into());
    }
    Ok(Labels {
        namespace: written.namespace,
        cluster: written.cluster,
        version: match &*written.version {
            "build-id" => Version::BuildId,
            _ => Version::Text(written.version),
        },
    })
}

fn schedule(written: WrittenSchedule) -> Result<Schedule, String> {
    let mode = written.mode.as_deref();
    let keys = [
        ("share", written.share.is_some(), mode == Some("cohort")),
        ("on", written.on.is_some(), mode == Some("duty")),
        (
            "period",
            written.period.is_some(),
            matches!(mode, Some("cohort" | "duty")),
        ),
    ];
    if let Some((key, ..)) = keys.iter().find(|(_, given, fits)| *given && !fits) {
        return Err(format!(
            "{key} is of another mode: share is of cohort, on is of duty, period is of both"
        ));
    }
    let period = |default| match &written.period {
        Some(text) => time("period", text, ROLL_MIN, PERIOD_MAX),
        None => Ok(default),
    };
    let ms = |time: Duration| time.as_millis() as i64;
    match mode {
        None | Some("always") => Ok(Schedule::Always),
        Some("cohort") => {
            let share = written
                .share
                .ok_or("share is missing: the part of the hosts, such as 0.05")?;
            if !(1e-6..=1.0).contains(&share) {
                return Err("share is a part of the hosts, from 0.000001 to 1".into());
            }
            let period_ms = ms(period(COHORT_PERIOD_DEFAULT)?);
            Ok(Schedule::Cohort { share, period_ms })
        }
        Some("duty") => {
            let period = period(DUTY_PERIOD_DEFAULT)?;
            let on = written
                .on
                .as_deref()
                .ok_or("on is missing: the time in each period, such as 60s")?;
            let on = time("on", on, Duration::from_secs(1), period)?;
            Ok(Schedule::Duty {
                on_ms: ms(on),
                period_ms: ms(period),
            })
        }
        Some(other) => Err(format!(
            "mode \"{}\" is not one of always, duty, cohort",
            safe(other)
        )),
    }
}

fn sink(written: WrittenSink, name: String) -> Result<Sink, String> {
    let is_letter = |it: u8| it.is_ascii_alphanumeric() || it == b'-' || it == b'_';
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_letter) {
        return Err("a name is 1 to 64 letters, digits, - and _".into());
    }
    let kind = match &*written.r#type {
        "pyroscope" => Kind::Pyroscope(server(written)?),
        "otlp" => Kind::Otlp(server(written)?),
        "parquet" => parquet(written)?,
        other => {
            let other = safe(other);
            return Err(format!(
                "type \"{other}\" is not one of pyroscope, otlp, parquet"
            ));
        }
    };
    Ok(Sink { name, kind })
}

fn parquet(written: WrittenSink) -> Result<Kind, String> {
    let of_servers = [
        ("tenant", written.tenant.is_some()),
        ("token_file", written.token_file.is_some()),
        ("ca", written.ca.is_some()),
        ("cert", written.cert.is_some()),
        ("key", written.key.is_some()),
        ("plain_http", written.plain_http),
    ];
    if let Some((key, _)) = of_servers.iter().find(|(_, given)| *given) {
        return Err(format!(
            "{key} is of servers; a sink of type parquet has a dir, or a url of object storage"
        ));
    }
    let dir = written.dir.filter(|dir| !dir.as_os_str().is_empty());
    let to = match (dir, written.url) {
        (Some(dir), None) if BucketUrl::is_meant(&dir) => {
            return Err("dir is a folder; object storage is url = \"s3://BUCKET/PREFIX\"".into());
        }
        (Some(dir), None) => Target::Folder(dir),
        (None, Some(url)) => Target::Bucket(BucketUrl::read(&url)?),
        (Some(_), Some(_)) => return Err("dir and url are two places: give it one of them".into()),
        (None, None) => {
            return Err(
                "dir is missing: the folder to write to; or url = \"s3://BUCKET/PREFIX\"".into(),
            );
        }
    };
    let roll = match &written.roll {
        Some(text) => time("roll", text, ROLL_MIN, ROLL_MAX)?,
        None => ROLL_DEFAULT,
    };
    Ok(Kind::Parquet { to, roll })
}

/// Parses the time of a key, such as `90s` or `15m`.
fn time(key: &str, text: &str, least: Duration, most: Duration) -> Result<Duration, String> {
    let mistake = || {
        format!(
            "{key} \"{}\" is no time from {} to {}, such as 5m",
            safe(text),
            words(least),
            words(most)
        )
    };
    let at = text.len().saturating_sub(1);
    let (number, unit) = text.split_at_checked(at).ok_or_else(mistake)?;
    let number: u64 = number.parse().map_err(|_| mistake())?;
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(mistake()),
    };
    let time = Duration::from_secs(number.saturating_mul(factor));
    if (least..=most).contains(&time) {
        Ok(time)
    } else {
        Err(mistake())
    }
}

/// Writes a time as it is written in the configuration.
fn words(time: Duration) -> String {
    match time.as_secs() {
        hours if hours % 3600 == 0 => format!("{}h", hours / 3600),
        minutes if minutes % 60 == 0 => format!("{}m", minutes / 60),
        seconds => format!("{seconds}s"),
    }
}

fn server(written: WrittenSink) -> Result<Server, String> {
    if written.dir.is_some() || written.roll.is_some() {
        return Err("dir and roll are of type parquet; a server has a url".into());
    }
    let url = written.url.ok_or("url is missing")?;
    let uri: ureq::http::Uri = url.parse().map_err(|_| "url is no URL".to_string())?;
    let host = uri.host().ok_or("url names no host")?;
    match uri.scheme_str() {
        Some("https") => {}
        Some("http") if written.plain_http || is_this_machine(host) => {}
        Some("http") => {
            return Err(
                "url is http://, which everybody on the way can read: use https://, or say \
                 plain_http = true"
                    .into(),
            );
        }
        _ => return Err("url does not begin with https://".into()),
    }
    if uri.authority().is_some_and(|it| it.as_str().contains('@')) {
        return Err("url has a password in it: use token_file".into());
    }
    let identity = match (written.cert, written.key) {
        (Some(cert), Some(key)) => Some((cert, key)),
        (None, None) => None,
        _ => return Err("cert and key are needed together".into()),
    };
    let tenant = written.tenant.unwrap_or_default();
    if !tenant.bytes().all(|it| it.is_ascii_graphic()) {
        return Err("tenant has characters that no header may have".into());
    }
    Ok(Server {
        url: url.trim_end_matches('/').into(),
        tenant,
        token_file: written.token_file,
        ca: written.ca,
        identity,
    })
}

/// Whether a host name means this machine, which is reached without a network.
pub fn is_this_machine(host: &str) -> bool {
    let address = host.parse::<std::net::Ipv4Addr>();
    host == "localhost" || host == "[::1]" || address.is_ok_and(|it| it.is_loopback())
}
