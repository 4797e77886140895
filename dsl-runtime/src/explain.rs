//! What a step will do, told before it runs.

use std::fmt;

use crate::boundary::{Face, Faces, Widths};
use crate::error::Bytes;
use crate::exchange::Exchange;
use crate::geometry::AXES;
use crate::halo::{Halo, halo};
use crate::plan::Plan;
use crate::report::joined;
use crate::schedule::Stage;
use crate::simulation::Shared;
use crate::traffic::Traffic;

/// Halos, plan and memory of a step.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Cells along X, Y and Z.
    pub grid: [usize; 3],
    /// The devices, in words.
    pub devices: Vec<String>,
    /// The exchange strategy.
    pub exchange: Exchange,
    /// What each parameter of each kernel asks for, without repetitions.
    pub halos: Vec<FieldHalo>,
    /// The fields whose boundary isn't fixed everywhere, with the ghost cells that they keep.
    pub boundaries: Vec<FieldBoundary>,
    /// The kernels whose values may differ in the last bits from device to device.
    pub vendor_functions: Vec<VendorFunctions>,
    /// The operations of a step.
    pub plan: Plan,
    /// The names of the simulation's fields, by number.
    pub fields: Vec<String>,
    /// The names of its scalars, by number.
    pub scalars: Vec<String>,
    /// What a run of the plan moves between devices.
    pub exchanged: Traffic,
    /// Why cells travel through the host although the strategy would copy them directly; one reason for each pair.
    pub detours: Vec<String>,
    /// The planes that each device owns.
    pub planes: Vec<[i64; 2]>,
    /// Bytes of host memory for exchanges that each device has.
    pub staging: Vec<u64>,
    /// The memory of the simulation's fields on each device.
    pub memory: Vec<DeviceMemory>,
}

/// The halo that a parameter of a kernel asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldHalo {
    /// The field of the simulation.
    pub field: String,
    /// The kernel.
    pub kernel: &'static str,
    /// Its parameter.
    pub parameter: &'static str,
    /// The file of the kernel.
    pub file: &'static str,
    /// How far it reads.
    pub halo: Halo,
}

/// The boundary of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldBoundary {
    /// The field.
    pub field: String,
    /// What reads beyond its faces give: (X, Y, Z) by (low side, high side).
    pub faces: Faces,
    /// The ghost cells beyond each face.
    pub ghosts: Widths,
}

/// Functions in a kernel that agree between devices only to the vendors' units in the last place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VendorFunctions {
    /// The kernel.
    pub kernel: &'static str,
    /// Their names in Rust.
    pub functions: &'static [&'static str],
}

/// The memory of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceMemory {
    /// For each field the bytes of a buffer and the number of buffers.
    pub fields: Vec<(u64, usize)>,
    /// All of them together.
    pub bytes: u64,
    /// What is free on the device, if it tells.
    pub free: Option<u64>,
}

impl Explanation {
    pub(crate) fn new(shared: &Shared, stages: &[Stage], exchange: Exchange, plan: &Plan) -> Self {
        // Inside a step nothing is known of the simulation.
        let state = shared.state().ok();
        let (fields, scalars) = state.as_ref().map(|state| state.names()).unwrap_or_default();
        let mut halos: Vec<FieldHalo> = Vec::new();
        for stage in stages {
            let Stage::Update(update) = stage else { continue };
            for (parameter, field) in update.kernel.fields.iter().zip(&update.fields) {
                let found = FieldHalo {
                    field: fields.get(field.0 as usize).cloned().unwrap_or_default(),
                    kernel: update.kernel.name,
                    parameter: parameter.name,
                    file: update.kernel.file,
                    halo: halo(parameter),
                };
                if !halos.contains(&found) {
                    halos.push(found);
                }
            }
        }
        let boundaries = state.iter().flat_map(|state| state.shapes.iter().zip(&state.fields));
        let boundaries = boundaries.filter(|(shape, _)| shape.faces != Faces::default());
        let boundaries = boundaries.map(|(shape, facts)| FieldBoundary {
            field: shape.name.clone(),
            faces: shape.faces,
            ghosts: around_all(&facts.ghosts),
        });
        let boundaries = boundaries.collect();
        let kernels = plan.kernels.iter().filter(|kernel| !kernel.vendor_functions.is_empty());
        let vendor_functions =
            kernels.map(|kernel| VendorFunctions { kernel: kernel.name, functions: kernel.vendor_functions });
        let memory = shared.devices.iter().enumerate().map(|(number, device)| {
            let buffers = |spare: bool| if spare { 2 } else { 1 };
            let fields: Vec<_> = (state.iter().flat_map(|state| &state.memory))
                .map(|field| (field.layouts[number].bytes as u64, buffers(!field.spare.is_empty())))
                .collect();
            let bytes = fields.iter().map(|&(bytes, buffers)| bytes * buffers as u64).sum();
            let free = device.free_memory().ok().flatten().map(|free| free.bytes);
            DeviceMemory { fields, bytes, free }
        });
        let shapes = state.as_ref().map(|state| state.shapes.clone()).unwrap_or_default();
        let exchanged = if state.is_some() { Traffic::of(plan, &shapes) } else { Traffic::default() };
        let count = shared.devices.len();
        let staging = (0..count).map(|device| {
            let own = plan.stagings.iter().filter(|staging| staging.device == device);
            own.map(|staging| staging.bytes as u64).sum()
        });
        let planes = (0..count).map(|device| {
            let next =
                if device + 1 < count { shared.split.start(device + 1) } else { shared.extent.cells()[2] as i64 };
            [shared.split.start(device), next]
        });
        let mut detours = Vec::new();
        if exchange.recipe().is_some_and(|recipe| recipe.direct) && exchanged.staged > 0 {
            for (from, to) in (0..count).flat_map(|from| (0..count).map(move |to| (from, to))) {
                let reaches = shared.devices[from].reaches(&*shared.devices[to]);
                if let (Err(reason), 1) = (reaches, from.abs_diff(to)) {
                    detours.push(format!("device {from} to device {to}: {reason}"));
                }
            }
        }
        Self {
            exchanged,
            detours,
            planes: planes.collect(),
            staging: staging.collect(),
            grid: shared.extent.cells(),
            devices: shared.devices.iter().map(|device| device.summary()).collect(),
            exchange,
            halos,
            boundaries,
            vendor_functions: vendor_functions.collect(),
            plan: plan.clone(),
            memory: memory.collect(),
            fields,
            scalars,
        }
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.grid;
        writeln!(f, "grid {x}x{y}x{z} on {}, exchange {}", joined(&self.devices), self.exchange)?;
        if self.devices.len() > 1 {
            for (number, ([first, end], device)) in self.planes.iter().zip(&self.devices).enumerate() {
                writeln!(f, "  device {number}, planes {first}..{end} along Z: {device}")?;
            }
        }
        writeln!(f, "halos (cells read beyond the updated points)")?;
        let width = self.fields.iter().map(|name| name.chars().count()).max().unwrap_or(0);
        for FieldHalo { field, kernel, parameter, file, halo } in &self.halos {
            writeln!(f, "  {field:width$}  {} as `{parameter}` of {kernel} in {file}", sides(halo))?;
        }
        for FieldBoundary { field, faces, ghosts } in &self.boundaries {
            let axes = AXES.iter().zip(faces.iter().zip(ghosts));
            let axes: Vec<_> = axes.map(|(axis, (faces, ghosts))| axis_boundary(axis, faces, ghosts)).collect();
            writeln!(f, "  {field:width$}  beyond its faces: {}", axes.join("; "))?;
        }
        for VendorFunctions { kernel, functions } in &self.vendor_functions {
            writeln!(f, "{kernel} uses {}: devices agree only within their vendors' error", functions.join(", "))?;
        }
        writeln!(f, "plan of a step (u' is the second buffer of u)")?;
        write!(f, "{}", self.plan.named(&self.fields, &self.scalars))?;
        writeln!(f, "  {} points, at least {} of memory traffic", self.plan.points, Bytes(self.plan.bytes))?;
        if self.devices.len() > 1 {
            let every =
                if self.plan.steps == 1 { "in each step".into() } else { format!("every {} steps", self.plan.steps) };
            writeln!(f, "  exchanged {every}: {}", self.exchanged)?;
            self.detours.iter().try_for_each(|detour| writeln!(f, "  through the host, {detour}"))?;
        }
        writeln!(f, "memory")?;
        for (number, (memory, device)) in self.memory.iter().zip(&self.devices).enumerate() {
            let fields = self.fields.iter().zip(&memory.fields);
            let fields: Vec<_> =
                fields.map(|(name, (bytes, buffers))| format!("{name} {buffers} x {}", Bytes(*bytes))).collect();
            match &fields[..] {
                [] => write!(f, "  {device}: no fields")?,
                fields => write!(f, "  {device}: {}, {} in all", fields.join(", "), Bytes(memory.bytes))?,
            }
            if self.staging[number] > 0 {
                write!(f, ", and {} of host memory for exchanges", Bytes(self.staging[number]))?;
            }
            match memory.free {
                Some(free) => writeln!(f, ", {} free", Bytes(free))?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

/// The ghost cells around the whole grid, from those that each device keeps around its part.
fn around_all(each: &[Widths]) -> Widths {
    let (Some(&first), Some(last)) = (each.first(), each.last()) else { return Widths::default() };
    let mut all = first;
    all[2][1] = last[2][1];
    all
}

/// `X 1 below (line 6), 1 above (line 6); Z 2 above (line 9)`.
fn sides(halo: &Halo) -> String {
    let mut axes = Vec::new();
    for (axis, sides) in AXES.iter().zip(halo) {
        let words = ["below", "above"].iter().zip(sides).filter(|(_, reach)| reach.cells > 0);
        let words: Vec<_> =
            words.map(|(word, reach)| format!("{} {word} (line {})", reach.cells, reach.line)).collect();
        if !words.is_empty() {
            axes.push(format!("{axis} {}", words.join(", ")));
        }
    }
    if axes.is_empty() { "no halo,".into() } else { axes.join("; ") }
}

/// `X periodic, 1 + 1 ghost cells` or `Y fixed below, clamped above, 0 + 2 ghost cells`.
fn axis_boundary(axis: &str, [low, high]: &[Face; 2], ghosts: &[u32; 2]) -> String {
    let faces = if low == high { low.to_string() } else { format!("{low} below, {high} above") };
    match ghosts {
        [0, 0] => format!("{axis} {faces}"),
        [below, above] => format!("{axis} {faces}, {below} + {above} ghost cells"),
    }
}
