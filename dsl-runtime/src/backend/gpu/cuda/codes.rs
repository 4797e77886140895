//! What CUDA's codes and versions mean.

use super::super::driver::Kind;

/// The success of a call.
pub(super) const SUCCESS: i32 = 0;

/// An event hasn't happened yet.
pub(super) const NOT_READY: i32 = 600;

/// A card can reach the peer's memory already.
pub(super) const PEER_ACCESS_ALREADY_ENABLED: i32 = 704;

/// What a caller can act on.
///
/// A context is lost after the codes of which NVIDIA's description says that the process is left in an inconsistent state and
/// that all further work will return the same code.
pub(super) fn kind(code: i32) -> Kind {
    match code {
        // CUDA_ERROR_OUT_OF_MEMORY.
        2 => Kind::OutOfMemory,
        // INVALID_IMAGE, NO_BINARY_FOR_GPU, INVALID_PTX, JIT_COMPILER_NOT_FOUND, UNSUPPORTED_PTX_VERSION,
        // JIT_COMPILATION_DISABLED, INVALID_SOURCE: the driver may take the kernel in another form.
        200 | 209 | 218 | 221..=223 | 300 => Kind::InvalidImage,
        // PEER_ACCESS_UNSUPPORTED, NOT_SUPPORTED.
        217 | 801 => Kind::Unsupported,
        // ECC_UNCORRECTABLE, NVLINK_UNCORRECTABLE, CONTAINED.
        214 | 220 | 226 => Kind::Lost,
        // ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, CONTEXT_IS_DESTROYED, ASSERT.
        700 | 702 | 709 | 710 => Kind::Lost,
        // HARDWARE_STACK_ERROR, ILLEGAL_INSTRUCTION, MISALIGNED_ADDRESS, INVALID_ADDRESS_SPACE, INVALID_PC, LAUNCH_FAILED,
        // and TENSOR_MEMORY_LEAK. 712 and 713 are about memory that is, or isn't, pinned.
        714..=719 | 721 => Kind::Lost,
        // MPS_CLIENT_TERMINATED, EXTERNAL_DEVICE.
        810 | 911 => Kind::Lost,
        _ => Kind::Other,
    }
}

/// What a code says that may come before the driver has started, when it may not know its own texts yet.
pub(super) fn meaning(code: i32) -> Option<&'static str> {
    Some(match code {
        // NOT_INITIALIZED, STUB_LIBRARY, CALL_REQUIRES_NEWER_DRIVER.
        3 => "the driver isn't started, as in a program that was forked after it used the driver",
        34 => "this is the stub of NVIDIA's toolkit for linking, not the driver's own library",
        36 => "the driver is too old for this call: install a newer one",
        // NO_DEVICE, INVALID_DEVICE.
        100 => "there is no card, or none that CUDA_VISIBLE_DEVICES lets this program see",
        101 => "no such card: CUDA_VISIBLE_DEVICES may name one that isn't there",
        // SYSTEM_NOT_READY, SYSTEM_DRIVER_MISMATCH, COMPAT_NOT_SUPPORTED_ON_DEVICE.
        802 => "the machine isn't ready: cards that are linked by NVSwitch need NVIDIA's fabric manager to run",
        803 => "the driver doesn't fit the installed library: reboot or reinstall it",
        804 => "the library of NVIDIA's compatibility package doesn't serve this card: use the driver's own",
        _ => return None,
    })
}

/// The parts of a version such as 12040.
pub(super) fn parts(version: i32) -> (u32, u32) {
    let version = version.max(0).unsigned_abs();
    (version / 1000, version % 1000 / 10)
}

/// The newest PTX that a driver of a CUDA release takes, by the table of releases in NVIDIA's manual of PTX. A driver newer than
/// the table takes what the last release takes, as all take older PTX.
pub(super) fn ptx(release: (u32, u32)) -> Option<(u32, u32)> {
    type Version = (u32, u32);
    /// The first release that takes a version of PTX.
    const RELEASES: &[(Version, Version)] = &[
        ((8, 0), (5, 0)),
        ((9, 0), (6, 0)),
        ((9, 1), (6, 1)),
        ((9, 2), (6, 2)),
        ((10, 0), (6, 3)),
        ((10, 1), (6, 4)),
        ((10, 2), (6, 5)),
        ((11, 0), (7, 0)),
        ((11, 1), (7, 1)),
        ((11, 2), (7, 2)),
        ((11, 3), (7, 3)),
        ((11, 4), (7, 4)),
        ((11, 5), (7, 5)),
        ((11, 6), (7, 6)),
        ((11, 7), (7, 7)),
        ((11, 8), (7, 8)),
        ((12, 0), (8, 0)),
        ((12, 1), (8, 1)),
        ((12, 2), (8, 2)),
        ((12, 3), (8, 3)),
        ((12, 4), (8, 4)),
        // 12.6 has none of its own.
        ((12, 5), (8, 5)),
        ((12, 7), (8, 6)),
        ((12, 8), (8, 7)),
        ((12, 9), (8, 8)),
        ((13, 0), (9, 0)),
        ((13, 1), (9, 1)),
    ];
    RELEASES.iter().rev().find(|(first, _)| *first <= release).map(|&(_, ptx)| ptx)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_takes_the_ptx_of_its_release_and_older() {
        let taken = |version| ptx(parts(version));
        assert_eq!(taken(7050), None);
        assert_eq!(taken(8000), Some((5, 0)));
        assert_eq!(taken(9020), Some((6, 2)));
        assert_eq!(taken(10010), Some((6, 4)));
        assert_eq!(taken(11080), Some((7, 8)));
        assert_eq!(taken(12040), Some((8, 4)));
        assert_eq!(taken(12060), Some((8, 5)));
        assert_eq!(taken(12070), Some((8, 6)));
        assert_eq!(taken(12090), Some((8, 8)));
        assert_eq!(taken(13000), Some((9, 0)));
        assert_eq!(taken(14020), Some((9, 1)));
        assert_eq!(taken(-1), None);
    }

    #[test]
    fn a_driver_that_does_not_start_says_why() {
        assert!([3, 34, 36, 100, 101, 802, 803, 804].iter().all(|&code| meaning(code).is_some()));
        assert_eq!(meaning(803), Some("the driver doesn't fit the installed library: reboot or reinstall it"));
        assert_eq!(meaning(719), None);
    }

    #[test]
    fn what_a_caller_can_act_on_is_told_apart() {
        let check = |expected, codes: &[i32]| {
            for &code in codes {
                assert_eq!(kind(code), expected, "{code}");
            }
        };
        check(Kind::OutOfMemory, &[2]);
        check(Kind::InvalidImage, &[200, 209, 218, 222]);
        check(Kind::Unsupported, &[217, 801]);
        check(Kind::Lost, &[214, 700, 702, 710, 714, 715, 716, 717, 718, 719]);
        // Nor is a card lost that had too few registers, or whose memory was pinned twice.
        check(Kind::Other, &[1, 3, 100, 101, 201, 400, 500, 600, 701, 704, 712, 713, 720, 901, 999, 123_456, -1]);
    }
}
