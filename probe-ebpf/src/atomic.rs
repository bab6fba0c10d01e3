//! Atomic operations on values of maps. Plain additions would lose some counts, because a program
//! at a breakpoint may be interrupted by another program on the same CPU.

/// Reads a word that others may write at the same time.
///
/// # Safety
///
/// `word` must be valid and aligned.
#[inline(always)]
pub unsafe fn load(word: *mut u64) -> u64 {
    // SAFETY: the caller guarantees the address. A read of an aligned word is one instruction.
    #[cfg(target_arch = "bpf")]
    unsafe {
        word.read_volatile()
    }
    #[cfg(not(target_arch = "bpf"))]
    // SAFETY: as above.
    unsafe {
        let word = core::sync::atomic::AtomicU64::from_ptr(word);
        word.load(core::sync::atomic::Ordering::Acquire)
    }
}

/// Writes a word that others may read at the same time.
///
/// # Safety
///
/// `word` must be valid and aligned.
#[inline(always)]
pub unsafe fn store(word: *mut u64, value: u64) {
    // SAFETY: the caller guarantees the address. A write of an aligned word is one instruction.
    #[cfg(target_arch = "bpf")]
    unsafe {
        word.write_volatile(value);
    }
    #[cfg(not(target_arch = "bpf"))]
    // SAFETY: as above.
    unsafe {
        let word = core::sync::atomic::AtomicU64::from_ptr(word);
        word.store(value, core::sync::atomic::Ordering::Release);
    }
}

/// Adds `amount` to a word.
///
/// # Safety
///
/// `word` must be valid and aligned.
#[inline(always)]
pub unsafe fn add(word: *mut u64, amount: u64) {
    #[cfg(target_arch = "bpf")]
    // SAFETY: the caller guarantees the address; one atomic instruction.
    unsafe {
        core::arch::asm!("lock *(u64 *)({0} + 0) += {1}", in(reg) word, in(reg) amount);
    }
    #[cfg(not(target_arch = "bpf"))]
    // SAFETY: the caller guarantees the address.
    unsafe {
        let word = core::sync::atomic::AtomicU64::from_ptr(word);
        word.fetch_add(amount, core::sync::atomic::Ordering::Relaxed);
    }
}

/// Sets a word to `value`, and returns its old value.
///
/// # Safety
///
/// `word` must be valid and aligned.
#[inline(always)]
pub unsafe fn swap(word: *mut u64, value: u64) -> u64 {
    #[cfg(target_arch = "bpf")]
    {
        let mut value = value;
        // SAFETY: the caller guarantees the address; one atomic instruction.
        unsafe {
            core::arch::asm!("{1} = xchg_64({0} + 0, {1})", in(reg) word, inout(reg) value);
        }
        value
    }
    #[cfg(not(target_arch = "bpf"))]
    // SAFETY: the caller guarantees the address.
    unsafe {
        let word = core::sync::atomic::AtomicU64::from_ptr(word);
        word.swap(value, core::sync::atomic::Ordering::AcqRel)
    }
}

/// Sets a word to `new` if it is `old`, and returns the value that it had before.
///
/// # Safety
///
/// `word` must be valid and aligned.
#[inline(always)]
pub unsafe fn exchange_if(word: *mut u64, old: u64, new: u64) -> u64 {
    #[cfg(target_arch = "bpf")]
    {
        let mut was = old;
        // SAFETY: the caller guarantees the address; one atomic instruction.
        unsafe {
            core::arch::asm!(
                "r0 = cmpxchg_64({0} + 0, r0, {1})",
                in(reg) word,
                in(reg) new,
                inout("r0") was,
            );
        }
        was
    }
    #[cfg(not(target_arch = "bpf"))]
    {
        use core::sync::atomic::{AtomicU64, Ordering};
        // SAFETY: the caller guarantees the address.
        let word = unsafe { AtomicU64::from_ptr(word) };
        match word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(was) | Err(was) => was,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_added_to_and_swapped() {
        let mut word = 30;
        // SAFETY: a local variable.
        unsafe {
            store(&mut word, 40);
            assert_eq!(load(&mut word), 40);
            add(&mut word, 2);
            assert_eq!(swap(&mut word, 7), 42);
        }
        assert_eq!(word, 7);
        // SAFETY: as above.
        unsafe {
            assert_eq!(exchange_if(&mut word, 8, 9), 7);
            assert_eq!(word, 7);
            assert_eq!(exchange_if(&mut word, 7, 9), 7);
        }
        assert_eq!(word, 9);
    }
}
