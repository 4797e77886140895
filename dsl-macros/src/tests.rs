//! What the attribute leaves in a program, token by token. Whether it runs is tested where there is a runtime.

use super::*;

/// The expansion, which must be items.
fn expanded(options: &str, item: &str) -> String {
    let parse = |text: &str| text.parse::<TokenStream>().unwrap_or_else(|error| panic!("{text}: {error}"));
    let tokens = stencil_tokens(parse(options), parse(item));
    syn::parse2::<syn::File>(tokens.clone()).unwrap_or_else(|error| panic!("{error}: {tokens}"));
    tokens.to_string()
}

/// Text without blanks: how an expansion is laid out means nothing.
fn dense(text: &str) -> String {
    text.split_whitespace().collect()
}

/// The expansion has each part so many times.
fn check(options: &str, item: &str, parts: &[(&str, usize)]) {
    let expanded = dense(&expanded(options, item));
    for (part, times) in parts {
        let found = expanded.matches(&dense(part)).count();
        assert_eq!(found, *times, "{expanded}\nis the expansion of {item} and has {part:?}");
    }
}

const REFUSED: &str = "__private::refused()";
const ERROR: &str = "::core::compile_error!";

#[test]
fn a_function_becomes_a_call_under_its_own_name() {
    check(
        "",
        "/// Words.\npub fn k<'a>(u: &'a Field<f64>, p: Point, a: f64, s: &[Field<i8>; 2], b: bool) -> (f64, i8) {
            (u[X] * a, s[1][HERE] + p.i as i8 + b as i8) }",
        &[
            (
                "pub fn k<'a>(u: &'a Field<f64>, a: impl ::polyhalo::__private::IntoArgument<f64>,
                 s: &[Field<i8>; 2], b: impl ::polyhalo::__private::IntoArgument<bool>)
                 -> ::polyhalo::__private::Call<(f64, i8)>",
                1,
            ),
            (
                "::polyhalo::__private::Call::new(&__POLYHALO_KERNEL,
                 ::core::iter::empty().chain([u.reference()]).chain(s.iter().map(|field| field.reference())).collect(),
                 ::std::vec![::polyhalo::__private::argument::<f64>(a), ::polyhalo::__private::argument::<bool>(b)],)",
                1,
            ),
            (
                "fn __polyhalo_reference(u: &::polyhalo::__private::View<'_, f64>, p: Point, a: f64,
                 s: &[::polyhalo::__private::View<'_, i8>; 2], b: bool) -> (f64, i8)",
                1,
            ),
            ("View as FieldYZ", 1),
            (
                "__polyhalo_reference(&at.field(0usize), at.point(), at.scalar(0usize),
                 &[at.field(1usize), at.field(2usize)], at.scalar(1usize))",
                1,
            ),
            ("axes: [true, true, true]", 3),
            ("OutputDesc { ty: ::polyhalo::__private::ScalarType::I8, role: ::polyhalo::__private::Role::Value }", 1),
            ("Total, prefetch, store, store_alternate,", 1),
            ("trait", 0),
            (ERROR, 0),
        ],
    );
}

#[test]
fn everything_is_found_where_the_option_says() {
    let item = "fn k<T>(u: &Field<T>, a: T) -> T { u[X] * a }";
    check("crate = crate::facade, T = f32", item, &[("::polyhalo", 0), ("crate::facade::__private::View<", 1)]);
    check("crate = crate::facade", item, &[("::polyhalo", 0), ("crate::facade::__private::refused()", 1)]);
}

#[test]
fn a_generic_function_finds_its_kernels_by_a_hidden_trait() {
    check(
        "T = f32 | f64, R = 2",
        "#[cfg(all())] pub(crate) fn k<T, const R: usize>(u: &Field<T>, a: T) -> T where T: Send { u[R as i32 * X] * a }",
        &[
            (
                "#[cfg(all())] #[doc(hidden)] #[allow(non_camel_case_types, unreachable_pub)]
                 #[diagnostic::on_unimplemented(message = \"the stencil `k` has no instance with T = {T}, R = {R}\",
                 label = \"there is no such instance\",
                 note = \"its instances are `T = f32, R = 2`, `T = f64, R = 2`; the list in its attribute `#[stencil(..)]` names them\")]
                 pub(crate) trait instance_of_k<T, const R: usize> {
                    fn kernel() -> &'static ::polyhalo::__private::KernelDesc;
                 }",
                1,
            ),
            ("#[cfg(all())] const _: () = {", 2),
            ("impl instance_of_k<f32, 2> for () {", 1),
            ("impl instance_of_k<f64, 2> for () {", 1),
            (
                "pub(crate) fn k<T, const R: usize>(u: &Field<T>,
                 a: impl ::polyhalo::__private::IntoArgument<T>) -> ::polyhalo::__private::Call<T>
                 where T: Send, T: ::polyhalo::__private::Element, (): instance_of_k<T, R> {",
                1,
            ),
            ("Call::new(<() as instance_of_k<T, R>>::kernel(),", 1),
            ("argument::<T>(a)", 1),
            ("name: \"k_f32_2\"", 1),
            ("fn __polyhalo_reference(u: &::polyhalo::__private::View<'_, f64>, a: f64) -> f64", 1),
            ("const R: usize = 2;", 2),
            (ERROR, 0),
        ],
    );
}

#[test]
fn a_module_keeps_its_items_and_its_kernels_share_them() {
    check(
        "crate = ph, contract",
        "/// Words.
        pub mod m {
            #![allow(unused)]
            use ph::{prelude::*, stencil};
            pub const W: f64 = 2.0;
            fn at(u: &Field<f64>, d: Offset) -> f64 { W * u[d] }
            #[stencil] pub fn a(u: &Field<f64>) -> f64 { at(u, X) }
            #[stencil(T = f32 | f64)] fn b<T>(u: &Field<f64>, v: &Field<T>) -> T { v[at(u, Y) as i32 * X] }
            #[stencil(T = f32 | f64)] fn c<T>(u: &Field<f64>, v: &Field<T>) -> T { at(u, Y) as T * v[X] }
            struct Other;
        }",
        &[
            (
                "#[doc = \" Words.\"] #[allow(unused)] pub mod m { #[allow(unused_imports)] use stencil as _; use ph::{prelude::*, stencil};",
                1,
            ),
            ("#[allow(dead_code)] pub const W: f64 = 2.0;", 1),
            (
                "#[allow(dead_code)] const W: f64 = 2.0; #[allow(dead_code)] fn at(u: &ph::__private::View<'_, f64>, d: Offset)",
                3,
            ),
            ("fn at", 3),
            ("struct Other;", 1),
            ("contract: true", 3),
            ("#[stencil]", 0),
            ("#[stencil(T", 0),
            ("pub fn a(u: &Field<f64>) -> ph::__private::Call<f64>", 1),
            ("ph::__private::refused()", 1),
            (ERROR, 1),
        ],
    );
}

#[test]
fn what_is_refused_leaves_a_stand_in() {
    check(
        "",
        "fn k(u: &Field<f64>, a: f64, b: Strange, p: Point) -> f64 { u[0] }",
        &[
            (ERROR, 2),
            (REFUSED, 1),
            (
                "fn k(u: &Field<f64>, a: impl ::polyhalo::__private::IntoArgument<f64>, b: Strange)
                 -> ::polyhalo::__private::Call<f64> { ::polyhalo::__private::refused() }",
                1,
            ),
        ],
    );
    check("fast", "fn k(u: &Field<f64>) -> f64 { u[X] }", &[(ERROR, 1), (REFUSED, 1)]);
    check(
        "",
        "fn k<T>(u: &Field<T>) -> T { u[X] }",
        &[
            (ERROR, 1),
            ("fn k<T: ::polyhalo::__private::Element>(u: &Field<T>) -> ::polyhalo::__private::Call<T> {", 1),
            ("trait", 0),
        ],
    );
    let module = "mod m { fn at(u: &Field<f64>) -> f64 { u[0] }
        #[stencil] fn a(u: &Field<f64>) -> f64 { at(u) }
        #[stencil] fn b(u: &Field<f64>) -> f64 { at(u) }
        #[stencil] fn c(u: &Field<f64>) -> f64 { u[X] } }";
    check("", module, &[(ERROR, 1), (REFUSED, 2), ("static __POLYHALO_KERNEL", 1)]);
    check("fast", module, &[(REFUSED, 3), (ERROR, 1), ("static", 0), ("fn a", 1)]);
    check("", "mod m { use ph::prelude::*; #[stencil] fn c(u: &Field<f64>) -> f64 { u[X] } }", &[("stencil as _", 0)]);
    check("", "mod m { fn f() {} }", &[(ERROR, 1), ("mod m { #[allow(clippy::", 1), ("fn f() {} }", 1)]);
    check("", "mod elsewhere;", &[(ERROR, 1), ("mod elsewhere;", 1)]);
    let wrong = expanded("", "struct S;");
    assert!(wrong.contains("stands on a function or a module") && wrong.ends_with("struct S ;"), "{wrong}");
}
