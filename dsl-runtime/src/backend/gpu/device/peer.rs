//! Copies, and what devices do to each other: waits and copies between those of one driver.

use std::sync::Arc;

use super::GpuDevice;
use super::card::Buffer;
use super::lane::{Kept, Lane};
use crate::backend::gpu::driver::{Called, End};
use crate::backend::{Device, EventId, Place, QueueId};
use crate::error::Result;

impl GpuDevice {
    /// What another device of this process is to this one, if it is one of the same driver.
    pub(super) fn peer<'a>(&self, other: &'a dyn Device) -> Option<&'a Self> {
        let other = other.as_any().downcast_ref::<Self>();
        let (here, backend) = (self.card.driver, self.info.backend);
        // Drivers without data of their own may lie at one address.
        other.filter(|other| std::ptr::addr_eq(here, other.card.driver) && backend == other.info.backend)
    }

    /// The other device, if this one can copy to its memory; if not, why.
    pub(super) fn reach<'a>(&self, other: &'a dyn Device) -> Result<&'a Self, String> {
        let Some(peer) = self.peer(other) else {
            return Err(format!("{} shares no memory with {}", self.info, other.info()));
        };
        self.card.reaches(&peer.card).map(|()| peer)
    }

    /// What is enqueued on the queue from now on starts after an event of a device of the same driver.
    pub(super) fn wait_for(&self, call: &str, queue: QueueId, other: &Self, event: EventId) -> Result<()> {
        let Some(moment) = other.pending(call, event)? else { return Ok(()) };
        self.lane(queue)?.wait_for(&moment).map_err(|failure| self.driver(failure))
    }

    /// Enqueues a copy to a device that this one reaches, which may be this one.
    pub(super) fn copy_to(
        &self,
        (call, queue): (&'static str, QueueId),
        from: Place<'_>,
        other: &Self,
        to: Place<'_>,
    ) -> Result<()> {
        let (source, here) = self.place(call, from)?;
        let (target, there) = other.place(call, to)?;
        if here.shape != there.shape {
            return Err(self.misuse(call, format!("{:?} and {:?} have different shapes", from.region, to.region)));
        }
        if here.is_empty() {
            return Ok(());
        }
        let ends = (here.on_card(&source), there.on_card(&target));
        let copied = self.transfer(&self.lane(queue)?, [&source, &target], Kept::Nothing, ends, here.shape);
        copied.map_err(|failure| self.driver(failure))
    }

    /// Enqueues a copy between boxes that were checked. Memory of the host must be valid until it is done: it is among what
    /// is kept, or the caller waits.
    pub(super) fn transfer<const N: usize>(
        &self,
        lane: &Arc<Lane>,
        buffers: [&Arc<Buffer>; N],
        kept: Kept,
        (from, to): (End, End),
        shape: [usize; 3],
    ) -> Called<()> {
        lane.enqueue(buffers, kept, |stream| {
            // SAFETY: the boxes were compared with the memory that holds them, which lives until the lane is done: buffers
            // wait for it, and of the host's memory the caller says so.
            unsafe { lane.card.driver.copy(lane.card.number(), stream, from, to, shape) }
        })
    }

    /// Waits for a lane that works with memory of the caller.
    pub(super) fn settle(&self, lane: &Lane) -> Result<()> {
        let finished = lane.finish();
        if finished.is_err() {
            // The failure may be of an earlier operation, or of the call alone.
            lane.quiesce();
        }
        finished.map_err(|failure| self.driver(failure))
    }
}
