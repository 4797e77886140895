//! Traces hold every operation of every run, in rows without overlaps.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Data, op};
use crate::backend::BufferId;
use crate::execute::{Issue, Memory, Program, Trace, Tracing};
use crate::plan::{Action, FieldId, Plan, ScalarId};
use crate::testing::{Folder, notebooks, row};

#[test]
fn every_operation_of_every_run_is_in_the_row_of_its_queue_and_of_its_thread() {
    let slots = (FieldId(0).current(), FieldId(0).spare());
    let copy = |device, queue| op(Action::Copy { from: slots.0, to: slots.1, part: row(8).cells }, device, queue);
    let compute = op(Action::Compute { function: 0, inputs: Vec::new(), output: ScalarId(0), ahead: 0 }, 0, 0);
    let ops = vec![
        copy(0, 0),
        copy(1, 0).by(1).after([0]),
        copy(1, 2).by(1).after([1]),
        copy(2, 0).by(2).after([2]),
        compute.across(1, [0]),
        op(Action::Barrier, 0, 0),
        op(Action::Barrier, 0, 0).by(1),
        op(Action::Barrier, 0, 0).by(2),
    ];
    let before = vec![copy(2, 1)];
    let (devices, _) = notebooks(3);
    let plan = Plan { before, ops, steps: 2, ..Plan::default() };
    let program =
        Program::new(plan, vec![std::sync::Arc::new(|_, _| 0)], &devices, vec![[0; 3]; 3], Issue::Lanes).unwrap();
    let field = Memory { layouts: vec![row(8); 3], current: vec![BufferId(1); 3], spare: vec![BufferId(2); 3] };
    let mut data = Data { fields: vec![field], scalars: vec![0], ..Data::default() };
    let trace = Trace::new(&devices);
    let names = (["a \"b\" \\ c\n".to_owned()], ["dt".to_owned()]);
    let (first, runs) = (10, 5);
    {
        let mut world = data.world(&devices);
        world.steps = first;
        world.trace = Some(Tracing { trace: &trace, fields: &names.0, scalars: &names.1 });
        program.run(&mut world, runs).unwrap();
    }
    let folder = Folder::new("trace");
    let path = folder.path("trace.json");
    trace.write(&path).unwrap();
    let json: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();

    let name = |event: &Value| event["args"]["name"].as_str().unwrap().to_owned();
    let of_kind = |kind: &str| events.iter().filter(|event| event["name"] == *kind).map(name).collect::<Vec<_>>();
    assert_eq!(of_kind("process_name"), ["device 0: notebook", "device 1: notebook", "device 2: notebook", "host"]);
    assert_eq!(
        of_kind("thread_name"),
        ["queue 0", "queue 0", "queue 2", "queue 0", "queue 1", "thread 0", "thread 1", "thread 2"]
    );

    let mut rows: BTreeMap<(u64, u64), Vec<&Value>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let row = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        rows.entry(row).or_default().push(event);
    }
    let copied = format!("{0}' = {0}", names.0[0]);
    let expected: [(_, &[&str]); 8] = [
        ((0, 0), &[&copied]),
        ((1, 0), &[&copied]),
        ((1, 2), &[&copied]),
        ((2, 0), &[&copied]),
        ((2, 1), &[]),
        ((3, 0), &[&copied, "dt = a function", "barrier"]),
        ((3, 1), &[&copied, &copied, "barrier"]),
        ((3, 2), &[&copied, "barrier"]),
    ];
    assert_eq!(rows.keys().copied().collect::<Vec<_>>(), expected.map(|(row, _)| row));
    for (row, names) in expected {
        let mut once = BTreeSet::new();
        let spans: Vec<_> = rows[&row]
            .iter()
            .map(|event| {
                let [start, duration] = ["ts", "dur"].map(|key| event[key].as_f64().unwrap());
                (start, start + duration)
            })
            .collect();
        // To the decimals that are written.
        let apart = spans.windows(2).all(|pair| pair[0].1 <= pair[1].0 + 1e-3);
        assert!(apart, "{row:?}: {spans:?}");
        let mut told: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
        for event in &rows[&row] {
            let step = event["args"]["step"].as_u64().unwrap();
            told.entry(step).or_default().push(event["name"].as_str().unwrap());
            if event["name"] == *copied {
                assert_eq!((&event["args"]["points"], &event["args"]["bytes"]), (&8.into(), &64.into()));
            }
            once.insert(step);
        }
        // What is done before the first run is in the first step, by the first thread.
        if row == (2, 1) {
            assert_eq!(told.into_iter().collect::<Vec<_>>(), [(first + 1, vec![&*copied])]);
            continue;
        }
        if row == (3, 0) {
            told.get_mut(&(first + 1)).unwrap().remove(0);
        }
        let steps: Vec<_> = (0..runs).map(|run| first + 2 * run + 1).collect();
        assert_eq!(once.into_iter().collect::<Vec<_>>(), steps);
        assert!(told.values().all(|told| told == names), "{row:?}: {told:?}");
    }
}
