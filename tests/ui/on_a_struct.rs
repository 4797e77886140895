use polyhalo::prelude::*;

#[stencil]
struct Kernel;

fn main() {}
