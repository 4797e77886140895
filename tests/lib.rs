//! Shared by the targets of this package.

pub mod agreement;
pub mod fixtures;
pub mod soup;
pub mod steps;

/// A number in the environment.
///
/// # Panics
/// When it is none.
pub fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is a number, not `{text}`")),
        Err(_) => default,
    }
}
