//! A *trend* has one block per second. All rows share one scale, so that equally high blocks mean
//! equally many samples.

const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Returns a block for each second. `max` is the largest number of any row, so that rows can be
/// compared. A second without samples is blank.
pub fn blocks(seconds: &[u64], max: u64) -> String {
    seconds.iter().map(|count| block(*count, max)).collect()
}

fn block(count: u64, max: u64) -> char {
    if count == 0 {
        return ' ';
    }
    let last = BLOCKS.len() as u64 - 1;
    // In 128 bits, because a second of many waits has many nanoseconds.
    let step = u128::from(count) * u128::from(last) / u128::from(max.max(1));
    BLOCKS[step.min(last.into()) as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_scale() {
        assert_eq!(blocks(&[0, 1, 50, 100], 100), " ▁▄█");
        assert_eq!(blocks(&[3, 9], 0), "██");
    }
}
