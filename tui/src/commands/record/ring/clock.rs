//! Detects that the clock of the machine was set. Samples have a clock that cannot be set, so they
//! are neither lost nor repeated. Only times of day change, even those of earlier samples.

/// Detects each time that the clock was set.
#[derive(Debug, Default)]
pub struct Clock {
    /// The time of day at which the clock of samples was 0, in ms since 1970.
    epoch_ms: Option<i64>,
}

impl Clock {
    /// Compares the present epoch with the last one. Returns a sentence if the clock was set.
    pub fn look(&mut self, epoch_ms: i64) -> Option<String> {
        let before_ms = self.epoch_ms.replace(epoch_ms)?;
        let seconds = before_ms.abs_diff(epoch_ms).div_ceil(1000);
        let how = match epoch_ms.cmp(&before_ms) {
            std::cmp::Ordering::Equal => return None,
            std::cmp::Ordering::Greater => "forward",
            std::cmp::Ordering::Less => "back",
        };
        Some(format!(
            "the clock of this machine was set {how} by {seconds}s: times of day are by the new one"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_told_once() {
        let mut clock = Clock::default();
        let told = [5_000, 5_000, 3_605_000, 3_605_000, 5_000].map(|epoch_ms| clock.look(epoch_ms));
        let step = |how: &str| {
            Some(format!(
                "the clock of this machine was set {how} by 3600s: times of day are by the new one"
            ))
        };
        assert_eq!(told, [None, None, step("forward"), None, step("back")]);
    }
}
