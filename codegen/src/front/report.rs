//! Collects mistakes and the spans that places stand for.

use std::collections::BTreeSet;

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

use crate::diagnostic::Diagnostic;
use crate::ir::Place;

/// First and last token of each place, by [`Place::token`].
#[derive(Clone, Debug, Default)]
pub struct Spans(Vec<(Span, Span)>);

impl Spans {
    /// The spans of the first and the last token; the macro's call site for places that are not in the source.
    pub fn of(&self, place: Place) -> (Span, Span) {
        let missing = (Span::call_site(), Span::call_site());
        self.0.get(place.token as usize).copied().unwrap_or(missing)
    }
}

/// Gathers diagnostics, each once.
#[derive(Debug, Default)]
pub(super) struct Reporter {
    diagnostics: Vec<Diagnostic>,
    seen: BTreeSet<(u32, u32, String)>,
    spans: Spans,
}

impl Reporter {
    /// The place of `tokens`.
    pub(super) fn place(&mut self, tokens: &(impl ToTokens + ?Sized)) -> Place {
        let mut spans = tokens.to_token_stream().into_iter().map(|token| token.span());
        let first = spans.next().unwrap_or_else(Span::call_site);
        let last = spans.last().unwrap_or(first);
        self.place_of(first, last)
    }

    /// The place from the token at `first` to the token at `last`.
    pub(super) fn place_of(&mut self, first: Span, last: Span) -> Place {
        self.spans.0.push((first, last));
        let start = first.start();
        Place {
            line: u32::try_from(start.line).unwrap_or(0),
            column: u32::try_from(start.column).unwrap_or(0),
            token: u32::try_from(self.spans.0.len() - 1).expect("fewer than 2^32 places"),
        }
    }

    /// Reports a diagnostic; the same text at the same tokens is reported once. Inlined code and loops are seen many times,
    /// with other numbers in the text.
    pub(super) fn report(&mut self, diagnostic: Diagnostic) {
        let Place { line, column, .. } = diagnostic.place;
        let text = diagnostic.message.replace(|c: char| c.is_ascii_digit() || c == '-', "");
        if self.seen.insert((line, column, text)) {
            self.diagnostics.push(diagnostic);
        }
    }

    /// Reports `message` at a place.
    pub(super) fn refuse_at(&mut self, place: Place, message: impl Into<String>) {
        self.report(Diagnostic::new(place, message));
    }

    /// Reports at `tokens` what is wrong and what to write instead.
    pub(super) fn refuse(
        &mut self,
        tokens: &(impl ToTokens + ?Sized),
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        let place = self.place(tokens);
        self.report(Diagnostic::new(place, message).help(help));
    }

    /// Whether anything was reported.
    pub(super) fn has_mistakes(&self) -> bool {
        !self.diagnostics.is_empty()
    }

    /// All mistakes in the order of the source, and the spans.
    pub(super) fn finish(mut self) -> (Vec<Diagnostic>, Spans) {
        self.diagnostics.sort_by_key(|diagnostic| (diagnostic.place.line, diagnostic.place.column));
        (self.diagnostics, self.spans)
    }
}

/// `1 argument`, `2 arguments`.
pub(super) fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Tokens as a person would type them, for notes and messages: `flux(-X)`, not `flux (- X)`.
pub(super) fn tidy(tokens: &impl ToTokens) -> String {
    let mut text = String::new();
    write_tidy(tokens.to_token_stream(), &mut text);
    text
}

/// A type as a person would type it: `Field<f64>`.
pub(super) fn tidy_type(ty: &syn::Type) -> String {
    tidy(ty).replace(" < ", "<").replace(" > ", ">").replace(" >", ">")
}

fn write_tidy(tokens: TokenStream, text: &mut String) {
    use proc_macro2::{Delimiter, Spacing, TokenTree};
    let mut after_operand = false;
    let mut joint = false;
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => ("{ ", " }"),
                    Delimiter::None => ("", ""),
                };
                text.push_str(open);
                write_tidy(group.stream(), text);
                text.push_str(close);
                after_operand = true;
            }
            TokenTree::Punct(punct) => {
                let c = punct.as_char();
                match c {
                    ',' | ';' => text.push_str(&format!("{c} ")),
                    '.' | ':' | '&' | '|' | '!' | '?' => text.push(c),
                    _ if joint || punct.spacing() == Spacing::Joint => text.push(c),
                    _ if after_operand => text.push_str(&format!(" {c} ")),
                    _ => text.push(c),
                }
                joint = punct.spacing() == Spacing::Joint;
                after_operand = false;
                continue;
            }
            TokenTree::Ident(_) | TokenTree::Literal(_) => {
                if after_operand {
                    text.push(' ');
                }
                text.push_str(&token.to_string());
                after_operand = true;
            }
        }
        joint = false;
    }
}
