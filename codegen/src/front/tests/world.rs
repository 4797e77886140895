//! What a stencil sees, for rustc: enough of the runtime to run the very text that is compiled.

use std::ops::{Add, Index, Mul, Neg, Sub};

use crate::interpret;
use crate::ir::{self, Axis, Id, Param, Role, Type, Value};
use crate::random::Random;

pub(super) const HERE: Offset = Offset([0; 3]);
pub(super) const X: Offset = Offset([1, 0, 0]);
pub(super) const Y: Offset = Offset([0, 1, 0]);
pub(super) const Z: Offset = Offset([0, 0, 1]);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Offset([i32; 3]);

impl Add for Offset {
    type Output = Offset;
    fn add(self, other: Offset) -> Offset {
        Offset(std::array::from_fn(|axis| self.0[axis] + other.0[axis]))
    }
}
impl Neg for Offset {
    type Output = Offset;
    fn neg(self) -> Offset {
        self * -1
    }
}
impl Sub for Offset {
    type Output = Offset;
    fn sub(self, other: Offset) -> Offset {
        self + -other
    }
}
impl Mul<i32> for Offset {
    type Output = Offset;
    fn mul(self, times: i32) -> Offset {
        Offset(self.0.map(|cells| cells * times))
    }
}
impl Mul<Offset> for i32 {
    type Output = Offset;
    fn mul(self, offset: Offset) -> Offset {
        offset * self
    }
}

/// How far a field goes.
const REACH: i32 = 4;

#[derive(Clone, Debug)]
pub(super) struct Field<T>(Vec<T>);

fn cell(Offset(offset): Offset) -> usize {
    offset.into_iter().fold(0, |cell, along| cell * (2 * REACH + 1) + along + REACH) as usize
}

impl<T> Index<Offset> for Field<T> {
    type Output = T;
    fn index(&self, offset: Offset) -> &T {
        &self.0[cell(offset)]
    }
}

/// A field along some axes; it is the same everywhere along the others, and not read along them.
#[derive(Clone, Debug)]
pub(super) struct Thin<T, const ALONG_X: bool, const ALONG_Y: bool, const ALONG_Z: bool>(Field<T>);

pub(super) type FieldX<T> = Thin<T, true, false, false>;
pub(super) type FieldY<T> = Thin<T, false, true, false>;
pub(super) type FieldZ<T> = Thin<T, false, false, true>;
pub(super) type FieldXY<T> = Thin<T, true, true, false>;
pub(super) type FieldXZ<T> = Thin<T, true, false, true>;
pub(super) type FieldYZ<T> = Thin<T, false, true, true>;

impl<T, const ALONG_X: bool, const ALONG_Y: bool, const ALONG_Z: bool> Index<Offset>
    for Thin<T, ALONG_X, ALONG_Y, ALONG_Z>
{
    type Output = T;
    fn index(&self, offset: Offset) -> &T {
        let inside = offset.0.iter().zip([ALONG_X, ALONG_Y, ALONG_Z]).all(|(cells, along)| along || *cells == 0);
        assert!(inside, "{offset:?} leads out of the field");
        &self.0[offset]
    }
}

/// Values on their way into a fold.
macro_rules! folds {
    ($($name:ident)*) => {
        $(#[derive(Clone, Copy, Debug)]
        pub(super) struct $name<T>(pub(super) T);

        impl<T: Bits> Results for $name<T> {
            fn all(self) -> Vec<Seen> {
                let parts = match (Role::$name, self.0.value()) {
                    // Lower halves, and what is above them.
                    (Role::Sum, Value::I64(value)) => vec![Value::I64(value & 0xffff_ffff), Value::I64(value >> 32)],
                    (Role::Sum, Value::U64(value)) => vec![Value::U64(value & 0xffff_ffff), Value::U64(value >> 32)],
                    (_, value) => vec![value],
                };
                parts.into_iter().map(|value| seen(Role::$name, value)).collect()
            }
        })*
    };
}
folds!(Sum Max Min);

#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) i: i32,
    pub(super) j: i32,
    pub(super) k: i32,
}

/// All that the functions under test may take, in their order.
#[derive(Clone, Debug)]
pub(super) struct World {
    pub(super) u: Field<f64>,
    pub(super) v: Field<f32>,
    pub(super) n: Field<i32>,
    pub(super) m: Field<u8>,
    pub(super) q: Field<bool>,
    pub(super) s: [Field<f64>; 2],
    pub(super) gx: FieldX<f64>,
    pub(super) gy: FieldY<f32>,
    pub(super) gz: [FieldZ<f64>; 2],
    pub(super) gxy: FieldXY<i32>,
    pub(super) gxz: FieldXZ<f64>,
    pub(super) gyz: FieldYZ<bool>,
    pub(super) a: f64,
    pub(super) b: f64,
    pub(super) i: i32,
    pub(super) l: i64,
    pub(super) w: u32,
    pub(super) c: bool,
    pub(super) p: Point,
}

/// The parameters as written.
pub(super) const PARAMETERS: &str = "u: &Field<f64>, v: &Field<f32>, n: &Field<i32>, m: &Field<u8>, q: &Field<bool>, \
                                     s: &[Field<f64>; 2], gx: &FieldX<f64>, gy: &FieldY<f32>, gz: &[FieldZ<f64>; 2], \
                                     gxy: &FieldXY<i32>, gxz: &FieldXZ<f64>, gyz: &FieldYZ<bool>, a: f64, b: f64, i: i32, l: i64, w: u32, c: bool, p: Point";

impl World {
    /// Moderate numbers, so that rustc's checks for overflow stay quiet; now and then a float that is none.
    pub(super) fn of(seed: u64) -> World {
        let mut random = Random::new(seed);
        fn field<T>(random: &mut Random, value: impl Fn(&mut Random) -> T) -> Field<T> {
            Field((0..(2 * REACH + 1).pow(3)).map(|_| value(random)).collect())
        }
        let float = |random: &mut Random| match random.below(12) {
            0 => random.pick(&[f64::NAN, f64::INFINITY, -0.0, 0.0, 1.0]),
            _ => (random.below(2001) as f64 - 1000.0) / random.pick(&[8.0, 64.0, 1000.0]),
        };
        let whole = |random: &mut Random| random.below(41) as i32 - 20;
        World {
            u: field(&mut random, float),
            v: field(&mut random, |random| float(random) as f32),
            n: field(&mut random, whole),
            m: field(&mut random, |random| random.below(12) as u8),
            q: field(&mut random, |random| random.once_in(2)),
            s: [(); 2].map(|()| field(&mut random, float)),
            a: float(&mut random),
            b: float(&mut random),
            i: whole(&mut random),
            l: i64::from(whole(&mut random)) * 1000,
            w: random.below(40) as u32,
            c: random.once_in(2),
            p: Point { i: whole(&mut random), j: whole(&mut random), k: whole(&mut random) },
            gx: Thin(field(&mut random, float)),
            gy: Thin(field(&mut random, |random| float(random) as f32)),
            gz: [(); 2].map(|()| Thin(field(&mut random, float))),
            gxy: Thin(field(&mut random, whole)),
            gxz: Thin(field(&mut random, float)),
            gyz: Thin(field(&mut random, |random| random.once_in(2))),
        }
    }
}

impl interpret::Point for World {
    fn load(&self, field: Id<ir::Field>, offset: ir::Offset) -> Value {
        let offset = Offset(offset.0);
        match field.index() {
            0 => Value::F64(self.u[offset]),
            1 => Value::F32(self.v[offset]),
            2 => Value::I32(self.n[offset]),
            3 => Value::U8(self.m[offset]),
            4 => Value::Bool(self.q[offset]),
            at @ (5 | 6) => Value::F64(self.s[at - 5][offset]),
            7 => Value::F64(self.gx[offset]),
            8 => Value::F32(self.gy[offset]),
            at @ (9 | 10) => Value::F64(self.gz[at - 9][offset]),
            11 => Value::I32(self.gxy[offset]),
            12 => Value::F64(self.gxz[offset]),
            13 => Value::Bool(self.gyz[offset]),
            at => unreachable!("there is no field {at}"),
        }
    }

    fn param(&self, param: Id<Param>) -> Value {
        match param.index() {
            0 => Value::F64(self.a),
            1 => Value::F64(self.b),
            2 => Value::I32(self.i),
            3 => Value::I64(self.l),
            4 => Value::U32(self.w),
            _ => Value::Bool(self.c),
        }
    }

    fn index(&self, axis: Axis) -> i32 {
        match axis {
            Axis::X => self.p.i,
            Axis::Y => self.p.j,
            Axis::Z => self.p.k,
        }
    }
}

/// One result as it is compared: what becomes of it, its type and its bits.
pub(super) type Seen = (Role, Type, u64);

/// A result for comparison; whatever is not a number is the same.
pub(super) fn seen(role: Role, value: Value) -> Seen {
    let bits = match value {
        Value::F64(value) if value.is_nan() => f64::NAN.to_bits(),
        Value::F32(value) if value.is_nan() => f32::NAN.to_bits().into(),
        value => value.bits(),
    };
    (role, value.ty(), bits)
}

/// A number or truth value that rustc's code gave.
pub(super) trait Bits {
    fn value(self) -> Value;
}

/// All results that rustc's code gave.
pub(super) trait Results {
    fn all(self) -> Vec<Seen>;
}

macro_rules! values {
    ($($ty:ident $variant:ident)*) => {
        $(impl Bits for $ty {
            fn value(self) -> Value {
                Value::$variant(self)
            }
        }

        impl Results for $ty {
            fn all(self) -> Vec<Seen> {
                vec![seen(Role::Value, self.value())]
            }
        })*
    };
}
values!(f64 F64 f32 F32 i64 I64 i32 I32 i8 I8 u64 U64 u32 U32 u8 U8 bool Bool);

impl<A: Results, B: Results> Results for (A, B) {
    fn all(self) -> Vec<Seen> {
        [self.0.all(), self.1.all()].concat()
    }
}

impl<A: Results, B: Results, C: Results> Results for (A, B, C) {
    fn all(self) -> Vec<Seen> {
        [self.0.all(), self.1.all(), self.2.all()].concat()
    }
}

impl<T: Results, const N: usize> Results for [T; N] {
    fn all(self) -> Vec<Seen> {
        self.into_iter().flat_map(Results::all).collect()
    }
}
