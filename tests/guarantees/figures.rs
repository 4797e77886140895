//! 9. Honest figures: what is told is what was done, however many devices did it.

use std::collections::BTreeSet;

use polyhalo::Error;
use polyhalo::plan::{Action, Op, Plan};
use polyhalo::prelude::*;
use polyhalo_tests::steps::device::{Device, STRATEGIES, hosts, several_with_opencl};

use crate::busy::{Busy, CELLS};
use crate::kernels::{driven, seven};
use crate::{all_devices, devices_for};

#[test]
fn points_and_bytes_are_those_of_the_grid_on_any_number_of_devices() {
    let expected = {
        let busy = Busy::new(polyhalo_tests::steps::devices()[0].on(CELLS)).unwrap();
        let report = busy.sim.run(&busy.step, 7).unwrap();
        (report.points, report.bytes)
    };
    assert!(expected.0 > 0);
    for devices in devices_for(CELLS) {
        let busy = Busy::new(devices.on(CELLS)).unwrap();
        let report = busy.sim.run(&busy.step, 7).unwrap();
        assert_eq!((report.points, report.bytes), expected, "{devices}");
        assert_eq!((report.steps, report.devices.len()), (7, devices.count()), "{devices}");
    }
}

/// What is copied between devices: planes with the two devices, and whether straight.
fn copies(ops: &[Op]) -> Vec<(usize, usize, u64, bool)> {
    let mut copies = Vec::new();
    for op in ops {
        match &op.action {
            Action::Send { part, to, .. } => copies.push((op.device, *to, part.points(), true)),
            Action::Upload { from, part, .. } => {
                let sent = ops.iter().find_map(|other| match &other.action {
                    Action::Download { to, .. } if to == from => Some(other.device),
                    _ => None,
                });
                copies.push((sent.expect("somebody filled the memory"), op.device, part.points(), false));
            }
            _ => {}
        }
    }
    copies.sort_unstable();
    copies
}

fn plan(devices: &Device, kind: Boundary<f64>) -> Plan {
    let sim = devices.on([6, 5, 12]);
    let (u, k) = (sim.field::<f64>("u").unwrap(), sim.field::<f64>("k").unwrap());
    u.boundary(FACES, kind).unwrap();
    k.boundary(FACES, Boundary::Clamp).unwrap();
    let step = sim.step(|s| {
        s.update(&u, seven(&u));
        s.update(&u, driven(&u, &k));
    });
    let step = step.unwrap();
    sim.run(&step, 3).unwrap();
    step.explain().plan
}

#[test]
fn a_step_exchanges_what_it_must_and_no_more_in_the_way_that_was_asked_for() {
    for exchange in STRATEGIES {
        let Some(recipe) = exchange.recipe().filter(|recipe| recipe.steps == 1) else { continue };
        let devices = hosts(3).exchange(exchange);
        for (kind, ends) in [(Boundary::Clamp, vec![]), (Boundary::Periodic, vec![(0, 2), (2, 0)])] {
            let plan = plan(&devices, kind);
            // A plane to each neighbour once a step; what never changes is exchanged before, two planes up and one down.
            let mut each: Vec<_> = [(0, 1), (1, 0), (1, 2), (2, 1)].into_iter().chain(ends).collect();
            each.sort_unstable();
            let each: Vec<_> = each.into_iter().map(|(from, to)| (from, to, 6 * 5, recipe.direct)).collect();
            assert_eq!(copies(&plan.ops), each, "{devices} {kind:?}");
            let before: BTreeSet<_> =
                copies(&plan.before).into_iter().map(|(from, to, points, _)| (from, to, points)).collect();
            for (from, to, planes) in [(0, 1, 2), (1, 2, 2), (1, 0, 1), (2, 1, 1)] {
                assert!(before.contains(&(from, to, planes * 6 * 5)), "{devices} {kind:?}: {before:?}");
            }
            let lanes: BTreeSet<_> = plan.ops.iter().map(|op| op.lane).collect();
            assert_eq!(lanes.len(), if recipe.threads { 3 } else { 1 }, "{devices}");
            let barriers = plan.ops.iter().filter(|op| matches!(op.action, Action::Barrier)).count();
            assert_eq!(barriers > 0, recipe.meets, "{devices}");
        }
    }
}

#[test]
fn deep_halos_are_exchanged_every_so_many_steps() {
    for steps in [2, 3] {
        let plan = plan(&hosts(2).exchange(Exchange::Deep(steps)), Boundary::Clamp);
        assert_eq!(plan.steps, u64::from(steps));
        let planes = u64::from(steps) * 6 * 5;
        assert_eq!(copies(&plan.ops), [(0, 1, planes, true), (1, 0, planes, true)]);
    }
}

#[test]
fn devices_that_do_not_reach_each_other_copy_through_the_host_and_the_plan_says_so() {
    for devices in several_with_opencl() {
        let devices = devices.exchange(Exchange::PeerToPeer);
        // Parts of one device share a context; others don't.
        let direct = !devices.to_string().contains('+');
        let plan = plan(&devices, Boundary::Clamp);
        let copies = copies(&plan.ops);
        assert_eq!(copies.len(), 2, "{devices}");
        assert!(copies.iter().all(|(.., straight)| *straight == direct), "{devices}: {copies:?}");
        assert_eq!(plan.stagings.is_empty(), direct, "{devices}");
    }
}

#[test]
fn more_devices_than_planes_are_refused_by_name() {
    for devices in all_devices().iter().filter(|devices| devices.count() > 1) {
        let planes = devices.count() - 1;
        match devices.builder([5, 4, planes]).build().unwrap_err() {
            Error::MoreDevicesThanPlanes { axis: "Z", cells, devices: count } => {
                assert_eq!((cells, count), (planes, devices.count()), "{devices}");
            }
            other => panic!("{devices}: {other}"),
        }
        let sim = devices.on([5, 4, devices.count()]);
        assert_eq!(sim.devices().len(), devices.count());
    }
}

#[test]
fn halos_and_staging_are_the_only_extra_memory() {
    // Planes of a field of 32 x 16 cells, with whatever the layout puts around them.
    let bytes = |devices: &Device| -> u64 {
        let sim = devices.on([32, 16, 12]);
        let u = sim.field::<f64>("u").unwrap();
        let step = sim.step(|s| s.update(&u, seven(&u))).unwrap();
        step.explain().memory.iter().flat_map(|memory| &memory.fields).map(|(bytes, _)| bytes).sum()
    };
    let one = bytes(&hosts(1));
    let plane = one / 12;
    for count in [2, 3, 4] {
        // Two planes for each place where devices meet, and what alignment takes on each device.
        let several = bytes(&hosts(count).exchange(Exchange::Neighbour));
        let extra = several - one;
        let halos = 2 * (count as u64 - 1) * plane;
        assert!((halos..=halos + count as u64 * plane).contains(&extra), "{count}: {extra} beside {one}, {halos}");
    }
}
