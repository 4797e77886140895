use polyhalo::prelude::*;

#[stencil]
mod elsewhere;

fn main() {}
