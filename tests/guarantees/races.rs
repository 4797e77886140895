//! 5. No race can be written: what is written is read as it was before the stage, and as it is now by later stages.

use polyhalo::prelude::*;
use polyhalo_tests::steps::kernels::{other_colour, relax};

use crate::kernels::{crossed, more, more_apart};
use crate::{cells_of, everywhere};

#[test]
fn a_stage_reads_what_was_there_before_it_and_the_next_one_what_it_wrote() {
    for cells in [[5, 3, 2], [64, 3, 3], [1, 1, 1]] {
        for sim in everywhere(cells) {
            let start = |sign: i32| move |p: Point| sign * (1 + p.i + 100 * p.j + 10_000 * p.k);
            let (u, v) = (sim.field_from("u", start(1)).unwrap(), sim.field_from("v", start(-1)).unwrap());
            u.boundary(FACES, Boundary::Periodic).unwrap();
            v.boundary(FACES, Boundary::Periodic).unwrap();
            let step = sim.step(|s| {
                s.update((&u, &v), crossed(&u, &v));
                s.update(&u, more(&u));
                s.update((&v, &u), crossed(&v, &u));
                s.update(&v, more_apart(&v));
            });
            sim.run(&step.unwrap(), 1).unwrap();
            // After the first stage u(i) = v0(i + 1) and v(i) = u0(i - 1); then v(i) = u(i + 1) and u(i) = v(i - 1).
            let (u, v) = (u.read().unwrap(), v.read().unwrap());
            for [i, j, k] in cells_of(cells) {
                let at =
                    |by: i64| Point { i: (i as i64 + by).rem_euclid(cells[0] as i64) as i32, j: j as i32, k: k as i32 };
                assert_eq!(v[[k, j, i]], start(-1)(at(2)) + 2, "{sim:?} {i}");
                assert_eq!(u[[k, j, i]], start(1)(at(-2)), "{sim:?} {i}");
            }
        }
    }
}

#[test]
fn colours_in_place_equal_colours_apart() {
    for cells in [[6, 5, 4], [7, 7, 7], [33, 4, 3], [2, 1, 1]] {
        let results = everywhere(cells).into_iter().map(|sim| {
            let value = |p: Point| f64::from((p.i * 7 + p.j * 13 + p.k * 29) % 17) - 8.0;
            let [u, v] = ["u", "v"].map(|name| sim.field_from(name, value).unwrap());
            let f = sim.field_from("f", |p: Point| f64::from(p.i - p.k)).unwrap();
            for field in [&u, &v] {
                field.boundary(FACES, Boundary::Periodic).unwrap();
            }
            let (ru, rv) = (sim.scalar("ru", 0.0).unwrap(), sim.scalar("rv", 0.0).unwrap());
            let copy = sim.field::<f64>("copy").unwrap();
            copy.boundary(FACES, Boundary::Periodic).unwrap();
            let step = sim.step(|s| {
                for colour in [Range::all().red(), Range::all().black()] {
                    // In place.
                    s.update((&u, &ru), relax(&u, &f).over(colour));
                    s.update(&u, other_colour(&u, &f).over(colour));
                    // The same from a copy of v, so that nothing is read where it is written.
                    s.update(&copy, crate::kernels::kept(&v));
                    s.update((&v, &rv), relax(&copy, &f).over(colour));
                    s.update(&copy, crate::kernels::kept(&v));
                    s.update(&v, other_colour(&copy, &f).over(colour));
                }
            });
            sim.run(&step.unwrap(), 3).unwrap();
            assert!(u.read().unwrap() == v.read().unwrap(), "{sim:?}");
            assert_eq!(ru.get().unwrap(), rv.get().unwrap());
            (u.read().unwrap(), ru.get().unwrap().to_bits())
        });
        let results: Vec<_> = results.collect();
        assert!(results.iter().all(|result| result == &results[0]), "{cells:?}");
    }
}

#[test]
fn boxes_of_a_stage_in_place_read_the_ghost_cells_that_were_there_before_it() {
    for cells in [[1, 1, 3], [4, 3, 5], [3, 2, 7]] {
        let results = everywhere(cells).into_iter().map(|sim| {
            let value = |p: Point| f64::from((p.i * 7 + p.j * 13 + p.k * 29) % 17) - 8.0;
            let u = sim.field_from("u", value).unwrap();
            u.boundary([X, -X], Boundary::Clamp).unwrap();
            u.boundary([Y, -Y], Boundary::Constant(3.0)).unwrap();
            u.boundary([Z, -Z], Boundary::Odd).unwrap();
            // The shell comes in boxes: the lowest and the highest planes first, then what lies between them.
            let step = sim.step(|s| {
                s.update(
                    &u,
                    other_colour(&u, &u).over(Range::shell(1).into_iter().map(Range::black).collect::<Vec<_>>()),
                )
            });
            sim.run(&step.unwrap(), 3).unwrap();
            (u.read().unwrap(), format!("{sim:?}"))
        });
        let results: Vec<_> = results.collect();
        for (found, sim) in &results {
            assert!(*found == results[0].0, "{cells:?} {sim}");
        }
    }
}
