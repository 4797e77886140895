//! 2 and 3. A field that holds the numbers of its cells shows whose value every halo cell has.

use polyhalo::prelude::*;
use polyhalo::{Stages, Targets};
use polyhalo_tests::steps::device::{COUNTS, Device, STRATEGIES, hosts, several_with_opencl};

use crate::cells_of;
use crate::kernels::{above, around, below, counted, own};

/// What is written where no read is defined.
const KEPT: i64 = -7;

/// Steps: more than strategies do in one run, and no multiple of it.
const STEPS: u64 = 4;

type Kinds = [Boundary<i64>; 2];

/// All pairs of boundaries at the ends of Z.
fn pairs() -> Vec<Kinds> {
    let kinds = [Boundary::Fixed, Boundary::Constant(3), Boundary::Clamp, Boundary::Even, Boundary::Odd];
    let pairs = kinds.into_iter().flat_map(|low| kinds.into_iter().map(move |high| [low, high]));
    pairs.chain([[Boundary::Periodic; 2]]).collect()
}

/// On which sides a kernel reads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sides {
    Below,
    Above,
    Both,
}

const SIDES: [Sides; 3] = [Sides::Below, Sides::Above, Sides::Both];

/// Records the kernel that reads so far.
fn record(s: &mut Stages, u: &Field<i64>, out: &[Field<i64>; 4], reach: usize, sides: Sides) {
    fn each<T>(s: &mut Stages, targets: impl Targets<T>, calls: [polyhalo::Call<T>; 4], reach: usize) {
        let call = calls.into_iter().nth(reach - 1).expect("reaches are 1 to 4");
        s.update(targets, call);
    }
    let [a, b, c, d] = out;
    match (reach, sides) {
        (0, _) => s.update((a, b), own(u)),
        (_, Sides::Below) => each(s, (a, b), [below::<1>(u), below::<2>(u), below::<3>(u), below::<4>(u)], reach),
        (_, Sides::Above) => each(s, (a, b), [above::<1>(u), above::<2>(u), above::<3>(u), above::<4>(u)], reach),
        (_, Sides::Both) => {
            each(s, (a, b, c, d), [around::<1>(u), around::<2>(u), around::<3>(u), around::<4>(u)], reach);
        }
    }
}

/// The value that a cell has for its readers after some steps, and `None` where there is none: X and Y are periodic.
fn value([i, j, k]: [i64; 3], [nx, ny, nz]: [i64; 3], kinds: Kinds, steps: u64) -> Option<i64> {
    let held = |k: i64| (k * ny + j.rem_euclid(ny)) * nx + i.rem_euclid(nx) + 1 + steps as i64;
    let (kind, beyond) = if k < 0 { (kinds[0], -1 - k) } else { (kinds[1], k - nz) };
    let mirror = if k < 0 { beyond } else { nz - 1 - beyond };
    match kind {
        _ if beyond < 0 || (0..nz).contains(&k) => Some(held(k)),
        Boundary::Fixed => None,
        Boundary::Constant(value) => Some(value),
        Boundary::Periodic => Some(held(k.rem_euclid(nz))),
        Boundary::Clamp => Some(held(if k < 0 { 0 } else { nz - 1 })),
        Boundary::Even => Some(held(mirror)),
        Boundary::Odd => Some(-held(mirror)),
    }
}

/// What the kernel gives at a point: nothing where one of its reads isn't defined.
fn expected(
    point: [usize; 3],
    cells: [usize; 3],
    kinds: Kinds,
    (reach, sides): (usize, Sides),
    steps: u64,
) -> Option<Vec<i64>> {
    let [i, j, k] = point.map(|index| index as i64);
    let read = |aslant: i64, by: i64| value([i + aslant, j - aslant, k + by], cells.map(|n| n as i64), kinds, steps);
    if reach == 0 {
        return Some(vec![read(0, 0)?, read(1, 0)?]);
    }
    let digits = |aslant: i64, sign: i64| {
        (1..=reach as i64).try_fold(0, |number, r| Some(number * 4096 + read(aslant, sign * r)?))
    };
    let of = |sign: i64| Some([digits(0, sign)?, digits(1, sign)?]);
    Some(match sides {
        Sides::Below => of(-1)?.to_vec(),
        Sides::Above => of(1)?.to_vec(),
        Sides::Both => [of(-1)?, of(1)?].concat(),
    })
}

/// Every pair of boundaries on a simulation for each reach and side.
fn check(device: &Device, cells: [usize; 3], (reach, sides): (usize, Sides)) {
    let sim = device.on(cells);
    let [nx, ny, nz] = cells.map(|cells| cells as i32);
    let u = sim.field::<i64>("u").unwrap();
    let out = ["a", "b", "c", "d"].map(|name| sim.field::<i64>(name).unwrap());
    u.boundary([X, -X, Y, -Y], Boundary::Periodic).unwrap();
    for kinds in pairs() {
        let mirrors = kinds.iter().any(|kind| matches!(kind, Boundary::Even | Boundary::Odd));
        if mirrors && reach > nz as usize {
            // A mirror shows no more than there is.
            continue;
        }
        u.boundary([Z, -Z], Boundary::Fixed).unwrap();
        match kinds {
            [Boundary::Periodic, _] => u.boundary([Z, -Z], Boundary::Periodic).unwrap(),
            [low, high] => {
                u.boundary(-Z, low).unwrap();
                u.boundary(Z, high).unwrap();
            }
        }
        // A field that no stage writes is exchanged before the first step, another one after each write.
        let steps = [
            (sim.step(|s| record(s, &u, &out, reach, sides)), 0),
            (
                sim.step(|s| {
                    s.update(&u, counted(&u));
                    record(s, &u, &out, reach, sides);
                }),
                STEPS,
            ),
        ];
        for (step, changes) in steps {
            u.set(|p: Point| i64::from((p.k * ny + p.j) * nx + p.i + 1)).unwrap();
            out.iter().for_each(|out| out.set(|_: Point| KEPT).unwrap());
            let step = match step {
                Ok(step) => step,
                // With fixed faces there may be no point that a kernel could update.
                Err(polyhalo::Error::GridTooSmall { axis: "Z", .. }) if kinds.contains(&Boundary::Fixed) => continue,
                Err(error) => panic!("{device} {cells:?} {reach} {sides:?} {kinds:?}: {error}"),
            };
            sim.run(&step, STEPS).unwrap();
            let found = out.each_ref().map(|out| out.read().unwrap());
            for point in cells_of(cells) {
                let [i, j, k] = point;
                let expected = expected(point, cells, kinds, (reach, sides), changes);
                let wanted = expected.unwrap_or_else(|| vec![KEPT; 2]);
                let found: Vec<i64> = found[..wanted.len()].iter().map(|found| found[[k, j, i]]).collect();
                assert_eq!(found, wanted, "{device} {cells:?} {point:?} {reach} {sides:?} {kinds:?} {changes}");
            }
        }
    }
}

/// All reaches and sides.
fn footprints() -> impl Iterator<Item = (usize, Sides)> + Clone {
    let wide = (1..=4).flat_map(|reach| SIDES.map(|sides| (reach, sides)));
    [(0, Sides::Both)].into_iter().chain(wide)
}

#[test]
fn every_halo_cell_has_the_value_of_the_cell_that_it_stands_for() {
    let mut strategies = STRATEGIES.into_iter().cycle();
    for count in COUNTS {
        // Planes of one cell each, a prime, and two planes for some.
        for planes in [count, 7, 13] {
            for footprint in footprints() {
                let exchange = strategies.next().expect("they go round");
                check(&hosts(count).exchange(exchange), [3, 2, planes], footprint);
            }
        }
    }
}

#[test]
fn halo_cells_are_right_with_every_strategy_where_subdomains_are_thinner_than_halos() {
    for exchange in STRATEGIES {
        for (count, planes) in [(2, 3), (3, 4), (4, 5), (7, 7)] {
            check(&hosts(count).exchange(exchange), [2, 1, planes], (4, Sides::Both));
        }
    }
}

#[test]
fn halo_cells_are_right_with_opencl_devices_among_several() {
    let mut footprints = footprints().filter(|(reach, _)| *reach > 1).cycle();
    for devices in several_with_opencl() {
        for planes in [2, 5] {
            check(&devices, [3, 2, planes], footprints.next().expect("they go round"));
        }
    }
}
