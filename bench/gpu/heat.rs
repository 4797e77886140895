//! The heat equation: sizes, strategies, and steps that are recorded or not.

use std::hash::{DefaultHasher, Hash, Hasher};

use polyhalo::backend::{Device, GpuOptions, Shape, Tune};
use polyhalo::bandwidth::copy_bandwidth;
use polyhalo::devices;
use polyhalo::prelude::*;
use polyhalo_bench::kernels::heat::heat;
use polyhalo_bench::spread::Spread;
use polyhalo_bench::table::markdown;
use serde_json::{Value, json};

use crate::{Options, Outcome, Section};

/// Bytes that a point must move: three fields are read and one is written.
const BYTES: f64 = 32.0;

/// The share of the copy bandwidth that is wanted.
const SHARE: f64 = 0.85;

/// About how long a repetition runs.
const SECONDS: f64 = 0.3;

/// A simulation that can be run again and again.
struct Subject {
    sim: Simulation,
    step: Step,
    u: Field<f64>,
    points: f64,
}

/// How a subject differs from the default.
#[derive(Clone, Default)]
struct How {
    exchange: Exchange,
    gpu: GpuOptions,
    no_graphs: bool,
}

impl Subject {
    fn new(devices: &str, n: usize, how: &How) -> Outcome<Self> {
        let builder = Simulation::on([n; 3]).devices(devices).exchange(how.exchange).measure_bandwidth(false);
        let sim = builder.gpu(how.gpu).graphs(!how.no_graphs).build()?;
        let h = 1.0 / (n.max(2) - 1) as f64;
        // Linear, so that filling large fields takes no time worth mentioning.
        let u = sim.field_from("u", move |p: Point| f64::from(p.i) * h + f64::from(p.k) * h)?;
        let f = sim.field_from("f", move |p: Point| 1e-3 * f64::from(p.j) * h)?;
        let kappa = sim.field_from("kappa", move |p: Point| 0.5 + 0.1 * f64::from(p.k) * h)?;
        let step = sim.step(|s| s.update(&u, heat(&u, &f, &kappa, 0.04)))?;
        Ok(Self { sim, step, u, points: ((n - 2) as f64).powi(3) })
    }

    /// Billions of points per second of each repetition.
    fn speeds(&self, reps: usize) -> Outcome<Vec<f64>> {
        self.sim.run(&self.step, 2)?;
        let probe = self.sim.run(&self.step, 8)?;
        let steps = ((SECONDS / (probe.seconds / 8.0)) as u64).clamp(8, 20_000) / 8 * 8;
        // One that counts for nothing: the first may record or measure.
        self.sim.run(&self.step, steps)?;
        let repeat = |_| Ok(self.points * steps as f64 / self.sim.run(&self.step, steps)?.seconds / 1e9);
        (0..reps.max(1)).map(repeat).collect()
    }

    /// The values of `u` after some steps from the start, as one number that tells any two of them apart with all likelihood.
    fn fingerprint(&self) -> Outcome<u64> {
        self.sim.run(&self.step, 4)?;
        let mut hash = DefaultHasher::new();
        self.u.read()?.iter().for_each(|value| value.to_bits().hash(&mut hash));
        Ok(hash.finish())
    }

    /// What is chosen for the kernel.
    fn shape(&self) -> String {
        self.sim.shapes().into_iter().map(|(_, shape)| shape).next().unwrap_or_default()
    }
}

/// The copy bandwidth of a device, read and written bytes counted.
fn copied(options: &Options) -> Outcome<f64> {
    let opened = devices::find(&options.devices, &[])?.open(&Default::default())?;
    let all: Vec<&dyn Device> = opened.iter().map(|device| &**device).collect();
    Ok(copy_bandwidth(&all)?.ok_or("there is no room to measure the copy bandwidth")?)
}

fn text(values: &[f64], digits: usize) -> String {
    Spread::of(values.iter().copied()).text(digits)
}

/// Every size on one device, as chosen by measuring and in fixed shapes.
pub(crate) fn sizes(options: &Options) -> Outcome<Section> {
    let copy = copied(options)?;
    let fixed = |walk: &str| -> Outcome<GpuOptions> {
        Ok(GpuOptions { shape: Some(walk.parse::<Shape>()?), ..GpuOptions::default() })
    };
    let tuned = GpuOptions { tune: Tune::Again, ..GpuOptions::default() };
    let ways = [
        ("measured", tuned),
        ("default", GpuOptions { tune: Tune::Never, ..GpuOptions::default() }),
        ("a point per thread", fixed("point:32x8x1")?),
        ("columns", fixed("march:32x8:32")?),
        ("columns, 64-bit indices", GpuOptions { wide: true, ..fixed("march:32x8:32")? }),
    ];
    let (mut rows, mut all, mut passed) = (Vec::new(), Vec::new(), true);
    for &n in &options.n {
        let mut first = None;
        for (name, gpu) in &ways {
            let subject = Subject::new(&options.devices, n, &How { gpu: *gpu, ..How::default() })?;
            let bits = subject.fingerprint()?;
            let same = *first.get_or_insert(bits) == bits;
            passed &= same;
            let speeds = subject.speeds(options.reps)?;
            let shares: Vec<f64> = speeds.iter().map(|speed| speed * BYTES * 1e9 / copy).collect();
            let shape = subject.shape();
            let bits = if same { "same" } else { "OTHER" }.to_owned();
            rows.push(vec![n.to_string(), (*name).into(), shape.clone(), bits, text(&speeds, 2), text(&shares, 2)]);
            all.push(json!({
                "n": n, "way": name, "shape": shape, "same_bits": same, "gpts_per_second": speeds, "shares": shares,
            }));
        }
    }
    let head = ["n", "how", "shape", "bits", "GPts/s", "share of the copy bandwidth"];
    let copy_text = format!(
        "A copy on the device reaches {:.0} GB/s (read and written bytes counted); wanted is {SHARE} of it.",
        copy / 1e9
    );
    let markdown = format!("## Heat, 32 bytes a point\n\n{copy_text}\n\n{}", markdown(&head, &rows));
    let json = json!({ "copy_bytes_per_second": copy, "bytes_per_point": BYTES, "wanted_share": SHARE, "sizes": all });
    Ok(Section { name: "heat", json, markdown, passed })
}

/// Every strategy with every number of subdomains on one card.
pub(crate) fn strategies(options: &Options) -> Outcome<Section> {
    let n = options.n.first().copied().unwrap_or(512);
    let (mut rows, mut all): (_, Vec<Value>) = (Vec::new(), Vec::new());
    for (count, devices, exchange) in options.ways() {
        let subject = Subject::new(&devices, n, &How { exchange, ..How::default() })?;
        let speeds = subject.speeds(options.reps.min(3))?;
        rows.push(vec![count.to_string(), exchange.to_string(), text(&speeds, 2)]);
        all.push(json!({ "subdomains": count, "exchange": exchange.to_string(), "n": n, "gpts_per_second": speeds }));
    }
    let table = markdown(&["subdomains", "exchange", "GPts/s"], &rows);
    let markdown = format!("## Strategies, heat n = {n} on one card\n\n{table}");
    Ok(Section { name: "strategies", json: Value::Array(all), markdown, passed: true })
}

/// Steps that are enqueued as a whole beside steps of which every operation is enqueued.
pub(crate) fn graphs(options: &Options) -> Outcome<Section> {
    let n = options.graphs;
    let recorded = Subject::new(&options.devices, n, &How::default())?;
    let plain = Subject::new(&options.devices, n, &How { no_graphs: true, ..How::default() })?;
    let (recorded, plain) = (recorded.speeds(options.reps)?, plain.speeds(options.reps)?);
    let rows = [("recorded", &recorded), ("one by one", &plain)];
    let rows: Vec<_> = rows.iter().map(|(name, speeds)| vec![(*name).to_owned(), text(speeds, 2)]).collect();
    let table = markdown(&["steps", "GPts/s"], &rows);
    let wanted = "Recorded steps are to be within 2 % of the best speed that the size allows.";
    let markdown = format!("## Recorded steps, heat n = {n}\n\n{wanted}\n\n{table}");
    let json = json!({ "n": n, "recorded_gpts_per_second": recorded, "plain_gpts_per_second": plain });
    Ok(Section { name: "graphs", json, markdown, passed: true })
}
