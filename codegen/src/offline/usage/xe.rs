//! Loads and stores in the assembly of Intel GPUs, as Intel's graphics compiler dumps it: one text for each kernel.

use super::{Listing, Step, label};

/// What the head of a kernel's text tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The kernel's name.
    pub kernel: String,
    /// Registers of a hardware thread.
    pub registers: Option<u32>,
    /// Bytes that did not fit into them.
    pub spill_bytes: u32,
}

/// Reads the comments on top.
pub fn head(text: &str) -> Option<Head> {
    let after =
        |what: &str| text.lines().find_map(|line| line.strip_prefix("//.")?.strip_prefix(what)?.strip_prefix(' '));
    let registers = after("thread_config").and_then(|config| config.split("numGRF=").nth(1));
    let digits = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok();
    Some(Head {
        kernel: after("kernel")?.trim().trim_matches('"').to_owned(),
        registers: registers.and_then(digits),
        spill_bytes: after("spill size").and_then(|size| digits(size.trim())).unwrap_or(0),
    })
}

/// The kernel of a text.
pub fn listing(text: &str) -> Option<Listing> {
    let kernel = head(text)?.kernel;
    // Before the mark arguments are loaded.
    let is_main = |line: &str| line.trim_start_matches("// ").trim() == "_main:";
    let code = text.lines().position(is_main).map_or(0, |main| main + 1);
    Some((kernel, text.lines().skip(code).filter_map(step).collect()))
}

/// `(W&~f0.0) load.ugm.d64.a64 (32|M0)  r32:4  [r24:4]  {A@3,$4} // ex_desc:0x0; desc:0x8400780 // $15`
fn step(line: &str) -> Option<Step> {
    if line.starts_with("//") {
        return None;
    }
    if let Some(name) = label(line) {
        return Some(Step::Label(name.into()));
    }
    let (code, comment) = line.split_once("//").unwrap_or((line, ""));
    let code = code.trim();
    let (guard, code) = match code.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((guard, code)) => (guard, code.trim()),
        None => ("", code),
    };
    let mut words = code.split_whitespace();
    let operation = words.next()?;
    let guarded = guard.contains('f');
    match operation.split('.').next()? {
        "load" | "store" if operation.contains(".slm") => None,
        "load" => Some(Step::Load(moved(operation))),
        "store" => Some(Step::Store(moved(operation))),
        "send" | "sends" | "sendc" => message(words.next()?, comment),
        name @ ("jmpi" | "goto" | "while" | "brd" | "brc" | "break" | "cont" | "if" | "else") => {
            let to = words.filter(|word| !word.starts_with('(') && !word.starts_with('{')).map(str::to_owned).collect();
            Some(Step::Jump { to, always: !guarded && matches!(name, "jmpi" | "goto") })
        }
        _ => None,
    }
}

/// The bytes for one thread in `load.ugm.d64x2.a64`; `d8u32` is a byte that fills 32 bits.
fn moved(operation: &str) -> u32 {
    let size = operation
        .split('.')
        .find_map(|part| part.strip_prefix('d').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())));
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok());
    let bits: u32 = size.and_then(number).unwrap_or(32);
    let values: u32 = size.and_then(|size| number(size.split_once('x')?.1)).unwrap_or(1);
    bits / 8 * values
}

/// A message of the older kind tells in its comment what it does: `wr:2+0, rd:4; hdc.dc1; untyped surface read with xy`.
/// Halves of a thread's lanes are served one after the other, the first by `M0`.
fn message(lanes: &str, comment: &str) -> Option<Step> {
    const REGISTER_BYTES: u32 = 32;
    let (width, offset) =
        lanes.trim_matches(['(', ')']).split_once('|').unwrap_or((lanes.trim_matches(['(', ')']), "M0"));
    let is_memory = comment.contains(" read") || comment.contains(" write");
    if offset != "M0" || !is_memory || comment.contains("scratch") || comment.contains("slm") {
        return None;
    }
    let width: u32 = width.parse().ok()?;
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok();
    let registers = match comment.contains(" write") {
        true => number(comment.split_once("wr:")?.1.split_once('+')?.1)?,
        false => number(comment.split_once("rd:")?.1)?,
    };
    let bytes = (registers * REGISTER_BYTES).div_ceil(width);
    Some(if comment.contains(" write") { Step::Store(bytes) } else { Step::Load(bytes) })
}

#[cfg(test)]
mod tests {
    use super::super::{Traffic, count};
    use super::*;

    #[test]
    fn a_march_is_counted_as_a_whole_and_in_its_loop() {
        let text = "\
//.kernel march
//.platform PVCXT
//.thread_config numGRF=128, numAcc=4, numSWSB=16
//.full_options \"-dump load store\"
//.spill size 640
//.declare V0033 (41)  rf=r size=64 type=d alias=+0 align=32 words (r0.0)
per_thread_prolog:
        load.ugm.d32x32t.a32.ca.ca (1|M0)  r1:2 bti[255][r127:1]   {A@1,$0} // ex_desc:0xFF000000; desc:0x6228E500 // $51
// B002: Preds:{B001},  Succs:{B003, B006}
// _main:
(W&~f0.0) jmpi                               _0_007                                                  // $3
_0_008:
        load.ugm.d64.a64 (32|M0)  r32:4         [r24:4]            {A@3,$4} // ex_desc:0x0; desc:0x8400780 // $15
(W)     send.dc0 (16|M0)         null     r0      r5:4    0x0            0x020F3000           {$4} // wr:1h+4, rd:0; hword scratch block write x8 //  scratch space spill:  from offset[0x32]; $7
_0_009:
        load.ugm.d64x2.a64 (32|M0)  r41:4         [r10:4]            {A@1,$7} // ex_desc:0x0; desc:0x8400780 // $24
        load.ugm.d8u32.a64 (32|M0)  r16:2       [r6:4]             {A@3,$8} // ex_desc:0x0; desc:0x8200980 // $29
        store.ugm.d64.a64 (32|M0)  [r6:4]       r26:4              {A@1,$6} // ex_desc:0x0; desc:0x8000784 // $41
(W&~f2.0) jmpi                               _0_007                                                  // $44
(W)     jmpi                                 _0_009                                                  // $49
_0_007:
(W)     send.gtwy (8|M0)         null     r127    null:0  0x0            0x02000010           {EOT,F@1} // wr:1+0, rd:0; end of thread // $51
";
        let head = head(text).unwrap();
        assert_eq!((head.kernel.as_str(), head.registers, head.spill_bytes), ("march", Some(128), 640));
        let [march] = count(listing(text).into_iter().collect()).try_into().unwrap();
        assert_eq!(march.traffic, Traffic { loads: 3, loaded_bytes: 25, stores: 1, stored_bytes: 8 });
        assert_eq!(march.in_loop, Some(Traffic { loads: 2, loaded_bytes: 17, stores: 1, stored_bytes: 8 }));
    }

    #[test]
    fn messages_of_older_gpus_are_counted_once_for_both_halves() {
        let text = "\
//.kernel old
_main:
_0_009:
        send (16|M0)             r18:w    r12     0xC            0x04405C01           // wr:2+0, rd:4; hdc.dc1; untyped surface read with xy // $37
        send (16|M16)            r122:w   r116    0xC            0x04405C01           // wr:2+0, rd:4; hdc.dc1; untyped surface read with xy // $23
        sends (16|M0)            null:w   r100    r30     0x10C            0x04025C00           // wr:2+4, rd:0; hdc.dc1; untyped surface write with xy // $123
        while (32|M0)                        _0_009                                                  // $137
(W)     send (8|M0)              null     r127    0x27            0x02000010           {EOT} // wr:1+0, rd:0; spawner; end of thread // $139
";
        let [old] = count(listing(text).into_iter().collect()).try_into().unwrap();
        assert_eq!(old.traffic, Traffic { loads: 1, loaded_bytes: 8, stores: 1, stored_bytes: 8 });
        assert_eq!(old.in_loop, Some(old.traffic));
    }
}
