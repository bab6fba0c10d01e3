//! Numbers of the fields of each message, as in `profile.proto`. Each module stands for one
//! message; fields that are neither written nor read have no constant.

pub(super) mod profile {
    pub(crate) const SAMPLE_TYPE: u64 = 1;
    pub(crate) const SAMPLE: u64 = 2;
    pub(crate) const MAPPING: u64 = 3;
    pub(crate) const LOCATION: u64 = 4;
    pub(crate) const FUNCTION: u64 = 5;
    pub(crate) const STRING: u64 = 6;
    pub(crate) const TIME_NS: u64 = 9;
    pub(crate) const DURATION_NS: u64 = 10;
    pub(crate) const PERIOD_TYPE: u64 = 11;
    pub(crate) const PERIOD: u64 = 12;
    pub(crate) const COMMENT: u64 = 13;
    pub(crate) const DEFAULT_TYPE: u64 = 14;
}

pub(super) mod value_type {
    pub(crate) const NAME: u64 = 1;
    pub(crate) const UNIT: u64 = 2;
}

pub(super) mod sample {
    pub(crate) const LOCATION: u64 = 1;
    pub(crate) const VALUE: u64 = 2;
    pub(crate) const LABEL: u64 = 3;
}

pub(super) mod label {
    pub(crate) const KEY: u64 = 1;
    pub(crate) const TEXT: u64 = 2;
    pub(crate) const NUMBER: u64 = 3;
    pub(crate) const UNIT: u64 = 4;
}

pub(super) mod mapping {
    pub(crate) const ID: u64 = 1;
    pub(crate) const START: u64 = 2;
    pub(crate) const LIMIT: u64 = 3;
    pub(crate) const OFFSET: u64 = 4;
    pub(crate) const FILE: u64 = 5;
    pub(crate) const BUILD_ID: u64 = 6;
    pub(crate) const HAS_FUNCTIONS: u64 = 7;
    pub(crate) const HAS_FILES: u64 = 8;
    pub(crate) const HAS_LINES: u64 = 9;
    pub(crate) const HAS_INLINED: u64 = 10;
}

pub(super) mod location {
    pub(crate) const ID: u64 = 1;
    pub(crate) const MAPPING: u64 = 2;
    pub(crate) const ADDRESS: u64 = 3;
    pub(crate) const LINE: u64 = 4;
}

pub(super) mod line {
    pub(crate) const FUNCTION: u64 = 1;
    pub(crate) const LINE: u64 = 2;
}

pub(super) mod function {
    pub(crate) const ID: u64 = 1;
    pub(crate) const NAME: u64 = 2;
    pub(crate) const SYSTEM_NAME: u64 = 3;
    pub(crate) const FILE: u64 = 4;
}
