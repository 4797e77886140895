//! The runtime's own kernels, written in the language itself: they fill ghost cells and inject sources on every device.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use polyhalo_macros::stencil;

use crate::facade::__private::Registered;
use crate::facade::{Field, HERE};
use crate::kernel::{KernelDesc, ScalarType};

#[stencil(crate = crate::facade, T = f64 | f32 | i64 | i32 | i8 | u64 | u32 | u8 | bool)]
fn copied<T>(u: &Field<T>) -> T {
    u[HERE]
}

#[stencil(crate = crate::facade, T = f64 | f32)]
fn negated<T>(u: &Field<T>) -> T {
    -u[HERE]
}

/// Whole numbers wrap around, on the reference device too.
#[stencil(crate = crate::facade, T = i64 | i32 | i8)]
fn negated_whole<T>(u: &Field<T>) -> T {
    u[HERE].wrapping_neg()
}

#[stencil(crate = crate::facade, T = f64 | f32 | i64 | i32 | i8 | u64 | u32 | u8 | bool)]
fn constant<T>(value: T) -> T {
    value
}

#[stencil(crate = crate::facade, T = f64 | f32)]
fn added<T>(u: &Field<T>, amount: T, weight: T) -> T {
    u[HERE] + weight * amount
}

#[stencil(crate = crate::facade, T = i64 | i32 | i8 | u64 | u32 | u8)]
fn added_whole<T>(u: &Field<T>, amount: T, weight: T) -> T {
    u[HERE].wrapping_add(weight.wrapping_mul(amount))
}

/// A cell gets the value of another one.
pub(crate) fn copied_as(ty: ScalarType) -> &'static KernelDesc {
    own("copied", ty)
}

/// A cell gets the negative value of another one; of floats and signed integers.
pub(crate) fn negated_as(ty: ScalarType) -> &'static KernelDesc {
    own(if is_float(ty) { "negated" } else { "negated_whole" }, ty)
}

/// A cell gets a value.
pub(crate) fn constant_as(ty: ScalarType) -> &'static KernelDesc {
    own("constant", ty)
}

/// A weighted amount is added to a cell; of numbers.
pub(crate) fn added_as(ty: ScalarType) -> &'static KernelDesc {
    own(if is_float(ty) { "added" } else { "added_whole" }, ty)
}

fn is_float(ty: ScalarType) -> bool {
    matches!(ty, ScalarType::F64 | ScalarType::F32)
}

fn own(name: &str, ty: ScalarType) -> &'static KernelDesc {
    static KERNELS: OnceLock<BTreeMap<&str, &KernelDesc>> = OnceLock::new();
    let kernels = KERNELS.get_or_init(|| {
        let all = inventory::iter::<Registered>.into_iter().map(|registered| registered.0);
        all.filter(|kernel| kernel.module == module_path!()).map(|kernel| (kernel.name, kernel)).collect()
    });
    kernels[format!("{name}_{ty}").as_str()]
}
