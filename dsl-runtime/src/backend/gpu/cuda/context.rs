//! The cards' primary contexts: which are retained, and which one is current in a thread.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys::{CUcontext, CUctx_st, CUdevice};

use super::super::driver::{Called, Kind};
use super::super::library::unasked;
use super::{Cuda, call};

/// A card and its context.
#[derive(Debug)]
pub(super) struct Slot {
    device: Called<CUdevice>,
    /// The context while it is retained, else null.
    context: AtomicPtr<CUctx_st>,
    /// How often the context was made: a thread in which an earlier one was current must be told again, even if the later one
    /// has the same handle.
    made: AtomicU32,
    /// How often it is retained.
    opened: Mutex<u32>,
}

impl Slot {
    /// The driver's handle, or why the card can't be used.
    pub(super) fn device(&self) -> Called<CUdevice> {
        self.device.clone()
    }
}

/// A context by its driver, card and number.
type Which = (usize, u32, u32);

thread_local! {
    /// What was made current in this thread last.
    static CURRENT: Cell<Option<Which>> = const { Cell::new(None) };
}

impl Cuda {
    /// The cards; the driver is started when they are first asked for.
    pub(super) fn slots(&self) -> Called<&[Slot]> {
        if let Some(slots) = self.slots.get() {
            return Ok(slots);
        }
        call!(self, cuInit(0))?;
        let mut count = 0;
        call!(self, cuDeviceGetCount(&mut count))?;
        if count < 1 {
            return Ok(&[]);
        }
        let slot = |ordinal| {
            let mut device = 0;
            let device = call!(self, cuDeviceGet(&mut device, ordinal)).map(|()| device);
            Slot { device, context: AtomicPtr::default(), made: AtomicU32::new(0), opened: Mutex::new(0) }
        };
        Ok(self.slots.get_or_init(|| (0..count).map(slot).collect()))
    }

    pub(super) fn slot(&self, card: u32) -> Called<&Slot> {
        let slots = self.slots()?;
        let missing = || unasked("cuDeviceGet", Kind::Other, format!("there is no card {card}, but {}", slots.len()));
        slots.get(card as usize).ok_or_else(missing)
    }

    /// Retains the context of a card.
    pub(super) fn retain(&self, card: u32) -> Called<()> {
        let slot = self.slot(card)?;
        let device = slot.device()?;
        let mut opened = slot.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let mut context = ptr::null_mut();
        call!(self, cuDevicePrimaryCtxRetain(&mut context, device))?;
        if *opened == 0 {
            slot.made.fetch_add(1, Ordering::Release);
            slot.context.store(context, Ordering::Release);
        }
        *opened += 1;
        Ok(())
    }

    /// Gives back what one [`retain`](Self::retain) took.
    pub(super) fn release_context(&self, card: u32) -> Called<()> {
        let slot = self.slot(card)?;
        let device = slot.device()?;
        let mut opened = slot.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if *opened == 0 {
            return Err(unopened(card));
        }
        *opened -= 1;
        if *opened == 0 {
            slot.context.store(ptr::null_mut(), Ordering::Release);
            // What else this thread does with CUDA mustn't find a context that is gone.
            if CURRENT.get() == Some(self.which(card, slot)) {
                CURRENT.set(None);
                // A context that is lost can't be left; it is given back all the same.
                let _ = call!(self, cuCtxSetCurrent(ptr::null_mut()));
            }
        }
        call!(self, cuDevicePrimaryCtxRelease(device))
    }

    /// The context of an open card.
    pub(super) fn context(&self, card: u32) -> Called<CUcontext> {
        let context = self.slot(card)?.context.load(Ordering::Acquire);
        if context.is_null() { Err(unopened(card)) } else { Ok(context) }
    }

    /// Makes the context of an open card current in this thread, if it isn't.
    pub(super) fn enter(&self, card: u32) -> Called<()> {
        let context = self.context(card)?;
        let which = Some(self.which(card, self.slot(card)?));
        if CURRENT.get() != which {
            call!(self, cuCtxSetCurrent(context))?;
            CURRENT.set(which);
        }
        Ok(())
    }

    fn which(&self, card: u32, slot: &Slot) -> Which {
        (ptr::from_ref(self).addr(), card, slot.made.load(Ordering::Acquire))
    }
}

fn unopened(card: u32) -> super::Failure {
    unasked("cuCtxSetCurrent", Kind::Other, format!("the card {card} isn't open"))
}
