//! 10. Errors: no public call panics on bad input; what is wrong comes back as a typed error.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use polyhalo::prelude::*;
use polyhalo::{Call, Error, IntoRanges, Plane, Stages};
use polyhalo_codegen::offline::private::Folder;
use polyhalo_codegen::random::Random;
use polyhalo_tests::steps::kernels::{cube, lopsided, settle, still, totals};

use crate::{anywhere, everywhere};

/// Does something with nonsense: it may fail, with a message, but not panic. Gives whether it failed.
fn try_to<T>(what: &str, act: impl FnOnce() -> Result<T>) -> bool {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(Ok(_)) => false,
        Ok(Err(error)) => {
            assert!(!error.to_string().is_empty() && error.to_string().len() < 4000, "{what}: {error}");
            true
        }
        Err(_) => panic!("{what} panics"),
    }
}

#[test]
fn grids_and_devices_that_cannot_be_are_errors() {
    let odd = [0, 1, 2, 1 << 20, i32::MAX as usize, i32::MAX as usize + 1, usize::MAX / 2, usize::MAX];
    for x in odd {
        for y in odd {
            let sim = Simulation::on([x, y, 3]).devices("host").measure_bandwidth(false).build();
            let Ok(sim) = sim else { continue };
            if x.saturating_mul(y) > 1 << 22 {
                // As large as no memory is, or at least as nobody wants to fill here.
                if x.saturating_mul(y) > 1 << 40 {
                    assert!(try_to("a large field", || sim.field::<f64>("u")), "{x} {y}");
                }
                continue;
            }
            assert!(!try_to("a field", || sim.field::<f64>("u")));
        }
    }
    let specs = [
        "",
        " ",
        ",",
        ":",
        "host:",
        "host:0",
        "host:99999999999999999999",
        "host:-1",
        "opencl:",
        "opencl:nobody",
        "opencl:\0",
        "cuda:7",
        "cuda:0-3",
        "hip",
        "auto:2",
        "reference:3",
        "HOST",
        "host,host",
        "host host",
        "ホスト",
        "%s%n",
    ];
    for spec in specs {
        try_to(spec, || Simulation::on([4, 4, 4]).devices(spec).build());
    }
    for threads in [0, 1 << 20, usize::MAX] {
        assert!(try_to("threads", || Simulation::on([4, 4, 4]).devices("host").threads(threads).build()), "{threads}");
    }
}

#[test]
fn names_and_extents_of_fields_may_be_anything() {
    let sim = anywhere([4, 3, 2]);
    for name in ["", " ", "u", "rows 0 of f64 (3x2)", "u'", "\0", "ü\u{1f600}", "../u", "a\nb", "scalar 0"] {
        assert!(!try_to(name, || sim.field::<f64>(name)), "{name}");
        assert!(try_to(name, || sim.field::<f32>(name)), "{name} twice");
        assert!(!try_to(name, || sim.scalar(name, 1.0)), "{name}");
        assert!(try_to(name, || sim.scalar(name, 1)), "{name} twice");
    }
    for cells in [[0, 1, 1], [usize::MAX, 1, 1], [usize::MAX; 3], [1 << 31, 1, 1]] {
        assert!(try_to("extent", || sim.staggered("s", cells, |_: Point| 0.0_f64)), "{cells:?}");
    }
    // A field that is called like what keeps folds is no trouble.
    let u = sim.field_from("v", |_: Point| 2.0).unwrap();
    let mut made = None;
    let step = sim.step(|s| made = Some(s.reduce(totals(&u)))).unwrap();
    sim.run(&step, 1).unwrap();
    assert_eq!(made.unwrap().0.get().unwrap(), 48.0);
    assert!(!step.explain().to_string().is_empty());
}

/// Indices that are not those of cells.
const INDICES: [i64; 12] = [i64::MIN, i64::MIN + 1, -1 << 40, -6, -5, -1, 0, 1, 5, 6, 1 << 40, i64::MAX];

#[test]
fn ranges_of_any_numbers_are_served_or_refused() {
    let sim = anywhere([5, 4, 3]);
    let u = sim.field::<f64>("u").unwrap();
    let record = |what: &str, ranges: &dyn Fn() -> Vec<Range>| {
        for wide in [false, true] {
            try_to(what, || {
                let ranges = ranges();
                let step = if wide {
                    sim.step(|s| s.update(&u, cube(&u).over(ranges)))
                } else {
                    sim.step(|s| s.update(&u, still(&u, 1.0).over(ranges)))
                };
                sim.run(&step?, 1)
            });
        }
    };
    for lo in INDICES {
        for hi in INDICES {
            record("boxed", &|| Range::boxed([lo, 0, lo], [hi, 4, hi]).ranges());
            record("x", &|| Range::widest().x(lo..hi).ranges());
            record("y", &|| Range::all().y(lo..=hi).ranges());
            record("z", &|| Range::widest().z((std::ops::Bound::Excluded(lo), std::ops::Bound::Included(hi))).ranges());
            record("two", &|| vec![Range::all().x(..lo), Range::all().x(hi..)]);
        }
        record("from", &|| Range::all().x(lo..).y(..lo).z(..=lo).ranges());
    }
    for margin in [0, 1, 2, 3, 1 << 20, u32::MAX] {
        record("interior", &|| Range::interior(margin).ranges());
        record("shell", &|| Range::shell(margin));
        record("parity", &|| Range::all().parity(margin as usize).ranges());
    }
    record("parity", &|| Range::all().parity(usize::MAX).ranges());
    for a in [i32::MIN, -2, -1, 0, 1, 2, i32::MAX] {
        for b in [i32::MIN, -1, 0, 1, i32::MAX] {
            record("face", &|| Range::face(Offset::new(a, b, a)).ranges());
            record("edge", &|| Range::edge(Offset::new(a, 0, 1), Offset::new(b, a, -1)).ranges());
        }
    }
}

#[test]
fn faces_are_named_by_one_step_outwards_or_refused() {
    let sim = anywhere([5, 4, 3]);
    let (u, flags) = (sim.field::<f64>("u").unwrap(), sim.field::<u8>("flags").unwrap());
    for a in [i32::MIN, -2, -1, 0, 1, 2, i32::MAX] {
        for b in [i32::MIN, -1, 0, 1, i32::MAX] {
            let refused = try_to("boundary", || u.boundary(Offset::new(a, b, 0), Boundary::Clamp));
            assert_eq!(refused, !matches!((a, b), (-1 | 1, 0) | (0, -1 | 1)), "{a} {b}");
        }
    }
    assert!(try_to("half", || u.boundary(X, Boundary::Periodic)));
    assert!(!try_to("whole", || u.boundary([X, -X], Boundary::Periodic)));
    assert!(try_to("half", || u.boundary(-X, Boundary::Fixed)));
    assert!(try_to("odd", || flags.boundary(FACES, Boundary::Odd)));
    assert!(!try_to("none", || u.boundary([X; 0], Boundary::Odd)));
    for value in [f64::NAN, f64::INFINITY, -0.0] {
        assert!(!try_to("constant", || u.boundary(Y, Boundary::Constant(value))));
    }
}

#[test]
fn sources_and_receivers_outside_or_without_sense_are_refused() {
    let sim = anywhere([5, 4, 3]);
    let (u, n, flags) =
        (sim.field::<f32>("u").unwrap(), sim.field::<i32>("n").unwrap(), sim.field::<bool>("flags").unwrap());
    for at in [[5, 0, 0], [0, 4, 0], [0, 0, 3], [usize::MAX; 3], [1 << 40, 0, 0]] {
        assert!(try_to("inject", || sim.step(|s| s.inject(&u, at, 1.0))), "{at:?}");
        assert!(try_to("probe", || sim.step(|s| drop(s.probe(&u, at)))), "{at:?}");
        assert!(try_to("get", || u.get(at)), "{at:?}");
    }
    for (weight, refused) in
        [(1.0, false), (-3.0, false), (0.5, true), (1e300, true), (f64::NAN, true), (f64::INFINITY, true)]
    {
        let points = Points::weighted([([1, 1, 1], weight)]);
        assert_eq!(try_to("weight", || sim.step(|s| s.inject(&n, points.clone(), 2))), refused, "{weight}");
        assert!(!try_to("weight", || sim.run(&sim.step(|s| s.inject(&u, points, 2.0))?, 1)), "{weight}");
    }
    assert!(try_to("no amounts", || sim.step(|s| s.inject(&flags, [0, 0, 0], true))));
    // No points at all.
    let (step, record) = sim
        .step_with(|s| {
            s.inject(&u, Points::at([]), 1.0);
            s.probe(&u, Points::at([]))
        })
        .unwrap();
    sim.run(&step, 3).unwrap();
    assert!(record.values().unwrap().is_empty() && record.read().unwrap().is_empty());
}

#[test]
fn integers_that_leave_their_range_wrap_in_boundaries_and_sources() {
    for sim in everywhere([3, 2, 1]) {
        let n = sim.field_from("n", |p: Point| if p.i == 0 { i32::MIN } else { i32::MAX }).unwrap();
        n.boundary(FACES, Boundary::Odd).unwrap();
        let m = sim.field::<i32>("m").unwrap();
        let step = sim.step(|s| {
            s.inject(&n, Points::weighted([([2, 1, 0], 3.0)]), i32::MAX);
            s.update(&m, crate::kernels::mirrored(&n));
        });
        sim.run(&step.unwrap(), 1).unwrap();
        let sum = i32::MAX.wrapping_add(i32::MAX.wrapping_mul(3));
        assert_eq!(n.get([2, 1, 0]).unwrap(), sum, "{sim:?}");
        assert_eq!(m.get([0, 0, 0]).unwrap(), i32::MIN, "{sim:?}");
        assert_eq!(m.get([1, 0, 0]).unwrap(), i32::MIN, "{sim:?}");
        assert_eq!(m.get([2, 0, 0]).unwrap(), i32::MAX, "{sim:?}");
    }
}

#[test]
fn what_belongs_to_another_simulation_is_refused_wherever_it_is_used() {
    let (sim, other) = (anywhere([5, 4, 3]), anywhere([5, 4, 3]));
    let (u, foreign) = (sim.field::<f64>("u").unwrap(), other.field::<f64>("foreign").unwrap());
    let (a, strange) = (sim.scalar("a", 0.0).unwrap(), other.scalar("strange", 0.0).unwrap());
    let refused = |what: &str, record: &dyn Fn(&mut Stages)| match sim.step(record) {
        Err(Error::Foreign { .. }) => {}
        other => panic!("{what}: {other:?}"),
    };
    refused("target", &|s| s.update(&foreign, still(&u, 1.0)));
    refused("parameter", &|s| s.update(&u, still(&foreign, 1.0)));
    refused("scalar", &|s| s.update(&u, still(&u, &strange)));
    refused("fold", &|s| drop(s.reduce(totals(&foreign))));
    refused("swap", &|s| s.swap(&u, &foreign));
    refused("assign", &|s| s.assign(&strange, (), |()| 1.0));
    refused("input", &|s| s.assign(&a, &strange, |strange| strange));
    refused("compute", &|s| drop(s.compute((&a, &strange), |(a, b)| a + b)));
    refused("inject", &|s| s.inject(&foreign, [0, 0, 0], 1.0));
    refused("amount", &|s| s.inject(&u, [0, 0, 0], &strange));
    refused("probe", &|s| drop(s.probe(&foreign, [0, 0, 0])));
    refused("record", &|s| drop(s.record(&strange)));
    let step = other.step(|s| s.update(&foreign, still(&foreign, 1.0))).unwrap();
    assert!(matches!(sim.run(&step, 1), Err(Error::Foreign { .. })));
    let folder = Folder::new().unwrap();
    assert!(matches!(sim.save_vti(folder.path().join("a.vti"), &[&foreign]), Err(Error::Foreign { .. })));
}

#[test]
fn unlike_fields_and_results_that_meet_are_refused() {
    let sim = anywhere([5, 4, 3]);
    let (u, v) = (sim.field::<f64>("u").unwrap(), sim.field::<f64>("v").unwrap());
    let (w, p) = (sim.staggered("w", [6, 4, 3], |_: Point| 0.0).unwrap(), sim.field::<f32>("p").unwrap());
    let a = sim.scalar("a", 0.0).unwrap();
    assert!(matches!(sim.step(|s| s.swap(&u, &w)), Err(Error::SwapOfUnlike { .. })));
    assert!(matches!(sim.step(|s| s.update((&u, &u), lopsided(&u, &v))), Err(Error::WrittenTwice { .. })));
    assert!(matches!(sim.step(|s| s.update((&a, &a, &a), totals(&u))), Err(Error::WrittenTwice { .. })));
    // The same scalar may be an argument and take a result.
    let (sum, most) = (sim.scalar("sum", 0.0).unwrap(), sim.scalar("most", 0.25_f32).unwrap());
    let step = sim.step(|s| s.update((&p, &sum, &most), settle(&p, &p, &most))).unwrap();
    sim.run(&step, 2).unwrap();
    let colours = [Range::face(X).red(), Range::face(-X).black()];
    assert!(matches!(sim.step(|s| s.update(&u, still(&u, 1.0).over(colours))), Err(Error::RangesDiffer { .. })));
    let twice = [Range::face(X), Range::all().x(3..)];
    assert!(matches!(sim.step(|s| s.update(&u, still(&u, 1.0).over(twice))), Err(Error::RangesOverlap { .. })));
    let nowhere = sim.step(|s| s.update(&u, still(&u, 1.0).over(Range::edge(X, -X))));
    assert!(matches!(nowhere, Err(Error::NoFace { field, .. }) if field == "u"));
}

#[test]
fn closures_that_ask_for_what_a_step_changes_get_an_error() {
    let sim = anywhere([5, 4, 3]);
    let u = sim.field::<f64>("u").unwrap();
    let a = sim.scalar("a", 0.0).unwrap();
    let (inside, field, scalar) = (sim.clone(), u.clone(), a.clone());
    let step = sim
        .step(|s| {
            s.assign(&a, (), move |()| {
                let refused = [
                    matches!(field.read(), Err(Error::InsideStep)),
                    matches!(field.set(|_: Point| 1.0), Err(Error::InsideStep)),
                    matches!(scalar.get(), Err(Error::InsideStep)),
                    matches!(scalar.set(1.0), Err(Error::InsideStep)),
                    matches!(inside.field::<f64>("late"), Err(Error::InsideStep)),
                    matches!(inside.step(|_| ()), Err(Error::InsideStep)),
                    matches!(inside.checkpoint("never"), Err(Error::InsideStep)),
                    matches!(field.boundary(X, Boundary::Clamp), Err(Error::InsideStep)),
                ];
                refused.iter().filter(|refused| **refused).count() as f64
            });
        })
        .unwrap();
    sim.run(&step, 2).unwrap();
    assert_eq!(a.get().unwrap(), 8.0);
}

#[test]
fn runs_of_any_length_can_be_left_and_may_be_nested() {
    let sim = anywhere([5, 4, 3]);
    let u = sim.field::<f64>("u").unwrap();
    let step = sim.step(|s| s.update(&u, still(&u, 1.0))).unwrap();
    let stop = |_: Progress| ControlFlow::Break(());
    assert!(sim.run_with(&step, u64::MAX, stop).unwrap().steps < 1000);
    let report = sim.start(&step, u64::MAX).every(0, stop).every(u64::MAX, stop).finish().unwrap();
    assert_eq!(report.steps, 1);
    let inner = sim.start(&step, 3).every(1, |_| sim.run(&step, 2).map(|_| ())).finish().unwrap();
    assert_eq!(inner.steps, 3);
    let failing = sim.start(&step, 3).every(2, |_| u.get([9, 9, 9]).map(|_| ())).finish();
    assert!(matches!(failing, Err(Error::OutsideGrid { .. })));
    assert!(!try_to("after a watcher's error", || sim.run(&step, 1)));
}

#[test]
fn files_that_cannot_be_are_errors() {
    let sim = anywhere([5, 4, 3]);
    let u = sim.field_from("u", |p: Point| f64::from(p.i)).unwrap();
    let folder = Folder::new().unwrap();
    folder.write("text", b"polyhalo is no checkpoint").unwrap();
    folder.write("empty", b"").unwrap();
    for name in ["text", "empty", "missing", "missing/file", ".", "\0", ""] {
        let path = folder.path().join(name);
        assert!(try_to("restore", || sim.restore(&path)), "{name}");
        assert!(try_to("set", || u.set(path.as_path())), "{name}");
    }
    for name in ["missing/file", ".", "\0"] {
        let path = folder.path().join(name);
        assert!(try_to("save", || u.save(&path)), "{name}");
        assert!(try_to("save_raw", || u.save_raw(&path)), "{name}");
        assert!(try_to("save_png", || u.save_png(&path, Plane::Z(0))), "{name}");
        assert!(try_to("save_vti", || sim.save_vti(&path, &[&u])), "{name}");
        assert!(try_to("checkpoint", || sim.checkpoint(&path)), "{name}");
    }
    for plane in [Plane::X(5), Plane::Y(usize::MAX), Plane::Z(3)] {
        assert!(try_to("save_png", || u.save_png(folder.path().join("a.png"), plane)));
    }
    assert!(try_to("no fields", || sim.save_vti(folder.path().join("none.vti"), &[])));
    assert!(!folder.path().join("none.vti").exists());
    // Another program.
    let path = folder.path().join("other");
    sim.checkpoint(&path).unwrap();
    let other = anywhere([5, 4, 3]);
    other.field::<f64>("v").unwrap();
    assert!(matches!(other.restore(&path), Err(Error::OtherCheckpoint { .. })));
}

#[test]
fn a_refused_stage_leaves_the_simulation_as_it_was() {
    for sim in everywhere([6, 5, 4]) {
        let u = sim.field_from("u", |p: Point| f64::from(p.i * p.j - p.k)).unwrap();
        u.boundary(FACES, Boundary::Clamp).unwrap();
        let good = sim.step(|s| s.update(&u, cube(&u))).unwrap();
        sim.run(&good, 1).unwrap();
        let before = u.read().unwrap();
        let bad = sim.step(|s| {
            s.update(&u, cube(&u));
            drop(s.reduce(totals(&u)));
            s.update(&u, still(&u, 0.0).over(Range::boxed([0; 3], [99; 3])));
            s.swap(&u, &u);
        });
        assert!(matches!(bad, Err(Error::RangeOutside { axis: "X", cells: 6, .. })), "{bad:?}");
        assert_eq!(u.read().unwrap(), before);
        sim.run(&good, 2).unwrap();
        assert_ne!(u.read().unwrap(), before);
    }
}

/// Any call with any arguments, in any order, on one simulation.
#[test]
fn nonsense_in_any_order_never_panics() {
    for seed in 0..40 {
        let random = &mut Random::new(seed);
        let sim = anywhere([1 + random.below(6), 1 + random.below(5), 1 + random.below(4)]);
        let mut fields: Vec<Field<f64>> = Vec::new();
        let mut scalars: Vec<Scalar<f64>> = Vec::new();
        let mut steps: Vec<Step> = Vec::new();
        for act in 0..60 {
            let what = format!("seed {seed}, act {act}");
            if fields.is_empty() || random.once_in(12) {
                let cells = std::array::from_fn(|_| random.below(8));
                try_to(&what, || {
                    Ok(fields.push(sim.staggered(&format!("f{}", random.below(20)), cells, |_: Point| 1.5)?))
                });
                try_to(&what, || Ok(scalars.push(sim.scalar(&format!("s{}", random.below(20)), 0.5)?)));
                continue;
            }
            let mut any = || fields[random.below(fields.len())].clone();
            let (u, v, w) = (any(), any(), any());
            let range = any_range(random);
            let number = random.pick(&[0.0, -1.5, f64::NAN, 1e308]);
            let outward = Offset::new(random.below(3) as i32 - 1, random.below(3) as i32 - 1, random.below(2) as i32);
            try_to(&what, || {
                match random.below(12) {
                    0 => u.boundary(outward, Boundary::Constant(number))?,
                    1 => u.boundary(random.pick(&[[X, -X], [Y, -Y], [Z, -Z]]), Boundary::Periodic)?,
                    2 => u.boundary(FACES, random.pick(&[Boundary::Clamp, Boundary::Even, Boundary::Odd]))?,
                    3 => u.set(|_: Point| number)?,
                    4..=8 => steps.push(sim.step(|s| {
                        for _ in 0..1 + random.below(3) {
                            let narrow = |call: Call<f64>| call.over(range.clone());
                            match random.below(7) {
                                0 => s.update(&u, narrow(cube(&v))),
                                1 => s.update((&u, &v), lopsided(&w, &u)),
                                2 => s.swap(&u, &v),
                                3 => s.inject(&u, std::array::from_fn::<_, 3, _>(|_| random.below(7)), number),
                                4 => drop(s.probe(&u, std::array::from_fn::<_, 3, _>(|_| random.below(7)))),
                                5 => drop(s.reduce(totals(&u).over(range.clone()))),
                                _ => s.update(&u, narrow(still(&w, number))),
                            }
                        }
                    })?),
                    _ => {
                        if let Some(step) = steps.last() {
                            sim.run(step, random.below(3) as u64)?;
                        }
                    }
                }
                Ok(())
            });
        }
        fields.iter().for_each(|field| assert!(!try_to("read", || field.read())));
    }
}

fn any_range(random: &mut Random) -> Vec<Range> {
    let mut index = || random.pick(&[-9, -2, -1, 0, 1, 2, 3, 9]);
    let (lo, hi) = (index(), index());
    match random.below(6) {
        0 => vec![Range::widest()],
        1 => vec![Range::all().x(lo..hi)],
        2 => vec![Range::interior(random.below(3) as u32).red()],
        3 => Range::shell(random.below(3) as u32),
        4 => vec![Range::face(random.pick(&[X, -Y, Z, X + Y]))],
        _ => vec![Range::all().y(..lo), Range::all().y(hi..)],
    }
}
