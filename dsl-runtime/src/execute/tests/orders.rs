//! What devices are told in which order.

use super::{CURRENT, Data, SPARE, data, op};
use crate::backend::BufferId;
use crate::error::Error;
use crate::execute::{Issue, Program};
use crate::geometry::Box3;
use crate::plan::{Action, Op, Operand, Plan, Purpose, ScalarId, Slot};
use crate::scalar::Function;
use crate::testing::{HEAT, notebooks, row};
use std::sync::Arc;

fn copy(from: Slot, to: Slot, device: usize, queue: u32) -> Op {
    op(Action::Copy { from, to, part: row(8).cells }, device, queue)
}

fn launch(scalar: u32) -> Op {
    let action = Action::Launch {
        kernel: 0,
        outputs: vec![SPARE],
        fields: vec![CURRENT; 3],
        scalars: vec![Operand::Scalar(ScalarId(scalar)), Operand::Bits(9)],
        range: row(8).cells,
        parity: None,
        shift: [0; 3],
        purpose: Purpose::Update,
    };
    op(action, 0, 0)
}

fn compute(output: u32, ahead: u64) -> Op {
    let action = Action::Compute { function: 0, inputs: Vec::new(), output: ScalarId(output), ahead };
    op(action, 0, 0)
}

/// The number of the step.
fn number() -> Vec<Function> {
    vec![Arc::new(|number, _| number)]
}

/// Runs a plan on notebooks and gives what they were told.
fn told(plan: Plan, data: &mut Data, runs: u64, issue: Issue) -> Vec<String> {
    let devices = data.fields[0].layouts.len();
    let (devices, notes) = notebooks(devices);
    let program = Program::new(plan, number(), &devices, vec![[0; 3]; devices.len()], issue).unwrap();
    data.run(&devices, &program, runs).unwrap();
    notes.taken()
}

#[test]
fn only_other_queues_are_waited_for_and_slots_turn_after_the_run() {
    let ops = vec![
        copy(CURRENT, SPARE, 0, 0),
        copy(CURRENT, SPARE, 0, 0).after([0]),
        copy(SPARE, CURRENT, 0, 1).after([0, 1]),
        copy(SPARE, CURRENT, 1, 0).after([2]),
        copy(SPARE, CURRENT, 2, 0).after([3]),
    ];
    let plan = Plan { ops, rotation: vec![(CURRENT, SPARE), (SPARE, CURRENT)], ..Plan::default() };
    let mut data = data(3);
    let expected = [
        "0 copy 1 to 2 on 0",
        "0 copy 1 to 2 on 0",
        "0 signal 100 on 0",
        "0 wait on 1 for 100",
        "0 copy 2 to 1 on 1",
        "0 signal 101 on 1",
        "1 wait on 0 for peer's 101",
        "1 copy 2 to 1 on 0",
        "1 signal 200 on 0",
        "1 synchronize 200",
        "2 copy 2 to 1 on 0",
        "0 finish 0",
        "0 finish 1",
        "1 finish 0",
        "2 finish 0",
    ];
    assert_eq!(told(plan, &mut data, 1, Issue::Lanes), expected);
    assert_eq!((data.fields[0].current[0], data.fields[0].spare[0]), (BufferId(2), BufferId(1)));
}

#[test]
fn earlier_runs_are_waited_for_only_once_there_are_some() {
    let ops = vec![copy(CURRENT, SPARE, 0, 0).across(2, [1]), copy(SPARE, CURRENT, 0, 1).after([0])];
    let plan = Plan { ops, rotation: vec![(CURRENT, SPARE), (SPARE, CURRENT)], ..Plan::default() };
    let expected = [
        "0 copy 1 to 2 on 0",
        "0 signal 100 on 0",
        "0 wait on 1 for 100",
        "0 copy 2 to 1 on 1",
        "0 signal 101 on 1",
        "0 copy 2 to 1 on 0",
        "0 signal 102 on 0",
        "0 wait on 1 for 102",
        "0 copy 1 to 2 on 1",
        "0 signal 103 on 1",
        "0 wait on 0 for 101",
        "0 copy 1 to 2 on 0",
        "0 signal 104 on 0",
        "0 wait on 1 for 104",
        "0 copy 2 to 1 on 1",
        "0 signal 105 on 1",
        "0 finish 0",
        "0 finish 1",
    ];
    assert_eq!(told(plan, &mut data(1), 3, Issue::Lanes), expected);
}

#[test]
fn the_host_waits_for_what_it_reads_and_not_for_launches_whose_scalars_it_replaces() {
    let cells = vec![(0, [3, 0, 0])];
    let probe = || op(Action::Probe { from: SPARE, cells: cells.clone(), record: 0 }, 0, 0);
    let ops = vec![
        compute(0, 0),
        launch(0).after([0]),
        compute(0, 1).after([1]),
        op(Action::Record { from: ScalarId(0), record: 1 }, 0, 0).after([2]),
        launch(0).after([2]),
        probe().after([4]),
        copy(CURRENT, SPARE, 0, 1).after([5]),
        probe().after([6]),
    ];
    let plan = Plan { kernels: vec![&HEAT], ops, steps: 2, ..Plan::default() };
    let mut data = Data { scalars: vec![77], records: vec![Vec::new(); 2], ..data(1) };
    let run = |step: u64, event: u64| {
        [
            format!("0 launch with [{step}, 9] on 0"),
            format!("0 launch with [{}, 9] on 0", step + 1),
            "0 read 2 on 0".into(),
            "0 copy 1 to 2 on 1".into(),
            format!("0 signal {event} on 1"),
            format!("0 synchronize {event}"),
            "0 read 2 on 0".into(),
        ]
    };
    let end = ["0 finish 0", "0 finish 1"].map(String::from);
    let expected: Vec<_> = run(0, 100).into_iter().chain(run(2, 101)).chain(end).collect();
    assert_eq!(told(plan, &mut data, 2, Issue::Lanes), expected);
    assert_eq!((data.scalars, data.records), (vec![3], vec![vec![0; 4], vec![1, 3]]));
}

#[test]
fn what_is_done_once_is_finished_before_other_queues_start() {
    let plan = |queue| Plan {
        before: vec![copy(CURRENT, SPARE, 0, queue)],
        ops: vec![copy(SPARE, CURRENT, 0, 0)],
        ..Plan::default()
    };
    assert_eq!(
        told(plan(0), &mut data(1), 2, Issue::Lanes),
        ["0 copy 1 to 2 on 0", "0 copy 2 to 1 on 0", "0 copy 2 to 1 on 0", "0 finish 0"]
    );
    assert_eq!(
        told(plan(1), &mut data(1), 1, Issue::Lanes),
        ["0 copy 1 to 2 on 1", "0 finish 0", "0 finish 1", "0 copy 2 to 1 on 0", "0 finish 0", "0 finish 1"]
    );
}

/// Where a note is for the `nth` time.
fn position(told: &[String], note: &str, nth: usize) -> usize {
    let mut found = told.iter().enumerate().filter(|(_, other)| *other == note);
    found.nth(nth).unwrap_or_else(|| panic!("{note} is missing in {told:#?}")).0
}

#[test]
fn threads_meet_at_barriers_with_empty_queues() {
    let barrier = |lane| op(Action::Barrier, 0, 0).by(lane);
    let ops = || {
        vec![
            copy(CURRENT, SPARE, 0, 3),
            copy(CURRENT, SPARE, 1, 4).by(1),
            copy(CURRENT, SPARE, 2, 5).by(2),
            barrier(0),
            barrier(1),
            barrier(2),
            copy(SPARE, CURRENT, 0, 3),
            copy(SPARE, CURRENT, 1, 4).by(1),
            copy(SPARE, CURRENT, 2, 5).by(2),
            barrier(0),
            barrier(1),
            barrier(2),
        ]
    };
    let runs = 40;
    for issue in [Issue::Lanes, Issue::InOrder] {
        let plan = Plan { ops: ops(), ..Plan::default() };
        let told = told(plan, &mut data(3), runs, issue);
        for run in 0..runs as usize {
            for device in 0..3 {
                let queue = device + 3;
                let back = position(&told, &format!("{device} copy 2 to 1 on {queue}"), run);
                for other in 0..3 {
                    let queue = other + 3;
                    let there = position(&told, &format!("{other} copy 1 to 2 on {queue}"), run);
                    let finished = position(&told, &format!("{other} finish {queue}"), 2 * run);
                    assert!(there < finished && finished < back, "{issue:?} {run} {told:#?}");
                }
            }
        }
    }
}

#[test]
fn threads_wait_for_each_other_where_the_plan_says_so_and_never_look_at_old_events() {
    // A ring over three threads, in which each run is behind the one before, and a thread that nobody waits for.
    let ops = vec![
        copy(CURRENT, SPARE, 0, 0).across(1, [2]),
        copy(CURRENT, SPARE, 0, 1).by(1).after([0]),
        copy(CURRENT, SPARE, 0, 2).by(2).after([1]),
        copy(CURRENT, SPARE, 1, 0).by(3).across(3, [1]),
        copy(SPARE, CURRENT, 0, 0).by(4).after([0]),
    ];
    let runs = 150;
    let plan = Plan { ops, ..Plan::default() };
    let told = told(plan, &mut data(2), runs, Issue::Lanes);
    let copies: Vec<_> = told.iter().filter(|note| note.starts_with("0 copy 1 to 2")).collect();
    let around = ["0 copy 1 to 2 on 0", "0 copy 1 to 2 on 1", "0 copy 1 to 2 on 2"];
    assert!(copies.iter().zip(around.iter().cycle()).all(|(found, expected)| found == expected), "{copies:#?}");
    assert_eq!(copies.len(), 3 * runs as usize);
    // Each event goes to who waits for it in its turn.
    for queue in 0..3 {
        let ending = format!(" on {queue}");
        let signals = told.iter().filter(|note| note.starts_with("0 signal") && note.ends_with(&ending));
        let events = signals.map(|note| note.split(' ').nth(2).unwrap());
        let start = format!("0 wait on {} for ", (queue + 1) % 3);
        let waits = told.iter().filter_map(|note| note.strip_prefix(&start));
        let waited: Vec<_> = waits.collect();
        let events: Vec<_> = events.collect();
        assert_eq!(waited[..], events[..waited.len()]);
        assert_eq!(waited.len(), runs as usize - usize::from(queue == 2));
    }
    let peers: Vec<_> = told.iter().filter_map(|note| note.strip_prefix("1 wait on 0 for peer's ")).collect();
    let own: Vec<_> = told.iter().filter_map(|note| note.strip_prefix("0 wait on 2 for ")).collect();
    assert_eq!(peers[..], own[..runs as usize - 3]);
    // The fifth thread uses a queue of the first one.
    for run in 0..runs as usize {
        assert!(position(&told, "0 copy 1 to 2 on 0", run) < position(&told, "0 copy 2 to 1 on 0", run));
    }
}

#[test]
fn a_plan_that_sends_where_a_device_cannot_is_refused() {
    let part = Box3 { lo: [0; 3], hi: [1; 3] };
    let send = |to| op(Action::Send { slot: CURRENT, part, to, into: part }, 0, 1);
    let (devices, notes) = notebooks(3);
    let program = |to| {
        let plan = Plan { ops: vec![send(to)], ..Plan::default() };
        Program::new(plan, Vec::new(), &devices, vec![[0; 3]; 3], Issue::Lanes)
    };
    data(3).run(&devices, &program(1).unwrap_or_else(|error| panic!("{error}")), 1).unwrap();
    assert_eq!(notes.taken(), ["0 send 1 to 1's 1 on 1", "0 finish 1"]);
    let Err(error) = program(2) else { panic!("a copy to the third device is accepted") };
    assert!(matches!(&error, Error::Unreachable { reason, .. } if reason == "it is another notebook"), "{error}");
}
