//! The instances of a generic stencil: one function without generic parameters for each combination of listed values.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::Span;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::visit_mut::{self, VisitMut};
use syn::{Expr, FnArg, GenericParam, Ident, Item, ItemConst, ItemFn, Lit, ReturnType, Stmt, UnOp, parse_quote};

use super::plain::Plain;
use super::report::{Reporter, tidy, tidy_type};
use super::signature::{Listed, OPTIONS, Options};
use super::specialise::specialise;
use super::substitute::Substitute;
use super::{Compiled, Refused, compile};
use crate::diagnostic::Diagnostic;
use crate::ir;

/// The most instances of one stencil: each is compiled for every target.
pub const MAX_INSTANCES: usize = 64;

/// A stencil whose generic parameters have values.
#[derive(Clone)]
pub struct Instance {
    /// The kernel's name: the function's, with the values after it, `heat_f32`.
    pub name: String,
    /// Types and constants in the order in which the function declares them; none when it isn't generic.
    pub arguments: Vec<(Ident, Listed)>,
    /// The function with the values in their places and the helpers in front of its body.
    pub function: ItemFn,
}

impl Instance {
    /// `T = f32, R = 2`; empty when the function isn't generic.
    pub fn describe(&self) -> String {
        let parts = self.arguments.iter().map(|(name, value)| format!("{name} = {}", written(value)));
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// All instances of a function, the first list varying slowest. `helpers` are the items of its module that it needs.
pub fn instances(function: &ItemFn, helpers: &[Item], options: &Options) -> Result<Vec<Instance>, Refused> {
    let mut plain = function.clone();
    Plain.visit_item_fn_mut(&mut plain);
    let function = &plain;
    let mut reporter = Reporter::default();
    let lists = lists(function, options, &mut reporter);
    if reporter.has_mistakes() {
        return Err(refused(reporter));
    }
    let number = lists.iter().fold(1, |product: usize, (_, values)| product.saturating_mul(values.len()));
    if number > MAX_INSTANCES {
        let message = format!("stencil `{}` has {number} instances", function.sig.ident);
        let help = format!("each is compiled for every target; at most {MAX_INSTANCES} are: shorten the lists");
        reporter.refuse(&function.sig.generics.params, message, help);
        return Err(refused(reporter));
    }
    let mut made = Vec::new();
    for index in 0..number {
        let (mut left, mut arguments) = (index, Vec::new());
        for (parameter, values) in lists.iter().rev() {
            arguments.push((*parameter, values[left % values.len()].clone()));
            left /= values.len();
        }
        arguments.reverse();
        made.push(instance(function, helpers, &arguments, &mut reporter));
    }
    if reporter.has_mistakes() { Err(refused(reporter)) } else { Ok(made) }
}

/// Compiles all instances of one function. What is wrong with several of them is reported once.
pub fn compile_instances(instances: &[Instance], options: &Options) -> Result<Vec<Compiled>, Refused> {
    let (mut compiled, mut wrong) = (Vec::new(), Vec::new());
    for instance in instances {
        match compile(&instance.function, options) {
            Ok(instance) => compiled.push(instance),
            Err(refused) => wrong.push((instance, refused)),
        }
    }
    if wrong.is_empty() { Ok(compiled) } else { Err(merge_instances(instances.len(), wrong)) }
}

/// All mistakes in the order of the source. Those at one place are told by the first who found any there: code that is
/// shared is looked at many times.
pub fn merge(all: impl IntoIterator<Item = Refused>) -> Refused {
    let mut reporter = Reporter::default();
    let mut told = BTreeSet::new();
    for Refused { diagnostics, spans } in all {
        let mut told_now = BTreeSet::new();
        for diagnostic in diagnostics {
            let place = (diagnostic.place.line, diagnostic.place.column);
            if !told.contains(&place) {
                told_now.insert(place);
                let (first, last) = spans.of(diagnostic.place);
                let place = reporter.place_of(first, last);
                reporter.report(Diagnostic { place, ..diagnostic });
            }
        }
        told.extend(told_now);
    }
    refused(reporter)
}

/// Every mistake as if the function had no instances; one that not all of them make names the instance.
fn merge_instances(number: usize, mut wrong: Vec<(&Instance, Refused)>) -> Refused {
    let key = |diagnostic: &Diagnostic| (diagnostic.place.line, diagnostic.place.column, diagnostic.message.clone());
    let mut times = BTreeMap::new();
    for (instance, refused) in &mut wrong {
        let (made, plain) = (format!("`{}`", instance.name), format!("`{}`", plain_name(instance)));
        for diagnostic in &mut refused.diagnostics {
            // The user knows the function by its own name.
            diagnostic.message = diagnostic.message.replace(&made, &plain);
            diagnostic.help = diagnostic.help.as_ref().map(|help| help.replace(&made, &plain));
            *times.entry(key(diagnostic)).or_insert(0) += 1;
        }
    }
    for (instance, refused) in &mut wrong {
        for diagnostic in refused.diagnostics.iter_mut().filter(|diagnostic| times[&key(diagnostic)] < number) {
            let note = format!("this is the instance with {}", instance.describe());
            diagnostic.note = Some(match diagnostic.note.take() {
                Some(earlier) => format!("{earlier}\n  = note: {note}"),
                None => note,
            });
        }
    }
    merge(wrong.into_iter().map(|(_, refused)| refused))
}

/// The function's name without the values.
fn plain_name(instance: &Instance) -> &str {
    let suffix: usize = instance.arguments.iter().map(|(_, value)| suffix(value).len() + 1).sum();
    &instance.name[..instance.name.len() - suffix]
}

/// The mistakes of a reporter.
pub(super) fn refused(reporter: Reporter) -> Refused {
    let (diagnostics, spans) = reporter.finish();
    Refused { diagnostics, spans }
}

/// The values of each generic parameter in the order of the function; what is wrong is reported.
fn lists<'a>(function: &'a ItemFn, options: &Options, reporter: &mut Reporter) -> Vec<(&'a GenericParam, Vec<Listed>)> {
    let name = function.sig.ident.unraw();
    let parameters = &function.sig.generics.params;
    for (index, list) in options.lists.iter().enumerate() {
        if options.lists[..index].iter().any(|earlier| earlier.name == list.name) {
            let help = "write all its values in one list: `T = f32 | f64`";
            reporter.refuse(&list.name, format!("`{}` is listed twice", list.name), help);
        }
        if !parameters.iter().any(|parameter| parameter_name(parameter).is_some_and(|name| *name == list.name)) {
            let message = format!("`{}` is neither a generic parameter of `{name}` nor an option", list.name);
            reporter.refuse(&list.name, message, OPTIONS);
        }
    }
    let listed = |parameter: &Ident| options.lists.iter().find(|list| list.name == *parameter);
    let mut lists = Vec::new();
    for parameter in parameters {
        let (ident, what, sample) = match parameter {
            GenericParam::Lifetime(_) => continue,
            GenericParam::Type(ty) => (&ty.ident, "type", "f32 | f64"),
            GenericParam::Const(constant) => (&constant.ident, "const", "1 | 2 | 4"),
        };
        let Some(list) = listed(ident) else {
            let message = format!("the {what} parameter `{ident}` has no list of values");
            let help = format!("each instance is compiled for itself; name them: `#[stencil({ident} = {sample})]`");
            reporter.refuse(ident, message, help);
            continue;
        };
        let mut values: Vec<Listed> = Vec::new();
        for value in &list.values {
            if let Err((message, help)) = fits(parameter, value) {
                reporter.refuse(value, message, help);
            } else if values.iter().any(|earlier| suffix(earlier) == suffix(value)) {
                reporter.refuse(value, format!("`{}` is listed twice", written(value)), "leave one of them out");
            } else {
                values.push(value.clone());
            }
        }
        lists.push((parameter, values));
    }
    lists
}

/// The name of a parameter that has values.
pub(super) fn parameter_name(parameter: &GenericParam) -> Option<&Ident> {
    match parameter {
        GenericParam::Lifetime(_) => None,
        GenericParam::Type(ty) => Some(&ty.ident),
        GenericParam::Const(constant) => Some(&constant.ident),
    }
}

/// Whether a parameter can have a value; else a message and a help.
fn fits(parameter: &GenericParam, value: &Listed) -> Result<(), (String, String)> {
    let name = written(value);
    match (parameter, value) {
        (GenericParam::Type(_), Listed::Type(ty)) if is_scalar(ty) => Ok(()),
        (GenericParam::Type(parameter), _) => {
            let types = ir::Type::ALL.map(|ty| format!("`{ty}`")).join(", ");
            let message = format!("`{}` can't be `{name}`", parameter.ident);
            Err((message, format!("fields and scalars hold {types}")))
        }
        (GenericParam::Const(parameter), Listed::Literal(literal)) => {
            let ty = tidy_type(&parameter.ty);
            let bool_wanted = ty == "bool";
            let is_integer = ["i8", "i16", "i32", "i64", "isize", "u8", "u16", "u32", "u64", "usize"];
            match literal_of(literal) {
                Some(Lit::Bool(_)) if bool_wanted => Ok(()),
                Some(Lit::Int(_)) if is_integer.contains(&ty.as_str()) => Ok(()),
                _ if bool_wanted || is_integer.contains(&ty.as_str()) => Err((
                    format!("`{}` can't be `{name}`", parameter.ident),
                    format!("it is a constant of type `{ty}`"),
                )),
                _ => Err((
                    format!("`{}` is a constant of type `{ty}`", parameter.ident),
                    "generic constants of a stencil are integers and `bool`".to_owned(),
                )),
            }
        }
        (GenericParam::Const(parameter), Listed::Type(_)) => Err((
            format!("`{}` can't be `{name}`", parameter.ident),
            format!("write the value itself: `{} = 1 | 2 | 4`", parameter.ident),
        )),
        (GenericParam::Lifetime(_), _) => unreachable!("lifetimes have no list"),
    }
}

/// Whether a type is made of numbers and truth values: `f64`, `[f64; 5]`, `(f64, [bool; 2])`.
pub(super) fn is_of_scalars(ty: &syn::Type) -> bool {
    match ty {
        syn::Type::Array(array) => is_of_scalars(&array.elem),
        syn::Type::Tuple(tuple) => !tuple.elems.is_empty() && tuple.elems.iter().all(is_of_scalars),
        syn::Type::Paren(inner) => is_of_scalars(&inner.elem),
        ty => is_scalar(ty),
    }
}

/// Whether fields and scalars can have a type.
pub(super) fn is_scalar(ty: &syn::Type) -> bool {
    ir::Type::ALL.iter().any(|known| known.name() == tidy_type(ty))
}

/// The integer or truth value in `2`, `-1`, `true`.
pub(super) fn literal_of(value: &Expr) -> Option<&Lit> {
    match value {
        Expr::Lit(literal) => Some(&literal.lit).filter(|lit| matches!(lit, Lit::Int(_) | Lit::Bool(_))),
        Expr::Unary(unary) if matches!(unary.op, UnOp::Neg(_)) => literal_of(&unary.expr),
        Expr::Paren(inner) => literal_of(&inner.expr),
        Expr::Group(inner) => literal_of(&inner.expr),
        _ => None,
    }
}

/// A value as the user wrote it.
fn written(value: &Listed) -> String {
    match value {
        Listed::Type(ty) => tidy_type(ty),
        Listed::Literal(literal) => tidy(literal),
    }
}

/// The value as a part of a name: `f32`, `2`, `m1` for -1, `true`.
pub(super) fn suffix(value: &Listed) -> String {
    match value {
        Listed::Type(ty) => tidy_type(ty),
        Listed::Literal(literal) => {
            let sign = if matches!(literal, Expr::Unary(_)) { "m" } else { "" };
            match literal_of(literal) {
                Some(Lit::Int(integer)) => format!("{sign}{}", integer.base10_digits()),
                Some(Lit::Bool(truth)) => truth.value.to_string(),
                _ => tidy(literal),
            }
        }
    }
}

fn instance(
    function: &ItemFn,
    helpers: &[Item],
    arguments: &[(&GenericParam, Listed)],
    reporter: &mut Reporter,
) -> Instance {
    let suffixes: String = arguments.iter().map(|(_, value)| format!("_{}", suffix(value))).collect();
    let name = format!("{}{suffixes}", function.sig.ident.unraw());
    let named = |(parameter, value): &(&GenericParam, Listed)| {
        (parameter_name(parameter).expect("lifetimes have no list").clone(), value.clone())
    };
    let named: Vec<(Ident, Listed)> = arguments.iter().map(named).collect();
    let known = named.iter().map(|(name, value)| (name.unraw().to_string(), value.clone())).collect();
    let mut function = function.clone();
    if !arguments.is_empty() {
        function.sig.ident = Ident::new(&name, function.sig.ident.span());
    }
    lengths(&mut function, helpers, arguments, reporter);
    fill(&mut function, arguments);
    with_helpers(&mut function, helpers);
    specialise(&mut function, known, reporter);
    Instance { name, arguments: named, function }
}

/// Takes the generic parameters away: types are put in their places, constants become `const`s in the body.
pub(super) fn fill(function: &mut ItemFn, arguments: &[(&GenericParam, Listed)]) {
    let generics = std::mem::take(&mut function.sig.generics);
    let lifetimes = generics.lifetimes().map(|parameter| parameter.lifetime.ident.to_string()).collect();
    let (mut types, mut constants) = (BTreeMap::new(), Vec::new());
    for (parameter, value) in arguments {
        match (parameter, value) {
            (GenericParam::Type(parameter), Listed::Type(ty)) => {
                types.insert(parameter.ident.unraw().to_string(), ty.clone());
            }
            (GenericParam::Const(parameter), value) => {
                let (ident, ty) = (&parameter.ident, &parameter.ty);
                let item: ItemConst =
                    parse_quote!(#[allow(dead_code, non_upper_case_globals)] const #ident: #ty = #value;);
                constants.push(Stmt::Item(Item::Const(item)));
            }
            _ => unreachable!("`fits` has checked it"),
        }
    }
    let mut substitute = Substitute { types, lifetimes };
    substitute.visit_signature_mut(&mut function.sig);
    substitute.visit_block_mut(&mut function.block);
    function.block.stmts.splice(0..0, constants);
}

/// Puts constants, generic ones and those of the module, into the lengths of arrays in the signature: there the front
/// end takes literals only.
fn lengths(function: &mut ItemFn, helpers: &[Item], arguments: &[(&GenericParam, Listed)], reporter: &mut Reporter) {
    struct Lengths<'a> {
        constants: BTreeMap<String, &'a Expr>,
        generic: BTreeSet<String>,
        reporter: &'a mut Reporter,
    }
    impl VisitMut for Lengths<'_> {
        fn visit_type_array_mut(&mut self, array: &mut syn::TypeArray) {
            if let Some(name) = plain_path(&array.len) {
                if let Some(value) = self.constants.get(&name.unraw().to_string()) {
                    array.len = at(value, name.span());
                }
            } else if let Some(name) =
                idents(array.len.to_token_stream()).find(|name| self.generic.contains(&name.unraw().to_string()))
            {
                let message = format!("the length `{}` is computed from `{name}`", tidy(&array.len));
                let help = "Rust allows only the parameter itself as a length; add a parameter for it: \
                            `#[stencil(R = 1, N = 3)] fn k<const R: usize, const N: usize>(s: &[Field<f64>; N]) -> f64`";
                self.reporter.refuse(&array.len, message, help);
            }
            visit_mut::visit_type_array_mut(self, array);
        }
    }
    let shared = helpers.iter().filter_map(|item| match item {
        Item::Const(constant) if literal_of(&constant.expr).is_some() => {
            Some((constant.ident.unraw().to_string(), &*constant.expr))
        }
        _ => None,
    });
    let generic = arguments.iter().filter_map(|(parameter, value)| match (parameter, value) {
        (GenericParam::Const(parameter), Listed::Literal(value)) => Some((parameter.ident.unraw().to_string(), value)),
        _ => None,
    });
    let mut lengths = Lengths {
        constants: shared.chain(generic.clone()).collect(),
        generic: generic.map(|(name, _)| name).collect(),
        reporter,
    };
    for input in &mut function.sig.inputs {
        if let FnArg::Typed(input) = input {
            lengths.visit_type_mut(&mut input.ty);
        }
    }
    if let ReturnType::Type(_, ty) = &mut function.sig.output {
        lengths.visit_type_mut(ty);
    }
}

/// A name that stands alone.
pub(super) fn plain_path(expr: &Expr) -> Option<&Ident> {
    match expr {
        Expr::Path(path) if path.qself.is_none() => path.path.get_ident(),
        _ => None,
    }
}

/// The same literal at another place.
fn at(value: &Expr, span: Span) -> Expr {
    let mut value = value.clone();
    if let Expr::Lit(literal) = &mut value {
        literal.lit.set_span(span);
    }
    value
}

/// Every identifier in tokens.
pub(super) fn idents(tokens: proc_macro2::TokenStream) -> Box<dyn Iterator<Item = Ident>> {
    Box::new(tokens.into_iter().flat_map(|token| -> Box<dyn Iterator<Item = Ident>> {
        match token {
            proc_macro2::TokenTree::Ident(ident) => Box::new(std::iter::once(ident)),
            proc_macro2::TokenTree::Group(group) => idents(group.stream()),
            proc_macro2::TokenTree::Punct(_) | proc_macro2::TokenTree::Literal(_) => Box::new(std::iter::empty()),
        }
    }))
}

/// Puts the helpers in front of the body; around it, where the body has items of the same name.
fn with_helpers(function: &mut ItemFn, helpers: &[Item]) {
    let block = &mut function.block;
    let own: BTreeSet<String> = block
        .stmts
        .iter()
        .filter_map(|stmt| match stmt {
            Stmt::Item(item) => item_name(item).map(Ident::to_string),
            _ => None,
        })
        .collect();
    if helpers.iter().filter_map(item_name).any(|name| own.contains(&name.to_string())) {
        let body = std::mem::replace(block, parse_quote!({}));
        block.brace_token = body.brace_token;
        block
            .stmts
            .push(Stmt::Expr(Expr::Block(syn::ExprBlock { attrs: Vec::new(), label: None, block: *body }), None));
    }
    block.stmts.splice(0..0, helpers.iter().cloned().map(Stmt::Item));
}

/// The name of a function or constant.
pub(super) fn item_name(item: &Item) -> Option<&Ident> {
    match item {
        Item::Fn(function) => Some(&function.sig.ident),
        Item::Const(constant) => Some(&constant.ident),
        _ => None,
    }
}

#[cfg(test)]
pub(super) mod tests;
