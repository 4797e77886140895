//! What the language accepts, by the value it has at the numbered point.

use super::{Numbered, accepted, check, run, run_all};
use crate::front::{Options, ParameterKind, Shape, compile};
use crate::interpret::interpret;
use crate::ir::{ExprKind, Field, Id, Role, Stmt, Type, Value};

#[test]
fn offsets_are_sums_and_multiples() {
    check("u[HERE]", 0.0);
    check("u[X] + u[Y] + u[Z]", 111.0);
    check("u[2*X - Y]", -8.0);
    check("u[-(X + Y) * 2]", -22.0);
    check("v[Z - 3*Z + X]", 801.0);
    check("const R: i32 = 4; u[R*X] - u[-R*X]", 8.0);
    check("let d = X + Z; u[d] + u[-d]", 0.0);
    check("u[Offset::Y]", 10.0);
}

#[test]
fn arithmetic_is_rusts() {
    check("u[3*X] - (v[HERE] - u[X])", 3.0 - (1000.0 - 1.0));
    check("a / b / 3.0", 0.5 / 1.5 / 3.0);
    check("-a * -b", 0.75);
    check("-u[X].abs()", -1.0);
    check("(a - 2.0).abs().sqrt().mul_add(2.0, b)", 1.5_f64.sqrt().mul_add(2.0, 1.5));
    check("f64::sqrt(v[HERE])", 1000.0_f64.sqrt());
    check("let z = -0.0; z * a", -0.0);
    check("2f64 + 1e-3 + 1_000.5", 2.0 + 1e-3 + 1000.5);
    check("std::f64::consts::PI + f64::EPSILON", std::f64::consts::PI + f64::EPSILON);
}

#[test]
fn names_are_shadowed_and_assigned() {
    check("let x = a; let x = x + 1.0; x", 1.5);
    check("let mut s = a; s += 2.0; s *= s; s -= 1.0; s /= 2.0; s", 2.625);
    check("let s = a; let f = |x: f64| x + s; let s = 100.0; f(1.0) + s", 101.5);
    check("let mut s = a; let t = s; s = 9.0; t + s", 9.5);
    check("let mut s = a; let t = (s, [s, s + 1.0]); s = 9.0; t.0 + t.1[0] + t.1[1] + s", 0.5 + 0.5 + 1.5 + 9.0);
    check("let (x, [y, z]) = (a, [b, 2.0]); x + y * z", 3.5);
    check("let r#type = a; r#type", 0.5);
    check("let x = { let a = 5.0; a }; x + a", 5.5);
    check("return a;", 0.5);
}

#[test]
fn closures_and_functions_are_inlined() {
    check("let f = |d: Offset| u[d] - u[-d]; f(X) + f(2*Y)", 2.0 + 40.0);
    check("let lap = |w: &Field<f64>| w[X] + w[-X] - 2.0 * w[HERE]; lap(u) + lap(&v)", 0.0);
    check("fn square(x: f64) -> f64 { x * x } square(b) + square(square(2.0))", 18.25);
    check("let g = |f: f64, d| f * u[d]; g(a, X) + g(b, Y)", 15.5);
    check("let apply = |n: i32, x: f64| x * n as f64; apply(3, a)", 1.5);
    check("let twice = |x: f64| { let y = x + x; y }; let four = |x| twice(twice(x)); four(a)", 2.0);
    check("let mut s = 0.0; let unused = |x: f64| x; s += 1.0; s", 1.0);
}

#[test]
fn loops_are_unrolled() {
    check("let mut s = 0.0; for i in -1..=1 { for j in 0..2 { s += u[i*X + j*Y] } } s", 30.0);
    check("let mut s = 0.0; for d in [X, -Y, Z] { s += u[d]; } s", 91.0);
    check(
        "const W: [f64; 3] = [1.0, 2.0, 4.0]; let mut s = 0.0; for i in 0..W.len() { s += W[i] * u[i as i32 * X]; } s",
        10.0,
    );
    check("let mut s = 0.0; for (i, w) in [3.0, 5.0].iter().enumerate() { s += w * i as f64; } s", 5.0);
    check("let mut s = 0.0; for (d, w) in [X, Y].into_iter().zip([2.0, 3.0]) { s += w * u[d]; } s", 32.0);
    check("let mut s = a; for i in (0..6).step_by(2).rev() { s = s * 2.0 + i as f64; } s", 4.0 + 16.0 + 4.0);
    check("let mut s = 0.0; for i in 5..5 { s += 1.0; } s + a", 0.5);
    check("let mut n = 0; let mut s = 0.0; for d in [X, Y, Z] { n += 1; s += u[n * d]; } s", 1.0 + 20.0 + 300.0);
}

#[test]
fn branches_choose() {
    check("if a < b { u[X] } else { u[Y] }", 1.0);
    check("let c = if a > b { 1.0 } else if a == 0.5 { 2.0 } else { 3.0 }; c", 2.0);
    check("let mut s = a; if !(a >= b) && b != 0.0 || a > 7.0 { s = b; } s", 1.5);
    check("let (x, y) = if a < b { (a, b) } else { (b, a) }; y - x", 1.0);
    check("let mut s = 0.0; for i in -1..=1 { if i != 0 { s += u[i * X + Y]; } } s", 20.0);
    check("if (1, 2) == (1, 2) && true { a } else { b }", 0.5);
    check("let inside = a < b; if inside == (b < 2.0) { 1.0 } else { 0.0 }", 1.0);
}

#[test]
fn literals_take_the_type_of_their_use() {
    let source = "fn k(u: &Field<f32>) -> f32 { let w = 0.1; let mut s = 0.0; s += w * u[X]; s / 3.0 }";
    assert_eq!(run(source), Value::F32(0.1_f32 / 3.0));
    let source = "fn k(u: &Field<f32>, v: &Field<f64>) -> f64 { let w = 0.1; (u[X] * w) as f64 + v[HERE] * 0.1 }";
    assert_eq!(run(source), Value::F64(f64::from(0.1_f32) + 1000.0 * 0.1));
    // Rounded once, from the digits: through f64 this would be another float.
    let digits = "0.50000002980232238769531250000000001";
    let source = format!("fn k(u: &Field<f32>) -> f32 {{ u[HERE] + {digits} }}");
    assert_eq!(run(&source), Value::F32(digits.parse().unwrap()));
}

#[test]
fn results_and_calls_say_what_they_are() {
    let source = "fn k(u: &Field<f64>) -> f64 { let flux = |d: Offset| u[d] - u[HERE]; flux(-X) + flux(2 * Y) }";
    let kernel = accepted(source).kernel;
    let notes: Vec<_> = kernel.locals.iter().map(|local| local.note.clone().unwrap_or_default()).collect();
    assert_eq!(notes, ["flux(-X)", "flux(2*Y)"]);
    let source =
        "fn k(u: &Field<f64>) -> f64 { let f = |d: Offset| u[d] * 2.0; let a = f(X); let b = f(Y) + 1.0; a - b }";
    let kernel = accepted(source).kernel;
    let names: Vec<_> = kernel.locals.iter().map(|local| local.name.as_str()).collect();
    assert_eq!(names, ["a", "f", "b"], "the user's name where there is one, else the closure's");
}

#[test]
fn parameters_are_of_every_type() {
    for ty in Type::ALL {
        let one = Value::from_bits(ty, 1);
        let source = format!("fn k(u: &Field<{ty}>, a: {ty}) -> {ty} {{ u[X] }}");
        let expected = match ty {
            Type::F64 => Value::F64(1.0),
            Type::F32 => Value::F32(1.0),
            _ => one,
        };
        assert_eq!(run(&source), expected);
    }
    let source = "fn k(u: &Field<f64>, p: Point) -> f64 { u[X] + (p.i + 10 * p.j + 100 * p.k) as f64 }";
    assert_eq!(run(source), Value::F64(1.0 + 987.0));
    let source = "fn k(s: &[Field<f64>; 3], a: f64) -> f64 {
        let mut t = 0.0;
        for f in s { t += f[X]; }
        for i in 0..s.len() { t += s[i][Y] * a; }
        t
    }";
    assert_eq!(run(source), Value::F64(3003.0 + 0.5 * 3030.0));
    let compiled = accepted(source);
    let names: Vec<_> = compiled.kernel.fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["s[0]", "s[1]", "s[2]"]);
    assert_eq!(compiled.parameters[0].kind, ParameterKind::Fields([0, 1, 2].map(Id::new).to_vec()));
    let point = accepted("fn k(u: &Field<f64>, p: Point, a: f64) -> f64 { a }");
    let kinds: Vec<_> = point.parameters.iter().map(|parameter| parameter.kind.clone()).collect();
    let [field, param] = [ParameterKind::Field(Id::new(0)), ParameterKind::Scalar(Id::new(0))];
    assert_eq!(kinds, [field, ParameterKind::Point, param]);
}

#[test]
fn results_are_one_or_several() {
    let source = "fn k(u: &Field<f64>) -> (f64, i32, bool) { (u[X], 3, u[X] > u[Y]) }";
    assert_eq!(run_all(source), [Value::F64(1.0), Value::I32(3), Value::Bool(false)]);
    assert_eq!(accepted(source).shape, Shape::Tuple(3));
    let source = "fn k(u: &Field<f32>) -> [f32; 2] { let mut w = [0.0; 2]; w[0] += u[X]; w[1] = 2.5; w }";
    assert_eq!(run_all(source), [Value::F32(1.0), Value::F32(2.5)]);
    assert_eq!(accepted(source).shape, Shape::Array(2));
    let source = "fn k(u: &Field<f64>) -> (f64, f64) { if u[X] > 0.0 { return (u[Y], 1.0); } (2.0, u[Z]) }";
    assert_eq!(run_all(source), [Value::F64(10.0), Value::F64(1.0)]);
    assert_eq!(accepted("fn k(u: &Field<f64>) -> f64 { 1.0 }").shape, Shape::Single);
}

#[test]
fn fields_extend_along_some_axes() {
    for (name, axes) in Field::TYPES {
        let compiled =
            accepted(&format!("fn k(u: &Field<f64>, s: &{name}<f32>, t: &[{name}<u8>; 2]) -> f32 {{ s[HERE] }}"));
        let found: Vec<_> =
            compiled.kernel.fields.iter().map(|field| (field.name.as_str(), field.ty, field.axes)).collect();
        let expected =
            [("u", Type::F64, [true; 3]), ("s", Type::F32, axes), ("t[0]", Type::U8, axes), ("t[1]", Type::U8, axes)];
        assert_eq!(found, expected);
        let kinds: Vec<_> = compiled.parameters.into_iter().map(|parameter| parameter.kind).collect();
        let fields = ParameterKind::Fields([2, 3].map(Id::new).to_vec());
        assert_eq!(kinds, [ParameterKind::Field(Id::new(0)), ParameterKind::Field(Id::new(1)), fields]);
    }
    let source = "fn k(u: &Field<f64>, s: &FieldXZ<f64>) -> f64 { u[X + Y] * s[2*X - Z] }";
    assert_eq!(run(source), Value::F64(11.0 * (1000.0 + 2.0 - 100.0)));
    assert_eq!(run("fn k(s: &polyhalo::FieldX<f64>) -> f64 { s[X] }"), Value::F64(1.0));
}

#[test]
fn results_are_values_or_folds() {
    let check = |result: &str, body: &str, roles: &[Role], values: &[Value]| {
        let source = format!("fn k(u: &Field<f64>) -> {result} {{ {body} }}");
        let found: Vec<_> = accepted(&source).kernel.outputs.iter().map(|output| output.role).collect();
        assert_eq!(found, roles, "{source}");
        assert_eq!(run_all(&source), values, "{source}");
    };
    let [one, ten] = [1.0, 10.0].map(Value::F64);
    check("Sum<f64>", "Sum(u[X])", &[Role::Sum], &[one]);
    check("polyhalo::Max<f64>", "polyhalo::Max(u[X])", &[Role::Max], &[one]);
    check("Min<i32>", "Min(-3)", &[Role::Min], &[Value::I32(-3)]);
    check(
        "(f64, Sum<f64>, Max<f64>)",
        "(u[X], Sum(u[Y]), Max(u[X]))",
        &[Role::Value, Role::Sum, Role::Max],
        &[one, ten, one],
    );
    check("[Min<f64>; 2]", "[Min(u[X]), Min(u[Y])]", &[Role::Min; 2], &[one, ten]);
    // A name that means something else here is no fold.
    check("f64", "let Sum = |x: f64| x + 1.0; Sum(0.0)", &[Role::Value], &[one]);
    assert_eq!(accepted("fn k(u: &Field<f64>) -> (f64, Sum<f64>) { (1.0, Sum(2.0)) }").shape, Shape::Tuple(2));
    assert_eq!(accepted("fn k(u: &Field<f64>) -> [Max<f64>; 1] { [Max(1.0)] }").shape, Shape::Array(1));
    assert_eq!(accepted("fn k(u: &Field<f64>) -> Sum<f64> { Sum(1.0) }").shape, Shape::Single);
}

#[test]
fn a_mutable_integer_is_a_counter_until_something_at_run_time_decides_it() {
    let kernel = |body: &str| accepted(&format!("fn k(u: &Field<f64>, n: i32) -> f64 {{ {body} }}")).kernel;
    let counted = kernel("let mut m = 0; for d in [X, Y] { m += 1; if m > 1 { m += 2; } } u[m * X]");
    assert!(counted.locals.is_empty(), "it is known: {:?}", counted.locals);
    for body in [
        "let mut m = 0; if u[X] > 0.0 { m += 1; } m as f64",
        "let mut m = 0; m += n; m as f64",
        "let mut m = 0; let f = |d: Offset| if u[d] > 0.0 { 1 } else { 0 }; m += f(X); m as f64",
        "let mut m = 0; let mut l = 0; l += n; m += l; m as f64",
        "let mut m = false; m |= n > 3; if m { 1.0 } else { 2.0 }",
    ] {
        assert!(kernel(body).locals.iter().any(|local| local.mutable && local.name == "m"), "{body}");
    }
}

#[test]
fn early_return_stores_every_output_once() {
    fn stores(block: &[Stmt]) -> usize {
        let count = |stmt: &Stmt| match stmt {
            Stmt::Store { .. } => 1,
            Stmt::If { then, otherwise, .. } => stores(then) + stores(otherwise),
            Stmt::Let { .. } | Stmt::Assign { .. } => 0,
        };
        block.iter().map(count).sum()
    }
    let source = "fn k(u: &Field<f64>) -> f64 {
        for d in [X, Y, Z] { if u[d] < 0.0 { if u[-d] > 0.0 { return u[d]; } } }
        u[HERE]
    }";
    assert_eq!(stores(&accepted(source).kernel.body), 1);
    assert_eq!(run(source), Value::F64(0.0));
}

#[test]
fn tables_are_made_once_and_only_where_the_index_is_not_known() {
    let source = "fn k(u: &Field<i32>) -> f64 {
        const W: [f64; 3] = [1.0, 2.0 / 4.0, -3.0];
        let f = |d: Offset| W[u[d] as usize];
        f(X) + f(HERE) + W[2]
    }";
    assert_eq!(run(source), Value::F64(0.5 + 1.0 - 3.0));
    let kernel = accepted(source).kernel;
    assert_eq!(kernel.tables.len(), 1);
    let table = &kernel.tables[Id::new(0)];
    assert_eq!((table.name.as_str(), &table.values[..]), ("W", &[1.0, 0.5, -3.0].map(Value::F64)[..]));
    // Far and negative indices read the last element.
    let source = "fn k(u: &Field<i32>) -> i32 { let w = [5, 6, 7]; w[u[Z] as usize] + 10 * w[u[-X] as usize] }";
    assert_eq!(run(source), Value::I32(77));
}

#[test]
fn rows_of_a_table_are_chosen_at_run_time() {
    let table = "const T: [[f64; 3]; 2] = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];";
    let kernel = |body: &str| format!("fn k(u: &Field<i32>) -> f64 {{ {table} {body} }}");
    for (body, expected) in [
        ("T[u[X] as usize][1]", 5.0),
        ("T[u[HERE] as usize][2]", 3.0),
        ("T[u[HERE] as usize][u[X] as usize]", 2.0),
        ("T[1][u[X] as usize]", 5.0),
        // Each index beyond the end is the last one.
        ("T[u[Y] as usize][0] + 10.0 * T[u[HERE] as usize][u[Y] as usize]", 34.0),
        ("T[u[-X] as usize][0]", 4.0),
    ] {
        assert_eq!(run(&kernel(body)), Value::F64(expected), "{body}");
    }
    assert_eq!(accepted(&kernel("T[u[X] as usize][1] + T[u[Y] as usize][2]")).kernel.tables.len(), 1);
}

#[test]
fn what_a_macro_was_given_means_what_is_written() {
    use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
    use quote::quote;
    let group = |tokens: TokenStream| TokenStream::from(TokenTree::Group(Group::new(Delimiter::None, tokens)));
    let (float, field, two, sum) =
        (group(quote!(f64)), group(quote!(Field<f64>)), group(quote!(2)), group(quote!(u[X] + 1.0)));
    let tokens = quote! {
        fn k(u: &Field<#float>, s: &[#field; #two], a: #float) -> (#float, #float) {
            let x: #float = #sum * 2.0;
            (x + s[1][#two * X], x as #float)
        }
    };
    let function = syn::parse2(tokens).expect("it is a function");
    let compiled = compile(&function, &Options::default()).expect("it is accepted");
    let values = interpret(&compiled.kernel, &Numbered(&compiled.kernel));
    assert_eq!(values, [Value::F64(4.0 + 2002.0), Value::F64(4.0)]);
}

#[test]
fn powers_multiply_as_the_compilers_runtime_does() {
    let kernel = accepted("fn k(u: &Field<f64>) -> f64 { u[X].powi(13) }").kernel;
    let products = kernel.exprs.iter().filter(|expr| matches!(expr.kind, ExprKind::Binary(..))).count();
    assert_eq!(products, 5, "three squares and two products");
}
