//! What a native kernel is given.

use std::fmt;

/// One box of points for a native kernel.
///
/// All pointers point at local cell (0, 0, 0) of their buffer. In a field that extends along all axes the cell (i, j, k)
/// is `i + j * sy + k * sz` cells further; see [`Layout`](crate::layout::Layout) for the others. What is folded over
/// a row is stored as a field along Y and Z is.
///
/// # Safety
/// Whoever calls a kernel promises: every point of the box lies in every result's buffer; the box grown by a field's
/// footprint lies in that field's buffer; the types are those of the descriptor; no two results overlap; a cell of a
/// result that is also read belongs to the point that reads it, or to a point that isn't updated; nothing else writes to
/// these cells during the call.
#[derive(Clone, Copy, Debug)]
pub struct BoxArgs<'a> {
    /// The results, in the order of the descriptor.
    pub outputs: &'a [*mut u8],
    /// The fields, in the order of the descriptor.
    pub fields: &'a [*const u8],
    /// The bits of the scalars.
    pub scalars: &'a [u64],
    /// Cells from a row to the next.
    pub sy: isize,
    /// Cells from a plane to the next.
    pub sz: isize,
    /// The first point of the box.
    pub lo: [isize; 3],
    /// Points along X, Y and Z; none of them is zero.
    pub size: [usize; 3],
    /// The points that are updated: all (-1), or those whose local indices add up to an even (0) or an odd (1) number.
    pub parity: i32,
    /// The global index of local cell (0, 0, 0) along X, Y and Z.
    pub global: [i32; 3],
    /// How many cells ahead memory is asked for before it is needed; 0 for not at all.
    pub ahead: isize,
    /// Whether results go to memory past the caches. Whoever asks for it ends with [`fence`](super::support::fence).
    pub stream: bool,
}

/// The instruction sets for which native kernels exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstructionSet {
    /// What every CPU of the architecture has.
    Baseline,
    /// AVX2.
    Avx2,
    /// AVX-512 F, VL, DQ and BW.
    Avx512,
}

impl InstructionSet {
    /// All of them, the plainest first.
    pub const ALL: [Self; 3] = [Self::Baseline, Self::Avx2, Self::Avx512];

    /// Whether this CPU has it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Baseline => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512bw")
            }
            #[cfg(not(target_arch = "x86_64"))]
            Self::Avx2 | Self::Avx512 => false,
        }
    }

    /// The best one that this CPU has.
    pub fn best() -> Self {
        Self::ALL.into_iter().rev().find(|set| set.is_available()).unwrap_or(Self::Baseline)
    }

    /// The set with that name: `baseline`, `avx2` or `avx512`.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.word() == name)
    }

    fn word(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }
}

impl fmt::Display for InstructionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Baseline if cfg!(target_arch = "x86_64") => "SSE2",
            Self::Baseline => "baseline",
            Self::Avx2 => "AVX2",
            Self::Avx512 => "AVX-512",
        })
    }
}
