//! `open pyroscope+https://…` and `open parquet+DIR`: what proftop-fleet is to fetch. It reads the
//! address itself; here it is only recognized.

use super::super::FleetAddress;
use super::super::args::Open;
use crate::failure::Failure;

/// How addresses begin. A file of such a name is opened as `./NAME`.
const BEGINNINGS: [&str; 3] = ["pyroscope+https://", "pyroscope+http://", "parquet+"];

/// Whether any argument of `open` is an address that proftop-fleet understands.
pub fn is_named(words: &Open) -> bool {
    let mut files = words.files.iter();
    files.any(|file| {
        let bytes = file.as_os_str().as_encoded_bytes();
        BEGINNINGS
            .iter()
            .any(|beginning| bytes.starts_with(beginning.as_bytes()))
    })
}

/// Returns the only address, and the options for proftop-fleet.
pub fn address(words: &Open) -> Result<FleetAddress, Failure> {
    let [file] = &words.files[..] else {
        return Err(Failure::usage(
            "open shows one address of proftop-fleet, and nothing beside it",
        ));
    };
    let address = file.to_str().ok_or_else(|| {
        let shown = symbolize::sanitize(file.as_os_str().as_encoded_bytes());
        Failure::usage(format!("{shown} is no address: it is not UTF-8"))
    })?;
    Ok(FleetAddress {
        address: address.into(),
        options: words.options.clone(),
    })
}
