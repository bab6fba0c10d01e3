//! How the kernel side recognizes that a CPU is in an interrupt: variables of the kernel, located
//! by its types, and one of its functions, located by its symbols.

use crate::btf::KernelTypes;
use crate::kernel_symbols;
use crate::plain::Plain;
use probe_ebpf::interrupts::{CpuPlaces, IN_INTERRUPT, IN_INTERRUPT_BESIDE_NMI};
use std::io;
use std::ops::Range;
use symbolize::kernel::KernelSymbols;

// SAFETY: a structure of numbers without padding, for which any bytes are a value.
unsafe impl aya::Pod for Plain<CpuPlaces> {}

/// Finds the places in this kernel. An error if they are not where they are expected: then a thread
/// that ends a wait cannot be distinguished from one that was interrupted.
pub fn places(types: &KernelTypes) -> io::Result<CpuPlaces> {
    let [task_entity, entity_queue, queue_cpu] = types.offsets([
        ("task_struct", "se"),
        ("sched_entity", "cfs_rq"),
        ("cfs_rq", "rq"),
    ])?;
    let [run_queues, nmis, clocks, wheels, hot] = types.of_each_cpu([
        "runqueues",
        "nmi_nesting",
        "hrtimer_bases",
        "timer_bases",
        "pcpu_hot",
    ]);
    let missing = |what: &str| io::Error::new(io::ErrorKind::NotFound, what);
    let (run_queues, _) = run_queues.ok_or_else(|| missing("its types have no run queues"))?;
    let from_run_queue = |offset: u32| u64::from(offset).wrapping_sub(run_queues.into());
    const NAMES: [&str; 4] = [
        "current_task",
        "preempt_count",
        "hardirq_stack_ptr",
        "hardirq_stack_inuse",
    ];
    // Linux 6.2 to 6.14 have them in one structure, others as separate variables.
    let [current_task, preempt_count, stack, stack_used] = match hot {
        Some((hot, _)) => {
            let members = types.offsets(NAMES.map(|name| ("pcpu_hot", name)))?;
            members.map(|member| from_run_queue(hot + member))
        }
        None => {
            let [task, count, stack, used] =
                types.of_each_cpu([NAMES[0], "__preempt_count", NAMES[2], NAMES[3]]);
            match [task, count, stack, used] {
                [Some(task), Some(count), Some(stack), Some(used)] => {
                    [task, count, stack, used].map(|(offset, _)| from_run_queue(offset))
                }
                _ => return Err(missing("its types have no count of interrupts")),
            }
        }
    };
    let mut places = CpuPlaces {
        task_queue: (task_entity + entity_queue).into(),
        run_queue: queue_cpu.into(),
        current_task,
        preempt_count,
        in_interrupt: match nmis {
            Some(_) => IN_INTERRUPT_BESIDE_NMI,
            None => IN_INTERRUPT,
        },
        stack,
        stack_used,
        ..CpuPlaces::default()
    };
    let timers = types.offsets([
        ("hrtimer_cpu_base", "clock_base"),
        ("hrtimer_clock_base", "running"),
    ]);
    let step = types.size("hrtimer_clock_base");
    if let (Some((clocks, _)), Ok([first, running]), Ok(step)) = (clocks, timers, step) {
        places.timers = from_run_queue(clocks + first + running);
        places.timers_step = step.into();
    }
    if let Some(code) = do_softirq(&kernel_symbols::read()) {
        (places.do_softirq_start, places.do_softirq_end) = (code.start, code.end);
    }
    let running = types.offset("timer_base", "running_timer");
    if let (Some((wheels, bytes)), Ok(running), Ok(step @ 1..)) =
        (wheels, running, types.size("timer_base"))
    {
        places.wheels = from_run_queue(wheels + running);
        places.wheels_step = step.into();
        places.wheels_count = (bytes / step).into();
    }
    Ok(places)
}

/// Names of the function in which threads do the work that interrupts have left. A compiler may put
/// most of it into a second function, which is close to it.
const DO_SOFTIRQ: [&str; 2] = ["do_softirq.part.0", "do_softirq"];

/// Returns the code range of that function; `None` if the kernel's symbols do not have it.
fn do_softirq(symbols: &KernelSymbols) -> Option<Range<u64>> {
    let start = DO_SOFTIRQ.iter().find_map(|name| symbols.start_of(name))?;
    symbols.extent(start).filter(|code| code.start != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_kernel_has_the_places() {
        let types = match KernelTypes::read() {
            Ok(types) => types,
            Err(error) => return test_support::skip(format_args!("no types here: {error}")),
        };
        if cfg!(not(target_arch = "x86_64")) {
            return test_support::skip(format_args!("waits are followed on x86-64 alone"));
        }
        let places = places(&types).unwrap();
        let all = [
            places.task_queue,
            places.run_queue,
            places.preempt_count,
            places.stack,
            places.timers,
            places.timers_step,
            places.wheels,
            places.wheels_step,
        ];
        assert!(all.iter().all(|place| *place != 0), "{places:?}");
        assert!((1..=8).contains(&places.wheels_count), "{places:?}");
        if KernelSymbols::load().is_hidden() {
            return test_support::skip("the kernel hides its addresses");
        }
        assert!(
            places.do_softirq_start < places.do_softirq_end,
            "{places:?}"
        );
    }

    #[test]
    fn the_part_of_a_function_that_does_the_work_is_taken() {
        let at = |text: &str| do_softirq(&KernelSymbols::parse(text.as_bytes()));
        let both = "ffffffff81000010 t do_softirq.part.0\nffffffff81000090 t other\n\
                    ffffffff81000100 T do_softirq\nffffffff81000120 T next\n";
        assert_eq!(at(both), Some(0xffffffff81000010..0xffffffff81000090));
        let one = "ffffffff81000100 T do_softirq\nffffffff81000120 T next\n";
        assert_eq!(at(one), Some(0xffffffff81000100..0xffffffff81000120));
        assert_eq!(at("ffffffff81000100 T __do_softirq\n"), None);
        assert_eq!(at(""), None);
        // The kernel hides the addresses.
        let hidden = "0000000000000000 T do_softirq\n0000000000000000 T next\n";
        assert_eq!(at(hidden), None);
    }
}
