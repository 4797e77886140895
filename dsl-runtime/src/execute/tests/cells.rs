//! What plans over several devices leave in the cells, against a plain loop.

use std::sync::Arc;

use super::{Data, op};
use crate::backend::reference::Reference;
use crate::backend::{Backend, Device, OpenOptions, Place, QueueId};
use crate::error::Result;
use crate::execute::{Issue, Memory, Program, allocate};
use crate::geometry::Box3;
use crate::kernel::{Role as Folding, ScalarType};
use crate::layout::{Layout, ROWS, Region, Strides, WHOLE};
use crate::plan::{Action, FieldId, Op, Operand, Plan, Purpose, Rows, ScalarId, Slot, StagingDesc, StagingId};
use crate::scalar::Function;
use crate::testing::{Calls, Faulty, HEAT, TALLY, noise};

/// Cells along X and Y, and owned planes of each device.
const N: [i64; 2] = [4, 5];
const PLANES: i64 = 3;

const U: FieldId = FieldId(0);
const V: FieldId = FieldId(1);
const KAPPA: FieldId = FieldId(2);

/// How a step of heat is done on some devices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) devices: usize,
    pub(super) lanes: u32,
    /// Through the host, else straight to the other device.
    pub(super) staged: bool,
    /// Threads meet after each part of a step; else operations wait for operations.
    pub(super) barriers: bool,
    /// After how many runs each buffer is back in its slot.
    pub(super) period: usize,
    pub(super) issue: Issue,
}

impl Way {
    /// All ways over 1 to 3 devices.
    fn all() -> Vec<Self> {
        let mut ways = Vec::new();
        for (devices, lanes) in [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3)] {
            for (staged, barriers) in [(false, false), (false, true), (true, false), (true, true)] {
                for period in 1..=3 {
                    for issue in [Issue::Lanes, Issue::InOrder] {
                        ways.push(Self { devices, lanes, staged, barriers, period, issue });
                    }
                }
            }
        }
        ways
    }

    fn lane(self, device: usize) -> u32 {
        device as u32 % self.lanes
    }

    fn barrier(self, ops: &mut Vec<Op>) {
        if self.barriers {
            ops.extend((0..self.lanes).map(|lane| op(Action::Barrier, 0, 0).by(lane)));
        }
    }

    /// The values at the next step go to the second buffer of `u`, and halos follow. Before that the host computes a factor
    /// and writes it down, and afterwards a cell of each device.
    pub(super) fn plan(self) -> Plan {
        let devices = self.devices;
        let new = U.spare();
        let mut ops = vec![
            op(Action::Compute { function: 0, inputs: vec![ScalarId(0)], output: ScalarId(0), ahead: 0 }, 0, 0),
            op(Action::Record { from: ScalarId(0), record: 0 }, 0, 0).after([0]),
        ];
        let launch = |device: usize| device + 2;
        let probe = devices + 2;
        ops[0] = ops[0].clone().across(1, (0..devices).map(launch));
        for device in 0..devices {
            let last = if device + 1 == devices { PLANES - 1 } else { PLANES };
            let range = Box3 { lo: [1, 1, i64::from(device == 0)], hi: [N[0] - 1, N[1] - 1, last] };
            let action = Action::Launch {
                kernel: 0,
                outputs: vec![new],
                fields: vec![U.current(), V.current(), KAPPA.current()],
                scalars: vec![Operand::Scalar(ScalarId(0))],
                range,
                parity: None,
                shift: [0; 3],
                purpose: Purpose::Update,
            };
            ops.push(op(action, device, 0).by(self.lane(device)).after([0]).across(1, [probe]));
        }
        let cells = (0..devices).map(|device| (device, [2, 2, 1])).collect();
        let probe_op = op(Action::Probe { from: new, cells, record: 1 }, 0, 0).after((0..devices).map(launch));
        ops.push(probe_op);
        self.barrier(&mut ops);
        let plane = |z| Box3 { lo: [0, 0, z], hi: [N[0], N[1], z + 1] };
        let up = (1..devices).map(|to| (to - 1, PLANES - 1, to, -1));
        let down = (1..devices).map(|from| (from, 0, from - 1, PLANES));
        let mut stagings = Vec::new();
        // The operations of the exchange that read or write the cells of each device.
        let mut touching = vec![Vec::new(); devices];
        for (from, z, to, ghost) in up.chain(down) {
            let (part, into) = (plane(z), plane(ghost));
            touching[from].push(ops.len());
            let is_free = |op: Op| {
                let op = op.across(1, [launch(to)]);
                if self.period == 1 { op.across(1, [COPY_BACK + to]) } else { op }
            };
            if self.staged {
                let (staging, number) = (StagingId(stagings.len()), ops.len());
                stagings.push(StagingDesc { device: from, bytes: (8 * N[0] * N[1]) as usize });
                let download = op(Action::Download { from: new, part, to: staging }, from, 1);
                ops.push(download.by(self.lane(from)).after([launch(from)]).across(1, [number + 1]));
                touching[to].push(ops.len());
                let upload = op(Action::Upload { from: staging, to: new, part: into }, to, 1);
                ops.push(is_free(upload.by(self.lane(to)).after([number])));
                // Without dependencies a transfer through the host needs a meeting between its halves.
                if self.barriers {
                    let upload = ops.pop().unwrap();
                    touching[to].pop();
                    self.barrier(&mut ops);
                    touching[to].push(ops.len());
                    ops.push(upload);
                }
            } else {
                touching[to].push(ops.len());
                let send = op(Action::Send { slot: new, part, to, into }, from, 1);
                ops.push(is_free(send.by(self.lane(from)).after([launch(from)])));
            }
        }
        for (device, touching) in touching.iter().enumerate() {
            ops[launch(device)] = ops[launch(device)].clone().across(1, touching.iter().copied());
        }
        self.barrier(&mut ops);
        let first_copy = ops.len();
        if self.period == 1 {
            for (device, touching) in touching.iter().enumerate() {
                let part = stored();
                let copy = op(Action::Copy { from: new, to: U.current(), part }, device, 0).by(self.lane(device));
                ops.push(copy.after(touching.iter().copied()).after([probe]));
            }
            self.barrier(&mut ops);
        }
        for across in ops.iter_mut().flat_map(|op| &mut op.across) {
            if across.op.0 >= COPY_BACK {
                across.op.0 = across.op.0 - COPY_BACK + first_copy;
            }
        }
        if self.barriers {
            // Meetings take the place of all dependencies between devices.
            for op in &mut ops[probe + 1..] {
                (op.after, op.across) = (Vec::new(), Vec::new());
            }
            ops[2..probe].iter_mut().for_each(|op| op.across.clear());
        }
        let rotation = match self.period {
            1 => Vec::new(),
            2 => vec![(U.current(), new), (new, U.current())],
            _ => vec![(U.current(), new), (new, V.current()), (V.current(), U.current())],
        };
        Plan { kernels: vec![&HEAT], ops, stagings, rotation, ..Plan::default() }
    }
}

/// Added to the numbers of devices as long as it isn't known where the copies are.
const COPY_BACK: usize = 1 << 20;

/// The cells that each device stores.
fn stored() -> Box3 {
    Box3 { lo: [0, 0, -1], hi: [N[0], N[1], PLANES + 1] }
}

fn layout() -> Layout {
    Layout::new(ScalarType::F64, WHOLE, stored(), Strides::for_cells(stored().size(), 8).unwrap()).unwrap()
}

/// The new factor.
pub(super) fn factor() -> Vec<Function> {
    vec![Arc::new(|number, inputs| (f64::from_bits(inputs[0]) * 0.75 + 0.001 * number as f64).to_bits())]
}

/// Values of a field of all devices, by X, Y and Z.
fn index(x: i64, y: i64, z: i64) -> usize {
    (x + N[0] * (y + N[1] * z)) as usize
}

pub(super) fn start(devices: usize) -> [Vec<f64>; 3] {
    [1, 2, 3].map(|seed| {
        let mut random = noise(seed);
        (0..N[0] * N[1] * PLANES * devices as i64).map(|_| random()).collect()
    })
}

/// Fields with their halos, on devices.
pub(super) fn load(devices: &[Box<dyn Device>]) -> Result<Data> {
    let mut fields = Vec::new();
    for values in start(devices.len()) {
        let layouts = vec![layout(); devices.len()];
        let [current, spare] = [allocate(devices, &layouts, "a field")?, allocate(devices, &layouts, "a field")?];
        for (number, device) in devices.iter().enumerate() {
            let first = PLANES * number as i64;
            let last = PLANES * devices.len() as i64;
            let mut part = stored();
            (part.lo[2], part.hi[2]) = ((first - 1).max(0) - first, (first + PLANES + 1).min(last) - first);
            let bounds = [first + part.lo[2], first + part.hi[2]].map(|z| index(0, 0, z));
            let bytes: Vec<u8> = values[bounds[0]..bounds[1]].iter().flat_map(|value| value.to_ne_bytes()).collect();
            let region = layout().region(&part).unwrap();
            for buffer in [current[number], spare[number]] {
                device.write(QueueId::COMPUTE, Place { buffer, region: &region }, &bytes)?;
            }
        }
        fields.push(Memory { layouts, current, spare });
    }
    Ok(Data { fields, scalars: vec![0.01_f64.to_bits()], records: vec![Vec::new(); 2] })
}

/// The values of `u` in the cells that devices own.
pub(super) fn found(devices: &[Box<dyn Device>], data: &Data) -> Vec<f64> {
    let owned = Box3 { lo: [0; 3], hi: [N[0], N[1], PLANES] };
    let region = layout().region(&owned).unwrap();
    let mut values = Vec::new();
    for (device, &buffer) in devices.iter().zip(&data.fields[0].current) {
        let mut bytes = vec![0; region.bytes()];
        device.read(QueueId::COMPUTE, Place { buffer, region: &region }, &mut bytes).unwrap();
        values.extend(bytes.chunks_exact(8).map(|bytes| f64::from_ne_bytes(bytes.try_into().unwrap())));
    }
    values
}

/// Some steps in a plain loop: `u`, the factors, and the cells that are written down.
pub(super) fn model(way: Way, runs: u64) -> (Vec<f64>, Vec<u64>, Vec<u64>) {
    let [mut u, mut v, kappa] = start(way.devices);
    let mut spare = u.clone();
    let mut beta = 0.01_f64.to_bits();
    let (mut factors, mut probed) = (Vec::new(), Vec::new());
    for step in 0..runs {
        beta = factor()[0](step, &[beta]);
        factors.push(beta);
        for z in 1..PLANES * way.devices as i64 - 1 {
            for y in 1..N[1] - 1 {
                for x in 1..N[0] - 1 {
                    let here = index(x, y, z);
                    let flux = |dx, dy, dz| {
                        let there = index(x + dx, y + dy, z + dz);
                        (kappa[there] + kappa[here]) * (u[there] - u[here])
                    };
                    let sum = flux(1, 0, 0)
                        + flux(-1, 0, 0)
                        + flux(0, 1, 0)
                        + flux(0, -1, 0)
                        + flux(0, 0, 1)
                        + flux(0, 0, -1);
                    spare[here] = u[here] + v[here] + f64::from_bits(beta) * sum;
                }
            }
        }
        probed.extend((0..way.devices as i64).map(|device| spare[index(2, 2, PLANES * device + 1)].to_bits()));
        match way.period {
            1 => u.clone_from(&spare),
            2 => std::mem::swap(&mut u, &mut spare),
            _ => (u, spare, v) = (spare, v, u),
        }
    }
    (u, factors, probed)
}

pub(super) fn reference(count: usize) -> Vec<Box<dyn Device>> {
    Reference.open(&vec![0; count], &OpenOptions::default()).unwrap()
}

pub(super) fn origins(devices: usize) -> Vec<[i32; 3]> {
    (0..devices).map(|device| [0, 0, PLANES as i32 * device as i32]).collect()
}

#[test]
fn every_way_over_devices_gives_the_bits_of_a_plain_loop() {
    let runs = 7;
    for way in Way::all() {
        for calls in [Calls::sound(), Calls::slow()] {
            let devices = Faulty::wrap(reference(way.devices), &calls);
            let mut data = load(&devices).unwrap();
            let program = Program::new(way.plan(), factor(), &devices, origins(way.devices), way.issue).unwrap();
            data.run(&devices, &program, runs).unwrap();
            let (u, factors, probed) = model(way, runs);
            assert!(found(&devices, &data) == u, "{way:?}");
            assert_eq!(data.scalars, factors[runs as usize - 1..], "{way:?}");
            assert_eq!(data.records, [factors, probed], "{way:?}");
        }
    }
}

#[test]
fn batches_follow_one_another() {
    for way in Way::all() {
        let devices = Faulty::wrap(reference(way.devices), &Calls::sound());
        let mut data = load(&devices).unwrap();
        let program = Program::new(way.plan(), factor(), &devices, origins(way.devices), way.issue).unwrap();
        let mut done = 0;
        for runs in [2, 0, 1, 80] {
            let mut world = data.world(&devices);
            (world.number, world.steps) = (done, done);
            program.run(&mut world, runs).unwrap();
            done += runs;
        }
        let (u, factors, probed) = model(way, done);
        assert!(found(&devices, &data) == u, "{way:?}");
        assert_eq!(data.records, [factors, probed], "{way:?}");
    }
}

#[test]
fn rows_of_several_devices_are_folded_by_the_host() {
    let cells = Box3 { lo: [0; 3], hi: [5, 4, 3] };
    let strides = Strides::for_cells(cells.size(), 1).unwrap();
    let types = [(ScalarType::I8, WHOLE), (ScalarType::U32, WHOLE)];
    let rows = [0, 1].map(|number| (TALLY.outputs[number].stored(), ROWS));
    let layouts = types.into_iter().chain(rows).map(|(ty, axes)| Layout::new(ty, axes, cells, strides).unwrap());
    let layouts: Vec<_> = layouts.collect();
    let [a, b, sums, least] = [0, 1, 2, 3].map(|field| FieldId(field).current());
    let launch = |device| {
        let action = Action::Launch {
            kernel: 0,
            outputs: vec![sums, least],
            fields: vec![a, b],
            scalars: Vec::new(),
            range: cells,
            parity: None,
            shift: [0; 3],
            purpose: Purpose::Update,
        };
        op(action, device, 0).by(device as u32).across(1, [2, 3])
    };
    let fold = |role, ty, slot: Slot, into| {
        let rows = [0, 1].map(|device| Rows { device, slot, cells, number: 0 }).to_vec();
        op(Action::Fold { role, ty, rows, into: ScalarId(into) }, 0, 0).by(2).after([0, 1])
    };
    let record = |from, fold| op(Action::Record { from: ScalarId(from), record: 0 }, 0, 0).by(1).after([fold]);
    let ops = vec![
        launch(0),
        launch(1),
        fold(Folding::Sum, ScalarType::I8, sums, 0).across(1, [4]),
        fold(Folding::Min, ScalarType::U32, least, 1).across(1, [5]),
        record(0, 2),
        record(1, 3),
    ];
    let plan = Plan { kernels: vec![&TALLY], ops, ..Plan::default() };
    for issue in [Issue::Lanes, Issue::InOrder] {
        let devices = Faulty::wrap(reference(2), &Calls::slow());
        let memory = |layout: &Layout| {
            let layouts = vec![*layout; 2];
            Memory { current: allocate(&devices, &layouts, "a field").unwrap(), layouts, spare: Vec::new() }
        };
        let fields: Vec<_> = layouts.iter().map(memory).collect();
        // The only values other than 0 and the largest: 3 and 5 on the first device, -1 and 4 on the second.
        for (device, [small, large]) in [[3_i8, 5], [-1, 4]].into_iter().enumerate() {
            let write = |field: usize, cell: [i64; 3], bytes: &[u8]| {
                let region = Region::run(layouts[field].index(cell).unwrap() * bytes.len(), bytes.len());
                let place = Place { buffer: fields[field].current[device], region: &region };
                devices[device].write(QueueId::COMPUTE, place, bytes).unwrap();
            };
            let all = Region::run(0, layouts[1].bytes);
            let place = Place { buffer: fields[1].current[device], region: &all };
            devices[device].write(QueueId::COMPUTE, place, &vec![0xff; layouts[1].bytes]).unwrap();
            write(0, [1, 2, 1], &small.to_ne_bytes());
            write(0, [4, 0, 2], &large.to_ne_bytes());
            write(1, [2, 1, 0], &u32::from(large.unsigned_abs()).to_ne_bytes());
        }
        let origins = vec![[0; 3], [0, 0, 3]];
        let program = Program::new(plan.clone(), Vec::new(), &devices, origins, issue).unwrap();
        let mut data = Data { fields, scalars: vec![0; 2], records: vec![Vec::new()] };
        data.run(&devices, &program, 3).unwrap();
        assert_eq!(data.records, [[11, 4, 11, 4, 11, 4]], "{issue:?}");
    }
}

#[test]
fn a_lane_counts_as_the_thread_that_runs_the_step() {
    use std::sync::Mutex;
    let seen: Arc<Mutex<Vec<(u64, std::thread::ThreadId)>>> = Arc::default();
    let note = {
        let seen = Arc::clone(&seen);
        move |_: u64, _: &[u64]| {
            seen.lock().unwrap().push((crate::execute::this_thread(), std::thread::current().id()));
            0
        }
    };
    let compute = |lane| {
        let action = Action::Compute { function: 0, inputs: Vec::new(), output: ScalarId(lane), ahead: 0 };
        op(action, 0, 0).by(lane)
    };
    let plan = Plan { ops: (0..3).map(compute).collect(), ..Plan::default() };
    let devices = reference(1);
    let functions: Vec<Function> = vec![Arc::new(note)];
    let program = Program::new(plan, functions, &devices, origins(1), Issue::Lanes).unwrap();
    let mut data = Data { scalars: vec![0; 3], ..Data::default() };
    data.run(&devices, &program, 1).unwrap();
    let seen = seen.lock().unwrap();
    assert!(seen.iter().all(|(number, _)| *number == crate::execute::this_thread()));
    let threads: std::collections::BTreeSet<_> = seen.iter().map(|(_, id)| format!("{id:?}")).collect();
    assert_eq!(threads.len(), 3);
}
