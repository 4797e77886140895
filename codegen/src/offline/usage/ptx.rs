//! Loads and stores in PTX.

use super::{Listing, Step, label};

/// The kernels of a PTX text.
pub fn listings(text: &str) -> Vec<Listing> {
    let mut listings: Vec<Listing> = Vec::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if let Some((_, rest)) = line.split_once(".entry ") {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '$')).collect();
            listings.push((name, Vec::new()));
            inside = true;
        } else if line.starts_with(".func") || line.contains(" .func ") {
            // Helpers come before or between kernels and are no part of them.
            inside = false;
        }
        if let (true, Some((_, steps))) = (inside, listings.last_mut()) {
            steps.extend(step(line));
        }
    }
    listings
}

fn step(line: &str) -> Option<Step> {
    if let Some(name) = label(line) {
        return Some(Step::Label(name.into()));
    }
    let mut words = line.split_whitespace();
    let first = words.next()?;
    let guarded = first.starts_with('@');
    let operation = if guarded { words.next()? } else { first }.trim_end_matches(';');
    let mut parts = operation.split('.');
    match parts.next()? {
        "ld" => moved(operation).map(Step::Load),
        "st" => moved(operation).map(Step::Store),
        "bra" => Some(Step::Jump { to: vec![words.next()?.trim_end_matches(';').into()], always: !guarded }),
        "ret" | "exit" if !guarded => Some(Step::End),
        _ => None,
    }
}

/// The bytes that `ld.global.v2.f64` moves; nothing for memory that is not the device's.
fn moved(operation: &str) -> Option<u32> {
    let other = |part: &str| ["param", "const", "shared", "local"].iter().any(|space| part.starts_with(space));
    if operation.split('.').any(other) {
        return None;
    }
    let bits: u32 = operation.rsplit('.').next()?.trim_start_matches(|c: char| c.is_ascii_alphabetic()).parse().ok()?;
    let lanes = operation.split('.').find_map(|part| part.strip_prefix('v')?.parse::<u32>().ok());
    Some(bits / 8 * lanes.unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::super::{Traffic, count};
    use super::*;

    #[test]
    fn a_march_is_counted_as_a_whole_and_in_its_loop() {
        let text = "\
.visible .entry march(\n\t.param .u64 march_param_0\n)\n{
\tld.param.u64 \t%rd15, [march_param_0];
\t@%p1 bra \t$L__BB0_3;
\tld.global.v2.f64 \t{%fd11, %fd12}, [%rd23];
$L__BB0_2:
\tld.global.nc.f64 \t%fd11, [%rd33];
\t@%p3 ld.volatile.global.u8 \t%rs1, [%rd35];
\tst.local.f64 \t[%rd34], %fd10;
\tst.global.f32 \t[%rd34], %f10;
\t@%p2 bra \t$L__BB0_2;
$L__BB0_3:
\tret;
}
.visible .entry next(\n)\n{\n\tst.f64 [%rd1], %fd1;\n\tret;\n}\n";
        let [march, next] = count(listings(text)).try_into().unwrap();
        assert_eq!((march.kernel.as_str(), next.kernel.as_str()), ("march", "next"));
        assert_eq!(march.traffic, Traffic { loads: 3, loaded_bytes: 25, stores: 1, stored_bytes: 4 });
        assert_eq!(march.in_loop, Some(Traffic { loads: 2, loaded_bytes: 9, stores: 1, stored_bytes: 4 }));
        assert_eq!((next.traffic.stored_bytes, next.in_loop), (8, None));
    }
}
