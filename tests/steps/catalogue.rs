//! What random steps are made of: each kernel with what it takes and gives, how it is recorded, and its meaning once more
//! as plain Rust over a function that reads.

use std::ops::{Add, Mul, Sub};
use std::sync::OnceLock;

use polyhalo::Stages;
use polyhalo::prelude::{Field, FieldX, FieldXY, FieldXZ, FieldY, FieldYZ, FieldZ, Scalar};

use super::kernels as stencils;
use super::live::{Held, Live, Value};
use super::number::{Number, Ty};
use super::story::Use;

/// What becomes of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are those of the language")]
pub enum Role {
    Value,
    Sum,
    Max,
    Min,
}

/// Records a reduction and gives its scalars.
pub type Reduce = fn(&mut Stages, &Live, &Use) -> Vec<Value>;

/// A kernel.
pub struct Fixture {
    /// Its name and instance.
    pub name: &'static str,
    /// The fields that it takes: types and axes.
    pub fields: &'static [(Ty, [bool; 3])],
    /// The scalars that it takes.
    pub scalars: &'static [Ty],
    /// Its results.
    pub outputs: &'static [(Role, Ty)],
    /// Records an update.
    pub update: fn(&mut Stages, &Live, &Use),
    /// Records a reduction, if all results are folds.
    pub reduce: Option<Reduce>,
    /// The bits of the results at a point. It reads all that the kernel reads, whatever the values are.
    pub twin: fn(&mut Reads<'_>) -> Vec<u64>,
}

/// What a twin is given.
pub struct Reads<'a> {
    /// The bits of what a parameter holds at an offset.
    pub read: &'a mut dyn FnMut(usize, [i32; 3]) -> u64,
    /// The bits of the scalars.
    pub scalars: &'a [u64],
    /// The point.
    pub point: [i64; 3],
}

impl Reads<'_> {
    fn at<T: Number>(&mut self, parameter: usize, x: i32, y: i32, z: i32) -> T {
        T::of_word((self.read)(parameter, [x, y, z]))
    }

    fn scalar<T: Number>(&self, number: usize) -> T {
        T::of_word(self.scalars[number])
    }
}

/// A float of either precision.
trait Float: Number + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    fn of(value: f64) -> Self;
}

impl Float for f64 {
    fn of(value: f64) -> Self {
        value
    }
}

impl Float for f32 {
    fn of(value: f64) -> Self {
        value as f32
    }
}

fn star<T: Float>(reads: &mut Reads<'_>, radius: i32) -> Vec<u64> {
    let (mut sum, half, quarter) = (T::of(0.0), T::of(0.5), T::of(0.25));
    for r in 1..=radius {
        let x = reads.at::<T>(0, r, 0, 0) - reads.at(0, -r, 0, 0);
        let y = half * reads.at::<T>(0, 0, r, 0) - reads.at(0, 0, -r, 0);
        let z = reads.at::<T>(0, 0, 0, r) - quarter * reads.at(0, 0, 0, -r);
        sum = sum + (x + y + z);
    }
    vec![(half * reads.at::<T>(0, 0, 0, 0) + reads.scalar::<T>(0) * sum).word()]
}

fn cube<T: Float>(reads: &mut Reads<'_>) -> Vec<u64> {
    let mut sum = T::of(0.0);
    for z in -1..=1 {
        for y in -1..=1 {
            for x in -1..=1 {
                sum = sum + T::of(f64::from(x + 3 * y + 9 * z + 13)) * reads.at(0, x, y, z);
            }
        }
    }
    vec![(sum * T::of(0.001953125)).word()]
}

fn still<T: Float>(reads: &mut Reads<'_>) -> Vec<u64> {
    vec![(T::of(0.75) * reads.at(0, 0, 0, 0) + T::of(0.125) * reads.scalar(0)).word()]
}

fn totals<T: Float>(reads: &mut Reads<'_>) -> Vec<u64> {
    let here: T = reads.at(0, 0, 0, 0);
    vec![here.word(), here.word(), (here - T::of(1.0)).word()]
}

macro_rules! target {
    ($live:ident Value $ty:ty, $number:expr) => {
        $live.field::<Field<$ty>>($number)
    };
    ($live:ident $fold:ident $ty:ty, $number:expr) => {
        $live.scalar::<$ty>($number)
    };
}

macro_rules! fixture {
    (
        $name:literal ($($field:ident: $of:ty),*; $($scalar:ident: $number:ty),*) -> ($($out:ident: $role:ident $ty:ty),+)
        $targets:expr => $call:expr, $twin:expr $(, $made:ident => [$($each:expr),+])?
    ) => {
        Fixture {
            name: $name,
            fields: &[$((<$of as Held>::TY, <$of as Held>::AXES)),*],
            scalars: &[$(<$number as Number>::TY),*],
            outputs: &[$((Role::$role, <$ty as Number>::TY)),+],
            #[allow(unused_variables, unused_mut, reason = "some kernels take nothing")]
            update: |stages, live, used| {
                let (mut fields, mut scalars) = (used.fields.iter(), used.scalars.iter());
                $(let $field = live.field::<$of>(*fields.next().expect("as many as the kernel takes"));)*
                $(let $scalar = live.argument::<$number>(*scalars.next().expect("as many as the kernel takes"));)*
                let mut outputs = used.outputs.iter();
                $(let $out = target!(live $role $ty, *outputs.next().expect("as many as the kernel gives"));)+
                stages.update($targets, used.narrowed($call));
            },
            reduce: fixture!(@reduce ($($field: $of),*) $call $(, $made => [$($each),+])?),
            twin: $twin,
        }
    };
    (@reduce ($($field:ident: $of:ty),*) $call:expr) => { None };
    (@reduce ($($field:ident: $of:ty),*) $call:expr, $made:ident => [$($each:expr),+]) => {
        Some(|stages, live, used| {
            let mut fields = used.fields.iter();
            $(let $field = live.field::<$of>(*fields.next().expect("as many as the kernel takes"));)*
            let $made = stages.reduce(used.narrowed($call));
            vec![$($each.into()),+]
        })
    };
}

/// All kernels.
pub fn kernels() -> &'static [Fixture] {
    static KERNELS: OnceLock<Vec<Fixture>> = OnceLock::new();
    KERNELS.get_or_init(all)
}

fn all() -> Vec<Fixture> {
    vec![
        fixture!("star f64 1" (u: Field<f64>; a: f64) -> (o: Value f64) o => stencils::star::<f64, 1>(u, a),
            |reads| star::<f64>(reads, 1)),
        fixture!("star f64 8" (u: Field<f64>; a: f64) -> (o: Value f64) o => stencils::star::<f64, 8>(u, a),
            |reads| star::<f64>(reads, 8)),
        fixture!("star f32 1" (u: Field<f32>; a: f32) -> (o: Value f32) o => stencils::star::<f32, 1>(u, a),
            |reads| star::<f32>(reads, 1)),
        fixture!("star f32 8" (u: Field<f32>; a: f32) -> (o: Value f32) o => stencils::star::<f32, 8>(u, a),
            |reads| star::<f32>(reads, 8)),
        fixture!("cube f64" (u: Field<f64>;) -> (o: Value f64) o => stencils::cube(u), cube::<f64>),
        fixture!("cube f32" (u: Field<f32>;) -> (o: Value f32) o => stencils::cube(u), cube::<f32>),
        fixture!("other colour" (u: Field<f64>, f: Field<f64>;) -> (o: Value f64) o => stencils::other_colour(u, f),
        |reads| {
            let first = 0.25 * (reads.at::<f64>(0, 1, 1, 1) - reads.at::<f64>(0, -1, 0, 0));
            let second = first + 0.25 * reads.at::<f64>(0, 2, -1, 0);
            let third = second + 0.125 * reads.at::<f64>(0, 0, 1, -2);
            vec![(third + 0.125 * reads.at::<f64>(1, 0, 0, 0)).word()]
        }),
        fixture!("lopsided" (u: Field<f64>, v: Field<f64>;) -> (o: Value f64, q: Value f64)
        (o, q) => stencils::lopsided(u, v), |reads| {
            let (far, below): (f64, f64) = (reads.at(0, 2, 0, 0), reads.at(0, 0, 0, -1));
            let (here, up): (f64, f64) = (reads.at(1, 0, 0, 0), reads.at(1, 0, 3, 0));
            vec![(0.5 * far + 0.25 * below).word(), (0.5 * here - 0.25 * far + 0.125 * up).word()]
        }),
        fixture!("difference" (u: Field<f32>, v: Field<f32>, w: Field<f32>;) -> (o: Value f32)
        o => stencils::difference(u, v, w), |reads| {
            let along = reads.at::<f32>(0, 1, 0, 0) - reads.at::<f32>(0, 0, 0, 0);
            let back = reads.at::<f32>(1, 0, 0, 0) - reads.at::<f32>(1, 0, -1, 0);
            vec![(0.5 * along + 0.25 * back + 0.125 * reads.at::<f32>(2, 0, 0, 1)).word()]
        }),
        fixture!("broad" (
            u: Field<f64>, x: FieldX<f64>, y: FieldY<f64>, z: FieldZ<f64>,
            xy: FieldXY<f64>, xz: FieldXZ<f64>, yz: FieldYZ<f64>;
        ) -> (o: Value f64) o => stencils::broad(u, x, y, z, xy, xz, yz), |reads| {
            let one = reads.at::<f64>(1, 1, 0, 0) + reads.at::<f64>(2, 0, -1, 0) * reads.at::<f64>(3, 0, 0, 0);
            let two = reads.at::<f64>(4, 1, -1, 0) + reads.at::<f64>(5, 0, 0, -1) - reads.at::<f64>(6, 0, -1, 1);
            vec![(0.25 * reads.at::<f64>(0, -1, 0, 0) + 0.125 * one - 0.125 * two).word()]
        }),
        fixture!("level" (; value: f64) -> (o: Value f64) o => stencils::level(value),
            |reads| vec![(0.5 * reads.scalar::<f64>(0)).word()]),
        fixture!("ramp" (; amount: f32) -> (o: Value f32) o => stencils::ramp(amount), |reads| {
            let [i, j, k] = reads.point;
            vec![(reads.scalar::<f32>(0) * ((i - 2 * j + 3 * k) as f32 * 0.03125)).word()]
        }),
        fixture!("mix" (u: Field<i32>; add: i32) -> (o: Value i32) o => stencils::mix(u, add), |reads| {
            let [i, j, k] = reads.point.map(|index| index as i32);
            let far = reads.at::<i32>(0, 1, 0, 0).wrapping_mul(31) ^ reads.at::<i32>(0, -1, -1, -1);
            let here = reads.at::<i32>(0, 0, 0, 0) >> 3;
            vec![((far ^ here).wrapping_add(i + 7 * j - k) % 100_003 + reads.scalar::<i32>(0) % 7).word()]
        }),
        fixture!("still f64" (u: Field<f64>; a: f64) -> (o: Value f64) o => stencils::still(u, a), still::<f64>),
        fixture!("still f32" (u: Field<f32>; a: f32) -> (o: Value f32) o => stencils::still(u, a), still::<f32>),
        fixture!("totals f64" (u: Field<f64>;) -> (s: Sum f64, m: Max f64, l: Min f64)
            (s, m, l) => stencils::totals(u), totals::<f64>, made => [made.0, made.1, made.2]),
        fixture!("totals f32" (u: Field<f32>;) -> (s: Sum f32, m: Max f32, l: Min f32)
            (s, m, l) => stencils::totals(u), totals::<f32>, made => [made.0, made.1, made.2]),
        fixture!("counts" (u: Field<i32>;) -> (s: Sum i64, m: Max i32, l: Min i32)
            (s, m, l) => stencils::counts(u), |reads| {
                let (here, up) = (reads.at::<i32>(0, 0, 0, 0), reads.at::<i32>(0, 0, 1, 0));
                vec![i64::from(here ^ up).word(), reads.at::<i32>(0, -1, 0, 0).word(), here.word()]
            }, made => [made.0, made.1, made.2]),
        fixture!("settle" (u: Field<f32>, v: Field<f32>; a: f32) -> (o: Value f32, s: Sum f64, m: Max f32)
        (o, s, m) => stencils::settle(u, v, a), |reads| {
            let along = reads.at::<f32>(0, 1, 0, 0) + reads.at::<f32>(0, -1, 0, 0);
            let around = along + reads.at::<f32>(0, 0, 1, 0) + reads.at::<f32>(0, 0, -1, 0);
            let rest = 0.125 * around - 0.25 * reads.at::<f32>(1, 0, 0, 0);
            let new = 0.5 * reads.at::<f32>(0, 0, 0, 0) + reads.scalar::<f32>(0) * rest;
            vec![new.word(), f64::from(rest * rest).word(), rest.abs().word()]
        }),
        fixture!("relax" (u: Field<f64>, f: Field<f64>;) -> (o: Value f64, s: Sum f64)
        (o, s) => stencils::relax(u, f), |reads| {
            let x = reads.at::<f64>(0, 1, 0, 0) + reads.at::<f64>(0, -1, 0, 0);
            let y = x + reads.at::<f64>(0, 0, 1, 0) + reads.at::<f64>(0, 0, -1, 0);
            let z = y + reads.at::<f64>(0, 0, 0, 1) + reads.at::<f64>(0, 0, 0, -1);
            let rest = 0.125 * z - 0.25 * reads.at::<f64>(1, 0, 0, 0);
            vec![(0.5 * rest + 0.25 * reads.at::<f64>(0, 0, 0, 0)).word(), rest.word()]
        }),
        fixture!("far" (u: Field<f32>;) -> (o: Value f32) o => stencils::far(u), |reads| {
            vec![(0.5 * reads.at::<f32>(0, -8, 3, 0) - 0.25 * reads.at::<f32>(0, -1, 0, 7)).word()]
        }),
        fixture!("bundle" (a: Field<f64>, b: Field<f64>, c: Field<f64>; s: f64) -> (o: Value f64, p: Value f64, q: Value f64)
        [o, p, q] => stencils::bundle(&[a.clone(), b.clone(), c.clone()], s), |reads| {
            let one = 0.5 * reads.at::<f64>(0, 1, 0, 0) - 0.25 * reads.at::<f64>(1, 0, 0, 0);
            let two = 0.5 * reads.at::<f64>(1, 0, 1, 0) + 0.25 * reads.at::<f64>(2, -1, 0, 0);
            let three = 0.5 * reads.at::<f64>(2, 0, 0, -1) + 0.125 * reads.scalar::<f64>(0);
            vec![one.word(), two.word(), three.word()]
        }),
        fixture!("mixed" (u: Field<f64>, k: Field<i32>, w: Field<f32>;) -> (o: Value f64, q: Value i32)
        (o, q) => stencils::mixed(u, k, w), |reads| {
            let (kind, below) = (reads.at::<i32>(1, 0, 0, 0), reads.at::<i32>(1, 0, 0, -1));
            let (here, next) = (reads.at::<f64>(0, 0, 0, 0), reads.at::<f64>(0, 1, 0, 0));
            let value = next as f32 * reads.at::<f32>(2, 0, 0, 0);
            match kind % 3 {
                0 => vec![(0.5 * here).word(), below.word()],
                _ => vec![(f64::from(value) * 0.25).word(), ((value * 100.0) as i32).word()],
            }
        }),
    ]
}

/// A function of scalars that a step may compute.
pub struct Function {
    /// The types of its arguments.
    pub inputs: &'static [Ty],
    /// The type of its result.
    pub output: Ty,
    /// Records it for a scalar that is there.
    pub assign: fn(&mut Stages, &Live, usize, &[usize]),
    /// Records it for a new scalar.
    pub compute: fn(&mut Stages, &Live, &[usize]) -> Value,
    /// The bits of the result.
    pub plain: fn(&[u64]) -> u64,
}

macro_rules! function {
    (($($input:ident: $ty:ty),*) -> $out:ty, $value:expr) => {
        Function {
            inputs: &[$(<$ty as Number>::TY),*],
            output: <$out as Number>::TY,
            #[allow(unused_variables, unused_mut, reason = "some take nothing")]
            assign: |stages, live, to, inputs| {
                let mut inputs = inputs.iter();
                $(let $input: &Scalar<$ty> = live.scalar(*inputs.next().expect("as many as it takes"));)*
                stages.assign(live.scalar::<$out>(to), ($($input,)*), |($($input,)*)| $value);
            },
            #[allow(unused_variables, unused_mut, reason = "some take nothing")]
            compute: |stages, live, inputs| {
                let mut inputs = inputs.iter();
                $(let $input: &Scalar<$ty> = live.scalar(*inputs.next().expect("as many as it takes"));)*
                stages.compute(($($input,)*), |($($input,)*)| -> $out { $value }).into()
            },
            #[allow(unused_variables, unused_mut, reason = "some take nothing")]
            plain: |inputs| {
                let mut inputs = inputs.iter();
                $(let $input = <$ty>::of_word(*inputs.next().expect("as many as it takes"));)*
                let value: $out = $value;
                value.word()
            },
        }
    };
}

/// All functions of scalars.
pub fn functions() -> &'static [Function] {
    static FUNCTIONS: OnceLock<Vec<Function>> = OnceLock::new();
    FUNCTIONS.get_or_init(|| {
        vec![
            function!((a: f64, b: f64) -> f64, 0.5 * a - 0.125 * b),
            function!((a: f64) -> f64, 1.0 / (1.0 + a * a)),
            function!((a: f32, b: f64, c: i32) -> f32, (f64::from(a) * 0.25 + b / 64.0) as f32 + (c % 5) as f32),
            function!((a: i32, b: i64) -> i32, a.wrapping_mul(3) ^ (b as i32)),
            function!((a: i64, b: i64) -> i64, (a ^ b) >> 3),
            function!((a: f32, b: f32, c: f32) -> f32, (a - b) * c / 16.0),
            function!(() -> f64, 0.375),
        ]
    })
}

/// A number that changes every step.
pub fn each_step(ty: Ty, step: u64) -> u64 {
    match ty {
        Ty::F64 => (1.0 / (step + 1) as f64).word(),
        Ty::F32 => (step as f32 * 0.25 - 0.5).word(),
        Ty::I32 => (step as i32 * 7 - 3).word(),
        Ty::I64 => (step as i64 * 11 - 5).word(),
    }
}
