//! A 3-D automaton on the 26 neighbours: cells live, age and die.

use polyhalo::prelude::*;

/// The age of a cell after one step; 0 is dead.
#[stencil]
pub fn life(age: &Field<i32>) -> i32 {
    let mut living = 0;
    for z in -1..=1 {
        for y in -1..=1 {
            for x in -1..=1 {
                let neighbour = x * X + y * Y + z * Z;
                living += (age[neighbour] > 0) as i32;
            }
        }
    }
    let alive = age[HERE] > 0;
    living -= alive as i32;
    if alive {
        match living {
            4..=9 => age[HERE] + 1,
            _ => 0,
        }
    } else {
        match living {
            6 | 7 => 1,
            _ => 0,
        }
    }
}

/// The number of living cells.
#[stencil]
pub fn population(age: &Field<i32>) -> Sum<i64> {
    Sum((age[HERE] > 0) as i64)
}
