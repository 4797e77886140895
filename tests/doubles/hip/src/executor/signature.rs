//! Finds the kernels of a HIP source, the functions that they call and the arguments of both, in the text.

use std::ops::Range;

/// A function of the device as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    /// Its name.
    pub(crate) name: String,
    /// Whether it is a kernel.
    pub(crate) is_kernel: bool,
    /// Threads of a block at most, if it says so.
    pub(crate) block_threads: Option<u32>,
    /// Its arguments; of what is no kernel only those that are pointers.
    pub(crate) arguments: Vec<Argument>,
}

/// An argument of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Argument {
    /// Where it stands in the text.
    pub(crate) place: Range<usize>,
    /// Its type; of a pointer, the type that it points to.
    pub(crate) ty: String,
    /// Whether it is a pointer.
    pub(crate) is_pointer: bool,
    /// Its name.
    pub(crate) name: String,
}

/// All functions of a source, in order, or what can't be understood.
pub(crate) fn signatures(source: &str) -> Result<Vec<Signature>, String> {
    let code = blanked(source);
    let mut functions = Vec::new();
    let mut at = 0;
    while let Some((start, word)) = next(&code, at) {
        let is_kernel = word == KERNEL;
        let mut block_threads = None;
        // What stands between the word and the list of arguments: attributes, the type, the name.
        let mut words = start + word.len();
        let (name, list) = loop {
            let open = words + code[words..].find('(').ok_or_else(|| format!("a `{word}` without a function"))?;
            let close = closing(&code, open).ok_or_else(|| format!("a `{word}` without an end"))?;
            let name = last_name(&code[words..open]);
            if !["__attribute__", "__launch_bounds__"].contains(&name) {
                break (name, open + 1..close);
            }
            block_threads = last_number(&code[open..close]).or(block_threads);
            words = close + 1;
        };
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(format!("a `{word}` without a name"));
        }
        at = list.end;
        let arguments = arguments(source, &code, list);
        let arguments = match is_kernel {
            true => arguments.collect::<Result<_, _>>().map_err(|reason| format!("{reason} of `{name}`"))?,
            false => arguments.flatten().filter(|argument| argument.is_pointer).collect(),
        };
        functions.push(Signature { name: name.to_owned(), is_kernel, block_threads, arguments });
    }
    Ok(functions)
}

const KERNEL: &str = "__global__";
const FUNCTION: &str = "__device__";

/// The next word that begins a function.
fn next(code: &str, at: usize) -> Option<(usize, &'static str)> {
    let found = |word: &'static str| Some((at + code[at..].find(word)?, word));
    [KERNEL, FUNCTION].into_iter().filter_map(found).min()
}

/// Where the bracket that opens at a place closes.
fn closing(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0;
    let steps = code[open..].bytes().enumerate();
    let mut depths = steps.map(|(at, byte)| {
        depth += i32::from(byte == b'(') - i32::from(byte == b')');
        (open + at, depth)
    });
    depths.find(|(_, depth)| *depth == 0).map(|(at, _)| at)
}

fn arguments(source: &str, code: &str, list: Range<usize>) -> impl Iterator<Item = Result<Argument, String>> {
    let mut start = list.start;
    let parts = code[list].split(',').map(move |part| {
        let place = start..start + part.len();
        start = place.end + 1;
        (place, part)
    });
    parts.filter(|(_, part)| !part.trim().is_empty()).map(|(place, part)| {
        let text = part.trim_end();
        let name = last_name(text);
        let ty = text[..text.len() - name.len()].replace("__restrict__", "");
        let (ty, is_pointer) = match ty.trim().strip_suffix('*') {
            Some(to) => (to.trim(), true),
            None => (ty.trim(), false),
        };
        if ty.is_empty() || name.is_empty() || ty.contains(['*', '&', '[', '(']) {
            return Err(format!("can't understand argument `{}`", source[place].trim()));
        }
        Ok(Argument { place, ty: ty.to_owned(), is_pointer, name: name.to_owned() })
    })
}

/// The name at the end of a text, blanks aside.
fn last_name(text: &str) -> &str {
    let text = text.trim_end();
    &text[text.rfind(|c: char| !is_of_name(c)).map_or(0, |before| before + 1)..]
}

/// The source with blanks for comments, preprocessor lines and what stands between quotes, byte for byte.
fn blanked(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    let blank = |out: &mut String, text: &str| {
        out.extend(text.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
    };
    while let Some(first) = rest.chars().next() {
        let at_line_start = out.rsplit('\n').next().is_none_or(|line| line.trim().is_empty());
        let length = if rest.starts_with("//") || (first == '#' && at_line_start) {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if first == '"' {
            rest[1..].find('"').map_or(rest.len(), |end| end + 2)
        } else {
            let (kept, after) = rest.split_at(first.len_utf8());
            if kept.is_ascii() {
                out.push_str(kept)
            } else {
                blank(&mut out, kept)
            }
            rest = after;
            continue;
        };
        blank(&mut out, &rest[..length]);
        rest = &rest[length..];
    }
    out
}

/// The last number in a text: `amdgpu_flat_work_group_size(1, 256)` has 256.
fn last_number(text: &str) -> Option<u32> {
    let mut numbers = text.split(|c: char| !is_of_name(c)).filter_map(|word| word.parse().ok());
    numbers.next_back()
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_double_finds_functions_and_their_arguments() {
        let source = "// __global__ void no(int a)\n#define __global__ __attribute__((global))\n\
                      extern \"C\" __device__ double __ocml_exp_f64(double);\n\
                      template <typename Index>\nstatic inline __attribute__((always_inline)) __device__ void zero(double *out,\n    \
                      const Index c)\n{ out[c] = 0; }\n\
                      extern \"C\" __global__ __attribute__((amdgpu_flat_work_group_size(1, 256)))\nvoid one(\n    double *out,\n    \
                      const unsigned long long *u, /* void (x, */ const signed char a)\n{ f(1); }\n\
                      __global__ void __launch_bounds__(64) two() {}\n__global__ void three(float* a) {}\n";
        let found = signatures(source).expect("it is HIP");
        let names: Vec<_> = found.iter().map(|f| (f.name.as_str(), f.is_kernel, f.block_threads)).collect();
        let kernels = [("one", true, Some(256)), ("two", true, Some(64)), ("three", true, None)];
        assert_eq!(names[..2], [("__ocml_exp_f64", false, None), ("zero", false, None)]);
        assert_eq!(names[2..], kernels);
        let arguments = |function: &Signature| -> Vec<_> {
            function
                .arguments
                .iter()
                .map(|a| format!("{}{} {}", a.ty, if a.is_pointer { "*" } else { "" }, a.name))
                .collect()
        };
        assert_eq!(arguments(&found[1]), ["double* out"]);
        assert_eq!(arguments(&found[2]), ["double* out", "const unsigned long long* u", "const signed char a"]);
        assert_eq!(&source[found[2].arguments[0].place.clone()], "\n    double *out");
        assert_eq!(arguments(&found[3]), [""; 0]);
        assert_eq!(arguments(&found[4]), ["float* a"]);
    }

    #[test]
    fn the_double_refuses_arguments_it_does_not_know() {
        for list in ["double **out", "double", "const float &x", "int a[3]"] {
            assert!(signatures(&format!("__global__ void f({list}) {{}}")).is_err(), "{list}");
        }
        assert!(signatures("__global__").is_err() && signatures("__global__ void f(").is_err());
    }
}
