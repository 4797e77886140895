//! Scalars: numbers of a simulation that its steps compute, such as a time step or the sum over a field.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use crate::element::Primitive;
use crate::error::{Error, Result};
use crate::plan::{Operand, ScalarId};
use crate::simulation::Shared;

/// A number that lives in a [`Simulation`](crate::simulation::Simulation) beside its fields.
///
/// Folds and closures of a step give it values; later stages and later steps take it as an argument. It is a handle: clones
/// are the same number.
pub struct Scalar<T: Primitive> {
    shared: Arc<Shared>,
    id: ScalarId,
    name: Arc<str>,
    value: PhantomData<fn() -> T>,
}

impl<T: Primitive> Clone for Scalar<T> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), name: Arc::clone(&self.name), ..*self }
    }
}

impl<T: Primitive> fmt::Debug for Scalar<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scalar<{}> {}", T::TYPE, self.name)
    }
}

/// A scalar without its Rust type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalarRef {
    pub(crate) simulation: u64,
    pub(crate) id: ScalarId,
    pub(crate) name: Arc<str>,
}

impl<T: Primitive> Scalar<T> {
    pub(crate) fn new(shared: Arc<Shared>, id: ScalarId, name: &str) -> Self {
        Self { shared, id, name: name.into(), value: PhantomData }
    }

    /// The name that it was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value after the last finished step.
    pub fn get(&self) -> Result<T> {
        Ok(T::from_word(self.shared.scalar(self.id)?))
    }

    /// Replaces the value.
    pub fn set(&self, value: T) -> Result<()> {
        self.shared.set_scalar(self.id, value.to_word())
    }

    /// The scalar without its Rust type.
    pub fn reference(&self) -> ScalarRef {
        ScalarRef { simulation: self.shared.id, id: self.id, name: Arc::clone(&self.name) }
    }
}

/// What a kernel is given for a scalar parameter: a number, or a [`Scalar`] whose value when the stage runs is meant.
#[derive(Clone, Debug)]
pub struct Argument<T> {
    pub(crate) erased: Erased,
    value: PhantomData<fn() -> T>,
}

/// An argument without its Rust type.
#[derive(Clone, Debug)]
pub enum Erased {
    /// The bits of a number.
    Bits(u64),
    /// The value of a scalar.
    Scalar(ScalarRef),
}

impl Erased {
    /// The argument in a plan of `simulation`.
    pub(crate) fn operand(&self, simulation: u64) -> Result<Operand> {
        match self {
            Erased::Bits(bits) => Ok(Operand::Bits(*bits)),
            Erased::Scalar(scalar) if scalar.simulation == simulation => Ok(Operand::Scalar(scalar.id)),
            Erased::Scalar(scalar) => Err(Error::Foreign { what: "scalar", name: (*scalar.name).into() }),
        }
    }
}

/// What may be given for a scalar parameter of type `T`: a number of this type, a [`Scalar`] or a reference to one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is given for a scalar of type `{T}`",
    label = "this is `{Self}`",
    note = "a scalar of type `{T}` is given as a number of this type, `a`, or as a `Scalar<{T}>` of the simulation, `&a`",
    note = "numbers are not converted by themselves: a float is written with a point, `1.0`, and `a as {T}` converts"
)]
pub trait IntoArgument<T: Primitive> {
    /// The argument.
    fn into_argument(self) -> Argument<T>;
}

impl<T: Primitive> IntoArgument<T> for T {
    fn into_argument(self) -> Argument<T> {
        Argument { erased: Erased::Bits(self.to_word()), value: PhantomData }
    }
}

#[diagnostic::do_not_recommend]
impl<T: Primitive> IntoArgument<T> for &Scalar<T> {
    fn into_argument(self) -> Argument<T> {
        Argument { erased: Erased::Scalar(self.reference()), value: PhantomData }
    }
}

#[diagnostic::do_not_recommend]
impl<T: Primitive> IntoArgument<T> for Scalar<T> {
    fn into_argument(self) -> Argument<T> {
        (&self).into_argument()
    }
}

#[diagnostic::do_not_recommend]
impl<T: Primitive> IntoArgument<T> for Argument<T> {
    fn into_argument(self) -> Argument<T> {
        self
    }
}

/// What a call of a kernel makes of a scalar argument.
pub fn argument<T: Primitive>(value: impl IntoArgument<T>) -> Erased {
    value.into_argument().erased
}

/// Scalars whose values a closure is given: none, one, a tuple or an array.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which scalars the closure is given",
    label = "these are no scalars",
    note = "give none `()`, one `&a`, a tuple `(&a, &b)` or an array `[&a, &b]` of the simulation's scalars; numbers that don't change are \
            captured by the closure: `move |a| a * dx`"
)]
pub trait Inputs {
    /// What the closure is given.
    type Values;

    /// The scalars.
    fn scalars(&self) -> Vec<ScalarRef>;

    /// The values from their bits, in the order of [`scalars`](Self::scalars).
    fn values(bits: &[u64]) -> Self::Values;
}

#[diagnostic::do_not_recommend]
impl Inputs for () {
    type Values = ();

    fn scalars(&self) -> Vec<ScalarRef> {
        Vec::new()
    }

    fn values(_: &[u64]) -> Self::Values {}
}

#[diagnostic::do_not_recommend]
impl<T: Primitive> Inputs for &Scalar<T> {
    type Values = T;

    fn scalars(&self) -> Vec<ScalarRef> {
        vec![self.reference()]
    }

    fn values(bits: &[u64]) -> T {
        T::from_word(bits[0])
    }
}

#[diagnostic::do_not_recommend]
impl<T: Primitive, const N: usize> Inputs for [&Scalar<T>; N] {
    type Values = [T; N];

    fn scalars(&self) -> Vec<ScalarRef> {
        self.iter().map(|scalar| scalar.reference()).collect()
    }

    fn values(bits: &[u64]) -> [T; N] {
        std::array::from_fn(|number| T::from_word(bits[number]))
    }
}

macro_rules! tuple {
    ($($ty:ident $number:tt),+) => {
        #[diagnostic::do_not_recommend]
        impl<$($ty: Primitive),+> Inputs for ($(&Scalar<$ty>,)+) {
            type Values = ($($ty,)+);

            fn scalars(&self) -> Vec<ScalarRef> {
                vec![$(self.$number.reference()),+]
            }

            fn values(bits: &[u64]) -> Self::Values {
                ($($ty::from_word(bits[$number]),)+)
            }
        }
    };
}

tuple!(A 0);
tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);
tuple!(A 0, B 1, C 2, D 3, E 4);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

/// A function of scalars: from the number of the step and the bits of its arguments to the bits of its result.
pub(crate) type Function = Arc<dyn Fn(u64, &[u64]) -> u64 + Send + Sync>;
