//! Parameters, result and the attribute's own arguments.

use proc_macro2::TokenTree;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{FnArg, GenericArgument, Ident, Pat, PathArguments, Signature, Token, parse_quote};

use super::Front;
use super::fold::fold_type;
use super::report::{tidy, tidy_type};
use super::result::{Declared, literal_length};
use super::scope::{Binding, Val};
use super::suggest::type_elsewhere;
use crate::ir::{ExprKind, Field, Id, Param, Place, Type};
use crate::verify::MAX_FIELDS;

/// The arguments of `#[stencil(...)]`.
#[derive(Clone, Default)]
pub struct Options {
    /// `contract`: multiply and add may be fused.
    pub contract: bool,
    /// `crate = path`: where the facade is, for crates that rename it.
    pub krate: Option<syn::Path>,
    /// `T = f32 | f64`: what the generic parameters stand for.
    pub lists: Vec<List>,
}

/// `T = f32 | f64` or `R = 1 | 2 | 4`: the values of one generic parameter.
#[derive(Clone)]
pub struct List {
    /// The parameter.
    pub name: Ident,
    /// Its values, at least one.
    pub values: Vec<Listed>,
}

/// A value in a [`List`].
#[derive(Clone)]
pub enum Listed {
    /// `f32`; also a name that is meant to be a constant, which can't be told apart.
    Type(syn::Type),
    /// `2`, `-1`, `true`.
    Literal(syn::Expr),
}

/// What the options are, for messages.
pub(super) const OPTIONS: &str = "the options are `contract` (allow fused multiply-add), `crate = path` (where polyhalo \
                                  is, if renamed) and the instances of a generic stencil, `T = f32 | f64`";

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options = Options::default();
        let mut wrong: Option<syn::Error> = None;
        while !input.is_empty() {
            if let Err(error) = options.option(input) {
                match &mut wrong {
                    Some(wrong) => wrong.combine(error),
                    None => wrong = Some(error),
                }
                // Skip the rest of it, so that the next option is still looked at.
                while !input.is_empty() && !input.peek(Token![,]) {
                    input.parse::<TokenTree>()?;
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        wrong.map_or(Ok(options), Err)
    }
}

impl Options {
    /// One option, up to the comma.
    fn option(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        let Ok(name) = input.call(Ident::parse_any) else {
            let written = input.cursor().token_tree().map(|(token, _)| token.to_string()).unwrap_or_default();
            return Err(input.error(format!("`{written}` is not an option of #[stencil]\n  = help: {OPTIONS}")));
        };
        match name.to_string().as_str() {
            "contract" => {
                self.contract = true;
                match at_end(input) {
                    true => Ok(()),
                    false => {
                        let help = "write `#[stencil(contract)]` to allow fused multiply-add, and leave the option out to forbid it";
                        Err(input.error(format!("the option `contract` takes no value\n  = help: {help}")))
                    }
                }
            }
            "crate" => self.krate(input, &name),
            _ if input.peek(Token![=]) => {
                input.parse::<Token![=]>()?;
                let values = Punctuated::<Listed, Token![|]>::parse_separated_nonempty(input)?;
                self.lists.push(List { name, values: values.into_iter().collect() });
                Ok(())
            }
            other => {
                let message = format!("`{other}` is not an option of #[stencil]\n  = help: {OPTIONS}");
                Err(syn::Error::new(name.span(), message))
            }
        }
    }

    /// What stands behind `crate`.
    fn krate(&mut self, input: ParseStream<'_>, name: &Ident) -> syn::Result<()> {
        let wrong = |span, written: &str| {
            let message = "the option `crate` takes the path of polyhalo";
            syn::Error::new(
                span,
                format!("{message}\n  = help: write it without quotes: `#[stencil(crate = {written})]`"),
            )
        };
        let example = "my_crate::polyhalo";
        if input.parse::<Token![=]>().is_err() || at_end(input) {
            return Err(wrong(if at_end(input) { name.span() } else { input.span() }, example));
        }
        if let Ok(text) = input.fork().parse::<syn::LitStr>() {
            let path = text.parse_with(syn::Path::parse_mod_style).map(|path| tidy(&path));
            return Err(wrong(text.span(), path.as_deref().unwrap_or(example)));
        }
        let span = input.span();
        let path = input.call(syn::Path::parse_mod_style).map_err(|_| wrong(span, example))?;
        match at_end(input) {
            true => self.krate = Some(path),
            false => return Err(wrong(input.span(), example)),
        }
        Ok(())
    }
}

/// Whether an option ends here.
fn at_end(input: ParseStream<'_>) -> bool {
    input.is_empty() || input.peek(Token![,])
}

impl Parse for Listed {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        if input.peek(syn::Lit) || input.peek(Token![-]) {
            let minus = input.parse::<Option<Token![-]>>()?;
            let literal = syn::Expr::Lit(input.parse()?);
            return Ok(Listed::Literal(match minus {
                Some(minus) => parse_quote!(#minus #literal),
                None => literal,
            }));
        }
        input.call(syn::Type::without_plus).map(Listed::Type)
    }
}

impl ToTokens for Listed {
    fn to_tokens(&self, tokens: &mut proc_macro2::TokenStream) {
        match self {
            Listed::Type(ty) => ty.to_tokens(tokens),
            Listed::Literal(literal) => literal.to_tokens(tokens),
        }
    }
}

/// One parameter of the user's function.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The user's name.
    pub name: String,
    /// What is passed.
    pub kind: ParameterKind,
}

/// What a parameter is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// `&Field<T>` or one that extends along some axes only, `&FieldXY<T>`; [`Field::axes`] tells.
    Field(Id<Field>),
    /// `&[Field<T>; N]`, `&[FieldXY<T>; N]`: fields named as they are read, `s[0]`, `s[1]`, ..
    Fields(Vec<Id<Field>>),
    /// A number or truth value.
    Scalar(Id<Param>),
    /// `Point`: the global indices of the point. The caller does not pass it.
    Point,
}

/// The type of an annotation, as far as the language has it.
pub(super) enum Annotation {
    Field(FieldType),
    Fields(FieldType, usize),
    Scalar(Type),
    Offset,
    Point,
    Unknown,
}

/// `FieldXY<f64>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FieldType {
    /// The type of a cell.
    pub(super) ty: Type,
    /// Along which axes it extends.
    pub(super) axes: [bool; 3],
}

impl FieldType {
    fn field(self, name: String, place: Place) -> Field {
        Field { name, ty: self.ty, axes: self.axes, place }
    }

    /// Its name in Rust.
    pub(super) fn name(self) -> String {
        self.field(String::new(), Place::default()).type_name()
    }
}

impl Front {
    /// Declares the parameters; gives them in the user's order with the type of the result.
    pub(super) fn signature(&mut self, signature: &Signature) -> (Vec<Parameter>, Option<Declared>) {
        self.modifiers(signature);
        let mut parameters = Vec::new();
        for input in &signature.inputs {
            match input {
                FnArg::Receiver(receiver) => self.reporter.refuse(
                    receiver,
                    "a stencil is a free function; it has no `self`",
                    "pass what it needs as parameters: `&Field<f64>`, `f64`",
                ),
                FnArg::Typed(input) => parameters.extend(self.parameter(input)),
            }
        }
        (parameters, self.result(signature))
    }

    fn modifiers(&mut self, signature: &Signature) {
        let plain = "a stencil is a plain `fn name(u: &Field<f64>, ..) -> f64`";
        if let Some(token) = &signature.asyncness {
            self.reporter.refuse(token, "a stencil can't be `async`", plain);
        }
        if let Some(token) = &signature.constness {
            self.reporter.refuse(token, "a stencil can't be `const`", plain);
        }
        if !signature.safety.to_token_stream().is_empty() {
            self.reporter.refuse(&signature.safety, "a stencil can't be `unsafe`", plain);
        }
        if let Some(token) = &signature.abi {
            self.reporter.refuse(token, "a stencil has no ABI of its own", plain);
        }
        if let Some(token) = &signature.variadic {
            self.reporter.refuse(token, "a stencil can't be variadic", plain);
        }
        if !signature.generics.params.is_empty() {
            let help = "write one function per type, for example `heat` for f64 and `heat_f32` for f32";
            self.reporter.refuse(&signature.generics, "generic stencils are not accepted yet", help);
        }
        if let Some(clause) = &signature.generics.where_clause {
            self.reporter.refuse(clause, "a stencil has no `where` clause", plain);
        }
    }

    fn parameter(&mut self, input: &syn::PatType) -> Option<Parameter> {
        let Pat::Ident(pattern) = &*input.pat else {
            let help = "give the parameter a plain name and take it apart with `let`";
            self.reporter.refuse(&input.pat, "a parameter of a stencil is a plain name", help);
            self.bind_poison(&input.pat);
            return None;
        };
        if let Some(token) = &pattern.mutability {
            let help = "parameters are the same at every point; start a variable with `let mut x = ..`";
            self.reporter.refuse(token, format!("parameter `{}` can't be `mut`", pattern.ident), help);
        }
        let name = pattern.ident.unraw().to_string();
        let place = self.reporter.place(&pattern.ident);
        if self.scope.find(&name).is_some() {
            let help = "give each parameter a name of its own";
            self.reporter.refuse(&pattern.ident, format!("two parameters are named `{name}`"), help);
            self.scope.bind(&name, Binding::Value(Val::Poison));
            return None;
        }
        if matches!(name.as_str(), "X" | "Y" | "Z" | "HERE") {
            let help = "`X`, `Y`, `Z` and `HERE` are offsets; give the parameter another name";
            self.reporter.refuse(&pattern.ident, format!("a parameter can't be named `{name}`"), help);
            self.scope.bind(&name, Binding::Value(Val::Poison));
            return None;
        }
        match self.annotation(&input.ty) {
            Annotation::Field(ty) => {
                let field = self.kernel.fields.push(ty.field(name.clone(), place));
                self.scope.bind(&name, Binding::Value(Val::Field(field)));
                Some(Parameter { name, kind: ParameterKind::Field(field) })
            }
            Annotation::Fields(ty, length) => {
                let field = |at| ty.field(format!("{name}[{at}]"), place);
                let fields: Vec<Id<Field>> = (0..length).map(|at| self.kernel.fields.push(field(at))).collect();
                let value = Val::Array(fields.iter().map(|field| Val::Field(*field)).collect());
                self.scope.bind(&name, Binding::Value(value));
                Some(Parameter { name, kind: ParameterKind::Fields(fields) })
            }
            Annotation::Point => {
                self.scope.bind(&name, Binding::Value(Val::Point));
                Some(Parameter { name, kind: ParameterKind::Point })
            }
            Annotation::Scalar(ty) if ty.name() == tidy_type(&input.ty) => {
                let param = self.kernel.params.push(Param { name: name.clone(), ty, place });
                let ty = self.types.known(ty);
                let value = self.expr_of(ExprKind::Param(param), ty, place);
                self.scope.bind(&name, Binding::Value(Val::Number(value)));
                Some(Parameter { name, kind: ParameterKind::Scalar(param) })
            }
            Annotation::Offset => {
                let help = "offsets must be known at compile time: write them in the function, as in `u[2*X]`";
                self.reporter.refuse(&input.ty, format!("parameter `{name}` can't be an `Offset`"), help);
                self.scope.bind(&name, Binding::Value(Val::Poison));
                None
            }
            Annotation::Scalar(_) | Annotation::Unknown => {
                self.refuse_parameter_type(&name, &input.ty);
                self.scope.bind(&name, Binding::Value(Val::Poison));
                None
            }
        }
    }

    fn refuse_parameter_type(&mut self, name: &str, ty: &syn::Type) {
        let written = tidy_type(ty);
        let help = match ty {
            _ if field_type(ty).is_some() => format!("a field is borrowed: `{name}: &{written}`"),
            _ if fold_type(ty).is_some() => {
                format!(
                    "what was folded is passed as a scalar: `{name}: {}`",
                    fold_type(ty).map_or_else(String::new, |(_, cell)| tidy_type(cell))
                )
            }
            syn::Type::Array(_) if written.contains("Field") => format!("fields are borrowed: `{name}: &{written}`"),
            _ if let Some(meant) = last_of(ty).and_then(|last| type_elsewhere(&last)) => {
                format!("in Rust it is `{meant}`: `{name}: {meant}`")
            }
            _ if written.trim_start_matches('&') == "Field" => {
                format!("say what the field holds: `{name}: &Field<f64>`")
            }
            _ if is_array_like(ty) && !matches!(ty, syn::Type::Array(_)) => {
                format!(
                    "a grid of values is a field: `{name}: &Field<f64>`; numbers are passed one by one: `a: f64, b: f64`"
                )
            }
            syn::Type::Array(_) | syn::Type::Tuple(_) => "pass its numbers one by one: `a: f64, b: f64`".to_owned(),
            syn::Type::Reference(reference) if reference.mutability.is_some() => {
                "fields are read only; the new value is what the function returns".to_owned()
            }
            syn::Type::Reference(reference) => match &*reference.elem {
                syn::Type::Slice(slice) => {
                    format!("the number of fields must be known: `{name}: &[{}; 3]`", tidy_type(&slice.elem))
                }
                syn::Type::Array(array) if field_type(&array.elem).is_some() => {
                    "the number of fields must be a literal from 1 to 64, as in `&[Field<f64>; 3]`".to_owned()
                }
                syn::Type::Path(path) => match path.path.segments.last().map(|last| last.ident.to_string()) {
                    Some(last) if field_axes(&last).is_some() => format!("a field holds {}", stored_names()),
                    Some(last) if last.starts_with("Field") => {
                        let names = Field::TYPES.map(|(name, _)| format!("`{name}`")).join(", ");
                        format!("a field extends along all axes or some of them, in this order: {names}")
                    }
                    Some(last) if last == "Point" => format!("write `{name}: Point`"),
                    Some(last) if Type::named(&last).is_some() => {
                        format!("scalars are passed by value: `{name}: {}`", tidy_type(&reference.elem))
                    }
                    _ => format!("parameters are {PARAMETERS}"),
                },
                _ => format!("parameters are {}", PARAMETERS),
            },
            _ if matches!(written.as_str(), "usize" | "isize") => {
                format!("its size depends on the machine; scalars are {}", stored_names())
            }
            syn::Type::Path(path) if path.path.get_ident().is_some() => format!(
                "parameters are {PARAMETERS}; another name for one of these types, `type {written} = ..`, is seen only inside \
                 of a `#[stencil] mod`"
            ),
            _ => format!("parameters are {}", PARAMETERS),
        };
        self.reporter.refuse(ty, format!("parameter `{name}` has type `{written}`, which a stencil can't take"), help);
    }

    /// What a written type means; says nothing when it means nothing.
    pub(super) fn annotation(&mut self, ty: &syn::Type) -> Annotation {
        match ty {
            syn::Type::Paren(inner) => self.annotation(&inner.elem),
            syn::Type::Group(inner) => self.annotation(&inner.elem),
            syn::Type::Reference(reference) if reference.mutability.is_none() => match &*reference.elem {
                syn::Type::Array(array) => match (field_type(&array.elem), literal_length(&array.len)) {
                    (Some(ty), Some(length @ 1..=MAX_FIELDS)) => Annotation::Fields(ty, length),
                    _ => Annotation::Unknown,
                },
                elem => field_type(elem).map_or(Annotation::Unknown, Annotation::Field),
            },
            syn::Type::Path(path) if path.qself.is_none() => match last_name(path).as_deref() {
                Some("Offset") => Annotation::Offset,
                Some("Point") => Annotation::Point,
                Some(name) => Type::named(name).map_or(Annotation::Unknown, Annotation::Scalar),
                None => Annotation::Unknown,
            },
            _ => Annotation::Unknown,
        }
    }
}

/// What parameters may be, for messages.
const PARAMETERS: &str = "fields `&Field<f64>`, fields along some axes `&FieldX<f64>`, `&FieldXY<f64>`, .., several fields \
                          `&[Field<f64>; 3]`, scalars such as `f64`, `f32`, `i32` and `bool`, and the point's indices `Point`";

/// `f64`, `f32`, ..
fn stored_names() -> String {
    Type::ALL.map(|ty| format!("`{ty}`")).join(", ")
}

/// Along which axes a field of a type of this name extends.
fn field_axes(name: &str) -> Option<[bool; 3]> {
    Field::TYPES.into_iter().find(|(field, _)| *field == name).map(|(_, axes)| axes)
}

/// `Field<T>`, `FieldXY<T>`.
fn field_type(ty: &syn::Type) -> Option<FieldType> {
    let syn::Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let axes = field_axes(&last.ident.to_string())?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    let arguments: &Punctuated<GenericArgument, Token![,]> = &arguments.args;
    match arguments.first() {
        Some(GenericArgument::Type(syn::Type::Path(cell))) if arguments.len() == 1 => {
            let name = last_name(cell)?;
            let ty = Type::named(&name).filter(|ty| ty.name() == name)?;
            Some(FieldType { ty, axes })
        }
        _ => None,
    }
}

/// The last name in a type, also behind a reference.
fn last_of(ty: &syn::Type) -> Option<String> {
    match ty {
        syn::Type::Reference(reference) => last_of(&reference.elem),
        syn::Type::Paren(inner) => last_of(&inner.elem),
        syn::Type::Group(inner) => last_of(&inner.elem),
        syn::Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
}

/// Whether a type is one that elsewhere holds the values of a grid.
fn is_array_like(ty: &syn::Type) -> bool {
    let element = match ty {
        syn::Type::Reference(reference) => return is_array_like(&reference.elem),
        syn::Type::Slice(slice) => &*slice.elem,
        syn::Type::Array(array) => &*array.elem,
        syn::Type::Ptr(_) => return true,
        ty => {
            let arrays = ["Vec", "Box", "Array", "Array1", "Array2", "Array3", "ArrayView3", "ArrayD"];
            return last_of(ty).is_some_and(|last| arrays.contains(&last.as_str()));
        }
    };
    last_of(element).is_none_or(|last| !last.starts_with("Field"))
}

/// The last name of a path without generic arguments.
fn last_name(path: &syn::TypePath) -> Option<String> {
    path.path.segments.last().filter(|last| last.arguments.is_none()).map(|last| last.ident.to_string())
}
