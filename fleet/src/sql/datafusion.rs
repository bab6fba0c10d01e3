use super::{Dialect, TABLES};

/// The dialect of DataFusion, and so of Ballista.
pub struct DataFusion;

impl Dialect for DataFusion {
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

    // It compares lists so slowly that the functions of a stack are found in the same time.
    fn lists(&self) -> &'static str {
        "SELECT stack_id, frames FROM stacks"
    }

    fn write(&self, rows: &str, _table: &str, place: &str) -> String {
        let place = self.text(place);
        format!(
            "COPY (\n{rows}\n) TO {place} STORED AS PARQUET OPTIONS ('format.compression' 'zstd(3)')"
        )
    }

    fn tables(&self, dir: &str) -> String {
        let table = |(name, _): (&str, &str)| {
            let place = self.text(&format!("{dir}/{name}/"));
            format!("CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION {place};\n")
        };
        TABLES.map(table).concat()
    }
}
