//! How fast bytes travel: between host and device, from pinned and pageable memory, and from device to device.

use std::sync::Arc;
use std::time::Instant;

use polyhalo::backend::{BufferId, Device, Place, QueueId, Staging};
use polyhalo::devices;
use polyhalo::geometry::Box3;
use polyhalo::kernel::ScalarType;
use polyhalo_bench::table::markdown;
use polyhalo_runtime::layout::{Layout, Region};
use serde_json::{Value, json};

use crate::{Options, Outcome, Section};

/// The least transfer; each next one is four times as large.
const LEAST: usize = 4 << 10;

/// About how long transfers of a size are repeated.
const SECONDS: f64 = 0.02;

/// A buffer of a device that is given back in the end.
struct Buffer<'a> {
    device: &'a dyn Device,
    id: BufferId,
}

impl<'a> Buffer<'a> {
    fn new(device: &'a dyn Device, bytes: usize) -> Outcome<Self> {
        let layout = Layout::linear(ScalarType::U8, bytes)?;
        Ok(Self { device, id: device.alloc(&layout)? })
    }

    fn place<'r>(&self, region: &'r Region) -> Place<'r> {
        Place { buffer: self.id, region }
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        self.device.free(self.id);
    }
}

/// Bytes per second of the best of some transfers, each waited for.
fn rate(device: &dyn Device, bytes: usize, transfer: impl Fn() -> polyhalo::Result<()>) -> Outcome<f64> {
    let start = Instant::now();
    let mut best = f64::INFINITY;
    let mut count = 0;
    while count < 3 || (count < 200 && start.elapsed().as_secs_f64() < SECONDS) {
        let began = Instant::now();
        transfer()?;
        device.finish(QueueId::COMPUTE)?;
        best = best.min(began.elapsed().as_secs_f64());
        count += 1;
    }
    Ok(bytes as f64 / best)
}

pub(crate) fn transfers(options: &Options) -> Outcome<Section> {
    let opened = devices::find(&format!("{}:1x2", options.devices), &[])?.open(&Default::default())?;
    let (device, other) = (&*opened[0], &*opened[1]);
    let queue = QueueId::COMPUTE;
    let (from, to) = (Buffer::new(device, options.largest)?, Buffer::new(other, options.largest)?);
    let within = Buffer::new(device, options.largest)?;
    let pinned = device.staging(options.largest)?;
    let pageable = Arc::new(Staging::pageable(options.largest, device.home()));
    let whole = Layout::linear(ScalarType::U8, options.largest)?;
    let (mut rows, mut all): (_, Vec<Value>) = (Vec::new(), Vec::new());
    let mut bytes = LEAST;
    while bytes <= options.largest {
        let part = Box3 { lo: [0; 3], hi: [bytes as i64, 1, 1] };
        let region = whole.region(&part).ok_or("a transfer is larger than its buffer")?;
        let up = |memory: &Arc<Staging>| rate(device, bytes, || device.upload(queue, memory, 0, from.place(&region)));
        let down =
            |memory: &Arc<Staging>| rate(device, bytes, || device.download(queue, from.place(&region), memory, 0));
        let mut rates = vec![up(&pinned)?, down(&pinned)?, up(&pageable)?, down(&pageable)?];
        rates.push(rate(device, bytes, || device.copy(queue, from.place(&region), within.place(&region)))?);
        let reaches = device.reaches(other).is_ok();
        let sent = || device.copy_to_peer(queue, from.place(&region), other, to.place(&region));
        rates.push(if reaches { rate(device, bytes, sent)? } else { f64::NAN });
        let size = if bytes < 1 << 20 { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes >> 20) };
        let speeds = rates.iter().map(|rate| if rate.is_nan() { "-".into() } else { format!("{:.2}", rate / 1e9) });
        rows.push([size].into_iter().chain(speeds).collect());
        let names =
            ["upload_pinned", "download_pinned", "upload_pageable", "download_pageable", "copy", "copy_to_share"];
        let mut entry = json!({ "bytes": bytes });
        for (name, rate) in names.iter().zip(&rates) {
            entry[*name] = if rate.is_nan() { Value::Null } else { json!(rate) };
        }
        all.push(entry);
        bytes *= 4;
    }
    let head = [
        "size",
        "host to device, pinned",
        "device to host, pinned",
        "host to device, pageable",
        "device to host, pageable",
        "within a device",
        "to another subdomain",
    ];
    let table = markdown(&head, &rows);
    let markdown = format!("## Transfers, GB/s (bytes that arrive; the best, each waited for)\n\n{table}");
    Ok(Section { name: "transfers", json: Value::Array(all), markdown, passed: true })
}
