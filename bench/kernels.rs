//! The kernels of the examples.

#[path = "../examples/kernels/elastic.rs"]
pub mod elastic;
#[path = "../examples/kernels/gray_scott.rs"]
pub mod gray_scott;
#[path = "../examples/kernels/heat.rs"]
pub mod heat;
#[path = "../examples/kernels/himeno.rs"]
pub mod himeno;
#[path = "../examples/kernels/poisson.rs"]
pub mod poisson;
#[path = "../examples/kernels/wave.rs"]
pub mod wave;
