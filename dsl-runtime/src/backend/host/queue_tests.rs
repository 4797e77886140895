//! Claims about queues, events and errors of several host devices, in every order in which their operations may run.

use std::thread;

use super::*;
use crate::backend::reference::Reference;
use crate::backend::{Affinity, BufferId, Cells, EventId, Helpers, Launch, Order, Place, QueueId};
use crate::geometry::{Box3, Extent};
use crate::kernel::{KernelDesc, ScalarType};
use crate::layout::{Layout, Region, Strides, WHOLE};
use crate::testing::{BROKEN, COPY};

const MAIN: QueueId = QueueId::COMPUTE;
const SIDE: QueueId = QueueId(1);

type Devices = Vec<Box<dyn Device>>;

fn options(helpers: Helpers, order: Order) -> OpenOptions {
    OpenOptions { threads: Some(1), helpers, order, trace: true, ..OpenOptions::default() }
}

fn open(devices: usize, options: &OpenOptions) -> Devices {
    Host.open(&vec![0; devices], options).unwrap()
}

fn lazy() -> OpenOptions {
    options(Helpers::Auto, Order::Lazy)
}

fn random(seed: u64) -> OpenOptions {
    options(Helpers::Auto, Order::Random(seed))
}

/// Options under which an operation may run after the call that issues it.
fn deferred() -> Vec<OpenOptions> {
    let eager = [Helpers::Count(1), Helpers::Devices].map(|helpers| options(helpers, Order::Eager));
    eager.into_iter().chain([lazy()]).chain((0..30).map(random)).collect()
}

/// Those, and those under which it runs at once.
fn all() -> Vec<OpenOptions> {
    let mut all = deferred();
    all.push(options(Helpers::Count(0), Order::Eager));
    all
}

fn layout() -> Layout {
    let cells = [37, 3, 2];
    Layout::new(ScalarType::F64, WHOLE, Extent::new(cells).unwrap().whole(), Strides::for_cells(cells, 8).unwrap())
        .unwrap()
}

fn region() -> Region {
    layout().region(&layout().cells).unwrap()
}

fn place(buffer: BufferId, region: &Region) -> Place<'_> {
    Place { buffer, region }
}

/// A buffer with this value everywhere.
fn filled(device: &dyn Device, value: f64) -> BufferId {
    let buffer = device.alloc(&layout()).unwrap();
    let data: Vec<u8> = (0..37 * 3 * 2).flat_map(|_| value.to_ne_bytes()).collect();
    device.write(MAIN, place(buffer, &region()), &data).unwrap();
    device.finish(MAIN).unwrap();
    buffer
}

/// The value that is everywhere in a buffer, read through a queue.
fn value(device: &dyn Device, queue: QueueId, buffer: BufferId) -> f64 {
    let mut data = vec![0; region().bytes()];
    device.read(queue, place(buffer, &region()), &mut data).unwrap();
    let values: Vec<_> = data.chunks(8).map(|cell| f64::from_ne_bytes(cell.try_into().unwrap())).collect();
    assert!(values.iter().all(|value| *value == values[0]));
    values[0]
}

fn copy(device: &dyn Device, queue: QueueId, from: BufferId, to: BufferId) {
    let region = region();
    device.copy(queue, place(from, &region), place(to, &region)).unwrap();
}

/// Launches a kernel of one field and one result.
fn launch(
    device: &dyn Device,
    queue: QueueId,
    kernel: &'static KernelDesc,
    from: BufferId,
    to: BufferId,
) -> Result<()> {
    let (layout, kernel) = (layout(), device.load(kernel).unwrap());
    let cells = |buffer| [Cells { buffer, origin: layout.origin }];
    let launch = Launch {
        kernel,
        outputs: &cells(to),
        fields: &cells(from),
        shift: [0; 3],
        scalars: &[],
        strides: layout.strides,
        global: [0; 3],
        range: layout.cells,
        parity: None,
    };
    device.launch(queue, &launch)
}

#[test]
fn devices_share_out_the_cpus_and_say_which_they_have() {
    let summaries =
        |count, options: &OpenOptions| open(count, options).iter().map(|device| device.summary()).collect::<Vec<_>>();
    let (set, cpus) = (InstructionSet::best(), allowed_cpus());
    let plain = OpenOptions::default();
    let threads = Placement::of_one(&cpus, cpus.len()).threads();
    assert_eq!(summaries(1, &plain), [format!("host ({threads}, {set})")]);
    let count = cpus.len();
    let expected = (0..count).map(|n| format!("host {n} of {count} (1 thread on CPU {}, {set})", cpus[n]));
    if count > 1 {
        assert_eq!(summaries(count, &plain), expected.collect::<Vec<_>>());
    }
    let more = summaries(count + 2, &plain);
    assert!(more.iter().all(|summary| summary.contains("(1 thread on CPU ")), "{more:?}");
    let free = OpenOptions { affinity: Affinity::None, threads: Some(2), ..OpenOptions::default() };
    assert_eq!(summaries(2, &free)[1], format!("host 1 of 2 (2 threads, {set})"));
    assert_eq!(open(0, &plain).len(), 0);
    let many = OpenOptions { threads: Some(MOST_THREADS / 2 + 1), ..OpenOptions::default() };
    assert!(matches!(Host.open(&[0, 0], &many), Err(Error::Threads { most, .. }) if most == MOST_THREADS / 2));
    assert!(matches!(Host.open(&[0, 1], &plain), Err(Error::NoSuchDevice { .. })));
}

/// The value that a side queue copies from a buffer which the main queue changes from 1 to 2, if it waits and if not.
fn copied(options: &OpenOptions, waits: bool) -> f64 {
    let devices = open(1, options);
    let device = &*devices[0];
    let [new, u, v] = [2.0, 1.0, 0.0].map(|value| filled(device, value));
    launch(device, MAIN, &COPY, new, u).unwrap();
    if waits {
        let event = device.signal(MAIN).unwrap();
        device.wait(SIDE, event).unwrap();
    }
    copy(device, SIDE, u, v);
    value(device, SIDE, v)
}

#[test]
fn a_missing_wait_shows_as_an_old_value_and_a_wait_never_does() {
    for options in all() {
        assert_eq!(copied(&options, true), 2.0, "{options:?}");
    }
    assert_eq!(copied(&lazy(), false), 1.0);
    let found: Vec<_> = (0..40).map(|seed| copied(&random(seed), false)).collect();
    assert!(found.contains(&1.0) && found.contains(&2.0), "{found:?}");
    assert_eq!(found, (0..40).map(|seed| copied(&random(seed), false)).collect::<Vec<_>>());
}

/// Hands values around a ring of devices and tells what each holds at the end. Each step sends the value of a device to
/// a second buffer of the next one through the side queue, and takes it over from there in the main queue. One of the
/// four dependencies can be left out.
fn handed_around(devices: &Devices, steps: usize, left_out: Option<usize>) -> Vec<f64> {
    let count = devices.len();
    let held: Vec<_> = (0..count).map(|d| filled(&*devices[d], d as f64)).collect();
    let ghosts: Vec<_> = devices.iter().map(|device| filled(&**device, -1.0)).collect();
    let region = region();
    let wait = |kind: usize, device: usize, queue: QueueId, (other, event): (usize, EventId)| {
        if left_out == Some(kind) {
            return;
        }
        if device == other {
            devices[device].wait(queue, event).unwrap();
        } else {
            devices[device].wait_for_peer(queue, &*devices[other], event).unwrap();
        }
    };
    let mut taken: Vec<_> = (0..count).map(|d| (d, devices[d].signal(MAIN).unwrap())).collect();
    for _ in 0..steps {
        let mut sent = Vec::new();
        for d in 0..count {
            let next = (d + 1) % count;
            wait(0, d, SIDE, taken[d]);
            wait(1, d, SIDE, taken[next]);
            let (from, to) = (place(held[d], &region), place(ghosts[next], &region));
            devices[d].copy_to_peer(SIDE, from, &*devices[next], to).unwrap();
            sent.push((d, devices[d].signal(SIDE).unwrap()));
        }
        for d in 0..count {
            wait(2, d, MAIN, sent[(d + count - 1) % count]);
            wait(3, d, MAIN, sent[d]);
            copy(&*devices[d], MAIN, ghosts[d], held[d]);
            taken[d].1 = devices[d].signal(MAIN).unwrap();
        }
    }
    (0..count).map(|d| value(&*devices[d], MAIN, held[d])).collect()
}

/// What [`handed_around`] must tell.
fn moved(count: usize, steps: usize) -> Vec<f64> {
    (0..count).map(|d| ((d + count * steps - steps) % count) as f64).collect()
}

#[test]
fn values_travel_between_devices_in_every_order_that_the_waits_allow() {
    for options in all() {
        for (count, steps) in [(2, 5), (3, 4), (5, 3)] {
            let devices = open(count, &options);
            assert_eq!(handed_around(&devices, steps, None), moved(count, steps), "{options:?}");
        }
    }
}

#[test]
fn each_wait_is_needed_by_some_order() {
    let orders: Vec<_> = [lazy()].into_iter().chain((0..60).map(random)).collect();
    for left_out in 0..4 {
        let shows = |options: &OpenOptions| handed_around(&open(3, options), 4, Some(left_out)) != moved(3, 4);
        assert!(orders.iter().any(shows), "{left_out}");
    }
}

#[test]
fn several_threads_may_issue_to_devices_that_were_opened_together() {
    for options in all().into_iter().step_by(3) {
        let devices = open(3, &options);
        thread::scope(|scope| {
            for device in &devices {
                scope.spawn(move || {
                    let [a, b, c] = [1.0, 2.0, 3.0].map(|value| filled(&**device, value));
                    for round in 0..60 {
                        // Three values turn: a to c, b to a, c (the old a) to b.
                        copy(&**device, MAIN, a, c);
                        copy(&**device, MAIN, b, a);
                        device.wait(SIDE, device.signal(MAIN).unwrap()).unwrap();
                        copy(&**device, SIDE, c, b);
                        device.wait(MAIN, device.signal(SIDE).unwrap()).unwrap();
                        if round % 20 == 7 {
                            device.finish(MAIN).unwrap();
                        }
                    }
                    assert_eq!([a, b].map(|buffer| value(&**device, MAIN, buffer)), [1.0, 2.0]);
                });
            }
        });
    }
}

#[test]
fn a_failure_stops_its_queue_and_those_that_wait_for_it_and_is_told_once() {
    for options in deferred() {
        let devices = open(2, &options);
        let (first, second) = (&*devices[0], &*devices[1]);
        let [a, b] = [1.0, 2.0].map(|value| filled(first, value));
        let [c, d] = [3.0, 4.0].map(|value| filled(second, value));
        let before = first.signal(MAIN).unwrap();
        launch(first, MAIN, &BROKEN, a, b).unwrap();
        let event = first.signal(MAIN).unwrap();
        // Behind it in the queue, in another queue, in another device and beyond.
        copy(first, MAIN, a, b);
        first.wait(SIDE, event).unwrap();
        copy(first, SIDE, a, b);
        second.wait_for_peer(MAIN, first, event).unwrap();
        copy(second, MAIN, c, d);
        second.wait(SIDE, second.signal(MAIN).unwrap()).unwrap();
        copy(second, SIDE, c, d);
        first.synchronize(before).unwrap();
        assert!(matches!(first.finish(MAIN), Err(Error::Panicked { place, .. }) if place == "`broken`"));
        for (device, queue) in [(first, SIDE), (second, MAIN), (second, SIDE)] {
            let mut data = vec![0; region().bytes()];
            let error = device.read(queue, place(if device.awaits(first) { a } else { c }, &region()), &mut data);
            let Err(Error::Driver { message, .. }) = error else { panic!("{options:?}: {error:?}") };
            assert!(message.contains("what it waits for failed") && message.contains("a broken kernel"), "{message}");
        }
        // Told once, the queues go on, and the event stands for what wasn't done.
        for device in [first, second] {
            [MAIN, SIDE].into_iter().for_each(|queue| device.finish(queue).unwrap());
        }
        assert_eq!([value(first, MAIN, b), value(second, MAIN, d)], [2.0, 4.0]);
        assert!(matches!(first.synchronize(event), Err(Error::Driver { .. })));
        first.synchronize(first.signal(MAIN).unwrap()).unwrap();
        copy(first, MAIN, a, b);
        first.wait(SIDE, first.signal(MAIN).unwrap()).unwrap();
        assert_eq!([value(first, SIDE, b), value(first, MAIN, b)], [1.0, 1.0]);
    }
}

#[test]
fn a_failure_at_issue_is_told_at_once_and_the_queue_goes_on() {
    let devices = open(2, &options(Helpers::Count(0), Order::Eager));
    let (first, second) = (&*devices[0], &*devices[1]);
    let [a, b] = [1.0, 2.0].map(|value| filled(first, value));
    assert!(matches!(launch(first, MAIN, &BROKEN, a, b), Err(Error::Panicked { .. })));
    first.finish(MAIN).unwrap();
    let event = first.signal(MAIN).unwrap();
    copy(first, MAIN, a, b);
    second.wait_for_peer(MAIN, first, event).unwrap();
    assert_eq!(value(first, MAIN, b), 1.0);
}

#[test]
fn memory_lives_as_long_as_operations_that_use_it() {
    for options in all() {
        let devices = open(2, &options);
        let (first, second) = (&*devices[0], &*devices[1]);
        let [a, b] = [5.0, 0.0].map(|value| filled(first, value));
        let c = filled(second, 0.0);
        launch(first, MAIN, &COPY, a, b).unwrap();
        first.copy_to_peer(MAIN, place(b, &region()), second, place(c, &region())).unwrap();
        first.free(a);
        first.free(b);
        let again = first.alloc(&layout()).unwrap();
        second.wait_for_peer(SIDE, first, first.signal(MAIN).unwrap()).unwrap();
        assert_eq!(value(second, SIDE, c), 5.0);
        assert_eq!(value(first, MAIN, again), 0.0);
        assert!(first.copy(MAIN, place(b, &region()), place(again, &region())).is_err());
    }
}

#[test]
fn a_device_that_is_dropped_finishes_what_others_wait_for() {
    for options in all() {
        let mut devices = open(2, &options);
        let (second, first) = (devices.pop().unwrap(), devices.pop().unwrap());
        let [a, b] = [5.0, 0.0].map(|value| filled(&*first, value));
        let [c, d] = [0.0, 0.0].map(|value| filled(&*second, value));
        launch(&*first, MAIN, &COPY, a, b).unwrap();
        first.copy_to_peer(MAIN, place(b, &region()), &*second, place(c, &region())).unwrap();
        second.wait_for_peer(MAIN, &*first, first.signal(MAIN).unwrap()).unwrap();
        copy(&*second, MAIN, c, d);
        drop(first);
        assert_eq!(value(&*second, MAIN, d), 5.0, "{options:?}");
        copy(&*second, SIDE, c, d);
    }
}

#[test]
fn spans_tell_when_operations_ran() {
    for options in all() {
        let devices = open(2, &options);
        let (first, second) = (&*devices[0], &*devices[1]);
        let [a, b] = [1.0, 2.0].map(|value| filled(first, value));
        let c = filled(second, 3.0);
        launch(first, MAIN, &COPY, a, b).unwrap();
        let events = [first.signal(MAIN).unwrap(), {
            first.copy_to_peer(MAIN, place(b, &region()), second, place(c, &region())).unwrap();
            first.signal(MAIN).unwrap()
        }];
        second.wait_for_peer(SIDE, first, events[1]).unwrap();
        copy(second, SIDE, c, c);
        let last = second.signal(SIDE).unwrap();
        if options.order == Order::Lazy {
            assert_eq!(first.span(events[0]).unwrap(), None);
        }
        second.synchronize(last).unwrap();
        let spans =
            [first.span(events[0]), first.span(events[1]), second.span(last)].map(|span| span.unwrap().unwrap());
        assert!(spans.iter().all(|span| span.start <= span.end), "{spans:?}");
        assert!(spans.windows(2).all(|pair| pair[0].end <= pair[1].start), "{spans:?}");
    }
    let plain = OpenOptions { trace: false, ..options(Helpers::Devices, Order::Eager) };
    let devices = open(1, &plain);
    let a = filled(&*devices[0], 1.0);
    copy(&*devices[0], MAIN, a, a);
    let event = devices[0].signal(MAIN).unwrap();
    devices[0].synchronize(event).unwrap();
    assert_eq!(devices[0].span(event).unwrap(), None);
}

#[test]
fn boxes_travel_through_staging_memory_in_every_order() {
    for options in all() {
        let devices = open(2, &options);
        let (first, second) = (&*devices[0], &*devices[1]);
        let [a, b] = [7.0, 0.0].map(|value| filled(first, value));
        let c = filled(second, 0.0);
        let (region, at) = (region(), 64);
        let staging = first.staging(region.bytes() + at).unwrap();
        assert_eq!((staging.bytes(), staging.start().align_offset(4096)), (region.bytes() + at, 0));
        launch(first, MAIN, &COPY, a, b).unwrap();
        first.download(MAIN, place(b, &region), &staging, at).unwrap();
        second.wait_for_peer(SIDE, first, first.signal(MAIN).unwrap()).unwrap();
        second.upload(SIDE, &staging, at, place(c, &region)).unwrap();
        assert!(first.download(MAIN, place(b, &region), &staging, at + 1).is_err());
        assert!(second.upload(SIDE, &staging, usize::MAX, place(c, &region)).is_err());
        drop(staging);
        assert_eq!(value(second, SIDE, c), 7.0);
    }
}

#[test]
fn devices_know_those_that_they_were_opened_with() {
    let [ours, others] = [(); 2].map(|()| open(2, &options(Helpers::Auto, Order::Eager)));
    let (first, second, other) = (&*ours[0], &*ours[1], &*others[0]);
    let reference = Reference.open_one(0, &OpenOptions::default()).unwrap();
    assert!(first.awaits(second) && first.awaits(first) && first.reaches(second).is_ok());
    let a = filled(first, 1.0);
    for stranger in [other, &*reference] {
        assert!(!first.awaits(stranger) && first.reaches(stranger).unwrap_err().contains("not opened together"));
        let b = stranger.alloc(&layout()).unwrap();
        let (region, event) = (region(), stranger.signal(MAIN).unwrap());
        assert!(first.copy_to_peer(MAIN, place(a, &region), stranger, place(b, &region)).is_err());
        first.wait_for_peer(MAIN, stranger, event).unwrap();
    }
}

#[test]
fn events_that_the_device_did_not_give_are_refused() {
    for options in all().into_iter().rev().take(2).chain([lazy()]) {
        let devices = open(2, &options);
        let a = filled(&*devices[0], 1.0);
        copy(&*devices[0], MAIN, a, a);
        let event = devices[0].signal(MAIN).unwrap();
        for unknown in [EventId(event.0 + 1), EventId(u64::MAX), EventId(1 << 48)] {
            assert!(devices[0].wait(MAIN, unknown).is_err());
            assert!(devices[0].synchronize(unknown).is_err());
            assert!(devices[0].span(unknown).is_err());
            assert!(devices[1].wait_for_peer(MAIN, &*devices[0], unknown).is_err());
        }
        devices[0].synchronize(event).unwrap();
    }
}

#[test]
fn a_box_of_points_goes_through_helpers_whatever_its_size() {
    // More than is copied for a write that doesn't wait.
    let cells = [300, 64, 3];
    let extent = Extent::new(cells).unwrap();
    let layout = Layout::new(ScalarType::F64, WHOLE, extent.whole(), Strides::for_cells(cells, 8).unwrap()).unwrap();
    let region = layout.region(&Box3 { lo: [0; 3], hi: cells.map(|n| n as i64) }).unwrap();
    for options in all() {
        let devices = open(1, &options);
        let device = &*devices[0];
        let (a, b) = (device.alloc(&layout).unwrap(), device.alloc(&layout).unwrap());
        for round in 1..4_u8 {
            let mut data = vec![round; region.bytes()];
            device.write(MAIN, place(a, &region), &data).unwrap();
            device.copy(MAIN, place(a, &region), place(b, &region)).unwrap();
            data.fill(0);
            device.read(MAIN, place(b, &region), &mut data).unwrap();
            assert!(data.iter().all(|&byte| byte == round));
        }
    }
}
