//! Single opcodes on handwritten PTX against Rust.

mod floats;
mod flow;
mod integers;
mod memory;
mod refused;

use crate::{Extent, Kernel, Memory, Module};

/// Memory of one piece.
struct Words {
    /// In pairs, so that vectors lie where they may.
    words: Vec<u128>,
    may_be_written: bool,
}

impl Words {
    fn new(words: &[u64], may_be_written: bool) -> Words {
        let pair = |pair: &[u64]| u128::from(pair[0]) | u128::from(*pair.get(1).unwrap_or(&0)) << 64;
        Words { words: words.chunks(2).map(pair).collect(), may_be_written }
    }

    fn extent(&mut self) -> Extent {
        let start = self.words.as_mut_ptr().expose_provenance() as u64;
        Extent { start, end: start + size_of_val(self.words.as_slice()) as u64 }
    }

    fn word(&self, at: usize) -> u64 {
        (self.words[at / 2] >> (64 * (at % 2))) as u64
    }
}

/// All pieces, and whether each may be written.
struct Pieces(Vec<(Extent, bool)>);

// SAFETY: the tests keep the words until the run is over, and touch them only then.
unsafe impl Memory for Pieces {
    fn reach(&self, address: u64, _: usize, write: bool) -> Result<Extent, String> {
        let found = self.0.iter().find(|(extent, _)| (extent.start..extent.end).contains(&address));
        match found {
            None => Err("nothing is there".to_owned()),
            Some((_, false)) if write => Err("it is only read".to_owned()),
            Some((extent, _)) => Ok(*extent),
        }
    }
}

impl Pieces {
    fn of(pieces: &mut [&mut Words]) -> (Pieces, Vec<u64>) {
        let known: Vec<(Extent, bool)> =
            pieces.iter_mut().map(|words| (words.extent(), words.may_be_written)).collect();
        let starts = known.iter().map(|(extent, _)| extent.start).collect();
        (Pieces(known), starts)
    }
}

/// A module with one kernel `k` of so many 64-bit parameters `p0`, `p1`, ...
fn module(before: &str, params: usize, body: &str) -> String {
    let params: Vec<String> = (0..params).map(|number| format!(".param .u64 p{number}")).collect();
    let registers = ".reg .pred %p<99>; .reg .b16 %rs<99>; .reg .b32 %r<99>; .reg .b64 %rd<99>; .reg .f32 %f<99>; \
                     .reg .f64 %fd<99>;";
    let params = params.join(", ");
    format!(
        ".version 6.3\n.target sm_70\n.address_size 64\n{before}\n.visible .entry k({params})\n{{\n{registers}\n{body}\nret;\n}}\n"
    )
}

fn parsed(text: &str) -> Module {
    Module::parse(text).unwrap_or_else(|error| panic!("{error} of:\n{text}"))
}

fn arguments(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn kernel(module: &Module) -> &Kernel {
    module.kernel("k").expect("the module has it")
}

/// What the body leaves in register 20 of some size, for each thread with its three inputs in `%rd1` to `%rd3` and, as far as
/// they go, in `%r1`, `%rs1`, `%f1` and `%fd1` and so on.
fn results(before: &str, body: &str, inputs: &[[u64; 3]]) -> Vec<u64> {
    let mut head =
        "ld.param.u64 %rd90, [p0]; ld.param.u64 %rd91, [p1];\nmov.u32 %r90, %tid.x; mov.u32 %r91, %ctaid.x; \
                    mad.lo.s32 %r90, %r91, 64, %r90;\nmul.wide.s32 %rd92, %r90, 24; add.s64 %rd90, %rd90, %rd92; \
                    mul.wide.s32 %rd92, %r90, 8; add.s64 %rd91, %rd91, %rd92;\n"
            .to_owned();
    for number in 1..=3 {
        head += &format!(
            "ld.global.u64 %rd{number}, [%rd90+{}]; cvt.u32.u64 %r{number}, %rd{number}; cvt.u16.u64 %rs{number}, \
             %rd{number}; mov.b32 %f{number}, %r{number}; mov.b64 %fd{number}, %rd{number};\n",
            8 * (number - 1)
        );
    }
    let tail = match body {
        body if body.contains("%p20") => "selp.b64 %rd20, 1, 0, %p20;",
        body if body.contains("%rs20") => "cvt.u64.u16 %rd20, %rs20;",
        body if body.contains("%r20") => "cvt.u64.u32 %rd20, %r20;",
        body if body.contains("%f20") => "mov.b32 %r95, %f20; cvt.u64.u32 %rd20, %r95;",
        body if body.contains("%fd20") => "mov.b64 %rd20, %fd20;",
        _ => "",
    };
    let text = module(before, 2, &format!("{head}{body}\n{tail}\nst.global.u64 [%rd91], %rd20;"));
    // Whole blocks only: what is left over computes something all the same.
    let blocks = inputs.len().div_ceil(64);
    let mut padded: Vec<u64> = inputs.iter().flatten().copied().collect();
    padded.resize(blocks * 64 * 3, 1);
    let (mut input, mut output) = (Words::new(&padded, false), Words::new(&vec![0; blocks * 64], true));
    let (memory, starts) = Pieces::of(&mut [&mut input, &mut output]);
    let module = parsed(&text);
    let run = kernel(&module).run([blocks as u32, 1, 1], [64, 1, 1], &arguments(&starts), &memory);
    run.unwrap_or_else(|fault| panic!("{fault}"));
    (0..inputs.len()).map(|at| output.word(at)).collect()
}

/// Compares an instruction with a function of the three inputs.
fn check(body: &str, inputs: &[[u64; 3]], expected: impl Fn(u64, u64, u64) -> u64) {
    for (input, found) in inputs.iter().zip(results("", body, inputs)) {
        let [a, b, c] = *input;
        let expected = expected(a, b, c);
        assert!(found == expected, "`{body}` of {a:#x}, {b:#x}, {c:#x} is {found:#x}, not {expected:#x}");
    }
}

/// Numbers at the ends of every type, and some in between.
const INTEGERS: [u64; 22] = [
    0,
    1,
    2,
    7,
    31,
    32,
    63,
    64,
    200,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_ffff,
    0x1234_5678_9abc_def1,
];

/// All pairs of some words, each with a third one.
fn pairs(words: &[u64]) -> Vec<[u64; 3]> {
    let pairs = words.iter().enumerate().flat_map(|(at, a)| {
        words.iter().enumerate().map(move |(other, b)| [*a, *b, words[(at * 7 + other * 3 + 1) % words.len()]])
    });
    pairs.collect()
}
