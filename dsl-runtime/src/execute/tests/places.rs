//! Where the threads of a batch run.

use std::sync::Arc;

use super::{Data, op};
use crate::backend::{BufferId, allowed_cpus};
use crate::execute::{Issue, Memory, Program};
use crate::placement::Home;
use crate::plan::{Action, FieldId, Op, Plan, ScalarId};
use crate::testing::{notebooks_at, row};

/// The CPUs that threads may use while they issue for each device, and those of the thread that computes scalars. Each device
/// is told by the lane of that number, or all by the first one.
fn masks(homes: &[&[usize]], issue: Issue) -> Vec<Vec<usize>> {
    let homes = homes.iter().map(|cpus| Home { cpus: cpus.to_vec(), ..Home::ANYWHERE }).collect::<Vec<_>>();
    let devices = homes.len();
    let (slots, lanes) = ((FieldId(0).current(), FieldId(0).spare()), 0..devices as u32);
    let copy = |device: usize| {
        let action = Action::Copy { from: slots.0, to: slots.1, part: row(8).cells };
        op(action, device, 0).by(device as u32)
    };
    // Names the last device, but has nothing to do with it.
    let compute = Action::Compute { function: 0, inputs: Vec::new(), output: ScalarId(0), ahead: 0 };
    let mut ops: Vec<Op> = vec![op(compute, devices - 1, 0)];
    ops.extend((0..devices).map(copy));
    ops.extend(lanes.map(|lane| op(Action::Barrier, 0, 0).by(lane)));
    let field = Memory {
        layouts: vec![row(8); devices],
        current: vec![BufferId(1); devices],
        spare: vec![BufferId(2); devices],
    };
    let mut data = Data { fields: vec![field], scalars: vec![0], ..Data::default() };
    let (devices, notes) = notebooks_at(homes);
    let (before, within) = (allowed_cpus(), Arc::new(std::sync::Mutex::new(Vec::new())));
    let own = Arc::clone(&within);
    let functions: Vec<crate::scalar::Function> = vec![Arc::new(move |_, _| {
        *own.lock().unwrap() = allowed_cpus();
        0
    })];
    let plan = Plan { ops, ..Plan::default() };
    let program = Program::new(plan, functions, &devices, vec![[0; 3]; devices.len()], issue).unwrap();
    data.run(&devices, &program, 3).unwrap();
    assert_eq!(allowed_cpus(), before, "the calling thread is free again");
    let mut masks: Vec<Vec<usize>> = vec![Vec::new(); devices.len()];
    for (device, mask) in notes.masks() {
        assert!(masks[device].is_empty() || masks[device] == mask, "{mask:?}");
        masks[device] = mask;
    }
    masks.push(within.lock().unwrap().clone());
    masks
}

#[test]
#[cfg(target_os = "linux")]
fn threads_stay_near_the_devices_for_which_they_issue() {
    let all = allowed_cpus();
    let (first, last) = ([all[0]], [all[all.len() - 1]]);
    let outside = [4000];
    let check =
        |homes: &[&[usize]], issue, expected: &[&[usize]]| assert_eq!(masks(homes, issue), expected, "{homes:?}");
    check(&[&first, &last], Issue::Lanes, &[&first, &last, &first]);
    check(&[&last, &first], Issue::Lanes, &[&last, &first, &last]);
    check(&[&last], Issue::Lanes, &[&last, &last]);
    // A device without a home leaves its own thread free, and nobody leaves the mask.
    check(&[&first, &[]], Issue::Lanes, &[&first, &all, &first]);
    check(&[&outside, &last], Issue::Lanes, &[&all, &last, &all]);
    // One thread for all.
    check(&[&last, &last], Issue::InOrder, &[&last, &last, &last]);
    check(&[&last, &[]], Issue::InOrder, &[&all, &all, &all]);
    let mut both = [first, last].concat();
    both.dedup();
    check(&[&last, &first], Issue::InOrder, &[&both, &both, &both]);
}
