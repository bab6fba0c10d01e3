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

    // With `IN`, DataFusion keeps all stacks with their frames in memory; with this join only the
    // numbers of those that are wanted.
    fn stacks_of(&self, wanted: &str) -> String {
        format!(
            "(SELECT stack_id FROM samples WHERE {wanted} GROUP BY stack_id) w\n    \
             JOIN stacks USING (stack_id)"
        )
    }

    // Sorted numbers of stacks are smaller as differences than in a dictionary, and read faster.
    fn write(&self, rows: &str, table: &str, place: &str) -> String {
        let place = self.text(place);
        let of_stacks = match table {
            "samples" | "stacks" | "rollup_h" => {
                ", 'format.encoding::stack_id' 'delta_binary_packed', \
                 'format.dictionary_enabled::stack_id' 'false'"
            }
            _ => "",
        };
        format!(
            "COPY (\n{rows}\n) TO {place} STORED AS PARQUET OPTIONS ('format.compression' 'zstd(3)'{of_stacks})"
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
