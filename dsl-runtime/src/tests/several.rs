//! Simulations on several devices: strategies, checked runs, and who owns what.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::backend::{Helpers, Order};
use crate::partition::Division;

const STRATEGIES: [Exchange; 7] = [
    Exchange::Synchronous,
    Exchange::Streamed,
    Exchange::Threaded,
    Exchange::PeerToPeer,
    Exchange::Neighbour,
    Exchange::Deep(3),
    Exchange::Auto,
];

/// Two stages over fields with other boundaries, 7 steps; the bits of the result.
fn run(builder: Builder, cells: [usize; 3]) -> Result<Vec<u64>> {
    let sim = builder.measure_bandwidth(false).build()?;
    let u = sim.field_from("u", random(cells, 3))?;
    let v = sim.field_from("v", random(cells, 5))?;
    let kappa = sim.field_from("kappa", random(cells, 7))?;
    u.boundary([Z, -Z], Boundary::Periodic)?;
    kappa.boundary([Z, -Z], Boundary::Clamp)?;
    v.boundary(FACES, Boundary::Even)?;
    let step = sim.step(|s| {
        s.update(&u, heat(&u, &v, &kappa, 0.05));
        s.update(&v, heat(&v, &u, &kappa, 0.02));
    })?;
    sim.run(&step, 7)?;
    let values = u.read()?.into_iter().chain(v.read()?);
    Ok(values.map(f64::to_bits).collect())
}

#[test]
fn every_strategy_gives_the_bits_of_one_device() {
    let cells = [9, 7, 11];
    let expected = run(on_devices(cells, "reference"), cells).unwrap();
    for exchange in STRATEGIES {
        for devices in ["reference:2", "host:2", "host:3", "host:7", "host:11", "host:1+reference:1"] {
            for order in [Order::Eager, Order::Lazy, Order::Random(7)] {
                let builder = on_devices(cells, devices).exchange(exchange).order(order);
                let found = run(builder, cells).unwrap();
                assert!(found == expected, "{exchange} on {devices}, {order:?}");
            }
        }
    }
}

fn on_devices(cells: [usize; 3], devices: &str) -> Builder {
    Simulation::on(cells).devices(devices)
}

#[test]
fn helpers_shares_and_checks_change_nothing() {
    let cells = [6, 5, 13];
    let expected = run(on_devices(cells, "reference"), cells).unwrap();
    for exchange in STRATEGIES {
        for helpers in [Helpers::Auto, Helpers::Devices, Helpers::Count(0), Helpers::Count(1)] {
            let builder = on_devices(cells, "host:3").exchange(exchange).helpers(helpers);
            let shares = Division::Shares(vec![1.0, 5.0, 2.0]);
            let found = run(builder.division(shares).verify(true).paranoid(true), cells).unwrap();
            assert!(found == expected, "{exchange}, {helpers:?}");
        }
    }
}

#[test]
fn a_result_that_is_not_the_reference_s_ends_a_checked_run_and_is_named() {
    let sim = on_devices([5, 4, 6], "host:2").verify(true).measure_bandwidth(false).build().unwrap();
    let u = sim.field_from("u", random([5, 4, 6], 1)).unwrap();
    // Every call gives another number, and the check is one call more.
    let calls = AtomicU64::new(0);
    let step = sim.step(|s| {
        let number = s.each_step(move |_| calls.fetch_add(1, Ordering::Relaxed) as f64);
        s.inject(&u, [[2, 1, 4]], &number);
    });
    match sim.run(&step.unwrap(), 3).unwrap_err() {
        Error::Differs { what, place, step, .. } => {
            assert_eq!((what.as_str(), step), ("field `u`", 1));
            assert!(place.starts_with("[2, 1, 4], plane 1 of the subdomain of device 1 (host 1 of 2"), "{place}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn what_only_an_unexchanged_halo_cell_holds_ends_a_paranoid_run_and_is_named() {
    let sim = on_devices([3, 3, 6], "host:3").paranoid(true).measure_bandwidth(false).build().unwrap();
    let u = sim.field_from("u", random([3, 3, 6], 1)).unwrap();
    let step = sim.step(|s| s.inject(&u, [[1, 1, 5]], f64::NAN)).unwrap();
    match sim.run(&step, 2).unwrap_err() {
        Error::Poisoned { field, at, plane, step, .. } => {
            assert_eq!((&*field, at, plane, step), ("u", [1, 1, 5], 1, 1))
        }
        other => panic!("{other}"),
    }
}

#[test]
fn the_environment_has_the_last_word() {
    let with = |pairs: &'static [(&str, &str)]| {
        let builder = on_devices([4, 4, 4], "nothing").measure_bandwidth(false);
        builder.overridden(|name| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.into()))
    };
    let pairs = &[("POLYHALO_DEVICES", "host:2"), ("POLYHALO_EXCHANGE", "streamed"), ("POLYHALO_VERIFY", "1")];
    let sim = with(pairs).unwrap().build().unwrap();
    assert_eq!((sim.devices().len(), sim.exchange()), (2, Exchange::Streamed));
    assert!(sim.shared.shadow.is_some() && !sim.shared.paranoid);
    let refused = |pairs| with(pairs).unwrap_err().to_string();
    let text = refused(&[("POLYHALO_EXCHANGE", "fast")]);
    assert!(text.contains("POLYHALO_EXCHANGE") && text.contains("`fast`"), "{text}");
    assert!(sim.shared.records);
    let pairs = &[("POLYHALO_GRAPHS", "0"), ("POLYHALO_DEVICES", "host"), ("POLYHALO_SHAPE", "march:32x4:8")];
    assert!(!with(pairs).unwrap().build().unwrap().shared.records);
    let off = with(&[("POLYHALO_GRAPHS", "off"), ("POLYHALO_DEVICES", "host")]);
    assert!(!off.unwrap().build().unwrap().shared.records);
    for (name, value) in [("POLYHALO_SHAPE", "round"), ("POLYHALO_TUNE", "often")] {
        let pairs: &'static [(&str, &str)] = Box::leak(Box::new([(name, value)]));
        let text = refused(pairs);
        assert!(text.contains(name) && text.contains(value), "{text}");
    }
    assert!(with(&[("POLYHALO_VERIFY", "0"), ("POLYHALO_DEVICES", "")]).unwrap().build().is_err());
}

#[test]
fn more_devices_than_planes_and_shares_for_others_are_refused() {
    let refused = |builder: Builder| builder.build().map(|_| ()).unwrap_err();
    let error = refused(on_devices([4, 4, 3], "host:4"));
    assert!(matches!(error, Error::MoreDevicesThanPlanes { cells: 3, devices: 4, .. }), "{error}");
    let error = refused(on_devices([4, 4, 9], "host:2").division(Division::Shares(vec![1.0])));
    assert!(error.to_string().contains("1 numbers, and there are 2 devices"), "{error}");
}

#[test]
fn points_and_bytes_are_those_of_the_grid_whatever_the_number_of_devices() {
    let figures = |devices: &str, exchange| {
        let sim = on_devices([8, 7, 10], devices).exchange(exchange).measure_bandwidth(false).build().unwrap();
        let u = sim.field_from("u", random([8, 7, 10], 1)).unwrap();
        let step = sim.step(|s| s.update(&u, heat(&u, &u, &u, 0.0))).unwrap();
        let report = sim.run(&step, 5).unwrap();
        (report.points, report.bytes, report.steps)
    };
    let one = figures("host", Exchange::Auto);
    assert_eq!(one.0, 5 * 6 * 5 * 8);
    for exchange in STRATEGIES {
        assert_eq!(figures("host:4", exchange), one, "{exchange}");
    }
}

#[test]
fn halos_are_no_wider_than_needed_and_memory_is_that_of_the_planes() {
    let bytes = |devices: &str| {
        let sim = on_devices([16, 16, 32], devices).exchange(Exchange::PeerToPeer).build().unwrap();
        let u = sim.field_from("u", random([16, 16, 32], 1)).unwrap();
        let step = sim.step(|s| s.update(&u, heat(&u, &u, &u, 0.0))).unwrap();
        let memory = step.explain().memory;
        memory.iter().map(|memory| memory.bytes).collect::<Vec<_>>()
    };
    let (one, four) = (bytes("host")[0], bytes("host:4"));
    let plane = one / 32;
    // Eight planes each, and a halo plane on each inner side.
    assert_eq!(four, [9, 10, 10, 9].map(|planes| planes * plane));
}

#[test]
fn explanations_and_reports_name_planes_ways_and_bytes() {
    let explained = |devices: &str, exchange| {
        let sim = on_devices([8, 8, 12], devices).exchange(exchange).measure_bandwidth(false).build().unwrap();
        let u = sim.field_from("u", random([8, 8, 12], 1)).unwrap();
        let step = sim.step(|s| s.update(&u, heat(&u, &u, &u, 0.0))).unwrap();
        let text = step.explain().to_string();
        (text, sim.run(&step, 6).unwrap())
    };
    let plane = 8 * 8 * 8;
    let (text, report) = explained("host:3", Exchange::PeerToPeer);
    assert!(text.contains("  device 1, planes 4..8 along Z: host 1 of 3"), "{text}");
    assert!(text.contains("  exchanged in each step: 4 copies from device to device (2.0 KiB)"), "{text}");
    assert_eq!((report.exchanged.direct, report.exchanged.direct_bytes), (24, 24 * plane));
    assert!(report.to_string().ends_with("; peer-to-peer: 24 copies from device to device (12.0 KiB)"), "{report}");
    let (text, report) = explained("reference:2", Exchange::PeerToPeer);
    assert!(text.contains("  through the host, device 0 to device 1: the back end `reference`"), "{text}");
    assert!(text.contains(" of host memory for exchanges"), "{text}");
    assert_eq!((report.exchanged.staged, report.exchanged.staged_bytes), (12, 12 * plane));
    let (text, report) = explained("host:2", Exchange::Deep(3));
    assert!(text.contains("  exchanged every 3 steps: "), "{text}");
    assert_eq!(report.exchange, Exchange::Deep(3));
    let (_, report) = explained("host:2", Exchange::Auto);
    assert_ne!(report.exchange, Exchange::Auto);
    assert!(explained("host", Exchange::Auto).1.exchanged.is_empty());
}
