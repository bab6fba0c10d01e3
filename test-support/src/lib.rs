//! What the tests of all crates share, so that none of them passes in silence, depends
//! on how busy the machine is, or leaves something behind. A dependency of tests only.
//!
//! - [`skip`]: says that a test cannot have what it needs, where nobody can swallow it
//! - [`run_tool`], [`compile`]: programs of the machine, which it may lack
//! - [`copy_program`]: a copy that can be run at once
//! - [`assert_all_listed`]: no file of tests is forgotten where one program has several
//! - [`cases`]: how many random inputs a property is tried with
//! - [`Random`]: numbers that look random and are the same in every run
//! - [`Scratch`]: a directory that is removed with all that is in it
//! - [`pythons`]: interpreters of Python that are here
//! - [`wait_until`], [`wait_for`]: wait for a condition instead of a while
//! - [`Process`]: a child that ends with the test

mod cases;
mod listed;
mod process;
mod pythons;
mod random;
mod scratch;
mod skip;
mod tools;
mod wait;

pub use cases::cases;
pub use listed::assert_all_listed;
pub use process::{Process, behind_others};
pub use pythons::{NO_PYTHON, pythons};
pub use random::Random;
pub use scratch::Scratch;
pub use skip::{is_root_or_skip, skip};
pub use tools::{compile, copy_program, run_tool};
pub use wait::{DEADLINE, wait_for, wait_until};
