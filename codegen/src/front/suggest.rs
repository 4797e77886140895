//! What a name was probably meant to be: words of other languages, and near misses.

/// How many single changes (a letter more, less, replaced, or two swapped) lead from one word to another.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(rows[i - 2][j - 2] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// The known name that is so close that it was probably meant.
pub(super) fn nearest<S: AsRef<str>>(name: &str, known: impl IntoIterator<Item = S>) -> Option<String> {
    let of = |known: S| {
        let known = known.as_ref();
        let same_but_case = known.eq_ignore_ascii_case(name);
        let (distance, length) = (distance(name, known), name.chars().count().max(known.chars().count()));
        let allowed = if length < 3 { 0 } else { length.div_ceil(3).min(2) };
        (same_but_case || distance <= allowed).then(|| (distance, known.to_owned()))
    };
    known.into_iter().filter_map(of).min().map(|(_, known)| known)
}

/// A function of Fortran, C or Python as it is written on `x`, with the other arguments in their places.
pub(super) fn function_elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "fabs" | "dabs" | "iabs" => "x.abs()",
        "dsqrt" | "sqrtf" => "x.sqrt()",
        "dexp" | "expf" => "x.exp()",
        "log" | "dlog" | "alog" | "logf" => "x.ln()",
        "pow" | "power" => "x.powi(2)`, or for an exponent that is a float `x.powf(0.5)",
        "square" | "sqr" | "sq" => "x.powi(2)",
        "fmax" | "amax1" | "dmax1" | "maximum" => "a.max(b)",
        "fmin" | "amin1" | "dmin1" | "minimum" => "a.min(b)",
        "fma" => "a.mul_add(b, c)",
        "sign" => "a.copysign(b)`, or for -1 and 1 `x.signum()",
        "sgn" => "x.signum()",
        "mod" | "fmod" | "modulo" | "remainder" => "a % b`, or never negative `a.rem_euclid(b)",
        "int" | "ifix" | "idint" => "x as i32",
        "real" | "float" | "dble" | "double" => "n as f64",
        "nint" | "anint" | "rint" => "x.round()",
        "aint" => "x.trunc()",
        "ceiling" => "x.ceil()",
        "arcsin" => "x.asin()",
        "arccos" => "x.acos()",
        "arctan" => "x.atan()",
        "arctan2" => "y.atan2(x)",
        "merge" | "where" | "select" | "iff" => "if c { a } else { b }",
        "isnan" => "x.is_nan()",
        "iand" => "a & b",
        "ior" => "a | b",
        "ieor" => "a ^ b",
        "ishft" | "shiftl" => "n << 3",
        "shiftr" => "n >> 3",
        _ => return None,
    })
}

/// A type of Fortran, C or Python as it is called in Rust.
pub(super) fn type_elsewhere(name: &str) -> Option<&'static str> {
    Some(match name {
        "double" | "real8" | "real64" | "float64" | "Double" | "Real" | "real" => "f64",
        "float" | "single" | "real4" | "real32" | "float32" | "Float" => "f32",
        "int" | "integer" | "Int" | "int32" | "int32_t" | "Integer" => "i32",
        "long" | "int64" | "int64_t" => "i64",
        "uint" | "unsigned" | "uint32" | "uint32_t" => "u32",
        "uint64" | "uint64_t" => "u64",
        "logical" | "boolean" | "Bool" => "bool",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let known = ["sqrt", "sin", "sinh", "kappa", "u", "u_old"];
        let check =
            |name: &str, expected: Option<&str>| assert_eq!(nearest(name, known).as_deref(), expected, "{name}");
        check("sqr", Some("sqrt"));
        check("kapa", Some("kappa"));
        check("Kappa", Some("kappa"));
        check("kpapa", Some("kappa"));
        check("uold", Some("u_old"));
        check("U", Some("u"));
        check("v", None);
        check("gamma", None);
        check("rho", None);
        assert_eq!((distance("", "ab"), distance("ab", "ba"), distance("kitten", "sitting")), (2, 1, 3));
    }
}
