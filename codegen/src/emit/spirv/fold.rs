//! How a row's values become one: in the order of X, by the same operations on every device.
//!
//! A sum of floats keeps [`LANES`] running sums in double precision, a point adding to the one of its X index modulo
//! their number, each with what rounding took from it. They need no memory that is indexed: at each point the lanes
//! move on by one, so that the point's own is always the first, and at the end of the row they are put in order.

use rspirv::spirv::{Op, Word};

use super::module::Module;
use crate::ir::{Binary, Family, Id, Kernel, Output, Role, Type, Value};

/// The running sums of a row of floats.
const LANES: usize = 8;

/// What a row keeps while it folds a result.
pub(super) struct Fold {
    /// The result.
    pub(super) output: Id<Output>,
    kind: Kind,
    /// The type of the values.
    from: Type,
    /// The type of what is kept and stored.
    ty: Type,
}

#[derive(Clone, Copy)]
enum Kind {
    /// The lanes, then what each of them lost.
    FloatSum,
    IntegerSum,
    /// What compares like this takes the place of what was there.
    Extreme(Binary),
}

/// The type in which a result is stored.
pub(super) fn stored(output: &Output) -> Type {
    match (output.role, output.ty.family()) {
        (Role::Sum, Family::Float) => Type::F64,
        (Role::Sum, Family::Signed) => Type::I64,
        (Role::Sum, Family::Unsigned | Family::Bool) => Type::U64,
        (Role::Value | Role::Max | Role::Min, _) => output.ty,
    }
}

impl Fold {
    /// All that `kernel` folds.
    pub(super) fn of(kernel: &Kernel) -> Vec<Fold> {
        let fold = |(id, output): (Id<Output>, &Output)| {
            let kind = match (output.role, output.ty.is_float()) {
                (Role::Value, _) => return None,
                (Role::Sum, true) => Kind::FloatSum,
                (Role::Sum, false) => Kind::IntegerSum,
                (Role::Max, _) => Kind::Extreme(Binary::Gt),
                (Role::Min, _) => Kind::Extreme(Binary::Lt),
            };
            Some(Fold { output: id, kind, from: output.ty, ty: stored(output) })
        };
        kernel.outputs.enumerate().filter_map(fold).collect()
    }

    /// The type of each value that is kept.
    pub(super) fn ty(&self, module: &Module) -> Word {
        module.ty(self.ty)
    }

    /// What is kept before the first point.
    pub(super) fn initial(&self, module: &mut Module) -> Vec<Word> {
        let zero = Value::from_bits(self.ty, 0);
        match self.kind {
            Kind::FloatSum => vec![module.literal(zero); 2 * LANES],
            Kind::IntegerSum => vec![module.literal(zero)],
            Kind::Extreme(beats) => vec![module.literal(beaten_by_all(beats, self.ty))],
        }
    }

    /// The number of values that a point changes.
    pub(super) fn changes(&self) -> usize {
        match self.kind {
            Kind::FloatSum => 2,
            Kind::IntegerSum | Kind::Extreme(_) => 1,
        }
    }

    /// Folds in the `value` of a point, where `kept` is what there was; the ids `changed` get what changes.
    pub(super) fn add(&self, module: &mut Module, kept: &[Word], value: Word, changed: &[Word]) {
        let ty = self.ty(module);
        match self.kind {
            Kind::FloatSum => {
                let value = module.cast(self.from, self.ty, value);
                let [sum, lost] = [changed[0], changed[1]];
                module.define(Op::FAdd, ty, sum, &[kept[0], value]);
                let rounded = rounded(module, kept[0], value, sum);
                module.define(Op::FAdd, ty, lost, &[kept[LANES], rounded]);
            }
            Kind::IntegerSum => {
                let value = module.cast(self.from, self.ty, value);
                module.define(Op::IAdd, ty, changed[0], &[kept[0], value]);
            }
            Kind::Extreme(beats) => {
                let mut value = value;
                if self.ty.is_float() {
                    // -0 becomes +0.
                    let zero = module.literal(Value::from_bits(self.ty, 0));
                    value = module.value(Op::FAdd, ty, &[value, zero]);
                }
                let mut takes = module.binary(beats, self.ty, value, kept[0]);
                if self.ty.is_float() {
                    let is_nan = module.binary(Binary::Ne, self.ty, value, value);
                    takes = module.binary(Binary::Or, Type::Bool, is_nan, takes);
                }
                module.define(Op::Select, ty, changed[0], &[takes, value, kept[0]]);
            }
        }
    }

    /// What is kept for the point that lies `step` behind.
    pub(super) fn advance(&self, kept: &[Word], changed: &[Word], step: usize) -> Vec<Word> {
        match self.kind {
            Kind::FloatSum => {
                let mut next = kept.to_vec();
                for (lanes, changed) in next.chunks_exact_mut(LANES).zip(changed) {
                    lanes[0] = *changed;
                    lanes.rotate_left(step);
                }
                next
            }
            Kind::IntegerSum | Kind::Extreme(_) => changed.to_vec(),
        }
    }

    /// The value of the row, where `kept` is what there was for a point at X index `end`, behind the last one.
    pub(super) fn row(&self, module: &mut Module, kept: &[Word], end: Word) -> Word {
        match self.kind {
            Kind::FloatSum => {
                let [sums, lost] = [0, LANES].map(|start| in_order(module, &kept[start..start + LANES], end));
                total(module, &sums, &lost)
            }
            Kind::IntegerSum | Kind::Extreme(_) => kept[0],
        }
    }
}

/// What the rounded `sum` of two doubles lacks.
fn rounded(module: &mut Module, a: Word, b: Word, sum: Word) -> Word {
    let ty = module.ty(Type::F64);
    let b_in_sum = module.value(Op::FSub, ty, &[sum, a]);
    let a_in_sum = module.value(Op::FSub, ty, &[sum, b_in_sum]);
    let of_a = module.value(Op::FSub, ty, &[a, a_in_sum]);
    let of_b = module.value(Op::FSub, ty, &[b, b_in_sum]);
    module.value(Op::FAdd, ty, &[of_a, of_b])
}

/// The lanes from 0 on, where the first of `lanes` is that of X index `end`.
fn in_order(module: &mut Module, lanes: &[Word], end: Word) -> Vec<Word> {
    let (double, index, truth) = (module.ty(Type::F64), module.index, module.ty(Type::Bool));
    let mut lanes = lanes.to_vec();
    for distance in [1, 2, 4] {
        let (bit, zero) = (module.index_constant(distance as i64), module.index_constant(0));
        let bit = module.value(Op::BitwiseAnd, index, &[end, bit]);
        let moves = module.value(Op::INotEqual, truth, &[bit, zero]);
        let from = |lane: usize| (lane + LANES - distance) % LANES;
        lanes =
            (0..LANES).map(|lane| module.value(Op::Select, double, &[moves, lanes[from(lane)], lanes[lane]])).collect();
    }
    lanes
}

/// The lanes in order, then what they lost, unless that has no meaning because a sum is infinite.
fn total(module: &mut Module, sums: &[Word], losses: &[Word]) -> Word {
    let ty = module.ty(Type::F64);
    let zero = module.literal(Value::F64(0.0));
    let (mut sum, mut lost) = (zero, zero);
    for (&lane, &lane_lost) in sums.iter().zip(losses) {
        let next = module.value(Op::FAdd, ty, &[sum, lane]);
        let rounded = rounded(module, sum, lane, next);
        lost = module.value(Op::FAdd, ty, &[lost, rounded]);
        lost = module.value(Op::FAdd, ty, &[lost, lane_lost]);
        sum = next;
    }
    let nothing = module.value(Op::FSub, ty, &[lost, lost]);
    let is_finite = module.binary(Binary::Eq, Type::F64, nothing, zero);
    let whole = module.value(Op::FAdd, ty, &[sum, lost]);
    module.value(Op::Select, ty, &[is_finite, whole, sum])
}

/// The value that no other loses against in such a comparison.
fn beaten_by_all(beats: Binary, ty: Type) -> Value {
    let largest_is_wanted = beats == Binary::Gt;
    let infinity = if largest_is_wanted { f64::NEG_INFINITY } else { f64::INFINITY };
    let sign = 1 << (8 * ty.bytes() - 1);
    match ty {
        Type::F64 => Value::F64(infinity),
        Type::F32 => Value::F32(infinity as f32),
        Type::I64 | Type::I32 | Type::I8 if largest_is_wanted => Value::from_bits(ty, sign),
        Type::I64 | Type::I32 | Type::I8 => Value::from_bits(ty, sign - 1),
        Type::U64 | Type::U32 | Type::U8 if largest_is_wanted => Value::from_bits(ty, 0),
        Type::U64 | Type::U32 | Type::U8 => Value::from_bits(ty, sign | (sign - 1)),
        Type::Bool => unreachable!("verified: truth values aren't folded"),
    }
}
