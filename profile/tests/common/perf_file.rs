//! Builds perf.data files by hand.

const IP_TID_TIME_CHAIN_PERIOD: u64 = 1 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << 8;
const IDENTIFIER: u64 = 1 << 16;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const FREQUENCY: u64 = 1 << 10;

pub const KERNEL_MARK: u64 = -128i64 as u64;
pub const USER_MARK: u64 = -512i64 as u64;
pub const TEXT: u64 = 0xffff_ffff_8100_0000;

/// A perf.data file under construction.
pub struct File {
    /// Type and config of each event; their ids are 1, 2 and so on.
    pub events: Vec<(u32, u64)>,
    pub records: Vec<u8>,
    pub build_ids: Vec<u8>,
}

impl File {
    pub fn new(events: &[(u32, u64)]) -> Self {
        Self {
            events: events.to_vec(),
            records: Vec::new(),
            build_ids: Vec::new(),
        }
    }

    fn sample_type(&self) -> u64 {
        match self.events.len() {
            1 => IP_TID_TIME_CHAIN_PERIOD,
            _ => IP_TID_TIME_CHAIN_PERIOD | IDENTIFIER,
        }
    }

    pub fn record(out: &mut Vec<u8>, kind: u32, misc: u16, body: &[u8]) {
        out.extend(kind.to_le_bytes());
        out.extend(misc.to_le_bytes());
        out.extend((8 + body.len() as u16).to_le_bytes());
        out.extend(body);
    }

    /// Adds a record with the trailer that names its process (7) and its time.
    pub fn told(&mut self, kind: u32, misc: u16, time: u64, body: &[u8]) {
        let mut body = body.to_vec();
        body.resize(body.len().next_multiple_of(8), 0);
        body.extend(words(&[7 << 32 | 7, time]));
        if self.events.len() > 1 {
            body.extend(words(&[1]));
        }
        Self::record(&mut self.records, kind, misc, &body);
    }

    pub fn comm(&mut self, pid: u32, tid: u32, time: u64, is_exec: bool, name: &str) {
        let mut body = pairs(&[(pid, tid)]);
        body.extend(name.as_bytes());
        body.push(0);
        self.told(3, u16::from(is_exec) << 13, time, &body);
    }

    pub fn mmap2(
        &mut self,
        pid: u32,
        time: u64,
        [start, len, offset]: [u64; 3],
        file: &[u8; 24],
        path: &str,
    ) {
        let mut body = pairs(&[(pid, pid)]);
        body.extend(words(&[start, len, offset]));
        body.extend(file);
        body.extend(pairs(&[(5, 2)]));
        body.extend(path.as_bytes());
        body.push(0);
        let misc = 2 | u16::from(file[0] > 0) << 14;
        self.told(10, misc, time, &body);
    }

    pub fn kernel_map(&mut self, [start, len, offset]: [u64; 3], path: &str) {
        let mut body = pairs(&[(u32::MAX, 0)]);
        body.extend(words(&[start, len, offset]));
        body.extend(path.as_bytes());
        body.push(0);
        self.told(1, 1, 0, &body);
    }

    pub fn sample(&mut self, id: u64, pid: u32, tid: u32, time: u64, period: u64, chain: &[u64]) {
        let mut body = Vec::new();
        if self.events.len() > 1 {
            body.extend(words(&[id]));
        }
        let ip = chain.iter().find(|at| **at < -4095i64 as u64);
        body.extend(words(&[ip.copied().unwrap_or(0)]));
        body.extend(pairs(&[(pid, tid)]));
        body.extend(words(&[time, period, chain.len() as u64]));
        body.extend(words(chain));
        Self::record(&mut self.records, 9, 2, &body);
    }

    pub fn round(&mut self) {
        Self::record(&mut self.records, 68, 0, &[]);
    }

    pub fn build_id(&mut self, misc: u16, id: &[u8], path: &str) {
        let mut body = pairs(&[(u32::MAX, 0)]);
        body.truncate(4);
        let mut padded = id.to_vec();
        padded.resize(24, 0);
        body.extend(padded);
        body.extend(path.as_bytes());
        body.resize(body.len() + 8 - body.len() % 8, 0);
        Self::record(&mut self.build_ids, 67, misc, &body);
    }

    pub fn bytes(&self) -> Vec<u8> {
        let ids_at = 104;
        let attributes_at = ids_at + 8 * self.events.len() as u64;
        let attribute = 128 + 16u64;
        let data_at = attributes_at + attribute * self.events.len() as u64;
        let mut out = b"PERFILE2".to_vec();
        out.extend(words(&[
            104,
            attribute,
            attributes_at,
            attribute * self.events.len() as u64,
        ]));
        out.extend(words(&[
            data_at,
            self.records.len() as u64,
            0,
            0,
            1 << 2 | 1 << 3,
            0,
            0,
            0,
        ]));
        (1..=self.events.len() as u64).for_each(|id| out.extend(words(&[id])));
        for (number, (kind, config)) in (0..).zip(&self.events) {
            let mut event = pairs(&[(*kind, 128)]);
            event.extend(words(&[
                *config,
                997,
                self.sample_type(),
                0,
                SAMPLE_ID_ALL | FREQUENCY,
            ]));
            event.resize(128, 0);
            event.extend(words(&[ids_at + 8 * number, 8]));
            out.extend(event);
        }
        out.extend(&self.records);
        let features_at = out.len() as u64 + 32;
        let host = [&8u32.to_le_bytes()[..], b"db-01\0\0\0"].concat();
        out.extend(words(&[features_at, self.build_ids.len() as u64]));
        out.extend(words(&[
            features_at + self.build_ids.len() as u64,
            host.len() as u64,
        ]));
        out.extend(&self.build_ids);
        out.extend(host);
        out
    }
}

pub fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

pub fn pairs(pairs: &[(u32, u32)]) -> Vec<u8> {
    let halves = pairs.iter().flat_map(|(a, b)| [*a, *b]);
    halves.flat_map(|half| half.to_le_bytes()).collect()
}

pub fn with_id(id: &[u8]) -> [u8; 24] {
    let mut file = [0; 24];
    file[0] = id.len() as u8;
    file[4..][..id.len()].copy_from_slice(id);
    file
}

/// A file of two processes, one of which executes another program. Records of one CPU come after
/// newer ones of the other.
pub fn two_processes() -> File {
    let mut file = File::new(&[(1, 0)]);
    file.kernel_map([TEXT, 0x100_0000, TEXT], "[kernel.kallsyms]_text");
    file.kernel_map([0xffff_ffff_c000_0000, 0x1000, 0], "[xfs]");
    file.comm(7, 7, 1, false, "sh (old)");
    file.mmap2(7, 2, [0x40_0000, 0x10000, 0x1000], &[0; 24], "/bin/sh");
    // Newer than the records after it.
    file.sample(1, 8, 8, 50_000_000, 1, &[USER_MARK, 0x50_0010]);
    let fork = [pairs(&[(8, 7), (8, 7)]), words(&[10])].concat();
    file.told(7, 0, 10, &fork);
    file.sample(1, 8, 8, 11, 1, &[USER_MARK, 0x40_0010, 0x40_0021]);
    file.round();
    file.comm(8, 8, 20, true, "tool");
    file.mmap2(
        8,
        21,
        [0x50_0000, 0x1000, 0],
        &with_id(&[0xcd; 20]),
        "/usr/bin/tool",
    );
    file.sample(
        1,
        7,
        7,
        30,
        1,
        &[
            KERNEL_MARK,
            TEXT + 0x100,
            TEXT + 0x201,
            USER_MARK,
            0x40_0010,
        ],
    );
    file.sample(1, 7, 9, 31, 1, &[KERNEL_MARK, 0xffff_ffff_c000_0010]);
    file.sample(1, 0, 0, 32, 1, &[KERNEL_MARK, TEXT + 0x100]);
    file.round();
    file.build_id(1, &[0xab; 20], "[kernel.kallsyms]");
    file.build_id(2, &[0xef; 16], "/bin/sh");
    file
}
