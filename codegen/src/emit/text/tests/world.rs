//! A small grid, what kernels find on it, and what they must leave behind: the interpreter's results at the points that are
//! updated, folded as the runtime's rules say.

use super::super::address::{Axes, ROWS, Stride, WHOLE, along, stride};
use super::super::fold::row_type;
use crate::interpret::{Point, interpret};
use crate::ir::{Axis, Field, Id, Offset, Output, Param, Role, Type, Value};
use crate::random::Random;
use crate::verify::Verified;

/// Cells of the grid along each axis; a frame of one cell is not computed.
pub(super) const GRID: [usize; 3] = [13, 4, 6];
/// The cell with local index (0, 0, 0).
pub(super) const ORIGIN: [usize; 3] = [2, 1, 3];
/// The global index of the grid's first cell.
const FIRST: [i32; 3] = [100, -3, 7];

/// The first point that is computed, in local indices.
pub(super) fn lo() -> [i32; 3] {
    ORIGIN.map(|cell| 1 - cell as i32)
}

/// The global index of the origin.
pub(super) fn global() -> [i32; 3] {
    std::array::from_fn(|axis| FIRST[axis] + ORIGIN[axis] as i32)
}

/// Where cell `at` of the grid lies in something that extends along `axes`.
pub(super) fn index(axes: Axes, at: [usize; 3]) -> usize {
    let [x, y, _] = GRID;
    let terms = along(axes).map(|axis| match stride(axes, axis) {
        Stride::Cell => at[axis as usize],
        Stride::Row => at[axis as usize] * x,
        Stride::Plane => at[axis as usize] * x * y,
        Stride::Rows => at[axis as usize] * y,
    });
    terms.sum()
}

/// What kernels see: a grid for each field, a value for each scalar.
pub(super) struct World {
    /// As many values as the grid has cells, however few of them the field has.
    pub(super) grids: Vec<Vec<Value>>,
    pub(super) scalars: Vec<Value>,
    /// The field whose place each result takes.
    pub(super) replaced: Vec<Option<usize>>,
    /// How the kernel is run.
    pub(super) launches: Vec<Launch>,
}

/// Which points are updated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Launch {
    /// -1, 0 or 1.
    pub(super) parity: i32,
    /// How many points of each row.
    pub(super) width: usize,
}

const WIDTH: usize = GRID[0] - 2;

/// All points.
pub(super) const ALL: Launch = Launch { parity: -1, width: WIDTH };

impl World {
    /// Random values; all points are updated, and results take nothing's place.
    pub(super) fn random(random: &mut Random, kernel: &Verified) -> Self {
        let cells: usize = GRID.iter().product();
        Self::of(
            kernel.fields.iter().map(|field| (0..cells).map(|_| random.value(field.ty)).collect()).collect(),
            kernel.params.iter().map(|param| random.value(param.ty)).collect(),
        )
    }

    /// The same with these values.
    pub(super) fn of(grids: Vec<Vec<Value>>, scalars: Vec<Value>) -> Self {
        World { grids, scalars, replaced: Vec::new(), launches: vec![ALL] }
    }

    /// The kernel is also run for the points of each parity, of which a row may have none.
    pub(super) fn by_parity(mut self) -> Self {
        self.launches.extend([(0, WIDTH), (1, WIDTH), (0, 1)].map(|(parity, width)| Launch { parity, width }));
        self
    }

    /// What is left of a result, at each of [`places`]; nothing where nothing is written.
    pub(super) fn expected(&self, kernel: &Verified, output: Id<Output>, launch: Launch) -> Vec<Option<Value>> {
        let Output { ty, role } = kernel.outputs[output];
        let value = |at: [usize; 3]| interpret(kernel, &At { world: self, kernel, at })[output.index()];
        let updated = |at: [usize; 3]| {
            let local: i32 = (0..3).map(|axis| at[axis] as i32 - ORIGIN[axis] as i32).sum();
            at[0] <= launch.width && (launch.parity < 0 || local.rem_euclid(2) == launch.parity)
        };
        places(role)
            .into_iter()
            .map(|at| match role {
                Role::Value if updated(at) => Some(value(at)),
                Role::Value => self.replaced(output).map(|field| self.grids[field][index(WHOLE, at)]),
                Role::Sum | Role::Max | Role::Min => {
                    let row = (1..=WIDTH).map(|x| [x, at[1], at[2]]).filter(|at| updated(*at));
                    let row = row.map(|at| (at[0] as i32 - ORIGIN[0] as i32, value(at)));
                    Some(fold(role, ty, &row.collect::<Vec<_>>()))
                }
            })
            .collect()
    }

    /// The field whose place a result takes.
    pub(super) fn replaced(&self, output: Id<Output>) -> Option<usize> {
        self.replaced.get(output.index()).copied().flatten()
    }
}

/// Where a result is looked at.
pub(super) fn places(role: Role) -> Vec<[usize; 3]> {
    let [x, y, z] = GRID;
    let width = if role == Role::Value { x - 1 } else { 2 };
    (1..z - 1).flat_map(|k| (1..y - 1).flat_map(move |j| (1..width).map(move |i| [i, j, k]))).collect()
}

/// Along which axes a result extends.
pub(super) fn extent(role: Role) -> Axes {
    if role == Role::Value { WHOLE } else { ROWS }
}

/// A point of the grid.
struct At<'w> {
    world: &'w World,
    kernel: &'w Verified,
    at: [usize; 3],
}

impl Point for At<'_> {
    fn load(&self, field: Id<Field>, offset: Offset) -> Value {
        let cell = Axis::ALL.map(|axis| self.at[axis as usize].wrapping_add_signed(offset.along(axis) as isize));
        self.world.grids[field.index()][index(self.kernel.fields[field].axes, cell)]
    }

    fn param(&self, param: Id<Param>) -> Value {
        self.world.scalars[param.index()]
    }

    fn index(&self, axis: Axis) -> i32 {
        FIRST[axis as usize] + self.at[axis as usize] as i32
    }
}

/// The values of a row, at local indices along X, folded by the rules of `dsl-runtime/src/reduction.rs`.
fn fold(role: Role, ty: Type, values: &[(i32, Value)]) -> Value {
    let stored = row_type(&Output { ty, role });
    let float = |value: Value| match value {
        Value::F64(value) => value,
        Value::F32(value) => f64::from(value),
        _ => unreachable!("a float"),
    };
    if role == Role::Sum && ty.is_float() {
        let (mut sums, mut lost) = ([0.0; 8], [0.0; 8]);
        for (x, value) in values {
            let lane = x.rem_euclid(8) as usize;
            add(&mut sums[lane], &mut lost[lane], float(*value));
        }
        let (mut total, mut rest) = (0.0, 0.0);
        for lane in 0..8 {
            add(&mut total, &mut rest, sums[lane]);
            rest += lost[lane];
        }
        return Value::F64(if rest.is_finite() { total + rest } else { total });
    }
    if role == Role::Sum {
        let wide = |value: Value| match value {
            Value::I64(value) => value as u64,
            Value::I32(value) => i64::from(value) as u64,
            Value::I8(value) => i64::from(value) as u64,
            value => value.bits(),
        };
        let sum = values.iter().fold(0_u64, |sum, (_, value)| sum.wrapping_add(wide(*value)));
        return Value::from_bits(stored, sum);
    }
    let order = |a: Value, b: Value| match (a, b) {
        (Value::I64(a), Value::I64(b)) => a.cmp(&b),
        (Value::I32(a), Value::I32(b)) => a.cmp(&b),
        (Value::I8(a), Value::I8(b)) => a.cmp(&b),
        (Value::U64(_) | Value::U32(_) | Value::U8(_), b) => a.bits().cmp(&b.bits()),
        (a, b) => float(a).total_cmp(&float(b)),
    };
    let positive = |value: Value| if float(value) == 0.0 { Value::from_bits(ty, 0) } else { value };
    let numbers: Vec<Value> =
        values.iter().map(|(_, value)| if ty.is_float() { positive(*value) } else { *value }).collect();
    if let Some(none) = numbers.iter().find(|value| ty.is_float() && float(**value).is_nan()) {
        return *none;
    }
    let found = match role {
        Role::Max => numbers.into_iter().max_by(|a, b| order(*a, *b)),
        _ => numbers.into_iter().min_by(|a, b| order(*a, *b)),
    };
    let bits = 8 * ty.bytes();
    let (least, most) = match ty {
        Type::F64 => (Value::F64(f64::NEG_INFINITY), Value::F64(f64::INFINITY)),
        Type::F32 => (Value::F32(f32::NEG_INFINITY), Value::F32(f32::INFINITY)),
        Type::I64 | Type::I32 | Type::I8 => {
            (Value::from_bits(ty, 1 << (bits - 1)), Value::from_bits(ty, (1 << (bits - 1)) - 1))
        }
        Type::U64 | Type::U32 | Type::U8 | Type::Bool => (Value::from_bits(ty, 0), Value::from_bits(ty, u64::MAX)),
    };
    found.unwrap_or(if role == Role::Max { least } else { most })
}

/// Adds to a sum, and what rounding takes from it to what it lost: by the magnitudes (Dekker), where the kernels' way asks
/// for no order.
fn add(sum: &mut f64, lost: &mut f64, value: f64) {
    let total = *sum + value;
    let (large, small) = if sum.abs() >= value.abs() { (*sum, value) } else { (value, *sum) };
    *lost += small - (total - large);
    *sum = total;
}
