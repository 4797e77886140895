//! The kernel's names as identifiers of a target: legal there, not reserved, and all different.
//!
//! The user's names come first: the first of several namesakes keeps its name, later ones become `flux_2`, `flux_3`. The
//! names an emitter needs itself (`sy`, `c`, ...) take what is left, through [`Names::fresh`]. Outside Rust, letters
//! beyond ASCII are spelled out: `κ` is `kappa`, `Δt` is `Delta_t`.

use std::collections::BTreeSet;

use super::Target;
use crate::ir::{Arena, Field, Id, Kernel, Local, Output, Param, Table};

/// A unique identifier for everything in a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    target: Target,
    fields: Vec<String>,
    params: Vec<String>,
    tables: Vec<String>,
    locals: Vec<String>,
    outputs: Vec<String>,
    taken: BTreeSet<String>,
}

impl Names {
    /// Names `kernel`'s fields, scalars, tables, locals and results for `target`.
    pub(crate) fn new(kernel: &Kernel, target: Target) -> Self {
        let mut namer = Namer { target, kept: BTreeSet::new(), taken: BTreeSet::new() };
        let wishes = |namer: &Namer, names: Vec<&str>| names.iter().map(|name| namer.legal(name)).collect::<Vec<_>>();
        let fields = wishes(&namer, names(&kernel.fields, |field| &field.name));
        let params = wishes(&namer, names(&kernel.params, |param| &param.name));
        let tables = wishes(&namer, names(&kernel.tables, |table| &table.name));
        let locals = wishes(&namer, names(&kernel.locals, |local| &local.name));
        // No numbered name may take what the user wrote elsewhere, so all wishes are known before any is granted.
        namer.kept.extend(fields.iter().chain(&params).chain(&tables).chain(&locals).cloned());
        let mut grant = |wishes: Vec<String>| wishes.iter().map(|wish| namer.grant(wish)).collect::<Vec<_>>();
        let [fields, params, tables, locals] = [fields, params, tables, locals].map(&mut grant);
        let outputs = match kernel.outputs.len() {
            1 if !namer.taken.contains("out") => vec![namer.grant("out")],
            count => (0..count).map(|index| namer.grant(&format!("out_{index}"))).collect(),
        };
        Names { target, fields, params, tables, locals, outputs, taken: namer.taken }
    }

    /// The name of a field.
    pub(crate) fn field(&self, id: Id<Field>) -> &str {
        &self.fields[id.index()]
    }

    /// The name of a scalar.
    pub(crate) fn param(&self, id: Id<Param>) -> &str {
        &self.params[id.index()]
    }

    /// The name of a table.
    pub(crate) fn table(&self, id: Id<Table>) -> &str {
        &self.tables[id.index()]
    }

    /// The name of a local.
    pub(crate) fn local(&self, id: Id<Local>) -> &str {
        &self.locals[id.index()]
    }

    /// The name of a result: `out`, or `out_0`, `out_1`, ... when there are several.
    pub(crate) fn output(&self, id: Id<Output>) -> &str {
        &self.outputs[id.index()]
    }

    /// A name for something of the emitter's own: `wish` when it is free, else `wish_2`, ...
    pub(crate) fn fresh(&mut self, wish: &str) -> String {
        let mut namer = Namer { target: self.target, kept: BTreeSet::new(), taken: std::mem::take(&mut self.taken) };
        let name = namer.grant(&namer.legal(wish));
        self.taken = namer.taken;
        name
    }
}

fn names<T>(arena: &Arena<T>, name: impl Fn(&T) -> &str) -> Vec<&str> {
    arena.iter().map(name).collect()
}

/// The name under which a kernel that computes a point per work item is found in the code of every target.
pub fn entry_point(name: &str) -> String {
    let targets = [Target::Cuda, Target::Hip, Target::OpenCl];
    let name = match shape(&ascii(name.trim_start_matches("r#"))) {
        name if is_in_opencl_family(&name) => format!("v_{name}"),
        name => name,
    };
    let free = |name: &str| !targets.iter().any(|target| reserved(*target, name)) && !listed(RUST, name);
    if free(&name) { name } else { format!("{name}_2") }
}

/// The name of the entry point in which a work item computes a row of points: OpenCL C has it beside the other, and all
/// targets have it instead where results are folded.
pub fn rows_entry_point(name: &str) -> String {
    format!("{}_rows", entry_point(name))
}

/// Hands out names.
struct Namer {
    target: Target,
    /// Names to be left to those who wish for them.
    kept: BTreeSet<String>,
    taken: BTreeSet<String>,
}

impl Namer {
    /// `name` as an identifier of the target's language, reserved or not.
    fn legal(&self, name: &str) -> String {
        // `s[0]`, an element of a parameter, is `s_0`.
        let plain = name.trim_start_matches("r#").replace('[', "_").replace(']', "");
        let plain = plain.as_str();
        match self.target {
            Target::Cuda | Target::Hip => shape(&ascii(plain)),
            Target::OpenCl => match shape(&ascii(plain)) {
                // The whole family is taken, so a number at the end would not help.
                name if is_in_opencl_family(&name) => format!("v_{name}"),
                name => name,
            },
            // A module's names are for debuggers; they may be anything.
            Target::SpirV => plain.to_string(),
            Target::Native => match shape(&unicode(plain)) {
                keyword if listed(RUST, &keyword) => format!("r#{keyword}"),
                name => name,
            },
        }
    }

    /// `wish` itself to the first who asks for it, numbered to later ones.
    fn grant(&mut self, wish: &str) -> String {
        let first = std::iter::once(wish.to_string());
        let numbered = (2..).map(|number| format!("{}_{number}", wish.trim_start_matches("r#")));
        let name = first
            .chain(numbered)
            .find(|name| {
                let left_to_another = name != wish && self.kept.contains(name);
                !left_to_another && !self.taken.contains(name) && !reserved(self.target, name)
            })
            .expect("there are more numbers than names");
        self.taken.insert(name.clone());
        name
    }
}

/// Makes a word of identifier characters an identifier that a C compiler does not reserve for itself.
fn shape(word: &str) -> String {
    let inner = word.trim_start_matches('_');
    let of_the_compiler = word.starts_with("__") || (word.starts_with('_') && inner.starts_with(char::is_uppercase));
    let word = if of_the_compiler { inner } else { word };
    match word.chars().next() {
        None => "v".to_string(),
        Some('_') if inner.is_empty() => "v".to_string(),
        Some(first) if first.is_ascii_digit() => format!("v{word}"),
        Some(_) => word.to_string(),
    }
}

/// Letters kept as they are, everything else spelled out.
fn unicode(name: &str) -> String {
    spell(name, |letter| letter.is_alphabetic())
}

/// An identifier in ASCII.
fn ascii(name: &str) -> String {
    spell(name, |_| false)
}

/// Any text on one line of visible ASCII, for comments: old compilers may not take others.
pub(crate) fn ascii_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    spell(&words.join(" "), |letter| letter.is_ascii_graphic() || letter == ' ')
}

fn spell(name: &str, keep: impl Fn(char) -> bool) -> String {
    let mut text = String::new();
    let mut after_word = false;
    for letter in name.chars() {
        let plain = letter.is_ascii_alphanumeric() || letter == '_' || keep(letter);
        let accented = ACCENTS.iter().find(|(letters, _)| letters.contains(letter)).map(|(_, plain)| *plain);
        let word = match (plain, accented) {
            (true, _) => letter.to_string(),
            (false, Some(letter)) => letter.to_string(),
            (false, None) if letter.is_ascii() => "_".to_string(),
            (false, None) => {
                if text.ends_with(char::is_alphanumeric) {
                    text.push('_');
                }
                match WORDS.iter().find(|(letters, _)| letters.contains(letter)) {
                    Some((_, word)) => (*word).to_string(),
                    None => capital(letter).unwrap_or_else(|| format!("u{:04x}", u32::from(letter))),
                }
            }
        };
        if after_word && (plain || accented.is_some()) && word.starts_with(char::is_alphabetic) {
            text.push('_');
        }
        after_word = !plain && accented.is_none() && !letter.is_ascii();
        text.push_str(&word);
    }
    text
}

/// The word for a capital whose small letter has one: `Δ` is `Delta`.
fn capital(letter: char) -> Option<String> {
    let small = letter.to_lowercase().next().filter(|small| *small != letter)?;
    let (_, word) = WORDS.iter().find(|(letters, _)| letters.contains(small))?;
    Some(word[..1].to_uppercase() + &word[1..])
}

/// Letters that are read as a word.
const WORDS: [(&str, &str); 26] = [
    ("α", "alpha"),
    ("β", "beta"),
    ("γ", "gamma"),
    ("δ", "delta"),
    ("εϵ", "epsilon"),
    ("ζ", "zeta"),
    ("η", "eta"),
    ("θϑ", "theta"),
    ("ι", "iota"),
    ("κϰ", "kappa"),
    ("λ", "lambda"),
    ("μµ", "mu"),
    ("ν", "nu"),
    ("ξ", "xi"),
    ("ο", "omicron"),
    ("πϖ", "pi"),
    ("ρϱ", "rho"),
    ("σς", "sigma"),
    ("τ", "tau"),
    ("υ", "upsilon"),
    ("φϕ", "phi"),
    ("χ", "chi"),
    ("ψ", "psi"),
    ("ω", "omega"),
    ("ℓ", "ell"),
    ("ℏ", "hbar"),
];

/// Letters that are read as plain ones.
const ACCENTS: [(&str, &str); 22] = [
    ("àáâãäå", "a"),
    ("ÀÁÂÃÄÅ", "A"),
    ("ç", "c"),
    ("Ç", "C"),
    ("èéêë", "e"),
    ("ÈÉÊË", "E"),
    ("ìíîï", "i"),
    ("ÌÍÎÏ", "I"),
    ("ñ", "n"),
    ("Ñ", "N"),
    ("òóôõöø", "o"),
    ("ÒÓÔÕÖØ", "O"),
    ("ùúûü", "u"),
    ("ÙÚÛÜ", "U"),
    ("ýÿ", "y"),
    ("Ý", "Y"),
    ("š", "s"),
    ("Š", "S"),
    ("ž", "z"),
    ("Ž", "Z"),
    ("ß", "ss"),
    ("æ", "ae"),
];

/// Whether the language gives `name` a meaning.
fn reserved(target: Target, name: &str) -> bool {
    match target {
        Target::Cuda => listed(C, name) || listed(CPP, name) || listed(CUDA, name) || is_vector_type(name),
        Target::Hip => listed(C, name) || listed(CPP, name) || listed(CUDA, name) || is_vector_type(name),
        Target::OpenCl => listed(C, name) || listed(OPENCL, name) || is_vector_type(name),
        Target::SpirV => false,
        Target::Native => {
            let word = name.trim_start_matches("r#");
            listed(RUST, name) || listed(RUST_NEVER_RAW, word) || listed(RUST_MODULE, word)
        }
    }
}

/// Whether the name begins as those of families of OpenCL C's functions and constants do.
fn is_in_opencl_family(name: &str) -> bool {
    let functions = ["as_", "convert_", "vload", "vstore", "async_work_group_", "atom_", "atomic_", "get_"];
    let constants = ["CL_", "CLK_", "FLT_", "DBL_", "HALF_", "M_"];
    functions.iter().chain(&constants).any(|start| name.starts_with(start))
}

fn listed(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|word| word == name)
}

/// `float4`, `uchar16` and the like.
fn is_vector_type(name: &str) -> bool {
    let base = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
    let width = &name[base.len()..];
    listed("1 2 3 4 8 16", width) && listed(VECTOR_BASES, base)
}

const VECTOR_BASES: &str =
    "bool char uchar short ushort int uint long ulong longlong ulonglong half float double size_t quad dim";

/// What C, its library and the compilers' own macros mean everywhere.
const C: &str = "
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    asm typeof bool true false half main
    linux unix i386 NULL EOF INFINITY NAN HUGE_VAL HUGE_VALF MAXFLOAT CHAR_BIT CHAR_MAX CHAR_MIN SCHAR_MAX SCHAR_MIN
    UCHAR_MAX SHRT_MAX SHRT_MIN USHRT_MAX INT_MAX INT_MIN UINT_MAX LONG_MAX LONG_MIN ULONG_MAX
    size_t ptrdiff_t intptr_t uintptr_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t
    uchar ushort uint ulong
    assert errno printf memcpy memset malloc free abs labs min max clamp
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi erf erfc exp exp10 exp2 expm1 fabs fdim floor
    fma fmax fmin fmod frexp hypot ilogb isfinite isinf isnan isnormal ldexp lgamma log log10 log1p log2 logb modf nan
    nextafter pow remainder remquo rint round rsqrt scalbn signbit sin sincos sinh sinpi sqrt tan tanh tanpi tgamma trunc
    acosf acoshf asinf asinhf atanf atanhf atan2f cbrtf ceilf copysignf cosf coshf erff erfcf expf exp10f exp2f expm1f
    fabsf fdimf floorf fmaf fmaxf fminf fmodf hypotf lgammaf logf log10f log1pf log2f logbf nearbyint nearbyintf powf
    rintf roundf rsqrtf sincosf sinf sinhf sqrtf tanf tanhf tgammaf truncf j0 j1 jn y0 y1 yn gamma signgam index rindex
";

/// What C++ adds.
const CPP: &str = "
    alignas alignof and and_eq bitand bitor catch char8_t char16_t char32_t class compl concept consteval constexpr
    constinit const_cast co_await co_return co_yield decltype delete dynamic_cast explicit export friend mutable namespace
    new noexcept not not_eq nullptr operator or or_eq private protected public reinterpret_cast requires static_assert
    static_cast template this thread_local throw try typeid typename using virtual wchar_t xor xor_eq std
    float16_t bfloat16_t
";

/// What CUDA and HIP add.
const CUDA: &str = "
    threadIdx blockIdx blockDim gridDim warpSize dim3 uint3 cudaStream_t hipStream_t cuda hip nvcuda
    longlong ulonglong clock clock64 trap brkpt
    atomicAdd atomicSub atomicExch atomicMin atomicMax atomicCAS atomicAnd atomicOr atomicXor
    normcdf normcdfinv erfcx erfcinv erfinv rcbrt rhypot norm norm3d norm4d rnorm rnorm3d rnorm4d
    umin umax llmin llmax ullmin ullmax mulhi mul24 umul24 saturate
";

/// What OpenCL C adds.
const OPENCL: &str = "
    kernel global local constant private generic read_only write_only read_write uniform pipe complex imaginary
    quad event_t sampler_t image1d_t image1d_array_t image1d_buffer_t image2d_t image2d_array_t image3d_t queue_t
    ndrange_t clk_event_t reserve_id_t cl_mem_fence_flags
    abs_diff add_sat all any barrier bitselect cross degrees distance dot fast_distance fast_length fast_normalize fract
    hadd isequal isgreater isgreaterequal isless islessequal islessgreater isnotequal isordered isunordered length
    lgamma_r mad mad24 mad_hi mad_sat maxmag mem_fence minmag mix mul24 mul_hi nan normalize popcount clz ctz pown powr
    prefetch radians read_mem_fence rhadd rootn rotate select shuffle shuffle2 sign smoothstep step sub_sat upsample
    vec_step wait_group_events write_mem_fence acospi asinpi atanpi atan2pi half_cos half_divide half_exp half_log
    half_powr half_recip half_rsqrt half_sin half_sqrt half_tan native_cos native_divide native_exp native_log
    native_powr native_recip native_rsqrt native_sin native_sqrt native_tan
    work_group_barrier sub_group_barrier
";

/// Rust's keywords, of today and reserved, which may be written raw.
const RUST: &str = "
    abstract as async await become box break const continue do dyn else enum extern false final fn for gen if impl in let
    loop macro match mod move mut override priv pub ref return static struct trait true try type typeof unsafe unsized
    use virtual where while yield
";

/// Rust's keywords that can't even be written raw.
const RUST_NEVER_RAW: &str = "crate self super Self _";

/// What a variable can't hide in the module of a native kernel: constants and structures with a constructor.
const RUST_MODULE: &str = "PIECE LINE CODE Piece Largest Least";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emit::text::c::library;
    use crate::ir::{Function, Place, Role, Type};

    fn kernel(fields: &[&str], params: &[&str], locals: &[&str], outputs: usize) -> Kernel {
        let mut kernel = Kernel::default();
        let place = Place::default();
        for name in fields {
            kernel.fields.push(Field { name: name.to_string(), ty: Type::F64, axes: [true; 3], place });
        }
        for name in params {
            kernel.params.push(Param { name: name.to_string(), ty: Type::F64, place });
        }
        for name in locals {
            kernel.locals.push(Local { name: name.to_string(), ty: Type::F64, mutable: false, note: None });
        }
        for _ in 0..outputs {
            kernel.outputs.push(Output { ty: Type::F64, role: Role::Value });
        }
        kernel
    }

    /// The names of a kernel with these locals.
    fn locals(target: Target, wishes: &[&str]) -> Vec<String> {
        Names::new(&kernel(&[], &[], wishes, 1), target).locals
    }

    #[test]
    fn namesakes_are_told_apart() {
        assert_eq!(locals(Target::Cuda, &["s", "t", "s", "s"]), ["s", "t", "s_2", "s_3"]);
    }

    #[test]
    fn a_numbered_name_leaves_the_users_own_alone() {
        assert_eq!(locals(Target::Cuda, &["s", "s", "s_2"]), ["s", "s_3", "s_2"]);
        let names = Names::new(&kernel(&["s"], &["s"], &["s_2", "s"], 1), Target::OpenCl);
        assert_eq!((names.field(Id::new(0)), names.param(Id::new(0))), ("s", "s_3"));
        assert_eq!(names.locals, ["s_2", "s_4"]);
    }

    #[test]
    fn reserved_words_differ_by_language() {
        let wishes = ["kernel", "template", "float4", "type", "step", "linux", "get_u"];
        assert_eq!(
            locals(Target::Cuda, &wishes),
            ["kernel", "template_2", "float4_2", "type", "step", "linux_2", "get_u"]
        );
        assert_eq!(
            locals(Target::OpenCl, &wishes),
            ["kernel_2", "template", "float4_2", "type", "step_2", "linux_2", "v_get_u"]
        );
        assert_eq!(locals(Target::Native, &["kernel", "type"]), ["kernel", "r#type"]);
        assert_eq!(locals(Target::Native, &["LINE", "points"]), ["LINE_2", "points"]);
        assert_eq!(locals(Target::Native, &["r#type", "r#type"]), ["r#type", "type_2"]);
        assert_eq!(locals(Target::Hip, &["r#type", "r#new"]), ["type", "new_2"]);
    }

    #[test]
    fn the_functions_of_cs_library_are_left_to_it() {
        for name in Function::ALL.into_iter().filter_map(library) {
            assert!(reserved(Target::Cuda, name) && reserved(Target::Cuda, &format!("{name}f")), "{name}");
            assert!(reserved(Target::OpenCl, name), "{name}");
        }
    }

    #[test]
    fn letters_beyond_ascii_are_spelled_out_except_in_rust() {
        let wishes = ["κ", "Δt", "dκ", "κ1", "αβ", "é", "ш", "μ"];
        let spelled = ["kappa", "Delta_t", "d_kappa", "kappa1", "alpha_beta", "e", "u0448", "mu"];
        for target in [Target::Cuda, Target::Hip, Target::OpenCl] {
            assert_eq!(locals(target, &wishes), spelled);
        }
        assert_eq!(locals(Target::Native, &wishes), wishes);
        assert_eq!(locals(Target::Cuda, &["κ", "kappa"]), ["kappa", "kappa_2"]);
    }

    #[test]
    fn names_of_the_compiler_and_odd_ones_are_reshaped() {
        assert_eq!(
            locals(Target::Cuda, &["__x", "_X", "_x", "__", "flux(-X)", "2d"]),
            ["x", "X", "_x", "v", "flux__X_", "v2d"]
        );
    }

    #[test]
    fn results_and_the_emitters_own_names_give_way() {
        let mut names = Names::new(&kernel(&["c", "sy"], &[], &[], 1), Target::Cuda);
        assert_eq!(names.output(Id::new(0)), "out");
        assert_eq!(
            [names.fresh("c"), names.fresh("sy"), names.fresh("sz"), names.fresh("c")],
            ["c_2", "sy_2", "sz", "c_3"]
        );
        let taken = Names::new(&kernel(&["out"], &[], &[], 1), Target::Cuda);
        assert_eq!(taken.output(Id::new(0)), "out_0");
        let several = Names::new(&kernel(&["out_1"], &[], &[], 2), Target::Cuda);
        assert_eq!(several.outputs, ["out_0", "out_1_2"]);
    }

    #[test]
    fn an_entry_point_has_one_name_for_all_targets() {
        assert_eq!(entry_point("heat"), "heat");
        assert_eq!(entry_point("step"), "step_2");
        assert_eq!(entry_point("r#virtual"), "virtual_2");
        assert_eq!(entry_point("π_step"), "pi_step");
        assert_eq!(entry_point("get_global_id"), "v_get_global_id");
        assert_eq!(rows_entry_point("main"), "main_2_rows");
    }
}
