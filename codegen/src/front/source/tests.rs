//! What is found in a file.

use super::*;

fn found(text: &str) -> Source {
    kernels_of_file(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

const FILE: &str = "\
/// Plain.
#[polyhalo::stencil(contract)]
/// Documented.
fn plain(u: &Field<f64>) -> f64 {
    u[X]
}

#[stencil]
mod inner {
    const W: f64 =
        2.0;

    fn at(u: &Field<f64>) -> f64 {
        W * u[X]
    }

    #[stencil]
    fn shared(u: &Field<f64>) -> f64 { at(u) }

    mod nested {
        #[stencil(R = 1 | 2)]
        fn lap<const R: usize>(u: &Field<f64>) -> f64 { u[R as i32 * X] }
    }
}

fn host() {}
";

#[test]
fn kernels_of_modules_and_instances_are_found() {
    let source = found(FILE);
    assert!(source.mistakes.is_empty());
    let all = source.kernels.iter().map(|kernel| {
        let compiled = kernel.compile().unwrap_or_else(|refused| panic!("{:#?}", refused.diagnostics));
        assert_eq!(compiled.kernel.name, kernel.name);
        (kernel.name.as_str(), kernel.function_name(), kernel.instance.as_str(), kernel.line)
    });
    let name = str::to_owned;
    let expected = [
        ("plain", name("plain"), "", 4),
        ("shared", name("shared"), "", 18),
        ("lap_1", name("lap"), "R = 1", 22),
        ("lap_2", name("lap"), "R = 2", 22),
    ];
    assert_eq!(all.collect::<Vec<_>>(), expected);
    assert!(source.kernels[0].options.as_ref().is_ok_and(|options| options.contract));
}

#[test]
fn the_text_of_a_kernel_has_what_it_uses() {
    let texts: Vec<String> = found(FILE).kernels.iter().map(|kernel| kernel.text(FILE)).collect();
    assert_eq!(
        texts[0],
        "/// Plain.\n#[polyhalo::stencil(contract)]\n/// Documented.\nfn plain(u: &Field<f64>) -> f64 {\n    u[X]\n}\n"
    );
    let shared = "    const W: f64 =\n        2.0;\n\n    fn at(u: &Field<f64>) -> f64 {\n        W * u[X]\n    }\n\n    \
                  fn shared(u: &Field<f64>) -> f64 { at(u) }\n";
    assert_eq!(texts[1], shared);
    assert_eq!(texts[2], texts[3]);
}

#[test]
fn mistakes_are_kept_with_what_they_concern() {
    let source = found(
        "#[stencil(fast)] fn a(u: &Field<f64>) -> f64 { u[X] } #[stencil] fn b<T>(u: &Field<T>) -> T { u[X] }
         #[stencil] mod empty { fn f() {} } #[stencil] mod elsewhere;
         #[stencil(fast)] mod m { #[stencil] fn c(u: &Field<f64>) -> f64 { u[X] } }",
    );
    let said: Vec<String> =
        source.mistakes.iter().flat_map(|refused| &refused.diagnostics).map(ToString::to_string).collect();
    assert!(said.len() == 2 && said[0].contains("`empty` has no kernel") && said[1].contains("elsewhere"), "{said:?}");
    let [a, b, c] = &source.kernels[..] else { panic!("{} kernels", source.kernels.len()) };
    assert!(a.options.as_ref().err().is_some_and(|wrong| wrong.contains("`fast` is not an option")));
    assert!(c.options.as_ref().err().is_some_and(|wrong| wrong.contains("`fast` is not an option")));
    let wrong = b.compile().expect_err("it has no list").diagnostics;
    assert!(wrong.len() == 1 && wrong[0].message.contains("has no list of values"), "{wrong:?}");
}
