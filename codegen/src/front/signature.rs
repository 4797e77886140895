//! Parameters, result and the attribute's own arguments.

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{FnArg, GenericArgument, Ident, Pat, PathArguments, Signature, Token};

use super::Front;
use super::report::tidy_type;
use super::result::{Declared, literal_length};
use super::scope::{Binding, Val};
use crate::ir::{ExprKind, Field, Id, Param, Type};
use crate::verify::MAX_FIELDS;

/// The arguments of `#[stencil(...)]`.
#[derive(Clone, Default)]
pub struct Options {
    /// `contract`: multiply and add may be fused.
    pub contract: bool,
    /// `crate = path`: where the facade is, for crates that rename it.
    pub krate: Option<syn::Path>,
}

impl Parse for Options {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut options = Options::default();
        let mut wrong: Option<syn::Error> = None;
        while !input.is_empty() {
            let name = input.call(Ident::parse_any)?;
            match name.to_string().as_str() {
                "contract" => options.contract = true,
                "crate" => {
                    input.parse::<Token![=]>()?;
                    options.krate = Some(input.call(syn::Path::parse_mod_style)?);
                }
                other => {
                    let message = format!(
                        "`{other}` is not an option of #[stencil]\n  = help: the options are `contract` (allow fused \
                         multiply-add) and `crate = path` (where polyhalo is, if renamed)"
                    );
                    let error = syn::Error::new(name.span(), message);
                    match &mut wrong {
                        Some(wrong) => wrong.combine(error),
                        None => wrong = Some(error),
                    }
                    // Skip the value, so that the next option is still looked at.
                    while !input.is_empty() && !input.peek(Token![,]) {
                        input.parse::<proc_macro2::TokenTree>()?;
                    }
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        wrong.map_or(Ok(options), Err)
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
    /// `&Field<T>`.
    Field(Id<Field>),
    /// `&[Field<T>; N]`: fields named by the parameter and their number, `s_0`, `s_1`, ..
    Fields(Vec<Id<Field>>),
    /// A number or truth value.
    Scalar(Id<Param>),
    /// `Point`: the global indices of the point. The caller does not pass it.
    Point,
}

/// The type of an annotation, as far as the language has it.
pub(super) enum Annotation {
    Field(Type),
    Fields(Type, usize),
    Scalar(Type),
    Offset,
    Point,
    Unknown,
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
        if self.kernel.fields.is_empty() && parameters.len() == signature.inputs.len() {
            self.reporter.refuse(
                &signature.ident,
                format!("stencil `{}` takes no field", signature.ident),
                "a stencil computes new values from fields: add a parameter such as `u: &Field<f64>`",
            );
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
        match self.annotation(&input.ty) {
            Annotation::Field(ty) => {
                let field = self.kernel.fields.push(Field { name: name.clone(), ty, axes: [true; 3], place });
                self.scope.bind(&name, Binding::Value(Val::Field(field)));
                Some(Parameter { name, kind: ParameterKind::Field(field) })
            }
            Annotation::Fields(ty, length) => {
                let field = |at| Field { name: format!("{name}_{at}"), ty, axes: [true; 3], place };
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
            syn::Type::Path(path) if last_name(path).is_some_and(|last| last == "Field") => {
                format!("a field is borrowed: `{name}: &{written}`")
            }
            syn::Type::Array(_) if written.contains("Field<") => format!("fields are borrowed: `{name}: &{written}`"),
            syn::Type::Array(_) | syn::Type::Tuple(_) => "pass its numbers one by one: `a: f64, b: f64`".to_owned(),
            syn::Type::Reference(reference) if reference.mutability.is_some() => {
                "fields are read only; the new value is what the function returns".to_owned()
            }
            syn::Type::Reference(reference) => match &*reference.elem {
                syn::Type::Slice(slice) => {
                    format!("the number of fields must be known: `{name}: &[{}; 3]`", tidy_type(&slice.elem))
                }
                syn::Type::Array(array) if field_cell(&array.elem).is_some() => {
                    "the number of fields must be a literal from 1 to 64, as in `&[Field<f64>; 3]`".to_owned()
                }
                syn::Type::Path(path) => match path.path.segments.last().map(|last| last.ident.to_string()) {
                    Some(last) if last == "Field" => format!("a field holds {}", stored_names()),
                    Some(last) if last.starts_with("Field") => {
                        "fields along some axes only are not accepted yet; use a whole field, `&Field<f64>`".to_owned()
                    }
                    Some(last) if last == "Point" => format!("write `{name}: Point`"),
                    _ => format!("scalars are passed by value: `{name}: {}`", tidy_type(&reference.elem)),
                },
                _ => format!("parameters are {}", PARAMETERS),
            },
            _ if matches!(written.as_str(), "usize" | "isize") => {
                format!("its size depends on the machine; scalars are {}", stored_names())
            }
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
                syn::Type::Array(array) => match (field_cell(&array.elem), literal_length(&array.len)) {
                    (Some(ty), Some(length @ 1..=MAX_FIELDS)) => Annotation::Fields(ty, length),
                    _ => Annotation::Unknown,
                },
                elem => field_cell(elem).map_or(Annotation::Unknown, Annotation::Field),
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
const PARAMETERS: &str = "fields `&Field<f64>`, several fields `&[Field<f64>; 3]`, scalars such as `f64`, `f32`, `i32` \
                          and `bool`, and the point's indices `Point`";

/// `f64`, `f32`, ..
fn stored_names() -> String {
    Type::ALL.map(|ty| format!("`{ty}`")).join(", ")
}

/// `T` of `Field<T>`.
fn field_cell(ty: &syn::Type) -> Option<Type> {
    let syn::Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|last| last.ident == "Field")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    let arguments: &Punctuated<GenericArgument, Token![,]> = &arguments.args;
    match arguments.first() {
        Some(GenericArgument::Type(syn::Type::Path(cell))) if arguments.len() == 1 => {
            let name = last_name(cell)?;
            Type::named(&name).filter(|ty| ty.name() == name)
        }
        _ => None,
    }
}

/// The last name of a path without generic arguments.
fn last_name(path: &syn::TypePath) -> Option<String> {
    path.path
        .segments
        .last()
        .filter(|last| last.arguments.is_none() || last.ident == "Field")
        .map(|last| last.ident.to_string())
}
