//! Claims that hold for the devices that are always there, with kernels written by hand.

use super::host::{Host, InstructionSet};
use super::reference::Reference;
use super::*;
use crate::geometry::Extent;
use crate::testing::{
    AVERAGE, BROKEN, CHECKED, COPY, FOLDED, HEAT, LOPSIDED, PLACES, RELAX, SIZES, TALLY, check_parity, check_shift,
    noise, plain_range, run_folded, run_mixed,
};

const QUEUE: QueueId = QueueId::COMPUTE;

/// The reference device and host devices with few and with many threads, and such that do their work later or elsewhere.
fn devices() -> Vec<Box<dyn Device>> {
    let mut devices = vec![Reference.open_one(0, &OpenOptions::default()).unwrap()];
    for threads in [1, 2, 3, 7] {
        devices.push(Host.open_one(0, &OpenOptions { threads: Some(threads), ..OpenOptions::default() }).unwrap());
    }
    let orders = [(Helpers::Count(1), Order::Eager), (Helpers::Auto, Order::Lazy), (Helpers::Auto, Order::Random(7))];
    for (helpers, order) in orders {
        devices.push(Host.open_one(0, &OpenOptions { helpers, order, ..OpenOptions::default() }).unwrap());
    }
    devices
}

fn layout(ty: ScalarType, cells: [usize; 3]) -> Layout {
    let strides = Strides::for_cells(cells, 4).unwrap();
    Layout::new(ty, WHOLE, Extent::new(cells).unwrap().whole(), strides).unwrap()
}

fn bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut random = noise(seed);
    (0..count).map(|_| (random() * 256.0) as u8).collect()
}

fn whole(layout: &Layout) -> Region {
    layout.region(&layout.cells).unwrap()
}

fn read(device: &dyn Device, buffer: BufferId, layout: &Layout) -> Vec<u8> {
    let region = whole(layout);
    let mut data = vec![1; region.bytes()];
    device.read(QUEUE, Place { buffer, region: &region }, &mut data).unwrap();
    data
}

fn write(device: &dyn Device, buffer: BufferId, layout: &Layout, data: &[u8]) {
    device.write(QUEUE, Place { buffer, region: &whole(layout) }, data).unwrap();
}

const SHAPES: [[usize; 3]; 7] =
    [[1, 1, 1], [5, 1, 1], [1, 13, 2], [17, 3, 5], [150_001, 1, 1], [64, 65, 33], [33, 1, 700]];

#[test]
fn new_memory_is_zero_and_boxes_come_back_as_they_were_written() {
    for device in devices() {
        for shape in SHAPES {
            for ty in ScalarType::ALL {
                let layout = layout(ty, shape);
                let (a, b) = (device.alloc(&layout).unwrap(), device.alloc(&layout).unwrap());
                assert!(read(&*device, a, &layout).iter().all(|&byte| byte == 0));
                let mut data = bytes(whole(&layout).bytes(), 3);
                if ty == ScalarType::Bool {
                    data.iter_mut().for_each(|byte| *byte &= 1);
                }
                write(&*device, a, &layout, &data);
                assert!(read(&*device, a, &layout) == data, "{} {shape:?}", device.summary());
                assert!(read(&*device, b, &layout).iter().all(|&byte| byte == 0));
                device.free(a);
                device.free(b);
            }
        }
    }
}

#[test]
fn copies_move_a_box_and_nothing_else() {
    for device in devices() {
        for shape in SHAPES {
            let layout = layout(ScalarType::F32, shape);
            let (a, b) = (device.alloc(&layout).unwrap(), device.alloc(&layout).unwrap());
            let (from, to) = (bytes(whole(&layout).bytes(), 5), bytes(whole(&layout).bytes(), 6));
            write(&*device, a, &layout, &from);
            write(&*device, b, &layout, &to);
            let size = shape.map(|n| n as i64);
            let part = Box3 { lo: size.map(|n| n / 3), hi: size.map(|n| n - n / 4) };
            let region = layout.region(&part).unwrap();
            device.copy(QUEUE, Place { buffer: a, region: &region }, Place { buffer: b, region: &region }).unwrap();
            let mut expected = to.clone();
            let mut cell = 0;
            for z in 0..size[2] {
                for y in 0..size[1] {
                    for x in 0..size[0] {
                        if part.holds([x, y, z]) {
                            expected[cell..cell + 4].copy_from_slice(&from[cell..cell + 4]);
                        }
                        cell += 4;
                    }
                }
            }
            assert!(read(&*device, b, &layout) == expected, "{} {shape:?}", device.summary());
            assert!(read(&*device, a, &layout) == from);
            device.free(a);
            device.free(b);
        }
    }
}

#[test]
fn copies_within_a_buffer_move_boxes_that_lie_apart() {
    for device in devices() {
        let layout = layout(ScalarType::F64, [40, 30, 64]);
        let buffer = device.alloc(&layout).unwrap();
        let data = bytes(whole(&layout).bytes(), 9);
        write(&*device, buffer, &layout, &data);
        let half = |lo: i64| layout.region(&Box3 { lo: [0, 0, lo], hi: [40, 30, lo + 32] }).unwrap();
        device.copy(QUEUE, Place { buffer, region: &half(0) }, Place { buffer, region: &half(32) }).unwrap();
        let found = read(&*device, buffer, &layout);
        assert!(found[data.len() / 2..] == data[..data.len() / 2] && found[..data.len() / 2] == data[..data.len() / 2]);
    }
}

#[test]
fn boxes_of_one_buffer_may_interlock() {
    for device in devices() {
        let layout = layout(ScalarType::F64, [40, 30, 64]);
        let buffer = device.alloc(&layout).unwrap();
        let data = bytes(whole(&layout).bytes(), 9);
        write(&*device, buffer, &layout, &data);
        let columns = |lo: i64| layout.region(&Box3 { lo: [lo, 0, 0], hi: [lo + 20, 30, 64] }).unwrap();
        device.copy(QUEUE, Place { buffer, region: &columns(20) }, Place { buffer, region: &columns(0) }).unwrap();
        let found = read(&*device, buffer, &layout);
        for (row, before) in found.chunks(40 * 8).zip(data.chunks(40 * 8)) {
            assert!(row[..160] == before[160..] && row[160..] == before[160..], "{}", device.summary());
        }
    }
}

/// The buffers of a launch, filled with noise from 0 to 1.
struct Made {
    outputs: Vec<(BufferId, Layout)>,
    fields: Vec<(BufferId, Layout)>,
}

impl Made {
    fn new(device: &dyn Device, kernel: &KernelDesc, shape: [usize; 3]) -> Self {
        let mut seed = 0;
        let mut make = |ty: ScalarType| {
            let layout = layout(ty, shape);
            let buffer = device.alloc(&layout).unwrap();
            seed += 1;
            let mut random = noise(seed);
            let values = (0..layout.cells.points()).map(|_| random());
            let data: Vec<u8> = match ty {
                ScalarType::F64 => values.flat_map(f64::to_ne_bytes).collect(),
                _ => values.flat_map(|value| (value as f32).to_ne_bytes()).collect(),
            };
            write(device, buffer, &layout, &data);
            (buffer, layout)
        };
        let outputs = kernel.outputs.iter().map(|output| make(output.ty)).collect();
        Self { outputs, fields: kernel.fields.iter().map(|field| make(field.ty)).collect() }
    }

    fn launch(&self, device: &dyn Device, kernel: &'static KernelDesc, range: Box3) -> Result<()> {
        let cells = |buffers: &[(BufferId, Layout)]| {
            buffers.iter().map(|&(buffer, layout)| Cells { buffer, origin: layout.origin }).collect::<Vec<_>>()
        };
        let scalars = vec![0.03_f64.to_bits(); kernel.params.len()];
        let launch = Launch {
            kernel: device.load(kernel).unwrap(),
            outputs: &cells(&self.outputs),
            fields: &cells(&self.fields),
            scalars: &scalars,
            strides: self.fields[0].1.strides,
            global: [0; 3],
            shift: [0; 3],
            range,
            parity: None,
        };
        device.launch(QUEUE, &launch).and_then(|()| device.finish(QUEUE))
    }

    fn results(&self, device: &dyn Device) -> Vec<Vec<u8>> {
        self.outputs.iter().map(|(buffer, layout)| read(device, *buffer, layout)).collect()
    }
}

#[test]
fn every_device_gives_the_reference_bits_in_the_range_and_keeps_the_rest() {
    let devices = devices();
    for kernel in [&HEAT, &AVERAGE, &LOPSIDED] {
        for shape in [[3, 3, 3], [3, 1, 2], [4, 7, 3], [19, 33, 6], [67, 18, 17], [130, 3, 40]] {
            let Ok(range) = plain_range(kernel, shape) else { continue };
            let mut inner = range;
            inner.hi[2] = range.lo[2] + 1;
            for range in [range, inner, Box3::EMPTY] {
                let results: Vec<_> = devices
                    .iter()
                    .map(|device| {
                        let made = Made::new(&**device, kernel, shape);
                        let before = made.results(&**device);
                        made.launch(&**device, kernel, range).unwrap();
                        let after = made.results(&**device);
                        assert_eq!(range.is_empty(), before == after, "{kernel:?} {shape:?} {range}");
                        for (output, (_, layout)) in made.outputs.iter().enumerate() {
                            let cell = layout.ty.bytes();
                            for (number, (a, b)) in
                                before[output].chunks(cell).zip(after[output].chunks(cell)).enumerate()
                            {
                                let place =
                                    [number % shape[0], number / shape[0] % shape[1], number / shape[0] / shape[1]];
                                assert!(a == b || range.holds(place.map(|n| n as i64)), "{kernel:?} {place:?} {range}");
                            }
                        }
                        after
                    })
                    .collect();
                for (device, result) in devices.iter().zip(&results) {
                    assert!(*result == results[0], "{} {kernel:?} {shape:?} {range}", device.summary());
                }
            }
        }
    }
}

/// The message of a refused call.
fn refusal(result: Result<()>) -> String {
    match result.unwrap_err() {
        Error::Driver { message, .. } => message,
        other => panic!("{other}"),
    }
}

#[test]
fn launches_that_would_leave_a_buffer_or_alias_are_refused() {
    for device in devices() {
        let shape = [6, 5, 4];
        let range = plain_range(&HEAT, shape).unwrap();
        let device = &*device;
        let made = || Made::new(device, &HEAT, shape);
        assert!(made().launch(device, &HEAT, range).is_ok());
        let check = |made: Made, range: Box3, expected: &str| {
            let message = refusal(made.launch(device, &HEAT, range));
            assert!(message.contains(expected), "{message}");
        };
        check(made(), range.shifted([1, 0, 0]), "doesn't hold the f64 cells [1..7, 0..5, 0..4]");
        check(made(), range.shifted([0, 0, -1]), "doesn't hold");
        let mut aliased = made();
        aliased.outputs[0] = aliased.fields[0];
        check(aliased, range, "is written and used a second time");
        let mut short = made();
        short.fields.pop();
        check(short, range, "takes 3 fields, and 2 were given");
        let mut single = made();
        single.fields[2] = Made::new(device, &AVERAGE, shape).fields[0];
        check(single, range, "doesn't hold the f64 cells");
        let freed = made();
        device.free(freed.fields[2].0);
        check(freed, range, "there is no buffer");
    }
}

#[test]
fn every_device_folds_rows_to_the_reference_bits() {
    let devices = devices();
    for kernel in [&FOLDED, &TALLY, &RELAX] {
        for n in SIZES {
            for parity in [None, Some(0), Some(1)] {
                let results: Vec<_> = devices.iter().map(|device| run_folded(&**device, kernel, n, parity)).collect();
                for (device, result) in devices.iter().zip(&results) {
                    assert!(*result == results[0], "{} {kernel:?} {n:?} {parity:?}", device.summary());
                }
            }
        }
    }
}

#[test]
fn the_reference_folds_the_points_of_a_row_that_are_updated() {
    let device = Reference.open_one(0, &OpenOptions::default()).unwrap();
    for n in SIZES {
        for parity in [None, Some(0), Some(1)] {
            let cells = run_folded(&*device, &TALLY, n, parity);
            let [sums, least, a, b] = &cells[..] else { panic!("two results and two fields") };
            let [sx, sy] = [n[0] + 4, n[1] + 4];
            let words =
                |bytes: &[u8]| bytes.chunks_exact(4).map(|b| u32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect();
            let (least, b): (Vec<u32>, Vec<u32>) = (words(least), words(b));
            for (y, z) in (0..n[1]).flat_map(|y| (0..n[2]).map(move |z| (y, z))) {
                let row = y + 2 + (z + 2) * sy;
                let updated = (0..n[0]).filter(|x| parity.is_none_or(|parity| (x + y + z) % 2 == usize::from(parity)));
                let cells: Vec<_> = updated.map(|x| x + 2 + row * sx).collect();
                let sum: i64 = cells.iter().map(|&cell| i64::from(a[cell] as i8)).sum();
                assert_eq!(sums[8 * row..8 * row + 8], sum.to_ne_bytes(), "{n:?} {parity:?} {y} {z}");
                let expected = cells.iter().map(|&cell| b[cell]).min().unwrap_or(u32::MAX);
                assert_eq!(least[row], expected, "{n:?} {parity:?} {y} {z}");
            }
        }
    }
}

#[test]
fn every_second_point_is_updated_in_place() {
    for device in devices() {
        SIZES.into_iter().for_each(|n| check_parity(&*device, n));
    }
}

#[test]
fn shifted_reads_fill_ghosts_of_the_field_itself() {
    for device in devices() {
        SIZES.into_iter().for_each(|n| check_shift(&*device, n));
    }
}

/// Checks whether a kernel that writes the memory of its first field is allowed to.
#[track_caller]
fn check_in_place(kernel: &'static KernelDesc, shift: [i64; 3], parity: Option<u8>, range: Box3, allowed: bool) {
    for device in devices() {
        let cells = Box3 { lo: [-3; 3], hi: [9; 3] };
        let strides = Strides::for_cells(cells.size(), 8).unwrap();
        let make = |ty, axes| {
            let layout = Layout::new(ty, axes, cells, strides).unwrap();
            (device.alloc(&layout).unwrap(), layout)
        };
        let made: Vec<_> = kernel.fields.iter().map(|field| make(field.ty, field.axes)).collect();
        let fields: Vec<_> = (made.iter())
            .map(|(buffer, layout)| Cells { buffer: *buffer, origin: layout.shifted_origin(shift) })
            .collect();
        let outputs = kernel.outputs.iter().enumerate().map(|(number, output)| {
            let axes = if output.role == Role::Value { WHOLE } else { ROWS };
            let (buffer, layout) = if number == 0 { made[0] } else { make(output.stored(), axes) };
            Cells { buffer, origin: layout.origin }
        });
        let launch = Launch {
            kernel: device.load(kernel).unwrap(),
            outputs: &outputs.collect::<Vec<_>>(),
            fields: &fields,
            shift,
            scalars: &vec![0; kernel.params.len()],
            strides,
            global: [0; 3],
            range,
            parity,
        };
        let result = device.launch(QUEUE, &launch);
        match result {
            Ok(()) => assert!(allowed, "{kernel:?} {shift:?} {parity:?}"),
            Err(Error::Driver { message, .. }) => {
                assert!(!allowed && message.contains("is written and used a second time"), "{message}");
            }
            Err(other) => panic!("{other}"),
        }
    }
}

#[test]
fn a_result_may_take_the_memory_of_a_field_where_no_point_reads_what_another_writes() {
    static LEAPING: KernelDesc = KernelDesc {
        fields: &[FieldDesc {
            name: "u",
            ty: ScalarType::F64,
            axes: WHOLE,
            reads: &[Read { offset: [1, -1, 0], line: 1 }, Read { offset: [0; 3], line: 1 }],
        }],
        ..COPY
    };
    let inner = Box3 { lo: [0; 3], hi: [6; 3] };
    let face = Box3 { lo: [6, 0, 0], hi: [8, 6, 6] };
    check_in_place(&COPY, [0; 3], None, inner, true);
    check_in_place(&COPY, [0; 3], Some(1), inner, true);
    check_in_place(&COPY, [1, 0, 0], None, inner, false);
    check_in_place(&COPY, [1, 0, 0], Some(0), inner, false);
    check_in_place(&COPY, [-2, 0, 0], None, face, true);
    check_in_place(&COPY, [-1, 0, 0], None, face, false);
    check_in_place(&RELAX, [0; 3], None, inner, false);
    check_in_place(&RELAX, [0; 3], Some(0), inner, true);
    check_in_place(&RELAX, [1, 0, 0], Some(0), inner, false);
    check_in_place(&RELAX, [-3, 0, 0], None, face, true);
    check_in_place(&RELAX, [-2, 0, 0], None, face, false);
    check_in_place(&LEAPING, [0; 3], Some(0), inner, false);
    check_in_place(&LEAPING, [0; 3], None, inner, false);
    check_in_place(&FOLDED, [0; 3], None, inner, false);
    check_in_place(&HEAT, [0; 3], Some(1), inner, true);
}

#[test]
fn arguments_of_other_axes_and_origins_are_refused() {
    let cells = Box3 { lo: [-2; 3], hi: [9; 3] };
    let strides = Strides::for_cells(cells.size(), 4).unwrap();
    for device in devices() {
        let make = |ty, axes| {
            let layout = Layout::new(ty, axes, cells, strides).unwrap();
            Cells { buffer: device.alloc(&layout).unwrap(), origin: layout.origin }
        };
        let kernel = device.load(&FOLDED).unwrap();
        let rows = |ty| make(ty, ROWS);
        let outputs = [make(ScalarType::F32, WHOLE), rows(ScalarType::F64), rows(ScalarType::F32)];
        let fields = [make(ScalarType::F32, WHOLE), make(ScalarType::F32, [true, false, false]), rows(ScalarType::F64)];
        let whole = make(ScalarType::F32, WHOLE);
        let launch = |outputs: &[Cells; 3], fields: &[Cells; 3], parity| {
            let (range, shift) = (Box3 { lo: [0; 3], hi: [8; 3] }, [0; 3]);
            let (scalars, global) = (&[0], [0; 3]);
            device.launch(QUEUE, &Launch { kernel, outputs, fields, shift, scalars, strides, global, range, parity })
        };
        launch(&outputs, &fields, None).unwrap();
        for parity in [2, 255] {
            assert!(refusal(launch(&outputs, &fields, Some(parity))).contains("parity"));
        }
        let changed = |cells: &[Cells; 3], number: usize, to: Cells| {
            let mut cells = *cells;
            cells[number] = to;
            cells
        };
        let moved = |cells: Cells| Cells { origin: cells.origin + 1, ..cells };
        let cases = [
            (changed(&outputs, 0, rows(ScalarType::F32)), fields),
            (changed(&outputs, 1, rows(ScalarType::F32)), fields),
            (changed(&outputs, 2, whole), fields),
            (changed(&outputs, 1, moved(outputs[1])), fields),
            (outputs, changed(&fields, 1, whole)),
            (outputs, changed(&fields, 0, fields[1])),
            (outputs, changed(&fields, 2, make(ScalarType::F64, [true, true, false]))),
            (outputs, changed(&fields, 1, moved(fields[1]))),
        ];
        for (number, (outputs, fields)) in cases.iter().enumerate() {
            let message = refusal(launch(outputs, fields, None));
            assert!(message.contains("doesn't hold the"), "{number}: {message}");
        }
        let message = refusal(launch(&changed(&outputs, 1, fields[2]), &fields, None));
        assert!(message.contains("is written and used a second time"), "{message}");
        let message = refusal(launch(&changed(&outputs, 2, outputs[1]), &fields, None));
        assert!(message.contains("doesn't hold the f32"), "{message}");
    }
}

#[test]
fn boxes_outside_a_buffer_and_wrong_amounts_of_data_are_refused() {
    for device in devices() {
        let layout = layout(ScalarType::F64, [6, 5, 4]);
        let (buffer, other) = (device.alloc(&layout).unwrap(), device.alloc(&layout).unwrap());
        let region = whole(&layout);
        let place = |region| Place { buffer, region };
        let far = Region { offset: layout.bytes, ..region };
        let huge = Region { planes: usize::MAX / 2, plane_pitch: 1 << 40, ..region };
        for bad in [&far, &huge] {
            assert!(device.write(QUEUE, place(bad), &vec![0; region.bytes()]).is_err());
            assert!(device.read(QUEUE, place(bad), &mut vec![0; region.bytes()]).is_err());
            assert!(device.copy(QUEUE, place(bad), Place { buffer: other, region: &region }).is_err());
            assert!(device.copy(QUEUE, Place { buffer: other, region: &region }, place(bad)).is_err());
        }
        refusal(device.write(QUEUE, place(&region), &vec![0; region.bytes() - 8]));
        refusal(device.read(QUEUE, place(&region), &mut vec![0; region.bytes() + 8]));
        let flat = Region::run(0, region.bytes());
        refusal(device.copy(QUEUE, place(&region), Place { buffer: other, region: &flat }));
        let nowhere = Place { buffer: BufferId(999), region: &region };
        assert!(refusal(device.write(QUEUE, nowhere, &vec![0; region.bytes()])).contains("no buffer 999"));
        device.free(BufferId(999));
    }
}

#[test]
fn a_kernel_that_panics_is_an_error_and_the_device_goes_on() {
    for device in devices() {
        let made = Made::new(&*device, &BROKEN, [5, 4, 3]);
        let layout = made.fields[0].1;
        let negative: Vec<u8> = (0..60).flat_map(|cell| (30.5 - f64::from(cell)).to_ne_bytes()).collect();
        write(&*device, made.fields[0].0, &layout, &negative);
        match made.launch(&*device, &BROKEN, layout.cells).unwrap_err() {
            Error::Panicked { place, message, .. } => {
                assert!(place.contains("`broken`"), "{place}");
                assert!(["a negative value", "a broken kernel"].contains(&message.as_str()), "{message}");
                assert_eq!(place.contains("point (1, 2, 1)"), message == "a negative value", "{place}");
            }
            other => panic!("{other}"),
        }
        let heat = Made::new(&*device, &HEAT, [5, 4, 3]);
        assert!(heat.launch(&*device, &HEAT, Box3 { lo: [1; 3], hi: [4, 3, 2] }).is_ok());
        assert!(made.results(&*device)[0].len() == 480);
    }
}

#[test]
fn every_type_and_the_place_in_the_grid_reach_the_kernel() {
    let devices = devices();
    for (n, global) in PLACES {
        let results: Vec<_> = devices.iter().map(|device| run_mixed(&**device, n, global)).collect();
        for (device, result) in devices.iter().zip(&results) {
            assert!(*result == results[0], "{} {n:?} {global:?}", device.summary());
        }
        let elsewhere = run_mixed(&*devices[0], n, global.map(|index| index ^ 1));
        let changed: Vec<_> = (0..9).filter(|&number| elsewhere[number] != results[0][number]).collect();
        assert_eq!(changed, [0, 3, 8], "results that use the index along X, Y and Z");
    }
}

#[test]
fn a_panic_names_the_point_in_the_grid_and_leaves_the_device_whole() {
    let device = Reference.open_one(0, &OpenOptions::default()).unwrap();
    let layout = layout(ScalarType::I32, [5, 4, 3]);
    let [a, b, c] = std::array::from_fn(|_| device.alloc(&layout).unwrap());
    let cells = |buffer| Cells { buffer, origin: layout.origin };
    let kernel = device.load(&CHECKED).unwrap();
    let launch = |at: i64| {
        let range = Box3 { lo: [at, 1, 0], hi: [5, 4, 3] };
        let (outputs, fields) = ([cells(b), cells(c)], [cells(a)]);
        let (strides, global) = (layout.strides, [100, 200, 300]);
        let (shift, parity) = ([0; 3], None);
        let launch =
            Launch { kernel, outputs: &outputs, fields: &fields, shift, scalars: &[], strides, global, range, parity };
        device.launch(QUEUE, &launch)
    };
    let ones: Vec<u8> = (0..60).flat_map(|_| 1_i32.to_ne_bytes()).collect();
    for at in [1, 4] {
        write(&*device, a, &layout, &vec![0; ones.len()]);
        let error = launch(at).unwrap_err().to_string();
        let place = format!("stopped in `checked` at point ({}, 201, 300): attempt to divide by zero; ", 100 + at);
        assert!(error.contains(&place), "{error}");
        write(&*device, a, &layout, &ones);
        launch(at).unwrap();
        let found = read(&*device, b, &layout);
        assert_eq!(found[found.len() - 4..], 100_i32.to_ne_bytes());
    }
}

#[test]
fn thread_counts_and_instruction_sets_that_cannot_be_served_are_errors() {
    let open = |threads, instruction_set| {
        Host.open_one(0, &OpenOptions { threads, instruction_set, ..OpenOptions::default() })
            .map(|device| device.summary())
    };
    assert!(matches!(open(Some(0), None), Err(Error::Threads { asked: 0, .. })));
    assert!(matches!(open(Some(1_000_000), None), Err(Error::Threads { asked: 1_000_000, .. })));
    for set in InstructionSet::ALL {
        match open(Some(1), Some(set)) {
            Ok(summary) => assert_eq!(summary, format!("host (1 thread, {set})")),
            Err(Error::InstructionSet { asked, .. }) => assert!(!set.is_available() && asked == set.to_string()),
            Err(other) => panic!("{other}"),
        }
    }
    assert!(matches!(Host.open_one(1, &OpenOptions::default()), Err(Error::NoSuchDevice { .. })));
}

#[test]
fn memory_that_no_machine_has_is_an_error() {
    let cells = Box3 { lo: [0; 3], hi: [1 << 20, 1 << 20, 1 << 6] };
    let layout = Layout::new(ScalarType::F64, WHOLE, cells, Strides::for_cells(cells.size(), 8).unwrap()).unwrap();
    for device in devices() {
        assert!(device.alloc(&layout).is_err(), "{}", device.summary());
    }
}
