//! `#[stencil] mod`: kernels that share constants and functions.
//!
//! A kernel is compiled for other devices from its own text, so what it needs of its module is put in front of its body:
//! the constants it names and the functions it calls, and what these need in turn.

use std::collections::{BTreeMap, BTreeSet};

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::visit_mut::{self, VisitMut};
use syn::{
    Attribute, Expr, ExprCall, ExprIndex, ExprPath, FnArg, Ident, Item, ItemFn, ItemMod, Meta, Pat, PatIdent,
    Visibility, parse_quote,
};

use super::instances::{idents, is_of_scalars, item_name, merge, parameter_name, plain_path, refused};
use super::plain::Plain;
use super::report::Reporter;
use super::signature::Options;
use super::substitute::Substitute;
use super::{Refused, compile};
use crate::ir::Field;

/// The parts of an annotated module.
#[derive(Clone)]
pub struct Module {
    /// In the order of the source.
    pub items: Vec<ModuleItem>,
    /// What is wrong with the module itself.
    pub mistakes: Option<Refused>,
}

/// An item of an annotated module.
#[derive(Clone)]
pub enum ModuleItem {
    /// An annotated function.
    Kernel(Box<ModuleKernel>),
    /// What stays in the module as it is.
    Other(Box<Item>),
}

/// An annotated function of an annotated module.
#[derive(Clone)]
pub struct ModuleKernel {
    /// The function without the attribute.
    pub function: ItemFn,
    /// The attribute's arguments, and the module's; none when the module's mistakes say why it can't be compiled.
    pub options: Option<Options>,
    /// What it needs of its module, to be put in front of its body.
    pub helpers: Vec<Item>,
}

/// Takes a module apart. An error when its text is elsewhere.
pub fn module(module: &ItemMod, options: &Options) -> Result<Module, Refused> {
    let mut reporter = Reporter::default();
    let Some((_, items)) = &module.content else {
        let message = format!("the text of the module `{}` is in another file", module.ident);
        let help = "write it here, `#[stencil] mod name { .. }`; or annotate each kernel in that file, which then can't share functions";
        reporter.refuse(&module.ident, message, help);
        return Err(refused(reporter));
    };
    let mut items = items.clone();
    items.iter_mut().for_each(|item| Plain.visit_item_mut(item));
    let items = &items;
    let mut sharing = Sharing::of(items, options, &mut reporter);
    if sharing.kernels.is_empty() {
        let message = format!("the module `{}` has no kernel", module.ident);
        let help = "write `#[stencil]` in front of the functions that are kernels; the others are what they share";
        reporter.refuse(&module.ident, message, help);
    }
    let mut used: BTreeSet<String> = BTreeSet::new();
    let mut kernels: BTreeMap<usize, ModuleKernel> = BTreeMap::new();
    for (index, (function, mut own)) in std::mem::take(&mut sharing.kernels) {
        let helpers = sharing.needed(&Uses::of(&function));
        for parameter in function.sig.inputs.iter().filter_map(parameter_of) {
            if helpers.contains(&parameter.unraw().to_string()) {
                let message = format!("the parameter `{parameter}` has the name of a function that the kernel uses");
                reporter.refuse(parameter, message, "give it another name");
                own = None;
            }
        }
        used.extend(helpers.iter().cloned());
        let helpers = helpers.iter().map(|name| sharing.nested(name, &mut reporter)).collect();
        kernels.insert(index, ModuleKernel { function, options: own, helpers });
    }
    let gone = sharing.only_in_kernels(&used);
    let unused: Vec<&String> = gone.iter().filter(|name| !used.contains(*name)).collect();
    let mut mistakes = vec![refused(reporter)];
    mistakes.extend(sharing.check_unused(&unused));
    let mistakes = Some(merge(mistakes)).filter(|mistakes| !mistakes.diagnostics.is_empty());
    // Names of types that functions use which aren't left: these see what the names stand for.
    let is_left = |index: usize, item: &Item| {
        !kernels.contains_key(&index) && item_name(item).is_none_or(|name| !gone.contains(&name.unraw().to_string()))
    };
    let taken = items.iter().enumerate().filter(|(index, item)| !is_left(*index, item));
    let resolved: BTreeSet<String> =
        taken.flat_map(|(_, item)| idents(item.to_token_stream())).map(|name| name.unraw().to_string()).collect();
    let items = items.iter().enumerate().filter_map(|(index, item)| match kernels.remove(&index) {
        Some(kernel) => Some(ModuleItem::Kernel(Box::new(kernel))),
        None if matches!(item, Item::Type(alias) if resolved.contains(&alias.ident.unraw().to_string())) => {
            Some(ModuleItem::Other(Box::new(not_dead(item))))
        }
        None => {
            let name = item_name(item).map(|name| name.unraw().to_string());
            let is_used = name.as_ref().is_some_and(|name| used.contains(name));
            let is_gone = name.is_some_and(|name| gone.contains(&name));
            (!is_gone).then(|| ModuleItem::Other(Box::new(if is_used { not_dead(item) } else { item.clone() })))
        }
    });
    Ok(Module { items: items.collect(), mistakes })
}

/// The arguments of the attribute `#[stencil]` among others, where it is.
pub(super) fn stencil_attribute(attributes: &[Attribute]) -> Option<syn::Result<Options>> {
    let attribute = attributes.iter().find(|attribute| is_stencil(attribute))?;
    Some(match &attribute.meta {
        Meta::Path(_) => Ok(Options::default()),
        Meta::List(list) => list.parse_args(),
        Meta::NameValue(value) => Err(syn::Error::new_spanned(
            value,
            "the options of #[stencil] stand in parentheses: `#[stencil(contract)]`",
        )),
    })
}

pub(super) fn is_stencil(attribute: &Attribute) -> bool {
    attribute.path().segments.last().is_some_and(|last| last.ident == "stencil")
}

/// The functions and constants of a module by name.
struct Sharing {
    /// Everything that can be put in front of a body, with names of types resolved. Kernels may call each other too.
    items: BTreeMap<String, (Item, Uses)>,
    /// The kernels with their options, by their place among the items.
    kernels: BTreeMap<usize, (ItemFn, Option<Options>)>,
    /// The names of the functions that aren't kernels.
    functions: BTreeSet<String>,
}

impl Sharing {
    fn of(items: &[Item], options: &Options, reporter: &mut Reporter) -> Sharing {
        let mut resolve = Substitute { types: aliases(items), ..Substitute::default() };
        let mut sharing = Sharing { items: BTreeMap::new(), kernels: BTreeMap::new(), functions: BTreeSet::new() };
        for (index, item) in items.iter().enumerate() {
            let mut item = item.clone();
            let Some(name) = item_name(&item).map(|name| name.unraw().to_string()) else { continue };
            resolve.visit_item_mut(&mut item);
            if let Item::Fn(function) = &mut item {
                if let Some(own) = stencil_attribute(&function.attrs) {
                    function.attrs.retain(|attribute| !is_stencil(attribute));
                    let own = own.map(|own| inherited(own, options, function));
                    let own = own.map_err(|errors| {
                        for error in errors {
                            let place = reporter.place_of(error.span(), error.span());
                            reporter.refuse_at(place, error.to_string());
                        }
                    });
                    sharing.kernels.insert(index, (function.clone(), own.ok()));
                } else {
                    sharing.functions.insert(name.clone());
                }
            }
            let uses = Uses::of_item(&item);
            sharing.items.insert(name, (item, uses));
        }
        for list in &options.lists {
            let known = |function: &ItemFn| {
                function.sig.generics.params.iter().filter_map(parameter_name).any(|name| *name == list.name)
            };
            if !sharing.kernels.is_empty() && !sharing.kernels.values().any(|(function, _)| known(function)) {
                let message = format!("no kernel of this module has a generic parameter `{}`", list.name);
                reporter.refuse(&list.name, message, super::signature::OPTIONS);
            }
        }
        sharing
    }

    /// The items that a use needs, in turn, each after those it needs itself.
    fn needed(&self, uses: &Uses) -> Vec<String> {
        fn visit(sharing: &Sharing, uses: &Uses, seen: &mut BTreeSet<String>, order: &mut Vec<String>) {
            for (name, (item, inner)) in &sharing.items {
                if uses.needs(name, item) && seen.insert(name.clone()) {
                    visit(sharing, inner, seen, order);
                    order.push(name.clone());
                }
            }
        }
        let (mut seen, mut order) = (BTreeSet::new(), Vec::new());
        visit(self, uses, &mut seen, &mut order);
        order
    }

    /// The item as one inside a function.
    fn nested(&self, name: &str, reporter: &mut Reporter) -> Item {
        let mut item = not_dead(&self.items[name].0);
        let (attributes, visibility) = match &mut item {
            Item::Fn(function) => (&mut function.attrs, &mut function.vis),
            Item::Const(constant) => (&mut constant.attrs, &mut constant.vis),
            _ => unreachable!("only functions and constants are shared"),
        };
        *visibility = Visibility::Inherited;
        for attribute in attributes.iter() {
            if attribute.path().is_ident("cfg") || attribute.path().is_ident("cfg_attr") {
                let help = "the stencil is compiled before it is known which parts of the module are built; write \
                            two kernels, or pass a scalar";
                reporter.refuse(attribute, format!("`{name}` is used in a stencil, so it can't have a `cfg`"), help);
            }
        }
        attributes.retain(is_lint);
        item
    }

    /// The functions that can't be outside of a kernel: those over fields and offsets that a kernel uses, those that read
    /// a field at an offset, and those over fields that call one of them.
    fn only_in_kernels(&self, used: &BTreeSet<String>) -> BTreeSet<String> {
        let mut gone = BTreeSet::new();
        loop {
            let known = gone.len();
            for name in &self.functions {
                let (Item::Fn(function), uses) = &self.items[name] else { unreachable!("it is a function") };
                let over_fields = takes(function, &Field::type_names());
                let calls = gone.iter().any(|name: &String| uses.called.contains(name));
                let is_used = used.contains(name);
                if is_used && (over_fields || takes(function, &["Offset"]) || calls)
                    || over_fields && (calls || indexes_field(function))
                {
                    gone.insert(name.clone());
                }
            }
            if gone.len() == known {
                return gone;
            }
        }
    }

    /// Looks at functions over fields that no kernel uses.
    fn check_unused(&self, names: &[&String]) -> Option<Refused> {
        let mut uses = Uses::default();
        uses.called.extend(names.iter().map(|name| (*name).clone()));
        // What is wrong with its attributes matters only where it is used.
        let mut ignored = Reporter::default();
        let items: Vec<Item> = self.needed(&uses).iter().map(|name| self.nested(name, &mut ignored)).collect();
        let kernel: ItemFn = parse_quote!(
            fn unused(u: &Field<f64>) -> f64 {
                u[HERE]
            }
        );
        let made = super::instances(&kernel, &items, &Options::default())
            .and_then(|made| made.iter().try_for_each(|made| compile(&made.function, &Options::default()).map(drop)));
        if names.is_empty() { None } else { made.err() }
    }
}

/// What a function or constant may need of its module.
#[derive(Clone, Default)]
struct Uses {
    /// Names that are called.
    called: BTreeSet<String>,
    /// Names that stand for values.
    values: BTreeSet<String>,
    /// Names that are given to something inside.
    bound: BTreeSet<String>,
    /// All names.
    names: BTreeSet<String>,
}

impl Uses {
    fn of(function: &ItemFn) -> Uses {
        Uses::of_item(&Item::Fn(function.clone()))
    }

    fn of_item(item: &Item) -> Uses {
        let names = idents(item.to_token_stream()).map(|ident| ident.unraw().to_string());
        let mut uses = Uses { names: names.collect(), ..Uses::default() };
        uses.visit_item_mut(&mut item.clone());
        if let Item::Fn(function) = item {
            for parameter in function.sig.generics.params.iter().filter_map(parameter_name) {
                uses.names.remove(&parameter.unraw().to_string());
            }
        }
        uses
    }

    /// Constants have names that nothing else can have in a pattern, so each mention counts.
    fn needs(&self, name: &str, item: &Item) -> bool {
        match item {
            Item::Const(_) => self.names.contains(name),
            _ => self.called.contains(name) || self.values.contains(name) && !self.bound.contains(name),
        }
    }
}

impl VisitMut for Uses {
    fn visit_expr_call_mut(&mut self, call: &mut ExprCall) {
        if let Expr::Path(path) = &*call.func
            && let [segment] = path.path.segments.iter().collect::<Vec<_>>()[..]
        {
            self.called.insert(segment.ident.unraw().to_string());
        }
        visit_mut::visit_expr_call_mut(self, call);
    }

    fn visit_expr_path_mut(&mut self, path: &mut ExprPath) {
        if let [segment] = path.path.segments.iter().collect::<Vec<_>>()[..] {
            self.values.insert(segment.ident.unraw().to_string());
        }
        visit_mut::visit_expr_path_mut(self, path);
    }

    fn visit_pat_ident_mut(&mut self, pattern: &mut PatIdent) {
        self.bound.insert(pattern.ident.unraw().to_string());
        visit_mut::visit_pat_ident_mut(self, pattern);
    }
}

/// `type Real = f64;`, `type State = [Real; 5];` by name, down to the types of numbers.
fn aliases(items: &[Item]) -> BTreeMap<String, syn::Type> {
    let plain = items.iter().filter_map(|item| match item {
        Item::Type(alias) if alias.generics.params.is_empty() => {
            Some((alias.ident.unraw().to_string(), (*alias.ty).clone()))
        }
        _ => None,
    });
    let mut aliases: BTreeMap<String, syn::Type> = plain.collect();
    for _ in 0..aliases.len() {
        let mut resolve = Substitute { types: aliases.clone(), ..Substitute::default() };
        aliases.values_mut().for_each(|ty| resolve.visit_type_mut(ty));
    }
    aliases.retain(|_, ty| is_of_scalars(ty));
    aliases
}

/// A kernel's options, completed by its module's. A list is for the kernels that have such a parameter.
fn inherited(own: Options, module: &Options, function: &ItemFn) -> Options {
    let Options { contract, krate, mut lists } = own;
    for list in &module.lists {
        let mut parameters = function.sig.generics.params.iter().filter_map(parameter_name);
        if parameters.any(|name| *name == list.name) && !lists.iter().any(|own| own.name == list.name) {
            lists.push(list.clone());
        }
    }
    Options { contract: contract || module.contract, krate: krate.or_else(|| module.krate.clone()), lists }
}

fn parameter_of(input: &FnArg) -> Option<&Ident> {
    match input {
        FnArg::Typed(input) => match &*input.pat {
            Pat::Ident(pattern) => Some(&pattern.ident),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    }
}

/// Whether a parameter's type speaks of one of these.
fn takes(function: &ItemFn, types: &[&str]) -> bool {
    let speaks = |input: &FnArg| idents(input.to_token_stream()).any(|ident| types.iter().any(|ty| ident == ty));
    function.sig.inputs.iter().any(speaks)
}

/// Whether a function reads a field parameter: outside of kernels a field can't be indexed.
fn indexes_field(function: &ItemFn) -> bool {
    struct Indexes {
        fields: Vec<String>,
        found: bool,
    }
    impl VisitMut for Indexes {
        fn visit_expr_index_mut(&mut self, index: &mut ExprIndex) {
            let name = plain_path(&index.expr).map(Ident::to_string);
            self.found |= name.is_some_and(|name| self.fields.contains(&name));
            visit_mut::visit_expr_index_mut(self, index);
        }
    }
    let is_field = |input: &&FnArg| match input {
        FnArg::Typed(input) => matches!(&*input.ty, syn::Type::Reference(reference)
            if matches!(&*reference.elem, syn::Type::Path(path)
                if path.path.segments.last().is_some_and(|last| Field::type_names().iter().any(|ty| last.ident == ty)))),
        FnArg::Receiver(_) => false,
    };
    let fields = function.sig.inputs.iter().filter(is_field).filter_map(parameter_of).map(Ident::to_string);
    let mut indexes = Indexes { fields: fields.collect(), found: false };
    indexes.visit_block_mut(&mut function.block.clone());
    indexes.found
}

/// Whether an attribute steers lints.
pub(super) fn is_lint(attribute: &Attribute) -> bool {
    ["allow", "expect", "warn", "deny", "forbid"].iter().any(|lint| attribute.path().is_ident(lint))
}

/// The item without a warning when only kernels use it.
fn not_dead(item: &Item) -> Item {
    let mut item = item.clone();
    let attributes = match &mut item {
        Item::Fn(function) => &mut function.attrs,
        Item::Const(constant) => &mut constant.attrs,
        Item::Type(alias) => &mut alias.attrs,
        _ => unreachable!("only functions, constants and names of types are shared"),
    };
    attributes.push(parse_quote!(#[allow(dead_code)]));
    item
}

#[cfg(test)]
mod tests;
