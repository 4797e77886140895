//! Exists so that Cargo gives the macro an `OUT_DIR`, from which the cache of compiled kernels is found.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
}
