//! What the code that `#[stencil]` generates names: as the crate `polyhalo` offers it to programs, and here for the runtime's
//! own kernels.

pub use crate::{Field, HERE};

/// For generated code; no part of the interface.
#[doc(hidden)]
pub mod __private {
    pub use crate::backend::host::BoxArgs;
    pub use crate::backend::host::support::{Accumulator, Largest, Least, Total, prefetch, store, store_alternate};
    pub use crate::backend::reference::{PointArgs, View};
    pub use crate::kernel::{
        DeviceCode, FieldDesc, GpuForm, HostCode, KernelDesc, OutputDesc, ParamDesc, Read, Registered, Role,
        ScalarType, Walk,
    };
    pub use crate::{Call, Element, IntoArgument, argument};
    pub use inventory;

    /// Stands for a kernel that was refused; a program with it is never built.
    pub fn refused<T>() -> Call<T> {
        unreachable!("a program with a refused stencil is never built")
    }
}
