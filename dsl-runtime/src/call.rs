//! Calls of kernels, and what takes their results.

use std::fmt;
use std::marker::PhantomData;

use crate::element::{Element, Primitive};
use crate::error::{Error, Result};
use crate::field::{Axes, Field, FieldRef};
use crate::kernel::{KernelDesc, Role, ScalarType};
use crate::range::{IntoRanges, Range};
use crate::reduction::{Max, Min, Sum};
use crate::scalar::{Erased, Scalar, ScalarRef};

/// A kernel with its arguments, to be placed in a step. `T` is what it gives for each point.
#[must_use = "a call does nothing until a step updates a field with it"]
pub struct Call<T> {
    pub(crate) kernel: &'static KernelDesc,
    pub(crate) fields: Vec<FieldRef>,
    pub(crate) scalars: Vec<Erased>,
    pub(crate) ranges: Vec<Range>,
    result: PhantomData<fn() -> T>,
}

impl<T> Call<T> {
    /// A call of `kernel`; a step checks that the arguments fit.
    pub fn new(kernel: &'static KernelDesc, fields: Vec<FieldRef>, scalars: Vec<Erased>) -> Self {
        Self { kernel, fields, scalars, ranges: vec![Range::widest()], result: PhantomData }
    }

    /// Narrows the call to some points: a [`Range`], or several that don't overlap.
    pub fn over(self, ranges: impl IntoRanges) -> Self {
        Self { ranges: ranges.ranges(), ..self }
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.fields.iter().map(|field| &*field.name).collect();
        write!(f, "{}({})", self.kernel.name, names.join(", "))
    }
}

/// What takes a result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A field takes the values.
    Field(FieldRef),
    /// A scalar takes the fold.
    Scalar(ScalarRef, ScalarType),
}

/// What takes the results of a call that gives `T`: a field for a value, a [`Scalar`] for a fold, a tuple or an array of
/// such for a tuple or an array.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't take what the kernel gives: `{T}`",
    label = "`{T}` does not go in here",
    note = "a value goes into a field of its type, `&u`; a `Sum`, `Max` or `Min` into a scalar of its type, `&a`; a tuple or an array of results \
            into a tuple or an array of as many of these: `(&u, &v, &a)`; \
            fields of fewer axes are only read"
)]
pub trait Targets<T> {
    /// What takes them, in the order of the results.
    fn targets(&self) -> Vec<Target>;
}

/// What no kernel gives. That all targets take either of these keeps rustc from guessing what a kernel gives from the targets
/// alone, so that a mismatch is told in the words of [`Targets`].
#[doc(hidden)]
#[derive(Debug)]
pub enum Nothing<const WHICH: bool> {}

macro_rules! nothing {
    ($([$($generics:tt)*] $ty:ty;)+) => {$(
        nothing!(false [$($generics)*] $ty);
        nothing!(true [$($generics)*] $ty);
    )+};
    ($which:literal [$($generics:tt)*] $ty:ty) => {
        #[doc(hidden)]
        #[diagnostic::do_not_recommend]
        impl<$($generics)*> Targets<Nothing<$which>> for $ty {
            fn targets(&self) -> Vec<Target> {
                Vec::new()
            }
        }
    };
}

nothing! {
    [T: Element, A: Axes] Field<T, A>;
    [T: Element, A: Axes] &Field<T, A>;
    [T: Element, const N: usize] &[Field<T>; N];
    [T, const N: usize] [T; N];
    [T: Primitive] Scalar<T>;
    [T: Primitive] &Scalar<T>;
    [A, B] (A, B);
    [A, B, C] (A, B, C);
    [A, B, C, D] (A, B, C, D);
    [A, B, C, D, E] (A, B, C, D, E);
    [A, B, C, D, E, F] (A, B, C, D, E, F);
}

#[diagnostic::do_not_recommend]
impl<T: Element> Targets<T> for &Field<T> {
    fn targets(&self) -> Vec<Target> {
        vec![Target::Field(self.reference())]
    }
}

macro_rules! folds {
    ($($fold:ident)+) => {$(
        #[diagnostic::do_not_recommend]
        impl<T: Primitive> Targets<$fold<T>> for &Scalar<T> {
            fn targets(&self) -> Vec<Target> {
                vec![Target::Scalar(self.reference(), T::TYPE)]
            }
        }

        #[diagnostic::do_not_recommend]
        impl<T: Primitive> Folds for $fold<T> {
            type Scalars = Scalar<T>;

            fn scalars(new: &mut dyn FnMut(ScalarType) -> New) -> (Self::Scalars, Vec<Target>) {
                let New { shared, id, name } = new(T::TYPE);
                let scalar = Scalar::new(shared, id, &name);
                let targets = Targets::<Self>::targets(&&scalar);
                (scalar, targets)
            }
        }
    )+};
}

folds!(Sum Max Min);

/// A scalar in the making.
#[doc(hidden)]
pub struct New {
    pub(crate) shared: std::sync::Arc<crate::simulation::Shared>,
    pub(crate) id: crate::plan::ScalarId,
    pub(crate) name: String,
}

/// Results that are folds only: one, a tuple or an array.
#[diagnostic::on_unimplemented(
    message = "`reduce` takes a kernel that folds, this one gives `{Self}`",
    label = "`{Self}` is no `Sum`, `Max` or `Min`",
    note = "a kernel that folds returns `Sum<f64>`, `Max<f64>`, `Min<f64>`, or several of them as a tuple or an array",
    note = "the values of other kernels go into fields: `s.update(&u, ..)`"
)]
pub trait Folds: Sized {
    /// The scalars that take them.
    type Scalars;

    /// New scalars, each made by `new`.
    #[doc(hidden)]
    fn scalars(new: &mut dyn FnMut(ScalarType) -> New) -> (Self::Scalars, Vec<Target>);
}

#[diagnostic::do_not_recommend]
impl<T: Folds, const N: usize> Folds for [T; N] {
    type Scalars = [T::Scalars; N];

    fn scalars(new: &mut dyn FnMut(ScalarType) -> New) -> (Self::Scalars, Vec<Target>) {
        let mut targets = Vec::new();
        let scalars = std::array::from_fn(|_| {
            let (scalar, more) = T::scalars(new);
            targets.extend(more);
            scalar
        });
        (scalars, targets)
    }
}

macro_rules! tuple {
    ($($ty:ident $result:ident $number:tt),+) => {
        #[diagnostic::do_not_recommend]
        impl<$($ty: Targets<$result>, $result),+> Targets<($($result,)+)> for ($($ty,)+) {
            fn targets(&self) -> Vec<Target> {
                let mut targets = Vec::new();
                $(targets.extend(self.$number.targets());)+
                targets
            }
        }

        #[diagnostic::do_not_recommend]
        impl<$($ty: Folds),+> Folds for ($($ty,)+) {
            type Scalars = ($($ty::Scalars,)+);

            fn scalars(new: &mut dyn FnMut(ScalarType) -> New) -> (Self::Scalars, Vec<Target>) {
                let mut targets = Vec::new();
                let scalars = ($({
                    let (scalar, more) = $ty::scalars(new);
                    targets.extend(more);
                    scalar
                },)+);
                (scalars, targets)
            }
        }
    };
}

tuple!(A RA 0);
tuple!(A RA 0, B RB 1);
tuple!(A RA 0, B RB 1, C RC 2);
tuple!(A RA 0, B RB 1, C RC 2, D RD 3);
tuple!(A RA 0, B RB 1, C RC 2, D RD 3, E RE 4);
tuple!(A RA 0, B RB 1, C RC 2, D RD 3, E RE 4, F RF 5);
tuple!(A RA 0, B RB 1, C RC 2, D RD 3, E RE 4, F RF 5, G RG 6);
tuple!(A RA 0, B RB 1, C RC 2, D RD 3, E RE 4, F RF 5, G RG 6, H RH 7);
tuple!(A RA 0, B RB 1, C RC 2, D RD 3, E RE 4, F RF 5, G RG 6, H RH 7, I RI 8);
tuple!(A RA 0, B RB 1, C RC 2, D RD 3, E RE 4, F RF 5, G RG 6, H RH 7, I RI 8, J RJ 9);
tuple!(A RA 0, B RB 1, C RC 2, D RD 3, E RE 4, F RF 5, G RG 6, H RH 7, I RI 8, J RJ 9, K RK 10);
tuple!(A RA 0, B RB 1, C RC 2, D RD 3, E RE 4, F RF 5, G RG 6, H RH 7, I RI 8, J RJ 9, K RK 10, L RL 11);

#[diagnostic::do_not_recommend]
impl<R, T: Targets<R>, const N: usize> Targets<[R; N]> for [T; N] {
    fn targets(&self) -> Vec<Target> {
        self.iter().flat_map(Targets::targets).collect()
    }
}

#[diagnostic::do_not_recommend]
impl<T: Element, const N: usize> Targets<[T; N]> for &[Field<T>; N] {
    fn targets(&self) -> Vec<Target> {
        self.iter().map(|field| Target::Field(field.reference())).collect()
    }
}

/// An error unless the arguments and targets of a call fit its kernel, belong to `simulation`, and nothing is
/// written twice.
pub(crate) fn check(
    kernel: &KernelDesc,
    fields: &[FieldRef],
    scalars: &[Erased],
    targets: &[Target],
    simulation: u64,
) -> Result<()> {
    let counts = [
        ("fields", kernel.fields.len(), fields.len()),
        ("scalars", kernel.params.len(), scalars.len()),
        ("results", kernel.results().count(), targets.len()),
    ];
    for (what, expected, found) in counts {
        if expected != found {
            return Err(Error::Arguments { kernel: kernel.name.into(), what, expected, found });
        }
    }
    let of_targets = targets.iter().map(|target| match target {
        Target::Field(field) => ("field", field.simulation, &field.name),
        Target::Scalar(scalar, _) => ("scalar", scalar.simulation, &scalar.name),
    });
    let mut used = fields.iter().map(|field| ("field", field.simulation, &field.name)).chain(of_targets);
    if let Some((what, _, name)) = used.find(|used| used.1 != simulation) {
        return Err(Error::Foreign { what, name: (**name).into() });
    }
    let wrong = |what: String, name: &str, expected, found| {
        let (kernel, field) = (kernel.name.into(), name.into());
        Err(Error::ElementType { kernel, what, field, expected, found })
    };
    for (parameter, field) in kernel.fields.iter().zip(fields) {
        let what = format!("parameter `{}`", parameter.name);
        if field.ty != parameter.ty {
            return wrong(what, &field.name, parameter.ty, field.ty);
        }
        if field.axes != parameter.axes {
            let (kernel, field) = (kernel.name.into(), (*field.name).into());
            return Err(Error::FieldAxes { kernel, what, field });
        }
    }
    for (number, ((_, output), target)) in kernel.results().zip(targets).enumerate() {
        let what = format!("result {}", number + 1);
        match (target, output.role) {
            (Target::Field(field), Role::Value) if field.ty != output.ty => {
                return wrong(what, &field.name, output.ty, field.ty);
            }
            (Target::Scalar(scalar, ty), Role::Sum | Role::Max | Role::Min) if *ty != output.ty => {
                return wrong(what, &scalar.name, output.ty, *ty);
            }
            (Target::Field(_), Role::Value) | (Target::Scalar(..), Role::Sum | Role::Max | Role::Min) => {}
            (Target::Field(_) | Target::Scalar(..), _) => {
                let (expected, found) = (targets.len(), number);
                return Err(Error::Arguments {
                    kernel: kernel.name.into(),
                    what: "results of this kind",
                    expected,
                    found,
                });
            }
        }
        if targets[..number].contains(target) {
            let name = match target {
                Target::Field(field) => &field.name,
                Target::Scalar(scalar, _) => &scalar.name,
            };
            return Err(Error::WrittenTwice { kernel: kernel.name.into(), field: (**name).into() });
        }
    }
    Ok(())
}
