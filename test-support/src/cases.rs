//! How many random inputs a property is tried with.

/// Returns how many inputs to try: `usual`, or what `PROPTEST_CASES` says. The inputs of a run
/// are the same each time (`PROPTEST_RNG_SEED` in `.cargo/config.toml`), so that more of them
/// are worth their time only to whoever changes what is tested.
pub fn cases(usual: u32) -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(usual)
}
