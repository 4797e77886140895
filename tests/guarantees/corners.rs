//! 3. Edges and corners.

use polyhalo::prelude::*;

use crate::kernels::corner;
use crate::{anywhere, cells_of, devices_for, everywhere};

fn first(p: Point) -> f64 {
    f64::from(1 + p.i + 10 * p.j + 100 * p.k)
}

#[test]
fn chains_of_stages_see_new_values_in_every_corner() {
    for cells in [[4, 3, 5], [2, 1, 3], [1, 1, 1]] {
        for sim in everywhere(cells) {
            let u = sim.field_from("u", first).unwrap();
            u.boundary(FACES, Boundary::Periodic).unwrap();
            let step = sim.step(|s| (0..3).for_each(|_| s.update(&u, corner(&u)))).unwrap();
            sim.run(&step, 2).unwrap();
            let found = u.read().unwrap();
            for [i, j, k] in cells_of(cells) {
                // Six times one further along every axis.
                let [x, y, z] = std::array::from_fn(|axis| (([i, j, k][axis] + 6) % cells[axis]) as i32);
                assert_eq!(found[[k, j, i]], first(Point { i: x, j: y, k: z }), "{sim:?}");
            }
        }
    }
}

#[test]
fn corners_where_kinds_of_boundaries_meet_hold_what_each_of_them_says() {
    let kinds = [Boundary::Constant(7.0), Boundary::Periodic, Boundary::Clamp, Boundary::Even, Boundary::Odd];
    for cells in [[3, 2, 1], [2, 1, 4]] {
        for device in devices_for(cells) {
            let sim = device.on(cells);
            let (u, v) = (sim.field_from("u", first).unwrap(), sim.field::<f64>("v").unwrap());
            for x in kinds {
                for y in kinds {
                    for z in kinds {
                        u.boundary([X, -X], x).unwrap();
                        u.boundary([Y, -Y], y).unwrap();
                        u.boundary([Z, -Z], z).unwrap();
                        let step = sim.step(|s| s.update(&v, corner(&u))).unwrap();
                        sim.run(&step, 1).unwrap();
                        let found = v.read().unwrap();
                        for point in cells_of(cells) {
                            let [i, j, k] = point;
                            let expected = beyond(point, [x, y, z], cells);
                            assert_eq!(found[[k, j, i]], expected, "{device} {point:?} {:?}", [x, y, z]);
                        }
                    }
                }
            }
        }
    }
}

/// The diagonal neighbour, by the words of the documentation: the boundary of the last axis speaks first.
fn beyond(point: [usize; 3], kinds: [Boundary<f64>; 3], cells: [usize; 3]) -> f64 {
    let (mut cell, mut sign) = ([0; 3], 1.0);
    for axis in [2, 1, 0] {
        let last = cells[axis] - 1;
        cell[axis] = match kinds[axis] {
            _ if point[axis] < last => point[axis] + 1,
            Boundary::Constant(value) => return sign * value,
            Boundary::Periodic => 0,
            Boundary::Clamp | Boundary::Even => last,
            Boundary::Odd => {
                sign = -sign;
                last
            }
            Boundary::Fixed => unreachable!("this test has none"),
        };
    }
    let [i, j, k] = cell.map(|index| index as i32);
    sign * first(Point { i, j, k })
}

#[test]
fn swapped_fields_keep_their_own_boundaries() {
    for sim in everywhere([4, 3, 2]) {
        let (u, v) = (sim.field_from("u", first).unwrap(), sim.field_from("v", |p| -first(p)).unwrap());
        u.boundary(FACES, Boundary::Constant(1.0)).unwrap();
        v.boundary(FACES, Boundary::Constant(2.0)).unwrap();
        let (w, x) = (sim.field::<f64>("w").unwrap(), sim.field::<f64>("x").unwrap());
        let step = sim.step(|s| {
            s.update(&w, corner(&u));
            s.swap(&u, &v);
            s.update(&x, corner(&u));
        });
        sim.run(&step.unwrap(), 1).unwrap();
        assert_eq!((w.get([3, 2, 1]).unwrap(), x.get([3, 2, 1]).unwrap()), (1.0, 1.0));
        assert_eq!((w.get([0, 0, 0]).unwrap(), x.get([0, 0, 0]).unwrap()), (112.0, -112.0));
    }
}

#[test]
fn a_later_step_with_a_wider_halo_leaves_earlier_swaps_right() {
    let sim = anywhere([6, 5, 4]);
    let (u, v) = (sim.field_from("u", first).unwrap(), sim.field_from("v", |p| -first(p)).unwrap());
    u.boundary(FACES, Boundary::Periodic).unwrap();
    let swap = sim.step(|s| s.swap(&u, &v)).unwrap();
    let shift = sim.step(|s| s.update(&u, corner(&u))).unwrap();
    let (before, other) = (u.read().unwrap(), v.read().unwrap());
    sim.run(&swap, 1).unwrap();
    assert!(u.read().unwrap() == other && v.read().unwrap() == before);
    sim.run(&shift, 1).unwrap();
    sim.run(&swap, 1).unwrap();
    assert_eq!(u.read().unwrap(), before);
    assert_eq!(v.get([0, 0, 0]).unwrap(), -112.0);
    assert_eq!(v.get([5, 4, 3]).unwrap(), -1.0);
}
