//! From the tokens of an annotated function to the intermediate form. The only part that knows syn.
//!
//! The front end is an evaluator: offsets, integers, closures and arrays exist while it runs and are gone afterwards;
//! what remains is the arithmetic of one point. Every mistake is reported at the user's own tokens, several at once.
//! To accept a new construct: the arm in `expr`, `stmt` or `call` that refuses it today, a case in the language
//! reference and a test on each side (accepted, refused).

mod call;
mod expr;
mod infer;
mod report;
mod scope;
mod sequence;
mod signature;
mod source;
mod stmt;
#[cfg(test)]
mod tests;

use proc_macro2::Span;
use syn::ItemFn;

use crate::diagnostic::Diagnostic;
use crate::ir::{Id, Kernel, Local, Output, Role, Stmt};
use crate::verify::{Verified, verify};
use infer::Types;
use report::Reporter;
use scope::{Closure, Scope, Val};

pub use report::Spans;
pub use signature::{Options, Parameter, ParameterKind};
pub use source::{Source, SourceKernel, kernels_of_file};

/// A kernel with what is needed to point back into the source.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The kernel.
    pub kernel: Verified,
    /// The parameters in the user's order.
    pub parameters: Vec<Parameter>,
    /// The spans behind the places of the kernel.
    pub spans: Spans,
}

impl Compiled {
    /// Names the file in comments, for text that was parsed without one.
    pub fn name_file(&mut self, file: &str) {
        self.kernel.name_file(file);
    }
}

/// What is wrong with a function, with the spans to point at.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The mistakes in the order of the source.
    pub diagnostics: Vec<Diagnostic>,
    /// The spans behind their places.
    pub spans: Spans,
}

/// Compiles an annotated function.
pub fn compile(function: &ItemFn, options: &Options) -> Result<Compiled, Refused> {
    let mut front = Front::new(options);
    let parameters = front.function(function);
    let Front { kernel, reporter, .. } = front;
    let (diagnostics, spans) = reporter.finish();
    if !diagnostics.is_empty() {
        return Err(Refused { diagnostics, spans });
    }
    match verify(kernel) {
        Ok(kernel) => Ok(Compiled { kernel, parameters, spans }),
        Err(diagnostics) => Err(Refused { diagnostics, spans }),
    }
}

/// The state of the evaluator.
struct Front {
    kernel: Kernel,
    /// Types of expressions and locals while they are inferred.
    types: Types,
    reporter: Reporter,
    scope: Scope,
    /// The statement lists being filled, outermost first.
    blocks: Vec<Vec<Stmt>>,
    /// Every closure and nested function, to check those that are never called.
    closures: Vec<std::rc::Rc<Closure>>,
    /// How many calls are being inlined, to stop recursion.
    call_depth: usize,
    /// The name for the next value that needs a local.
    name_hint: Option<String>,
    /// Locals that stand for a `let mut`.
    variables: std::collections::BTreeSet<Id<Local>>,
    /// How many turns of loops were unrolled.
    turns: usize,
    /// Every assignment so far, in order.
    assigned: Vec<Id<Local>>,
}

impl Front {
    fn new(options: &Options) -> Self {
        Front {
            kernel: Kernel { contract: options.contract, ..Kernel::default() },
            types: Types::default(),
            reporter: Reporter::default(),
            scope: Scope::root(),
            blocks: vec![Vec::new()],
            closures: Vec::new(),
            call_depth: 0,
            name_hint: None,
            variables: Default::default(),
            turns: 0,
            assigned: Vec::new(),
        }
    }

    /// The whole function; leaves the kernel complete unless mistakes were reported.
    fn function(&mut self, function: &ItemFn) -> Vec<Parameter> {
        self.kernel.name = syn::ext::IdentExt::unraw(&function.sig.ident).to_string();
        self.kernel.file = file_name(function.sig.ident.span());
        let (parameters, result) = self.signature(&function.sig);
        let value = self.body(&function.block);
        self.uncalled();
        if let Some(ty) = result {
            let place = self.reporter.place(&function.sig.output);
            let tail = function.block.stmts.last().map_or(place, |last| self.reporter.place(last));
            let output = self.kernel.outputs.push(Output { ty, role: Role::Value });
            if let Some(value) = self.number(&value, Some(ty), tail) {
                self.expect_type(value, ty, tail);
                self.emit(Stmt::Store { output, value, place: tail });
            }
        }
        self.kernel.body = self.blocks.pop().expect("the outermost block");
        self.types.settle(&mut self.kernel, &mut self.reporter);
        // A closure and its scope hold each other.
        self.closures.drain(..).for_each(|closure| closure.scope.clear());
        parameters
    }

    /// Appends a statement to the innermost block.
    fn emit(&mut self, stmt: Stmt) {
        self.blocks.last_mut().expect("the outermost block").push(stmt);
    }

    /// Looks into closures and functions that nothing calls, so that their mistakes are seen too.
    fn uncalled(&mut self) {
        let mut next = 0;
        while let Some(closure) = self.closures.get(next).cloned() {
            next += 1;
            if !closure.called.get() {
                self.blocks.push(Vec::new());
                let arguments = vec![Val::Poison; closure.parameters.len()];
                self.inline(&closure, arguments);
                self.blocks.pop();
            }
        }
    }
}

/// The last component of the file's path: comments and goldens must not depend on where a checkout lies.
fn file_name(span: Span) -> String {
    let file = span.file();
    file.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()
}
