//! Stories on devices against the model, and the smallest part of a story that still fails.

use std::panic::{AssertUnwindSafe, catch_unwind};

use polyhalo::Error;

use super::device::{Device, drawn};
use super::live::{Snapshot, play};
use super::model::Model;
use super::random::story;
use super::story::{Act, Stage, Story};

/// Runs the story of a seed on devices.
///
/// # Panics
/// When some don't give what the model says: with the seed and the smallest part of the story that shows it.
pub fn check(seed: u64, devices: &[Device]) {
    let story = story(seed);
    for device in devices {
        compare(seed, &story, [device, device]);
    }
}

/// Runs the story of a seed on devices drawn for it, of these terms and the host; where it restarts from a checkpoint, on
/// others.
///
/// # Panics
/// As [`check`] does.
pub fn check_drawn(seed: u64, terms: &[String]) {
    let story = story(seed);
    let devices = [0, 1].map(|turn| drawn(seed.wrapping_mul(2).wrapping_add(turn), story.cells[2], terms));
    compare(seed, &story, devices.each_ref());
}

fn compare(seed: u64, story: &Story, devices: [&Device; 2]) {
    if let Some(wrong) = failure(story, devices) {
        let smaller = shrunk(story, devices);
        let now = failure(&smaller, devices).unwrap_or_default();
        let [device, other] = devices;
        panic!("seed {seed} on {device}, restarts on {other}: {wrong}\na part of it: {now}\n{smaller}");
    }
}

/// What goes wrong with a story on devices.
fn failure(story: &Story, devices: [&Device; 2]) -> Option<String> {
    if devices.iter().any(|device| !device.fits(story.cells)) {
        return accepted(story, devices[0]);
    }
    let expected = catch(|| expected(story)).expect("the model knows every story");
    let builders = devices.map(|device| device.builder(story.cells));
    let found = match catch(|| play(story, &builders)) {
        Err(panic) => return Some(format!("panic: {panic}")),
        Ok(Err(error)) => return Some(error),
        Ok(Ok(found)) => found,
    };
    (expected.iter().zip(&found)).find_map(|((act, expected), found)| {
        difference(story, expected, found).map(|wrong| format!("after act {act}: {wrong}"))
    })
}

/// What is wrong if more devices than there are planes aren't refused.
fn accepted(story: &Story, device: &Device) -> Option<String> {
    match device.builder(story.cells).build() {
        Err(Error::MoreDevicesThanPlanes { axis: "Z", cells, devices })
            if cells == story.cells[2] && devices == device.count() =>
        {
            None
        }
        Err(error) => Some(format!("another error than that there are too few planes: {error}")),
        Ok(_) => Some("there are too few planes, but that is accepted".into()),
    }
}

fn catch<T>(act: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(act)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
    })
}

/// All values after each run and each restart, with the number of the act.
fn expected(story: &Story) -> Vec<(usize, Snapshot)> {
    let mut model = Model::new(story);
    let mut snapshots = Vec::new();
    for (number, act) in story.acts.iter().enumerate() {
        model.act(act);
        if matches!(act, Act::Run { .. } | Act::Restore { .. }) {
            let fields = model.fields.iter().map(|field| field.values.clone()).collect();
            let scalars = model.scalars.iter().map(|(_, word)| *word).collect();
            snapshots.push((number, Snapshot { fields, scalars, records: model.records.clone() }));
        }
    }
    snapshots
}

fn difference(story: &Story, expected: &Snapshot, found: &Snapshot) -> Option<String> {
    for (number, (spec, (expected, found))) in
        story.fields.iter().zip(expected.fields.iter().zip(&found.fields)).enumerate()
    {
        let cells: Vec<usize> = (0..expected.len()).filter(|&cell| expected[cell] != found[cell]).collect();
        if let Some(&first) = cells.first() {
            let [nx, ny, _] = spec.cells;
            let at = [first % nx, first / nx % ny, first / nx / ny];
            let (expected, found) = (spec.ty.show(expected[first]), spec.ty.show(found[first]));
            let of = format!("{} of {} cells", cells.len(), spec.cells.iter().product::<usize>());
            return Some(format!("field {number} at {at:?} is {found} instead of {expected} ({of} differ)"));
        }
    }
    if expected.scalars != found.scalars {
        return Some(format!("scalars are {:x?} instead of {:x?}", found.scalars, expected.scalars));
    }
    let records = expected.records != found.records;
    records.then(|| format!("records are {:x?} instead of {:x?}", found.records, expected.records))
}

/// The story without what its failure doesn't need.
fn shrunk(story: &Story, devices: [&Device; 2]) -> Story {
    let mut smaller = story.clone();
    let fails = |story: &Story| catch(|| expected(story)).is_ok() && failure(story, devices).is_some();
    loop {
        let mut changed = false;
        for act in 0..smaller.acts.len() {
            for simpler in simpler(&smaller.acts[act]) {
                let mut trial = smaller.clone();
                trial.acts[act] = simpler;
                if fails(&trial) {
                    (smaller, changed) = (trial, true);
                    break;
                }
            }
        }
        if !changed {
            return smaller;
        }
    }
}

/// Acts that do less, in the order in which they are tried.
fn simpler(act: &Act) -> Vec<Act> {
    match act {
        Act::Nothing => Vec::new(),
        Act::Run { step, count } if *count > 1 => vec![Act::Nothing, Act::Run { step: *step, count: 1 }],
        Act::Make(stages) => {
            let rest = |number: usize| {
                let mut stages = stages.clone();
                let stand = Stage::Stand(Model::made_by(&stages[number]));
                let makes_a_record = matches!(stages[number], Stage::Probe { .. } | Stage::Record(_));
                if makes_a_record || matches!(stages[number], Stage::Stand(_)) {
                    return None;
                }
                stages[number] = stand;
                Some(Act::Make(stages))
            };
            (0..stages.len()).filter_map(rest).collect()
        }
        Act::Run { .. } | Act::Refuse(..) | Act::Boundary { .. } | Act::Set { .. } => vec![Act::Nothing],
        Act::SetScalar { .. } | Act::Checkpoint | Act::Restore { .. } => vec![Act::Nothing],
    }
}
