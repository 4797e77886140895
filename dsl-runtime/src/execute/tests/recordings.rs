//! What devices are told when they record runs.

use super::{CURRENT, Data, SPARE, data, op};
use crate::execute::{Issue, Program};
use crate::plan::{Action, Op, Operand, Plan, Purpose, ScalarId};
use crate::testing::{HEAT, notebooks, row};

/// Fields and a scalar.
fn with_scalar(devices: usize) -> Data {
    Data { scalars: vec![3], ..data(devices) }
}

fn copy(device: usize, queue: u32) -> Op {
    op(Action::Copy { from: CURRENT, to: SPARE, part: row(8).cells }, device, queue)
}

fn launch(device: usize) -> Op {
    let action = Action::Launch {
        kernel: 0,
        outputs: vec![SPARE],
        fields: vec![CURRENT; 3],
        scalars: vec![Operand::Scalar(ScalarId(0))],
        range: row(8).cells,
        parity: None,
        shift: [0; 3],
        purpose: Purpose::Update,
    };
    op(action, device, 0)
}

/// Four operations on two devices, after which the slots turn.
fn plan() -> Plan {
    let ops = vec![
        launch(0).across(1, [2, 3]),
        copy(0, 1).after([0]),
        launch(1).after([1]).across(1, [0]),
        copy(0, 0).after([2]),
    ];
    let rotation = vec![(CURRENT, SPARE), (SPARE, CURRENT)];
    Plan { ops, rotation, kernels: vec![&HEAT], ..Plan::default() }
}

/// Runs a plan `runs` times on notebooks that may record, and gives what they were told each time.
fn told(plan: Plan, data: &mut Data, runs: &[u64]) -> Vec<Vec<String>> {
    let count = data.fields[0].layouts.len();
    let (devices, notes) = notebooks(count);
    let program = Program::new(plan, Vec::new(), &devices, vec![[0; 3]; count], Issue::Lanes).unwrap();
    let program = program.recorded(&devices);
    let mut told = Vec::new();
    for &runs in runs {
        data.run(&devices, &program, runs).unwrap();
        told.push(notes.taken());
    }
    told
}

/// The work that was done, recordings in full.
fn work(told: &[String], recording: &mut Vec<String>) -> Vec<String> {
    let (mut done, mut records) = (Vec::new(), false);
    for note in told {
        let is_work = note.contains("copy") || note.contains("launch");
        match note.as_str() {
            "0 record on 0" => (records, *recording) = (true, Vec::new()),
            "0 recorded on 0" => records = false,
            "0 replay 5 on 0" => done.extend(recording.iter().cloned()),
            _ if records => {
                assert!(!note.contains("finish") && !note.contains("synchronize"), "{note} while recording");
                if is_work {
                    recording.push(note.clone());
                }
            }
            _ if is_work => done.push(note.clone()),
            _ => {}
        }
    }
    done
}

fn count(told: &[String], what: &str) -> usize {
    told.iter().filter(|note| note.contains(what)).count()
}

#[test]
fn a_recording_does_what_runs_one_by_one_do_with_the_same_buffers() {
    for runs in [1, 23, 24, 25, 31, 32, 100] {
        let (mut plain, mut recorded) = (with_scalar(2), with_scalar(2));
        let (devices, notes) = notebooks(2);
        let program = Program::new(plan(), Vec::new(), &devices, vec![[0; 3]; 2], Issue::Lanes).unwrap();
        let mut recording = Vec::new();
        let told = told(plan(), &mut recorded, &[runs, 3, runs]);
        for (told, runs) in told.iter().zip([runs, 3, runs]) {
            plain.run(&devices, &program, runs).unwrap();
            assert_eq!(work(told, &mut recording), work(&notes.taken(), &mut Vec::new()), "{runs} runs");
        }
        assert_eq!(recorded.fields[0].current, plain.fields[0].current);
        // Eight runs have 32 operations.
        let [replays, again] = [0, 2].map(|time| count(&told[time], "replay") as u64);
        let expected = if runs < 24 { 0 } else { (runs - 8) / 8 };
        assert_eq!(replays, expected, "{runs} runs: {:?}", told[0]);
        // Three runs later the slots have changed places: these are other buffers, or the same again.
        let known = runs % 2 == 1 && runs >= 24;
        assert_eq!(again, if known { runs / 8 } else { expected }, "{runs} runs again");
    }
}

#[test]
fn a_recording_starts_after_everything_and_ends_before_everything_else() {
    let told = told(plan(), &mut with_scalar(2), &[33]).remove(0);
    let at = |what: &str| told.iter().position(|note| note == what).unwrap();
    let (start, end) = (at("0 record on 0"), at("0 recorded on 0"));
    assert_eq!(told[start - 3..start], ["0 finish 0", "0 finish 1", "1 finish 0"]);
    let joined: Vec<_> = told[start..].iter().take(4).map(|note| note.split(" 1").next().unwrap()).collect();
    assert_eq!(joined, ["0 record on 0", "0 signal", "0 wait on", "1 wait on 0 for peer's"]);
    let ends = &told[end - 4..end];
    assert!(ends[0].starts_with("0 signal") && ends[0].ends_with("on 1"), "{ends:?}");
    assert!(ends[1].starts_with("0 wait on 0 for"), "{ends:?}");
    assert!(ends[2].starts_with("1 signal") && ends[2].ends_with("on 0"), "{ends:?}");
    assert!(ends[3].starts_with("0 wait on 0 for peer's"), "{ends:?}");
    let last = told.iter().rposition(|note| note == "0 replay 5 on 0").unwrap();
    assert_eq!(told[last + 1..last + 4], ["0 finish 0", "0 finish 1", "1 finish 0"]);
}

#[test]
fn another_value_of_a_scalar_is_recorded_anew() {
    let mut data = with_scalar(1);
    let plan = || Plan { ops: vec![launch(0), copy(0, 0).after([0])], kernels: vec![&HEAT], ..Plan::default() };
    let (devices, notes) = notebooks(1);
    let program = Program::new(plan(), Vec::new(), &devices, vec![[0; 3]], Issue::Lanes).unwrap().recorded(&devices);
    for (scalar, records, forgets) in [(3, 1, 0), (4, 1, 0), (3, 0, 0), (5, 1, 0), (6, 1, 0), (7, 1, 1), (3, 1, 1)] {
        data.scalars[0] = scalar;
        data.run(&devices, &program, 100).unwrap();
        let told = notes.taken();
        let found = (count(&told, "record on"), count(&told, "forget"));
        assert_eq!(found, (records, forgets), "scalar {scalar}");
    }
}

#[test]
fn what_the_host_does_in_a_step_is_not_recorded_nor_what_a_device_refuses() {
    let record = op(Action::Record { from: ScalarId(0), record: 0 }, 0, 0).after([0]);
    let with_host = Plan { ops: vec![copy(0, 0), record], ..Plan::default() };
    let mut data_with_record = Data { records: vec![Vec::new()], ..with_scalar(1) };
    assert_eq!(count(&told(with_host, &mut data_with_record, &[100])[0], "record on"), 0);
    // The third notebook shares nothing with the first ones.
    let apart = Plan { ops: vec![copy(0, 0), copy(2, 0)], ..Plan::default() };
    let told_apart = told(apart, &mut with_scalar(3), &[100]).remove(0);
    assert_eq!((count(&told_apart, "record on"), count(&told_apart, "copy")), (0, 200));
    let (devices, notes) = notebooks(3);
    let refuses = Plan { ops: vec![copy(2, 0)], ..Plan::default() };
    let program = Program::new(refuses, Vec::new(), &devices, vec![[0; 3]; 3], Issue::Lanes).unwrap();
    let program = program.recorded(&devices);
    with_scalar(3).run(&devices, &program, 200).unwrap();
    assert_eq!(count(&notes.taken(), "copy"), 200);
}
