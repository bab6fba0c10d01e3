//! A histogram of times, in *buckets*: four for each power of two of nanoseconds.

/// Number of buckets.
pub const BUCKETS: usize = 256;

/// Returns the bucket of a time.
#[inline(always)]
pub const fn bucket(ns: u64) -> u32 {
    if ns < 4 {
        return ns as u32;
    }
    let power = log2(ns);
    power * 4 + ((ns >> (power - 2)) & 3) as u32
}

/// Returns the first time in a bucket, and the first behind it. Buckets 4 to 7 are empty: each
/// time below 4 ns has a bucket of its own.
pub const fn bounds(bucket: u32) -> (u64, u64) {
    (low(bucket), low(bucket + 1))
}

const fn low(bucket: u32) -> u64 {
    if bucket < 8 {
        return if bucket < 4 { bucket as u64 } else { 4 };
    }
    let (power, part) = (bucket / 4, (bucket % 4) as u64);
    if power > 63 {
        return u64::MAX;
    }
    (1 << power) + (part << (power - 2))
}

/// Returns the logarithm to base 2, rounded down. BPF has no instruction for it.
#[inline(always)]
const fn log2(mut number: u64) -> u32 {
    let mut power = 0;
    if number >> 32 != 0 {
        number >>= 32;
        power += 32;
    }
    if number >> 16 != 0 {
        number >>= 16;
        power += 16;
    }
    if number >> 8 != 0 {
        number >>= 8;
        power += 8;
    }
    if number >> 4 != 0 {
        number >>= 4;
        power += 4;
    }
    if number >> 2 != 0 {
        number >>= 2;
        power += 2;
    }
    power + (number >> 1 != 0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_in_its_bucket() {
        let mut ns = 0u64;
        while ns < 1 << 62 {
            for ns in [ns.saturating_sub(1), ns, ns + 1] {
                let bucket = bucket(ns);
                let (low, high) = bounds(bucket);
                assert!(low <= ns && ns < high, "{ns}: {bucket}, {low} to {high}");
                assert!((bucket as usize) < BUCKETS);
                // A bucket is at most a quarter of its times wide, but for the shortest times.
                assert!(ns < 8 || (high - low) * 4 <= low, "{low} to {high}");
            }
            ns += ns / 8 + 1;
        }
        assert!((bucket(u64::MAX) as usize) < BUCKETS);
    }
}
