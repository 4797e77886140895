use polyhalo::prelude::*;

#[stencil]
fn kernel(n: &Field<u8>) -> u8 {
    let back = -n[HERE];
    let m = n[HERE] + 300;
    n[HERE] << 9
}

fn main() {}
