//! Random text for the front end: soups of the words of the language, and real kernels with a few tokens changed.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use polyhalo_codegen::emit::EMITTERS;
use polyhalo_codegen::front::{Compiled, ModuleItem, Options, compile_instances, instances, kernels_of_file, module};
use polyhalo_codegen::random::Random;
use proc_macro2::{Delimiter, Group, Spacing, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Item;

use crate::fixtures::folder;

/// What soups consist of. Groups are made beside them.
const WORDS: [&str; 124] = [
    "fn",
    "let",
    "mut",
    "if",
    "else",
    "for",
    "in",
    "return",
    "match",
    "while",
    "loop",
    "break",
    "continue",
    "const",
    "static",
    "struct",
    "mod",
    "use",
    "pub",
    "impl",
    "as",
    "move",
    "ref",
    "unsafe",
    "async",
    "self",
    "super",
    "crate",
    "u",
    "v",
    "w",
    "x",
    "k",
    "p",
    "T",
    "R",
    "N",
    "X",
    "Y",
    "Z",
    "HERE",
    "Field",
    "FieldX",
    "FieldYZ",
    "Point",
    "Offset",
    "Sum",
    "Max",
    "Min",
    "f64",
    "f32",
    "i64",
    "i32",
    "i8",
    "u64",
    "u32",
    "u8",
    "bool",
    "usize",
    "u16",
    "str",
    "true",
    "false",
    "sqrt",
    "powi",
    "min",
    "max",
    "abs",
    "mul_add",
    "wrapping_add",
    "to_bits",
    "iter",
    "len",
    "stencil",
    "u[X]",
    "u[HERE]",
    "u[-Y]",
    "&Field<f64>",
    "&[Field<f32>; 3]",
    "0",
    "1",
    "2",
    "-1",
    "7",
    "1.0",
    "0.5_f32",
    "1e400",
    "3u8",
    "0xffff_ffff_ffff_ffff",
    "9223372036854775808",
    "1_000_000",
    "'a",
    "'c'",
    "\"text\"",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "==",
    "!=",
    "<",
    ">",
    "<=",
    "&&",
    "||",
    "!",
    "=",
    "+=",
    "..",
    "..=",
    ",",
    ";",
    ":",
    "::",
    "->",
    "=>",
    ".",
    "?",
];

/// Options, good and bad.
const OPTIONS: [&str; 14] = [
    "",
    "contract",
    "T = f32 | f64",
    "R = 1 | 2",
    "T = f32 | i32, R = 0 | 3",
    "crate = polyhalo",
    "crate = \"polyhalo\"",
    "contract = 3",
    "T =",
    "= 1",
    "T = f32 |",
    "contract contract",
    "R = -1 | true",
    "T = Field<f64>",
];

/// The parameters and results of functions whose body is a soup.
const HEADS: [&str; 8] = [
    "fn k(u: &Field<f64>, x: f64) -> f64",
    "fn k(u: &Field<f32>, v: &Field<i32>, x: i32, p: Point) -> (f32, i32)",
    "fn k<T, const R: usize>(u: &Field<T>, x: T) -> T",
    "fn k(u: &[Field<f64>; 3], w: &FieldYZ<f64>) -> [f64; 3]",
    "fn k(u: &Field<u8>, v: &Field<bool>) -> (Sum<i64>, Max<u8>)",
    "fn k(u: &Field<i64>) -> Min<i64>",
    "fn k()",
    "async unsafe fn k<'a>(&self, mut u: Field<f64>, (v, w): (f64, f64)) -> impl Fn()",
];

/// What the front end is given.
#[derive(Clone, Debug)]
pub struct Text {
    /// The arguments of the attribute.
    pub options: String,
    /// The item, or a whole file.
    pub source: TokenStream,
}

/// The functions and modules that are changed, good ones and refused ones.
///
/// # Panics
/// When they aren't there.
pub fn kernels() -> Vec<TokenStream> {
    let folders = ["kernels", "steps", "ui", "../examples/kernels"].map(|name| folder().join(name));
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    files.sort();
    let texts = files.iter().filter_map(|path| fs::read_to_string(path).ok());
    let items = texts.filter_map(|text| syn::parse_file(&text).ok()).flat_map(|file| file.items);
    let kernels = items.filter(|item| matches!(item, Item::Fn(_) | Item::Mod(_))).map(|item| item.to_token_stream());
    let kernels: Vec<TokenStream> = kernels.filter(|item| item.to_string().contains("stencil")).collect();
    assert!(kernels.len() > 60, "the kernels are beside this file");
    kernels
}

/// The text of a seed.
pub fn text(seed: u64, kernels: &[TokenStream]) -> Text {
    let random = &mut Random::new(seed);
    let options = random.pick(&OPTIONS).to_owned();
    let source = match random.below(4) {
        0 => {
            let head: TokenStream = random.pick(&HEADS).parse().expect("the heads are tokens");
            let body = TokenTree::Group(Group::new(Delimiter::Brace, soup(random, 40, 4)));
            let function: TokenStream = head.into_iter().chain([body]).collect();
            match random.below(3) {
                0 => function,
                1 => [name("#"), bracketed("stencil"), wrapped("mod", function)].into_iter().collect(),
                _ => [name("#"), bracketed("stencil"), function].into_iter().collect(),
            }
        }
        1 if random.once_in(4) => soup(random, 30, 4),
        _ => {
            let mut source: Vec<TokenTree> = kernels[random.below(kernels.len())].clone().into_iter().collect();
            let most = random.pick(&[1, 2, 8]);
            let likely = random.once_in(3);
            for _ in 0..random.below(most + 1) {
                let at = random.below(count(&source).max(1));
                source = changed(source, &mut { at }, likely, random);
            }
            source.into_iter().collect()
        }
    };
    Text { options, source }
}

fn name(text: &str) -> TokenStream {
    text.parse().expect("it is a token")
}

fn bracketed(text: &str) -> TokenStream {
    TokenTree::Group(Group::new(Delimiter::Bracket, name(text))).into()
}

/// A module around items.
fn wrapped(word: &str, items: TokenStream) -> TokenStream {
    let stencil: TokenStream = [name("#"), bracketed("stencil"), items].into_iter().collect();
    let body = TokenTree::Group(Group::new(Delimiter::Brace, stencil));
    [name(word), name("m"), body.into()].into_iter().collect()
}

/// Words and groups of such, `depth` deep at most.
fn soup(random: &mut Random, words: usize, depth: usize) -> TokenStream {
    let mut soup = TokenStream::new();
    for _ in 0..random.below(words + 1) {
        if depth > 0 && random.once_in(5) {
            let delimiter = random.pick(&[Delimiter::Parenthesis, Delimiter::Brace, Delimiter::Bracket]);
            soup.extend([TokenTree::Group(Group::new(delimiter, self::soup(random, words / 3, depth - 1)))]);
        } else {
            soup.extend(word(random));
        }
    }
    soup
}

fn word(random: &mut Random) -> TokenStream {
    name(random.pick(&WORDS))
}

/// The number of tokens, those in groups too.
fn count(tokens: &[TokenTree]) -> usize {
    let inside = |token: &TokenTree| match token {
        TokenTree::Group(group) => count(&group.stream().into_iter().collect::<Vec<_>>()),
        _ => 0,
    };
    tokens.iter().map(|token| 1 + inside(token)).sum()
}

/// A token of the same kind, so that what comes out is more likely to be accepted.
fn alike(token: TokenTree, random: &mut Random) -> TokenStream {
    let choice: &[&str] = match &token {
        TokenTree::Ident(name) => match name.to_string().as_str() {
            "X" | "Y" | "Z" | "HERE" => &["X", "Y", "Z", "HERE"],
            "f64" | "f32" | "i32" | "u8" | "i64" | "bool" => &["f64", "f32", "i32", "u8", "i64", "bool"],
            "Sum" | "Max" | "Min" => &["Sum", "Max", "Min"],
            "sqrt" | "abs" | "min" | "max" | "signum" => &["sqrt", "abs", "floor", "exp", "min", "max", "signum"],
            _ => return token.into(),
        },
        TokenTree::Literal(_) => &["0", "1", "2", "0.5", "3.0", "1e-3", "7"],
        TokenTree::Punct(punct) if punct.spacing() == Spacing::Alone && "+-*/<>".contains(punct.as_char()) => {
            &["+", "-", "*", "/", "<", ">", "%"]
        }
        TokenTree::Punct(_) | TokenTree::Group(_) => return token.into(),
    };
    name(random.pick(choice))
}

/// The tokens with a change at the `at`-th, perhaps one that is likely to be accepted.
fn changed(tokens: Vec<TokenTree>, at: &mut usize, likely: bool, random: &mut Random) -> Vec<TokenTree> {
    let mut result: Vec<TokenTree> = Vec::new();
    let mut rest = tokens.into_iter();
    while let Some(token) = rest.next() {
        if *at == 0 {
            match random.below(7) {
                _ if likely => result.extend(alike(token, random)),
                0 => {}
                1 => result.extend([token.clone(), token]),
                2 => result.extend(word(random)),
                3 => result.extend(word(random).into_iter().chain([token])),
                4 => result.extend(rest.next().into_iter().chain([token])),
                5 => match token {
                    TokenTree::Group(group) => result.extend(group.stream()),
                    other => result.push(TokenTree::Group(Group::new(Delimiter::Parenthesis, other.into()))),
                },
                _ => match token {
                    TokenTree::Punct(mut punct) => {
                        let spacing = if punct.spacing() == Spacing::Joint { Spacing::Alone } else { Spacing::Joint };
                        punct = proc_macro2::Punct::new(
                            random.pick(&['-', '+', '*', '&', '<', '.', ',', ';', '=']),
                            spacing,
                        );
                        result.push(TokenTree::Punct(punct));
                    }
                    TokenTree::Group(group) => {
                        let delimiter = random.pick(&[Delimiter::Parenthesis, Delimiter::Brace, Delimiter::Bracket]);
                        result.push(TokenTree::Group(Group::new(delimiter, group.stream())));
                    }
                    TokenTree::Ident(_) | TokenTree::Literal(_) => {
                        result.extend(name(random.pick(&["0", "u", "X", "i32", "-3", "1e-400", "255u8", "f32"])));
                    }
                },
            }
            result.extend(rest);
            // Later tokens stay as they are.
            *at = usize::MAX;
            return result;
        }
        *at -= 1;
        match token {
            TokenTree::Group(group) if *at != usize::MAX => {
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                let inside = if *at < count(&inside) {
                    changed(inside, at, likely, random)
                } else {
                    *at -= count(&inside);
                    inside
                };
                result.push(TokenTree::Group(Group::new(group.delimiter(), inside.into_iter().collect())));
                if *at == usize::MAX {
                    result.extend(rest);
                    return result;
                }
            }
            other => result.push(other),
        }
    }
    result
}

/// Gives a text to the front end as a file, as an item and as what an attribute stands on, and what is accepted to all
/// emitters. The number of kernels that were accepted, or the message of the panic.
pub fn feed(text: &Text) -> Result<usize, String> {
    catch_unwind(AssertUnwindSafe(|| {
        let mut accepted = 0;
        if let Ok(source) = kernels_of_file(&text.source.to_string()) {
            for compiled in source.kernels.iter().filter_map(|kernel| kernel.compile().ok()) {
                accepted += 1;
                emit(&compiled);
            }
        }
        let options = syn::parse_str::<Options>(&text.options).unwrap_or_default();
        let items = syn::parse2::<syn::File>(text.source.clone()).map(|file| file.items).unwrap_or_default();
        for item in items {
            match item {
                Item::Fn(function) => accepted += compiled(&function, &[], &options),
                Item::Mod(item) => {
                    let items = module(&item, &options).map(|module| module.items).unwrap_or_default();
                    for item in items {
                        if let ModuleItem::Kernel(kernel) = item
                            && let Some(options) = &kernel.options
                        {
                            accepted += compiled(&kernel.function, &kernel.helpers, options);
                        }
                    }
                }
                _ => {}
            }
        }
        accepted
    }))
    .map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
    })
}

/// The number of instances of a function that are accepted.
fn compiled(function: &syn::ItemFn, helpers: &[Item], options: &Options) -> usize {
    let Ok(instances) = instances(function, helpers, options) else { return 0 };
    let Ok(compiled) = compile_instances(&instances, options) else { return 0 };
    compiled.iter().for_each(emit);
    compiled.len()
}

fn emit(compiled: &Compiled) {
    for emitter in EMITTERS {
        emitter.emit(&compiled.kernel).bytes();
    }
}

/// The text without tokens that its panic doesn't need.
pub fn shrunk(text: &Text) -> Text {
    let mut smaller = text.clone();
    let mut at = 0;
    loop {
        let tokens: Vec<TokenTree> = smaller.source.clone().into_iter().collect();
        if at >= count(&tokens) {
            return smaller;
        }
        let source = without(tokens, &mut { at }).into_iter().collect();
        let trial = Text { source, options: smaller.options.clone() };
        if feed(&trial).is_err() { smaller = trial } else { at += 1 }
    }
}

/// The tokens without the `at`-th and what is in it.
fn without(tokens: Vec<TokenTree>, at: &mut usize) -> Vec<TokenTree> {
    let mut result = Vec::new();
    for token in tokens {
        if *at == 0 {
            *at = usize::MAX;
            continue;
        }
        if *at == usize::MAX {
            result.push(token);
            continue;
        }
        *at -= 1;
        match token {
            TokenTree::Group(group) => {
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                let inside = if *at < count(&inside) {
                    without(inside, at)
                } else {
                    *at -= count(&inside);
                    inside
                };
                result.push(TokenTree::Group(Group::new(group.delimiter(), inside.into_iter().collect())));
            }
            other => result.push(other),
        }
    }
    result
}

/// Feeds the text of a seed.
///
/// # Panics
/// When the front end or an emitter does: with the seed and the smallest text that shows it.
pub fn check(seed: u64, kernels: &[TokenStream]) -> usize {
    let text = text(seed, kernels);
    match feed(&text) {
        Ok(accepted) => accepted,
        Err(message) => {
            let Text { options, source } = shrunk(&text);
            panic!("text {seed}: the compiler panics: {message}\n#[stencil({options})]\n{source}")
        }
    }
}
