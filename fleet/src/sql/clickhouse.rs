use super::{Dialect, TABLES};

/// The dialect of ClickHouse.
pub struct ClickHouse;

impl Dialect for ClickHouse {
    fn text(&self, text: &str) -> String {
        format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
    }

    fn first(&self) -> &'static str {
        "frames[1]"
    }

    fn last(&self) -> &'static str {
        "frames[-1]"
    }

    fn each(&self) -> &'static str {
        "arrayJoin(frames)"
    }

    // Old servers know no other name.
    fn any(&self) -> &'static str {
        "any"
    }

    fn write(&self, rows: &str, table: &str, _place: &str) -> String {
        format!("INSERT INTO {table}\n{rows}")
    }

    fn tables(&self, dir: &str) -> String {
        let table = |(name, files): (&str, &str)| {
            let place = self.text(&format!("{dir}/{files}"));
            let files = if dir.starts_with("s3://") {
                format!("s3({place}, 'Parquet')")
            } else {
                format!("file({place}, 'Parquet')")
            };
            format!("CREATE OR REPLACE VIEW {name} AS SELECT * FROM {files};\n")
        };
        TABLES.map(table).concat()
    }
}
