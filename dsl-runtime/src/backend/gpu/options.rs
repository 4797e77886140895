//! How kernels are laid out on a GPU, as far as the user decides it.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::kernel::Walk;

/// Wishes for kernels on CUDA and HIP devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GpuOptions {
    /// Whether shapes are chosen by measuring.
    pub tune: Tune,
    /// The shape of every kernel that has such a form, whatever was measured.
    pub shape: Option<Shape>,
    /// Whether indices have 64 bits even where 32 suffice, to try what larger grids than there is memory for need.
    pub wide: bool,
}

/// When the shape of a kernel is chosen by measuring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tune {
    /// At the first launch that is large enough, once for each kernel, device and driver: what was found is kept on disk.
    #[default]
    Once,
    /// At the first large launch of every program, whatever is kept on disk.
    Again,
    /// Never, and what is kept on disk isn't used: every kernel has the fixed default.
    Never,
}

impl Tune {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::Once, Self::Again, Self::Never];

    fn name(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Again => "again",
            Self::Never => "never",
        }
    }
}

impl fmt::Display for Tune {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Tune {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = Self::ALL.into_iter().find(|tune| tune.name().eq_ignore_ascii_case(text.trim()));
        let known = || Self::ALL.map(Self::name).to_vec();
        found.ok_or_else(|| Error::NoSuchChoice { what: "time to measure", name: text.into(), known: known() })
    }
}

/// How the points of a box become threads of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape {
    /// Which points a thread computes: a point, or a column.
    pub walk: Walk,
    /// The threads of a block along X, Y and Z; 1 along Z for columns.
    pub block: [u32; 3],
    /// The planes that a column has at most; 1 for points.
    pub planes: u32,
}

impl fmt::Display for Shape {
    /// `point:32x4x2` or `march:32x8:64`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.block;
        match self.walk {
            Walk::Point => write!(f, "point:{x}x{y}x{z}"),
            Walk::March => write!(f, "march:{x}x{y}:{}", self.planes),
            Walk::Row => write!(f, "row:{x}x{y}"),
        }
    }
}

impl FromStr for Shape {
    type Err = Error;

    /// What [`Display`](fmt::Display) writes, for points and columns.
    fn from_str(text: &str) -> Result<Self> {
        let unknown = || Error::NoSuchChoice {
            what: "shape",
            name: text.into(),
            known: vec!["point:XxYxZ", "march:XxY:PLANES, with up to 1024 threads in a block"],
        };
        let number = |text: &str| text.parse::<u32>().ok().filter(|&number| number > 0);
        let numbers = |text: &str| text.split('x').map(number).collect::<Option<Vec<_>>>();
        let parts: Vec<_> = text.trim().split(':').collect();
        let shape = match *parts.as_slice() {
            ["point", block] => numbers(block)
                .and_then(|block| Some(Self { walk: Walk::Point, block: block.try_into().ok()?, planes: 1 })),
            ["march", block, planes] => numbers(block).zip(number(planes)).and_then(|(block, planes)| {
                let [x, y] = block.try_into().ok()?;
                Some(Self { walk: Walk::March, block: [x, y, 1], planes })
            }),
            _ => None,
        };
        let threads = |shape: &Self| shape.block.iter().try_fold(1_u32, |all, &some| all.checked_mul(some));
        shape.filter(|shape| threads(shape).is_some_and(|threads| threads <= 1024)).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_read_as_they_are_written() {
        for text in ["point:32x4x2", "march:64x4:16", "point:1x1x1", "march:1024x1:1"] {
            assert_eq!(text.parse::<Shape>().unwrap().to_string(), text);
        }
        for text in
            ["", "point", "point:32x4", "march:32x4", "march:32x8x2:4", "row:32x4", "point:0x1x1", "point:2048x1x1"]
        {
            assert!(matches!(text.parse::<Shape>(), Err(Error::NoSuchChoice { .. })), "{text}");
        }
    }
}
