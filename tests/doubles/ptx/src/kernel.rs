//! A kernel made ready: its steps, and what must be in which register before the first.

use std::fmt;
use std::sync::Arc;

use crate::lanes::{Execute, Operands, Slot};
use crate::memory::{Access, Tables};
use crate::types::Type;

/// A kernel of a module.
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Its parameters, in order.
    pub params: Vec<Param>,
    /// The most threads that a block may have, if the module says so.
    pub most_threads: Option<u64>,
    pub(crate) steps: Vec<Step>,
    /// For each step the line that it comes from.
    pub(crate) lines: Vec<usize>,
    /// The module's text.
    pub(crate) text: Arc<str>,
    pub(crate) tables: Arc<Tables>,
    /// The bytes of all registers.
    pub(crate) register_bytes: usize,
    pub(crate) constants: Vec<Constant>,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) specials: Vec<(Special, Slot)>,
    /// The loads and stores.
    pub(crate) sites: usize,
    /// The memory of a thread.
    pub(crate) local_bytes: usize,
}

/// A parameter of a kernel: where it lies among the bytes of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// The bytes before it.
    pub offset: usize,
    /// Its own.
    pub bytes: usize,
}

impl Kernel {
    /// The bytes of all parameters.
    pub fn param_bytes(&self) -> usize {
        self.params.last().map_or(0, |last| last.offset + last.bytes)
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kernel { name, params, steps, .. } = self;
        write!(f, "Kernel({name}, {} parameters, {} steps)", params.len(), steps.len())
    }
}

/// A register that holds the same value all the time.
pub(crate) struct Constant {
    pub(crate) slot: Slot,
    pub(crate) bytes: usize,
    pub(crate) bits: u64,
}

/// A register that holds an argument.
pub(crate) struct Argument {
    pub(crate) slot: Slot,
    /// The bytes of the register.
    pub(crate) bytes: usize,
    /// Where its bytes begin, and what they mean.
    pub(crate) offset: usize,
    pub(crate) ty: Type,
}

/// Numbers of threads and blocks, along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Special {
    /// Of the thread in its block.
    Thread(usize),
    /// Threads of a block.
    Threads(usize),
    /// Of the block.
    Block(usize),
    /// Blocks.
    Blocks(usize),
}

impl Special {
    /// The one of that name: `%tid.x`.
    pub(crate) fn parse(name: &str) -> Option<Special> {
        let (name, axis) = name.rsplit_once('.')?;
        let axis = ["x", "y", "z"].iter().position(|known| *known == axis)?;
        match name {
            "%tid" => Some(Special::Thread(axis)),
            "%ntid" => Some(Special::Threads(axis)),
            "%ctaid" => Some(Special::Block(axis)),
            "%nctaid" => Some(Special::Blocks(axis)),
            _ => None,
        }
    }
}

/// A predicate, and whether it is turned round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) predicate: Slot,
    pub(crate) is_turned: bool,
}

/// What is done at once for all threads of a group.
pub(crate) enum Step {
    Operate(Execute, Operands),
    Access(Access),
    /// The next step is for those threads only.
    Guard(Condition),
    /// Goes on at another step, all or some.
    Branch(usize, Option<Condition>),
    /// Goes on where the number in a register says.
    Indexed(Slot, Box<[usize]>),
    /// The threads are done, all or some.
    Exit(Option<Condition>),
}
