//! The number of random inputs for a property.

/// Returns the number of inputs to try: `usual`, or the value of `PROPTEST_CASES`. The inputs are
/// the same in each run (`PROPTEST_RNG_SEED` in `.cargo/config.toml`), so more of them are useful
/// only after a change of what is tested.
pub fn cases(usual: u32) -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(usual)
}
