use super::*;

const HEAD: &str = "[spool]\ndir = \"/var/spool/proftop\"\n";

fn mistake(rest: &str) -> String {
    written::check(&format!("{HEAD}{rest}")).unwrap_err()
}

#[test]
fn a_whole_configuration_is_read() {
    let text = format!(
        "{HEAD}[labels]\nnamespace = \"shop\"\nversion = \"build-id\"\n\
         [[sink]]\ntype = \"pyroscope\"\nurl = \"https://p.example/\"\ntenant = \"t\"\n\
         token_file = \"/etc/token\"\nca = \"/etc/ca\"\ncert = \"/etc/cert\"\nkey = \"/etc/key\"\n\
         [[sink]]\ntype = \"otlp\"\nname = \"two\"\nurl = \"http://127.0.0.1:4318\"\n\
         [[sink]]\ntype = \"parquet\"\ndir = \"/data\"\nroll = \"5m\"\n\
         [[sink]]\ntype = \"parquet\"\nname = \"s3\"\nurl = \"s3://b/v1/\"\n"
    );
    let config = written::check(&text).unwrap();
    assert_eq!(config.spool, Path::new("/var/spool/proftop"));
    assert_eq!(config.labels.version, Version::BuildId);
    let Kind::Pyroscope(server) = &config.sinks[0].kind else {
        panic!("{:?}", config.sinks[0]);
    };
    assert_eq!(server.url, "https://p.example");
    assert_eq!(server.tenant, "t");
    assert_eq!(config.sinks[1].name, "two");
    let Kind::Parquet { to, roll } = &config.sinks[2].kind else {
        panic!("{:?}", config.sinks[2]);
    };
    assert_eq!(*to, Target::Folder("/data".into()));
    assert_eq!(roll.as_secs(), 300);
    let Kind::Parquet { to, .. } = &config.sinks[3].kind else {
        panic!("{:?}", config.sinks[3]);
    };
    assert_eq!(*to, Target::Bucket(BucketUrl::read("s3://b/v1").unwrap()));
}

#[test]
fn how_fast_to_catch_up_has_a_default_and_bounds() {
    let sink = "[[sink]]\ntype = \"parquet\"\ndir = \"/data\"\n";
    let read = |text: &str| written::check(&format!("{HEAD}{text}\n{sink}"));
    assert_eq!(read("").unwrap().catch_up, CATCH_UP_DEFAULT);
    assert_eq!(read("[ship]\ncatch_up = 20").unwrap().catch_up, 20.0);
    for text in ["1", "-3", "nan", "inf", "1001"] {
        let mistake = read(&format!("[ship]\ncatch_up = {text}")).unwrap_err();
        assert!(mistake.contains("from 1.5 to 1000"), "{mistake}");
    }
}

#[test]
fn a_schedule_is_read() {
    let sink = "[[sink]]\ntype = \"parquet\"\ndir = \"/data\"\n";
    let read = |text: &str| {
        let text = format!("{HEAD}{text}\n{sink}");
        written::check(&text).map(|it| it.schedule)
    };
    let cohort = |share, period_ms| Schedule::Cohort { share, period_ms };
    let duty = |on_ms, period_ms| Schedule::Duty { on_ms, period_ms };
    for (text, expected) in [
        ("", Schedule::Always),
        ("[schedule]\nmode = \"always\"", Schedule::Always),
        (
            "[schedule]\nmode = \"cohort\"\nshare = 0.05",
            cohort(0.05, 3_600_000),
        ),
        (
            "[schedule]\nmode = \"cohort\"\nshare = 1\nperiod = \"30m\"",
            cohort(1.0, 1_800_000),
        ),
        (
            "[schedule]\nmode = \"duty\"\non = \"60s\"",
            duty(60_000, 600_000),
        ),
    ] {
        assert_eq!(read(text), Ok(expected), "{text}");
    }
    for (text, expected) in [
        ("mode = \"never\"", "is not one of always, duty, cohort"),
        ("share = 0.5", "share is of another mode"),
        ("mode = \"cohort\"", "share is missing"),
        ("mode = \"cohort\"\nshare = 0", "from 0.000001 to 1"),
        ("mode = \"cohort\"\nshare = nan", "from 0.000001 to 1"),
        ("mode = \"duty\"", "on is missing"),
        (
            "mode = \"duty\"\non = \"11m\"",
            "on \"11m\" is no time from 1s to 10m",
        ),
        ("mode = \"duty\"\nshare = 0.5", "share is of another mode"),
    ] {
        let mistake = read(&format!("[schedule]\n{text}")).unwrap_err();
        assert!(mistake.contains(expected), "{text}: {mistake}");
        assert!(!mistake.contains('\n'), "{mistake}");
    }
}

#[test]
fn each_mistake_is_one_sentence() {
    let pyroscope = "[[sink]]\ntype = \"pyroscope\"\n";
    for (rest, expected) in [
        (String::new(), "there is no [[sink]]"),
        (
            "[[sink]]\ntype = \"kafka\"\n".into(),
            "type \"kafka\" is not one of",
        ),
        (pyroscope.into(), "sink \"pyroscope\": url is missing"),
        (format!("{pyroscope}url = \"p.example\"\n"), "url"),
        (
            format!("{pyroscope}url = \"http://p.example\"\n"),
            "plain_http = true",
        ),
        (
            format!("{pyroscope}url = \"https://u:p@p.example\"\n"),
            "use token_file",
        ),
        (
            format!("{pyroscope}url = \"https://p\"\ncert = \"c\"\n"),
            "needed together",
        ),
        (
            format!("{pyroscope}url = \"https://p\"\ntoken = \"secret\"\n"),
            ":6: unknown field `token`",
        ),
        (
            format!("{pyroscope}url = \"https://p\"\nroll = \"5m\"\n"),
            "of type parquet",
        ),
        (
            format!("{pyroscope}url = \"https://p\"\n{pyroscope}url = \"https://q\"\n"),
            "another sink",
        ),
        ("[[sink]]\ntype = \"parquet\"\n".into(), "dir is missing"),
        (
            "[[sink]]\ntype = \"parquet\"\ndir = \"/d\"\nurl = \"https://p\"\n".into(),
            "dir and url are two places",
        ),
        (
            "[[sink]]\ntype = \"parquet\"\nurl = \"https://p\"\n".into(),
            "begins with s3://",
        ),
        (
            "[[sink]]\ntype = \"parquet\"\ndir = \"s3://b\"\n".into(),
            "object storage is url",
        ),
        (
            "[[sink]]\ntype = \"parquet\"\nurl = \"s3://b\"\ntenant = \"t\"\n".into(),
            "tenant is of servers",
        ),
        (
            "[[sink]]\ntype = \"parquet\"\ndir = \"/d\"\nroll = \"2h\"\n".into(),
            "no time from 10s to 1h",
        ),
        (
            "[[sink]]\ntype = \"parquet\"\ndir = \"/d\"\nroll = \"\u{e9}\"\n".into(),
            "no time from 10s to 1h",
        ),
        (
            "[[sink]]\ntype = \"parquet\"\nname = \"../x\"\ndir = \"/d\"\n".into(),
            "letters, digits",
        ),
        ("[labels]\nnamespace = \"a\\nb\"\n".into(), "one line"),
        ("[spool\n".into(), ":3:"),
    ] {
        let mistake = mistake(&rest);
        assert!(mistake.contains(expected), "{rest:?}: {mistake}");
        assert!(!mistake.contains('\n'), "{mistake:?}");
        assert!(!mistake.contains("secret"), "{mistake:?}");
    }
}
