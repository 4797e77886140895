//! Which buffer is in which slot in each run of a plan.

use std::collections::BTreeMap;

use super::Memory;
use crate::plan::Slot;

/// The rotation of a plan, applied any number of times at once: slots that pass buffers on form cycles.
#[derive(Debug)]
pub(super) struct Rotation {
    cycles: Vec<Vec<Slot>>,
    /// The cycle of each slot that gets another buffer, and its place there.
    places: BTreeMap<Slot, (usize, usize)>,
}

impl Rotation {
    /// The first slot of each pair gets the buffer that the second one had.
    ///
    /// # Panics
    /// When a buffer would be lost.
    pub(super) fn new(pairs: &[(Slot, Slot)]) -> Self {
        let from: BTreeMap<Slot, Slot> = pairs.iter().copied().collect();
        let mut rotation = Self { cycles: Vec::new(), places: BTreeMap::new() };
        for &(first, _) in pairs {
            if rotation.places.contains_key(&first) {
                continue;
            }
            let mut cycle = Vec::new();
            let mut slot = first;
            while rotation.places.insert(slot, (rotation.cycles.len(), cycle.len())).is_none() {
                cycle.push(slot);
                slot = *from.get(&slot).expect("every slot that gives its buffer away gets another one");
            }
            assert!(slot == first, "no buffer goes to two slots");
            rotation.cycles.push(cycle);
        }
        rotation
    }

    /// The slot whose buffer is in `slot` after `runs` runs.
    pub(super) fn origin(&self, slot: Slot, runs: u64) -> Slot {
        match self.places.get(&slot) {
            Some(&(cycle, place)) => {
                let cycle = &self.cycles[cycle];
                let length = cycle.len() as u64;
                cycle[((place as u64 + runs % length) % length) as usize]
            }
            None => slot,
        }
    }

    /// The runs after which every buffer is back in its slot.
    pub(super) fn turn(&self) -> u64 {
        fn divisor(a: u64, b: u64) -> u64 {
            if b == 0 { a } else { divisor(b, a % b) }
        }
        let lengths = self.cycles.iter().map(|cycle| cycle.len() as u64);
        lengths.fold(1, |all, length| all / divisor(all, length) * length)
    }

    /// Moves the buffers to where they are after `runs` runs.
    pub(super) fn apply(&self, fields: &mut [Memory], runs: u64) {
        let slots = || self.places.keys().copied();
        let taken: Vec<_> = slots()
            .map(|slot| self.origin(slot, runs))
            .map(|from| std::mem::take(fields[from.field.0 as usize].buffers_mut(from.role)))
            .collect();
        for (to, buffers) in slots().zip(taken) {
            *fields[to.field.0 as usize].buffers_mut(to.role) = buffers;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::BufferId;
    use crate::plan::FieldId;

    /// Fields whose buffers are numbered in the order of the slots.
    fn fields(count: u64) -> Vec<Memory> {
        let field = |number| Memory {
            layouts: Vec::new(),
            current: vec![BufferId(2 * number)],
            spare: vec![BufferId(2 * number + 1)],
        };
        (0..count).map(field).collect()
    }

    #[test]
    fn many_runs_at_once_are_as_many_single_ones() {
        let [u, v, w] = [0, 1, 2].map(FieldId);
        let two = vec![(u.current(), u.spare()), (u.spare(), u.current())];
        let three = vec![(u.current(), v.current()), (v.current(), v.spare()), (v.spare(), u.current())];
        let both: Vec<_> = three.iter().copied().chain([(w.current(), w.spare()), (w.spare(), w.current())]).collect();
        for pairs in [Vec::new(), two, three, both] {
            let rotation = Rotation::new(&pairs);
            let mut plain = fields(3);
            let turned = |slot| rotation.origin(slot, rotation.turn()) == slot;
            assert!(pairs.iter().all(|&(slot, _)| turned(slot)));
            for runs in 0..13 {
                let mut turned = fields(3);
                rotation.apply(&mut turned, runs);
                for (number, (found, expected)) in turned.iter().zip(&plain).enumerate() {
                    assert_eq!((&found.current, &found.spare), (&expected.current, &expected.spare));
                    let slot = FieldId(number as u32).current();
                    let origin = rotation.origin(slot, runs);
                    assert_eq!(fields(3)[origin.field.0 as usize].buffers(origin.role), found.current);
                }
                let before = plain;
                plain = fields(3);
                for (number, memory) in before.into_iter().enumerate() {
                    plain[number] = memory;
                }
                let old: Vec<_> =
                    pairs.iter().map(|(_, from)| plain[from.field.0 as usize].buffers(from.role).to_vec()).collect();
                for ((to, _), buffers) in pairs.iter().zip(old) {
                    *plain[to.field.0 as usize].buffers_mut(to.role) = buffers;
                }
            }
        }
    }
}
