//! Simulations whose fields and scalars have every type, with several results, fields taken at once and indices.

use super::*;
use crate::testing::{BUNDLE, CHECKED, MIXED, Nine, mixed, plain_range};

/// Nine fields, one of each type, in the order of [`kernel::ScalarType::ALL`].
type Fields =
    (Field<f64>, Field<f32>, Field<i64>, Field<i32>, Field<i8>, Field<u64>, Field<u32>, Field<u8>, Field<bool>);

/// The values of fields of each type.
type Arrays = (
    Array3<f64>,
    Array3<f32>,
    Array3<i64>,
    Array3<i32>,
    Array3<i8>,
    Array3<u64>,
    Array3<u32>,
    Array3<u8>,
    Array3<bool>,
);

/// Values of all bits of each type; floats are finite.
fn arrays(cells: [usize; 3], seed: u64) -> Arrays {
    fn values<T>(cells: [usize; 3], seed: u64, value: impl Fn(f64) -> T) -> Array3<T> {
        let mut random = noise(seed);
        Array3::from_shape_simple_fn(Extent::new(cells).unwrap().shape(), || value(random()))
    }
    let word = |value: f64| (value * 2.0_f64.powi(53)) as u64;
    (
        values(cells, seed, |value| value - 0.5),
        values(cells, seed + 1, |value| value as f32 - 0.5),
        values(cells, seed + 2, |value| word(value).wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64),
        values(cells, seed + 3, |value| word(value) as i32),
        values(cells, seed + 4, |value| word(value) as i8),
        values(cells, seed + 5, |value| word(value).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        values(cells, seed + 6, |value| word(value) as u32),
        values(cells, seed + 7, |value| word(value) as u8),
        values(cells, seed + 8, |value| value < 0.5),
    )
}

fn fields(sim: &Simulation, prefix: &str, values: &Arrays) -> Fields {
    fn field<T: Element>(sim: &Simulation, name: String, values: &Array3<T>) -> Field<T> {
        sim.field_from(&name, values).unwrap()
    }
    let name = |name: &str| format!("{prefix}{name}");
    (
        field(sim, name("a"), &values.0),
        field(sim, name("b"), &values.1),
        field(sim, name("c"), &values.2),
        field(sim, name("d"), &values.3),
        field(sim, name("e"), &values.4),
        field(sim, name("f"), &values.5),
        field(sim, name("g"), &values.6),
        field(sim, name("h"), &values.7),
        field(sim, name("m"), &values.8),
    )
}

fn read(fields: &Fields) -> Arrays {
    fn read<T: Element>(field: &Field<T>) -> Array3<T> {
        field.read().unwrap()
    }
    (
        read(&fields.0),
        read(&fields.1),
        read(&fields.2),
        read(&fields.3),
        read(&fields.4),
        read(&fields.5),
        read(&fields.6),
        read(&fields.7),
        read(&fields.8),
    )
}

/// What `#[stencil]` makes of a kernel with a parameter of type `Point`, which isn't passed.
fn call(from: &Fields, scalars: Nine) -> Call<Nine> {
    let fields = vec![
        from.0.reference(),
        from.1.reference(),
        from.2.reference(),
        from.3.reference(),
        from.4.reference(),
        from.5.reference(),
        from.6.reference(),
        from.7.reference(),
        from.8.reference(),
    ];
    let (a, b, c, d, e, f, g, h, m) = scalars;
    let scalars = vec![
        argument(a),
        argument(b),
        argument(c),
        argument(d),
        argument(e),
        argument(f),
        argument(g),
        argument(h),
        argument(m),
    ];
    Call::new(&MIXED, fields, scalars)
}

fn targets(to: &Fields) -> impl Targets<Nine> + '_ {
    (&to.0, &to.1, &to.2, &to.3, &to.4, &to.5, &to.6, &to.7, &to.8)
}

const SCALARS: Nine = (0.3, -1.5, -7_000_000_011, i32::MAX, -100, u64::MAX - 4, 37, 201, true);

/// The results of the kernel over its widest range; elsewhere what was there before.
fn expected(from: &Arrays, mut to: Arrays) -> Arrays {
    let (nz, ny, nx) = from.0.dim();
    let range = plain_range(&MIXED, [nx, ny, nz]).unwrap();
    for (k, j, i) in (0..nz).flat_map(|k| (0..ny).flat_map(move |j| (0..nx).map(move |i| (k, j, i)))) {
        if !range.holds([i as i64, j as i64, k as i64]) {
            continue;
        }
        let cells = (
            from.0[[k, j, i + 1]],
            from.1[[k, j, i - 1]],
            from.2[[k, j + 1, i]],
            from.3[[k, j - 1, i]],
            from.4[[k + 1, j, i]],
            from.5[[k - 1, j, i]],
            from.6[[k, j, i]],
            from.7[[k, j + 1, i + 2]],
            from.8[[k, j, i]],
        );
        let values = mixed(cells, SCALARS, [i as i32, j as i32, k as i32]);
        to.0[[k, j, i]] = values.0;
        to.1[[k, j, i]] = values.1;
        to.2[[k, j, i]] = values.2;
        to.3[[k, j, i]] = values.3;
        to.4[[k, j, i]] = values.4;
        to.5[[k, j, i]] = values.5;
        to.6[[k, j, i]] = values.6;
        to.7[[k, j, i]] = values.7;
        to.8[[k, j, i]] = values.8;
    }
    to
}

#[test]
fn fields_scalars_and_results_of_every_type_keep_their_bits_everywhere() {
    for cells in [[4, 3, 3], [5, 4, 7], [13, 5, 3], [67, 3, 4], [131, 17, 5]] {
        let (from, to) = (arrays(cells, 3), arrays(cells, 30));
        let wanted = expected(&from, to.clone());
        assert!(wanted != to);
        for sim in everywhere(cells) {
            let (a, b) = (fields(&sim, "", &from), fields(&sim, "new ", &to));
            assert!(read(&a) == from && read(&b) == to, "{sim:?}");
            let step = sim.step(|s| s.update(targets(&b), call(&a, SCALARS))).unwrap();
            sim.run(&step, 3).unwrap();
            assert!(read(&b) == wanted, "{sim:?}");
            // The same through second buffers.
            let step = sim.step(|s| s.update(targets(&a), call(&a, SCALARS))).unwrap();
            sim.run(&step, 2).unwrap();
            let once = expected(&from, from.clone());
            assert!(read(&a) == expected(&once, once.clone()), "{sim:?}");
        }
    }
}

#[test]
fn the_order_in_which_types_meet_changes_nothing() {
    let cells = [21, 5, 4];
    let bytes = arrays(cells, 5).7;
    let doubles = arrays(cells, 5).0;
    for sim in everywhere(cells) {
        let first = sim.field_from("bytes", &bytes).unwrap();
        let second = sim.field_from("doubles", &doubles).unwrap();
        assert!(first.read().unwrap() == bytes && second.read().unwrap() == doubles);
        let place = [20, 4, 3];
        assert_eq!((first.get(place).unwrap(), second.get(place).unwrap()), (bytes[[3, 4, 20]], doubles[[3, 4, 20]]));
    }
}

#[test]
fn fields_in_an_array_take_the_values_of_an_array() {
    for cells in [[2, 1, 1], [7, 3, 2], [40, 5, 3]] {
        for sim in everywhere(cells) {
            let start = [1, 2, 3].map(|seed| arrays(cells, seed).3);
            let mut number = 0;
            let f: [Field<i32>; 3] = start.each_ref().map(|values| {
                number += 1;
                sim.field_from(&format!("f{number}"), values).unwrap()
            });
            let call = || Call::<[i32; 3]>::new(&BUNDLE, f.iter().map(Field::reference).collect(), Vec::new());
            let steps = [
                sim.step(|s| s.update(&f, call())).unwrap(),
                sim.step(|s| s.update([&f[0], &f[1], &f[2]], call())).unwrap(),
            ];
            let mut values = start;
            for step in &steps {
                sim.run(step, 1).unwrap();
                let old = values.clone();
                for ((k, j, i), _) in old[0].indexed_iter().filter(|((_, _, i), _)| *i > 0) {
                    values[0][[k, j, i]] = old[1][[k, j, i]];
                    values[1][[k, j, i]] = old[2][[k, j, i]].wrapping_mul(3);
                    values[2][[k, j, i]] = old[0][[k, j, i - 1]];
                }
                let found = f.each_ref().map(|field| field.read().unwrap());
                assert!(found == values, "{sim:?}");
            }
            let twice = sim.step(|s| s.update([&f[0], &f[1], &f[0]], call())).unwrap_err();
            assert!(matches!(&twice, Error::WrittenTwice { field, .. } if field == "f1"), "{twice}");
        }
    }
}

#[test]
fn a_panic_in_the_users_arithmetic_is_an_error_with_the_point_and_what_others_do() {
    let cells = [5, 4, 3];
    let check = |value: i32, expected: &str| {
        let sim = on(cells, "reference");
        let a = sim.field_from("a", |p: Point| if [p.i, p.j, p.k] == [3, 1, 2] { value } else { 6 }).unwrap();
        let to = [sim.field::<i32>("b").unwrap(), sim.field::<i32>("c").unwrap()];
        let call = Call::<[i32; 2]>::new(&CHECKED, vec![a.reference()], Vec::new());
        let step = sim.step(|s| s.update(&to, call)).unwrap();
        match sim.run(&step, 2).unwrap_err().cause() {
            Error::Panicked { device, place, message } => {
                assert_eq!((&**device, &**place), ("reference (1 thread)", "`checked` at point (3, 1, 2)"));
                assert!(message.starts_with("attempt to") || message.starts_with("index"), "{message}");
                assert!(message.ends_with(expected), "{message}");
            }
            other => panic!("{other}"),
        }
        assert!(matches!(to[0].read(), Err(Error::Stopped { steps: 0, checkpoint: None })));
        assert!(matches!(sim.run(&step, 1), Err(Error::Stopped { steps: 0, checkpoint: None })));
        // The next simulation in the same process has nothing of it.
        let sim = on(cells, "reference");
        let a = sim.field_from("a", |_: Point| 6).unwrap();
        let to = [sim.field::<i32>("b").unwrap(), sim.field::<i32>("c").unwrap()];
        let call = Call::<[i32; 2]>::new(&CHECKED, vec![a.reference()], Vec::new());
        sim.run(&sim.step(|s| s.update(&to, call)).unwrap(), 1).unwrap();
        assert_eq!((to[0].get([3, 1, 2]).unwrap(), to[1].get([3, 1, 2]).unwrap()), (16, 6));
    };
    check(0, "divide by zero; the other devices give 0 there");
    check(4, "but the index is 4; the other devices read the last element of a table there");
}

#[test]
fn files_hold_every_type_as_numpy_names_it() {
    fn check<T: Element>(sim: &Simulation, folder: &Folder, values: &Array3<T>, descriptor: &str) {
        let path = folder.path(descriptor.trim_start_matches(['<', '|']));
        let field = sim.field_from(descriptor, values).unwrap();
        field.save(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let header = String::from_utf8_lossy(&bytes[..128]).into_owned();
        assert!(header.contains(&format!("'descr': '{descriptor}'")), "{header}");
        let mut data = Vec::new();
        values.iter().for_each(|value| value.append(&mut data));
        assert!(bytes.ends_with(&data));
        field.set(|_: Point| T::default()).unwrap();
        assert!(field.read().unwrap() != *values);
        field.set(path.as_path()).unwrap();
        assert!(field.read().unwrap() == *values, "{descriptor}");
        field.save_png(folder.path("u.png"), Plane::Y(2)).unwrap();
    }
    let folder = Folder::new("types");
    let cells = [7, 5, 3];
    let values = arrays(cells, 8);
    for sim in [on(cells, "reference"), on(cells, "host")] {
        check(&sim, &folder, &values.0, "<f8");
        check(&sim, &folder, &values.1, "<f4");
        check(&sim, &folder, &values.2, "<i8");
        check(&sim, &folder, &values.3, "<i4");
        check(&sim, &folder, &values.4, "|i1");
        check(&sim, &folder, &values.5, "<u8");
        check(&sim, &folder, &values.6, "<u4");
        check(&sim, &folder, &values.7, "|u1");
        check(&sim, &folder, &values.8, "|b1");
        let wrong = sim.field::<i32>("whole").unwrap().set(folder.path("u4")).unwrap_err();
        assert!(wrong.to_string().ends_with("cells of type '<u4', and the field has i32"), "{wrong}");
        let broken = folder.path("broken");
        let mut bytes = std::fs::read(folder.path("b1")).unwrap();
        *bytes.last_mut().unwrap() = 2;
        std::fs::write(&broken, bytes).unwrap();
        let flags = sim.field::<bool>("flags").unwrap();
        assert!(matches!(flags.set(broken), Err(Error::Read { .. })));
    }
}

#[test]
fn mistakes_name_the_types() {
    let sim = on([5, 4, 4], "host");
    let from = fields(&sim, "", &arrays([5, 4, 4], 1));
    let wrong = Call::<f64>::new(&BUNDLE, vec![from.3.reference(), from.6.reference(), from.3.reference()], Vec::new());
    let to = sim.field::<f64>("to").unwrap();
    let error = sim.step(|s| s.update(&to, wrong)).unwrap_err();
    assert!(matches!(error, Error::Arguments { what: "results", expected: 3, found: 1, .. }), "{error}");
    let wrong =
        Call::<[i32; 3]>::new(&BUNDLE, vec![from.3.reference(), from.6.reference(), from.3.reference()], Vec::new());
    let more = ["x", "y", "z"].map(|name| sim.field::<i32>(name).unwrap());
    let error = sim.step(|s| s.update(&more, wrong)).unwrap_err();
    assert_eq!(error.to_string(), "`bundle` wants i32 for parameter `f[1]`, and field `g` holds u32");
}

#[test]
fn an_explanation_names_functions_that_vendors_compute_in_their_own_way() {
    let sim = on([6, 5, 4], "host");
    let from = fields(&sim, "", &arrays([6, 5, 4], 1));
    let mixed = sim.step(|s| s.update(targets(&from), call(&from, SCALARS))).unwrap().explain();
    assert_eq!(mixed.vendor_functions, [VendorFunctions { kernel: "mixed", functions: &["exp", "sin"] }]);
    assert!(mixed.to_string().contains("\nmixed uses exp, sin: devices agree only within"), "{mixed}");
    let heat = sim.step(|s| s.update(&from.0, heat(&from.0, &from.0, &from.0, 0.1))).unwrap().explain();
    assert!(heat.vendor_functions.is_empty() && !heat.to_string().contains(" uses "), "{heat}");
}
