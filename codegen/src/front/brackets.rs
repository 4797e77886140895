//! Which bracket of a text has no partner: where it is no Rust at all, the parser only says that.

use crate::Diagnostic;
use crate::ir::Place;

/// The first bracket without a partner, where brackets don't balance.
pub fn unbalanced(text: &str) -> Option<Diagnostic> {
    let mut open: Vec<(char, Place)> = Vec::new();
    for (bracket, place) in brackets(text) {
        let Some(opening) = opening(bracket) else {
            open.push((bracket, place));
            continue;
        };
        match open.pop() {
            Some((last, _)) if last == opening => {}
            Some((last, at)) => {
                let message = format!("`{bracket}` closes the `{last}` of line {}, column {}", at.line, at.column + 1);
                return Some(
                    Diagnostic::new(place, message).help(format!("is there a `{}` missing before?", closing(last))),
                );
            }
            None => {
                let message = format!("`{bracket}` closes nothing");
                return Some(
                    Diagnostic::new(place, message).help(format!("remove it, or write the missing `{opening}`")),
                );
            }
        }
    }
    let (bracket, place) = open.pop()?;
    let help = format!("write the missing `{}`", closing(bracket));
    Some(Diagnostic::new(place, format!("this `{bracket}` is never closed")).help(help))
}

fn opening(bracket: char) -> Option<char> {
    match bracket {
        ')' => Some('('),
        ']' => Some('['),
        '}' => Some('{'),
        _ => None,
    }
}

fn closing(bracket: char) -> char {
    match bracket {
        '(' => ')',
        '[' => ']',
        _ => '}',
    }
}

/// The brackets outside of comments, strings and characters.
fn brackets(text: &str) -> Vec<(char, Place)> {
    let mut found = Vec::new();
    let (mut line, mut column) = (1, 0);
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if "()[]{}".contains(c) {
            found.push((c, Place { line, column, ..Place::default() }));
        }
        let (passed, left) = rest.split_at(skipped(rest).max(c.len_utf8()));
        for c in passed.chars() {
            (line, column) = if c == '\n' { (line + 1, 0) } else { (line, column + 1) };
        }
        rest = left;
    }
    found
}

/// The bytes at the start of a text in which brackets mean nothing.
fn skipped(text: &str) -> usize {
    let until = |end: &str, from: usize| text[from..].find(end).map_or(text.len(), |at| from + at + end.len());
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return comment(text);
    }
    // A word, so that the letters in front of a raw string are one; `br"`, `r#"`.
    let word = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let after = &text[word..];
    if matches!(&text[..word], "r" | "br" | "cr") {
        let hashes = after.len() - after.trim_start_matches('#').len();
        if after[hashes..].starts_with('"') {
            return until(&format!("\"{}", "#".repeat(hashes)), word + hashes + 1);
        }
    }
    if word > 0 {
        return word;
    }
    match text.chars().next() {
        Some('"') => quoted(text, '"'),
        // `'a'` and `'\n'` are characters, `'a` is a lifetime.
        Some('\'') => match text.chars().nth(1) {
            Some('\\') => quoted(text, '\''),
            Some(c) if text[1 + c.len_utf8()..].starts_with('\'') => 2 + c.len_utf8(),
            _ => 1,
        },
        _ => 0,
    }
}

/// The length of a comment that starts here; comments nest.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest.starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// The length of what stands in quotes, with them.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        if c == quote && !escaped {
            return at + c.len_utf8();
        }
        escaped = c == '\\' && !escaped;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bracket_without_a_partner_is_found() {
        let check = |text: &str, expected: Option<&str>| {
            let found = unbalanced(text).map(|found| found.to_string());
            assert!(
                found.as_deref().is_none_or(|found| expected.is_some_and(|part| found.contains(part))),
                "{text}: {found:?}"
            );
            assert_eq!(found.is_some(), expected.is_some(), "{text}");
        };
        check("fn f(a: [f64; 3]) { (a[0] + 1.0) }", None);
        check("fn f() {\n    (1.0\n}", Some("3:1: `}` closes the `(` of line 2, column 5"));
        check("fn f() {\n    [1.0]", Some("1:8: this `{` is never closed"));
        check("fn f() { } }", Some("1:12: `}` closes nothing"));
        check("'(' \"(\\\"(\" // (\n /* ( /* ( */ ( */ r#\"(\"(\"# br\"(\" '\\'' 'ä'", None);
        check("fn f<'a>(x: &'a str) { x[0 }", Some("`}` closes the `[`"));
        check("\"(", None);
        check("r#\"", None);
        check("/* (", None);
        check("'", None);
        check("ä(", Some("1:2: this `(`"));
    }
}
