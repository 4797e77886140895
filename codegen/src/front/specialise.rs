//! Generic functions inside a stencil: a copy without generic parameters for each list of arguments they are called with.
//!
//! The arguments are written at the call, `second::<f64, 2>(u, X)`, or are the parameters of the same names of the function
//! around it. Nothing is inferred from the values: that is rustc's business, and it sees the same copies.

use std::collections::BTreeMap;

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Block, Expr, ExprCall, ExprPath, GenericArgument, GenericParam, Ident, Item, ItemFn, PathArguments, Stmt, Type,
};

use super::instances::{fill, is_scalar, literal_of, parameter_name, suffix};
use super::report::{Reporter, tidy};
use super::signature::Listed;

/// What the generic parameters around a piece of code stand for.
type Known = BTreeMap<String, Listed>;

/// Replaces generic functions in the body by copies; what can't be known is reported.
pub(super) fn specialise(function: &mut ItemFn, known: Known, reporter: &mut Reporter) {
    let mut pass = Specialise { reporter, frames: Vec::new(), known: vec![known] };
    pass.visit_block_mut(&mut function.block);
}

struct Specialise<'a> {
    reporter: &'a mut Reporter,
    /// The blocks around, outermost first.
    frames: Vec<Frame>,
    /// The parameters of the functions around, outermost first.
    known: Vec<Known>,
}

#[derive(Default)]
struct Frame {
    generic: BTreeMap<String, ItemFn>,
    constants: BTreeMap<String, Expr>,
    /// Names of copies that exist or are ordered.
    copies: Vec<String>,
    ordered: Vec<(ItemFn, Known)>,
}

impl VisitMut for Specialise<'_> {
    fn visit_block_mut(&mut self, block: &mut Block) {
        let mut frame = Frame::default();
        block.stmts.retain_mut(|stmt| match stmt {
            Stmt::Item(Item::Fn(function)) if !function.sig.generics.params.is_empty() => {
                if function.sig.generics.params.iter().all(|parameter| parameter_name(parameter).is_none()) {
                    fill(function, &[]);
                    return true;
                }
                frame.generic.insert(function.sig.ident.unraw().to_string(), function.clone());
                false
            }
            Stmt::Item(Item::Const(constant)) => {
                frame.constants.insert(constant.ident.unraw().to_string(), (*constant.expr).clone());
                true
            }
            _ => true,
        });
        self.frames.push(frame);
        visit_mut::visit_block_mut(self, block);
        let mut copies = Vec::new();
        while let Some((mut copy, known)) = self.frames.last_mut().expect("pushed above").ordered.pop() {
            self.known.push(known);
            self.visit_block_mut(&mut copy.block);
            self.known.pop();
            copies.push(Stmt::Item(Item::Fn(copy)));
        }
        self.frames.pop();
        // After the constants, which the copies may name.
        let items = block.stmts.iter().take_while(|stmt| matches!(stmt, Stmt::Item(_))).count();
        block.stmts.splice(items..items, copies);
    }

    fn visit_expr_call_mut(&mut self, call: &mut ExprCall) {
        if let Expr::Path(path) = &mut *call.func {
            self.redirect(path, true);
        }
        visit_mut::visit_expr_call_mut(self, call);
    }

    fn visit_expr_path_mut(&mut self, path: &mut ExprPath) {
        self.redirect(path, false);
        visit_mut::visit_expr_path_mut(self, path);
    }
}

impl Specialise<'_> {
    /// Lets a name of a generic function name a copy. One without arguments that isn't called may be a variable.
    fn redirect(&mut self, path: &mut ExprPath, called: bool) {
        let [segment] = path.path.segments.iter().collect::<Vec<_>>()[..] else { return };
        let name = segment.ident.unraw().to_string();
        let Some(home) = self.frames.iter().rposition(|frame| frame.generic.contains_key(&name)) else { return };
        let given: Vec<&GenericArgument> = match &segment.arguments {
            PathArguments::AngleBracketed(arguments) => {
                arguments.args.iter().filter(|argument| !matches!(argument, GenericArgument::Lifetime(_))).collect()
            }
            PathArguments::None | PathArguments::Parenthesized(_) if called => Vec::new(),
            PathArguments::None | PathArguments::Parenthesized(_) => return,
        };
        let function = self.frames[home].generic[&name].clone();
        let parameters: Vec<&GenericParam> =
            function.sig.generics.params.iter().filter(|parameter| parameter_name(parameter).is_some()).collect();
        if !given.is_empty() && given.len() != parameters.len() {
            let message = format!("`{name}` has {} generic parameters, {} are given", parameters.len(), given.len());
            self.reporter.refuse(&*path, message, "give one value per parameter");
            return;
        }
        let mut arguments = Vec::new();
        for (index, parameter) in parameters.iter().enumerate() {
            match self.value(&name, parameter, given.get(index).copied(), home) {
                Ok(value) => arguments.push((*parameter, value)),
                Err((message, help)) => {
                    self.reporter.refuse(&*path, message, help);
                    return;
                }
            }
        }
        let copy = arguments.iter().fold(name, |name, (_, value)| format!("{name}_{}", suffix(value)));
        path.path.segments[0].arguments = PathArguments::None;
        path.path.segments[0].ident = Ident::new(&copy, path.path.segments[0].ident.span());
        if !self.frames[home].copies.contains(&copy) {
            let mut made = function.clone();
            made.sig.ident = Ident::new(&copy, function.sig.ident.span());
            made.attrs.push(syn::parse_quote!(#[allow(dead_code, non_snake_case)]));
            let named = arguments
                .iter()
                .filter_map(|(parameter, value)| Some((parameter_name(parameter)?.unraw().to_string(), value.clone())));
            let mut known = self.known[0].clone();
            known.extend(named);
            fill(&mut made, &arguments);
            let frame = &mut self.frames[home];
            frame.copies.push(copy);
            frame.ordered.push((made, known));
        }
    }

    /// The value of a generic parameter; else a message and a help.
    fn value(
        &self,
        function: &str,
        parameter: &GenericParam,
        given: Option<&GenericArgument>,
        home: usize,
    ) -> Result<Listed, (String, String)> {
        let name = parameter_name(parameter).expect("lifetimes are left out").unraw().to_string();
        let sample = if matches!(parameter, GenericParam::Const(_)) { "2" } else { "f64" };
        let computed = |tokens: &dyn ToTokens| {
            let message = format!("`{name}` of `{function}` is given as `{}`", tidy(&tokens.to_token_stream()));
            (
                message,
                format!("write a type of numbers, a literal or the name of a constant: `{function}::<{sample}>(..)`"),
            )
        };
        match (parameter, given) {
            (_, None | Some(GenericArgument::Type(Type::Infer(_)))) => {
                let known = self.known.last().and_then(|known| known.get(&name));
                let fits =
                    |value: &&Listed| matches!(parameter, GenericParam::Type(_)) == matches!(value, Listed::Type(_));
                known.filter(fits).cloned().ok_or_else(|| {
                    let message = format!("what `{name}` of the generic function `{function}` is here can't be known");
                    (message, format!("write it at the call: `{function}::<{sample}>(..)`"))
                })
            }
            (GenericParam::Type(_), Some(GenericArgument::Type(ty))) if is_scalar(ty) => Ok(Listed::Type(ty.clone())),
            (GenericParam::Const(_), Some(GenericArgument::Const(value))) if literal_of(value).is_some() => {
                Ok(Listed::Literal(value.clone()))
            }
            (GenericParam::Const(_), Some(GenericArgument::Type(Type::Path(path)))) => {
                let constant = path.path.get_ident().ok_or_else(|| computed(path))?;
                self.constant(&constant.unraw().to_string(), &name, home).ok_or_else(|| computed(path))
            }
            (_, Some(argument)) => Err(computed(argument)),
        }
    }

    /// A constant by name: its literal, else the name where the copy sees the same constant.
    fn constant(&self, constant: &str, parameter: &str, home: usize) -> Option<Listed> {
        let frame = self.frames.iter().rposition(|frame| frame.constants.contains_key(constant))?;
        let value = &self.frames[frame].constants[constant];
        if literal_of(value).is_some() {
            return Some(Listed::Literal(value.clone()));
        }
        let same_there = frame <= home && constant != parameter;
        let name = Ident::new(constant, proc_macro2::Span::call_site());
        same_there.then(|| Listed::Literal(syn::parse_quote!(#name)))
    }
}
