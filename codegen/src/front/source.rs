//! Finds the stencils of a source file, for tools that look at a file without compiling the user's crate.

use syn::ext::IdentExt;
use syn::{File, Item, ItemFn};

use super::module::{ModuleItem, is_stencil, module, stencil_attribute};
use super::{Compiled, Options, Refused, compile, instances};

/// The stencils of one file.
#[derive(Clone, Default)]
pub struct Source {
    /// In the order of the file; a generic one once per instance.
    pub kernels: Vec<SourceKernel>,
    /// What is wrong with annotated modules themselves.
    pub mistakes: Vec<Refused>,
}

/// One annotated function, or one instance of it.
#[derive(Clone)]
pub struct SourceKernel {
    /// The kernel's name: the function's, with the generic values of the instance.
    pub name: String,
    /// The generic values of the instance, `T = f32`; empty when the function isn't generic.
    pub instance: String,
    /// Line of the `fn`.
    pub line: usize,
    /// The function without the attribute, as written.
    pub function: ItemFn,
    /// The attribute's arguments, or why they can't be read.
    pub options: Result<Options, String>,
    /// What it uses of its module.
    helpers: Vec<Item>,
    /// What is compiled, or why there is nothing to compile.
    prepared: Result<ItemFn, Refused>,
}

impl SourceKernel {
    /// The function's lines out of the text of its file, without the attribute, after the items of its module that it
    /// uses.
    pub fn text(&self, file: &str) -> String {
        let mut ranges: Vec<(usize, usize)> = self.helpers.iter().filter_map(lines_of).collect();
        let (first, last) = lines_of_function(&self.function);
        let attributes = self.function.attrs.iter().map(|attribute| attribute.pound_token.span.start().line);
        ranges.push((attributes.min().unwrap_or(first).min(first), last));
        ranges.sort_unstable();
        let text = |(first, last): (usize, usize)| {
            let first = first.max(1);
            let lines = file.lines().skip(first - 1).take((last + 1).saturating_sub(first));
            lines.map(|line| format!("{line}\n")).collect::<String>()
        };
        ranges.into_iter().map(text).collect::<Vec<_>>().join("\n")
    }

    /// The function's own name, whatever the instance.
    pub fn function_name(&self) -> String {
        self.function.sig.ident.unraw().to_string()
    }

    /// Compiles the function.
    pub fn compile(&self) -> Result<Compiled, Refused> {
        let function = self.prepared.as_ref().map_err(Clone::clone)?;
        compile(function, self.options.as_ref().unwrap_or(&Options::default()))
    }
}

/// First and last line of a function or constant.
fn lines_of(item: &Item) -> Option<(usize, usize)> {
    match item {
        Item::Fn(function) => Some(lines_of_function(function)),
        Item::Const(constant) => Some((constant.const_token.span.start().line, constant.semi_token.span.end().line)),
        _ => None,
    }
}

fn lines_of_function(function: &ItemFn) -> (usize, usize) {
    (function.sig.fn_token.span.start().line, function.block.brace_token.span.close().end().line)
}

/// All functions annotated by `#[stencil]` or `#[polyhalo::stencil]`, also inside modules, annotated or not.
pub fn kernels_of_file(text: &str) -> syn::Result<Source> {
    let file: File = syn::parse_file(text)?;
    let mut source = Source::default();
    source.collect(&file.items);
    Ok(source)
}

impl Source {
    fn collect(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Fn(function) => {
                    if let Some(options) = stencil_attribute(&function.attrs) {
                        let mut plain = function.clone();
                        plain.attrs.retain(|attribute| !is_stencil(attribute));
                        self.add(plain, options.map_err(|error| error.to_string()), Vec::new());
                    }
                }
                Item::Mod(inner) => match stencil_attribute(&inner.attrs) {
                    Some(options) => {
                        // What is wrong with the module's arguments concerns each of its kernels.
                        let wrong = options.as_ref().err().map(ToString::to_string);
                        match module(inner, &options.unwrap_or_default()) {
                            Ok(module) => self.module(module, wrong.as_ref()),
                            Err(refused) => self.mistakes.push(refused),
                        }
                    }
                    None => {
                        if let Some((_, items)) = &inner.content {
                            self.collect(items);
                        }
                    }
                },
                _ => {}
            }
        }
    }

    fn module(&mut self, module: super::Module, wrong: Option<&String>) {
        self.mistakes.extend(module.mistakes);
        for item in module.items {
            match item {
                ModuleItem::Kernel(kernel) => {
                    let unread =
                        || wrong.cloned().unwrap_or_else(|| "it can't be compiled as a part of its module".to_owned());
                    let options = kernel.options.filter(|_| wrong.is_none()).ok_or_else(unread);
                    self.add(kernel.function, options, kernel.helpers);
                }
                ModuleItem::Other(item) => self.collect(std::slice::from_ref(&*item)),
            }
        }
    }

    fn add(&mut self, function: ItemFn, options: Result<Options, String>, helpers: Vec<Item>) {
        let line = function.sig.fn_token.span.start().line;
        let kernel = |name, instance, prepared| SourceKernel {
            name,
            instance,
            line,
            function: function.clone(),
            options: options.clone(),
            helpers: helpers.clone(),
            prepared,
        };
        let name = function.sig.ident.unraw().to_string();
        match instances(&function, &helpers, options.as_ref().unwrap_or(&Options::default())) {
            Ok(all) => self.kernels.extend(all.into_iter().map(|instance| {
                let describe = instance.describe();
                kernel(instance.name, describe, Ok(instance.function))
            })),
            Err(refused) => self.kernels.push(kernel(name, String::new(), Err(refused))),
        }
    }
}

#[cfg(test)]
mod tests;
