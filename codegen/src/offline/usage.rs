//! What a compiled kernel costs on its device, as the vendors' tools tell it: registers, spills, memory, and the loads and
//! stores that stand in its machine code.
//!
//! To add a language: a file that turns a listing into [`Step`]s, kernel by kernel.

pub mod gcn;
pub mod ptx;
pub mod sass;
pub mod xe;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::AddAssign;

/// What one kernel of a compiled text uses. What the tool doesn't tell is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The kernel's name.
    pub kernel: String,
    /// Registers per thread (NVIDIA, AMD: 4 bytes each), per hardware thread (Intel: 32 or 64 bytes each).
    pub registers: Option<u32>,
    /// Scalar registers per wave (AMD).
    pub scalar_registers: Option<u32>,
    /// Bytes that did not fit into registers and live in memory, per thread.
    pub spill_bytes: Option<u32>,
    /// Memory of a thread's own in bytes, spills included: local memory, scratch.
    pub local_bytes: Option<u32>,
    /// Memory shared by a block, in bytes.
    pub shared_bytes: Option<u32>,
    /// Threads that a machine instruction serves.
    pub lanes: Option<u32>,
    /// Waves that a SIMD unit can hold at once (AMD).
    pub waves: Option<u32>,
    /// Loads and stores of the whole kernel.
    pub traffic: Traffic,
    /// Those in its innermost loop; where there are several, in the one with most. `None` without a loop that loads.
    pub in_loop: Option<Traffic>,
}

impl Usage {
    /// The loads that one point takes, and their bytes: what stands in the loop, or in the kernel without one, for as many
    /// points as it stores. `stored_bytes` is what a point stores; where nothing is stored for a point, as in a fold, the
    /// loop is taken for one point.
    pub fn per_point(&self, stored_bytes: usize) -> (f64, f64) {
        let taken = self.in_loop.unwrap_or(self.traffic);
        let points = match (taken.stored_bytes, stored_bytes) {
            (0, _) | (_, 0) => 1.0,
            (stored, one) => f64::from(stored) / one as f64,
        };
        (f64::from(taken.loads) / points, f64::from(taken.loaded_bytes) / points)
    }
}

/// Instructions that move data between registers and the memory of the device, each counted once where it stands, and the
/// bytes that they move for one thread. Arguments, constants, spills and shared memory don't count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Traffic {
    /// Load instructions.
    pub loads: u32,
    /// What they load.
    pub loaded_bytes: u32,
    /// Store instructions.
    pub stores: u32,
    /// What they store.
    pub stored_bytes: u32,
}

impl AddAssign for Traffic {
    fn add_assign(&mut self, other: Traffic) {
        self.loads += other.loads;
        self.loaded_bytes += other.loaded_bytes;
        self.stores += other.stores;
        self.stored_bytes += other.stored_bytes;
    }
}

/// A line of a listing, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A place to jump to.
    Label(String),
    /// A jump, and whether it is always taken.
    Jump {
        /// Where to.
        to: Vec<String>,
        /// Whether what follows is reached only by other jumps.
        always: bool,
    },
    /// The end of the kernel for the thread.
    End,
    /// A load of so many bytes.
    Load(u32),
    /// A store of so many bytes.
    Store(u32),
}

/// A kernel's name and its lines.
pub type Listing = (String, Vec<Step>);

/// Counts the loads and stores of each kernel.
pub fn count(listings: Vec<Listing>) -> Vec<Usage> {
    let usage = |(kernel, steps): Listing| {
        let graph = Graph::of(&steps);
        let mut traffic = Traffic::default();
        graph.blocks.iter().for_each(|block| traffic += block.traffic);
        Usage { kernel, traffic, in_loop: graph.busiest_loop(), ..Usage::default() }
    };
    listings.into_iter().map(usage).collect()
}

/// The flow of control between the straight pieces of a kernel. A jump back in the text need not be a loop: compilers move
/// pieces about.
struct Graph {
    blocks: Vec<Block>,
}

#[derive(Default)]
struct Block {
    traffic: Traffic,
    next: Vec<usize>,
}

impl Graph {
    fn of(steps: &[Step]) -> Graph {
        let mut pieces: Vec<(&[String], bool, Traffic)> = vec![(&[], true, Traffic::default())];
        let mut labels = BTreeMap::new();
        let mut closed = false;
        for step in steps {
            if closed || matches!(step, Step::Label(_)) {
                pieces.push((&[], true, Traffic::default()));
                closed = false;
            }
            let last = pieces.len() - 1;
            let (to, falls_through, traffic) = &mut pieces[last];
            match step {
                Step::Label(name) => {
                    labels.insert(name.as_str(), last);
                }
                Step::Jump { to: targets, always } => (*to, *falls_through, closed) = (targets, !always, true),
                Step::End => (*falls_through, closed) = (false, true),
                Step::Load(bytes) => *traffic += Traffic { loads: 1, loaded_bytes: *bytes, ..Traffic::default() },
                Step::Store(bytes) => *traffic += Traffic { stores: 1, stored_bytes: *bytes, ..Traffic::default() },
            }
        }
        let count = pieces.len();
        let block = |(at, (to, falls_through, traffic)): (usize, (&[String], bool, Traffic))| {
            let jumps = to.iter().filter_map(|label| labels.get(label.as_str()).copied());
            let after = (falls_through && at + 1 < count).then_some(at + 1);
            Block { traffic, next: jumps.chain(after).collect() }
        };
        Graph { blocks: pieces.into_iter().enumerate().map(block).collect() }
    }

    /// What the innermost loop with most loads moves.
    fn busiest_loop(&self) -> Option<Traffic> {
        self.innermost(&(0..self.blocks.len()).collect()).into_iter().filter(|traffic| traffic.loads > 0).max()
    }

    /// The traffic of each loop within `among` that holds no other loop which loads.
    fn innermost(&self, among: &BTreeSet<usize>) -> Vec<Traffic> {
        let mut found = Vec::new();
        let mut left = among.clone();
        while let Some(first) = left.pop_first() {
            let forth = self.reached(first, among);
            if !forth.contains(&first) {
                continue;
            }
            let body: BTreeSet<usize> =
                forth.into_iter().filter(|block| self.reached(*block, among).contains(&first)).collect();
            left.retain(|block| !body.contains(block));
            // Without its head a loop falls apart into what is left of it: the loops inside.
            let inside: BTreeSet<usize> = body.iter().copied().filter(|block| *block != self.head(&body)).collect();
            let inner: Vec<Traffic> = self.innermost(&inside).into_iter().filter(|traffic| traffic.loads > 0).collect();
            if inner.is_empty() {
                let mut traffic = Traffic::default();
                body.iter().for_each(|block| traffic += self.blocks[*block].traffic);
                found.push(traffic);
            }
            found.extend(inner);
        }
        found
    }

    /// The block through which a loop is entered.
    fn head(&self, body: &BTreeSet<usize>) -> usize {
        let outside = (0..self.blocks.len()).filter(|block| !body.contains(block));
        let entered = outside.flat_map(|block| &self.blocks[block].next).copied().find(|block| body.contains(block));
        entered.unwrap_or_else(|| *body.first().expect("a loop has a block"))
    }

    /// All that can follow `from` within `among`; `from` itself only if it comes again.
    fn reached(&self, from: usize, among: &BTreeSet<usize>) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(block) = open.pop() {
            let next = self.blocks[block].next.iter().filter(|next| among.contains(next));
            open.extend(next.copied().filter(|next| reached.insert(*next)).collect::<Vec<_>>());
        }
        reached
    }
}

/// The name before the colon when a line is nothing but a label.
fn label(line: &str) -> Option<&str> {
    let name = line.split("//").next()?.split(';').next()?.trim().strip_suffix(':')?;
    (!name.is_empty() && !name.contains(char::is_whitespace)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jump(to: &str, always: bool) -> Step {
        Step::Jump { to: vec![to.into()], always }
    }

    fn at(name: &str) -> Step {
        Step::Label(name.into())
    }

    fn in_loop(steps: Vec<Step>) -> Option<(u32, u32)> {
        count(vec![("k".into(), steps)])[0].in_loop.map(|traffic| (traffic.loads, traffic.stores))
    }

    #[test]
    fn a_jump_back_to_a_piece_that_was_moved_is_no_loop() {
        let steps = vec![
            jump("late", false),
            at("main"),
            Step::Load(8),
            Step::Store(8),
            Step::End,
            at("late"),
            jump("main", true),
        ];
        assert_eq!(in_loop(steps), None);
    }

    #[test]
    fn the_innermost_loop_counts() {
        let steps = vec![
            Step::Load(8),
            at("planes"),
            Step::Load(8),
            at("row"),
            Step::Load(8),
            Step::Load(4),
            Step::Store(8),
            jump("row", false),
            jump("planes", false),
            Step::End,
        ];
        assert_eq!(in_loop(steps), Some((2, 1)));
    }

    #[test]
    fn a_loop_without_loads_is_passed_by() {
        let around = |inner: Vec<Step>| {
            [vec![at("a"), Step::Load(4)], inner, vec![Step::Store(4), jump("a", false), Step::End]].concat()
        };
        assert_eq!(in_loop(around(vec![at("b"), jump("b", false)])), Some((1, 1)));
        assert_eq!(in_loop(vec![Step::Load(4), Step::End, at("trap"), jump("trap", true)]), None);
        // A branch inside the loop, and one out of it.
        assert_eq!(in_loop(around(vec![jump("b", false), Step::Load(4), jump("out", false), at("b")])), Some((2, 1)));
    }

    #[test]
    fn points_are_counted_by_what_they_store() {
        let traffic = Traffic { loads: 4, loaded_bytes: 32, stores: 2, stored_bytes: 16 };
        let point = Usage { traffic, ..Usage::default() };
        assert_eq!(point.per_point(16), (4.0, 32.0));
        let unrolled = Usage { in_loop: Some(traffic), ..Usage::default() };
        assert_eq!(unrolled.per_point(8), (2.0, 16.0));
        assert_eq!(unrolled.per_point(0), (4.0, 32.0));
    }
}
