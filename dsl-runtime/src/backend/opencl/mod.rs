//! OpenCL devices, reached through the library that the system's vendors install; nothing is linked.
//!
//! `discover` lists platforms and devices as plain data, `shared` splits devices and gives those of a platform one
//! context, `mapping` decides how points become work-items, `program` builds kernels, `device` runs them with the help of
//! `arguments`, `lane`, `moments`, `pinned` and `peer`, and `call` holds every call that acts.

mod arguments;
mod call;
mod device;
mod discover;
mod lane;
mod mapping;
mod moments;
mod peer;
mod pinned;
mod program;
mod shared;
#[cfg(test)]
mod tests;

pub use discover::Facts;

use std::env;
use std::ffi::OsStr;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Backend, Device, Listing, OpenClForm, OpenOptions};
use crate::error::{Error, Result};

/// The back end for devices that speak OpenCL.
pub struct OpenCl;

/// The variable that chooses the form of kernels where the program leaves it open: `c` or `spirv`.
pub const FORM_VARIABLE: &str = "POLYHALO_OPENCL_FORM";

impl OpenCl {
    /// What OpenCL says about each device of the listing, in its order.
    pub fn facts(&self) -> Vec<Facts> {
        discover::discover().0.into_iter().map(|found| found.facts).collect()
    }
}

impl Backend for OpenCl {
    fn name(&self) -> &'static str {
        "opencl"
    }

    fn devices(&self) -> Listing {
        let (found, absent) = discover::discover();
        Listing {
            devices: found.into_iter().map(|found| found.facts.info).collect(),
            absent: absent.iter().map(discover::Absent::sentence).collect(),
        }
    }

    fn open(&self, ordinals: &[u32], options: &OpenOptions) -> Result<Vec<Box<dyn Device>>> {
        let form = match options.opencl_form {
            OpenClForm::Auto => form_of(env::var_os(FORM_VARIABLE).as_deref())?,
            OpenClForm::Source | OpenClForm::SpirV => options.opencl_form,
        };
        let (all, _) = discover::discover();
        let listed = |&ordinal: &u32| match all.iter().find(|found| found.facts.info.ordinal == ordinal) {
            Some(found) => Ok(found),
            None => super::listed(self, ordinal).and_then(|info| Err(came_and_went(&info.to_string()))),
        };
        let found: Vec<_> = ordinals.iter().map(listed).collect::<Result<_>>()?;
        let how = device::How { form, entry: None, trace: options.trace, affinity: options.affinity };
        let devices = device::OpenClDevice::open(&found, &all, how)?;
        Ok(devices.into_iter().map(|device| Box::new(device) as Box<dyn Device>).collect())
    }
}

/// The form that the value of [`FORM_VARIABLE`] names.
fn form_of(value: Option<&OsStr>) -> Result<OpenClForm> {
    match value.map(OsStr::to_string_lossy).as_deref() {
        None | Some("") => Ok(OpenClForm::Auto),
        Some("c") => Ok(OpenClForm::Source),
        Some("spirv") => Ok(OpenClForm::SpirV),
        Some(other) => {
            let source = io::Error::new(io::ErrorKind::InvalidInput, format!("`{other}` is neither `c` nor `spirv`"));
            Err(Error::System { call: format!("reading the variable {FORM_VARIABLE}"), source })
        }
    }
}

/// A device that one listing has and another, a moment later, hasn't.
fn came_and_went(device: &str) -> Error {
    let (call, message) = ("clGetDeviceIDs".to_owned(), "the device isn't listed every time".to_owned());
    Error::Driver { backend: "opencl", device: device.to_owned(), call, message }
}

/// No code panics while it holds these locks in a state that matters, so a poisoned one is as good as any.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
