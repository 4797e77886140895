//! Calls of kernels, and the fields that take their results.

use std::fmt;
use std::marker::PhantomData;

use crate::element::{Element, Scalar};
use crate::error::{Error, Result};
use crate::field::{Field, FieldRef};
use crate::kernel::KernelDesc;

/// A kernel with its arguments, to be placed in a step. `T` is what it gives for each point.
#[must_use = "a call does nothing until a step updates a field with it"]
pub struct Call<T> {
    pub(crate) kernel: &'static KernelDesc,
    pub(crate) fields: Vec<FieldRef>,
    pub(crate) scalars: Vec<Argument>,
    result: PhantomData<fn() -> T>,
}

/// A scalar argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument(pub(crate) u64);

impl<T: Scalar> From<T> for Argument {
    fn from(value: T) -> Self {
        Self(value.to_word())
    }
}

impl<T> Call<T> {
    /// A call of `kernel`; a step checks that the arguments fit.
    pub fn new(kernel: &'static KernelDesc, fields: Vec<FieldRef>, scalars: Vec<Argument>) -> Self {
        Self { kernel, fields, scalars, result: PhantomData }
    }
}

impl<T> fmt::Debug for Call<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.fields.iter().map(|field| &*field.name).collect();
        write!(f, "{}({})", self.kernel.name, names.join(", "))
    }
}

/// Fields that take the results of a call that gives `T`: a field for a value, a tuple or an array of fields for a tuple
/// or an array of values.
pub trait Targets<T> {
    /// The fields in the order of the results.
    fn targets(&self) -> Vec<FieldRef>;
}

impl<T: Element> Targets<T> for &Field<T> {
    fn targets(&self) -> Vec<FieldRef> {
        vec![self.reference()]
    }
}

macro_rules! tuple {
    ($($ty:ident $number:tt),+) => {
        impl<$($ty: Element),+> Targets<($($ty,)+)> for ($(&Field<$ty>,)+) {
            fn targets(&self) -> Vec<FieldRef> {
                vec![$(self.$number.reference()),+]
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
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10);
tuple!(A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7, I 8, J 9, K 10, L 11);

impl<T: Element, const N: usize> Targets<[T; N]> for [&Field<T>; N] {
    fn targets(&self) -> Vec<FieldRef> {
        self.iter().map(|field| field.reference()).collect()
    }
}

impl<T: Element, const N: usize> Targets<[T; N]> for &[Field<T>; N] {
    fn targets(&self) -> Vec<FieldRef> {
        self.iter().map(Field::reference).collect()
    }
}

/// An error unless the arguments and targets of a call fit its kernel, belong to `simulation`, and no field is
/// written twice.
pub(crate) fn check(
    kernel: &KernelDesc,
    fields: &[FieldRef],
    scalars: &[Argument],
    targets: &[FieldRef],
    simulation: u64,
) -> Result<()> {
    let counts = [
        ("fields", kernel.fields.len(), fields.len()),
        ("scalars", kernel.params.len(), scalars.len()),
        ("results", kernel.outputs.len(), targets.len()),
    ];
    for (what, expected, found) in counts {
        if expected != found {
            return Err(Error::Arguments { kernel: kernel.name.into(), what, expected, found });
        }
    }
    if let Some(field) = fields.iter().chain(targets).find(|field| field.simulation != simulation) {
        return Err(Error::Foreign { what: "field", name: (*field.name).into() });
    }
    let parameters = kernel.fields.iter().map(|field| (format!("parameter `{}`", field.name), field.ty));
    let results = kernel.outputs.iter().enumerate().map(|(number, &ty)| (format!("result {}", number + 1), ty));
    for ((what, expected), field) in parameters.zip(fields).chain(results.zip(targets)) {
        if field.ty != expected {
            let (kernel, field, found) = (kernel.name.into(), (*field.name).into(), field.ty);
            return Err(Error::ElementType { kernel, what, field, expected, found });
        }
    }
    for (number, target) in targets.iter().enumerate() {
        if targets[..number].contains(target) {
            return Err(Error::WrittenTwice { kernel: kernel.name.into(), field: (*target.name).into() });
        }
    }
    Ok(())
}
