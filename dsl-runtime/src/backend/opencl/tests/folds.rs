//! Folds, parities, shifts and fields of fewer axes.

use super::*;
use crate::testing::{FOLDED, RELAX, SIZES, check_parity, check_shift, run_folded};

#[test]
fn folds_have_the_reference_bits_whichever_entry_point_is_asked_for() {
    let reference = reference::Reference.open_one(0, &OpenOptions::default()).unwrap();
    on_each_platform(|found, all| {
        for entry in [None, Some(Entry::Points), Some(Entry::Rows)] {
            let device = open(found, all, OpenClForm::Source, entry);
            for n in SIZES {
                for kernel in [&FOLDED, &RELAX] {
                    for parity in [None, Some(0), Some(1)] {
                        let found = run_folded(&device, kernel, n, parity);
                        let expected = run_folded(&*reference, kernel, n, parity);
                        assert!(found == expected, "{kernel:?} {n:?} {parity:?} on {}", device.summary());
                    }
                }
            }
        }
    });
}

#[test]
fn updates_in_place_have_the_values_of_a_plain_loop() {
    on_each_platform(|found, all| {
        for entry in [Entry::Points, Entry::Rows] {
            let device = open(found, all, OpenClForm::Source, Some(entry));
            for n in SIZES {
                check_parity(&device, n);
                check_shift(&device, n);
            }
        }
    });
}

#[test]
fn sums_of_floats_need_double_precision() {
    static SINGLE: KernelDesc = KernelDesc { fields: &[], ..FOLDED };
    let needs = |kernel| program::arguments(kernel);
    // Three results, three fields, one scalar, strides, box and parity.
    assert_eq!(needs(&FOLDED), (12 + 1 + 9, 6 * 16 + 4 + 16 + 28));
    assert_eq!(needs(&SINGLE), (6 + 1 + 9, 3 * 16 + 4 + 16 + 28));
    on_each_platform(|found, all| {
        let info = DeviceInfo { fp64: false, ..found.facts.info.clone() };
        let found = Found { facts: Facts { info, ..found.facts.clone() }, ..found.clone() };
        let error = open(&found, all, OpenClForm::Source, None).load(&SINGLE).unwrap_err().to_string();
        assert!(error.contains("adds floats up"), "{error}");
    });
}
