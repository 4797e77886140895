//! Claims about queues, events, memory and recordings, on a driver that runs nothing and misses nothing.

use polyhalo_codegen::offline::Cache;
use polyhalo_codegen::offline::cache::VARIABLE;
use polyhalo_codegen::offline::private::Folder;

use super::fake::Fake;
use super::*;
use crate::backend::gpu::code::Loaded;
use crate::backend::gpu::driver::{Driver, Image, Side};
use crate::backend::gpu::options::{Shape, Tune};
use crate::backend::{Cells, OpenOptions};
use crate::geometry::Box3;
use crate::kernel::{DeviceCode, GpuForm, KernelDesc, ScalarType, Walk};
use crate::layout::{Region, Strides, WHOLE};
use crate::testing::HEAT;

const fn form(entry: &'static str, walk: Walk, narrow: bool) -> GpuForm {
    GpuForm { entry, walk, narrow }
}

static KERNEL: KernelDesc = KernelDesc {
    code: DeviceCode {
        gpu: &[
            form("point", Walk::Point, false),
            form("point_narrow", Walk::Point, true),
            form("march", Walk::March, false),
            form("march_narrow", Walk::March, true),
        ],
        ..HEAT.code
    },
    ..HEAT
};

const Q: QueueId = QueueId::COMPUTE;
const R: QueueId = QueueId(1);

fn opened(fake: &'static Fake, ordinals: &[u32], options: &OpenOptions) -> Result<Vec<Box<dyn Device>>> {
    open(fake, ordinals, options)
}

fn devices(fake: &'static Fake, ordinals: &[u32]) -> Vec<Box<dyn Device>> {
    opened(fake, ordinals, &OpenOptions::default()).unwrap()
}

fn inside(device: &dyn Device) -> &GpuDevice {
    device.as_any().downcast_ref().unwrap()
}

/// A kernel whose code is whatever.
fn load(device: &dyn Device) -> Result<KernelId> {
    let device = inside(device);
    let kernel = device.card.driver.load(device.card.number(), Image::Ptx("")).and_then(|module| {
        let loaded = Loaded { module, origin: "made up".into() };
        Kernel::new(&device.card, &KERNEL, loaded)
    });
    let mut kernels = locked(&device.kernels);
    kernels.push(Arc::new(kernel.map_err(|failure| device.driver(failure))?));
    Ok(KernelId((kernels.len() - 1) as u32))
}

fn cube(cells: usize) -> Layout {
    let cells = Box3 { lo: [0; 3], hi: [cells as i64; 3] };
    Layout::new(ScalarType::F64, WHOLE, cells, Strides::for_cells(cells.size(), 8).unwrap()).unwrap()
}

fn whole(layout: &Layout) -> Region {
    layout.region(&layout.cells).unwrap()
}

/// HEAT from three buffers to a fourth, or one of the three.
fn heat(device: &dyn Device, queue: QueueId, kernel: KernelId, layout: &Layout, buffers: [BufferId; 4]) -> Result<()> {
    coloured(device, queue, kernel, layout, (buffers, None))
}

/// Heat at the points of a colour.
fn coloured(
    device: &dyn Device,
    queue: QueueId,
    kernel: KernelId,
    layout: &Layout,
    (buffers, parity): ([BufferId; 4], Option<u8>),
) -> Result<()> {
    let cells = buffers.map(|buffer| Cells { buffer, origin: layout.origin });
    let range = Box3 { lo: layout.cells.lo.map(|lo| lo + 1), hi: layout.cells.hi.map(|hi| hi - 1) };
    device.launch(
        queue,
        &Launch {
            kernel,
            outputs: &cells[..1],
            fields: &cells[1..],
            shift: [0; 3],
            scalars: &[0],
            strides: layout.strides,
            global: [0; 3],
            range,
            parity,
        },
    )
}

fn check_clean(fake: &Fake, what: &str) {
    assert_eq!(fake.misuse(), [""; 0], "{what}");
    assert_eq!(fake.alive(), [""; 0], "{what}");
}

fn is_of(error: &Error, call: &str) -> bool {
    matches!(error, Error::Driver { call: found, .. } if found == call)
}

/// Uses everything; the devices are dropped at the end or at the first failure.
fn everything(fake: &'static Fake, trace: bool) -> Result<()> {
    let devices = opened(fake, &[0, 0, 1], &OpenOptions { trace, ..OpenOptions::default() })?;
    let layout = cube(16);
    let region = whole(&layout);
    let mut all = Vec::new();
    for device in &devices {
        let buffers = [(); 4].map(|()| device.alloc(&layout));
        let [a, b, c, d] = buffers;
        all.push(([a?, b?, c?, d?], load(&**device)?));
    }
    for (number, device) in devices.iter().enumerate() {
        let ([a, b, c, d], kernel) = all[number];
        let place = |buffer| Place { buffer, region: &region };
        device.write(Q, place(b), &vec![1; region.bytes()])?;
        heat(&**device, Q, kernel, &layout, [a, b, c, d])?;
        let event = device.signal(Q)?;
        device.wait(R, event)?;
        device.copy(R, place(a), place(c))?;
        let staging = device.staging(region.bytes())?;
        device.download(R, place(a), &staging, 0)?;
        let event = device.signal(R)?;
        let other = &devices[(number + 1) % devices.len()];
        other.wait_for_peer(R, &**device, event)?;
        other.upload(R, &staging, 0, place(all[(number + 1) % devices.len()].0[3]))?;
        drop(staging);
        other.reaches(&**device).map_err(|reason| inside(&**device).misuse("reaches", reason))?;
        other.copy_to_peer(R, place(all[(number + 1) % devices.len()].0[3]), &**device, place(d))?;
        let event = other.signal(R)?;
        device.wait_for_peer(Q, &**other, event)?;
        device.synchronize(event)?;
        device.finish(Q)?;
        other.finish(R)?;
        if device.record(Q)? {
            heat(&**device, Q, kernel, &layout, [a, b, c, d])?;
            let event = device.signal(Q)?;
            other.wait_for_peer(R, &**device, event)?;
            let staging = device.staging(0)?;
            other.upload(R, &staging, 0, Place { buffer: d, region: &Region::run(0, 0) })?;
            other.copy(
                R,
                place(all[(number + 1) % devices.len()].0[1]),
                place(all[(number + 1) % devices.len()].0[2]),
            )?;
            let event = other.signal(R)?;
            device.wait_for_peer(Q, &**other, event)?;
            let recording = device.recorded(Q)?;
            device.replay(Q, recording)?;
            device.replay(Q, recording)?;
            device.forget(recording);
        }
        device.read(Q, place(a), &mut vec![0; region.bytes()])?;
        device.free(a);
        device.span(event)?;
    }
    devices.iter().try_for_each(|device| device.finish(Q).and_then(|()| device.finish(R)))
}

#[test]
fn everything_is_given_back_in_order_whichever_call_fails() {
    for trace in [false, true] {
        for make in [Fake::new, Fake::eager] {
            let fake = make();
            everything(fake, trace).unwrap();
            check_clean(fake, "without a failure");
            let calls = fake.calls();
            assert!(calls > 100);
            let mut failed = 0;
            for number in 1..=calls {
                let fake = make();
                fake.fail("*", number, if number % 7 == 0 { Kind::Lost } else { Kind::Other });
                failed += u64::from(everything(fake, trace).is_err());
                check_clean(fake, &format!("call {number} of {calls} failed"));
            }
            // Only what is done at the end, and what there is a substitute for, may fail unnoticed.
            assert!(failed > calls / 2, "{failed} of {calls}");
        }
    }
}

#[test]
fn a_listing_names_cards_and_what_is_wrong_with_others() {
    let fake = Fake::new();
    let found = listing("cuda", Ok(fake));
    assert_eq!(found.devices.iter().map(|info| info.ordinal).collect::<Vec<_>>(), [0, 1, 3]);
    assert!(found.absent.len() == 1 && found.absent[0].starts_with("cuda 2: cards gave"), "{:?}", found.absent);
    let info = &found.devices[0];
    assert!(info.fp64 && info.notes == ["driver: fake 1.0", "architecture: sm_90"], "{info:?}");
    assert_eq!(listing("cuda", Err("no library".into())).absent, ["no library"]);
    fake.fail("cards", 1, Kind::Other);
    assert_eq!(listing("cuda", Ok(fake)).absent.len(), 1);
    for ordinal in [2, 7] {
        let error = opened(fake, &[0, ordinal], &OpenOptions::default()).err().unwrap();
        assert!(matches!(error, Error::NoSuchDevice { .. }), "{error}");
    }
    check_clean(fake, "");
}

#[test]
fn shares_of_a_card_open_it_once_and_copy_on_it() {
    let fake = Fake::new();
    let shares = devices(fake, &[0, 1, 0]);
    assert_eq!(fake.count("open"), 2);
    let names: Vec<_> = shares.iter().map(|device| device.info().name.clone()).collect();
    assert_eq!(names, ["fake 0, share 1 of 2", "fake 1", "fake 0, share 2 of 2"]);
    let layout = cube(8);
    let (a, b) = (shares[0].alloc(&layout).unwrap(), shares[2].alloc(&layout).unwrap());
    let region = whole(&layout);
    shares[0].reaches(&*shares[2]).unwrap();
    let place = |buffer| Place { buffer, region: &region };
    shares[0].copy_to_peer(Q, place(a), &*shares[2], place(b)).unwrap();
    let (from, to, shape) = fake.copies()[0];
    assert_eq!((from.side, to.side, shape), (Side::Card(0), Side::Card(0), [region.row_bytes, 8, 8]));
    assert_eq!(fake.count("reaches"), 0);
    shares[0].reaches(&*shares[1]).unwrap();
    shares[1].reaches(&*shares[0]).unwrap();
    assert_eq!((fake.count("reaches"), fake.count("enable_peer")), (4, 4));
    shares[0].reaches(&*shares[1]).unwrap();
    assert_eq!(fake.count("reaches"), 4);
    drop(shares);
    check_clean(fake, "");
}

#[test]
fn cards_without_peer_access_wait_for_each_other_but_do_not_reach_each_other() {
    let fake = Fake::new();
    let cards = devices(fake, &[0, 3]);
    let reason = cards[0].reaches(&*cards[1]).unwrap_err();
    assert!(reason.contains("can't reach the memory of card 3"), "{reason}");
    assert!(cards[0].awaits(&*cards[1]));
    let other = devices(Fake::new(), &[0]);
    assert!(!cards[0].awaits(&*other[0]) && cards[0].reaches(&*other[0]).is_err());
    let fake = Fake::new();
    let cards = devices(fake, &[0, 1]);
    fake.fail("enable_peer", 2, Kind::Other);
    assert!(cards[0].reaches(&*cards[1]).unwrap_err().contains("enable_peer gave"));
}

#[test]
fn events_are_used_again_and_forgotten_when_they_have_happened() {
    for fake in [Fake::new(), Fake::eager()] {
        let devices = devices(fake, &[0]);
        let device = &*devices[0];
        let layout = cube(4);
        let (a, b) = (device.alloc(&layout).unwrap(), device.alloc(&layout).unwrap());
        let region = whole(&layout);
        let staging = device.staging(region.bytes()).unwrap();
        let mut first = None;
        for step in 0..1000 {
            device.copy(Q, Place { buffer: a, region: &region }, Place { buffer: b, region: &region }).unwrap();
            let event = device.signal(Q).unwrap();
            first.get_or_insert(event);
            device.wait(R, event).unwrap();
            device.download(R, Place { buffer: b, region: &region }, &staging, 0).unwrap();
            let event = device.signal(R).unwrap();
            device.wait(Q, event).unwrap();
            if step % 10 == 9 {
                device.finish(Q).unwrap();
                device.finish(R).unwrap();
            }
        }
        assert!(fake.count("event") <= 24, "{}", fake.count("event"));
        device.wait(R, first.unwrap()).unwrap();
        device.synchronize(first.unwrap()).unwrap();
        for unknown in [EventId(0), EventId(5000)] {
            assert!(is_of(&device.wait(Q, unknown).unwrap_err(), "wait"));
            assert!(is_of(&device.synchronize(unknown).unwrap_err(), "synchronize"));
        }
        drop(devices);
        // Staging memory outlives its device, and so does what the card has.
        assert!(fake.alive().iter().any(|left| left.starts_with("Host")), "{:?}", fake.alive());
        assert_eq!(fake.count("close"), 0);
        drop(staging);
        check_clean(fake, "");
    }
}

#[test]
fn waits_reach_the_driver_unless_they_are_implied() {
    let fake = Fake::new();
    let devices = devices(fake, &[0, 1]);
    let layout = cube(4);
    let region = whole(&layout);
    let place = |buffer| Place { buffer, region: &region };
    let (a, b) = (devices[0].alloc(&layout).unwrap(), devices[0].alloc(&layout).unwrap());
    devices[0].copy(Q, place(a), place(b)).unwrap();
    let event = devices[0].signal(Q).unwrap();
    devices[0].wait(Q, event).unwrap();
    assert_eq!(fake.count("wait"), 0);
    devices[0].wait(R, event).unwrap();
    devices[1].wait_for_peer(Q, &*devices[0], event).unwrap();
    assert_eq!(fake.count("wait"), 2);
    // The moment after a wait is a later one.
    let queried = fake.count("record");
    devices[0].signal(R).unwrap();
    devices[0].signal(R).unwrap();
    assert_eq!(fake.count("record"), queried + 1);
    // Even where nothing else was enqueued before the wait since the last moment.
    let far = devices[1].signal(Q).unwrap();
    let recorded = fake.count("record");
    devices[0].wait_for_peer(R, &*devices[1], far).unwrap();
    devices[0].signal(R).unwrap();
    assert_eq!(fake.count("record"), recorded + 1);
    assert_eq!(fake.count("wait"), 3);
    devices[0].finish(Q).unwrap();
    devices[0].wait(R, event).unwrap();
    assert_eq!(fake.count("wait"), 3, "it has happened");
}

#[test]
fn the_host_waits_for_events_of_another_driver() {
    let (near, far) = (Fake::new(), Fake::new());
    let (here, there) = (devices(near, &[0]), devices(far, &[0]));
    let buffer = there[0].alloc(&cube(1)).unwrap();
    there[0].write(Q, Place { buffer, region: &Region::run(0, 8) }, &[0; 8]).unwrap();
    let event = there[0].signal(Q).unwrap();
    here[0].wait_for_peer(Q, &*there[0], event).unwrap();
    assert_eq!((near.count("wait"), far.count("finish_event")), (0, 1));
}

#[test]
fn nothing_uses_memory_of_the_caller_after_the_call() {
    let fake = Fake::new();
    let devices = devices(fake, &[0]);
    let device = &*devices[0];
    let layout = Layout::linear(ScalarType::F64, STAGED_BYTES / 8 + 1).unwrap();
    let buffer = device.alloc(&layout).unwrap();
    let mut waits = fake.count("finish_stream");
    let mut check = |call: &dyn Fn(Place<'_>, &mut [u8]) -> Result<()>, bytes: usize, more: usize| {
        let region = Region::run(0, bytes);
        let called = call(Place { buffer, region: &region }, &mut vec![0; bytes]);
        let before = std::mem::replace(&mut waits, fake.count("finish_stream"));
        assert_eq!(waits - before, more, "{bytes} bytes");
        called
    };
    let write = |to: Place<'_>, data: &mut [u8]| device.write(Q, to, data);
    let read = |from: Place<'_>, data: &mut [u8]| device.read(Q, from, data);
    check(&write, 8, 0).unwrap();
    check(&write, STAGED_BYTES + 8, 1).unwrap();
    check(&read, 8, 1).unwrap();
    // A wait that fails is tried again, as the failure may have been the call's.
    for call in [&write as &dyn Fn(Place<'_>, &mut [u8]) -> Result<()>, &read] {
        fake.fail("finish_stream", 1, Kind::Other);
        assert!(is_of(&check(call, STAGED_BYTES + 8, 2).unwrap_err(), "finish_stream"));
    }
}

#[test]
fn memory_is_checked_and_refusals_are_typed() {
    let fake = Fake::new();
    let devices = devices(fake, &[0]);
    let layout = Layout::linear(ScalarType::F64, 1 << 30).unwrap();
    let error = devices[0].alloc(&layout).unwrap_err();
    let Error::OutOfMemory { needed, free, .. } = error else { panic!("{error}") };
    assert!(needed > free && free == 1 << 32);
    assert_eq!(fake.count("alloc"), 0);
    for call in ["alloc", "zero"] {
        fake.fail(call, 1, Kind::OutOfMemory);
        let error = devices[0].alloc(&cube(4)).unwrap_err();
        let Error::OutOfMemory { limit, free, .. } = error else { panic!("{error}") };
        assert!(limit.contains(call) && free == 1 << 32, "{limit}");
    }
    fake.fail("memory", 1, Kind::Unsupported);
    assert_eq!(devices[0].free_memory().unwrap(), None);
    fake.fail("alloc_host", 1, Kind::OutOfMemory);
    assert_eq!(devices[0].staging(100).unwrap().bytes(), 100);
    drop(devices);
    check_clean(fake, "");
}

#[test]
fn failures_of_earlier_work_are_told_by_the_next_who_waits() {
    let fake = Fake::new();
    let devices = devices(fake, &[0]);
    let (device, layout) = (&*devices[0], cube(4));
    let region = whole(&layout);
    let a = device.alloc(&layout).unwrap();
    device.write(Q, Place { buffer: a, region: &region }, &vec![0; region.bytes()]).unwrap();
    let event = device.signal(Q).unwrap();
    fake.fail("has_happened", 1, Kind::Other);
    // The driver is asked once there is much to remember.
    for _ in 0..100 {
        device.signal(Q).unwrap();
    }
    assert!(is_of(&device.finish(Q).unwrap_err(), "has_happened"));
    device.finish(Q).unwrap();
    fake.fail("finish_stream", 1, Kind::Lost);
    assert!(is_of(&device.finish(Q).unwrap_err(), "finish_stream"));
    device.synchronize(event).unwrap();
}

#[test]
fn what_is_recorded_is_kept_for_as_long_as_it_may_be_enqueued() {
    let fake = Fake::new();
    let both = devices(fake, &[0, 1]);
    let (device, other, layout) = (&*both[0], &*both[1], cube(4));
    let region = whole(&layout);
    let place = |buffer| Place { buffer, region: &region };
    let (a, b) = (device.alloc(&layout).unwrap(), other.alloc(&layout).unwrap());
    let staging = device.staging(region.bytes()).unwrap();
    let before = device.signal(Q).unwrap();
    assert!(device.record(Q).unwrap());
    device.download(Q, place(a), &staging, 0).unwrap();
    let event = device.signal(Q).unwrap();
    other.wait_for_peer(R, device, event).unwrap();
    other.upload(R, &staging, 0, place(b)).unwrap();
    let joined = other.signal(R).unwrap();
    device.wait_for_peer(Q, other, joined).unwrap();
    device.signal(Q).unwrap();
    let queries = fake.count("has_happened");
    let recording = device.recorded(Q).unwrap();
    assert_eq!(queries, 0);
    // The moment after the recording isn't part of it.
    let after = device.signal(Q).unwrap();
    device.synchronize(after).unwrap();
    drop(staging);
    for _ in 0..3 {
        device.replay(Q, recording).unwrap();
    }
    // Only errors, as nothing of it ever happens.
    for (device, event) in [(device, event), (other, joined)] {
        assert!(is_of(&device.synchronize(event).unwrap_err(), "synchronize"));
        assert!(is_of(&device.wait(R, event).unwrap_err(), "wait"));
    }
    device.synchronize(before).unwrap();
    // Buffers wait for the queue on which the recording runs, which is another device's.
    other.free(b);
    device.forget(recording);
    assert!(is_of(&device.replay(Q, recording).unwrap_err(), "replay"));
    device.forget(recording);
    drop(both);
    check_clean(fake, "");
}

#[test]
fn a_failed_call_ends_the_recording_and_the_queue_works_on() {
    for call in ["copy", "record", "wait", "end_capture"] {
        let fake = Fake::new();
        let devices = devices(fake, &[0]);
        let (device, layout) = (&*devices[0], cube(4));
        let region = whole(&layout);
        let place = |buffer| Place { buffer, region: &region };
        let (a, b) = (device.alloc(&layout).unwrap(), device.alloc(&layout).unwrap());
        let work = || {
            device.copy(Q, place(a), place(b))?;
            let event = device.signal(Q)?;
            device.wait(R, event)?;
            device.copy(R, place(a), place(b))?;
            let event = device.signal(R)?;
            device.wait(Q, event)
        };
        assert!(device.record(Q).unwrap());
        assert!(is_of(&device.record(Q).unwrap_err(), "record"));
        fake.fail(call, 1, Kind::Other);
        let error = work().and_then(|()| device.recorded(Q).map(|_| ())).unwrap_err();
        assert!(is_of(&error, call), "{error}");
        assert!(is_of(&device.recorded(Q).unwrap_err(), "recorded"));
        work().unwrap();
        device.finish(Q).unwrap();
        device.finish(R).unwrap();
        assert!(device.record(Q).unwrap());
        work().unwrap();
        let recording = device.recorded(Q).unwrap();
        device.replay(R, recording).unwrap();
        drop(devices);
        check_clean(fake, call);
    }
}

#[test]
fn who_waits_for_what_is_recorded_gets_an_error_and_a_working_queue() {
    let fake = Fake::new();
    let devices = devices(fake, &[0]);
    let device = &*devices[0];
    let buffer = device.alloc(&cube(4)).unwrap();
    let region = Region::run(0, 8);
    for number in 0..3 {
        assert!(device.record(Q).unwrap());
        let event = device.signal(Q).unwrap();
        let (call, error) = match number {
            0 => ("finish", device.finish(Q)),
            1 => ("read", device.read(Q, Place { buffer, region: &region }, &mut [0; 8])),
            _ => ("synchronize", device.synchronize(event)),
        };
        assert!(is_of(&error.unwrap_err(), call));
        device.finish(Q).unwrap();
    }
    // A recording that nobody ends.
    assert!(device.record(Q).unwrap());
    drop(devices);
    check_clean(fake, "");
}

#[test]
fn devices_that_can_not_record_or_that_trace_say_so() {
    let fake = Fake::new();
    fake.lack_capture();
    assert!(!devices(fake, &[0])[0].record(Q).unwrap());
    let traced = opened(fake, &[0], &OpenOptions { trace: true, ..OpenOptions::default() }).unwrap();
    assert!(!traced[0].record(Q).unwrap());
}

#[test]
fn spans_are_those_of_the_last_work_before_an_event() {
    let fake = Fake::new();
    let traced = opened(fake, &[0], &OpenOptions { trace: true, ..OpenOptions::default() }).unwrap();
    let (device, layout) = (&*traced[0], cube(8));
    let buffers = [(); 4].map(|()| device.alloc(&layout).unwrap());
    let kernel = load(device).unwrap();
    fake.take_times(&[3.0, 5.0]);
    let mut events = Vec::new();
    for queue in [Q, R] {
        heat(device, queue, kernel, &layout, buffers).unwrap();
        events.push(device.signal(queue).unwrap());
        assert_eq!(device.span(events[0]).unwrap(), None);
    }
    device.wait(R, events[0]).unwrap();
    events.push(device.signal(R).unwrap());
    device.finish(Q).unwrap();
    device.finish(R).unwrap();
    device.signal(Q).unwrap();
    for (event, millis) in events.iter().zip([3, 5, 5]) {
        let span = device.span(*event).unwrap().unwrap();
        let length = (span.end - span.start).as_micros();
        assert!(length.abs_diff(millis * 1000) <= 1, "{length}");
    }
    let plain = devices(fake, &[0]);
    let event = plain[0].signal(Q).unwrap();
    plain[0].finish(Q).unwrap();
    assert_eq!(plain[0].span(event).unwrap(), None);
}

fn with_gpu(fake: &'static Fake, shape: Option<&str>, tune: Tune) -> Box<dyn Device> {
    let shape = shape.map(|text| text.parse::<Shape>().unwrap());
    let options = OpenOptions { gpu: GpuOptions { tune, shape, wide: false }, ..OpenOptions::default() };
    opened(fake, &[0], &options).unwrap().pop().unwrap()
}

#[test]
fn kernels_run_in_the_shape_that_was_asked_for_or_the_default() {
    let check = |shape, expected: (&str, [u32; 3], [u32; 3]), words: &str| {
        let fake = Fake::new();
        let device = with_gpu(fake, shape, Tune::Never);
        let layout = cube(34);
        let buffers = [(); 4].map(|()| device.alloc(&layout).unwrap());
        let kernel = load(&*device).unwrap();
        heat(&*device, Q, kernel, &layout, buffers).unwrap();
        let (entry, grid, block) = expected;
        assert_eq!(fake.launches(), [(entry.into(), grid, block)]);
        assert_eq!(device.shapes(), [("heat", words.into())]);
    };
    check(None, ("point_narrow", [1, 4, 32], [32, 8, 1]), "point:64x4x1 by default, 40 registers, made up");
    let wide = |fake| {
        let gpu = GpuOptions { wide: true, tune: Tune::Never, ..GpuOptions::default() };
        opened(fake, &[0], &OpenOptions { gpu, ..OpenOptions::default() }).unwrap().pop().unwrap()
    };
    let fake = Fake::new();
    let (device, layout) = (wide(fake), cube(34));
    let buffers = [(); 4].map(|()| device.alloc(&layout).unwrap());
    let kernel = load(&*device).unwrap();
    heat(&*device, Q, kernel, &layout, buffers).unwrap();
    assert!(!fake.launches()[0].0.contains("narrow"));
    check(
        Some("march:16x4:5"),
        ("march_narrow", [2, 8, 7], [16, 4, 1]),
        "march:16x4:5 as asked for, 40 registers, made up",
    );
    // With more threads than the kernel can have.
    check(
        Some("point:512x1x1"),
        ("point_narrow", [1, 4, 32], [32, 8, 1]),
        "point:64x4x1 by default, 40 registers, made up",
    );
}

#[test]
fn launches_that_do_not_fit_are_refused_before_they_are_enqueued() {
    let fake = Fake::new();
    let device = with_gpu(fake, None, Tune::Never);
    let layout = cube(8);
    let buffers = [(); 4].map(|()| device.alloc(&layout).unwrap());
    let kernel = load(&*device).unwrap();
    let [a, b, c, d] = buffers;
    for (kernel, buffers) in [
        (KernelId(7), buffers),
        (kernel, [BufferId(99), b, c, d]),
        // In place where neighbours are read.
        (kernel, [a, a, c, d]),
    ] {
        assert!(is_of(&heat(&*device, Q, kernel, &layout, buffers).unwrap_err(), "launch"));
    }
    // No point to compute.
    heat(&*device, Q, kernel, &Layout { cells: Box3 { lo: [0; 3], hi: [2; 3] }, ..layout }, buffers).unwrap();
    assert_eq!(fake.count("launch"), 0);
}

#[test]
fn large_launches_are_measured_once_and_the_fastest_shape_stays() {
    let fake = Fake::new();
    let shares = opened(
        fake,
        &[0, 0],
        &OpenOptions { gpu: GpuOptions { tune: Tune::Again, ..GpuOptions::default() }, ..OpenOptions::default() },
    )
    .unwrap();
    let layout = cube(130);
    let (device, small) = (&*shares[0], cube(34));
    let kernel = load(device).unwrap();
    let all = [(); 4].map(|()| device.alloc(&small).unwrap());
    heat(device, Q, kernel, &small, all).unwrap();
    assert_eq!(fake.launches().len(), 1);
    let all = [(); 4].map(|()| device.alloc(&layout).unwrap());
    let candidates = 21;
    let mut times = vec![5.0; candidates];
    times[8] = 2.0;
    fake.take_times(&times);
    heat(device, Q, kernel, &layout, all).unwrap();
    let launches = fake.launches();
    assert_eq!(launches.len(), 4 * candidates, "{launches:?}");
    let fastest = launches[8].clone();
    assert_eq!(fastest.0, "march_narrow");
    heat(device, R, kernel, &layout, all).unwrap();
    assert_eq!(fake.launches(), [fastest]);
    assert!(device.shapes()[0].1.contains("as measured"), "{:?}", device.shapes());
    heat(device, R, kernel, &small, all.map(|_| BufferId(1))).unwrap_err();
    drop(shares);
    check_clean(fake, "");
}

#[test]
fn an_update_in_place_is_measured_elsewhere_and_done_once() {
    let layout = cube(130);
    for room in [true, false] {
        let fake = Fake::new();
        let device = with_gpu(fake, None, Tune::Again);
        let [a, b, c] = [(); 3].map(|()| device.alloc(&layout).unwrap());
        let kernel = load(&*device).unwrap();
        let allocated = fake.count("alloc");
        if !room {
            fake.fail("alloc", 1, Kind::OutOfMemory);
        }
        coloured(&*device, Q, kernel, &layout, ([a, a, b, c], Some(0))).unwrap();
        assert_eq!(fake.launches().len(), if room { 4 * 21 + 1 } else { 1 });
        assert_eq!(fake.count("alloc"), allocated + 1);
        let how = if room { "as measured" } else { "by default, as alloc gave" };
        assert!(device.shapes()[0].1.contains(how), "{:?}", device.shapes());
        coloured(&*device, Q, kernel, &layout, ([a, a, b, c], Some(1))).unwrap();
        assert_eq!(fake.launches().len(), 1);
        drop(device);
        check_clean(fake, "");
    }
}

#[test]
fn what_was_measured_is_kept_for_the_next_program() {
    let folder = Folder::new().unwrap();
    let found = |name: &str| (name == VARIABLE).then(|| folder.path().as_os_str().to_owned());
    kept::TRIED.set(Cache::open_in(None, &found));
    let layout = cube(130);
    let run = |tune, time: f32| {
        let fake = Fake::new();
        // The second shape, or the first one.
        fake.take_times(&[&[5.0, time][..], &[5.0; 19]].concat());
        let device = with_gpu(fake, None, tune);
        let all = [(); 4].map(|()| device.alloc(&layout).unwrap());
        let kernel = load(&*device).unwrap();
        heat(&*device, Q, kernel, &layout, all).unwrap();
        (fake.launches().len(), device.shapes().remove(0).1)
    };
    let check = |(launches, words): (usize, String), expected: usize, start: &str| {
        assert!(launches == expected && words.starts_with(start), "{launches}: {words}");
    };
    check(run(Tune::Once, 1.0), 84, "point:32x4x2 as measured,");
    check(run(Tune::Once, 9.0), 1, "point:32x4x2 as measured before,");
    check(run(Tune::Never, 9.0), 1, "point:64x4x1 by default,");
    check(run(Tune::Again, 9.0), 84, "point:64x4x1 as measured,");
    check(run(Tune::Once, 1.0), 1, "point:64x4x1 as measured before,");
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        std::fs::write(entry.unwrap().path(), "broken").unwrap();
    }
    check(run(Tune::Once, 1.0), 84, "point:32x4x2 as measured,");
}

#[test]
fn nothing_is_measured_while_recording_or_where_nobody_wants_it() {
    for tune in [Tune::Again, Tune::Never] {
        let fake = Fake::new();
        let device = with_gpu(fake, None, tune);
        let layout = cube(130);
        let all = [(); 4].map(|()| device.alloc(&layout).unwrap());
        let kernel = load(&*device).unwrap();
        if tune == Tune::Again {
            assert!(device.record(Q).unwrap());
        }
        heat(&*device, Q, kernel, &layout, all).unwrap();
        assert_eq!(fake.launches().len(), 1);
    }
}

#[test]
fn a_shape_that_the_driver_refuses_is_left_out() {
    let fake = Fake::new();
    let device = with_gpu(fake, None, Tune::Again);
    let layout = cube(130);
    let all = [(); 4].map(|()| device.alloc(&layout).unwrap());
    let kernel = load(&*device).unwrap();
    fake.fail("launch", 3, Kind::Other);
    heat(&*device, Q, kernel, &layout, all).unwrap();
    assert_eq!(fake.launches().len(), 4 * 20);
    let device = with_gpu(fake, None, Tune::Again);
    let all = [(); 4].map(|()| device.alloc(&layout).unwrap());
    let kernel = load(&*device).unwrap();
    fake.fail("launch", 3, Kind::Lost);
    assert!(is_of(&heat(&*device, Q, kernel, &layout, all).unwrap_err(), "launch"));
    fake.fail("elapsed", 3, Kind::Unsupported);
    heat(&*device, Q, kernel, &layout, all).unwrap();
    assert!(device.shapes()[0].1.contains("by default, as elapsed gave"), "{:?}", device.shapes());
}

#[test]
fn a_driver_belongs_to_one_back_end() {
    let fake = Fake::new();
    assert_eq!(fake.backend(), "cuda");
    let device = with_gpu(fake, None, Tune::Once);
    assert_eq!(device.summary(), "cuda (fake 0, sm_90, 4 multiprocessors)");
}
