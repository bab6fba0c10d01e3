//! Counts the calls of twenty of its functions, and how many of them a panic left: generics,
//! methods of traits, closures that are passed as arguments, recursion, and threads.
//! Prints `NAME TAB CALLS TAB LEFT` of each, and a checksum of its work.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static CALLS: [AtomicU64; 20] = [const { AtomicU64::new(0) }; 20];
static LEFT: [AtomicU64; 20] = [const { AtomicU64::new(0) }; 20];

const NAMES: [&str; 20] = [
    "plain", "recursive", "panics", "in_threads", "takes_closure", "first_of_slice", "text_length",
    "parse_number", "optional", "boxed", "matches", "long_loop", "float_sum", "sorts", "maps",
    "Square as twenty::Shape>::area", "Circle as twenty::Shape>::area", "Meter::read", "Meter::add",
    "Meter::reset",
];

fn called(number: usize) {
    CALLS[number].fetch_add(1, Relaxed);
}

#[inline(never)]
fn plain(n: u64) -> u64 {
    called(0);
    black_box(n).wrapping_mul(3)
}

#[inline(never)]
fn recursive(n: u64) -> u64 {
    called(1);
    if n == 0 { 1 } else { recursive(n - 1) + black_box(n) }
}

#[inline(never)]
fn panics(n: u64) -> u64 {
    called(2);
    if n % 5 == 0 {
        LEFT[2].fetch_add(1, Relaxed);
        panic!("as it has to");
    }
    n
}

#[inline(never)]
fn in_threads(n: u64) -> u64 {
    called(3);
    black_box(n) ^ 1
}

#[inline(never)]
fn takes_closure(f: &dyn Fn(u64) -> u64) -> u64 {
    called(4);
    f(7) + f(8)
}

#[inline(never)]
fn first_of_slice(numbers: &[u64]) -> u64 {
    called(5);
    numbers.first().copied().unwrap_or(9)
}

#[inline(never)]
fn text_length(text: &str) -> u64 {
    called(6);
    text.chars().count() as u64
}

#[inline(never)]
fn parse_number(text: &str) -> Result<u64, std::num::ParseIntError> {
    called(7);
    text.parse()
}

#[inline(never)]
fn optional(n: Option<u64>) -> Option<u64> {
    called(8);
    n.map(|n| n + 2)
}

#[inline(never)]
fn boxed(n: u64) -> Box<u64> {
    called(9);
    Box::new(n + 1)
}

#[inline(never)]
fn matches(n: u64) -> &'static str {
    called(10);
    match n % 7 {
        0 => "nothing",
        1 => "one",
        2 | 3 => "some",
        4 => "more",
        _ => "many",
    }
}

#[inline(never)]
fn long_loop(n: u64) -> u64 {
    called(11);
    (0..n * 10).fold(1, |all: u64, i| all.wrapping_mul(31).wrapping_add(black_box(i)))
}

#[inline(never)]
fn float_sum(a: f64, b: f64) -> f64 {
    called(12);
    a + b * 0.5
}

#[inline(never)]
fn sorts(numbers: &mut Vec<u64>) {
    called(13);
    numbers.sort_unstable_by_key(|n| n.wrapping_mul(7919) % 101);
}

#[inline(never)]
fn maps(n: u64) -> u64 {
    called(14);
    let map: BTreeMap<u64, u64> = (0..n % 9).map(|i| (i, i * i)).collect();
    map.values().sum()
}

trait Shape {
    fn area(&self) -> u64;
}
struct Square(u64);
struct Circle(u64);
impl Shape for Square {
    #[inline(never)]
    fn area(&self) -> u64 {
        called(15);
        self.0 * self.0
    }
}
impl Shape for Circle {
    #[inline(never)]
    fn area(&self) -> u64 {
        called(16);
        self.0 * self.0 * 3
    }
}

struct Meter {
    level: u64,
}
impl Meter {
    #[inline(never)]
    fn read(&self) -> u64 {
        called(17);
        self.level
    }
    #[inline(never)]
    fn add(&mut self, n: u64) {
        called(18);
        self.level += n;
    }
    #[inline(never)]
    fn reset(&mut self) -> u64 {
        called(19);
        std::mem::take(&mut self.level)
    }
}

fn main() {
    panic::set_hook(Box::new(|_| {}));
    let shapes: [Box<dyn Shape>; 2] = [Box::new(Square(3)), Box::new(Circle(2))];
    let mut meter = Meter { level: 0 };
    let mut sum = 0u64;
    for i in 0..200u64 {
        let text = i.to_string();
        sum += plain(i) + recursive(i % 20) + first_of_slice(&[i, 2][..(i % 3) as usize]);
        sum += panic::catch_unwind(AssertUnwindSafe(|| panics(i))).unwrap_or(11);
        sum += takes_closure(&|n| n * i) + text_length(&text) + parse_number(&text).unwrap_or(0);
        sum += u64::from(parse_number("none").is_err()) + optional(Some(i)).unwrap_or(0);
        sum += *boxed(i) + matches(i).len() as u64;
        sum = sum.wrapping_add(long_loop(i));
        sum = sum.wrapping_add(float_sum(i as f64, 2.0) as u64 + maps(i));
        let mut numbers = vec![3, i, 1, 44, 5];
        sorts(&mut numbers);
        sum = sum.wrapping_add(numbers[2] + shapes[i as usize % 2].area());
        meter.add(i);
        sum = sum.wrapping_add(meter.read() + if i % 10 == 9 { meter.reset() } else { 0 });
    }
    let threads: Vec<_> = (0..16)
        .map(|_| std::thread::spawn(|| (0..50).map(in_threads).sum::<u64>()))
        .collect();
    for thread in threads {
        sum = sum.wrapping_add(thread.join().unwrap());
    }
    for (number, name) in NAMES.iter().enumerate() {
        let (calls, left) = (CALLS[number].load(Relaxed), LEFT[number].load(Relaxed));
        eprintln!("{name}\t{calls}\t{left}");
    }
    eprintln!("checksum\t{sum}\t0");
}
