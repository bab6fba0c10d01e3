//! Whether the kernel is in an interrupt on this CPU: then the current task was only interrupted,
//! and has nothing to do with what happens.

use super::maps::{CPU_PLACES, THIS_CPU, ThisCpu};
use super::memory::kernel_word;
use aya_ebpf::helpers::generated as helpers;
use probe_ebpf::interrupts::{CLOCKS, CpuPlaces, IN_SOFT_INTERRUPT};
use probe_ebpf::waits::ended_by;

/// Returns who causes what happens on this CPU, by the first rule that fits:
///
/// 1. It is not known where the kernel keeps this: `UNKNOWN`.
/// 2. An interrupt is being handled: a timer if one of the clocks is running one, else that
///    interrupt.
/// 3. No soft interrupt is being handled: the current task. If the CPU is idle, an interrupt.
/// 4. A timer is running: that timer.
/// 5. The current task itself asked for the work that was left for later, as a task does that
///    sends something to this machine: the current task.
/// 6. That work is done after an interrupt, or by the kernel's thread for it: an interrupt.
#[inline(never)]
pub fn who_acts(current_tid: u32) -> u32 {
    let (Some(places), Some(this_cpu)) = (CPU_PLACES.get_ptr(0), THIS_CPU.get_ptr_mut(0)) else {
        return ended_by::UNKNOWN;
    };
    // SAFETY: values of live maps; user space changes single words of the first.
    let (places, this_cpu) = unsafe { (&*places, &mut *this_cpu) };
    let queue = run_queue(places, this_cpu);
    if queue == 0 || this_cpu.is_wrong != 0 {
        return ended_by::UNKNOWN;
    }
    let count = kernel_word(queue.wrapping_add(places.preempt_count));
    if count & places.in_interrupt != 0 {
        return or_timer(is_running(queue, places.timers, places.timers_step, CLOCKS));
    }
    if count & IN_SOFT_INTERRUPT == 0 {
        return if current_tid == 0 {
            ended_by::INTERRUPT
        } else {
            ended_by::THREAD
        };
    }
    let soft_timers = match places.timers {
        0 => 0,
        timers => timers.wrapping_add(CLOCKS * places.timers_step),
    };
    if is_running(queue, soft_timers, places.timers_step, CLOCKS) != 0
        || is_running(
            queue,
            places.wheels,
            places.wheels_step,
            places.wheels_count,
        ) != 0
    {
        return ended_by::TIMER;
    }
    if current_tid == 0 {
        return ended_by::INTERRUPT;
    }
    if places.do_softirq_start == 0 {
        return ended_by::UNKNOWN;
    }
    // `call_on_irqstack` of arch/x86/include/asm/irq_stack.h: where it was called from lies
    // below the top of the stack for interrupts. An interrupt of a program leaves that stack
    // unused.
    let is_used = kernel_word(queue.wrapping_add(places.stack_used)) & 0xff != 0;
    let top = kernel_word(queue.wrapping_add(places.stack));
    let caller = kernel_word(top.wrapping_sub(8));
    if is_used && caller >= places.do_softirq_start && caller < places.do_softirq_end {
        ended_by::THREAD
    } else {
        ended_by::INTERRUPT
    }
}

/// Checks, in an interrupt, that the preemption count shows it. If it does not, this kernel
/// counts in another way, and [`who_acts`] uses none of these places any more.
#[inline(always)]
pub fn check_in_interrupt() {
    let (Some(places), Some(this_cpu)) = (CPU_PLACES.get_ptr(0), THIS_CPU.get_ptr_mut(0)) else {
        return;
    };
    // SAFETY: as above.
    let (places, this_cpu) = unsafe { (&*places, &mut *this_cpu) };
    let queue = run_queue(places, this_cpu);
    if queue != 0
        && kernel_word(queue.wrapping_add(places.preempt_count)) & places.in_interrupt == 0
    {
        this_cpu.is_wrong = 1;
    }
}

#[inline(always)]
fn or_timer(is_timer: u32) -> u32 {
    if is_timer != 0 {
        ended_by::TIMER
    } else {
        ended_by::INTERRUPT
    }
}

/// Returns the address of this CPU's run queue; 0 if it is not known.
#[inline(always)]
fn run_queue(places: &CpuPlaces, this_cpu: &mut ThisCpu) -> u64 {
    if this_cpu.run_queue != 0 || places.task_queue == 0 {
        return this_cpu.run_queue;
    }
    // SAFETY: a helper without arguments.
    let task = unsafe { helpers::bpf_get_current_task() };
    let group = kernel_word(task.wrapping_add(places.task_queue));
    let queue = kernel_word(group.wrapping_add(places.run_queue));
    if kernel_word(queue.wrapping_add(places.current_task)) == task {
        this_cpu.run_queue = queue;
    }
    this_cpu.run_queue
}

/// Returns 1 if one of several clocks or wheels is running a timer right now, else 0.
#[inline(never)]
fn is_running(queue: u64, first: u64, step: u64, count: u64) -> u32 {
    if first == 0 {
        return 0;
    }
    let mut at = queue.wrapping_add(first);
    for clock in 0..CLOCKS {
        if clock >= count {
            break;
        }
        if kernel_word(at) != 0 {
            return 1;
        }
        at = at.wrapping_add(step);
    }
    0
}
