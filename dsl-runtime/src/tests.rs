//! Whole simulations with kernels written by hand, on the devices that are always there.

mod several;
mod types;

use std::f64::consts::PI;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use ndarray::Array3;

use crate::backend::{Affinity, Helpers, allowed_cpus};
use crate::geometry::{Box3, Extent};
use crate::testing::{AVERAGE, BROKEN, Folder, HEAT, LOPSIDED, noise, plain_range};
use crate::*;

/// What `#[stencil]` makes of the heat kernel.
fn heat(u: &Field<f64>, f: &Field<f64>, kappa: &Field<f64>, beta: f64) -> Call<f64> {
    Call::new(&HEAT, vec![u.reference(), f.reference(), kappa.reference()], vec![argument(beta)])
}

fn average(a: &Field<f32>) -> Call<f32> {
    Call::new(&AVERAGE, vec![a.reference()], Vec::new())
}

fn lopsided(a: &Field<f64>, b: &Field<f64>, plus: bool) -> Call<(f64, f64)> {
    Call::new(&LOPSIDED, vec![a.reference(), b.reference()], vec![argument(plus)])
}

fn on(cells: [usize; 3], devices: &str) -> Simulation {
    Simulation::on(cells).devices(devices).measure_bandwidth(false).build().unwrap()
}

/// The reference device and host devices with few and with many threads.
fn everywhere(cells: [usize; 3]) -> Vec<Simulation> {
    let host =
        |threads| Simulation::on(cells).devices("host").threads(threads).measure_bandwidth(false).build().unwrap();
    vec![on(cells, "reference"), host(1), host(2), host(5)]
}

#[test]
fn heat_gives_the_published_sum_and_centre_everywhere() {
    const N: usize = 34;
    let h = 1.0 / (N - 1) as f64;
    let kmax = 0.95;
    let dt = h * h / (12.0 * kmax);
    let angles = |p: Point| [p.i, p.j, p.k].map(|index| PI * f64::from(index) * h);
    let inside = |p: Point| [p.i, p.j, p.k].iter().all(|&index| index > 0 && index < N as i32 - 1);
    let sines = |p: Point| angles(p).map(f64::sin).iter().product::<f64>();
    for sim in everywhere([N; 3]) {
        let u = sim.field_from("u", |p: Point| if inside(p) { sines(p) } else { 0.0 }).unwrap();
        let kappa = sim.field_from("kappa", |p: Point| 0.5 + 0.45 * sines(p)).unwrap();
        let source = |p: Point| dt * (1.0 + angles(p).map(f64::cos).iter().product::<f64>());
        let f = sim.field_from("f", source).unwrap();
        let step = sim.step(|s| s.update(&u, heat(&u, &f, &kappa, dt / h / h / 2.0))).unwrap();
        let report = sim.run(&step, 60).unwrap();
        let (sum, centre) = (u.read().unwrap().sum(), u.get([N / 2; 3]).unwrap());
        assert!((sum / 8705.548105714577 - 1.0).abs() < 1e-13, "{sum}");
        assert!((centre / 0.8806430311590892 - 1.0).abs() < 1e-13, "{centre}");
        assert_eq!((report.steps, report.points, report.bytes), (60, 60 * 32 * 32 * 32, 60 * 32 * 32 * 32 * 32));
        assert!(report.seconds > 0.0 && report.copy_bandwidth.is_none());
    }
}

/// Values of a field for the independent meaning of updates below.
type Values = Array3<f64>;

fn random(cells: [usize; 3], seed: u64) -> Values {
    Array3::from_shape_simple_fn(Extent::new(cells).unwrap().shape(), noise(seed))
}

/// A value at a point and a displacement.
fn at(values: &Values, [x, y, z]: [i64; 3], [dx, dy, dz]: [i64; 3]) -> f64 {
    values[[(z + dz) as usize, (y + dy) as usize, (x + dx) as usize]]
}

/// Updates `target` at the points of a kernel's widest range.
fn update(target: &mut Values, kernel: &kernel::KernelDesc, value: impl Fn([i64; 3]) -> f64) {
    let (nz, ny, nx) = target.dim();
    let range = plain_range(kernel, [nx, ny, nz]).unwrap();
    for ((k, j, i), cell) in target.indexed_iter_mut() {
        let point = [i as i64, j as i64, k as i64];
        if range.holds(point) {
            *cell = value(point);
        }
    }
}

fn plain_heat(u: &Values, f: &Values, kappa: &Values, beta: f64, p: [i64; 3]) -> f64 {
    let here = |values| at(values, p, [0; 3]);
    let flux = |d| (at(kappa, p, d) + here(kappa)) * (at(u, p, d) - here(u));
    let x = flux([1, 0, 0]) + flux([-1, 0, 0]);
    here(u) + here(f) + beta * (x + flux([0, 1, 0]) + flux([0, -1, 0]) + flux([0, 0, 1]) + flux([0, 0, -1]))
}

#[test]
fn steps_of_several_stages_in_any_order_keep_what_each_stage_leaves_alone() {
    for (number, cells) in [[5, 3, 4], [9, 7, 3], [33, 4, 11]].into_iter().enumerate() {
        for sim in everywhere(cells) {
            let mut values = [1, 2, 3].map(|seed| random(cells, seed));
            let field = |name, values: &Values| sim.field_from(name, values).unwrap();
            let (u, v, w) = (field("u", &values[0]), field("v", &values[1]), field("w", &values[2]));
            // Double-buffered; in place; two results of which one is double-buffered, over another range; two stages
            // on one field.
            let steps = [
                sim.step(|s| s.update(&u, heat(&u, &v, &w, 0.1))).unwrap(),
                sim.step(|s| s.update(&u, heat(&v, &w, &w, 0.2))).unwrap(),
                sim.step(|s| s.update((&u, &v), lopsided(&u, &w, true))).unwrap(),
                sim.step(|s| {
                    s.update(&w, heat(&w, &u, &v, 0.05));
                    s.update((&v, &w), lopsided(&w, &u, false));
                })
                .unwrap(),
            ];
            let plain = |step: usize, [u, v, w]: &mut [Values; 3]| match step {
                0 => {
                    let old = u.clone();
                    update(u, &HEAT, |p| plain_heat(&old, v, w, 0.1, p));
                }
                1 => update(u, &HEAT, |p| plain_heat(v, w, w, 0.2, p)),
                2 => {
                    let old = u.clone();
                    let sum = |p| at(&old, p, [2, 0, 0]) + at(&old, p, [0, 0, -1]);
                    update(u, &LOPSIDED, |p| sum(p) + at(w, p, [0; 3]));
                    update(v, &LOPSIDED, |p| sum(p) * 0.5);
                }
                _ => {
                    let old = w.clone();
                    update(w, &HEAT, |p| plain_heat(&old, u, v, 0.05, p));
                    let old = w.clone();
                    let sum = |p| at(&old, p, [2, 0, 0]) + at(&old, p, [0, 0, -1]);
                    update(v, &LOPSIDED, |p| sum(p) - at(u, p, [0; 3]));
                    update(w, &LOPSIDED, |p| sum(p) * 0.5);
                }
            };
            let mut choose = noise(number as u64 + 7);
            for _ in 0..40 {
                let (step, count) = ((choose() * 4.0) as usize, 1 + (choose() * 3.0) as usize);
                sim.run(&steps[step], count as u64).unwrap();
                (0..count).for_each(|_| plain(step, &mut values));
                for (field, values) in [&u, &v, &w].into_iter().zip(&mut values) {
                    assert!(field.read().unwrap() == *values, "{sim:?} {} after step {step}", field.name());
                    // Keeps values from growing without end, and checks that replaced ones count.
                    if choose() < 0.1 || values.iter().any(|value| value.abs() > 1e3) {
                        *values = random(cells, 9);
                        field.set(&*values).unwrap();
                    }
                }
            }
        }
    }
}

#[test]
fn single_precision_and_diagonal_reads_agree_everywhere() {
    for cells in [[3, 3, 3], [4, 5, 31], [67, 3, 6]] {
        let results = everywhere(cells).into_iter().map(|sim| {
            let a = sim.field_from("a", random(cells, 4).mapv(|value| value as f32)).unwrap();
            let step = sim.step(|s| s.update(&a, average(&a))).unwrap();
            sim.run(&step, 7).unwrap();
            a.read().unwrap()
        });
        let results: Vec<_> = results.collect();
        assert!(results.iter().all(|result| result == results[0]), "{cells:?}");
        assert_ne!(results[0], random(cells, 4).mapv(|value| value as f32));
    }
}

#[test]
fn fields_of_both_precisions_live_in_one_simulation() {
    for sim in everywhere([17, 5, 4]) {
        let single = sim.field_from("single", |p: Point| p.i as f32).unwrap();
        let double = sim.field_from("double", |p: Point| f64::from(p.i + 100 * p.k)).unwrap();
        let zero = sim.field::<f64>("zero").unwrap();
        let step = sim.step(|s| {
            s.update(&single, average(&single));
            s.update(&double, heat(&double, &zero, &zero, 1.0));
        });
        sim.run(&step.unwrap(), 2).unwrap();
        assert_eq!(single.get([16, 2, 2]).unwrap(), 16.0);
        assert!((single.get([8, 2, 2]).unwrap() - 8.0).abs() < 1e-5);
        assert_eq!(double.get([16, 4, 3]).unwrap(), 316.0);
        assert_eq!(zero.read().unwrap().sum(), 0.0);
    }
}

#[test]
fn no_steps_do_nothing_and_a_watcher_may_read_and_stop() {
    for sim in everywhere([6, 5, 4]) {
        let u = sim.field_from("u", random([6, 5, 4], 1)).unwrap();
        let zero = sim.field::<f64>("zero").unwrap();
        let step = sim.step(|s| s.update(&u, heat(&u, &zero, &u, 0.1))).unwrap();
        let before = u.read().unwrap();
        let report = sim.run_with(&step, 0, |_| panic!("nothing to watch")).unwrap();
        assert_eq!((report.steps, report.points, report.seconds), (0, 0, 0.0));
        assert_eq!(u.read().unwrap(), before);
        let mut seen = Vec::new();
        let watch = |progress: Progress| {
            assert!(u.get([3, 2, 2]).unwrap().is_finite());
            seen.push(progress.done);
            if seen.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let report = sim.run_with(&step, 1_000_000, watch).unwrap();
        assert_eq!((seen[0], seen[1]), (1, report.steps));
        assert!(report.steps < 1_000_000 && report.points == report.steps * 4 * 3 * 2);
        let mut last = 0;
        sim.run_with(&step, 1000, |progress| {
            last = progress.done;
            ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(last, 1000);
    }
}

#[test]
fn an_empty_step_runs() {
    let sim = on([3, 3, 3], "host");
    let step = sim.step(|_| ()).unwrap();
    assert_eq!(sim.run(&step, 5).unwrap().points, 0);
}

#[test]
fn reports_measure_the_copy_bandwidth_on_request() {
    let sim = Simulation::on([40, 30, 20]).devices("host").build().unwrap();
    let u = sim.field_from("u", random([40, 30, 20], 1)).unwrap();
    let step = sim.step(|s| s.update(&u, heat(&u, &u, &u, 0.0))).unwrap();
    let report = sim.run(&step, 3).unwrap();
    assert!(report.share().is_some_and(|share| share > 0.0), "{report}");
    let text = report.to_string();
    assert!(
        text.starts_with("heat 40x30x20, 3 steps on host (") && text.contains(" of the measured copy bandwidth ("),
        "{text}"
    );
}

#[test]
fn mistakes_in_a_step_are_errors_that_name_the_field() {
    let (sim, other) = (on([4, 4, 4], "host"), on([4, 4, 4], "reference"));
    let (u, v) = (sim.field::<f64>("u").unwrap(), sim.field::<f64>("v").unwrap());
    let single = sim.field::<f32>("single").unwrap();
    let foreign = other.field::<f64>("foreign").unwrap();
    let fault = |record: &dyn Fn(&mut Stages)| sim.step(record).unwrap_err();
    let error = fault(&|s| s.update(&u, heat(&u, &foreign, &v, 0.1)));
    assert!(matches!(&error, Error::Foreign { what: "field", name } if name == "foreign"), "{error}");
    let error = fault(&|s| s.update(&foreign, heat(&u, &v, &v, 0.1)));
    assert!(matches!(&error, Error::Foreign { what: "field", name } if name == "foreign"), "{error}");
    let error = fault(&|s| s.update((&u, &u), lopsided(&u, &v, true)));
    assert!(matches!(&error, Error::WrittenTwice { field, .. } if field == "u"), "{error}");
    let wrong = |fields: Vec<FieldRef>, scalars: Vec<Erased>| Call::<f64>::new(&HEAT, fields, scalars);
    let error = fault(&|s| s.update(&u, wrong(vec![u.reference()], vec![argument(1.0)])));
    assert!(matches!(error, Error::Arguments { what: "fields", expected: 3, found: 1, .. }), "{error}");
    let error =
        fault(&|s| s.update(&u, wrong(vec![u.reference(), v.reference(), single.reference()], vec![argument(1.0)])));
    assert_eq!(error.to_string(), "`heat` wants f64 for parameter `kappa`, and field `single` holds f32");
    let error = fault(&|s| {
        s.update(&single, average(&single));
        s.update(&single, wrongly_single(&u, &v));
        s.update(&u, heat(&u, &foreign, &v, 0.1));
    });
    assert_eq!(error.to_string(), "`heat` wants f64 for result 1, and field `single` holds f32");
    let step = other.step(|s| s.update(&foreign, heat(&foreign, &foreign, &foreign, 0.1))).unwrap();
    assert!(matches!(sim.run(&step, 1), Err(Error::Foreign { what: "the step of", .. })));
}

/// A call whose Rust type isn't the kernel's.
fn wrongly_single(u: &Field<f64>, v: &Field<f64>) -> Call<f32> {
    Call::new(&HEAT, vec![u.reference(), u.reference(), v.reference()], vec![argument(1.0)])
}

#[test]
fn bad_grids_fields_and_devices_are_errors_before_anything_runs() {
    let build = |cells| Simulation::on(cells).devices("host").build();
    assert!(matches!(build([4, 0, 4]), Err(Error::EmptyGrid { axis: "Y", .. })));
    assert!(matches!(build([usize::MAX; 3]), Err(Error::GridTooLarge { .. })));
    assert!(matches!(Simulation::on([4; 3]).devices("nothing").build(), Err(Error::NoSuchBackend { .. })));
    assert!(matches!(Simulation::on([4; 3]).devices("host:0").build(), Err(Error::DeviceCount { most: 1024, .. })));
    assert!(matches!(
        Simulation::on([4; 3]).devices("host:5").build(),
        Err(Error::MoreDevicesThanPlanes { devices: 5, cells: 4, .. })
    ));
    assert_eq!(Simulation::on([4; 3]).devices("host:2+reference").build().unwrap().devices().len(), 3);
    assert!(matches!(Simulation::on([4; 3]).devices("host").threads(0).build(), Err(Error::Threads { .. })));
    for device in ["host", "reference"] {
        let huge = on([1 << 17, 1 << 17, 1 << 8], device);
        match huge.field::<f64>("u").unwrap_err() {
            Error::OutOfMemory { what, needed, free, .. } => {
                assert!(what == "field `u`" && needed > free && needed >= 1 << 45, "{what} {needed} {free}");
            }
            other => panic!("{other}"),
        }
        assert!(matches!(on([1 << 30, 1 << 30, 4], device).field::<f64>("u"), Err(Error::GridTooLarge { .. })));
        let sim = on([4, 2, 4], device);
        let u = sim.field::<f64>("u").unwrap();
        assert!(matches!(sim.field::<f32>("u"), Err(Error::DuplicateField { name }) if name == "u"));
        let step = sim.step(|s| s.update(&u, heat(&u, &u, &u, 0.1)));
        assert!(matches!(step, Err(Error::GridTooSmall { axis: "Y", cells: 2, needed: 3, .. })), "{step:?}");
        let shape = sim.field_from("v", Array3::<f64>::zeros((4, 4, 2)));
        assert!(matches!(&shape, Err(Error::Shape { field, .. }) if field == "v"), "{shape:?}");
        assert!(sim.field::<f64>("v").is_ok(), "a refused field leaves its name free");
        assert!(matches!(u.get([0, 2, 0]), Err(Error::OutsideGrid { at: [0, 2, 0], extent: [4, 2, 4], .. })));
        assert!(matches!(u.save_png("never.png", Plane::Z(4)), Err(Error::OutsideGrid { .. })));
        assert!(matches!(u.set("no-such-file.npy"), Err(Error::Read { .. })));
        assert!(matches!(u.save("no/such/folder/u.npy"), Err(Error::Write { .. })));
    }
}

#[test]
fn after_a_failed_step_fields_are_not_handed_out() {
    for sim in everywhere([4, 3, 2]) {
        let a = sim.field_from("a", |_: Point| -1.0).unwrap();
        let b = sim.field::<f64>("b").unwrap();
        let step = sim.step(|s| s.update(&b, Call::<f64>::new(&BROKEN, vec![a.reference()], Vec::new()))).unwrap();
        let error = sim.run(&step, 3).unwrap_err();
        assert!(matches!(error, Error::InStep { step: 1, number: 0, call: "launch", .. }), "{error}");
        assert!(matches!(error.cause(), Error::Panicked { .. }), "{error}");
        assert!(matches!(b.read(), Err(Error::Stopped { steps: 0, checkpoint: None })));
        assert!(matches!(sim.run(&step, 3), Err(Error::Stopped { steps: 0, checkpoint: None })));
    }
}

#[test]
fn files_and_pictures_hold_the_values() {
    let folder = Folder::new("simulation");
    let cells = [5, 4, 3];
    let sim = on(cells, "host");
    let values = random(cells, 2);
    let u = sim.field_from("u", &values).unwrap();
    let path = folder.path("u.npy");
    u.save(&path).unwrap();
    assert_eq!(sim.field_from::<f64, _>("v", path).unwrap().read().unwrap(), values);
    for (plane, size) in [(Plane::X(4), (512, 384)), (Plane::Y(0), (515, 309)), (Plane::Z(2), (515, 412))] {
        let path = folder.path("u.png");
        u.save_png(&path, plane).unwrap();
        let reader =
            png::Decoder::new(std::io::BufReader::new(std::fs::File::open(path).unwrap())).read_info().unwrap();
        assert_eq!((reader.info().width, reader.info().height), size, "{plane:?}");
    }
}

#[test]
fn an_explanation_names_halos_lines_plan_and_memory() {
    let sim = on([34, 33, 32], "host");
    let (u, v) = (sim.field::<f64>("u").unwrap(), sim.field::<f64>("v").unwrap());
    let step = sim.step(|s| {
        s.update(&u, heat(&u, &v, &v, 0.1));
        s.update((&v, &u), lopsided(&v, &u, true));
    });
    let explanation = step.unwrap().explain();
    let text = explanation.to_string();
    for part in [
        "grid 34x33x32 on host (",
        "u  X 1 below (line 12), 1 above (line 12); Y 1 below (line 13), 1 above (line 13); Z 1 below (line 14), 1 above (line 14) \
         as `u` of heat in src/testing.rs",
        "v  no halo, as `f` of heat",
        "v  X 2 above (line 41); Z 1 below (line 42) as `a` of lopsided",
        "u' = heat(u, v, v) over [1..33, 1..32, 1..31], 29760 points",
        " = lopsided(",
        "u 2 x ",
        "v 2 x ",
        " free",
    ] {
        assert!(text.contains(part), "{part:?} in\n{text}");
    }
    assert_eq!(explanation.plan.points, 32 * 31 * 30 + 32 * 33 * 31);
    let range = Box3 { lo: [0, 0, 1], hi: [32, 33, 32] };
    assert!(text.contains(&range.to_string()), "{text}");
}

#[test]
fn handles_are_cheap_and_may_go_to_other_threads() {
    fn check<T: Clone + Send + Sync>(_: &T) {}
    let sim = on([3, 3, 3], "host");
    let u = sim.field_from("u", |p: Point| f64::from(p.i)).unwrap();
    let step = sim.step(|s| s.update(&u, heat(&u, &u, &u, 0.0))).unwrap();
    check(&u);
    check(&step);
    check(&sim);
    let (other, clone) = (sim.clone(), u.clone());
    std::thread::spawn(move || other.run(&step, 2).unwrap()).join().unwrap();
    drop(sim);
    assert_eq!(clone.get([2, 1, 1]).unwrap(), 2.0);
    assert_eq!(u.get([1, 1, 1]).unwrap(), 4.0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_step_runs_near_its_devices_and_gives_the_thread_back() {
    let all = allowed_cpus();
    for affinity in Affinity::ALL {
        for (spec, helpers) in [("host", Helpers::Auto), ("host:2", Helpers::Devices), ("host:2", Helpers::Count(0))] {
            let sim = Simulation::on([5, 4, 6]).devices(spec).helpers(helpers).affinity(affinity);
            let sim = sim.exchange(Exchange::Threaded).build().unwrap();
            let u = sim.field_from("u", |p: Point| f64::from(p.i)).unwrap();
            let seen = Arc::new(Mutex::new(Vec::new()));
            let within = Arc::clone(&seen);
            let see = move |()| {
                *within.lock().unwrap() = allowed_cpus();
                0.5
            };
            let step = sim.step(|s| {
                let beta = s.compute((), see);
                s.update(&u, Call::<f64>::new(&HEAT, vec![u.reference(); 3], vec![argument(&beta)]));
            });
            sim.run(&step.unwrap(), 3).unwrap();
            assert_eq!(allowed_cpus(), all, "{spec} {affinity}");
            let homes = sim.placement();
            let expected = if homes[0].cpus.is_empty() { &all } else { &homes[0].cpus };
            assert_eq!(&*seen.lock().unwrap(), expected, "{spec} {affinity} {helpers}");
            let is_anywhere = homes.iter().all(|home| home.cpus.is_empty());
            assert_eq!(is_anywhere, affinity == Affinity::None, "{homes:?}");
            assert!(homes.iter().flat_map(|home| &home.cpus).all(|cpu| all.contains(cpu)), "{homes:?}");
        }
    }
}

#[test]
fn choices_are_read_back_and_unknown_ones_answered_with_those_that_exist() {
    for affinity in Affinity::ALL {
        assert_eq!(affinity.to_string().to_uppercase().parse::<Affinity>().unwrap(), affinity);
    }
    for helpers in [Helpers::Auto, Helpers::Devices, Helpers::Count(0), Helpers::Count(3)] {
        assert_eq!(helpers.to_string().parse::<Helpers>().unwrap(), helpers);
    }
    let error = "close".parse::<Affinity>().unwrap_err().to_string();
    assert_eq!(error, "there is no affinity `close`: it is one of near, far, none");
    for wrong in ["", "-1", "many", "1.5"] {
        let error = wrong.parse::<Helpers>().unwrap_err().to_string();
        assert!(error.contains(&format!("`{wrong}`")) && error.contains("auto, devices, a number"), "{error}");
    }
}
