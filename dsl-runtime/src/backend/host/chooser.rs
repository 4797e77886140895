//! A seeded choice among operations that may run: it can lead to any order that queues and waits allow.

use std::collections::BTreeMap;

/// A queue of a device, by their numbers.
pub(super) type Queue = (usize, usize);

/// How readily operations of a queue are chosen: some queues are left alone until somebody waits for them.
const WEIGHTS: [u64; 4] = [0, 1, 1, 6];

/// The generator and what it thinks of each queue.
#[derive(Debug)]
pub(super) struct Chooser {
    state: u64,
    weights: BTreeMap<Queue, u64>,
}

impl Chooser {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed, weights: BTreeMap::new() }
    }

    /// The next of a sequence without pattern, below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    /// Hears of an operation in a queue, and now and then thinks again about it.
    pub(super) fn issued(&mut self, queue: Queue) {
        if !self.weights.contains_key(&queue) || self.below(8) == 0 {
            let weight = WEIGHTS[self.below(WEIGHTS.len() as u64) as usize];
            self.weights.insert(queue, weight);
        }
    }

    /// Whether to leave it at that, when nobody waits.
    pub(super) fn rests(&mut self) -> bool {
        self.below(2) == 0
    }

    /// One of the queues, or none; of those that somebody waits for (`true`) one can always be chosen.
    pub(super) fn choose(&mut self, queues: &[(Queue, bool)]) -> Option<Queue> {
        let weights: Vec<_> = (queues.iter())
            .map(|(queue, needed)| self.weights.get(queue).copied().unwrap_or(1).max(u64::from(*needed)))
            .collect();
        let total: u64 = weights.iter().sum();
        let mut drawn = if total == 0 { return None } else { self.below(total) };
        let chosen = weights.iter().position(|&weight| {
            let found = drawn < weight;
            drawn = drawn.saturating_sub(weight);
            found
        });
        chosen.map(|number| queues[number].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_sequence_and_every_queue_comes_first_with_some() {
        let chosen = |seed| {
            let mut chooser = Chooser::new(seed);
            let queues = [(0, 0), (0, 1), (1, 0)];
            queues.into_iter().for_each(|queue| chooser.issued(queue));
            chooser.choose(&queues.map(|queue| (queue, false)))
        };
        let found: Vec<_> = (0..200).map(chosen).collect();
        assert_eq!(found, (0..200).map(chosen).collect::<Vec<_>>());
        for queue in [Some((0, 0)), Some((0, 1)), Some((1, 0)), None] {
            assert!(found.contains(&queue), "{queue:?}");
        }
    }

    #[test]
    fn what_is_needed_is_chosen_in_the_end() {
        for seed in 0..100 {
            let mut chooser = Chooser::new(seed);
            chooser.issued((0, 0));
            assert_eq!(chooser.choose(&[((0, 0), true)]), Some((0, 0)));
            assert_eq!(chooser.choose(&[]), None);
        }
    }
}
