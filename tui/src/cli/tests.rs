use super::*;
use crate::choices::{Color, Format, Sort, Theme};

fn parse_line(line: &str) -> Result<Request, Failure> {
    let words = std::iter::once("proftop").chain(line.split_whitespace());
    parse(words.map(OsString::from), Default::default)
}

fn config(line: &str) -> Config {
    match parse_line(line) {
        Ok(Request::Top(config)) => *config,
        other => panic!("{line}: {other:?}"),
    }
}

fn printed(line: &str) -> String {
    match parse_line(line) {
        Ok(Request::Print(text)) => text,
        other => panic!("{line}: {other:?}"),
    }
}

fn error(line: &str) -> String {
    let failure = parse_line(line).expect_err(line);
    assert_eq!(failure.exit.code(), 2, "{line}");
    assert_eq!(failure.to_string().lines().count(), 1, "{failure}");
    failure.message
}

fn batch(line: &str) -> BatchConfig {
    match config(line).mode {
        Mode::Batch(batch) => batch,
        other => panic!("{line}: {other:?}"),
    }
}

#[test]
fn no_words_mean_the_whole_machine_on_a_screen() {
    let config = config("");
    assert_eq!(config.mode, Mode::Screen);
    assert_eq!(config.sample.rate_hz, 99);
    assert_eq!(config.sample.depth_max, 512);
    assert_eq!(config.sample.keep, Duration::from_secs(600));
    assert_eq!(config.sample.memory_bytes_max, 256 << 20);
    assert_eq!(config.show.window, Duration::from_secs(10));
    assert_eq!(config.look.sort, Sort::SelfTime);
    assert_eq!(config.show.delay, Duration::from_secs(1));
    assert!(config.target.pids.is_empty() && config.command.is_none());
    assert!(config.look.mouse && !config.look.ascii);
}

#[test]
fn a_recording_goes_to_a_file_of_todays_name() {
    let record = |line: &str| match config(line).mode {
        Mode::Record(record) => record,
        other => panic!("{line}: {other:?}"),
    };
    let name = record("record").file.unwrap();
    assert!(name.to_str().unwrap().starts_with("proftop-2"), "{name:?}");
    assert_eq!(record("record -o -").file, None);
    let given = record("record -p 7 -d 30s -o a.pft -f");
    assert_eq!(given.duration, Some(Duration::from_secs(30)));
    assert!(given.overwrite && given.file == Some("a.pft".into()));
    assert_eq!(config("record -F 499 -t 7").sample.rate_hz, 499);
    assert!(config("record -- make -j2").command.is_some());
    assert!(error("record -p 7 -- make").contains("itself the target"));
}

#[test]
fn a_report_has_one_shape() {
    let report = |line: &str| match parse_line(line) {
        Ok(Request::Report(report)) => report,
        other => panic!("{line}: {other:?}"),
    };
    let shape = report("report a.pft --top 3 --filter !memcpy");
    assert_eq!(shape.filter.to_string(), "!memcpy");
    assert!(matches!(
        shape.shape,
        ReportShape::Functions {
            rows_max: Some(3),
            ..
        }
    ));
    assert!(matches!(report("report - --tree").shape, ReportShape::Tree));
    assert!(error("report a.pft --tree --top 3").contains("cannot be used"));
    assert!(error("report a.pft --filter fn~(").contains("column 4"));
    assert!(error("export a.pft b.x --format gif").contains("folded"));
}

#[test]
fn the_name_of_a_recording_tells_its_format() {
    let recorded = |words: &str| match config(words).mode {
        Mode::Record(record) => record,
        other => panic!("{other:?}"),
    };
    for name in ["a.pft", "a", "/dev/fd/7", "folded", "-"] {
        let record = recorded(&format!("record -o {name}"));
        assert_eq!(record.format, FileFormat::Pft, "{name}");
        assert!(record.is_streamed(), "{name}");
    }
    let later = [
        ("x.folded", FileFormat::Folded),
        ("x.FOLDED.gz", FileFormat::Folded),
        ("x.collapsed.zst", FileFormat::Folded),
        ("x.pb.gz", FileFormat::Pprof),
        ("x.html", FileFormat::Html),
        ("x.pft.gz", FileFormat::Pft),
    ];
    for (name, format) in later {
        let record = recorded(&format!("record -o {name}"));
        assert_eq!(record.format, format, "{name}");
        assert!(!record.is_streamed(), "{name}");
    }
    for name in ["x.xyz", "x.json", "x.data", "x.pft.xz"] {
        let refused = error(&format!("record -o {name}"));
        assert!(refused.contains("use one of .pft, .folded"), "{refused}");
    }
    // With `--format` the name of the file may have any extension.
    let record = recorded("record -o x.xyz --format svg");
    assert_eq!(record.format, FileFormat::Svg);
    let file = recorded("record --format svg").file;
    assert!(file.is_some_and(|file| file.extension().is_some_and(|end| end == "svg")));
}

#[test]
fn top_is_the_default_word() {
    assert_eq!(config("top -p 7").target.pids, [7]);
    assert_eq!(config("top").mode, Mode::Screen);
    assert!(printed("top -h").starts_with("proftop: top for code"));
}

#[test]
fn targets_repeat_and_combine() {
    let target = config("-p 5,3 -p 3 -t 9 --comm ^a.b -g nginx.service --no-children").target;
    assert_eq!(target.pids, [3, 5]);
    assert_eq!(target.tids, [9]);
    assert!(target.comm.unwrap().is_match("axb"));
    assert_eq!(target.cgroup.as_deref(), Some("nginx.service"));
    assert!(target.no_children);
}

#[test]
fn a_command_keeps_its_own_options() {
    let config = config("-F 499 -- ./bench -p 1 --help");
    let command = config.command.unwrap();
    assert_eq!(command.program, "./bench");
    assert_eq!(command.args, ["-p", "1", "--help"]);
    assert_eq!(config.sample.rate_hz, 499);
    assert!(config.target.pids.is_empty());
}

#[test]
fn batch_reports_cover_one_delay() {
    let config = config("-b -n 1 -d 2.5 --top 15 --format json -o out.json -f");
    assert_eq!(config.show.window, Duration::from_millis(2500));
    let Mode::Batch(batch) = config.mode else {
        panic!()
    };
    assert_eq!(batch.reports_max, Some(1));
    assert_eq!(batch.rows_max, Some(15));
    assert_eq!(batch.format, Format::Json);
    assert_eq!(batch.file, Some(PathBuf::from("out.json")));
    assert!(batch.overwrite);
}

#[test]
fn batch_has_defaults() {
    let batch = batch("--batch");
    assert_eq!((batch.reports_max, batch.rows_max), (None, Some(20)));
    assert_eq!((batch.format, batch.file), (Format::Text, None));
}

#[test]
fn looks_are_read() {
    let look = config("--color never --ascii --theme 16 --no-mouse").look;
    assert_eq!(look.color, Color::Never);
    assert_eq!(look.theme, Theme::Sixteen);
    assert!(look.ascii && !look.mouse);
}

#[test]
fn a_short_memory_shortens_the_window() {
    assert_eq!(config("--keep 5s").show.window, Duration::from_secs(5));
}

#[test]
fn doctor_has_options_of_its_own() {
    let Ok(Request::Doctor(doctor)) = parse_line("doctor -p 12 --json") else {
        panic!()
    };
    assert_eq!((doctor.pid, doctor.format), (Some(12), Format::Json));
    assert!(error("doctor -F 99").contains("-F"));
    assert!(error("-p 12 doctor").contains("doctor"));
}

#[test]
fn symbolize_has_options_of_its_own() {
    let Ok(Request::Symbolize(config)) = parse_line("symbolize --format llvm ./a 0x1 2") else {
        panic!()
    };
    assert_eq!(config.format, SymbolFormat::Llvm);
    assert!(config.demangle);
    let SymbolizeTask::File {
        file, addresses, ..
    } = config.task
    else {
        panic!()
    };
    assert_eq!(file, Some("./a".into()));
    assert_eq!(addresses, ["0x1", "2"]);
    let Ok(Request::Symbolize(config)) = parse_line("symbolize -p 7 0x1") else {
        panic!()
    };
    let addresses = vec!["0x1".into()];
    assert_eq!(config.task, SymbolizeTask::Process { pid: 7, addresses });
    assert!(error("symbolize --build-cache d").contains("needs the files"));
    assert!(error("symbolize -p 7 --cache d").contains("--cache"));
}

#[test]
fn mistakes_get_one_sentence_that_helps() {
    for (line, expected) in [
        ("--windo 5s", "did you mean '--window'?"),
        ("docter", "did you mean 'doctor'?"),
        ("--sort totl", "did you mean 'total'?"),
        ("-p 1 doctor", "it has to come first: proftop doctor"),
        ("4121", "to watch a process: -p 4121"),
        ("./bench", "to run and watch a command: -- ./bench"),
        ("-F 0", "not a number from 1 to 10000"),
        ("--comm a[", "unclosed character class"),
        ("-n 3", "-n is about printed reports: add --batch (-b)"),
        ("--format csv", "add --batch"),
        ("-b -f", "there is no -o"),
        ("-b --window 5s", "give its length with -d"),
        (
            "--window 20m",
            "--window asks for 1200 s, but --keep holds only 600 s",
        ),
        ("-p 1 -- true", "is itself the target"),
        ("--no-children", "add -p PID"),
        ("--mem 1M", "at least 16M"),
        ("--view nowhere", "there are functions, tree"),
        ("-b --view tree", "--view is about the screen"),
        ("open a.pft --filter fn~(", "unclosed group"),
        ("-p", "a value is required"),
        ("-p 0", "not a process or thread number"),
        ("-b -n 0", "not a whole number, 1 or more"),
        ("report a.pft --top abc", "not a whole number, 1 or more"),
        ("diff a b --top 0", "not a whole number, 1 or more"),
        (
            "-b --format md --budget-tokens 5",
            "not a number from 200 to 100000",
        ),
        ("trace f --args 99", "not a number from 1 to 8"),
        ("trace f --string 0", "not a number from 1 to 9"),
        ("trace f --max-cost 0", "not a number from 1 to 1000"),
        ("trace f --max-hits x", "not a whole number, 1 or more"),
        ("-b --baseline F", "proftop diff BASELINE FILE"),
        ("report a.pft b.pft", "it is proftop report FILE [--top K"),
        ("doctor foo", "it is proftop doctor [-p PID]"),
        ("doctor 12", "proftop doctor -p 12"),
        ("demo foo", "proftop demo takes options only"),
        ("man foo", "proftop man takes options only"),
        ("foo", "to run and watch a command: -- foo"),
        ("record ./bench", "to run and watch a command: -- ./bench"),
        ("merge", "merge needs --output FILE and FILE..., as in"),
        ("completions", "completions needs SHELL"),
        ("merge a.pft -o b.xyz", "use one of .pft, .folded"),
        ("resolve a.pft -o b.folded", "-o FILE.pft"),
        ("resolve a.pft -o b.pft.gz", "-o FILE.pft"),
    ] {
        let message = error(line);
        assert!(message.contains(expected), "{line}: {message}");
        assert!(!message.contains("Usage:"), "{line}: {message}");
    }
}

#[test]
fn an_error_cannot_write_to_the_terminal() {
    let words = ["proftop", "--x\x1b[2J\n"].map(OsString::from);
    let text = parse(words, Default::default).unwrap_err().to_string();
    assert!(text.trim_end().chars().all(|c| !c.is_control()), "{text:?}");
}

#[test]
fn the_short_help_fits_a_terminal() {
    let text = printed("-h");
    assert!(text.lines().count() <= 24, "{} lines", text.lines().count());
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert_eq!(printed("-b -h"), text);
}

#[test]
fn both_helps_name_every_option() {
    let (short, long) = (printed("-h"), printed("--help"));
    for option in [
        "-p",
        "-t",
        "--comm",
        "-g",
        "--no-children",
        "-F",
        "--max-depth",
        "--keep",
        "--mem",
        "--window",
        "--sort",
        "-d",
        "-b",
        "--batch",
        "-n",
        "--top",
        "--format",
        "-o",
        "-f",
        "--color",
        "--ascii",
        "--theme",
        "--no-mouse",
        "--view",
        "--filter",
        "doctor",
        "--json",
        "--version",
    ] {
        assert!(short.contains(option), "-h lacks {option}");
        let in_doctor = option == "--json" && printed("doctor --help").contains(option);
        assert!(long.contains(option) || in_doctor, "--help lacks {option}");
    }
    assert!(long.contains("Exit status:"));
}

#[test]
fn knows_its_version() {
    assert_eq!(
        printed("--version"),
        concat!("proftop ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn clap_finds_no_fault_in_the_definition() {
    use clap::CommandFactory;
    args::Words::command().debug_assert();
}

#[test]
fn users_and_cpus_are_targets() {
    let target = config("-u ann,1000 -u bob -C 0-2 --cpu 7,1").target;
    assert_eq!(target.users, ["ann", "1000", "bob"]);
    assert_eq!(target.cpus, [0, 1, 2, 7]);
    let target = config("record -u ann -C 3").target;
    assert_eq!((target.users.len(), target.cpus), (1, vec![3]));
    assert!(error("-C 3-1").contains("not a list of CPUs"));
    assert!(error("-u ,").contains("no user given"));
}

#[test]
fn a_unit_is_one_of_those_that_are_turned_through() {
    use crate::knobs::Unit;
    let unit = |line: &str| config(line).look.unit;
    assert_eq!(unit("--unit cpu-ms"), Some(Unit::CpuMs));
    assert_eq!(unit("--unit %"), Some(Unit::Share));
    assert_eq!(unit(""), None);
    assert!(error("--unit miles").contains("--unit"));
    assert!(error("-b --unit cpus").contains("about the screen"));
}

#[test]
fn only_what_is_live_freezes_later() {
    let after = config("--freeze-after 30s").show.freeze_after;
    assert_eq!(after, Some(Duration::from_secs(30)));
    assert!(error("-b --freeze-after 3s").contains("about the screen"));
    assert!(error("--plain --freeze-after 3s").contains("type freeze"));
    for line in ["open a.pft --freeze-after 3s", "demo --freeze-after 3s"] {
        assert!(error(line).contains("a recording stands still"), "{line}");
    }
}

#[test]
fn help_is_a_word_as_well_and_names_all_formats() {
    let help = |words: &str| {
        let words = format!("proftop {words}")
            .split(' ')
            .map(Into::into)
            .collect();
        super::args::read(words).unwrap_err().to_string()
    };
    for command in ["record", "export"] {
        let text = help(&format!("help {command}"));
        assert_eq!(text, help(&format!("{command} --help")));
        // Joined to one line, as clap may wrap the text anywhere.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for format in profile::formats::Format::ALL {
            assert!(text.contains(format.word()), "{command}: {}", format.word());
        }
        assert!(text.contains("speedscope, firefox"), "{text}");
    }
    let merge = help("help merge");
    for format in profile::formats::Format::ALL {
        assert!(merge.contains(format.endings()[0]), "{merge}");
    }
    assert!(help("help").contains("--batch"));
    // The help does not offer an option that `trace` refuses.
    assert!(!help("trace --help").contains("--cpu"));
    assert!(help("record --help").contains("--cpu"));
}

#[test]
fn what_proftop_fleet_fetches_is_told_from_files() {
    let source = |line: &str| match parse_line(line) {
        Ok(Request::Open(config)) => config.source,
        other => panic!("{line}: {other:?}"),
    };
    for address in [
        "pyroscope+https://p/?q={a=\"b\"}&from=now-1h",
        "pyroscope+http://127.0.0.1:1",
        "parquet+/mnt/a?since=1h",
        "parquet+s3://bucket",
    ] {
        let RecordingSource::Fleet(fleet) = source(&format!("open {address} -- --ca x.pem")) else {
            panic!("{address}");
        };
        assert_eq!(fleet.address, address);
        assert_eq!(fleet.options, ["--ca", "x.pem"]);
    }
    for file in ["./parquet+a.pft", "pyroscope+a.pft", "pyroscope.pb.gz", "-"] {
        let source = source(&format!("open {file}"));
        assert!(
            matches!(&source, RecordingSource::File(path) if path.as_os_str() == file),
            "{file}: {source:?}"
        );
    }
    for (line, part) in [
        ("open parquet+a parquet+b", "shows one address"),
        ("open a.pft parquet+b", "shows one address"),
        (
            "open a.pft -- --ca x",
            "for machines (ssh://HOST) and proftop-fleet",
        ),
    ] {
        let message = error(line);
        assert!(message.contains(part), "{line}: {message}");
    }
}

#[test]
fn a_cohort_has_a_higher_rate() {
    let cohort = |line: &str| match config(line).mode {
        Mode::Record(record) => record.ring.and_then(|ring| ring.cohort),
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(cohort("agent"), None);
    let usual = cohort("agent --cohort-rate 99").expect("it is asked for");
    assert_eq!((usual.usual_hz, usual.rate_hz), (19, 99));
    let hour_ms = 3_600_000;
    assert_eq!(
        (usual.cohort.share, usual.cohort.period_ms),
        (0.05, hour_ms)
    );
    let words = "agent -F 5 --cohort-rate 5 --cohort-share 2% --cohort-period 10m";
    let other = cohort(words).expect("it is asked for");
    assert_eq!(
        (other.cohort.share, other.cohort.period_ms),
        (0.02, 600_000)
    );
    for (line, part) in [
        ("agent --cohort-share 0.1", "add --cohort-rate HZ"),
        ("agent --cohort-period 1h", "add --cohort-rate HZ"),
        ("agent --cohort-rate 9", "has to be the higher one"),
        (
            "agent --cohort-rate 99 --cohort-share 2",
            "from 0.000001 to 1",
        ),
        (
            "agent --cohort-rate 99 --cohort-share 0%",
            "from 0.000001 to 1",
        ),
        ("agent --cohort-rate 99 --cohort-period 1s", "10s to 24h"),
    ] {
        let message = error(line);
        assert!(message.contains(part), "{line}: {message}");
    }
    // The configuration says it as well, and can be read after it was written.
    let mut settings = Settings::default();
    settings.agent.cohort_rate_hz = Some(49);
    settings.agent.cohort_share = Some(0.5);
    let words = ["proftop", "agent"].map(OsString::from);
    let Ok(Request::Top(config)) = parse(words, || (settings, Vec::new())) else {
        panic!("it is an agent");
    };
    let Mode::Record(record) = config.mode else {
        panic!("it records");
    };
    let cohort = record.ring.and_then(|ring| ring.cohort);
    let cohort = cohort.expect("the configuration asks for it");
    assert_eq!((cohort.rate_hz, cohort.cohort.share), (49, 0.5));
}
