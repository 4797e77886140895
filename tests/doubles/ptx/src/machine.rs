//! Runs a kernel: groups of threads, one after the other.
//!
//! All threads of a group do the same step at once. Where they part, those that are furthest behind go on until they meet
//! the others again: steps are laid out so that paths meet further down.

use std::fmt;

use crate::kernel::{Condition, Kernel, Special, Step};
use crate::lanes::{LANES, Lanes};
use crate::memory::{Loads, Memory, Trouble, View};
use crate::types::Family;

/// What a run did, all threads together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Instructions.
    pub instructions: u64,
    /// Loads from the memory of the device and from tables.
    pub loads: u64,
    /// Stores to the memory of the device.
    pub stores: u64,
}

/// Why a kernel was not run to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It can't be launched like this.
    Launch {
        /// The kernel.
        kernel: String,
        /// What is wrong.
        reason: String,
    },
    /// A thread touched what it must not.
    Access {
        /// The kernel.
        kernel: String,
        /// The line of the module.
        line: usize,
        /// What stands there.
        instruction: String,
        /// The block, and the thread in it.
        block: [u32; 3],
        /// The thread in the block.
        thread: [u32; 3],
        /// The address.
        address: u64,
        /// What is wrong.
        reason: String,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Launch { kernel, reason } => write!(f, "`{kernel}` can't be launched: {reason}"),
            Fault::Access { kernel, line, instruction, block, thread, address, reason } => write!(
                f,
                "`{kernel}`, line {line}: `{instruction}` at {address:#x} by thread {thread:?} of block {block:?}: {reason}"
            ),
        }
    }
}

impl std::error::Error for Fault {}

/// Memory for registers, at multiples of a cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
#[expect(dead_code, reason = "it is read and written through pointers")]
struct Line([u8; 64]);

/// Most threads of a block on any GPU.
const MOST_THREADS: u64 = 1024;

impl Kernel {
    /// Runs all threads of all blocks. `params` holds the arguments where [`Kernel::params`] says.
    pub fn run(&self, grid: [u32; 3], block: [u32; 3], params: &[u8], memory: &dyn Memory) -> Result<Stats, Fault> {
        self.machine(grid, block, params, memory, None)
    }

    /// As [`Kernel::run`], and notes which thread loaded what how often.
    pub fn run_noting_loads(
        &self,
        grid: [u32; 3],
        block: [u32; 3],
        params: &[u8],
        memory: &dyn Memory,
    ) -> Result<(Stats, Loads), Fault> {
        let mut loads = Loads::new();
        let stats = self.machine(grid, block, params, memory, Some(&mut loads))?;
        Ok((stats, loads))
    }

    fn machine(
        &self,
        grid: [u32; 3],
        block: [u32; 3],
        params: &[u8],
        memory: &dyn Memory,
        noted: Option<&mut Loads>,
    ) -> Result<Stats, Fault> {
        let launch_fault = |reason| Fault::Launch { kernel: self.name.clone(), reason };
        if grid.contains(&0) || block.contains(&0) {
            return Err(launch_fault(format!("a grid of {grid:?} blocks of {block:?} threads is empty")));
        }
        let threads: u64 = block.iter().map(|threads| u64::from(*threads)).product();
        let most = self.most_threads.unwrap_or(MOST_THREADS).min(MOST_THREADS);
        if threads > most {
            return Err(launch_fault(format!("a block has {threads} threads, and may have {most}")));
        }
        if params.len() < self.param_bytes() {
            return Err(launch_fault(format!("{} bytes of arguments are not {}", params.len(), self.param_bytes())));
        }
        let mut registers = vec![Line([0; 64]); self.register_bytes.div_ceil(64)];
        let mut local = vec![Line([0; 64]); (self.local_bytes * LANES).div_ceil(64)];
        let lanes = Lanes { base: registers.as_mut_ptr().cast(), mask: 0, is_wide: true };
        let mut view = View::new(memory, &self.tables, self.sites);
        view.local = local.as_mut_ptr().cast();
        view.local_bytes = self.local_bytes;
        let mut machine = Machine {
            kernel: self,
            grid,
            block,
            lanes,
            view,
            stats: Stats::default(),
            at: [0; 3],
            first: 0,
            number: 0,
            noted,
        };
        machine.prepare(params);
        machine.run_blocks(threads)?;
        Ok(machine.stats)
    }
}

/// A run.
struct Machine<'r> {
    kernel: &'r Kernel,
    grid: [u32; 3],
    block: [u32; 3],
    lanes: Lanes,
    view: View<'r>,
    stats: Stats,
    /// The block that runs.
    at: [u32; 3],
    /// The first thread of the group, in its block.
    first: u64,
    /// The number of the block.
    number: u64,
    noted: Option<&'r mut Loads>,
}

/// The threads of a group that are not where the others are, by the steps where they wait.
struct Waiting {
    parts: Vec<(usize, u64)>,
    /// The first step at which any waits.
    next: usize,
}

impl Waiting {
    fn add(&mut self, step: usize, mask: u64) {
        match self.parts.iter_mut().find(|(other, _)| *other == step) {
            Some((_, others)) => *others |= mask,
            None => self.parts.push((step, mask)),
        }
        self.next = self.next.min(step);
    }

    /// Those that are furthest behind.
    fn take(&mut self) -> Option<(usize, u64)> {
        let place = self.parts.iter().position(|(step, _)| *step == self.next)?;
        let taken = self.parts.swap_remove(place);
        self.next = self.parts.iter().map(|(step, _)| *step).min().unwrap_or(usize::MAX);
        Some(taken)
    }
}

impl Machine<'_> {
    /// Fills the registers that stay as they are.
    fn prepare(&mut self, params: &[u8]) {
        for constant in &self.kernel.constants {
            // SAFETY: the decoder made the slot for so many bytes.
            unsafe { self.lanes.fill(constant.slot, constant.bytes, constant.bits) };
        }
        for argument in &self.kernel.arguments {
            let mut word = [0; 8];
            let bytes = argument.ty.bytes;
            word[..bytes].copy_from_slice(&params[argument.offset..argument.offset + bytes]);
            let unused = 64 - 8 * bytes;
            let bits = u64::from_le_bytes(word);
            let is_signed = argument.ty.family == Family::Signed;
            let bits = if is_signed { ((bits << unused).cast_signed() >> unused).cast_unsigned() } else { bits };
            // SAFETY: as above.
            unsafe { self.lanes.fill(argument.slot, argument.bytes, bits) };
        }
        for (special, slot) in &self.kernel.specials {
            let value = match *special {
                Special::Threads(axis) => self.block[axis],
                Special::Blocks(axis) => self.grid[axis],
                Special::Thread(_) | Special::Block(_) => continue,
            };
            // SAFETY: such registers have four bytes.
            unsafe { self.lanes.fill(*slot, 4, u64::from(value)) };
        }
    }

    fn run_blocks(&mut self, threads: u64) -> Result<(), Fault> {
        for z in 0..self.grid[2] {
            for y in 0..self.grid[1] {
                for x in 0..self.grid[0] {
                    self.at = [x, y, z];
                    for (special, slot) in &self.kernel.specials {
                        if let Special::Block(axis) = *special {
                            // SAFETY: such registers have four bytes.
                            unsafe { self.lanes.fill(*slot, 4, u64::from(self.at[axis])) };
                        }
                    }
                    for first in (0..threads).step_by(LANES) {
                        self.first = first;
                        self.number_threads();
                        let here = (threads - first).min(LANES as u64);
                        self.run_group(!0 >> (LANES as u64 - here))?;
                    }
                    self.number += 1;
                }
            }
        }
        Ok(())
    }

    /// The place in its block of a thread of the group.
    fn thread(&self, lane: usize) -> [u32; 3] {
        let number = self.first + lane as u64;
        let [x, y, _] = self.block.map(u64::from);
        [number % x, number / x % y, number / (x * y)].map(|place| place as u32)
    }

    fn number_threads(&mut self) {
        for (special, slot) in &self.kernel.specials {
            if let Special::Thread(axis) = *special {
                let numbers = self.lanes.at::<u32>(*slot);
                for lane in 0..LANES {
                    // SAFETY: such registers have four bytes for each lane.
                    unsafe { numbers.add(lane).write(self.thread(lane)[axis]) };
                }
            }
        }
    }

    /// The active threads for which a condition holds.
    fn those(&self, condition: Condition) -> u64 {
        // SAFETY: the decoder lets only predicates be conditions.
        let holds = unsafe { self.lanes.holds(condition.predicate) };
        self.lanes.mask & if condition.is_turned { !holds } else { holds }
    }

    fn run_group(&mut self, start: u64) -> Result<(), Fault> {
        let kernel = self.kernel;
        let mut waiting = Waiting { parts: Vec::new(), next: usize::MAX };
        let mut done = !start;
        let mut at = 0;
        self.activate(start, done);
        let mut active = u64::from(start.count_ones());
        loop {
            if at >= waiting.next {
                // Some wait here, or further up.
                waiting.add(at, self.lanes.mask);
                let (step, mask) = waiting.take().expect("those that came wait now");
                at = step;
                self.activate(mask, done);
                active = u64::from(mask.count_ones());
            }
            self.stats.instructions += active;
            match &kernel.steps[at] {
                Step::Operate(execute, operands) => {
                    // SAFETY: the decoder made the slots for the types of the operation, within the registers.
                    unsafe { execute(operands, &self.lanes) };
                    at += 1;
                }
                Step::Access(_) => {
                    self.access(at)?;
                    at += 1;
                }
                Step::Guard(condition) => {
                    let (mask, is_wide) = (self.lanes.mask, self.lanes.is_wide);
                    self.lanes.mask = self.those(*condition);
                    self.lanes.is_wide = is_wide && self.lanes.mask == mask;
                    match &kernel.steps[at + 1] {
                        // SAFETY: as above.
                        Step::Operate(execute, operands) => unsafe { execute(operands, &self.lanes) },
                        Step::Access(_) => self.access(at + 1)?,
                        Step::Guard(_) | Step::Branch(..) | Step::Indexed(..) | Step::Exit(_) => {
                            unreachable!("the decoder guards operations and accesses only")
                        }
                    }
                    (self.lanes.mask, self.lanes.is_wide) = (mask, is_wide);
                    at += 2;
                }
                Step::Branch(target, None) => at = *target,
                Step::Branch(target, Some(condition)) => {
                    let (all, taken) = (self.lanes.mask, self.those(*condition));
                    if taken == all {
                        at = *target;
                    } else if taken == 0 {
                        at += 1;
                    } else {
                        waiting.add(*target, taken);
                        at += 1;
                        self.activate(all & !taken, done);
                        active = u64::from(self.lanes.mask.count_ones());
                    }
                }
                Step::Indexed(index, targets) => {
                    let mut rest = self.lanes.mask;
                    while rest != 0 {
                        let lane = rest.trailing_zeros() as usize;
                        rest &= rest - 1;
                        // SAFETY: the decoder lets only registers of four bytes be indices.
                        let index = unsafe { self.lanes.at::<u32>(*index).add(lane).read() } as usize;
                        let Some(target) = targets.get(index) else {
                            let reason = format!("there are {} targets", targets.len());
                            return Err(self.fault(at, Trouble { lane, address: index as u64, reason }));
                        };
                        waiting.add(*target, 1 << lane);
                    }
                    let (step, mask) = waiting.take().expect("some threads branch");
                    at = step;
                    self.activate(mask, done);
                    active = u64::from(mask.count_ones());
                }
                Step::Exit(condition) => {
                    let leaving = condition.map_or(self.lanes.mask, |condition| self.those(condition));
                    done |= leaving;
                    at += 1;
                    let mut mask = self.lanes.mask & !leaving;
                    if mask == 0 {
                        let Some(others) = waiting.take() else { return Ok(()) };
                        (at, mask) = others;
                    }
                    self.activate(mask, done);
                    active = u64::from(mask.count_ones());
                }
            }
        }
    }

    /// Goes on with some threads; what threads that are done hold is nobody's business.
    fn activate(&mut self, mask: u64, done: u64) {
        self.lanes.mask = mask;
        self.lanes.is_wide = mask | done == !0;
    }

    fn access(&mut self, step: usize) -> Result<(), Fault> {
        let Step::Access(access) = &self.kernel.steps[step] else { unreachable!("the caller saw an access") };
        let count = u64::from(self.lanes.mask.count_ones());
        if access.space == crate::memory::Space::Global {
            *(if access.is_store { &mut self.stats.stores } else { &mut self.stats.loads }) += count;
            if !access.is_store && self.noted.is_some() {
                self.note(access);
            }
        }
        // SAFETY: the decoder made the slots for the types of the access, within the registers.
        let done = unsafe { (access.run)(access, &self.lanes, &mut self.view) };
        done.map_err(|trouble| self.fault(step, trouble))
    }

    fn note(&mut self, access: &crate::memory::Access) {
        let threads: u64 = self.block.iter().map(|threads| u64::from(*threads)).product();
        let before = self.number * threads + self.first;
        let addresses = self.lanes.at::<u64>(access.address);
        let noted = self.noted.as_deref_mut().expect("the caller asked");
        let mut rest = self.lanes.mask;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            // SAFETY: the decoder lets only registers of eight bytes be addresses.
            let address = unsafe { addresses.add(lane).read() }.wrapping_add_signed(access.offset);
            *noted.entry([before + lane as u64, address]).or_default() += 1;
        }
    }

    fn fault(&self, step: usize, trouble: Trouble) -> Fault {
        let line = self.kernel.lines[step];
        let instruction = self.kernel.text.lines().nth(line - 1).unwrap_or_default().trim().to_owned();
        Fault::Access {
            kernel: self.kernel.name.clone(),
            line,
            instruction,
            block: self.at,
            thread: self.thread(trouble.lane),
            address: trouble.address,
            reason: trouble.reason,
        }
    }
}
