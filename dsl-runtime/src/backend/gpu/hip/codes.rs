//! What HIP's codes and versions mean.

use super::super::driver::Kind;

/// The success of a call.
pub(super) const SUCCESS: i32 = 0;

/// An event hasn't happened yet.
pub(super) const NOT_READY: i32 = 600;

/// A card can reach the peer's memory already.
pub(super) const PEER_ACCESS_ALREADY_ENABLED: i32 = 704;

/// What a caller can act on. HIP has fewer codes than CUDA for how a kernel can end badly.
pub(super) fn kind(code: i32) -> Kind {
    match code {
        // hipErrorOutOfMemory.
        2 => Kind::OutOfMemory,
        // InvalidDeviceFunction (not compiled for this processor), InvalidImage, NoBinaryForGpu, InvalidKernelFile,
        // InvalidSource.
        98 | 200 | 209 | 218 | 300 => Kind::InvalidImage,
        // PeerAccessUnsupported, NotSupported.
        217 | 801 => Kind::Unsupported,
        // ECCNotCorrectable, IllegalAddress, LaunchTimeOut, ContextIsDestroyed, Assert, LaunchFailure.
        214 | 700 | 702 | 709 | 710 | 719 => Kind::Lost,
        _ => Kind::Other,
    }
}

/// A version such as 50221153 in words.
pub(super) fn version(version: i32) -> String {
    let version = version.max(0);
    format!("HIP {}.{}.{}", version / 10_000_000, version / 100_000 % 100, version % 100_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_caller_can_act_on_is_told_apart() {
        let check = |expected, codes: &[i32]| {
            for &code in codes {
                assert_eq!(kind(code), expected, "{code}");
            }
        };
        check(Kind::OutOfMemory, &[2]);
        check(Kind::InvalidImage, &[98, 200, 209, 218, 300]);
        check(Kind::Unsupported, &[217, 801]);
        check(Kind::Lost, &[214, 700, 702, 710, 719]);
        check(
            Kind::Other,
            &[1, 3, 100, 101, 201, 400, 500, 600, 701, 704, 712, 713, 720, 901, 911, 999, 1052, 77_777, -1],
        );
    }

    #[test]
    fn a_version_has_three_parts() {
        assert_eq!(version(50_221_153), "HIP 5.2.21153");
        assert_eq!(version(60_443_482), "HIP 6.4.43482");
        assert_eq!(version(71_051_831), "HIP 7.10.51831");
        assert_eq!(version(-1), "HIP 0.0.0");
    }
}
