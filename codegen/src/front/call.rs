//! Closures and nested functions: everything is inlined.

use std::cell::Cell;
use std::rc::Rc;

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Expr, ExprCall, ExprClosure, FnArg, ItemFn, Pat};

use super::report::{counted, tidy};
use super::scope::{Binding, Closure, Val};
use super::{Front, tail};
use crate::ir::ExprKind;

/// Calls nested deeper than this are runaway recursion.
const MAX_DEPTH: usize = 64;

impl Front {
    /// Remembers a closure; its body is evaluated at each call.
    pub(super) fn closure(&mut self, name: String, closure: &ExprClosure) -> Val {
        if let Some(token) = &closure.capture {
            self.reporter.refuse(
                token,
                "`move` is not part of the stencil language",
                "remove the word; nothing in a stencil outlives the closure",
            );
        }
        if let Some(token) = &closure.asyncness {
            self.reporter.refuse(token, "`async` is not part of the stencil language", "write a plain closure");
        }
        let (parameters, types) = closure
            .inputs
            .iter()
            .map(|input| match input {
                Pat::Type(typed) => ((*typed.pat).clone(), Some((*typed.ty).clone())),
                other => (other.clone(), None),
            })
            .unzip();
        let result = match &closure.output {
            syn::ReturnType::Default => None,
            syn::ReturnType::Type(_, ty) => Some((**ty).clone()),
        };
        self.remember(Closure {
            name,
            parameters,
            types,
            result,
            body: (*closure.body).clone(),
            scope: self.scope.clone(),
            called: Cell::new(false),
            active: Cell::new(false),
        })
    }

    /// Remembers a nested function.
    pub(super) fn nested_function(&mut self, function: &ItemFn) {
        let signature = &function.sig;
        if !signature.generics.params.is_empty() {
            let help = "a closure takes the types it is used with: `let f = |a, b| a + b;`";
            self.reporter.refuse(&signature.generics, "generic nested functions are not accepted yet", help);
        }
        let mut parameters = Vec::new();
        let mut types = Vec::new();
        for input in &signature.inputs {
            match input {
                FnArg::Typed(typed) => {
                    parameters.push((*typed.pat).clone());
                    types.push(Some((*typed.ty).clone()));
                }
                FnArg::Receiver(receiver) => {
                    self.reporter.refuse(receiver, "a nested function has no `self`", "name the parameter")
                }
            }
        }
        let result = match &signature.output {
            syn::ReturnType::Default => None,
            syn::ReturnType::Type(_, ty) => Some((**ty).clone()),
        };
        let name = signature.ident.unraw().to_string();
        let body = Expr::Block(syn::ExprBlock { attrs: Vec::new(), label: None, block: (*function.block).clone() });
        let closure = self.remember(Closure {
            name: name.clone(),
            parameters,
            types,
            result,
            body,
            scope: self.scope.clone(),
            called: Cell::new(false),
            active: Cell::new(false),
        });
        self.scope.bind(name, Binding::Value(closure));
    }

    fn remember(&mut self, closure: Closure) -> Val {
        let closure = Rc::new(closure);
        self.closures.push(closure.clone());
        Val::Closure(closure)
    }

    pub(super) fn call(&mut self, call: &ExprCall) -> Val {
        let name = self.name_hint.take();
        if let Expr::Path(path) = &*call.func
            && let Some(role) = self.fold_named(path)
        {
            return self.fold(role, path, call);
        }
        if let Some(path) = Self::is_path_call(&call.func) {
            return self.path_call(call, path);
        }
        if let Expr::Path(path) = &*call.func
            && let Some(name) = path.path.get_ident().map(|name| name.unraw().to_string())
            && self.scope.find(&name).is_none()
        {
            for argument in &call.args {
                self.eval(argument);
            }
            return self.unknown_function(path, &name);
        }
        let callee = self.eval(&call.func);
        if let Val::Field(field) = &callee {
            let (name, at) = (self.kernel.fields[*field].name.clone(), call.args.iter().collect::<Vec<_>>());
            if self.are_grid_indices(&at) {
                return self.indices_refused(&name, at, call);
            }
        }
        let arguments = self.eval_all(call.args.iter());
        match callee {
            Val::Closure(closure) => self.call_closure(&closure, arguments, call, name),
            Val::Poison => Val::Poison,
            other => {
                let written = tidy(&*call.func);
                let help = match &other {
                    Val::Field(_) => {
                        format!("it is read with brackets, at an offset: `{written}[X]`, `{written}[HERE]`")
                    }
                    Val::Array(_) => format!("its elements are read with brackets, counted from 0: `{written}[0]`"),
                    Val::Number(_) | Val::Integer(_) => format!("a product is written with `*`: `{written} * (..)`"),
                    _ => "closures and nested functions can".to_owned(),
                };
                self.poison(&*call.func, format!("{} can't be called", other.describe()), help)
            }
        }
    }

    fn call_closure(
        &mut self,
        closure: &Rc<Closure>,
        arguments: Vec<Val>,
        call: &ExprCall,
        name: Option<String>,
    ) -> Val {
        if arguments.len() != closure.parameters.len() {
            let (takes, given) = (counted(closure.parameters.len(), "argument"), arguments.len());
            let message = format!("`{}` takes {takes}, {} given", closure.name, are(given));
            return self.poison(call, message, "give one argument per parameter");
        }
        if closure.active.get() || self.call_depth >= MAX_DEPTH {
            return self.calls_itself(call, &closure.name);
        }
        let arguments: Vec<Val> = (arguments.into_iter().zip(&closure.types).zip(&call.args))
            .map(|((argument, ty), tokens)| match argument {
                // An integer that must be a float is shown where it is given, not where it is taken.
                Val::Integer(_) => self.annotated(argument, ty.as_ref(), tokens),
                argument => argument,
            })
            .collect();
        let note = call_note(closure, &arguments, call);
        let place = self.reporter.place(call);
        match self.inline(closure, arguments) {
            Val::Number(number) => {
                let kind = &self.kernel.exprs[number].kind;
                if matches!(kind, ExprKind::Literal(_) | ExprKind::Param(_)) {
                    return Val::Number(number);
                }
                let ty = self.types.exprs[number.index()];
                // The result gets the name that the user gives it, else the closure's, with the call in a comment.
                let name = name.as_deref().unwrap_or(&closure.name);
                let local = self.declare(name, number, Some(note), place);
                Val::Number(self.expr_of(ExprKind::Local(local), ty, place))
            }
            value => value,
        }
    }

    pub(super) fn calls_itself(&mut self, tokens: &impl ToTokens, name: &str) -> Val {
        let help = "calls are inlined, so recursion is not possible; use `for`";
        self.poison(tokens, format!("`{name}` calls itself"), help)
    }

    /// Evaluates a closure's body with its parameters bound.
    pub(super) fn inline(&mut self, closure: &Rc<Closure>, arguments: Vec<Val>) -> Val {
        closure.called.set(true);
        if self.is_full() {
            return Val::Poison;
        }
        closure.active.set(true);
        self.call_depth += 1;
        let around = std::mem::replace(&mut self.scope, closure.scope.inner());
        self.callers.push(around.clone());
        for ((pattern, ty), argument) in closure.parameters.iter().zip(&closure.types).zip(arguments) {
            let argument = self.annotated(argument, ty.as_ref(), pattern);
            self.bind(pattern, argument);
        }
        let tokens = match &closure.body {
            Expr::Block(block) => tail(&block.block),
            body => body.to_token_stream(),
        };
        let value = self.framed(closure.result.clone(), &tokens, |front| front.eval(&closure.body));
        self.scope = around;
        self.callers.pop();
        self.call_depth -= 1;
        closure.active.set(false);
        value
    }
}

/// `1 is`, `2 are`.
fn are(number: usize) -> String {
    format!("{number} {}", if number == 1 { "is" } else { "are" })
}

/// The call as a comment: offsets by value, so that `flux(d)` in a loop reads `flux(-X)`.
fn call_note(closure: &Closure, arguments: &[Val], call: &ExprCall) -> String {
    let written = arguments.iter().zip(&call.args).map(|(value, tokens)| match value {
        Val::Offset(offset) => offset.to_string(),
        Val::Integer(integer) => integer.value.to_string(),
        _ => {
            let tokens: TokenStream = tokens.to_token_stream();
            tidy(&tokens)
        }
    });
    format!("{}({})", closure.name, written.collect::<Vec<_>>().join(", "))
}
