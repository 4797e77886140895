//! Stories on devices against the model, and the smallest part of a story that still fails.

use std::panic::{AssertUnwindSafe, catch_unwind};

use polyhalo::{Builder, Simulation};
use polyhalo_codegen::offline::require;

use super::live::{Snapshot, play};
use super::model::Model;
use super::random::story;
use super::story::{Act, Stage, Story};

/// A kind of device and how it is asked for.
#[derive(Clone, Debug)]
pub struct Device {
    /// What it is called.
    pub name: String,
    spec: String,
    threads: Option<usize>,
}

impl Device {
    fn builder(&self, cells: [usize; 3]) -> Builder {
        let builder = Simulation::on(cells).devices(&self.spec);
        self.threads.map_or(builder.clone(), |threads| builder.threads(threads))
    }

    /// A simulation on it.
    ///
    /// # Panics
    /// When the device can't be opened.
    pub fn on(&self, cells: [usize; 3]) -> Simulation {
        self.builder(cells).measure_bandwidth(false).build().unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }
}

/// The devices that are always there.
pub fn devices() -> Vec<Device> {
    let host =
        |threads| Device { name: format!("{threads} host threads"), spec: "host".into(), threads: Some(threads) };
    let reference = Device { name: "reference".into(), spec: "reference".into(), threads: None };
    vec![reference, host(1), host(2), host(5)]
}

/// An OpenCL platform with a part of its name, if it is there; `tool` is what `POLYHALO_REQUIRE` calls it.
pub fn opencl(tool: &str, part: &str) -> Option<Device> {
    let spec = format!("opencl:{part}");
    let found = polyhalo::devices::find(&spec, &[]).map_err(|error| error.to_string());
    require::available(tool, found)?;
    Some(Device { name: tool.into(), spec, threads: None })
}

/// A device by its specification.
pub fn device(spec: &str) -> Device {
    Device { name: spec.into(), spec: spec.into(), threads: None }
}

/// Runs the story of a seed on devices.
///
/// # Panics
/// When one doesn't give what the model says: with the seed and the smallest part of the story that shows it.
pub fn check(seed: u64, devices: &[Device]) {
    let story = story(seed);
    for device in devices {
        if let Some(wrong) = failure(&story, device) {
            let smaller = shrunk(&story, device);
            let now = failure(&smaller, device).unwrap_or_default();
            panic!("seed {seed} on {}: {wrong}\na part of it: {now}\n{smaller}", device.name);
        }
    }
}

/// What goes wrong with a story on a device.
fn failure(story: &Story, device: &Device) -> Option<String> {
    let expected = catch(|| expected(story)).expect("the model knows every story");
    let found = match catch(|| play(story, &device.builder(story.cells))) {
        Err(panic) => return Some(format!("panic: {panic}")),
        Ok(Err(error)) => return Some(error),
        Ok(Ok(found)) => found,
    };
    (expected.iter().zip(&found)).find_map(|((act, expected), found)| {
        difference(story, expected, found).map(|wrong| format!("after act {act}: {wrong}"))
    })
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
fn shrunk(story: &Story, device: &Device) -> Story {
    let mut smaller = story.clone();
    let fails = |story: &Story| catch(|| expected(story)).is_ok() && failure(story, device).is_some();
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
