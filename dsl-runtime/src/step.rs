//! Steps: stages that are recorded once and then run as often as wished.

use std::sync::Arc;

use crate::backend::Device;
use crate::call::{self, Call, Targets};
use crate::error::{Error, Result};
use crate::execute::Program;
use crate::explain::Explanation;
use crate::halo::widest_range;
use crate::kernel::{KernelDesc, ScalarType};
use crate::schedule::{self, Stage};
use crate::simulation::Shared;

/// The stages of a step while it is being recorded.
pub struct Stages {
    shared: Arc<Shared>,
    stages: Vec<Stage>,
    /// The first mistake; later stages are then ignored.
    fault: Option<Error>,
}

impl Stages {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), stages: Vec::new(), fault: None }
    }

    /// Updates fields with the results of a call, over all points whose footprint lies in the grid; other points keep
    /// their value.
    ///
    /// Stages run in the order in which they are recorded, and each sees all that the earlier ones wrote. A mistake
    /// is reported by [`Simulation::step`](crate::simulation::Simulation::step).
    pub fn update<T>(&mut self, targets: impl Targets<T>, call: Call<T>) {
        if self.fault.is_some() {
            return;
        }
        let targets = targets.targets();
        let stage = call::check(call.kernel, &call.fields, &call.scalars, &targets, self.shared.id).and_then(|()| {
            Ok(Stage {
                kernel: call.kernel,
                fields: call.fields.iter().map(|field| field.id).collect(),
                scalars: call.scalars.iter().map(|scalar| scalar.0).collect(),
                outputs: targets.iter().map(|target| target.id).collect(),
                range: widest_range(call.kernel, self.shared.extent)?,
            })
        });
        match stage {
            Ok(stage) => self.stages.push(stage),
            Err(fault) => self.fault = Some(fault),
        }
    }

    pub(crate) fn finish(self) -> Result<Vec<Stage>> {
        self.fault.map_or(Ok(self.stages), Err)
    }
}

/// A recorded step. It is a handle: clones are the same step.
#[derive(Clone)]
pub struct Step {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    stages: Vec<Stage>,
    program: Program,
}

impl Step {
    pub(crate) fn new(shared: &Arc<Shared>, stages: Vec<Stage>) -> Result<Self> {
        for stage in &stages {
            shared.devices.iter().try_for_each(|device| check_types(&**device, stage.kernel))?;
        }
        let program = Program::new(schedule::plan(&stages), &shared.devices, shared.origins())?;
        shared.double(&schedule::double_buffered(&stages))?;
        Ok(Self { inner: Arc::new(Inner { shared: Arc::clone(shared), stages, program }) })
    }

    /// What the step will do: halos with the lines that ask for them, the plan, memory. Nothing runs.
    pub fn explain(&self) -> Explanation {
        Explanation::new(&self.inner.shared, &self.inner.stages, &self.inner.program.plan)
    }

    pub(crate) fn program(&self) -> &Program {
        &self.inner.program
    }

    pub(crate) fn simulation(&self) -> u64 {
        self.inner.shared.id
    }

    /// The names of the kernels, each once.
    pub(crate) fn kernels(&self) -> Vec<&'static str> {
        self.inner.program.plan.kernels.iter().map(|kernel| kernel.name).collect()
    }
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Step of {}", self.kernels().join(", "))
    }
}

/// An error if the kernel computes in a type that the device lacks.
fn check_types(device: &dyn Device, kernel: &KernelDesc) -> Result<()> {
    let fields = kernel.fields.iter().map(|field| field.ty);
    let mut types = fields.chain(kernel.params.iter().map(|param| param.ty)).chain(kernel.outputs.iter().copied());
    if device.info().fp64 || types.all(|ty| ty != ScalarType::F64) {
        return Ok(());
    }
    Err(Error::Unsupported {
        device: device.summary(),
        kernel: kernel.name.into(),
        reason:
            "it computes in double precision (f64), which the device lacks: write the kernel for f32 or use the host"
                .into(),
    })
}
