use super::*;
use crate::window::{Frame, Function, Host, Kind, Service, Stack, ids};
use arrow::array::AsArray as _;
use arrow::datatypes::{Int64Type, UInt64Type};
use std::fs::{self, File};

/// A window with a stack of one frame for each address.
fn window(number: u64, addresses: &[u64], name: Option<&str>) -> Window {
    let function = |name: &str| Function {
        name: name.into(),
        file: "".into(),
        line: 0,
    };
    let frame = |address: &u64| {
        let mut frame = Frame {
            id: 0,
            kind: Kind::Native,
            module: "nginx".into(),
            path: "".into(),
            build_id: [7; 20].into(),
            address: *address,
            functions: name.map(function).into_iter().collect(),
        };
        frame.id = ids::frame(&frame);
        frame
    };
    let frames: Vec<Frame> = addresses.iter().map(frame).collect();
    let stack = |(at, frame): (usize, &Frame)| Stack {
        id: ids::stack([frame.id].into_iter()),
        frames: vec![at as u32],
    };
    Window {
        number,
        host: Host {
            name: "db-01".into(),
            ..Host::default()
        },
        event: "cpu".into(),
        stacks: frames.iter().enumerate().map(stack).collect(),
        services: vec![Service {
            name: "nginx".into(),
            version: String::new(),
            container: String::new(),
            samples: (0..addresses.len() as u32).map(|it| (it, 1)).collect(),
        }],
        frames,
        ..Window::default()
    }
}

/// A folder, and what its files have.
struct Written {
    folder: tempfile::TempDir,
    known: Known,
}

impl Written {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            known: Known::default(),
        }
    }

    fn path(&self, date: &str, table: &str, name: &str) -> PathBuf {
        let to = &Target::Folder(self.folder.path().into());
        let hour = 14;
        let place = TableFile {
            to,
            date,
            hour,
            name,
        };
        self.folder.path().join(place.path(table))
    }

    fn write(&mut self, date: &str, name: &str, window: Window) -> Result<u64, Unwritten> {
        let place = TableFile {
            to: &Target::Folder(self.folder.path().into()),
            date,
            hour: 14,
            name,
        };
        write(&place, &[window], &Labels::default(), 0, &mut self.known)
    }

    /// How many rows of frames and of stacks a file has; 0 if there is none.
    fn rows(&self, date: &str, name: &str) -> [i64; 2] {
        ["frames", "stacks"].map(|table| {
            let Ok(file) = File::open(self.path(date, table, name)) else {
                return 0;
            };
            let read = ::parquet::file::metadata::ParquetMetaDataReader::new();
            let metadata = read.parse_and_finish(&file).unwrap();
            metadata.file_metadata().num_rows()
        })
    }
}

#[test]
fn a_day_has_each_stack_and_each_frame_once() {
    let (day, next) = ("2026-11-21", "2026-11-22");
    let mut written = Written::new();
    written.write(day, "1", window(1, &[1, 2], None)).unwrap();
    assert_eq!(written.rows(day, "1"), [2, 2]);
    written.write(day, "2", window(2, &[2, 3], None)).unwrap();
    assert_eq!(written.rows(day, "2"), [1, 1]);
    // With a name, both places are one frame.
    written
        .write(day, "3", window(3, &[2, 3], Some("main")))
        .unwrap();
    assert_eq!(written.rows(day, "3"), [1, 1]);
    written.write(day, "4", window(4, &[2, 3], None)).unwrap();
    assert_eq!(written.rows(day, "4"), [0, 0]);
    assert!(written.path(day, "samples", "4").exists());
    // Another day has its own files, as each is removed when its time has come.
    written.write(next, "5", window(5, &[2], None)).unwrap();
    assert_eq!(written.rows(next, "5"), [1, 1]);
}

#[test]
fn what_was_not_written_or_is_gone_is_written_once_more() {
    let day = "2026-11-21";
    let mut written = Written::new();
    written.write(day, "1", window(1, &[1, 2], None)).unwrap();
    // A folder is in the place of the samples, so that stacks are written and samples are not.
    let samples = written.path(day, "samples", "2");
    fs::create_dir(&samples).unwrap();
    assert!(written.write(day, "2", window(2, &[2, 3], None)).is_err());
    fs::remove_dir(&samples).unwrap();
    written.write(day, "2", window(2, &[2, 3], None)).unwrap();
    assert_eq!(written.rows(day, "2"), [2, 2]);
    fs::remove_file(written.path(day, "stacks", "2")).unwrap();
    written.write(day, "3", window(3, &[3], None)).unwrap();
    assert_eq!(written.rows(day, "3"), [1, 1]);
}

#[test]
fn rows_are_sorted_whatever_their_containers_and_clocks() {
    let windows = [1, 2].map(|number| {
        let mut window = window(number, &[3, 1, 2], None);
        // The clock was set back between them.
        window.begin_ms = (3 - number as i64) * 60_000;
        let first = window.services[0].clone();
        for (name, version, container) in [
            ("nginx", "", "b"),
            ("nginx", "1", "c"),
            ("nginx", "", "a"),
            ("app", "2", ""),
        ] {
            window.services.push(Service {
                name: name.into(),
                version: version.into(),
                container: container.into(),
                ..first.clone()
            });
        }
        window
    });
    let batch = tables::samples(&windows, &Labels::default()).unwrap();
    assert_eq!(batch.num_rows(), 2 * 5 * 3);
    let column = |name: &str| batch.column_by_name(name).unwrap();
    let [service, version] = ["service", "version"].map(|it| column(it).as_string::<i32>());
    let stack = column("stack_id").as_primitive::<UInt64Type>();
    let begin = column("begin_ms").as_primitive::<Int64Type>();
    let key = |row| {
        let texts = [service, version].map(|it| it.value(row));
        (texts, stack.value(row), begin.value(row))
    };
    assert!((0..batch.num_rows()).map(key).is_sorted());
}
