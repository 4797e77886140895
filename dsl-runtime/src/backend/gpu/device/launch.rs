//! Launches: which form of a kernel in which shape, and how shapes are measured.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::arguments::{self, Arguments};
use super::card::{Buffer, OwnEvent};
use super::kept;
use super::lane::{Kept, Lane};
use super::load::{Chosen, Kernel};
use super::shapes;
use super::{GpuDevice, locked};
use crate::backend::gpu::driver::{Called, Failure, Kind, Stream};
use crate::backend::gpu::options::{Shape, Tune};
use crate::backend::{Launch, QueueId};
use crate::error::{Error, Result};
use crate::geometry::Box3;

/// The points of a launch from which on its shape is worth measuring.
const LARGE: u64 = 1 << 20;

/// How often a shape is measured, after it has run once.
const ROUNDS: usize = 3;

/// A launch that was checked.
struct Job<'a> {
    kernel: &'a Kernel,
    buffers: &'a [Arc<Buffer>],
    arguments: Arguments,
    range: Box3,
    may_be_narrow: bool,
}

impl GpuDevice {
    /// Enqueues a kernel.
    pub(super) fn launch_on(&self, queue: QueueId, launch: &Launch<'_>) -> Result<()> {
        let kernel = locked(&self.kernels).get(launch.kernel.0 as usize).cloned();
        let Some(kernel) = kernel else {
            return Err(self.misuse("launch", format!("there is no kernel {}", launch.kernel.0)));
        };
        if launch.range.is_empty() {
            return Ok(());
        }
        let desc = kernel.desc;
        let buffers = self.launch_buffers(&kernel, launch)?;
        if !arguments::fits(&launch.range) {
            let name = desc.name;
            return Err(
                self.misuse("launch", format!("`{name}` over {}: a coordinate has more than 31 bits", launch.range))
            );
        }
        let layouts: Vec<_> = buffers.iter().map(|buffer| buffer.layout).collect();
        let job = Job {
            kernel: &kernel,
            buffers: &buffers,
            arguments: Arguments::new(desc, launch, buffers.iter().map(|buffer| buffer.address)),
            range: launch.range,
            may_be_narrow: !self.gpu.wide && arguments::may_be_narrow(desc, launch.strides, &launch.range, &layouts),
        };
        let Some(default) = kernel.default(job.may_be_narrow, launch.range.size()) else {
            return Err(Error::Unsupported {
                device: self.info.to_string(),
                kernel: desc.name.to_owned(),
                reason: match desc.code.gpu {
                    [] => "there is no form of it for GPUs".into(),
                    _ => "there is no form of it with indices of 64 bits, which a grid as large as this needs".into(),
                },
            });
        };
        let lane = self.lane(queue)?;
        let done = match self.shape(&job) {
            Some(shape) => job.enqueue(&lane, shape),
            None if launch.range.points() < LARGE || self.gpu.tune == Tune::Never => job.enqueue(&lane, default),
            // What is recorded isn't done.
            None if lane.recording().is_some() => {
                let known = self.known(&kernel).filter(|shape| kernel.takes(shape, job.may_be_narrow));
                job.enqueue(&lane, known.unwrap_or(default))
            }
            None => self.tuned(&lane, (job, launch), default),
        };
        done.map_err(|failure| self.driver(failure))
    }

    /// The buffers of a launch, results first, if the kernel can't leave them.
    fn launch_buffers(&self, kernel: &Kernel, launch: &Launch<'_>) -> Result<Vec<Arc<Buffer>>> {
        let all = || launch.outputs.iter().chain(launch.fields);
        let buffers: Vec<_> = all().map(|cells| self.buffer("launch", cells.buffer)).collect::<Result<_>>()?;
        let layouts: BTreeMap<_, _> =
            all().zip(&buffers).map(|(cells, buffer)| (cells.buffer, buffer.layout)).collect();
        let checked = launch.check(kernel.desc, |buffer| layouts.get(&buffer).copied());
        checked.map(|()| buffers).map_err(|message| self.misuse("launch", message))
    }

    /// The shape that was asked for, or that is known to be good for large boxes if this is one.
    fn shape(&self, job: &Job<'_>) -> Option<Shape> {
        let takes = |shape: &Shape| job.kernel.takes(shape, job.may_be_narrow);
        let chosen = || job.kernel.chosen().filter(|_| job.range.points() >= LARGE).map(|chosen| chosen.shape);
        self.gpu.shape.filter(takes).or_else(|| chosen().filter(takes))
    }

    /// The shape that was found by another program, which is then the kernel's, if there is one.
    fn known(&self, kernel: &Kernel) -> Option<Shape> {
        if self.gpu.tune != Tune::Once {
            return None;
        }
        let shape = kernel.kept()?;
        kernel.choose(Chosen { shape, how: "as measured before".into() });
        Some(shape)
    }

    /// Does a launch, after which the shape of the kernel is known. It is measured by doing the launch over and over again,
    /// which changes nothing of what is computed: an update in place writes elsewhere meanwhile.
    fn tuned(&self, lane: &Arc<Lane>, (mut job, launch): (Job<'_>, &Launch<'_>), default: Shape) -> Called<()> {
        let _alone = locked(&self.card.tuning);
        // Another device that shares the card may have been faster.
        if let Some(shape) = self.shape(&job).or_else(|| self.known(job.kernel)) {
            let shape = if job.kernel.takes(&shape, job.may_be_narrow) { shape } else { default };
            return job.enqueue(lane, shape);
        }
        let (kernel, may_be_narrow) = (job.kernel, job.may_be_narrow);
        let limits = |walk| {
            let form = kernel.form(walk, may_be_narrow).expect("the kernel walks like that");
            kernel.limits(form)
        };
        let candidates = shapes::candidates(&kernel.walks(may_be_narrow), job.range.size(), limits);
        if candidates.len() < 2 {
            let shape = candidates.first().copied().unwrap_or(default);
            kernel.choose(Chosen { shape, how: "as the only one that fits".into() });
            return job.enqueue(lane, shape);
        }
        let is_in_place = launch.is_in_place();
        let measured = match is_in_place {
            false => measure(lane, &mut job, &candidates)?,
            true => match self.aside(&job, launch) {
                Ok(buffers) => {
                    let arguments = Arguments::new(kernel.desc, launch, buffers.iter().map(|buffer| buffer.address));
                    let mut aside = Job { kernel, buffers: &buffers, arguments, range: job.range, may_be_narrow };
                    measure(lane, &mut aside, &candidates)?
                }
                Err(failure) => Err(failure),
            },
        };
        let chosen = match measured {
            Ok(shape) => {
                kept::keep(&self.card, kernel.desc, shape);
                Chosen { shape, how: "as measured".into() }
            }
            Err(failure) => Chosen { shape: default, how: format!("by default, as {} gave {failure}", failure.call) },
        };
        let shape = chosen.shape;
        kernel.choose(chosen);
        if is_in_place { job.enqueue(lane, shape) } else { Ok(()) }
    }

    /// The buffers of a launch with others in the place of the results'.
    fn aside(&self, job: &Job<'_>, launch: &Launch<'_>) -> Called<Vec<Arc<Buffer>>> {
        let results = launch.outputs.len();
        let others = job.buffers[..results].iter().map(|buffer| Buffer::new(&self.card, &buffer.layout).map(Arc::new));
        others.chain(job.buffers[results..].iter().map(|buffer| Ok(buffer.clone()))).collect()
    }
}

impl Job<'_> {
    fn enqueue(mut self, lane: &Arc<Lane>, shape: Shape) -> Called<()> {
        lane.enqueue(self.buffers, Kept::Nothing, |stream| self.launch(lane, stream, shape))
    }

    fn launch(&mut self, lane: &Lane, stream: Stream, shape: Shape) -> Called<()> {
        let form = self.kernel.form(shape.walk, self.may_be_narrow).expect("the shape is one of the kernel's");
        for (part, grid) in shapes::pieces(shape, lane.card.facts.grid, self.range) {
            self.arguments.set(&part);
            let (number, mut pointers) = (lane.card.number(), self.arguments.pointers());
            // SAFETY: the arguments are those of the kernel, and `launch_buffers` compared what it reads and writes with what
            // the buffers hold, which live until the lane is done with them.
            unsafe {
                lane.card.driver.launch(number, stream, form.function, grid, shape.block, &mut pointers)?;
            }
        }
        Ok(())
    }
}

/// Does a launch in several shapes. The one that took least time, or why the times aren't known; at least one has been done
/// then.
fn measure(lane: &Arc<Lane>, job: &mut Job<'_>, candidates: &[Shape]) -> Called<Called<Shape>> {
    let event = || lane.card.event(true);
    let mut times: Vec<(Shape, [OwnEvent; 2])> = Vec::new();
    let mut refused = Vec::new();
    let buffers = job.buffers;
    lane.enqueue(buffers, Kept::Nothing, |stream| {
        for round in 0..=ROUNDS {
            for &shape in candidates {
                if refused.contains(&shape) {
                    continue;
                }
                let ends = [event()?, event()?];
                ends[0].record(stream)?;
                match job.launch(lane, stream, shape) {
                    Ok(()) => {}
                    // A shape that the driver doesn't like after all; but the last of them must do.
                    Err(failure) if failure.kind != Kind::Lost && refused.len() + 1 < candidates.len() => {
                        refused.push(shape);
                        continue;
                    }
                    Err(failure) => return Err(failure),
                }
                ends[1].record(stream)?;
                if round > 0 {
                    times.push((shape, ends));
                }
            }
        }
        Ok(())
    })?;
    let Some((_, [_, last])) = times.last() else {
        let message = "no shape could be measured".into();
        return Ok(Err(Failure { call: "measure", code: 0, message, kind: Kind::Other }));
    };
    last.finish()?;
    times.retain(|(shape, _)| !refused.contains(shape));
    Ok(least(times.iter().map(|(shape, [start, end])| Ok((*shape, start.until(end)?)))))
}

/// The shape that took least time; of equally fast ones the first.
fn least(times: impl Iterator<Item = Called<(Shape, f32)>>) -> Called<Shape> {
    let mut best: Option<(Shape, f32)> = None;
    for time in times {
        let (shape, time) = time?;
        if best.is_none_or(|(_, least)| time < least) {
            best = Some((shape, time));
        }
    }
    let none = || {
        let message = "nothing was measured".into();
        Failure { call: "measure", code: 0, message, kind: Kind::Other }
    };
    best.map(|(shape, _)| shape).ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_that_took_least_time_once_is_chosen() {
        let shape = |text: &str| text.parse::<Shape>().unwrap();
        let (a, b, c) = (shape("point:64x4x1"), shape("march:64x4:16"), shape("march:32x4:8"));
        let times = [(a, 3.0), (b, 2.5), (c, 4.0), (a, 2.6), (b, 9.0), (c, 2.5)];
        assert_eq!(least(times.into_iter().map(Ok)), Ok(b));
        assert_eq!(least([(c, 1.0), (a, 1.0)].into_iter().map(Ok)), Ok(c));
        let failure = Failure { call: "elapsed", code: 600, message: "not ready".into(), kind: Kind::Other };
        assert_eq!(least([Ok((a, 1.0)), Err(failure.clone())].into_iter()), Err(failure));
        assert!(least(std::iter::empty()).is_err());
    }
}
