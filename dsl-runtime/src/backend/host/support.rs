//! What native kernels call: prefetches, stores past the caches and folds of rows. Each compiles to a few instructions or
//! to nothing.

pub use crate::reduction::{Accumulator, Largest, Least, Total};

/// Asks for the cache line of an address, which may be any address at all.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch never faults and has no effect on values.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// Bytes of a cache line.
const LINE: usize = 64;

/// Copies `count` values to memory that a kernel writes; with `stream` past the caches, line by line.
///
/// # Safety
/// `from` is valid for reading and `to` for writing `count` values, and they don't overlap.
#[inline(always)]
pub unsafe fn store<T: Copy>(to: *mut T, from: *const T, count: usize, stream: bool) {
    let (to, from, bytes) = (to.cast::<u8>(), from.cast::<u8>(), count * size_of::<T>());
    // SAFETY: all accesses lie within `bytes` bytes of each pointer.
    unsafe {
        if !(to as usize | bytes).is_multiple_of(LINE) {
            store_ragged(to, from, bytes, stream);
            return;
        }
        let mut done = 0;
        while done < bytes {
            if stream {
                stream_line(to.add(done), from.add(done));
            } else {
                to.add(done).cast::<[u8; LINE]>().write(from.add(done).cast::<[u8; LINE]>().read());
            }
            done += LINE;
            // Without it the compiler would make a call of a function out of a loop over lines.
            std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
        }
    }
}

/// [`store`] where the first or the last line is written in part.
///
/// # Safety
/// `bytes` bytes are valid at both addresses, and they don't overlap.
#[inline(never)]
unsafe fn store_ragged(to: *mut u8, from: *const u8, bytes: usize, stream: bool) {
    // SAFETY: all accesses lie within `bytes` bytes of each pointer.
    unsafe {
        let head = to.align_offset(LINE).min(bytes);
        let mut done = store_part(to, from, head);
        while done + LINE <= bytes {
            if stream {
                stream_line(to.add(done), from.add(done));
            } else {
                to.add(done).cast::<[u8; LINE]>().write(from.add(done).cast::<[u8; LINE]>().read());
            }
            done += LINE;
            std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
        }
        store_part(to.add(done), from.add(done), bytes - done);
    }
}

/// Copies less than a line: its half, its quarter and so on.
///
/// # Safety
/// So many bytes, less than `LINE`, are valid at both addresses, and they don't overlap.
#[inline(always)]
unsafe fn store_part(to: *mut u8, from: *const u8, bytes: usize) -> usize {
    let mut done = 0;
    macro_rules! part {
        ($($size:literal)+) => {$(
            if bytes & $size != 0 {
                // SAFETY: the sizes add up to the bytes.
                unsafe { to.add(done).cast::<[u8; $size]>().write(from.add(done).cast::<[u8; $size]>().read()) };
                done += $size;
            }
        )+};
    }
    part!(32 16 8 4 2 1);
    done
}

/// Copies every second one of `count` values, number `first` being the first one, to its place in memory that a kernel
/// writes; the others stay as they are.
///
/// # Safety
/// As for [`store`].
#[inline(never)]
pub unsafe fn store_alternate<T: Copy>(to: *mut T, from: *const T, count: usize, first: usize) {
    for i in (first..count).step_by(2) {
        // SAFETY: less than `count`.
        unsafe { *to.add(i) = *from.add(i) };
    }
}

/// Writes a cache line past the caches.
///
/// # Safety
/// 64 bytes are valid at both addresses; `to` is aligned to 64 bytes.
#[inline(always)]
unsafe fn stream_line(to: *mut u8, from: *const u8) {
    #[cfg(target_arch = "x86_64")]
    for part in 0..4 {
        use std::arch::x86_64::{_mm_loadu_si128, _mm_stream_si128};
        // SAFETY: the caller promises 64 bytes and the alignment; every x86-64 CPU has SSE2.
        unsafe { _mm_stream_si128(to.add(16 * part).cast(), _mm_loadu_si128(from.add(16 * part).cast())) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    // SAFETY: the caller promises 64 bytes.
    unsafe {
        std::ptr::copy_nonoverlapping(from, to, LINE)
    }
}

/// Makes stores past the caches visible to other threads as other stores are.
#[inline(always)]
pub fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 CPU has SSE, and a fence has no effect on values.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T: Copy + PartialEq + std::fmt::Debug + Default + From<u8>>() {
        let from: Vec<T> = (1..=100).map(T::from).collect();
        for stream in [false, true] {
            for start in [0, 1, 3, 16] {
                for count in [0, 1, 7, 8, 15, 16, 33, 64] {
                    let mut memory = vec![T::default(); 256];
                    let aligned = memory.as_ptr().align_offset(LINE) + start;
                    // SAFETY: both ranges lie in their vectors.
                    unsafe { store(memory.as_mut_ptr().add(aligned), from.as_ptr(), count, stream) };
                    fence();
                    assert_eq!(memory[aligned..aligned + count], from[..count]);
                    let outside = memory[..aligned].iter().chain(&memory[aligned + count..]);
                    assert!(outside.copied().all(|value| value == T::default()));
                }
            }
        }
    }

    #[test]
    fn a_store_writes_its_values_and_no_others() {
        check::<f64>();
        check::<f32>();
    }

    #[test]
    fn an_alternate_store_writes_every_second_value() {
        let from: Vec<i32> = (1..=100).collect();
        for count in [0, 1, 2, 7, 8, 33] {
            for first in [0, 1] {
                let mut to = vec![0; 40];
                // SAFETY: both ranges lie in their vectors.
                unsafe { store_alternate(to.as_mut_ptr(), from.as_ptr(), count, first) };
                for (i, &value) in to.iter().enumerate() {
                    let expected = if i < count && i % 2 == first { from[i] } else { 0 };
                    assert_eq!(value, expected, "{count} {first} {i}");
                }
            }
        }
    }

    #[test]
    fn any_address_can_be_prefetched() {
        prefetch(std::ptr::null::<f64>());
        prefetch(usize::MAX as *const u8);
    }
}
