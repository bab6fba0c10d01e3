//! Helpers of the tests of all crates, so that none of them passes silently without testing,
//! depends on how busy the machine is, or leaves something behind. Used only as a dev-dependency.
//!
//! - [`skip`]: reports that a test lacks what it needs, visibly even if the test passes
//! - [`run_tool`], [`compile`]: run programs of the machine, which may be missing
//! - [`copy_program`]: makes a copy that can be run at once
//! - [`assert_all_listed`]: checks that no file of tests is forgotten if one program has several
//! - [`become_other_user`]: makes a process one of a user other than root
//! - [`cases`]: the number of random inputs for a property
//! - [`Random`]: numbers that look random and are the same in every run
//! - [`Scratch`]: a directory that is removed with everything in it
//! - [`pythons`]: the interpreters of Python on this machine
//! - [`wait_until`], [`wait_for`]: wait for a condition instead of a fixed time
//! - [`Process`]: a child process that ends with the test
//! - [`work_while_killed`]: kills processes while they work

mod cases;
mod killing;
mod listed;
mod other_user;
mod process;
mod pythons;
mod random;
mod scratch;
mod skip;
mod tools;
mod wait;

pub use cases::cases;
pub use killing::{WhileKilled, work_while_killed};
pub use listed::assert_all_listed;
pub use other_user::{OTHER_USER, become_other_user};
pub use process::{Process, behind_others};
pub use pythons::{NO_PYTHON, pythons};
pub use random::Random;
pub use scratch::Scratch;
pub use skip::{is_root_or_skip, skip};
pub use tools::{compile, copy_program, run_tool};
pub use wait::{DEADLINE, wait_for, wait_until};
