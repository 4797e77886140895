//! The entry points as the crate hip-runtime-sys links them at build time.

use std::ffi::c_void;

use super::entries::hip_entry_points;

/// Makes `linked`, which finds an entry point by its name; those that the crate doesn't know aren't there.
macro_rules! linked_entry_points {
    (
        core { $(fn $core:ident($($core_arguments:tt)*);)* }
        optional { $(fn $optional:ident($($optional_arguments:tt)*);)* }
        newer { $($newer:tt)* }
        texts { $(fn $text:ident;)* }
    ) => {
        /// The address of a linked entry point.
        pub(super) fn linked(name: &str) -> Option<*const c_void> {
            match name {
                $(stringify!($core) => Some(hip_runtime_sys::$core as *const c_void),)*
                $(stringify!($optional) => Some(hip_runtime_sys::$optional as *const c_void),)*
                $(stringify!($text) => Some(hip_runtime_sys::$text as *const c_void),)*
                _ => None,
            }
        }
    };
}

hip_entry_points!(linked_entry_points);
