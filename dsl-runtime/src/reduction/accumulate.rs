//! What folds the values of a row, in the order of the parent module. It needs nothing else: native kernels use it as it
//! is.

use std::marker::PhantomData;

/// The running sums of a row of floats. Local index 0 along X is a multiple of it in the whole grid, so that the lane of
/// a point is its local index modulo this.
pub const LANES: usize = 8;

/// What folds the values of a row, in the order of X.
pub trait Accumulator<T>: Sized {
    /// What is stored for a row.
    type Row;

    /// The fold of no values.
    fn new() -> Self;

    /// Folds in the value at X index `x`.
    fn add(&mut self, x: isize, value: T);

    /// Folds in the values at X indices from `x` on.
    #[inline(always)]
    fn add_all(&mut self, x: isize, values: &[T])
    where
        T: Copy,
    {
        for (i, &value) in values.iter().enumerate() {
            self.add(x + i as isize, value);
        }
    }

    /// Folds in every second value, the first one being `values[first]`; `x` is the index of `values[0]`.
    #[inline(always)]
    fn add_alternate(&mut self, x: isize, values: &[T], first: usize)
    where
        T: Copy,
    {
        for i in (first..values.len()).step_by(2) {
            self.add(x + i as isize, values[i]);
        }
    }

    /// The value of the row.
    fn row(&self) -> Self::Row;
}

/// A type whose values can be added up.
pub trait Summed: Copy {
    /// What adds them up.
    type Sum: Accumulator<Self>;

    /// How many sums a kernel gives for one.
    const PARTS: usize = 1;

    /// What a value adds to each of them.
    fn parts(self) -> [Self; 2] {
        [self, self]
    }
}

/// What adds up values of type `T`.
pub type Total<T> = <T as Summed>::Sum;

/// Floats, added up in double precision with what rounding loses.
#[derive(Clone, Copy, Debug)]
pub struct FloatSum<T> {
    sum: [f64; LANES],
    lost: [f64; LANES],
    values: PhantomData<T>,
}

/// The rounded sum of two numbers and what rounding took from it.
#[inline(always)]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let b_in_sum = sum - a;
    (sum, (a - (sum - b_in_sum)) + (b - b_in_sum))
}

impl<T> FloatSum<T> {
    /// Adds values to the lanes from `first` on. As a loop whose length isn't known it becomes vectors, as other loops
    /// over the lanes don't.
    #[inline(always)]
    fn add_from(&mut self, first: usize, values: &[T])
    where
        T: Copy + Into<f64>,
    {
        for ((sum, lost), &value) in self.sum[first..].iter_mut().zip(&mut self.lost[first..]).zip(values) {
            let (rounded, rest) = two_sum(*sum, value.into());
            *sum = rounded;
            *lost += rest;
        }
    }

    #[inline(always)]
    fn add_to(&mut self, lane: usize, value: f64) {
        let (sum, lost) = two_sum(self.sum[lane], value);
        self.sum[lane] = sum;
        self.lost[lane] += lost;
    }
}

impl<T: Copy + Into<f64>> Accumulator<T> for FloatSum<T> {
    type Row = f64;

    #[inline(always)]
    fn new() -> Self {
        Self { sum: [0.0; LANES], lost: [0.0; LANES], values: PhantomData }
    }

    #[inline(always)]
    fn add(&mut self, x: isize, value: T) {
        self.add_to(x as usize % LANES, value.into());
    }

    #[inline(always)]
    fn add_all(&mut self, x: isize, values: &[T]) {
        // Up to the first lane, then all lanes at once.
        let first = x as usize % LANES;
        let (head, whole) = values.split_at(((LANES - first) % LANES).min(values.len()));
        self.add_from(first, head);
        for group in whole.chunks(LANES) {
            self.add_from(0, group);
        }
    }

    #[inline(always)]
    fn add_alternate(&mut self, x: isize, values: &[T], first: usize) {
        let (x, values) = ((x as usize).wrapping_add(first), values.get(first..).unwrap_or(&[]));
        let head = ((LANES - x % LANES) % LANES).min(values.len());
        let (head, whole) = values.split_at(head);
        for i in (0..head.len()).step_by(2) {
            self.add_to(x.wrapping_add(i) % LANES, head[i].into());
        }
        // Half of the lanes, always the same ones.
        let lanes = head.len() % 2;
        let (groups, rest) = whole.as_chunks::<LANES>();
        for group in groups {
            for lane in (0..LANES).step_by(2) {
                self.add_to(lane + lanes, group[lane + lanes].into());
            }
        }
        for lane in (lanes..rest.len()).step_by(2) {
            self.add_to(lane, rest[lane].into());
        }
    }

    /// The lanes in order, then what they lost. Infinite sums have lost nothing that has a meaning.
    #[inline(always)]
    fn row(&self) -> f64 {
        let (mut sum, mut lost) = (0.0, 0.0);
        for lane in 0..LANES {
            let (next, rounded) = two_sum(sum, self.sum[lane]);
            sum = next;
            lost += rounded;
            lost += self.lost[lane];
        }
        if lost.is_finite() { sum + lost } else { sum }
    }
}

/// Integers, added up modulo 2^64; what is stored is an `R`.
#[derive(Clone, Copy, Debug)]
pub struct IntegerSum<T, R>(R, PhantomData<T>);

macro_rules! integer_sum {
    ($row:ident: $($ty:ident)+) => {$(
        impl Accumulator<$ty> for IntegerSum<$ty, $row> {
            type Row = $row;

            #[inline(always)]
            fn new() -> Self {
                Self(0, PhantomData)
            }

            #[inline(always)]
            fn add(&mut self, _: isize, value: $ty) {
                self.0 = self.0.wrapping_add($row::from(value));
            }

            #[inline(always)]
            fn row(&self) -> $row {
                self.0
            }
        }

        impl Summed for $ty {
            type Sum = IntegerSum<$ty, $row>;
            integer_sum!(@parts $row $ty);
        }
    )+};
    (@parts i64 i64) => { integer_sum!(@halves); };
    (@parts u64 u64) => { integer_sum!(@halves); };
    (@parts $row:ident $ty:ident) => {};
    // The lower half and what is above it.
    (@halves) => {
        const PARTS: usize = 2;

        fn parts(self) -> [Self; 2] {
            [self & 0xffff_ffff, self >> 32]
        }
    };
}

integer_sum!(i64: i64 i32 i8);
integer_sum!(u64: u64 u32 u8);

impl Summed for f64 {
    type Sum = FloatSum<f64>;
}

impl Summed for f32 {
    type Sum = FloatSum<f32>;
}

/// The largest value, of some that are a vector.
#[derive(Clone, Copy, Debug)]
pub struct Largest<T>([T; LANES]);

/// The least value, of some that are a vector.
#[derive(Clone, Copy, Debug)]
pub struct Least<T>([T; LANES]);

macro_rules! extreme {
    ($name:ident, $order:tt: $($ty:ident $none:expr, $positive:expr;)+) => {$(
        impl $name<$ty> {
            #[inline(always)]
            #[allow(clippy::eq_op, reason = "it asks for not-a-number")]
            fn better(best: $ty, value: $ty) -> $ty {
                if value $order best || value != value { value } else { best }
            }
        }

        impl Accumulator<$ty> for $name<$ty> {
            type Row = $ty;

            #[inline(always)]
            fn new() -> Self {
                Self([$none; LANES])
            }

            #[inline(always)]
            fn add(&mut self, _: isize, value: $ty) {
                self.0[0] = Self::better(self.0[0], ($positive)(value));
            }

            // The order doesn't matter.
            #[inline(always)]
            fn add_all(&mut self, _: isize, values: &[$ty]) {
                let mut lanes = self.0;
                let (groups, rest) = values.as_chunks::<LANES>();
                for group in groups {
                    for (best, &value) in lanes.iter_mut().zip(group) {
                        *best = Self::better(*best, ($positive)(value));
                    }
                }
                self.0 = lanes;
                for (best, &value) in self.0.iter_mut().zip(rest) {
                    *best = Self::better(*best, ($positive)(value));
                }
            }

            #[inline(always)]
            fn row(&self) -> $ty {
                self.0.iter().fold($none, |best, &value| Self::better(best, value))
            }
        }
    )+};
}

/// For each type what there is without values, and the value with zero made positive.
macro_rules! extremes {
    ($($ty:ident $least:expr, $most:expr, $positive:expr;)+) => {
        extreme!(Largest, >: $($ty $least, $positive;)+);
        extreme!(Least, <: $($ty $most, $positive;)+);
    };
}

extremes! {
    f64 f64::NEG_INFINITY, f64::INFINITY, |v| v + 0.0;
    f32 f32::NEG_INFINITY, f32::INFINITY, |v| v + 0.0;
    i64 i64::MIN, i64::MAX, |v| v;
    i32 i32::MIN, i32::MAX, |v| v;
    i8 i8::MIN, i8::MAX, |v| v;
    u64 u64::MIN, u64::MAX, |v| v;
    u32 u32::MIN, u32::MAX, |v| v;
    u8 u8::MIN, u8::MAX, |v| v;
}
