//! Ranges: the points that a stage updates.

use std::ops::{Bound, RangeBounds};

use crate::error::{Error, Result};
use crate::geometry::{AXES, Box3};
use crate::offset::Offset;

/// One past the last cell along an axis, whatever its length: `.x(1..END - 1)` leaves out a cell on either side, and
/// `END - 1` is the last cell.
///
/// It stands for a number that is known when the step is recorded, so only `END - n` means anything.
pub const END: i64 = 1 << 62;

/// Points of the grid that a call is narrowed to.
///
/// Along an axis that isn't named, a range holds every point at which all reads of the kernel are defined. Indices
/// that are named count from the first cell, or from one past the last one, [`END`]: `.x(1..END - 1)` leaves out a cell
/// on either side. They count along the field that is updated. A negative index is one from the end too, as in NumPy: `-1`
/// is `END - 1`.
///
/// [`x`](Self::x), [`y`](Self::y), [`z`](Self::z) and the colours narrow a range further: of the points that it has, those
/// stay that they name too. So `Range::face(X).x(0..2)` and `.red().black()` have no points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    axes: [Span; 3],
    /// What the axes were narrowed to after that; [`Span::Widest`] for not.
    narrowed: [[Span; MOST_NARROWED]; 3],
    parity: Option<u8>,
    fault: Option<Fault>,
}

/// How often a range can be narrowed along one axis.
const MOST_NARROWED: usize = 3;

/// Why a range is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// This direction names no face, edge or corner.
    Direction([i32; 3]),
    /// It was narrowed too often along this axis.
    Narrowed(&'static str),
}

/// Indices from here on count from [`END`].
const FROM_END: i64 = END / 2 + 1;

/// The part of a range along one axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Span {
    /// Where all reads are defined.
    Widest,
    /// From an index to one past another, as the user writes them.
    From(i64, i64),
    /// So many cells at the low end, or all.
    Low(i64),
    /// So many cells at the high end, but for those that are as near to the low end.
    High(i64),
    /// The cells that are at least so far from either end.
    Inner(i64),
}

impl Span {
    fn new(cells: impl RangeBounds<i64>) -> Self {
        let lo = match cells.start_bound() {
            Bound::Included(&lo) => lo,
            Bound::Excluded(&lo) => lo.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let hi = match cells.end_bound() {
            // One past the last cell is the end of the axis.
            Bound::Included(&-1) | Bound::Unbounded => END,
            Bound::Included(&hi) => hi.saturating_add(1),
            Bound::Excluded(&hi) => hi,
        };
        Span::From(lo, hi)
    }

    /// The cell at the end of an axis that a direction points to.
    fn end(step: i32) -> Self {
        match step {
            0 => Span::Widest,
            1.. => Span::From(END - 1, END),
            _ => Span::From(0, 1),
        }
    }
}

impl Range {
    const fn new(axes: [Span; 3]) -> Self {
        Self { axes, narrowed: [[Span::Widest; MOST_NARROWED]; 3], parity: None, fault: None }
    }

    /// Every point at which all reads are defined: what a call has without a range.
    pub const fn widest() -> Self {
        Self::new([Span::Widest; 3])
    }

    /// Every point of the field.
    pub const fn all() -> Self {
        Self::new([Span::From(0, END); 3])
    }

    /// The points that are at least `margin` cells away from every face.
    pub fn interior(margin: u32) -> Self {
        let margin = i64::from(margin);
        Self::new([Span::From(margin, END - margin); 3])
    }

    /// The outermost cells on a face, named by the direction out of the grid: `Z` for the last plane, `-Z` for the first.
    ///
    /// A sum of directions names an edge or a corner: `Range::face(X - Z)`.
    pub fn face(outward: Offset) -> Self {
        let steps = [outward.x, outward.y, outward.z];
        let range = Self::new(steps.map(Span::end));
        if steps != [0; 3] && steps.iter().all(|step| (-1..=1).contains(step)) {
            return range;
        }
        Self { fault: Some(Fault::Direction(steps)), ..range }
    }

    /// The cells where two faces meet.
    pub fn edge(one: Offset, other: Offset) -> Self {
        let faces = [Self::face(one), Self::face(other)];
        if let Some(wrong) = faces.into_iter().find(|face| face.fault.is_some()) {
            return wrong;
        }
        // Faces of one axis don't meet.
        let steps = |one: i32, other: i32| if one != 0 && other != 0 { None } else { Some(one + other) };
        match (steps(one.x, other.x), steps(one.y, other.y), steps(one.z, other.z)) {
            (Some(x), Some(y), Some(z)) => Self::face(Offset::new(x, y, z)),
            _ => Self { fault: Some(Fault::Direction([0; 3])), ..faces[0] },
        }
    }

    /// The box from cell `lo` to before cell `hi`.
    pub fn boxed(lo: [i64; 3], hi: [i64; 3]) -> Self {
        Self::new(std::array::from_fn(|axis| Span::From(lo[axis], hi[axis])))
    }

    /// All cells within `depth` cells of a face, as boxes that don't overlap.
    pub fn shell(depth: u32) -> Vec<Self> {
        let depth = i64::from(depth);
        if depth == 0 {
            return Vec::new();
        }
        let (all, low, high, inner) = (Span::From(0, END), Span::Low(depth), Span::High(depth), Span::Inner(depth));
        let boxes = [
            [all, all, low],
            [all, all, high],
            [all, low, inner],
            [all, high, inner],
            [low, inner, inner],
            [high, inner, inner],
        ];
        boxes.map(Self::new).to_vec()
    }

    /// Only these cells along X.
    pub fn x(self, cells: impl RangeBounds<i64>) -> Self {
        self.narrow(0, Span::new(cells))
    }

    /// Only these cells along Y.
    pub fn y(self, cells: impl RangeBounds<i64>) -> Self {
        self.narrow(1, Span::new(cells))
    }

    /// Only these cells along Z.
    pub fn z(self, cells: impl RangeBounds<i64>) -> Self {
        self.narrow(2, Span::new(cells))
    }

    fn narrow(mut self, axis: usize, span: Span) -> Self {
        const ALL: Span = Span::From(0, END);
        if matches!(self.axes[axis], Span::Widest | ALL) {
            self.axes[axis] = span;
        } else if span == ALL {
            // It takes nothing away.
        } else if let Some(free) = self.narrowed[axis].iter_mut().find(|known| **known == Span::Widest) {
            *free = span;
        } else {
            self.fault.get_or_insert(Fault::Narrowed(AXES[axis]));
        }
        self
    }

    /// Only points whose indices add up to an even number, the corner (0, 0, 0) among them.
    pub fn red(self) -> Self {
        self.parity(0)
    }

    /// Only points whose indices add up to an odd number.
    pub fn black(self) -> Self {
        self.parity(1)
    }

    /// Only points whose indices add up to an even (0) or to an odd number (1).
    pub fn parity(self, odd: usize) -> Self {
        let parity = (odd % 2) as u8;
        if self.parity.is_some_and(|known| known != parity) {
            // No point has both colours.
            return Self { axes: [Span::From(0, 0); 3], ..self };
        }
        Self { parity: Some(parity), ..self }
    }

    /// Which of the points: all, or those whose indices add up to an even (0) or an odd (1) number.
    pub(crate) fn colour(&self) -> Option<u8> {
        self.parity
    }

    /// An error if it is no range for the call of `kernel`, which updates `field`.
    pub(crate) fn check(&self, kernel: &str, field: &str) -> Result<()> {
        match self.fault {
            None => Ok(()),
            Some(Fault::Direction(direction)) => Err(Error::NoFace { field: field.into(), direction }),
            Some(Fault::Narrowed(axis)) => {
                Err(Error::RangeNarrowed { kernel: kernel.into(), axis, most: MOST_NARROWED + 1 })
            }
        }
    }

    /// Whether it leaves an axis to what reads allow.
    pub(crate) fn asks_for_widest(&self) -> bool {
        self.axes.contains(&Span::Widest)
    }

    /// The box of the range in a field with the cells `domain`; `widest` holds the points at which all reads are
    /// defined.
    pub(crate) fn resolve(&self, domain: &Box3, widest: &Box3) -> Result<Box3> {
        let mut found = *domain;
        for (axis, name) in AXES.into_iter().enumerate() {
            let cells = domain.hi[axis] - domain.lo[axis];
            let bounds = |span: Span| {
                Ok(match span {
                    Span::Widest => (widest.lo[axis], widest.hi[axis]),
                    Span::Low(depth) => (domain.lo[axis], domain.lo[axis] + depth.min(cells)),
                    Span::High(depth) => (domain.lo[axis] + depth.max(cells - depth), domain.hi[axis]),
                    Span::Inner(depth) => (domain.lo[axis] + depth, domain.hi[axis] - depth),
                    Span::From(lo, hi) => {
                        let index = |n: i64| match n {
                            ..0 => n.saturating_add(cells),
                            FROM_END.. => n - END + cells,
                            _ => n,
                        };
                        let (first, end) = (index(lo), index(hi));
                        // A margin may be as wide as the grid: then nothing is left.
                        let empty = end <= first;
                        if !empty && (first < 0 || end > cells) {
                            let written = written(lo, hi);
                            return Err(Error::RangeOutside { axis: name, written, lo: first, hi: end, cells });
                        }
                        if empty { (0, 0) } else { (domain.lo[axis] + first, domain.lo[axis] + end) }
                    }
                })
            };
            let (mut lo, mut hi) = bounds(self.axes[axis])?;
            for span in self.narrowed[axis].into_iter().filter(|span| *span != Span::Widest) {
                let (from, to) = bounds(span)?;
                (lo, hi) = (lo.max(from), hi.min(to));
            }
            (found.lo[axis], found.hi[axis]) = (lo, hi.max(lo));
        }
        Ok(if found.is_empty() { Box3::EMPTY } else { found })
    }
}

/// A span as it is written in Rust.
fn written(lo: i64, hi: i64) -> String {
    let index = |n: i64| match n {
        ..FROM_END => n.to_string(),
        END => "END".into(),
        FROM_END..END => format!("END - {}", END - n),
        _ => format!("END + {}", n - END),
    };
    match (lo, hi) {
        (0, hi) => format!("..{}", index(hi)),
        (lo, END) => format!("{}..", index(lo)),
        (lo, hi) => format!("{}..{}", index(lo), index(hi)),
    }
}

/// What a call is narrowed to: one range or several that don't overlap.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no range of points",
    label = "no range",
    note = "ranges are `Range::face(Z)`, `Range::edge(X, Z)`, `Range::interior(1)`, `Range::all()`, `Range::widest().x(1..END - 1)`, \
            `Range::boxed([1, 1, 1], [9, 9, 9])`, and arrays of such"
)]
pub trait IntoRanges {
    /// The ranges.
    fn ranges(self) -> Vec<Range>;
}

#[diagnostic::do_not_recommend]
impl IntoRanges for Range {
    fn ranges(self) -> Vec<Range> {
        vec![self]
    }
}

#[diagnostic::do_not_recommend]
impl<const N: usize> IntoRanges for [Range; N] {
    fn ranges(self) -> Vec<Range> {
        self.to_vec()
    }
}

#[diagnostic::do_not_recommend]
impl IntoRanges for Vec<Range> {
    fn ranges(self) -> Vec<Range> {
        self
    }
}

#[diagnostic::do_not_recommend]
impl IntoRanges for &[Range] {
    fn ranges(self) -> Vec<Range> {
        self.to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offset::{X, Y, Z};

    const DOMAIN: Box3 = Box3 { lo: [0; 3], hi: [5, 6, 7] };
    const WIDEST: Box3 = Box3 { lo: [1, 0, 2], hi: [4, 6, 7] };

    fn check(range: Range, lo: [i64; 3], hi: [i64; 3]) {
        assert_eq!(range.resolve(&DOMAIN, &WIDEST).unwrap(), Box3 { lo, hi }, "{range:?}");
    }

    #[test]
    fn indices_count_from_either_end_and_the_rest_is_as_wide_as_reads_allow() {
        check(Range::widest(), WIDEST.lo, WIDEST.hi);
        check(Range::all(), DOMAIN.lo, DOMAIN.hi);
        check(Range::interior(0), DOMAIN.lo, DOMAIN.hi);
        check(Range::interior(2), [2; 3], [3, 4, 5]);
        check(Range::face(Z), [1, 0, 6], [4, 6, 7]);
        check(Range::face(-Z).x(..), [0, 0, 0], [5, 6, 1]);
        check(Range::edge(X, -Y), [4, 0, 2], [5, 1, 7]);
        check(Range::face(X + Y - Z), [4, 5, 0], [5, 6, 1]);
        check(Range::all().x(1..END - 1).y(2..=END - 1).z(..=2), [1, 2, 0], [4, 6, 3]);
        check(Range::all().x(END - 2..).y(..END - 5).z(3..4), [3, 0, 3], [5, 1, 4]);
        check(Range::all().x(END - 4..END).y(..END).z(..=END - 7), [1, 0, 0], [5, 6, 1]);
        check(Range::boxed([0, 1, END - 2], [2, END - 1, 7]), [0, 1, 5], [2, 5, 7]);
        check(Range::boxed([1; 3], [END - 1; 3]), [1; 3], [4, 5, 6]);
    }

    #[test]
    fn negative_indices_count_from_the_end_as_well() {
        for cells in 1..=4 {
            let [negative, named] = [Range::all().y(1..-cells), Range::all().y(1..END - cells)];
            assert_eq!(negative.resolve(&DOMAIN, &WIDEST).unwrap(), named.resolve(&DOMAIN, &WIDEST).unwrap());
        }
        check(Range::all().x(-2..).y(..-5).z(..=-1), [3, 0, 0], [5, 1, 7]);
        check(Range::boxed([0, 1, -2], [2, -1, 7]), [0, 1, 5], [2, 5, 7]);
    }

    #[test]
    fn a_margin_as_wide_as_the_grid_leaves_nothing() {
        for range in [Range::interior(3), Range::interior(40), Range::all().x(3..3), Range::all().x(4..END - 3)] {
            assert_eq!(range.resolve(&DOMAIN, &WIDEST).unwrap(), Box3::EMPTY, "{range:?}");
        }
    }

    #[test]
    fn cells_outside_the_grid_are_refused_by_axis() {
        let ranges = [
            Range::all().y(0..7),
            Range::all().y(-7..2),
            Range::boxed([0, END - 7, 0], [5, 2, 7]),
            Range::all().y(2..END + 1),
            Range::all().y(0..END / 2),
            Range::boxed([0; 3], [5, 7, 7]),
        ];
        for range in ranges {
            let error = range.resolve(&DOMAIN, &WIDEST).unwrap_err();
            assert!(matches!(error, Error::RangeOutside { axis: "Y", cells: 6, .. }), "{range:?}: {error}");
        }
    }

    #[test]
    fn a_range_outside_is_told_as_it_was_written() {
        let told = |range: Range| range.resolve(&DOMAIN, &WIDEST).unwrap_err().to_string();
        assert_eq!(
            told(Range::all().x(END - 9..)),
            "the range END - 9.. along X leaves the field, which has 5 cells there"
        );
        assert_eq!(told(Range::all().x(-9..)), "the range -9.. along X leaves the field, which has 5 cells there");
        assert!(told(Range::all().y(..7)).starts_with("the range ..7 along Y"));
        assert!(told(Range::all().z(2..END - 1).z(3..=7)).starts_with("the range 3..8 along Z"));
    }

    #[test]
    fn what_is_narrowed_twice_has_the_points_of_both() {
        check(Range::all().x(1..).x(..2), [1, 0, 0], [2, 6, 7]);
        check(Range::widest().x(..-1).x(1..3).x(END - 3..), [2, 0, 2], [3, 6, 7]);
        check(Range::interior(1).y(2..), [1, 2, 1], [4, 5, 6]);
        check(Range::shell(2)[1].z(..6), [0, 0, 5], [5, 6, 6]);
        for none in [Range::face(X).x(0..2), Range::all().red().black(), Range::boxed([0; 3], [2, 2, 2]).z(3..5)] {
            assert_eq!(none.resolve(&DOMAIN, &WIDEST).unwrap(), Box3::EMPTY, "{none:?}");
        }
        assert_eq!(Range::all().red().red(), Range::all().red());
        let often = Range::all().x(0..4).x(1..).x(..-1).x(0..3);
        assert!(often.check("k", "u").is_ok());
        let error = often.x(1..2).check("k", "u").unwrap_err();
        assert!(matches!(error, Error::RangeNarrowed { axis: "X", most: 4, .. }), "{error}");
    }

    #[test]
    fn directions_that_name_no_face_are_refused() {
        const HERE: Offset = Offset::new(0, 0, 0);
        for wrong in [
            Range::face(HERE),
            Range::face(2 * X),
            Range::face(X - X),
            Range::edge(X, -X),
            Range::edge(X, X),
            Range::edge(X, 2 * Y),
            Range::edge(HERE, Z),
            Range::edge(X + Y, -Y),
        ] {
            assert!(matches!(wrong.check("k", "u"), Err(Error::NoFace { .. })), "{wrong:?}");
        }
        let error = Range::edge(X, 2 * Y).red().x(..).check("k", "u").unwrap_err();
        assert!(error.to_string().starts_with("(0, 2, 0) names no face of field `u`"), "{error}");
        for right in [Range::face(-Y), Range::face(X + Y - Z), Range::edge(Z, -X), Range::edge(X + Y, Z)] {
            assert!(right.check("k", "u").is_ok(), "{right:?}");
        }
    }

    #[test]
    fn a_shell_holds_every_outer_cell_once() {
        for depth in 1..9 {
            let boxes = Range::shell(depth).into_iter().map(|range| range.resolve(&DOMAIN, &WIDEST).unwrap());
            let boxes: Vec<_> = boxes.collect();
            let inner = Range::interior(depth).resolve(&DOMAIN, &WIDEST).unwrap();
            for z in 0..7 {
                for y in 0..6 {
                    for x in 0..5 {
                        let count = boxes.iter().filter(|part| part.holds([x, y, z])).count();
                        assert_eq!(count, usize::from(!inner.holds([x, y, z])), "{depth} {x} {y} {z}");
                    }
                }
            }
        }
    }
}
