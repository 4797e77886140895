//! Finds the stencils of a source file, for tools that look at a file without compiling the user's crate.

use syn::{Attribute, File, Item, ItemFn};

use super::{Compiled, Options, Refused, compile};

/// The stencils of one file.
#[derive(Clone)]
pub struct Source {
    /// In the order of the file.
    pub kernels: Vec<SourceKernel>,
}

/// One annotated function.
#[derive(Clone)]
pub struct SourceKernel {
    /// The function's name.
    pub name: String,
    /// Line of the `fn`.
    pub line: usize,
    /// The function without the attribute, as written.
    pub function: ItemFn,
    /// The attribute's arguments, or why they can't be read.
    pub options: Result<Options, String>,
}

impl SourceKernel {
    /// The function's lines out of the text of its file, without the attribute.
    pub fn text(&self, file: &str) -> String {
        let first = self.function.sig.fn_token.span.start().line.max(1);
        let start = self.function.attrs.iter().map(|attribute| attribute.pound_token.span.start().line).min();
        let start = start.unwrap_or(first).clamp(1, first);
        let end = self.function.block.brace_token.span.close().end().line;
        let lines = file.lines().skip(start - 1).take((end + 1).saturating_sub(start));
        lines.map(|line| format!("{line}\n")).collect()
    }

    /// Compiles the function.
    pub fn compile(&self) -> Result<Compiled, Refused> {
        compile(&self.function, self.options.as_ref().unwrap_or(&Options::default()))
    }
}

/// All functions annotated by `#[stencil]` or `#[polyhalo::stencil]`, also inside modules.
pub fn kernels_of_file(text: &str) -> syn::Result<Source> {
    let file: File = syn::parse_file(text)?;
    let mut kernels = Vec::new();
    collect(&file.items, &mut kernels);
    Ok(Source { kernels })
}

fn collect(items: &[Item], kernels: &mut Vec<SourceKernel>) {
    for item in items {
        match item {
            Item::Fn(function) => {
                if let Some(attribute) = function.attrs.iter().find(|attribute| is_stencil(attribute)) {
                    let mut plain = function.clone();
                    plain.attrs.retain(|attribute| !is_stencil(attribute));
                    kernels.push(SourceKernel {
                        name: function.sig.ident.to_string(),
                        line: function.sig.fn_token.span.start().line,
                        options: options(attribute),
                        function: plain,
                    });
                }
            }
            Item::Mod(module) => {
                if let Some((_, items)) = &module.content {
                    collect(items, kernels);
                }
            }
            _ => {}
        }
    }
}

fn is_stencil(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|last| last.ident == "stencil")
}

fn options(attribute: &Attribute) -> Result<Options, String> {
    match &attribute.meta {
        syn::Meta::Path(_) => Ok(Options::default()),
        syn::Meta::List(list) => list.parse_args().map_err(|error| error.to_string()),
        syn::Meta::NameValue(_) => Err("#[stencil = ..] is not a form of the attribute".to_owned()),
    }
}
