//! From the tokens of an annotated function to the intermediate form. The only part that knows syn.
//!
//! The front end is an evaluator: offsets, counters, closures and arrays exist while it runs and are gone afterwards;
//! what remains is the arithmetic of one point. Every mistake is reported at the user's own tokens, several at once.
//! To accept a new construct: the arm in `expr`, `block` or `method` that refuses it today, a case in the language
//! reference and a test on each side (accepted, refused).

mod assign;
mod attributes;
mod block;
mod brackets;
mod branch;
mod call;
mod cast;
mod choice;
mod constant;
mod expr;
mod flow;
mod fold;
mod infer;
mod instances;
mod integer;
mod lower;
mod method;
mod module;
mod number;
mod operator;
mod plain;
mod refuse;
mod report;
mod result;
mod scope;
mod sequence;
mod signature;
mod source;
mod specialise;
mod substitute;
mod suggest;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;
use syn::visit_mut::VisitMut;
use syn::{ItemFn, ReturnType};

use crate::diagnostic::Diagnostic;
use crate::ir::{Id, Kernel, Local, Stmt};
use crate::verify::{Verified, verify};
use flow::Frame;
use infer::Types;
use report::Reporter;
use scope::{Closure, Quotients, Scope, Site, Val};
use table::PendingTables;

pub use brackets::unbalanced;
pub use instances::{Instance, MAX_INSTANCES, compile_instances, instances, merge};
pub use module::{Module, ModuleItem, ModuleKernel, module};
pub use report::Spans;
pub use result::Shape;
pub use signature::{List, Listed, Options, Parameter, ParameterKind};
pub use source::{Source, SourceKernel, kernels_of_file};

/// A kernel with what is needed to point back into the source.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The kernel.
    pub kernel: Verified,
    /// The parameters in the user's order.
    pub parameters: Vec<Parameter>,
    /// How the function gives its results: the kernel's outputs in order, each with the role that its type gives it.
    pub shape: Shape,
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
///
/// A `let mut` integer is followed at compile time, so that it may stand in an offset, as long as nothing at run time
/// decides its value. When something does, it must have been a variable from the start, and the function is evaluated
/// once more with that known; each time there is one such variable more, so this ends.
pub fn compile(function: &ItemFn, options: &Options) -> Result<Compiled, Refused> {
    let mut plain = function.clone();
    plain::Plain.visit_item_fn_mut(&mut plain);
    let function = &plain;
    let mut at_run_time = BTreeSet::new();
    loop {
        let known = at_run_time.len();
        let mut front = Front::new(options, at_run_time);
        let (parameters, shape) = front.function(function);
        let Front { kernel, reporter, .. } = front;
        at_run_time = front.at_run_time;
        if at_run_time.len() > known {
            continue;
        }
        let (diagnostics, spans) = reporter.finish();
        if !diagnostics.is_empty() {
            return Err(Refused { diagnostics, spans });
        }
        return match verify(kernel) {
            Ok(kernel) => Ok(Compiled { kernel, parameters, shape, spans }),
            Err(diagnostics) => Err(Refused { diagnostics, spans }),
        };
    }
}

/// The state of the evaluator.
struct Front {
    kernel: Kernel,
    /// Types of expressions and locals while they are inferred.
    types: Types,
    tables: PendingTables,
    reporter: Reporter,
    scope: Scope,
    /// The statement lists being filled, outermost first.
    blocks: Vec<Vec<Stmt>>,
    /// The functions being inlined, outermost first.
    frames: Vec<Frame>,
    /// The scopes of the calls that are being inlined, outermost first.
    callers: Vec<Scope>,
    /// How many calls are being inlined, to stop recursion.
    call_depth: usize,
    /// How many conditions at run time the code being evaluated depends on.
    conditions: usize,
    /// Every closure and nested function, to check those that are never called.
    closures: Vec<std::rc::Rc<Closure>>,
    /// The name for the next value that needs a local.
    name_hint: Option<String>,
    /// Locals that stand for a `let mut`.
    variables: BTreeSet<Id<Local>>,
    /// The names of loop variables, for messages.
    counters: BTreeSet<String>,
    /// How many turns of loops were unrolled.
    turns: usize,
    /// Every assignment so far, in order.
    assigned: Vec<Id<Local>>,
    /// The `let mut`s of integers and bools that change at run time.
    at_run_time: BTreeSet<Site>,
    /// Divisions of integers, for messages.
    quotients: Quotients,
    /// How many operations the kernel has.
    operations: usize,
    /// The receiver and the arguments of the method that is being computed.
    argument_places: Vec<TokenStream>,
}

impl Front {
    fn new(options: &Options, at_run_time: BTreeSet<Site>) -> Self {
        Front {
            kernel: Kernel { contract: options.contract, ..Kernel::default() },
            types: Types::default(),
            tables: PendingTables::default(),
            reporter: Reporter::default(),
            scope: Scope::root(),
            blocks: vec![Vec::new()],
            frames: Vec::new(),
            callers: Vec::new(),
            call_depth: 0,
            conditions: 0,
            closures: Vec::new(),
            name_hint: None,
            counters: BTreeSet::new(),
            turns: 0,
            variables: BTreeSet::new(),
            assigned: Vec::new(),
            at_run_time,
            quotients: Quotients::default(),
            operations: 0,
            argument_places: Vec::new(),
        }
    }

    /// The whole function; leaves the kernel complete unless mistakes were reported.
    fn function(&mut self, function: &ItemFn) -> (Vec<Parameter>, Shape) {
        self.kernel.name = syn::ext::IdentExt::unraw(&function.sig.ident).to_string();
        self.kernel.file = file_name(function.sig.ident.span());
        self.attributes(function);
        let (parameters, result) = self.signature(&function.sig);
        let place = self.reporter.place(&function.sig.output);
        let last = tail(&function.block);
        let tail = if function.block.stmts.is_empty() { place } else { self.reporter.place(&last) };
        let written = match &function.sig.output {
            ReturnType::Type(_, ty) if result.is_some() => Some((**ty).clone()),
            ReturnType::Type(..) | ReturnType::Default => None,
        };
        let value = self.framed(written, &last, |front| front.block(&function.block));
        self.uncalled();
        let shape = match result {
            Some(result) => self.store_results(result, value, tail),
            None => Shape::Single,
        };
        self.kernel.body = self.blocks.pop().expect("the outermost block");
        self.types.settle(&mut self.kernel, self.tables.all(), &mut self.reporter);
        // A closure and its scope hold each other.
        self.closures.drain(..).for_each(|closure| closure.scope.clear());
        (parameters, shape)
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

/// What gives a block its value: its last statement, or all of a block that has none.
fn tail(block: &syn::Block) -> TokenStream {
    block.stmts.last().map_or_else(|| block.to_token_stream(), ToTokens::to_token_stream)
}

/// The last component of the file's path: comments and goldens must not depend on where a checkout lies.
fn file_name(span: Span) -> String {
    let file = span.file();
    file.rsplit(['/', '\\']).next().unwrap_or_default().to_owned()
}
