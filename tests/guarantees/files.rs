//! What goes in and comes out of fields is the same on any number of devices.

use polyhalo::prelude::*;
use polyhalo::{Axes, Element};
use polyhalo_codegen::offline::private::Folder;

use crate::busy::{Busy, CELLS};
use crate::{cells_of, devices_for};

/// A number that tells the cell.
fn number(p: Point) -> i32 {
    p.i + 100 * p.j + 10_000 * p.k
}

/// The values of a field where they are asked for one by one, and all at once.
fn agree<T: Element + PartialEq, A: Axes>(field: &Field<T, A>, what: &str) -> Vec<T> {
    let all = field.read().unwrap();
    for [i, j, k] in cells_of(field.cells()) {
        assert!(field.get([i, j, k]).unwrap() == all[[k, j, i]], "{what} {:?}", [i, j, k]);
    }
    all.into_raw_vec_and_offset().0
}

#[test]
fn fields_are_filled_read_saved_and_loaded_over_all_devices() {
    let folder = Folder::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut files: Option<[Vec<u8>; 3]> = None;
    for devices in devices_for(CELLS) {
        let what = devices.to_string();
        let sim = devices.on(CELLS);
        let [nx, ny, nz] = CELLS;
        for cells in [CELLS, [nx, ny, nz + 2], [nx + 1, ny, nz - 1], [nx, ny, 1], [nx, 2, 3 * nz]] {
            let name = format!("{cells:?}");
            let field = sim.staggered(&name, cells, number).unwrap();
            let expected: Vec<i32> =
                cells_of(cells).map(|[i, j, k]| number(Point { i: i as i32, j: j as i32, k: k as i32 })).collect();
            assert!(agree(&field, &what) == expected, "{what} {cells:?}");
            // By way of files, and from an array.
            field.save(path("u.npy")).unwrap();
            let array = field.read().unwrap();
            field.set(|_: Point| -1).unwrap();
            assert!(field.read().unwrap().iter().all(|value| *value == -1), "{what}");
            field.set(path("u.npy")).unwrap();
            assert!(field.read().unwrap() == array, "{what} {cells:?}");
            field.set(|_: Point| -2).unwrap();
            field.set(&array).unwrap();
            assert!(field.read().unwrap() == array, "{what} {cells:?}");
        }
        let low = |seed: i32| move |p: Point| f64::from(number(p) + seed);
        let along =
            (sim.field_x("x", low(1)).unwrap(), sim.field_y("y", low(2)).unwrap(), sim.field_z("z", low(3)).unwrap());
        let planes = (
            sim.field_xy("xy", low(4)).unwrap(),
            sim.field_xz("xz", low(5)).unwrap(),
            sim.field_yz("yz", low(6)).unwrap(),
        );
        let expected = |axes: [bool; 3], seed: i32| -> Vec<f64> {
            let cells = std::array::from_fn(|axis| if axes[axis] { CELLS[axis] } else { 1 });
            let point = |[i, j, k]: [usize; 3]| Point { i: i as i32, j: j as i32, k: k as i32 };
            cells_of(cells).map(|cell| low(seed)(point(cell))).collect()
        };
        let found = [
            agree(&along.0, &what),
            agree(&along.1, &what),
            agree(&along.2, &what),
            agree(&planes.0, &what),
            agree(&planes.1, &what),
            agree(&planes.2, &what),
        ];
        for (found, (bits, seed)) in found.into_iter().zip([(1, 1), (2, 2), (4, 3), (3, 4), (5, 5), (6, 6)]) {
            let axes = std::array::from_fn(|axis| bits >> axis & 1 == 1);
            assert!(found == expected(axes, seed), "{what} {axes:?}");
        }
        // Files have the same bytes, whoever writes them.
        let whole = sim.field_from("whole", number).unwrap();
        whole.save(path("whole.npy")).unwrap();
        whole.save_raw(path("whole.bin")).unwrap();
        whole.save_png(path("whole.png"), Plane::Y(2)).unwrap();
        let written = ["whole.npy", "whole.bin", "whole.png"].map(|name| std::fs::read(path(name)).unwrap());
        assert!(files.as_ref().is_none_or(|files| *files == written), "{what}");
        files = Some(written);
    }
}

#[test]
fn values_that_are_set_between_runs_reach_every_halo() {
    let run = |sim: Simulation| -> Result<Vec<u64>> {
        let busy = Busy::new(sim)?;
        let values = |seed: i32| move |p: Point| f64::from((number(p) * seed) % 23) * 0.0625;
        let mut bits = Vec::new();
        for seed in 1..4 {
            busy.sim.run(&busy.step, 2)?;
            busy.field("v").set(values(seed))?;
            busy.field("tall").set(values(seed + 5))?;
            busy.sim.run(&busy.step, 1)?;
            bits.extend(busy.bits()?);
        }
        Ok(bits)
    };
    let expected = run(polyhalo_tests::steps::devices()[0].on(CELLS)).unwrap();
    for devices in devices_for(CELLS) {
        assert!(run(devices.on(CELLS)).unwrap() == expected, "{devices}");
    }
}
