//! Loads and stores in the assembly of AMD GPUs, as clang writes it.

use super::{Listing, Step, label};

/// The kernels of an assembly text.
pub fn listings(text: &str) -> Vec<Listing> {
    let mut listings: Vec<Listing> = Vec::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if line.contains("; @")
            && let Some(name) = label(line)
        {
            listings.push((name.into(), Vec::new()));
            inside = true;
        } else if line.starts_with(".Lfunc_end") {
            inside = false;
        } else if let (true, Some((_, steps))) = (inside, listings.last_mut()) {
            steps.extend(step(line));
        }
    }
    listings
}

/// The waves that a SIMD unit can hold of each kernel, in the order of the text.
pub fn waves(text: &str) -> Vec<(String, u32)> {
    let mut name = "";
    let mut waves = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.contains("; @") {
            name = label(line).unwrap_or(name);
        }
        if let Some(number) = line.strip_prefix("; Occupancy: ").and_then(|number| number.parse().ok()) {
            waves.push((name.to_owned(), number));
        }
    }
    waves
}

fn step(line: &str) -> Option<Step> {
    if let Some(name) = label(line) {
        return Some(Step::Label(name.into()));
    }
    let mut words = line.split_whitespace();
    let operation = words.next()?;
    // Memory reached as `scratch` or `buffer` is a thread's own, as `ds` a block's; `s_load` reads arguments.
    let moved = |way: &str| {
        ["global_", "flat_"].iter().find_map(|space| operation.strip_prefix(space)?.strip_prefix(way).map(bytes))
    };
    if let Some(bytes) = moved("load_") {
        return Some(Step::Load(bytes));
    }
    if let Some(bytes) = moved("store_") {
        return Some(Step::Store(bytes));
    }
    match operation {
        "s_endpgm" => Some(Step::End),
        "s_branch" => Some(Step::Jump { to: vec![words.next()?.into()], always: true }),
        _ if operation.starts_with("s_cbranch_") => Some(Step::Jump { to: vec![words.next()?.into()], always: false }),
        _ => None,
    }
}

/// The size in `dwordx2`, `b128`, `ubyte`, `u8`, `d16_u8`, `short_d16_hi`.
fn bytes(size: &str) -> u32 {
    let part = |part: &str| match part {
        "ubyte" | "sbyte" | "byte" => Some(1),
        "ushort" | "sshort" | "short" => Some(2),
        "dword" => Some(4),
        _ => match part.strip_prefix("dwordx") {
            Some(count) => count.parse::<u32>().ok().map(|count| 4 * count),
            None => part.strip_prefix(['b', 'u', 'i'])?.parse::<u32>().ok().map(|bits| bits / 8),
        },
    };
    size.split('_').find_map(part).unwrap_or(4)
}

#[cfg(test)]
mod tests {
    use super::super::{Traffic, count};
    use super::*;

    #[test]
    fn a_march_is_counted_as_a_whole_and_in_its_loop() {
        let text = "\
march:                                  ; @march
; %bb.0:
	s_load_dwordx8 s[0:7], s[4:5], 0x0
	s_cbranch_scc1 .LBB0_3
	global_load_dwordx4 v[8:11], v[2:3], off
	global_load_b64 v[4:5], v[10:11], off
.LBB0_2:                                ; =>This Inner Loop Header: Depth=1
	global_load_dword v15, v[6:7], off
	buffer_load_dword v1, off, s[0:3], 0 offset:4 ; 4-byte Folded Reload
	global_load_d16_u8 v22, v[2:3], off
	scratch_store_b32 off, v1, s32
	global_store_dwordx2 v[18:19], v[20:21], off
	s_cbranch_scc0 .LBB0_2
.LBB0_3:
	s_endpgm
.Lfunc_end0:
	global_load_dword v15, v[6:7], off
; Occupancy: 8
next:                                   ; @next
	flat_store_byte v[18:19], v20
	s_endpgm
; Occupancy: 5
";
        let [march, next] = count(listings(text)).try_into().unwrap();
        assert_eq!(march.traffic, Traffic { loads: 4, loaded_bytes: 29, stores: 1, stored_bytes: 8 });
        assert_eq!(march.in_loop, Some(Traffic { loads: 2, loaded_bytes: 5, stores: 1, stored_bytes: 8 }));
        assert_eq!((next.kernel.as_str(), next.traffic.stored_bytes), ("next", 1));
        assert_eq!(waves(text), [("march".to_owned(), 8), ("next".to_owned(), 5)]);
    }
}
