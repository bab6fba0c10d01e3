use super::Dialect;

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

    fn write(&self, rows: &str, table: &str, _place: &str) -> String {
        format!("INSERT INTO {table}\n{rows}")
    }

    fn tables(&self, _dir: &str) -> String {
        String::new()
    }
}
