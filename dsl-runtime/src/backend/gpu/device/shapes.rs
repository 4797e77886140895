//! From a box of points to grids of blocks: pure functions of shapes and limits.

use crate::backend::gpu::options::Shape;
use crate::geometry::Box3;
use crate::kernel::Walk;

/// Threads that a block has along Z at most, whatever the card.
const DEEPEST: u32 = 64;

/// What a shape must respect on a card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limits {
    /// Threads of a block of this kernel, given what the card has and the registers that a thread needs.
    pub(super) threads: u32,
}

impl Limits {
    /// Whether blocks of this shape can be launched.
    pub(super) fn allow(&self, shape: &Shape) -> bool {
        let threads = shape.block.iter().try_fold(1_u32, |all, &some| all.checked_mul(some));
        threads.is_some_and(|threads| threads <= self.threads) && shape.block[2] <= DEEPEST
    }
}

/// The shape of a walk that isn't measured.
pub(super) fn default(walk: Walk) -> Shape {
    match walk {
        Walk::Point => Shape { walk, block: [64, 4, 1], planes: 1 },
        Walk::March => Shape { walk, block: [64, 4, 1], planes: 32 },
        Walk::Row => Shape { walk, block: [32, 4, 1], planes: 1 },
    }
}

/// The same with smaller blocks, until they can be launched.
pub(super) fn limited(mut shape: Shape, limits: &Limits) -> Shape {
    while !limits.allow(&shape)
        && let Some(axis) = [2, 1, 0].into_iter().find(|&axis| shape.block[axis] > 1)
    {
        shape.block[axis] /= 2;
    }
    shape
}

/// A shape with threads that a box has no points for moved to the next axis, or left out.
pub(super) fn fitted(mut shape: Shape, points: [usize; 3]) -> Shape {
    let axes = axes(shape.walk);
    for (place, &axis) in axes.iter().enumerate() {
        while shape.block[place] > 1 && (shape.block[place] / 2) as usize >= points[axis].max(1) {
            shape.block[place] /= 2;
            if place + 1 < axes.len() && (place == 0 || shape.block[2] < DEEPEST) {
                shape.block[place + 1] *= 2;
            }
        }
    }
    shape
}

/// The axes of the box along which the threads of a block lie.
fn axes(walk: Walk) -> &'static [usize] {
    match walk {
        Walk::Point => &[0, 1, 2],
        Walk::March => &[0, 1],
        Walk::Row => &[1, 2],
    }
}

/// The shapes that are worth measuring for a box.
pub(super) fn candidates(walks: &[Walk], points: [usize; 3], limits: impl Fn(Walk) -> Limits) -> Vec<Shape> {
    let blocks: &[[u32; 3]] = &[[64, 4, 1], [32, 4, 2], [32, 8, 1], [128, 2, 1], [256, 1, 1], [64, 2, 2]];
    let points_of = blocks.iter().map(|&block| Shape { walk: Walk::Point, block, planes: 1 });
    let columns = [[64, 4, 1], [32, 8, 1], [128, 2, 1], [32, 4, 1]];
    let columns = columns
        .iter()
        .flat_map(|&block| [16, 32, 64, 8].into_iter().map(move |planes| Shape { walk: Walk::March, block, planes }));
    let fits = |shape: &Shape| {
        // Columns longer than the box are as long as the box: one such is enough.
        let is_new = shape.planes <= 8 || (shape.planes as usize) / 2 < points[2];
        walks.contains(&shape.walk) && limits(shape.walk).allow(shape) && fitted(*shape, points) == *shape && is_new
    };
    points_of.chain(columns).filter(fits).collect()
}

/// The parts of a box, each with its grid: one unless a grid would have too many blocks.
pub(super) fn pieces(shape: Shape, most: [u32; 3], range: Box3) -> impl Iterator<Item = (Box3, [u32; 3])> {
    // Points of each axis of the box that a block computes, and the axis of the grid along which they follow.
    let [bx, by, bz] = shape.block.map(|threads| i64::from(threads.max(1)));
    let planes = i64::from(shape.planes.max(1));
    let each: [(i64, Option<usize>); 3] = match shape.walk {
        Walk::Point => [(bx, Some(0)), (by, Some(1)), (bz, Some(2))],
        Walk::March => [(bx, Some(0)), (by, Some(1)), (planes, Some(2))],
        Walk::Row => [(1, None), (bx, Some(0)), (by, Some(1))],
    };
    let along = move |axis: usize| {
        let (points, place) = each[axis];
        let longest = place.map_or(i64::MAX, |place| points.saturating_mul(i64::from(most[place].max(1))));
        let (lo, hi) = (range.lo[axis], range.hi[axis]);
        std::iter::successors((lo < hi).then_some(lo), move |&start| {
            start.checked_add(longest).filter(|&next| next < hi)
        })
        .map(move |start| (start, start.saturating_add(longest).min(hi)))
    };
    let grid = move |part: &Box3| {
        let mut grid = [1; 3];
        for (axis, (points, place)) in each.into_iter().enumerate() {
            if let Some(place) = place {
                grid[place] = (part.hi[axis] - part.lo[axis]).unsigned_abs().div_ceil(points.unsigned_abs()) as u32;
            }
        }
        grid
    };
    along(2).flat_map(move |z| along(1).flat_map(move |y| along(0).map(move |x| [x, y, z]))).map(move |sides| {
        let part = Box3 { lo: sides.map(|(lo, _)| lo), hi: sides.map(|(_, hi)| hi) };
        (part, grid(&part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: Limits = Limits { threads: 1024 };
    const GRID: [u32; 3] = [i32::MAX as u32, 65535, 65535];

    fn shape(text: &str) -> Shape {
        text.parse().unwrap()
    }

    fn row(block: [u32; 3]) -> Shape {
        Shape { walk: Walk::Row, block, planes: 1 }
    }

    #[test]
    fn blocks_keep_to_what_a_box_has_points_for() {
        let check = |from: &str, points: [usize; 3], expected: &str| {
            assert_eq!(fitted(shape(from), points).to_string(), expected, "{from} for {points:?}");
        };
        check("point:64x4x1", [512, 512, 512], "point:64x4x1");
        check("point:64x4x1", [33, 512, 512], "point:64x4x1");
        check("point:64x4x1", [32, 512, 512], "point:32x8x1");
        check("point:64x4x1", [1, 512, 512], "point:1x256x1");
        check("point:64x4x1", [1, 1, 512], "point:1x1x64");
        check("point:64x4x1", [512, 1, 1], "point:64x1x1");
        check("point:64x4x1", [512, 1, 4], "point:64x1x4");
        check("point:64x4x1", [1, 1, 1], "point:1x1x1");
        check("march:64x4:32", [8, 512, 512], "march:8x32:32");
        check("march:64x4:32", [8, 3, 512], "march:8x4:32");
        assert_eq!(fitted(row([32, 4, 1]), [9, 8, 100]).block, [8, 16, 1]);
        assert_eq!(fitted(row([32, 4, 1]), [9, 100, 1]).block, [32, 1, 1]);
    }

    #[test]
    fn blocks_shrink_to_what_a_kernel_can_have() {
        let check = |threads, expected: &str| {
            assert_eq!(limited(shape("point:64x4x1"), &Limits { threads }).to_string(), expected);
        };
        check(256, "point:64x4x1");
        check(128, "point:64x2x1");
        check(32, "point:32x1x1");
        // Nothing fits, and the driver says so.
        check(0, "point:1x1x1");
    }

    #[test]
    fn candidates_fit_the_box_and_the_kernel() {
        let both = [Walk::Point, Walk::March];
        let names = |walks: &[Walk], points, limits: Limits| {
            candidates(walks, points, |_| limits).iter().map(Shape::to_string).collect::<Vec<_>>()
        };
        let all = names(&both, [512, 512, 512], FREE);
        assert_eq!(all.len(), 6 + 4 * 4, "{all:?}");
        for (place, name) in all.iter().enumerate() {
            assert!(!all[..place].contains(name), "{name}");
            assert!(FREE.allow(&shape(name)));
        }
        assert_eq!(names(&[Walk::Point], [512, 512, 512], FREE).len(), 6);
        assert!(names(&[Walk::Row], [512, 512, 512], FREE).is_empty());
        let few = names(&both, [512, 512, 512], Limits { threads: 128 });
        assert_eq!(few, ["march:32x4:16", "march:32x4:32", "march:32x4:64", "march:32x4:8"]);
        let flat = names(&both, [2048, 2048, 10], FREE);
        assert!(flat.contains(&"march:64x4:16".into()) && !flat.contains(&"march:64x4:32".into()), "{flat:?}");
        assert!(names(&both, [1, 2048, 2048], FREE).is_empty());
    }

    /// The points that the threads of a grid compute, as kernels say it.
    fn computed(shape: Shape, part: &Box3, grid: [u32; 3]) -> Vec<[i64; 3]> {
        let threads: Vec<i64> = (0..3).map(|axis| i64::from(grid[axis] * shape.block[axis])).collect();
        let size = part.size().map(|n| n as i64);
        let mut points = Vec::new();
        for (a, b, c) in (0..threads[0]).flat_map(|a| (0..threads[1]).map(move |b| (a, b))).flat_map(|(a, b)| {
            let layers = threads[2];
            (0..layers).map(move |c| (a, b, c))
        }) {
            match shape.walk {
                Walk::Point => points.push([a, b, c]),
                Walk::March => {
                    let each = size[2].div_euclid(i64::from(grid[2])) + i64::from(size[2] % i64::from(grid[2]) > 0);
                    assert!(each <= i64::from(shape.planes));
                    points.extend((c * each..((c + 1) * each)).map(|k| [a, b, k]));
                }
                Walk::Row => points.extend((0..size[0]).map(|i| [i, a, b])),
            }
        }
        points.retain(|point| (0..3).all(|axis| point[axis] < size[axis]));
        points.iter().map(|point| std::array::from_fn(|axis| part.lo[axis] + point[axis])).collect()
    }

    #[test]
    fn every_point_is_computed_once_within_the_limits_of_the_grid() {
        let range = Box3 { lo: [-2, 3, 5], hi: [7, 11, 18] };
        for shape in
            [shape("point:4x2x1"), shape("point:2x2x2"), shape("march:4x2:3"), shape("march:2x1:100"), row([2, 2, 1])]
        {
            for (most, split) in [([100; 3], false), ([100, 2, 100], true), ([1, 2, 3], true), ([1, 1, 1], true)] {
                let pieces: Vec<_> = pieces(shape, most, range).collect();
                let mut points = Vec::new();
                for (part, grid) in &pieces {
                    assert!((0..3).all(|axis| (1..=most[axis]).contains(&grid[axis])), "{shape} {grid:?}");
                    points.extend(computed(shape, part, *grid));
                }
                assert_eq!(pieces.len() > 1, split, "{shape} {most:?}");
                let count = points.len();
                points.sort_unstable();
                points.dedup();
                assert_eq!((count, points.len() as u64), (points.len(), range.points()), "{shape} {most:?}");
                assert!(points.iter().all(|point| range.holds(*point)));
            }
        }
        assert_eq!(pieces(shape("point:4x2x1"), [1; 3], Box3::EMPTY).count(), 0);
    }

    #[test]
    fn grids_of_long_boxes_are_split_along_the_axis_that_is_too_long() {
        let range = Box3 { lo: [0; 3], hi: [1, 1, 70_000] };
        let found: Vec<_> = pieces(shape("point:64x4x1"), GRID, range).collect();
        let part = |lo, hi| Box3 { lo: [0, 0, lo], hi: [1, 1, hi] };
        assert_eq!(found, [(part(0, 65_535), [1, 1, 65_535]), (part(65_535, 70_000), [1, 1, 4465])]);
        let march: Vec<_> = pieces(shape("march:64x4:8"), GRID, range).collect();
        assert_eq!(march, [(range, [1, 1, 8750])]);
    }
}
