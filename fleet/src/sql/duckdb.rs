use super::{Dialect, TABLES};

/// The dialect of DuckDB.
pub struct DuckDb;

impl Dialect for DuckDb {
    fn text(&self, text: &str) -> String {
        format!("'{}'", text.replace('\'', "''"))
    }

    fn first(&self) -> &'static str {
        "frames[1]"
    }

    fn last(&self) -> &'static str {
        "frames[-1]"
    }

    fn each(&self) -> &'static str {
        "unnest(frames)"
    }

    fn write(&self, rows: &str, _table: &str, place: &str) -> String {
        let place = self.text(place);
        format!("COPY (\n{rows}\n) TO {place} (FORMAT parquet, COMPRESSION zstd)")
    }

    fn tables(&self, dir: &str) -> String {
        let table = |(name, files): (&str, &str)| {
            let place = self.text(&format!("{dir}/{files}"));
            format!("CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet({place});\n")
        };
        TABLES.map(table).concat()
    }
}
