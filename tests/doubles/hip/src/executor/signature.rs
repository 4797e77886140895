//! Finds the kernels of a HIP source and their arguments, in the text.

use std::ops::Range;

/// A kernel as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signature {
    /// Its name.
    pub(crate) name: String,
    /// Threads of a block at most, if it says so.
    pub(crate) block_threads: Option<u32>,
    /// Its arguments.
    pub(crate) arguments: Vec<Argument>,
}

/// An argument of a kernel.
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

/// All kernels of a source, in order, or what can't be understood.
pub(crate) fn signatures(source: &str) -> Result<Vec<Signature>, String> {
    let code = blanked(source);
    let mut kernels = Vec::new();
    let mut at = 0;
    while let Some(found) = code[at..].find("__global__") {
        let opening = at + found + "__global__".len();
        // What stands between the word and the list of arguments: attributes, `void`, the name.
        let void = code[opening..].find("void").map(|found| opening + found);
        let void = void.ok_or("a `__global__` isn't followed by `void`")?;
        let attributes = &source[opening..void];
        let rest = void + "void".len();
        // `void __launch_bounds__(256) name(`
        let (bounds, rest) = match code[rest..].trim_start().starts_with("__launch_bounds__") {
            true => {
                let end = rest + code[rest..].find(')').ok_or("launch bounds without an end")? + 1;
                (&source[rest..end], end)
            }
            false => (attributes, rest),
        };
        let open = rest + code[rest..].find('(').ok_or("a kernel without arguments")?;
        let name = source[rest..open].trim().to_owned();
        if !is_name(&name) {
            return Err(format!("`{name}` is no name of a kernel"));
        }
        let close = open + code[open..].find(')').ok_or_else(|| format!("the arguments of `{name}` have no end"))?;
        let arguments = arguments(source, &code, open + 1..close).map_err(|ty| format!("{ty} of `{name}`"))?;
        kernels.push(Signature { name, block_threads: last_number(bounds), arguments });
        at = close;
    }
    Ok(kernels)
}

fn arguments(source: &str, code: &str, list: Range<usize>) -> Result<Vec<Argument>, String> {
    let mut start = list.start;
    let mut arguments = Vec::new();
    if code[list.clone()].trim().is_empty() {
        return Ok(arguments);
    }
    for part in code[list].split(',') {
        let place = start..start + part.len();
        start = place.end + 1;
        let text = part.trim_end();
        let begins = text.rfind(|c: char| !is_of_name(c)).map_or(0, |before| before + 1);
        let (ty, name) = (text[..begins].trim(), text[begins..].to_owned());
        let (ty, is_pointer) = match ty.replace("__restrict__", "").trim().strip_suffix('*') {
            Some(to) => (to.trim().to_owned(), true),
            None => (ty.to_owned(), false),
        };
        if ty.is_empty() || name.is_empty() || ty.contains(['*', '&', '[', '(']) {
            return Err(format!("can't understand argument `{}`", source[place].trim()));
        }
        arguments.push(Argument { place, ty, is_pointer, name });
    }
    Ok(arguments)
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
            if kept.is_ascii() { out.push_str(kept) } else { blank(&mut out, kept) }
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
    let numbers = text.split(|c: char| !is_of_name(c)).filter_map(|word| word.parse().ok());
    numbers.last()
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(is_of_name) && !text.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_double_finds_kernels_and_their_arguments() {
        let source = "// __global__ void no(int a)\n#define __global__ __attribute__((global))\n\
                      extern \"C\" __global__ __attribute__((amdgpu_flat_work_group_size(1, 256)))\nvoid one(\n    double *out,\n    \
                      const unsigned long long *u, /* void (x, */ const signed char a)\n{ f(1); }\n\
                      __global__ void __launch_bounds__(64) two() {}\n__global__ void three(float* a) {}\n";
        let found = signatures(source).expect("it is HIP");
        let names: Vec<_> = found.iter().map(|kernel| (kernel.name.as_str(), kernel.block_threads)).collect();
        assert_eq!(names, [("one", Some(256)), ("two", Some(64)), ("three", None)]);
        let arguments = |kernel: &Signature| -> Vec<_> {
            kernel.arguments.iter().map(|a| (a.ty.clone(), a.is_pointer, a.name.clone())).collect()
        };
        let expected = [("double", true, "out"), ("const unsigned long long", true, "u"), ("const signed char", false, "a")];
        assert_eq!(arguments(&found[0]), expected.map(|(ty, is, name)| (ty.to_owned(), is, name.to_owned())));
        assert_eq!(&source[found[0].arguments[0].place.clone()], "\n    double *out");
        assert!(found[1].arguments.is_empty());
        assert_eq!(arguments(&found[2]), [("float".to_owned(), true, "a".to_owned())]);
    }

    #[test]
    fn the_double_refuses_arguments_it_does_not_know() {
        for list in ["double **out", "double", "const float &x", "int a[3]"] {
            assert!(signatures(&format!("__global__ void f({list}) {{}}")).is_err(), "{list}");
        }
    }
}
