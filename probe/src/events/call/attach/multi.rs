//! One link for several breakpoints of a file.
//!
//! The kernel runs the program without a perf event in between. Linux has such links since 6.6, but
//! one that was restricted to a process counted the hits of its first thread only, and later missed
//! those of some children. Since 6.12 they are correct (commits 46ba0e49b642 and 900f362e2062).

use super::{BorrowedFd, Link, ProbedInstruction, Scope, When, each_process};
use crate::bpf_call::{UPROBE_MULTI, descriptor};
use std::ffi::CStr;
use std::io;
use std::os::fd::AsRawFd as _;

/// As in uapi/linux/bpf.h.
const LINK_CREATE: u32 = 28;
const RETURNS: u32 = 1;

/// `union bpf_attr` of this command.
#[repr(C)]
#[derive(Default)]
struct LinkCreate {
    program: u32,
    target: u32,
    attach_type: u32,
    flags: u32,
    path: u64,
    offsets: u64,
    semaphores: u64,
    cookies: u64,
    count: u32,
    multi_flags: u32,
    pid: u32,
    unused: u32,
}

/// Runs `program` at each hit of the places.
pub fn attach(
    program: BorrowedFd<'_>,
    when: When,
    path: &CStr,
    places: &[ProbedInstruction],
    scope: &Scope,
    links: &mut Vec<Link>,
) -> io::Result<()> {
    let words = |word: fn(&ProbedInstruction) -> u64| places.iter().map(word).collect::<Vec<u64>>();
    let offsets = words(|place| place.offset);
    let cookies = words(|place| place.cookie.0);
    // 0 stands for no semaphore, as no counter is at the beginning of a file.
    let semaphores = words(|place| place.semaphore.unwrap_or(0));
    let has_semaphores = semaphores.iter().any(|place| *place != 0);
    let attach = |process: Option<u32>| {
        let mut request = LinkCreate {
            program: program.as_raw_fd() as u32,
            attach_type: UPROBE_MULTI,
            path: path.as_ptr() as u64,
            offsets: offsets.as_ptr() as u64,
            semaphores: if has_semaphores {
                semaphores.as_ptr() as u64
            } else {
                0
            },
            cookies: cookies.as_ptr() as u64,
            count: places.len() as u32,
            multi_flags: match when {
                When::Returned => RETURNS,
                When::Begins | When::AtReturn => 0,
            },
            pid: process.unwrap_or(0),
            ..LinkCreate::default()
        };
        // SAFETY: the arm of that command; the path and the lists live until the call is over.
        let link = unsafe { descriptor(LINK_CREATE, &mut request) }?;
        Ok(Link::Multi { _link: link })
    };
    each_process(scope, attach, links)
}
