//! What native kernels call: prefetches and stores past the caches. Each compiles to a few instructions or to nothing.

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

/// Copies `count` values to memory that a kernel writes; with `stream` past the caches where the target is aligned
/// for it.
///
/// # Safety
/// `from` is valid for reading and `to` for writing `count` values, and they don't overlap.
#[inline(always)]
pub unsafe fn store<T: Copy>(to: *mut T, from: *const T, count: usize, stream: bool) {
    let line = LINE / size_of::<T>();
    let lines = if to.cast::<u8>().align_offset(LINE) == 0 { count / line } else { 0 };
    let mut done = 0;
    // SAFETY: all accesses lie within `count` values of each pointer.
    unsafe {
        if stream {
            while done < lines * line {
                stream_line(to.add(done).cast(), from.add(done).cast());
                done += line;
            }
        }
        std::ptr::copy_nonoverlapping(from.add(done), to.add(done), count - done);
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
    fn any_address_can_be_prefetched() {
        prefetch(std::ptr::null::<f64>());
        prefetch(usize::MAX as *const u8);
    }
}
