//! 2. Halos are right or refused.

use polyhalo::prelude::*;
use polyhalo::{Error, Simulation, Stages};
use polyhalo_tests::steps::kernels::{cube, far, lopsided, star, still};

use crate::kernels::along_x;
use crate::{anywhere, cells_of, everywhere};

/// The value that fields have at first.
fn first(p: Point) -> f64 {
    f64::from(p.i + 10 * p.j + 100 * p.k)
}

#[test]
fn a_grid_thinner_than_the_footprint_is_refused_by_name_before_anything_runs() {
    for sim in everywhere([20, 3, 20]) {
        let u = sim.field_from("speed", first).unwrap();
        let before = u.read().unwrap();
        let step = sim.step(|s| {
            s.update(&u, still(&u, 1.0));
            s.update(&u, star::<f64, 8>(&u, 0.1));
        });
        match step.unwrap_err() {
            Error::GridTooSmall { kernel, field, axis, cells, needed, line, .. } => {
                assert_eq!((kernel.as_str(), field.as_str(), axis, cells, needed), ("star_f64_8", "u", "Y", 3, 17));
                assert!(line > 0);
            }
            other => panic!("{other}"),
        }
        assert_eq!(u.read().unwrap(), before);
        // And the simulation goes on.
        let step = sim.step(|s| s.update(&u, star::<f64, 8>(&u, 0.1).over(Range::boxed([9, 1, 9], [9, 1, 9]))));
        sim.run(&step.unwrap(), 1).unwrap();
        assert_eq!(u.read().unwrap(), before);
    }
}

#[test]
fn points_that_would_read_beyond_a_face_are_refused_with_field_axis_and_cells() {
    let sim = anywhere([5, 4, 3]);
    let u = sim.field_from("pressure", first).unwrap();
    let refused = |u: &Field<f64>, range| match sim.step(|s| s.update(u, cube(u).over(range))).unwrap_err() {
        Error::ReadsBeyond(reads) => (reads.field, reads.axis, reads.side, reads.cells, reads.needed),
        other => panic!("{other}"),
    };
    assert_eq!(refused(&u, Range::all()), ("pressure".into(), "X", "low", 5, 1));
    assert_eq!(refused(&u, Range::all().x(1..END - 1).y(1..END - 1).z(1..)), ("pressure".into(), "Z", "high", 3, 1));
    u.boundary(FACES, Boundary::Even).unwrap();
    let far_reads = sim.step(|s| s.update(&u, star::<f64, 8>(&u, 0.1)));
    let message = far_reads.unwrap_err().to_string();
    for part in ["`pressure`", "an even mirror", "5 cells", "8 cells beyond"] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_periodic_axis_shorter_than_the_footprint_wraps_as_often_as_it_must() {
    for cells in [[1, 1, 1], [3, 1, 2], [5, 2, 1], [8, 7, 9]] {
        for sim in everywhere(cells) {
            let u = sim.field_from("u", first).unwrap();
            let v = sim.field::<f64>("v").unwrap();
            u.boundary(FACES, Boundary::Periodic).unwrap();
            let step = sim.step(|s| s.update(&v, star::<f64, 8>(&u, 1.0))).unwrap();
            sim.run(&step, 1).unwrap();
            let (start, found) = (u.read().unwrap(), v.read().unwrap());
            for point in cells_of(cells) {
                let at = |axis: usize, by: i64| {
                    let mut cell = point;
                    cell[axis] = (point[axis] as i64 + by).rem_euclid(cells[axis] as i64) as usize;
                    start[[cell[2], cell[1], cell[0]]]
                };
                let sum = (1..=8).fold(0.0, |sum, r| {
                    let x = at(0, r) - at(0, -r);
                    sum + (x + (0.5 * at(1, r) - at(1, -r)) + (at(2, r) - 0.25 * at(2, -r)))
                });
                let expected = 0.5 * at(0, 0) + sum;
                assert_eq!(found[[point[2], point[1], point[0]]], expected, "{sim:?} {point:?}");
            }
        }
    }
}

#[test]
fn an_axis_of_one_cell_without_offsets_along_it_is_fine() {
    for sim in everywhere([5, 1, 1]) {
        let u = sim.field_from("u", first).unwrap();
        let step = sim.step(|s| s.update(&u, along_x(&u))).unwrap();
        assert_eq!(sim.run(&step, 1).unwrap().points, 3);
        assert_eq!(u.read().unwrap().into_raw_vec_and_offset().0, [0.0, 2.0, 2.0, 2.0, 4.0]);
    }
}

/// Runs a step that is recorded over `u` and must leave it alone.
fn nothing(sim: &Simulation, u: &Field<f64>, steps: u64, record: impl FnOnce(&mut Stages)) {
    let before = u.read().unwrap();
    let step = sim.step(record).unwrap();
    let report = sim.run(&step, steps).unwrap();
    assert_eq!((report.points, report.bytes), (0, 0), "{sim:?}");
    assert_eq!(u.read().unwrap(), before, "{sim:?}");
}

#[test]
fn no_steps_and_empty_ranges_do_nothing() {
    for sim in everywhere([7, 5, 4]) {
        let u = sim.field_from("u", first).unwrap();
        nothing(&sim, &u, 0, |s| s.update(&u, cube(&u)));
        nothing(&sim, &u, 0, |s| s.update(&u, still(&u, 3.0)));
        nothing(&sim, &u, 3, |_| ());
        for empty in
            [Range::interior(2), Range::interior(u32::MAX), Range::all().x(3..3), Range::widest().y(4..END - 3)]
        {
            nothing(&sim, &u, 3, |s| s.update(&u, cube(&u).over(empty)));
            nothing(&sim, &u, 3, |s| s.update(&u, still(&u, 3.0).over(empty.red())));
        }
        nothing(&sim, &u, 3, |s| s.update(&u, cube(&u).over(Vec::new())));
        nothing(&sim, &u, 3, |s| s.update(&u, cube(&u).over(Range::shell(0))));
    }
}

#[test]
fn a_footprint_of_the_point_itself_needs_no_halo() {
    for cells in [[1, 1, 1], [1, 9, 1], [17, 1, 3]] {
        for sim in everywhere(cells) {
            let u = sim.field_from("u", first).unwrap();
            u.boundary(FACES, Boundary::Clamp).unwrap();
            let step = sim.step(|s| s.update(&u, still(&u, 8.0))).unwrap();
            assert_eq!(step.explain().boundaries[0].ghosts, [[0; 2]; 3]);
            sim.run(&step, 1).unwrap();
            let found = u.read().unwrap();
            for [i, j, k] in cells_of(cells) {
                let before = first(Point { i: i as i32, j: j as i32, k: k as i32 });
                assert_eq!(found[[k, j, i]], 0.75 * before + 1.0);
            }
        }
    }
}

#[test]
fn halos_are_as_wide_as_reads_and_no_wider() {
    let sim = anywhere([12, 11, 10]);
    let field = |name| {
        let field = sim.field::<f64>(name).unwrap();
        field.boundary(FACES, Boundary::Periodic).unwrap();
        field
    };
    let (u, v) = (field("u"), field("v"));
    let w = sim.field::<f32>("w").unwrap();
    w.boundary(FACES, Boundary::Periodic).unwrap();
    let ghosts = |step: Step| step.explain().boundaries.into_iter().map(|of| of.ghosts).collect::<Vec<_>>();
    // u is read at 2X and -Z, v at the point and at 3Y.
    let step = sim.step(|s| s.update((&u, &v), lopsided(&u, &v))).unwrap();
    assert_eq!(ghosts(step), [[[0, 2], [0, 0], [1, 0]], [[0, 0], [0, 3], [0, 0]], [[0; 2]; 3]]);
    let step = sim.step(|s| s.update(&w, far(&w))).unwrap();
    assert_eq!(ghosts(step)[2], [[8, 0], [0, 3], [0, 7]]);
    // A range that stays away from a face needs nothing beyond it.
    let sim = anywhere([12, 11, 10]);
    let u = sim.field::<f64>("u").unwrap();
    u.boundary(FACES, Boundary::Odd).unwrap();
    let step = sim.step(|s| s.update(&u, cube(&u).over(Range::all().x(1..).y(..END - 1).z(1..END - 1)))).unwrap();
    assert_eq!(ghosts(step), [[[0, 1], [1, 0], [0, 0]]]);
}
