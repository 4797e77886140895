//! Every type of cell and scalar, and the place in the grid.

use super::*;
use crate::testing::{MIXED, PLACES, run_mixed};

#[test]
fn every_type_and_the_place_in_the_grid_reach_the_kernel() {
    let reference = reference::Reference.open_one(0, &OpenOptions::default()).unwrap();
    on_each_platform(|found, all| {
        for entry in [Entry::Points, Entry::Rows] {
            let device = open(found, all, OpenClForm::Source, Some(entry));
            for (n, global) in PLACES {
                let (found, expected) = (run_mixed(&device, n, global), run_mixed(&*reference, n, global));
                for (number, ty) in ScalarType::ALL.into_iter().enumerate() {
                    assert!(found[number] == expected[number], "{ty} {n:?} {global:?} on {}", device.summary());
                }
            }
        }
    });
}

#[test]
fn the_arguments_of_an_index_are_counted() {
    static PLACELESS: KernelDesc = KernelDesc { uses_index: false, ..MIXED };
    // 18 buffers with their origins, 9 scalars of which those of 8 bits travel as 32, strides, box and place.
    assert_eq!(super::super::program::arguments(&MIXED), (36 + 9 + 12, 18 * 16 + 48 + 16 + 40));
    assert_eq!(super::super::program::arguments(&PLACELESS), (36 + 9 + 9, 18 * 16 + 48 + 16 + 28));
    on_each_platform(|found, all| {
        let device = open(found, all, OpenClForm::Source, None);
        let error = device.load(&PLACELESS).unwrap_err().to_string();
        assert!(error.contains("takes 57 arguments, and the descriptor has 54"), "{error}");
        let facts = Facts { max_argument_bytes: 391, ..found.facts.clone() };
        let tight = open(&Found { facts, ..found.clone() }, all, OpenClForm::Source, None);
        let error = tight.load(&MIXED).unwrap_err().to_string();
        assert!(error.contains("its arguments take 392 bytes, and the device takes 391"), "{error}");
    });
}
