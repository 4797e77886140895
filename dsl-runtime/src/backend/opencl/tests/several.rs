//! Several devices: parts of one, devices of one platform, and devices that share nothing.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::machine::run_again;
use super::*;
use crate::backend::Staging;
use crate::backend::host::Host;
use crate::clock;

/// Values along a line, for copies of pieces.
struct Line {
    buffer: BufferId,
}

impl Line {
    fn new(device: &dyn Device, values: &[f64]) -> Self {
        let buffer = device.alloc(&Layout::linear(ScalarType::F64, values.len()).unwrap()).unwrap();
        let line = Self { buffer };
        device.write(QueueId::COMPUTE, line.at(&piece(0, values.len())), &bytes_of(values)).unwrap();
        line
    }

    fn values(&self, device: &dyn Device, count: usize) -> Vec<f64> {
        let mut bytes = vec![0; count * 8];
        device.read(QueueId::COMPUTE, self.at(&piece(0, count)), &mut bytes).unwrap();
        values_of(&bytes)
    }

    fn at<'a>(&self, region: &'a Region) -> Place<'a> {
        Place { buffer: self.buffer, region }
    }
}

/// A piece of a line.
fn piece(number: usize, values: usize) -> Region {
    Region::run(number * values * 8, values * 8)
}

/// Sends the pieces of `source` on `here` one after the other through a single piece of memory on `there` back to
/// `result` on `here`, without the host if the two share a context: a piece that comes too early or too late is wrong.
pub(super) fn check_rally(
    here: &dyn Device,
    there: &dyn Device,
    pieces: usize,
    values: usize,
    through: Option<&Arc<Staging>>,
) {
    let (count, q) = (pieces * values, QueueId::COMPUTE);
    let data = noise(count, 31);
    let (source, result) = (Line::new(here, &data), Line::new(here, &vec![0.0; count]));
    let middle = Line::new(there, &vec![0.0; values]);
    let slot = piece(0, values);
    [here, there].iter().for_each(|device| device.finish(q).unwrap());
    for number in 0..pieces {
        let part = piece(number, values);
        let Some(staging) = through else {
            here.copy_to_peer(q, source.at(&part), there, middle.at(&slot)).unwrap();
            there.wait_for_peer(q, here, here.signal(q).unwrap()).unwrap();
            there.copy_to_peer(q, middle.at(&slot), here, result.at(&part)).unwrap();
            here.wait_for_peer(q, there, there.signal(q).unwrap()).unwrap();
            continue;
        };
        here.download(q, source.at(&part), staging, 8).unwrap();
        there.wait_for_peer(q, here, here.signal(q).unwrap()).unwrap();
        there.upload(q, staging, 8, middle.at(&slot)).unwrap();
        there.download(q, middle.at(&slot), staging, 8 + slot.bytes()).unwrap();
        here.wait_for_peer(q, there, there.signal(q).unwrap()).unwrap();
        here.upload(q, staging, 8 + slot.bytes(), result.at(&part)).unwrap();
        // The next piece goes through the same memory.
        there.wait_for_peer(q, here, here.signal(q).unwrap()).unwrap();
    }
    here.synchronize(here.signal(q).unwrap()).unwrap();
    assert!(result.values(here, count) == data, "{} and {}", here.summary(), there.summary());
    [source, result].iter().for_each(|line| here.free(line.buffer));
    there.free(middle.buffer);
}

/// Both ways of a transfer, in both directions, with pieces so small that the calls take longer and so large that the
/// work does.
pub(super) fn check_exchange(here: &dyn Device, there: &dyn Device) {
    for (pieces, values) in [(200, 5), (40, 1 << 14)] {
        for (here, there) in [(here, there), (there, here)] {
            let staging = here.staging(2 * values * 8 + 8).unwrap();
            check_rally(here, there, pieces, values, Some(&staging));
            if here.reaches(there).is_ok() {
                check_rally(here, there, pieces, values, None);
            }
        }
    }
}

fn check_each_computes(devices: &[OpenClDevice]) {
    for device in devices {
        let kernel = device.load(&HEAT).unwrap();
        for n in [[1, 1, 1], [65, 5, 4], [17, 33, 9]] {
            check_heat(device, kernel, n, true);
        }
    }
}

#[test]
fn parts_of_a_device_compute_and_exchange_boxes() {
    on_each_platform(|found, all| {
        let units = found.facts.info.units as usize;
        let count = units.min(2);
        let parts = open_parts(found, all, count, false);
        assert_eq!(parts.iter().map(|part| part.info().units as usize).sum::<usize>(), units);
        if count == 2 {
            assert!(parts[1].info().name.ends_with(", part 2 of 2"), "{}", parts[1].summary());
        }
        check_each_computes(&parts);
        for other in &parts[1..] {
            assert!(parts[0].awaits(other));
            assert_eq!(parts[0].reaches(other), Ok(()));
            check_exchange(&parts[0], other);
        }
    });
}

#[test]
fn boxes_of_fields_arrive_where_they_belong_on_a_peer() {
    let n = [13, 7, 5];
    let strides = Strides::for_cells(n.map(|n| n + 2), 8).unwrap();
    let layout = layout(n, 1, strides);
    on_each_platform(|found, all| {
        let parts = open_parts(found, all, 2, false);
        for (axis, cells) in n.into_iter().enumerate() {
            let (mut low, mut high) = (Box3 { lo: [0; 3], hi: [13, 7, 5] }, Box3 { lo: [0; 3], hi: [13, 7, 5] });
            (low.lo[axis], low.hi[axis]) = (-1, 0);
            (high.lo[axis], high.hi[axis]) = (cells as i64 - 1, cells as i64);
            let (from, to) = (layout.region(&high).unwrap(), layout.region(&low).unwrap());
            let (values, mut model) = (noise(layout.bytes / 8, 11), noise(layout.bytes / 8, 12));
            let source = Field::new(&parts[0], layout, Some(&values));
            let targets: Vec<_> = (0..2).map(|_| Field::new(&parts[1], layout, Some(&model))).collect();
            for (row, there) in from.row_starts().zip(to.row_starts()) {
                let row_cells = from.row_bytes / 8;
                model[there / 8..there / 8 + row_cells].copy_from_slice(&values[row / 8..row / 8 + row_cells]);
            }
            let q = QueueId(3);
            parts[0].synchronize(parts[0].signal(QueueId::COMPUTE).unwrap()).unwrap();
            parts[1].synchronize(parts[1].signal(QueueId::COMPUTE).unwrap()).unwrap();
            let here = Place { buffer: source.buffer, region: &from };
            parts[0].copy_to_peer(q, here, &parts[1], Place { buffer: targets[0].buffer, region: &to }).unwrap();
            let staging = parts[1].staging(from.bytes()).unwrap();
            parts[0].download(q, here, &staging, 0).unwrap();
            parts[1].wait_for_peer(QueueId::COMPUTE, &parts[0], parts[0].signal(q).unwrap()).unwrap();
            let there = Place { buffer: targets[1].buffer, region: &to };
            parts[1].upload(QueueId::COMPUTE, &staging, 0, there).unwrap();
            for target in &targets {
                assert!(target.values(&parts[1]) == model, "axis {axis} of {}", parts[1].summary());
            }
        }
    });
}

#[test]
fn a_device_with_too_few_units_is_shared_and_says_so() {
    on_each_platform(|found, all| {
        let count = found.facts.info.units as usize + 1;
        let devices = open_parts(found, all, count, false);
        assert_eq!(devices.len(), count);
        for device in &devices {
            assert_eq!(device.info().units, found.facts.info.units);
            assert!(device.summary().contains("as it can't be split: it has"), "{}", device.summary());
            assert!(device.info().notes.iter().any(|note| note.contains("share all of it")));
        }
        check_each_computes(&devices[..2]);
        check_exchange(&devices[0], &devices[count - 1]);
    });
}

#[test]
fn a_device_may_be_open_whole_and_in_parts_of_different_numbers_at_once() {
    on_each_platform(|found, all| {
        let alone = open(found, all, OpenClForm::Source, None);
        let parts = open_parts(found, all, 2, false);
        let shares = open_parts(found, all, 3, false);
        let again = open_parts(found, all, 2, false);
        assert!(again[0].shares_context(&parts[1]), "the same parts are used again");
        check_each_computes(std::slice::from_ref(&alone));
        check_each_computes(&shares[2..]);
        drop(parts);
        check_each_computes(&again);
        check_exchange(&again[0], &shares[0]);
        // Memory is counted for all of them together.
        let layout = Layout::linear(ScalarType::F64, 1 << 20).unwrap();
        let tight = Found {
            facts: Facts {
                info: DeviceInfo { memory_bytes: 6 << 20, ..found.facts.info.clone() },
                ..found.facts.clone()
            },
            ..found.clone()
        };
        let held = again[1].alloc(&layout).unwrap();
        let refused = open(&tight, all, OpenClForm::Source, None).alloc(&layout);
        assert!(matches!(refused, Err(Error::OutOfMemory { .. })), "{refused:?}");
        again[1].free(held);
    });
}

#[test]
fn devices_are_opened_and_closed_many_times() {
    on_each_platform(|found, all| {
        for round in 0..20 {
            let parts = open_parts(found, all, 2, round % 2 == 0);
            check_rally(&parts[0], &parts[1], 3, 100, None);
        }
    });
}

#[test]
fn platforms_share_nothing_and_exchange_through_the_host() {
    let (Some((pocl, all)), Some((intel, _))) =
        (platform("pocl", "Portable Computing Language"), platform("intel", "Intel"))
    else {
        return;
    };
    let ordinals = [&pocl, &intel, &pocl].map(|found| found.facts.info.ordinal);
    let devices = OpenCl.open(&ordinals, &OpenOptions::default()).unwrap();
    let found: Vec<_> = devices.iter().map(|device| device.info().ordinal).collect();
    assert_eq!(found, ordinals);
    assert!(devices[0].awaits(&*devices[2]) && devices[0].reaches(&*devices[2]).is_ok());
    for (here, there) in [(0, 1), (1, 2)] {
        let (here, there) = (&*devices[here], &*devices[there]);
        assert!(!here.awaits(there));
        let reason = here.reaches(there).unwrap_err();
        let platforms = [&pocl, &intel].map(|found| &found.facts.info.platform);
        assert!(platforms.iter().all(|&platform| reason.contains(platform)), "{reason}");
        let (source, target) = (Line::new(here, &[1.0]), Line::new(there, &[2.0]));
        let part = piece(0, 1);
        let refused = here.copy_to_peer(QueueId::COMPUTE, source.at(&part), there, target.at(&part));
        assert!(matches!(&refused, Err(Error::Driver { call, .. }) if call == "copy_to_peer"), "{refused:?}");
        check_exchange(here, there);
    }
    drop(all);
}

#[test]
fn host_devices_and_opencl_devices_exchange_through_the_memory_of_either() {
    on_each_platform(|found, all| {
        let device = open(found, all, OpenClForm::Source, None);
        let host = Host.open_one(0, &OpenOptions::default()).unwrap();
        assert!(!device.awaits(&*host) && !host.awaits(&device));
        let reason = device.reaches(&*host).unwrap_err();
        assert!(reason.contains("host") && reason.contains(&found.facts.info.platform), "{reason}");
        check_exchange(&device, &*host);
    });
}

#[test]
fn staging_memory_is_zero_whole_and_outlives_its_device() {
    on_each_platform(|found, all| {
        let device = open(found, all, OpenClForm::Source, None);
        for bytes in [0, 1, 4097, 1 << 20] {
            let staging = device.staging(bytes).unwrap();
            assert_eq!(staging.bytes(), bytes);
            // SAFETY: nothing else uses the memory.
            let part = unsafe { &mut *staging.part(0, bytes).unwrap() };
            assert!(part.iter().all(|&byte| byte == 0));
            part.fill(7);
        }
        let (staging, data) = (device.staging(64).unwrap(), noise(8, 3));
        let line = Line::new(&device, &data);
        device.download(QueueId::COMPUTE, line.at(&piece(0, 8)), &staging, 0).unwrap();
        // What leaves the memory is refused, and nothing takes no room.
        for at in [1, usize::MAX] {
            assert!(device.download(QueueId::COMPUTE, line.at(&piece(0, 8)), &staging, at).is_err());
            assert!(device.upload(QueueId::COMPUTE, &staging, at, line.at(&piece(0, 8))).is_err());
        }
        device.upload(QueueId::COMPUTE, &staging, 64, line.at(&piece(0, 0))).unwrap();
        drop(device);
        // SAFETY: dropping the device waited for its work.
        assert_eq!(values_of(unsafe { &*staging.part(0, 64).unwrap() }), data);
    });
}

#[test]
fn events_are_known_to_their_device_only() {
    on_each_platform(|found, all| {
        let parts = open_parts(found, all, 2, false);
        for event in [EventId(0), EventId(1), EventId(u64::MAX)] {
            assert!(parts[0].wait(QueueId(0), event).is_err());
            assert!(parts[0].synchronize(event).is_err());
            assert!(parts[0].wait_for_peer(QueueId(0), &parts[1], event).is_err());
        }
        let event = parts[1].signal(QueueId(0)).unwrap();
        parts[0].wait_for_peer(QueueId(0), &parts[1], event).unwrap();
        assert!(parts[0].synchronize(event).is_err());
        for _ in 0..100 {
            parts[1].synchronize(parts[1].signal(QueueId(0)).unwrap()).unwrap();
        }
        parts[1].synchronize(event).unwrap();
        parts[0].wait_for_peer(QueueId(0), &parts[1], event).unwrap();
        assert_eq!(parts[1].span(event).unwrap(), None, "it doesn't trace");
    });
}

#[test]
fn spans_follow_one_another_as_the_events_order_them() {
    on_each_platform(|found, all| {
        let before = clock::now();
        let device = &open_parts(found, all, 1, true)[0];
        let count = 1 << 16;
        let lines = [Line::new(device, &noise(count, 1)), Line::new(device, &noise(count, 2))];
        let (whole, nothing) = (piece(0, count), device.signal(QueueId(9)).unwrap());
        let mut events = Vec::new();
        for turn in 0..20 {
            let (queue, next) = (QueueId(turn % 2), QueueId((turn + 1) % 2));
            let (from, to) = (&lines[turn as usize % 2], &lines[(turn as usize + 1) % 2]);
            device.copy(queue, from.at(&whole), to.at(&whole)).unwrap();
            let event = device.signal(queue).unwrap();
            device.wait(next, event).unwrap();
            events.push(event);
        }
        (0..2).for_each(|queue| device.finish(QueueId(queue)).unwrap());
        let after = clock::now();
        device.synchronize(nothing).unwrap();
        assert_eq!(device.span(nothing).unwrap(), None, "nothing was done there");
        let spans: Vec<_> = events.iter().map(|&event| device.span(event).unwrap().unwrap()).collect();
        assert!(spans.iter().all(|span| span.start <= span.end), "{spans:?}");
        assert!(spans.windows(2).all(|pair| pair[0].end <= pair[1].start), "{spans:?}");
        // The clocks are compared as well as the system lets a thread ask two of them at once.
        let doubt = std::time::Duration::from_millis(500);
        assert!(spans[0].start + doubt > before && spans[19].end < after + doubt, "{before:?} {spans:?} {after:?}");
    });
}

#[test]
fn a_device_of_many_units_is_split_into_parts_that_are_not_alike() {
    if platform("pocl", "Portable Computing Language").is_none() {
        return;
    }
    let text = run_again("several::any_number_of_parts_computes", |command| {
        command.env("POCL_MAX_PTHREAD_COUNT", "8");
    });
    assert!(text.contains("units [3, 3, 2]") && text.contains("units [1, 1, 1, 1, 1, 1, 1, 1]"), "{text}");
}

/// The child of the test above.
#[test]
fn any_number_of_parts_computes() {
    on_each_platform(|found, all| {
        for count in [1, 3, 8] {
            let parts = open_parts(found, all, count, false);
            println!("units {:?}", parts.iter().map(|part| part.info().units).collect::<Vec<_>>());
            check_each_computes(&parts);
            (1..count).for_each(|part| check_rally(&parts[part - 1], &parts[part], 5, 1000, None));
        }
    });
}

/// One of two threads that each drive a device and send each other all pieces of `data`: what it got.
fn correspond(
    devices: (&dyn Device, &dyn Device),
    lines: [&Line; 3],
    theirs: &Line,
    post: (&Sender<EventId>, &Receiver<EventId>),
    (pieces, values): (usize, usize),
) -> Vec<f64> {
    let ((own, other), (send, receive)) = (devices, post);
    let ([data, inbox, log], slot) = (lines, piece(0, values));
    let (compute, exchange) = (QueueId::COMPUTE, QueueId(1));
    let kernel = own.load(&HEAT).unwrap();
    for number in 0..pieces {
        let part = piece(number, values);
        own.copy_to_peer(exchange, data.at(&part), other, theirs.at(&slot)).unwrap();
        send.send(own.signal(exchange).unwrap()).unwrap();
        own.wait_for_peer(compute, other, receive.recv().unwrap()).unwrap();
        own.copy(compute, inbox.at(&slot), log.at(&part)).unwrap();
        send.send(own.signal(compute).unwrap()).unwrap();
        own.wait_for_peer(exchange, other, receive.recv().unwrap()).unwrap();
    }
    check_heat(own, kernel, [17, 5, 3], true);
    log.values(own, pieces * values)
}

#[test]
fn threads_drive_parts_side_by_side() {
    on_each_platform(|found, all| {
        for (pieces, values) in [(200, 7), (50, 1 << 14)] {
            let parts = open_parts(found, all, 2, pieces == 50);
            let data = [1, 2].map(|seed| noise(pieces * values, seed));
            let sources = [0, 1].map(|part| Line::new(&parts[part], &data[part]));
            let inboxes = [0, 1].map(|part| Line::new(&parts[part], &vec![0.0; values]));
            let logs = [0, 1].map(|part| Line::new(&parts[part], &vec![0.0; pieces * values]));
            parts.iter().for_each(|part| part.finish(QueueId::COMPUTE).unwrap());
            let ((to_second, from_first), (to_first, from_second)) = (channel(), channel());
            let run = |part: usize, send: Sender<EventId>, receive: Receiver<EventId>| {
                let (own, other) = (&parts[part], &parts[1 - part]);
                let lines = [&sources[part], &inboxes[part], &logs[part]];
                correspond((own, other), lines, &inboxes[1 - part], (&send, &receive), (pieces, values))
            };
            let found = thread::scope(|scope| {
                let run = &run;
                let second = scope.spawn(move || run(1, to_first, from_first));
                [run(0, to_second, from_second), second.join().unwrap()]
            });
            assert!(found[0] == data[1] && found[1] == data[0], "{}", parts[0].summary());
        }
    });
}
