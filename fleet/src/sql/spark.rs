use super::{Dialect, TABLES};

/// The dialect of Spark, 3.4 and newer.
pub struct Spark;

impl Dialect for Spark {
    fn text(&self, text: &str) -> String {
        format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
    }

    fn first(&self) -> &'static str {
        "get(frames, 0)"
    }

    fn last(&self) -> &'static str {
        "get(frames, size(frames) - 1)"
    }

    fn each(&self) -> &'static str {
        "explode(frames)"
    }

    fn write(&self, rows: &str, _table: &str, place: &str) -> String {
        let place = self.text(place);
        format!(
            "INSERT OVERWRITE DIRECTORY {place} USING parquet OPTIONS (compression 'zstd')\n{rows}"
        )
    }

    fn tables(&self, dir: &str) -> String {
        let table = |(name, _): (&str, &str)| {
            let place = self.text(&format!("{dir}/{name}"));
            format!(
                "CREATE OR REPLACE TEMPORARY VIEW {name} USING parquet OPTIONS (path {place});\n"
            )
        };
        TABLES.map(table).concat()
    }
}
