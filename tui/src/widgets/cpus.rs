//! A strip that shows how busy each CPU is with the samples in scope; other work of the CPU is not
//! included. A full block is a CPU that had samples in scope during the whole window or, if the
//! number of samples for that is not known, the busiest CPU.

use crate::context::Context;
use crate::widgets::theme::Theme;
use crate::widgets::trend;
use crate::words::{text, units};
use profile::CpuRow;
use profile::Host;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;

const HEAD: &str = " cpu ";

/// Draws one line: a block for each CPU, followed by their sum and the meaning of a full block.
pub fn render(cx: &Context<'_>, theme: &Theme, frame: &mut Frame, line: Rect) {
    let buffer = frame.buffer_mut();
    let width = usize::from(line.width);
    // A waiting thread is not on any CPU.
    if cx.counts_time() {
        buffer.set_stringn(line.x, line.y, HEAD, width, Style::new());
        let x = line.x + HEAD.len() as u16;
        let room = width.saturating_sub(HEAD.len());
        buffer.set_stringn(x, line.y, "who waits is on none", room, theme.dim());
        return;
    }
    let busy = Busy::of(cx);
    let words = busy.words();
    let room = width.saturating_sub(HEAD.len() + text::width(&words) + 3);
    buffer.set_string(line.x, line.y, HEAD, Style::new());
    let x = line.x + HEAD.len() as u16;
    let cells = busy.cells(room);
    let (x, _) = buffer.set_stringn(x, line.y, cells, room, theme.trend());
    let left = usize::from(line.right() - x).saturating_sub(3);
    buffer.set_stringn(x + 3, line.y, words, left, Style::new());
}

/// The samples of each CPU, and how many of them make a full block.
struct Busy {
    /// Number and samples of each CPU, by number. It includes CPUs without samples, but not CPUs
    /// that are not sampled.
    samples: Vec<(u16, u32)>,
    full: Full,
}

/// The number of samples of a full block.
enum Full {
    /// The number of samples of a CPU that was busy all the time, and how many CPUs are sampled.
    Always(u32, u32),
    /// The number of samples of the busiest CPU, if the other number is not known.
    Busiest(u32),
}

impl Busy {
    fn of(cx: &Context<'_>) -> Self {
        let report = &cx.shown.report;
        let always = f64::from(report.rate_hz) * report.window.seconds();
        Self::new(&report.cpus, &cx.shown.source.host, always)
    }

    fn new(rows: &[CpuRow], host: &Host, always: f64) -> Self {
        // A recording may not say how many CPUs there are.
        let last = rows.last().map_or(0, |row| usize::from(row.cpu) + 1);
        let count = last.max(host.cpus.min(u32::from(u16::MAX)) as usize);
        let mut by_number = vec![0; count];
        for row in rows {
            by_number[usize::from(row.cpu)] = u32::try_from(row.samples).unwrap_or(u32::MAX);
        }
        let samples = (0..=u16::MAX).zip(by_number);
        let samples: Vec<(u16, u32)> = samples.filter(|(cpu, _)| host.is_sampled(*cpu)).collect();
        let full = match always as u32 {
            0 => Full::Busiest(samples.iter().map(|(_, n)| *n).max().unwrap_or(0)),
            always => Full::Always(always, host.cpus_sampled().max(1)),
        };
        Busy { samples, full }
    }

    /// Returns the text after the blocks: `3.31 of 16   █ always busy = 990 smp`.
    fn words(&self) -> String {
        let all: u64 = self.samples.iter().map(|(_, n)| u64::from(*n)).sum();
        match self.full {
            Full::Always(full, online) => format!(
                "{:.2} of {online}   █ always busy = {} smp",
                all as f64 / f64::from(full),
                units::count(full.into())
            ),
            Full::Busiest(most) => format!("█ the busiest = {} smp", units::count(most.into())),
        }
    }

    /// Returns the blocks, in the first of these forms that fits into `room` cells:
    /// 1. each CPU with its number: `0█ 1  2▄`,
    /// 2. the range of numbers, and a block for each CPU: `0-3 █ ▄ `,
    /// 3. the range, and a block for the busiest CPU of each group of neighbours.
    fn cells(&self, room: usize) -> String {
        let full = u64::from(match self.full {
            Full::Always(full, _) => full,
            Full::Busiest(most) => most,
        });
        let block = |samples: u32| trend::blocks(&[samples.into()], full);
        let numbered = self
            .samples
            .iter()
            .map(|(cpu, samples)| format!("{cpu}{}", block(*samples)))
            .collect::<Vec<_>>()
            .join(" ");
        let cpus = self.samples.iter().map(|(cpu, _)| u32::from(*cpu));
        let cpus = probe::cpus::list(cpus);
        if text::width(&numbered) <= room {
            return numbered;
        }
        let range = format!("{cpus} ");
        let left = room.saturating_sub(range.len()).max(1);
        let samples = self.samples.iter().map(|(_, samples)| u64::from(*samples));
        let samples: Vec<u64> = samples.collect();
        if samples.len() <= left {
            return format!("{range}{}", trend::blocks(&samples, full));
        }
        // Room is reserved for the longest possible text: the number of CPUs in a group has at most
        // as many digits as the number of all CPUs.
        let range = format!("{cpus}, the busiest of each {} ", samples.len());
        let left = room.saturating_sub(range.len()).max(1);
        let each = samples.len().div_ceil(left);
        let busiest = samples.chunks(each);
        let busiest: Vec<u64> = busiest
            .map(|cpus| cpus.iter().copied().max().unwrap_or(0))
            .collect();
        let range = format!("{cpus}, the busiest of each {each} ");
        format!("{range}{}", trend::blocks(&busiest, full))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(samples: &[u64]) -> Vec<CpuRow> {
        let row = |(cpu, samples): (usize, &u64)| CpuRow {
            cpu: cpu as u16,
            samples: *samples,
            kernel_samples: 0,
        };
        samples.iter().enumerate().map(row).collect()
    }

    fn host(cpus: u32, sampled: &[u16]) -> Host {
        Host {
            cpus,
            sampled_cpus: sampled.to_vec(),
            ..Host::default()
        }
    }

    #[test]
    fn those_that_are_not_sampled_are_not_there() {
        let busy = Busy::new(&rows(&[0, 0, 990]), &host(8, &[2, 3, 7]), 990.0);
        assert_eq!(busy.cells(40), "2█ 3  7 ");
        assert_eq!(busy.words(), "1.00 of 3   █ always busy = 990 smp");
    }

    #[test]
    fn every_cpu_is_there_as_far_as_there_is_room() {
        let busy = Busy::new(&rows(&[990, 0, 495]), &host(4, &[]), 990.0);
        assert_eq!(busy.cells(40), "0█ 1  2▄ 3 ");
        assert_eq!(busy.cells(9), "0-3 █ ▄ ");
        assert_eq!(busy.words(), "1.50 of 4   █ always busy = 990 smp");
        let many = Busy::new(&rows(&[99; 400]), &host(400, &[]), 990.0);
        let cells = many.cells(60);
        assert!(cells.starts_with("0-399, the busiest of each "), "{cells}");
        assert!(text::width(&cells) <= 60, "{cells}");
    }

    #[test]
    fn without_a_clock_the_busiest_is_the_measure() {
        let busy = Busy::new(&rows(&[7, 14]), &host(0, &[]), 0.0);
        assert_eq!(busy.cells(40), "0▄ 1█");
        assert_eq!(busy.words(), "█ the busiest = 14 smp");
        let none = Busy::new(&[], &host(0, &[]), 0.0);
        assert_eq!((none.cells(9).as_str(), none.samples.len()), ("", 0));
    }
}
