//! Loads and stores in SASS, the machine code of NVIDIA GPUs, as `nvdisasm` prints it.

use super::{Listing, Step, label};

/// The kernels of a disassembly.
pub fn listings(text: &str) -> Vec<Listing> {
    let mut listings: Vec<Listing> = Vec::new();
    for line in text.lines().map(str::trim) {
        let name = label(line);
        match name.and_then(|name| name.strip_prefix(".text.")) {
            Some(kernel) => listings.push((kernel.into(), Vec::new())),
            None => {
                if let Some((_, steps)) = listings.last_mut() {
                    steps.extend(name.map_or_else(|| step(line), |name| Some(Step::Label(name.into()))));
                }
            }
        }
    }
    listings
}

/// `/*0390*/   @P0 LDG.E.64 R10, desc[UR10][R4.64] ;`
fn step(line: &str) -> Option<Step> {
    let code = line.strip_prefix("/*")?.split_once("*/")?.1.trim().trim_start_matches(['{', '}', ' ']);
    let mut words = code.split_whitespace();
    let first = words.next()?;
    let guarded = first.starts_with('@');
    let operation = if guarded { words.next()? } else { first }.trim_end_matches(';');
    let bytes = || {
        let size = operation.split('.').skip(1).find_map(|part| match part {
            "U8" | "S8" => Some(1),
            "U16" | "S16" => Some(2),
            "64" | "128" | "256" => part.parse::<u32>().ok().map(|bits| bits / 8),
            _ => None,
        });
        size.unwrap_or(4)
    };
    match operation.split('.').next()? {
        "LDG" | "LD" => Some(Step::Load(bytes())),
        "STG" | "ST" => Some(Step::Store(bytes())),
        "BRA" | "JMP" => {
            let to = code.split_once("`(")?.1.split(')').next()?;
            // A second condition stands as the first operand: `BRA P1, ..`.
            Some(Step::Jump { to: vec![to.into()], always: !guarded && !code.contains(',') })
        }
        "EXIT" if !guarded => Some(Step::End),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Traffic, count};
    use super::*;

    #[test]
    fn a_march_is_counted_as_a_whole_and_in_its_loop() {
        let text = "\
	.section	.text.march,\"ax\",@progbits
.text.march:
        /*0010*/                   LDC.64 R0, c[0x0][0x238] ;
        /*0020*/              @!P1 EXIT ;
        /*0140*/                   LDG.E.64.CONSTANT R12, desc[UR6][R12.64] ;
.L_x_2:
        /*0250*/                   LDG.E.128.SYS R16, [R16] ;
        /*0380*/               @P0 BRA P1, `(.L_x_1) ;
        /*03a0*/                   CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div_rn_f64_full) ;
.L_x_1:
        /*03c0*/               @P2 LDG.E R24, desc[UR6][R4.64] ;
        /*0400*/                   LDG.E.U8 R22, desc[UR6][R22.64] ;
        /*0410*/                   STL.64 [R1], R18 ;
        /*0510*/                   STG.E.64 desc[UR6][R10.64], R18 ;
        /*0540*/              @!P0 BRA `(.L_x_2) ;
        /*0550*/                   EXIT ;
.L_x_8:
        /*0b20*/                   BRA `(.L_x_8);
";
        let [march] = count(listings(text)).try_into().unwrap();
        assert_eq!(march.kernel, "march");
        assert_eq!(march.traffic, Traffic { loads: 4, loaded_bytes: 29, stores: 1, stored_bytes: 8 });
        assert_eq!(march.in_loop, Some(Traffic { loads: 3, loaded_bytes: 21, stores: 1, stored_bytes: 8 }));
    }
}
