//! 7. Launch limits are handled.

use polyhalo::Error;
use polyhalo::prelude::*;

use crate::kernels::{many, more, wide};
use crate::{cells_of, everywhere};

#[test]
fn sizes_around_those_of_blocks_and_vectors_are_served() {
    let sizes = [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 513, 1025];
    for size in sizes {
        for cells in [[size, 1, 1], [1, size, 1], [1, 1, size], [size, 3, 2], [3, size, 2], [2, 3, size]] {
            for sim in everywhere(cells) {
                let u = sim.field_from("u", |p: Point| p.i + p.j + p.k).unwrap();
                let step = sim.step(|s| s.update(&u, more(&u))).unwrap();
                sim.run(&step, 1).unwrap();
                let found = u.read().unwrap();
                assert!(found.indexed_iter().all(|((k, j, i), &value)| value == (i + j + k + 1) as i32), "{sim:?}");
            }
        }
    }
}

#[test]
fn more_rows_and_planes_than_a_grid_of_blocks_may_have_are_served() {
    for cells in [[2, 70_001, 1], [1, 2, 70_001], [70_001, 1, 2]] {
        for sim in everywhere(cells) {
            let u = sim.field_from("u", |p: Point| p.i ^ p.j ^ p.k).unwrap();
            let step = sim.step(|s| s.update(&u, more(&u))).unwrap();
            sim.run(&step, 2).unwrap();
            let found = u.read().unwrap();
            assert!(found.indexed_iter().all(|((k, j, i), &value)| value == (i ^ j ^ k) as i32 + 2), "{sim:?}");
        }
    }
}

#[test]
fn a_kernel_may_take_64_fields_and_scalars_beside_them_or_is_refused_by_name() {
    let cells = [9, 4, 3];
    let value = |n: usize, p: Point| (p.i - 2 * p.j + 3 * p.k) as f32 * 0.25 + n as f32;
    let (a, b, c) = (0.5_f32, 0.125_f32, -3.0_f32);
    for sim in everywhere(cells) {
        let fields: [Field<f32>; 64] =
            std::array::from_fn(|n| sim.field_from(&format!("f{n}"), |p: Point| value(n, p)).unwrap());
        let sum = sim.field::<f32>("sum").unwrap();
        let step = match sim.step(|s| s.update(&sum, many(&fields, a, b, c))) {
            Ok(step) => step,
            // OpenCL promises room for 1024 bytes of arguments, and some devices have no more.
            Err(Error::Unsupported { kernel, reason, .. })
                if sim.devices().iter().any(|device| device.starts_with("opencl")) =>
            {
                assert!(kernel == "many" && reason.contains("arguments take"), "{reason}");
                continue;
            }
            Err(other) => panic!("{other}"),
        };
        sim.run(&step, 1).unwrap();
        let found = sum.read().unwrap();
        for [i, j, k] in cells_of(cells) {
            let p = Point { i: i as i32, j: j as i32, k: k as i32 };
            let expected = (0..64).fold(a, |sum, n| sum + value(n, p) * (n as f32 * b + c));
            assert_eq!(found[[k, j, i]], expected, "{sim:?} {p:?}");
        }
    }
}

#[test]
fn a_kernel_may_read_125_cells_of_a_field() {
    let cells = [8, 6, 7];
    for sim in everywhere(cells) {
        let (u, v) = (sim.field::<f32>("u").unwrap(), sim.field::<f32>("v").unwrap());
        u.set(|p: Point| ((p.i * 31 + p.j * 17 + p.k * 7) % 23) as f32 * 0.1).unwrap();
        let step = sim.step(|s| s.update(&v, wide(&u))).unwrap();
        assert_eq!(sim.run(&step, 1).unwrap().points, 4 * 2 * 3);
        let (start, found) = (u.read().unwrap(), v.read().unwrap());
        for [i, j, k] in cells_of(cells) {
            let inside = (2..6).contains(&i) && (2..4).contains(&j) && (2..5).contains(&k);
            let mut expected = 0.0;
            for (z, y, x) in cells_of([5, 5, 5]).map(|[x, y, z]| (z, y, x)).filter(|_| inside) {
                let weight = (x as i32 - 2) + 5 * (y as i32 - 2) + 25 * (z as i32 - 2);
                expected += weight as f32 * start[[k + z - 2, j + y - 2, i + x - 2]];
            }
            assert_eq!(found[[k, j, i]], expected, "{sim:?} {:?}", [i, j, k]);
        }
    }
}
