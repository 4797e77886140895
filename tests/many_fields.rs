//! Kernels of so many fields that their origins may not all travel in 64 bits: which way they travel, and that native code
//! and OpenCL devices compute the same with either.

use polyhalo_codegen::Verified;
use polyhalo_codegen::emit::has_paired_origins;
use polyhalo_codegen::front::kernels_of_file;
use polyhalo_tests::agreement::{check_host, check_opencl};

/// A kernel of so many fields, of which it reads every one, most of them beside the point.
fn kernel(name: &str, fields: usize, [parameters, result, value]: [&str; 3]) -> Verified {
    let text = format!(
        "#[stencil] fn {name}(u: &[Field<f32>; {fields}], w: &FieldYZ<i32>, a: f32, {parameters}) -> {result} {{
            let mut sum = a;
            for n in 0..{fields} {{ sum += u[n][(n % 3 - 1) * X + (n % 5 - 2) * Z] * (n as f32); }}
            {value}
        }}"
    );
    let source = kernels_of_file(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let compiled = source.kernels[0].compile().unwrap_or_else(|refused| panic!("{:#?}\n{text}", refused.diagnostics));
    compiled.kernel
}

/// On both sides of the bound, with and without a global index, and as many as fit.
fn kernels() -> Vec<Verified> {
    let plain = ["", "f32", "sum + w[Y] as f32"];
    let placed = ["p: Point, yes: bool", "f32", "if yes { sum - w[-Z] as f32 } else { sum * (p.i - p.k) as f32 }"];
    let folded = ["", "Sum<f32>", "Sum(sum + w[Y] as f32)"];
    let results = ["", "[f32; 4]", "[sum, -a, w[Y] as f32, sum * a]"];
    let all = [
        (kernel("whole", 57, plain), false),
        (kernel("paired", 58, plain), true),
        (kernel("paired_folded", 59, folded), true),
        (kernel("most", 63, placed), true),
        (kernel("results", 63, results), true),
    ];
    for (kernel, is_paired) in &all {
        assert_eq!(has_paired_origins(kernel), *is_paired, "{}", kernel.name);
    }
    all.map(|(kernel, _)| kernel).into()
}

#[test]
fn native_code_has_the_interpreters_bits() {
    check_host(&kernels());
}

#[test]
fn opencl_devices_have_the_interpreters_bits() {
    check_opencl(&kernels());
}
