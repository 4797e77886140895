//! Kernels on a card.

use std::ptr;
use std::sync::{Arc, Mutex, OnceLock};

use super::card::OpenCard;
use super::kept;
use super::locked;
use super::shapes::{self, Limits};
use crate::backend::gpu::code;
use crate::backend::gpu::driver::{Called, Failure, Function, Kind, Module, Uses};
use crate::backend::gpu::options::Shape;
use crate::error::{Error, Result};
use crate::kernel::{KernelDesc, Walk};

/// A kernel that is loaded on a card.
#[derive(Debug)]
pub(super) struct Kernel {
    pub(super) desc: &'static KernelDesc,
    /// Where its code comes from.
    origin: String,
    forms: Vec<Form>,
    /// The shape for large boxes, once it is known.
    chosen: Mutex<Option<Chosen>>,
    /// What was found on disk, once somebody has looked.
    kept: OnceLock<Option<Shape>>,
    card: Arc<OpenCard>,
    module: Module,
}

/// A form of a kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Form {
    pub(super) walk: Walk,
    narrow: bool,
    pub(super) function: Function,
    pub(super) uses: Uses,
}

/// A shape and how it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) shape: Shape,
    pub(super) how: String,
}

impl Kernel {
    /// The kernel on a card, which is loaded only once.
    pub(super) fn load(
        card: &Arc<OpenCard>,
        desc: &'static KernelDesc,
        error: impl Fn(Failure) -> Error,
    ) -> Result<Arc<Self>> {
        let mut kernels = locked(&card.kernels);
        kernels.retain(|kernel| kernel.strong_count() > 0);
        let loaded = kernels.iter().filter_map(|kernel| kernel.upgrade());
        if let Some(kernel) = loaded.into_iter().find(|kernel| ptr::eq(kernel.desc, desc)) {
            return Ok(kernel);
        }
        let loaded = code::load(card.driver, &card.facts, desc)?;
        let kernel = Arc::new(Self::new(card, desc, loaded).map_err(error)?);
        kernels.push(Arc::downgrade(&kernel));
        Ok(kernel)
    }

    /// The kernel with all its forms; the code is unloaded when it is dropped, or can't be used.
    pub(super) fn new(card: &Arc<OpenCard>, desc: &'static KernelDesc, loaded: code::Loaded) -> Called<Self> {
        let code::Loaded { module, origin } = loaded;
        let (card, chosen, kept) = (card.clone(), Mutex::default(), OnceLock::new());
        let mut kernel = Self { desc, origin, forms: Vec::new(), chosen, kept, card, module };
        kernel.find()?;
        Ok(kernel)
    }

    fn find(&mut self) -> Called<()> {
        let (driver, number) = (self.card.driver, self.card.number());
        for form in self.desc.code.gpu {
            let function = driver.function(number, self.module, form.entry)?;
            let uses = match driver.uses(number, function) {
                Err(Failure { kind: Kind::Unsupported, .. }) => {
                    Uses { registers: 0, local_bytes: 0, block_threads: self.card.facts.block_threads }
                }
                known => known?,
            };
            self.forms.push(Form { walk: form.walk, narrow: form.narrow, function, uses });
        }
        Ok(())
    }

    /// The form that walks like this; one with narrow indices only if that is allowed, and then rather than another.
    pub(super) fn form(&self, walk: Walk, may_be_narrow: bool) -> Option<&Form> {
        let fitting = self.forms.iter().filter(|form| form.walk == walk && (may_be_narrow || !form.narrow));
        fitting.max_by_key(|form| form.narrow)
    }

    /// How it can walk.
    pub(super) fn walks(&self, may_be_narrow: bool) -> Vec<Walk> {
        [Walk::Point, Walk::March, Walk::Row]
            .into_iter()
            .filter(|&walk| self.form(walk, may_be_narrow).is_some())
            .collect()
    }

    /// What its shapes must respect.
    pub(super) fn limits(&self, form: &Form) -> Limits {
        Limits { threads: form.uses.block_threads.min(self.card.facts.block_threads) }
    }

    /// The shape where nothing is known, for a box of so many points along each axis.
    pub(super) fn default(&self, may_be_narrow: bool, points: [usize; 3]) -> Option<Shape> {
        let walk = *self.walks(may_be_narrow).first()?;
        let form = self.form(walk, may_be_narrow)?;
        Some(shapes::fitted(shapes::limited(shapes::default(walk), &self.limits(form)), points))
    }

    /// Whether a shape can be launched.
    pub(super) fn takes(&self, shape: &Shape, may_be_narrow: bool) -> bool {
        self.form(shape.walk, may_be_narrow).is_some_and(|form| self.limits(form).allow(shape))
    }

    /// The shape for large boxes, if it is known.
    pub(super) fn chosen(&self) -> Option<Chosen> {
        locked(&self.chosen).clone()
    }

    /// Sets the shape for large boxes.
    pub(super) fn choose(&self, chosen: Chosen) {
        *locked(&self.chosen) = Some(chosen);
    }

    /// The shape that is kept on disk, if there is one that can still be launched.
    pub(super) fn kept(&self) -> Option<Shape> {
        *self.kept.get_or_init(|| kept::recall(&self.card, self.desc).filter(|shape| self.takes(shape, true)))
    }

    /// The shape for large boxes, the registers of its form and where the code comes from, for reports.
    pub(super) fn describe(&self, forced: Option<Shape>) -> String {
        let forced = forced.filter(|shape| self.takes(shape, true));
        let forced = forced.map(|shape| Chosen { shape, how: "as asked for".into() });
        let by_default = || {
            let shape = self.default(true, [usize::MAX; 3])?;
            Some(Chosen { shape, how: "by default".into() })
        };
        let Some(Chosen { shape, how }) = forced.or_else(|| self.chosen()).or_else(by_default) else {
            return format!("no form for GPUs, {}", self.origin);
        };
        let uses = self.form(shape.walk, true).map(|form| form.uses);
        let registers = uses.map_or(0, |uses| uses.registers);
        let spilled = uses.filter(|uses| uses.local_bytes > 0);
        let spilled =
            spilled.map_or_else(String::new, |uses| format!(" and {} bytes of local memory", uses.local_bytes));
        format!("{shape} {how}, {registers} registers{spilled}, {}", self.origin)
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        // Devices wait for their work before they drop kernels.
        let _ = self.card.driver.unload(self.card.number(), self.module);
    }
}
