//! 4. Each point once.

use polyhalo::prelude::*;

use crate::kernels::{more, more_apart};
use crate::{cells_of, everywhere};

const GRIDS: [[usize; 3]; 5] = [[1, 1, 1], [7, 5, 3], [33, 2, 9], [2, 31, 4], [65, 1, 2]];

type Holds = fn([i64; 3], [i64; 3]) -> bool;

/// Whether a point lies at least so far from every face.
fn inside(at: [i64; 3], cells: [i64; 3], margin: i64) -> bool {
    (0..3).all(|axis| at[axis] >= margin && at[axis] < cells[axis] - margin)
}

/// Ranges and which points they hold.
fn ranges() -> Vec<(Vec<Range>, Holds)> {
    vec![
        (vec![Range::all()], |_, _| true),
        (vec![Range::widest()], |_, _| true),
        (vec![Range::interior(1)], |at, cells| inside(at, cells, 1)),
        (Range::shell(1), |at, cells| !inside(at, cells, 1)),
        (Range::shell(3), |at, cells| !inside(at, cells, 3)),
        (vec![Range::all().red()], |[i, j, k], _| (i + j + k) % 2 == 0),
        (vec![Range::all().black()], |[i, j, k], _| (i + j + k) % 2 == 1),
        (vec![Range::interior(1).black()], |at, cells| inside(at, cells, 1) && at.iter().sum::<i64>() % 2 == 1),
        (vec![Range::face(Z)], |[.., k], [.., nz]| k == nz - 1),
        (vec![Range::edge(-X, Y)], |[i, j, _], [_, ny, _]| i == 0 && j == ny - 1),
        (vec![Range::face(X - Y + Z)], |[i, j, k], [nx, _, nz]| i == nx - 1 && j == 0 && k == nz - 1),
        (vec![Range::all().z(..1), Range::all().z(1..)], |_, _| true),
        (vec![Range::all().x(END - 1..), Range::all().x(..END - 1)], |_, _| true),
    ]
}

#[test]
fn every_range_updates_each_of_its_points_once_and_no_other() {
    for cells in GRIDS {
        for sim in everywhere(cells) {
            let u = sim.field_from("u", |p: Point| 1000 * (p.i + p.j + p.k)).unwrap();
            u.boundary(FACES, Boundary::Clamp).unwrap();
            let mut expected = u.read().unwrap();
            for (number, (ranges, holds)) in ranges().into_iter().enumerate() {
                // In place and through a second buffer, and the second time with what the first left there.
                let steps = [
                    sim.step(|s| s.update(&u, more(&u).over(ranges.clone()))).unwrap(),
                    sim.step(|s| s.update(&u, more_apart(&u).over(ranges.clone()))).unwrap(),
                ];
                let cells_i64 = cells.map(|cells| cells as i64);
                let held = cells_of(cells).filter(|at| holds(at.map(|index| index as i64), cells_i64));
                let held: Vec<_> = held.collect();
                for step in &steps {
                    let report = sim.run(step, 2).unwrap();
                    assert_eq!(report.points, 2 * held.len() as u64, "range {number} of {cells:?}");
                    held.iter().for_each(|[i, j, k]| expected[[*k, *j, *i]] += 2);
                    assert!(u.read().unwrap() == expected, "range {number} on {sim:?}");
                }
            }
        }
    }
}

#[test]
fn points_outside_a_range_keep_their_value_when_ranges_change_from_step_to_step() {
    for cells in [[9, 4, 5], [4, 3, 17]] {
        for sim in everywhere(cells) {
            let u = sim.field::<i32>("u").unwrap();
            u.boundary(FACES, Boundary::Periodic).unwrap();
            let parts = [Range::all().x(..3), Range::all().x(2..), Range::face(Y).red(), Range::interior(1)];
            let step =
                sim.step(|s| parts.into_iter().for_each(|part| s.update(&u, more_apart(&u).over(part)))).unwrap();
            sim.run(&step, 3).unwrap();
            let found = u.read().unwrap();
            for [i, j, k] in cells_of(cells) {
                let inside = inside([i, j, k].map(|index| index as i64), cells.map(|cells| cells as i64), 1);
                let red = j == cells[1] - 1 && (i + j + k) % 2 == 0;
                let times = i32::from(i < 3) + i32::from(i >= 2) + i32::from(red) + i32::from(inside);
                assert_eq!(found[[k, j, i]], 3 * times, "{sim:?} {:?}", [i, j, k]);
            }
        }
    }
}
