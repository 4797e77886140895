//! What annotated modules become: kernels by value, what stays by its tokens, mistakes by message.

use super::*;
use crate::front::instances::tests::values;
use crate::front::{compile_instances, instances};
use crate::ir::Value;

fn taken_apart(options: &str, source: &str) -> Module {
    let item = syn::parse_str(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    let options = syn::parse_str(options).unwrap_or_else(|error| panic!("{options}: {error}"));
    module(&item, &options).unwrap_or_else(|refused| panic!("{source} is refused: {:#?}", refused.diagnostics))
}

/// Every mistake of the module and of its kernels.
fn mistakes(options: &str, source: &str) -> Vec<String> {
    let module = taken_apart(options, source);
    let kernels = module.items.iter().filter_map(|item| match item {
        ModuleItem::Kernel(kernel) => {
            let options = kernel.options.as_ref()?;
            let made = instances(&kernel.function, &kernel.helpers, options);
            made.and_then(|made| compile_instances(&made, options)).err()
        }
        ModuleItem::Other(_) => None,
    });
    let all = merge(kernels.chain(module.mistakes.clone()));
    all.diagnostics.iter().map(ToString::to_string).collect()
}

fn refused_with(source: &str, number: usize, parts: &[&str]) {
    let wrong = mistakes("", source);
    assert_eq!(wrong.len(), number, "{source}: {wrong:#?}");
    let wrong = wrong.join("\n");
    for part in parts {
        assert!(wrong.contains(part), "{source}\ngives {wrong}\nwithout {part:?}");
    }
}

/// The kernels have these names and first values; nothing is wrong.
fn check(source: &str, expected: &[(&str, Value)]) {
    let wrong = mistakes("", source);
    assert!(wrong.is_empty(), "{source}: {wrong:#?}");
    let mut found = Vec::new();
    for item in taken_apart("", source).items {
        if let ModuleItem::Kernel(kernel) = item {
            let options = kernel.options.expect("they can be read");
            let made = instances(&kernel.function, &kernel.helpers, &options).expect("checked above");
            let compiled = compile_instances(&made, &options).expect("checked above");
            found.extend(made.iter().zip(&compiled).map(|(made, compiled)| (made.name.clone(), values(compiled)[0])));
        }
    }
    let found: Vec<(&str, Value)> = found.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    assert_eq!(found, expected, "{source}");
}

/// The names of the items that stay outside of kernels.
fn stay(source: &str) -> Vec<String> {
    let items = taken_apart("", source).items.into_iter();
    let names = items.filter_map(|item| match item {
        ModuleItem::Kernel(_) => None,
        ModuleItem::Other(item) => Some(match &*item {
            Item::Fn(function) => function.sig.ident.to_string(),
            Item::Const(constant) => constant.ident.to_string(),
            other => other.to_token_stream().to_string(),
        }),
    });
    names.collect()
}

const F64: fn(f64) -> Value = Value::F64;

#[test]
fn kernels_see_constants_and_functions_of_their_module_in_any_order() {
    check(
        "mod m {
            #[stencil] fn a(u: &Field<f64>) -> f64 { WIDE * second(u, X) }
            fn second(u: &Field<f64>, d: Offset) -> f64 { reach(u, REACH * d) }
            fn reach(u: &Field<f64>, d: Offset) -> f64 { u[d] }
            const REACH: i32 = ONE + 1;
            const WIDE: f64 = HALF * 4.0;
            const HALF: f64 = 0.5;
            const ONE: i32 = 1;
            #[stencil] fn b(u: &Field<f64>) -> f64 { let second = second(u, Y); second + HALF }
        }",
        &[("a", F64(4.0)), ("b", F64(20.5))],
    );
}

#[test]
fn functions_inside_a_kernel_hide_those_of_the_module() {
    check(
        "mod m {
            const W: f64 = 2.0;
            fn twice(u: &Field<f64>, d: Offset) -> f64 { W * u[d] }
            #[stencil] fn a(u: &Field<f64>) -> f64 { const W: f64 = 10.0; W * twice(u, X) }
            #[stencil] fn b(u: &Field<f64>) -> f64 { let twice = |d: Offset| u[d]; twice(Y) }
        }",
        &[("a", F64(20.0)), ("b", F64(10.0))],
    );
}

#[test]
fn a_constant_is_found_in_patterns_lengths_and_generic_arguments() {
    check(
        "mod m {
            const N: usize = 3; const LIMIT: i32 = 2; const R: usize = 4;
            fn at<const R: usize>(u: &Field<f64>) -> f64 { u[R as i32 * X] }
            #[stencil] fn a(u: &Field<f64>, a: i32) -> f64 {
                let w: [f64; N] = [1.0; N];
                let c = match a { LIMIT => 100.0, _ => 0.0 };
                at::<R>(u) + w[N - 1] + c
            }
        }",
        &[("a", F64(5.0))],
    );
}

#[test]
fn a_constant_of_the_module_may_be_a_length_in_the_signature() {
    check(
        "mod m {
            const N: usize = 3;
            #[stencil] fn a(u: &[Field<f64>; N]) -> [f64; N] {
                let mut r = [0.0; N]; for i in 0..N { r[i] = u[N - 1][i as i32 * X]; } r
            }
            #[stencil(N = 2)] fn b<const N: usize>(u: &[Field<f64>; N]) -> f64 { u[N - 1][X] }
        }",
        &[("a", F64(2000.0)), ("b_2", F64(1001.0))],
    );
}

#[test]
fn kernels_may_call_each_other() {
    check(
        "mod m {
            #[stencil] fn lap(u: &Field<f64>) -> f64 { u[X] + u[Y] }
            #[stencil] fn a(u: &Field<f64>, v: &Field<f64>) -> f64 { lap(u) + lap(v) }
        }",
        &[("lap", F64(11.0)), ("a", F64(2022.0))],
    );
}

#[test]
fn generic_kernels_share_generic_functions() {
    check(
        "mod m {
            fn diff<T, const R: usize>(u: &Field<T>, d: Offset) -> T { u[R as i32 * d] }
            #[stencil(T = f32 | f64, R = 1 | 2)]
            fn a<T, const R: usize>(u: &Field<T>) -> T { diff(u, X) + diff::<T, 3>(u, Y) }
            #[stencil] fn b(u: &Field<f64>) -> f64 { diff::<f64, 7>(u, Z) }
        }",
        &[
            ("a_f32_1", Value::F32(31.0)),
            ("a_f32_2", Value::F32(32.0)),
            ("a_f64_1", F64(31.0)),
            ("a_f64_2", F64(32.0)),
            ("b", F64(700.0)),
        ],
    );
}

#[test]
fn other_names_of_types_are_resolved() {
    check(
        "mod m {
            type Real = Single; type Single = f32;
            fn at(u: &Field<Real>) -> Real { u[X] }
            const HALF: Real = 0.5;
            #[polyhalo::stencil] fn a(u: &Field<Real>) -> Real { at(u) + HALF + Real::EPSILON }
        }",
        &[("a", Value::F32(1.5 + f32::EPSILON))],
    );
}

#[test]
fn other_names_of_arrays_and_tuples_are_resolved() {
    check(
        "mod m {
            type Real = f64; type State = [Real; 2]; type Rows = [State; 2]; type Both = (Real, State);
            const W: Rows = [[1.0, 2.0], [3.0, 4.0]];
            fn twice(s: State) -> State { let mut t: State = s; t[0] *= 2.0; t }
            fn both(u: &Field<Real>) -> Both { (u[X], twice([u[X], W[1][0]])) }
            #[stencil] fn a(u: &Field<Real>) -> State { let (x, s) = both(u); [s[0] + x, s[1]] }
            #[stencil] fn b(u: &Field<Real>) -> (Real, Real) { let s: State = [u[Y]; 2]; (s[0], s[1]) }
        }",
        &[("a", Value::F64(3.0)), ("b", Value::F64(10.0))],
    );
}

#[test]
fn a_name_of_a_type_that_only_kernels_use_is_no_dead_code() {
    let source = "mod m {
        type State = [f64; 2]; type Other = f32;
        #[stencil] fn a(u: &Field<f64>) -> State { [u[X]; 2] }
    }";
    let attributes = taken_apart("", source).items.into_iter().filter_map(|item| match item {
        ModuleItem::Other(item) => match *item {
            Item::Type(alias) => Some((alias.ident.to_string(), alias.attrs.len())),
            _ => None,
        },
        ModuleItem::Kernel(_) => None,
    });
    assert_eq!(attributes.collect::<Vec<_>>(), [("State".to_owned(), 1), ("Other".to_owned(), 0)]);
}

#[test]
fn options_of_the_module_hold_for_its_kernels() {
    let source = "mod m {
        #[stencil] fn a<T>(u: &Field<T>) -> T { u[X] }
        #[stencil(contract, T = f64, crate = own)] fn b<T>(u: &Field<T>) -> T { u[X] }
        #[stencil] fn c(u: &Field<f64>) -> f64 { u[X] }
    }";
    let module = taken_apart("T = f32 | f64, crate = crate::facade", source);
    let options = module.items.iter().map(|item| match item {
        ModuleItem::Kernel(kernel) => {
            let Options { contract, krate, lists } = kernel.options.clone().expect("they can be read");
            (contract, krate.expect("inherited").segments.len(), lists.iter().map(|list| list.values.len()).sum())
        }
        ModuleItem::Other(_) => panic!("there are kernels only"),
    });
    assert_eq!(options.collect::<Vec<(bool, usize, usize)>>(), [(false, 2, 2), (true, 1, 1), (false, 2, 0)]);
    assert!(mistakes("T = f32 | f64", source).is_empty());
    let wrong = mistakes("contract, S = f32", "mod m { #[stencil] fn c(u: &Field<f64>) -> f64 { u[X] } }");
    assert!(wrong.len() == 1 && wrong[0].contains("no kernel of this module has a generic parameter `S`"), "{wrong:?}");
}

#[test]
fn only_what_rust_can_compile_stays_outside_of_kernels() {
    let source = "mod m {
        use polyhalo::prelude::*;
        pub const W: f64 = 2.0;
        fn plain(x: f64) -> f64 { W * x }
        fn at(u: &Field<f64>, d: Offset) -> f64 { u[d] }
        fn shifted(d: Offset) -> Offset { d + X }
        fn caller(a: f64, f: &FieldX<f64>) -> f64 { plain(a) * f[HERE] }
        fn over_closures(f: impl Fn(Offset) -> f64) -> f64 { f(X) }
        #[stencil] pub fn a(u: &Field<f64>, f: &FieldX<f64>) -> f64 {
            plain(at(u, shifted(X))) + caller(1.0, f) + over_closures(|d| u[d])
        }
        fn unused(u: &Field<f64>) -> f64 { also(u) }
        fn also(u: &Field<f64>) -> f64 { u[X] }
        pub fn host(sim: &Simulation, u: &Field<f64>) -> Result<Step> { sim.step(|s| s.update(u, a(u))) }
        pub fn initial(p: Point) -> f64 { vec![p.i][0].into() }
        struct State { u: Field<f64> }
    }";
    let stay = stay(source);
    assert_eq!(stay[1..5], ["W", "plain", "host", "initial"], "{stay:?}");
    assert!(stay[0].contains("prelude") && stay[5].contains("State") && stay.len() == 6, "{stay:?}");
    let module = taken_apart("", source);
    let text: Vec<String> = module
        .items
        .iter()
        .filter_map(|item| match item {
            ModuleItem::Other(item) => Some(item.to_token_stream().to_string()),
            ModuleItem::Kernel(_) => None,
        })
        .collect();
    assert!(text[1].starts_with("# [allow (dead_code)] pub const") && !text[4].contains("allow"), "{text:?}");
}

#[test]
fn a_mistake_in_a_shared_function_is_told_once_where_it_is() {
    refused_with(
        "mod m {
            fn at(u: &Field<f64>) -> f64 {
                u[0]
            }
            #[stencil] fn a(u: &Field<f64>) -> f64 { at(u) }
            #[stencil] fn b(u: &Field<f64>) -> f64 { 2.0 * at(u) }
            #[stencil(T = f32 | f64)] fn c<T>(u: &Field<f64>, v: &Field<T>) -> T { v[1] + at(u) as T }
        }",
        2,
        &["3:19: field `u` is indexed by an integer", "7:86: field `v` is indexed by an integer"],
    );
    refused_with(
        "mod m {
            fn unused(u: &Field<f64>) -> f64 { u[nowhere] }
            #[stencil] fn a(u: &Field<f64>) -> f64 { u[X] }
        }",
        1,
        &["2:50: `nowhere` is not known inside the stencil"],
    );
    refused_with("mod m { #[stencil] fn a(u: &Field<f64>) -> f64 { a(u) } }", 1, &["`a` calls itself"]);
}

#[test]
fn what_a_module_can_not_be_is_explained() {
    refused_with(
        "mod empty { fn at(x: f64) -> f64 { x } }",
        1,
        &["1:5: the module `empty` has no kernel", "`#[stencil]`"],
    );
    refused_with(
        "mod m { #[stencil(fast, T = f32)] fn a(u: &Field<f64>) -> f64 { u[X] } #[stencil = 1] fn b() {} }",
        2,
        &["`fast` is not an option", "stand in parentheses"],
    );
    refused_with(
        "mod m { #[cfg(unix)] const A: f64 = 1.0; #[stencil] fn a(u: &Field<f64>) -> f64 { A * u[X] } }",
        1,
        &["1:9: `A` is used in a stencil, so it can't have a `cfg`"],
    );
    refused_with(
        "mod m { fn f(x: f64) -> f64 { x } fn g(x: f64) -> f64 { f(x) } \
         #[stencil] fn a(f: &Field<f64>) -> f64 { g(f[X]) } }",
        1,
        &["1:80: the parameter `f` has the name of a function"],
    );
    let elsewhere: ItemMod = syn::parse_str("mod elsewhere;").expect("Rust");
    let wrong = module(&elsewhere, &Options::default()).err().expect("refused").diagnostics;
    assert!(
        wrong[0].to_string().starts_with("1:5: the text of the module `elsewhere` is in another file"),
        "{wrong:?}"
    );
}

/// Tokens with leaf number `at` replaced by others; `at` counts down.
fn edited(tokens: proc_macro2::TokenStream, at: &mut i32, by: &str) -> proc_macro2::TokenStream {
    let mut edited_tokens = proc_macro2::TokenStream::new();
    for token in tokens {
        match token {
            proc_macro2::TokenTree::Group(group) => {
                let inner = edited(group.stream(), at, by);
                edited_tokens
                    .extend([proc_macro2::TokenTree::Group(proc_macro2::Group::new(group.delimiter(), inner))]);
            }
            leaf => {
                *at -= 1;
                if *at == -1 {
                    edited_tokens.extend(by.parse::<proc_macro2::TokenStream>().expect("tokens"));
                } else {
                    edited_tokens.extend([leaf]);
                }
            }
        }
    }
    edited_tokens
}

#[test]
fn tokens_out_of_place_are_never_a_panic() {
    let source: proc_macro2::TokenStream = "mod m {
            type Real = f32;
            const N: usize = 2; const W: [f64; 2] = [1.0, -2.0];
            fn at<T, const R: usize>(u: &Field<T>, d: Offset) -> T { u[R as i32 * d] * W[N - R] as T }
            fn lap<'a>(u: &'a Field<Real>) -> Real { at::<Real, 2>(u, X) + at::<f32, N>(u, -Y) }
            #[stencil(contract)] fn a(s: &[Field<Real>; N], b: i8) -> [Real; N] { [lap(&s[0]), s[1][HERE] * b as Real] }
            #[stencil(T = f32 | f64, R = 1 | 2)]
            fn b<'a, T: Copy, const R: usize>(u: &'a Field<T>, p: Point) -> (T, bool) where T: Send {
                let at = at::<_, R>(u, Z); (at + T::EPSILON, p.i == 2)
            }
        }"
    .parse()
    .expect("tokens");
    let unedited = mistakes("", &source.to_string());
    assert!(unedited.is_empty(), "{unedited:#?}");
    let (mut accepted, mut refused, mut not_rust) = (0, 0, 0);
    for by in ["", "T", "R", "at", "f64", "2", "-", "::", "<", "a b", "{ N }", "'a", "\"s\"", "[u8; 2]", "#[stencil]"] {
        for place in 0.. {
            let mut at = place;
            let tokens = edited(source.clone(), &mut at, by);
            if at >= 0 {
                assert!(place > 150, "there are so many tokens");
                break;
            }
            let Ok(item) = syn::parse2::<ItemMod>(tokens) else {
                not_rust += 1;
                continue;
            };
            let wrong = match module(&item, &Options::default()) {
                Ok(module) => {
                    let kernels = module.items.iter().filter_map(|item| match item {
                        ModuleItem::Kernel(kernel) => kernel.options.as_ref().map(|options| (kernel, options)),
                        ModuleItem::Other(_) => None,
                    });
                    let wrong = kernels.filter_map(|(kernel, options)| {
                        let made = instances(&kernel.function, &kernel.helpers, options);
                        made.and_then(|made| compile_instances(&made, options)).err()
                    });
                    merge(wrong.chain(module.mistakes.clone())).diagnostics
                }
                Err(refused) => refused.diagnostics,
            };
            if wrong.is_empty() { accepted += 1 } else { refused += 1 }
        }
    }
    assert!(accepted > 100 && refused > 300 && not_rust > 300, "{accepted} {refused} {not_rust}");
}
