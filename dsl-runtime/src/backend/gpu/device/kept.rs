//! Shapes that were measured, kept on disk for later programs.

#[cfg(not(test))]
use std::sync::OnceLock;

use polyhalo_codegen::offline::Cache;
use polyhalo_codegen::offline::cache::Key;

use super::card::OpenCard;
use crate::backend::gpu::options::Shape;
use crate::kernel::KernelDesc;

/// The folder of this process.
#[cfg(not(test))]
fn cache() -> Cache {
    static CACHE: OnceLock<Cache> = OnceLock::new();
    CACHE.get_or_init(|| Cache::open(None)).clone()
}

#[cfg(test)]
thread_local! {
    /// That of a test, which has none of the user's.
    pub(super) static TRIED: std::cell::RefCell<Cache> =
        std::cell::RefCell::new(Cache::off("tests keep nothing".into()));
}

#[cfg(test)]
fn cache() -> Cache {
    TRIED.with_borrow(Cache::clone)
}

/// What a shape is good for: a kernel on such a card with this driver.
fn key(card: &OpenCard, kernel: &KernelDesc) -> Key {
    let source = if card.driver.backend() == "hip" { kernel.code.hip } else { kernel.code.cuda };
    let architecture = card.facts.architecture.to_string();
    Key::of(&["shape", &card.facts.name, &architecture, &card.driver.version(), kernel.name, source])
}

/// The shape that was measured before, if there is one. What is no shape counts as nothing.
pub(super) fn recall(card: &OpenCard, kernel: &KernelDesc) -> Option<Shape> {
    parse(&cache().get(&key(card, kernel))?)
}

/// Keeps a shape. A folder that can't be written is no failure.
pub(super) fn keep(card: &OpenCard, kernel: &KernelDesc, shape: Shape) {
    let _ = cache().put(&key(card, kernel), shape.to_string().as_bytes());
}

fn parse(bytes: &[u8]) -> Option<Shape> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_shape_counts_as_nothing() {
        assert_eq!(parse(b"march:64x4:16").unwrap().to_string(), "march:64x4:16");
        for broken in [&b""[..], b"march", b"march:64x4", b"point:2048x1x1", b"\xff\xfe"] {
            assert_eq!(parse(broken), None);
        }
    }
}
