//! Claims about the host device with caches of any size, which make it sweep in any way, and with emitted kernels.

use super::sweep::Sweep;
use super::*;
use crate::backend::reference::Reference;
use crate::backend::{Cells, Launch, Place, QueueId};
use crate::geometry::{Box3, Extent};
use crate::kernel::{KernelDesc, ScalarType};
use crate::layout::{Layout, Region, Strides, WHOLE};
use crate::testing::{
    AVERAGE, FOLDED, HEAT, RELAX, SIZES, SPY, TALLY, check_parity, check_shift, noise, plain_range, run_folded,
};

/// The native code that the emitter writes for these kernels, from the golden files.
#[expect(unreachable_pub, reason = "the text is made for programs")]
mod emitted {
    pub(super) mod heat {
        use crate::backend::host::BoxArgs;
        #[allow(unused_imports, reason = "which of them it needs is up to the emitter")]
        use crate::backend::host::support::{Accumulator, Largest, Least, Total, prefetch, store, store_alternate};
        use crate::kernel::HostCode;
        include!("../../../../tests/golden/heat/host.rs");
    }
}

/// The heat step with the code that a program has.
static EMITTED_HEAT: KernelDesc = KernelDesc { host: emitted::heat::CODE, ..HEAT };

/// Caches from so small that no launch fits to so large that all do: some for each kind of sweep.
const CACHES: [Caches; 5] = [
    Caches { own_bytes: 1, last_bytes: 1 },
    Caches { own_bytes: 20_000, last_bytes: 1 },
    Caches { own_bytes: 60_000, last_bytes: 200_000 },
    // These hold the launch of the test below, but not twice.
    Caches { own_bytes: 60_000, last_bytes: 600_000 },
    Caches { own_bytes: usize::MAX, last_bytes: usize::MAX },
];

#[test]
fn the_caches_of_these_tests_lead_to_every_kind_of_sweep() {
    let range = Box3 { lo: [1; 3], hi: [63, 32, 8] };
    let sweeps = CACHES.map(|caches| Sweep::new(&EMITTED_HEAT, &range, 72, false, &caches));
    assert_eq!(sweeps.map(|sweep| sweep.stream), [true, true, true, false, false]);
    assert_eq!(sweeps.map(|sweep| sweep.ahead != 0), [true, true, true, true, false]);
    assert_eq!(sweeps.map(|sweep| sweep.tile_rows), [4, 4, 7, 7, 31]);
}

fn host(threads: usize, set: InstructionSet, caches: Caches) -> Box<dyn Device> {
    let info = listed(&Host, 0).unwrap();
    let pool = Pool::new(Placement::of_one(&allowed_cpus(), threads)).unwrap();
    let processor = Processor { name: "host".into(), set, pool, caches };
    devices_of(vec![(info, processor)], &OpenOptions::default()).unwrap().swap_remove(0)
}

/// The results of a launch on noise over the widest range, as bytes.
fn results(device: &dyn Device, kernel: &'static KernelDesc, cells: [usize; 3]) -> Option<Vec<Vec<u8>>> {
    let extent = Extent::new(cells).unwrap();
    let range = plain_range(kernel, cells).ok()?;
    let strides = Strides::for_cells(cells, 4).unwrap();
    let mut seed = 0;
    let mut made = |ty: ScalarType| {
        let layout = Layout::new(ty, WHOLE, extent.whole(), strides).unwrap();
        let buffer = device.alloc(&layout).unwrap();
        seed += 1;
        let mut random = noise(seed);
        let values = (0..extent.points()).map(|_| random());
        let data: Vec<u8> = match ty {
            ScalarType::F64 => values.flat_map(f64::to_ne_bytes).collect(),
            _ => values.flat_map(|value| (value as f32).to_ne_bytes()).collect(),
        };
        let region = layout.region(&layout.cells).unwrap();
        device.write(QueueId::COMPUTE, Place { buffer, region: &region }, &data).unwrap();
        (Cells { buffer, origin: layout.origin }, region)
    };
    let outputs: Vec<_> = kernel.outputs.iter().map(|output| made(output.ty)).collect();
    let fields: Vec<_> = kernel.fields.iter().map(|field| made(field.ty)).collect();
    let cells = |made: &[(Cells, Region)]| made.iter().map(|(cells, _)| *cells).collect::<Vec<_>>();
    let launch = Launch {
        kernel: device.load(kernel).unwrap(),
        outputs: &cells(&outputs),
        fields: &cells(&fields),
        scalars: &vec![0.03_f64.to_bits(); kernel.params.len()],
        strides,
        global: [0; 3],
        shift: [0; 3],
        range,
        parity: None,
    };
    device.launch(QueueId::COMPUTE, &launch).unwrap();
    device.finish(QueueId::COMPUTE).unwrap();
    let read = |(cells, region): &(Cells, Region)| {
        let mut data = vec![0; region.bytes()];
        device.read(QueueId::COMPUTE, Place { buffer: cells.buffer, region }, &mut data).unwrap();
        data
    };
    let results = outputs.iter().map(read).collect();
    outputs.iter().chain(&fields).for_each(|(cells, _)| device.free(cells.buffer));
    Some(results)
}

#[test]
fn no_sweep_changes_a_bit() {
    let reference = Reference.open_one(0, &OpenOptions::default()).unwrap();
    let lengths = (1..=70).chain([97, 130, 257]).map(|nx| [nx, 3, 4]);
    let shapes = [[3, 1, 5], [3, 5, 1], [3, 64, 3], [5, 23, 17], [64, 33, 9], [67, 37, 5], [1, 9, 9]];
    let shapes: Vec<_> = lengths.chain(shapes).collect();
    for set in InstructionSet::ALL.into_iter().filter(|set| set.is_available()) {
        for (caches, threads) in CACHES.into_iter().zip([1, 2, 3, 1, 2]) {
            let device = host(threads, set, caches);
            for kernel in [&EMITTED_HEAT, &AVERAGE] {
                for &shape in &shapes {
                    let expected = results(&*reference, kernel, shape);
                    let found = results(&*device, kernel, shape);
                    assert!(found == expected, "{kernel:?} {shape:?} {set} {caches:?} {threads} threads");
                }
            }
        }
    }
}

#[test]
fn no_sweep_changes_a_fold_or_touches_a_point_that_is_left_out() {
    let reference = Reference.open_one(0, &OpenOptions::default()).unwrap();
    for (caches, threads) in CACHES.into_iter().zip([1, 2, 3, 5, 2]) {
        let device = host(threads, InstructionSet::best(), caches);
        for n in SIZES {
            for kernel in [&FOLDED, &TALLY, &RELAX] {
                for parity in [None, Some(0), Some(1)] {
                    let expected = run_folded(&*reference, kernel, n, parity);
                    let found = run_folded(&*device, kernel, n, parity);
                    assert!(found == expected, "{kernel:?} {n:?} {parity:?} {caches:?} {threads} threads");
                }
            }
            check_parity(&*device, n);
            check_shift(&*device, n);
        }
    }
}

#[test]
fn lines_that_are_written_in_part_or_were_read_do_not_go_past_the_caches() {
    let device = host(2, InstructionSet::Baseline, CACHES[0]);
    let cells = Box3 { lo: [0; 3], hi: [9, 4, 3] };
    let layout = Layout::new(ScalarType::F64, WHOLE, cells, Strides::for_cells(cells.size(), 8).unwrap()).unwrap();
    let [a, b] = [(); 2].map(|()| Cells { buffer: device.alloc(&layout).unwrap(), origin: layout.origin });
    let kernel = device.load(&SPY).unwrap();
    let streams = |from: Cells, parity: Option<u8>| {
        let (outputs, fields, global, shift) = (&[b], &[from], [0; 3], [0; 3]);
        let strides = layout.strides;
        let launch = Launch { kernel, outputs, fields, shift, scalars: &[], strides, global, range: cells, parity };
        device.launch(QueueId::COMPUTE, &launch).unwrap();
        let region = layout.region(&cells).unwrap();
        let mut data = vec![0; region.bytes()];
        device.read(QueueId::COMPUTE, Place { buffer: b.buffer, region: &region }, &mut data).unwrap();
        let point = if parity == Some(1) { 8 } else { 0 };
        f64::from_ne_bytes(data[point..point + 8].try_into().unwrap()) == 1.0
    };
    assert!(streams(a, None));
    assert_eq!([streams(b, None), streams(a, Some(0)), streams(a, Some(1)), streams(b, Some(0))], [false; 4]);
}

#[test]
fn copies_past_the_caches_are_copies() {
    for caches in CACHES {
        let device = host(2, InstructionSet::Baseline, caches);
        for cells in [[1, 1, 1], [7, 3, 2], [1000, 40, 3], [300_001, 1, 1]] {
            let extent = Extent::new(cells).unwrap();
            let layout =
                Layout::new(ScalarType::F32, WHOLE, extent.whole(), Strides::for_cells(cells, 4).unwrap()).unwrap();
            let (a, b) = (device.alloc(&layout).unwrap(), device.alloc(&layout).unwrap());
            let mut random = noise(3);
            let region = layout.region(&layout.cells).unwrap();
            let data: Vec<u8> = (0..region.bytes()).map(|_| (random() * 256.0) as u8).collect();
            let place = |buffer| Place { buffer, region: &region };
            device.write(QueueId::COMPUTE, place(a), &data).unwrap();
            device.copy(QueueId::COMPUTE, place(a), place(b)).unwrap();
            let mut found = vec![0; data.len()];
            device.read(QueueId::COMPUTE, place(b), &mut found).unwrap();
            assert!(found == data, "{cells:?} {caches:?}");
        }
    }
}
