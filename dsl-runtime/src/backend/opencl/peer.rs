//! What devices do to each other: waits and copies between those that share a context.

use opencl3::error_codes::CL_MEM_COPY_OVERLAP;

use super::call::{Called, Event, Failure, Rect};
use super::device::{Buffer, OpenClDevice};
use super::lane::{Kept, Lane};
use crate::backend::{Device, DeviceKind, EventId, Place, QueueId};
use crate::error::Result;

impl OpenClDevice {
    /// What is enqueued on the queue from now on starts after an event of a device of the same context.
    pub(super) fn wait_for_event(
        &self,
        call: &str,
        queue: QueueId,
        (other, event): (&OpenClDevice, EventId),
    ) -> Result<()> {
        let Some(moment) = other.pending(call, event)? else { return Ok(()) };
        if self.facts.waits_on_host() {
            return moment.reach().map_err(|failure| other.driver(failure));
        }
        self.lane(queue)?.wait_for(&moment.event).map_err(|failure| self.driver(failure))
    }

    /// The other device, if this one can copy to its memory; if not, why.
    pub(super) fn reach<'a>(&self, other: &'a dyn Device) -> Result<&'a OpenClDevice, String> {
        let Some(peer) = Self::peer(other) else {
            return Err(format!("{} shares no memory with {}", self.facts.info, other.info()));
        };
        let (here, there) = (&self.facts.info, &peer.facts.info);
        if !self.shares_context(peer) {
            let same = here.platform == there.platform;
            let what = if same { "opened apart" } else { "devices of different platforms" };
            let platforms = format!("{} and {}", here.platform, there.platform);
            return Err(format!("{here} and {there} are {what}, so they share no OpenCL context ({platforms})"));
        }
        // A driver may move a whole buffer to the device that writes to a part of it, while the other device is
        // writing to another part; what becomes of that is undefined (OpenCL 1.2, appendix A.1). Processors have their
        // buffers in the host's memory, where nothing is moved, and parts of a device have one memory.
        let one_memory = here.kind == DeviceKind::Cpu && there.kind == DeviceKind::Cpu || here.ordinal == there.ordinal;
        if one_memory {
            Ok(peer)
        } else {
            Err(format!("{here} and {there} have memories of their own, between which OpenCL moves only whole buffers"))
        }
    }

    /// Enqueues a copy to a device of the same context, which may be this one.
    pub(super) fn copy_within(
        &self,
        (call, queue): (&'static str, QueueId),
        from: Place<'_>,
        other: &OpenClDevice,
        to: Place<'_>,
    ) -> Result<()> {
        let (source, here, shape) = self.place(call, from)?;
        let (target, there, there_shape) = other.place(call, to)?;
        if shape != there_shape {
            return Err(self.misuse(call, format!("{:?} and {:?} have different shapes", from.region, to.region)));
        }
        if shape.contains(&0) {
            return Ok(());
        }
        let lane = self.lane(queue)?;
        let event = match lane.queue.copy((&source.memory, here), (&target.memory, there), shape) {
            // The test for overlap that the standard suggests mistakes some boxes of one buffer that interlock for
            // boxes that overlap.
            Err(Failure { code: CL_MEM_COPY_OVERLAP, .. }) => {
                self.copy_by_detour(&lane, (&source, here), (&target, there), shape)
            }
            other => other,
        };
        let event = event.map_err(|failure| self.driver(failure))?;
        lane.track("clEnqueueCopyBufferRect", event, Kept::Nothing).map_err(|failure| self.driver(failure))
    }

    /// Enqueues a copy through a buffer of its own.
    fn copy_by_detour(
        &self,
        lane: &Lane,
        (source, here): (&Buffer, Rect),
        (target, there): (&Buffer, Rect),
        shape: [usize; 3],
    ) -> Called<Event> {
        let between = self.platform.context.memory(shape.iter().product())?;
        // The queue runs in order, and OpenCL keeps the memory until both copies are done.
        lane.queue.copy((&source.memory, here), (&between, Rect::packed(shape)), shape)?;
        lane.queue.copy((&between, Rect::packed(shape)), (&target.memory, there), shape)
    }
}
