//! Literals, and what is a number of the kernel.

use quote::ToTokens;
use syn::{Expr, Lit};

use super::Front;
use super::infer::{Kind, TypeVar};
use super::operator::operand;
use super::scope::{IntType, Integer, Val};
use crate::diagnostic::Diagnostic;
use crate::ir::{Expr as IrExpr, ExprKind, Id, Local, Place, Type, Value};
use crate::verify::{is_operation, operands};

/// More operations than this in one kernel is a mistake; no vendor's compiler would like it.
const MAX_OPERATIONS: usize = 50_000;

/// More expressions than this, with literals and reads of variables, take too long to look at.
const MAX_EXPRESSIONS: usize = 1_000_000;

impl Front {
    /// Whether the kernel has become so large that it was refused; there is no use in going on.
    pub(super) fn is_full(&self) -> bool {
        self.operations > MAX_OPERATIONS || self.kernel.exprs.len() > MAX_EXPRESSIONS
    }

    /// A new expression in the kernel.
    pub(super) fn expr_of(&mut self, kind: ExprKind, ty: TypeVar, place: Place) -> Id<IrExpr> {
        self.operations += usize::from(is_operation(&kind));
        let has_many_operations = self.operations == MAX_OPERATIONS + 1;
        if has_many_operations || self.kernel.exprs.len() == MAX_EXPRESSIONS {
            self.operations += usize::from(has_many_operations); // Said once.
            let (most, what) = match has_many_operations {
                true => (MAX_OPERATIONS, "operations"),
                false => (MAX_EXPRESSIONS, "literals and reads of variables"),
            };
            let message =
                format!("with its loops unrolled and calls inlined, this stencil has more than {most} {what}");
            let help = "split it into stages: one kernel for each axis writes fluxes into fields, the next one takes their \
                        differences (\"Long kernels\" in `docs/recipes.md`); what is the same at every point can be computed \
                        before and passed as a scalar or field";
            let note = "each read of a field, operator, cast and function counts where it is computed; `polyhalo inspect` counts \
                        those of a smaller one";
            self.reporter.report(crate::Diagnostic::new(place, message).help(help).note(note));
        }
        self.types.exprs.push(ty);
        self.kernel.exprs.push(IrExpr { kind, ty: Type::F64, place })
    }

    /// Makes two types one, or reports that they differ; tells whether it could.
    pub(super) fn unify(&mut self, a: TypeVar, b: TypeVar, place: Place) -> bool {
        let Err((a, b)) = self.types.unify(a, b) else { return true };
        let help = match a.is_number() && b.is_number() {
            true => format!("both sides must have one type; convert one of them: `.. as {a}`"),
            false => {
                "compare numbers to get a bool; choose with `if c { 1.0 } else { 0.0 }` to get a number".to_owned()
            }
        };
        self.reporter.report(Diagnostic::new(place, format!("`{a}` meets `{b}`")).help(help));
        false
    }

    pub(super) fn expect_type(&mut self, value: Id<IrExpr>, ty: Type, tokens: &impl ToTokens, place: Place) -> bool {
        let wanted = self.types.known(ty);
        self.converts(wanted, value, tokens, place)
    }

    /// Gives a value the type that is wanted, or reports how it is converted to it; tells whether it could.
    pub(super) fn converts(
        &mut self,
        wanted: TypeVar,
        value: Id<IrExpr>,
        tokens: &impl ToTokens,
        place: Place,
    ) -> bool {
        let found = self.types.exprs[value.index()];
        match self.types.unify(wanted, found) {
            Err((a, b)) if a.is_number() && b.is_number() => {
                let written = match syn::parse2::<Expr>(tokens.to_token_stream()) {
                    Ok(expr) if !matches!(expr, Expr::Block(_) | Expr::If(_) | Expr::Match(_)) => operand(&expr),
                    _ => "x".to_owned(),
                };
                let short = if written.len() > 50 { "(..)" } else { &written };
                let help = format!("convert it: `{short} as {a}`");
                self.reporter.report(Diagnostic::new(place, format!("`{a}` meets `{b}`")).help(help));
                false
            }
            _ => self.unify(wanted, found, place),
        }
    }

    /// The value as a number of the kernel; `None` (reported) when it is none. An integer known at compile time becomes a
    /// literal, of the type wanted unless it has one.
    pub(super) fn number(&mut self, value: &Val, wanted: Option<TypeVar>, place: Place) -> Option<Id<IrExpr>> {
        match value {
            Val::Number(number) => Some(*number),
            Val::Truth(truth) => {
                let ty = self.types.known(Type::Bool);
                Some(self.expr_of(ExprKind::Literal(Value::Bool(*truth)), ty, place))
            }
            Val::Poison => None,
            Val::Integer(integer) => match wanted.map(|wanted| (wanted, self.types.kind(wanted))) {
                Some((wanted, Kind::Float)) => {
                    let ty = self.types.or_default(wanted);
                    let help = self.quotients.help(*integer).unwrap_or_else(|| match integer.ty {
                        None => format!("write `{}.0`", integer.value),
                        Some(_) => format!("write `{0}.0`, or convert it: `{0} as {ty}`", integer.value),
                    });
                    let message = format!("the integer {} stands where a float is needed", integer.value);
                    self.reporter.report(Diagnostic::new(place, message).help(help));
                    None
                }
                Some((_, Kind::Bool)) => {
                    let message = format!("the integer {} stands where a bool is needed", integer.value);
                    self.reporter.report(Diagnostic::new(place, message).help("compare it: `n != 0`"));
                    None
                }
                Some((wanted, Kind::Integer)) => self.integer_literal(*integer, Some(wanted), place),
                None => self.integer_literal(*integer, None, place),
            },
            Val::Field(field) => {
                let name = self.kernel.fields[*field].name.clone();
                let message = format!("the field `{name}` stands where a number is needed");
                self.reporter
                    .report(Diagnostic::new(place, message).help(format!("read it at a point: `{name}[HERE]`")));
                None
            }
            other => {
                let message = format!("{} stands where a number is needed", other.describe());
                let help = match other {
                    Val::Unit => "the last expression of a block gives its value; does a `;` stand behind it?",
                    Val::Closure(_) => "call it: `f(..)`",
                    Val::Point => "its indices are `p.i`, `p.j` and `p.k`",
                    Val::Fold(_) => "a fold can only be returned; compute with the value before it is folded",
                    _ => "use one of its numbers",
                };
                self.reporter.report(Diagnostic::new(place, message).help(help));
                None
            }
        }
    }

    /// Two values as numbers; one that is known at compile time takes the type of the other.
    pub(super) fn number_pair(&mut self, a: &Val, b: &Val, place: Place) -> Option<(Id<IrExpr>, Id<IrExpr>)> {
        if let (Val::Integer(_), Val::Number(_)) = (a, b) {
            let (b, a) = self.number_pair(b, a, place)?;
            return Some((a, b));
        }
        let wanted = match (a, b) {
            (Val::Integer(_), Val::Integer(Integer { ty: Some(ty), .. })) => {
                ty.in_kernel().map(|ty| self.types.known(ty))
            }
            _ => None,
        };
        let a = self.number(a, wanted, place)?;
        let wanted = self.types.exprs[a.index()];
        Some((a, self.number(b, Some(wanted), place)?))
    }

    fn integer_literal(&mut self, integer: Integer, wanted: Option<TypeVar>, place: Place) -> Option<Id<IrExpr>> {
        let ty = match (integer.ty, wanted) {
            (None, Some(wanted)) => wanted,
            (None, None) => self.types.integer(),
            (Some(ty), _) => match ty.in_kernel() {
                Some(ty) => self.types.known(ty),
                None => {
                    let message = format!("an integer of {} bits stands where one of the kernel is needed", ty.bits);
                    self.poison_at(place, message, "take `i32` or `u32`");
                    return None;
                }
            },
        };
        let literal = self.expr_of(ExprKind::Literal(Value::I32(0)), ty, place);
        self.types.integer_literal(literal, integer.value);
        Some(literal)
    }

    /// Evaluates operands from left to right. A variable that an operand reads must not be assigned by a later one:
    /// the kernel reads it where the whole expression stands.
    pub(super) fn eval_all<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>) -> Vec<Val> {
        let mut values: Vec<(Val, &Expr)> = Vec::new();
        for expr in exprs {
            let mark = self.assigned.len();
            let value = self.eval(expr);
            let changed: Vec<Id<Local>> = self.assigned[mark..].to_vec();
            for (earlier, tokens) in &mut values {
                if !changed.is_empty() && self.reads_any(earlier, &changed) {
                    let help = "assign it in a statement of its own, before or after";
                    let message = "a variable is read here and assigned later in the same expression";
                    *earlier = self.poison(*tokens, message, help);
                }
            }
            values.push((value, expr));
        }
        values.into_iter().map(|(value, _)| value).collect()
    }

    pub(super) fn eval_pair(&mut self, first: &Expr, second: &Expr) -> (Val, Val) {
        let mut values = self.eval_all([first, second]).into_iter();
        let mut next = || values.next().expect("two operands give two values");
        (next(), next())
    }

    /// Whether a value, where it stands, reads one of these locals.
    pub(super) fn reads_any(&self, value: &Val, locals: &[Id<Local>]) -> bool {
        match value {
            Val::Number(number) => {
                let mut open = vec![*number];
                let mut seen = std::collections::BTreeSet::new();
                while let Some(id) = open.pop() {
                    let kind = &self.kernel.exprs[id].kind;
                    if matches!(kind, ExprKind::Local(local) if locals.contains(local)) {
                        return true;
                    }
                    if seen.insert(id) {
                        open.extend(operands(kind));
                    }
                }
                false
            }
            Val::Array(items) | Val::Tuple(items) => items.iter().any(|item| self.reads_any(item, locals)),
            Val::Fold(fold) => self.reads_any(&fold.value, locals),
            Val::Poison | Val::Unit | Val::Integer(_) | Val::Truth(_) => false,
            Val::Offset(_) | Val::Field(_) | Val::Point | Val::Closure(_) => false,
        }
    }

    pub(super) fn literal(&mut self, literal: &Lit, negative: bool) -> Val {
        match literal {
            Lit::Float(float) => self.float(float.base10_digits(), float.suffix(), literal),
            Lit::Int(int) if matches!(int.suffix(), "f64" | "f32") => {
                self.float(int.base10_digits(), int.suffix(), literal)
            }
            Lit::Int(int) => {
                let ty = match int.suffix() {
                    "" => None,
                    suffix => match IntType::parse(suffix) {
                        Some(ty) => Some(ty),
                        None => {
                            let help = match suffix {
                                "X" | "Y" | "Z" | "x" | "y" | "z" => {
                                    format!("a multiplication is written: `{}*{}`", int.base10_digits(), suffix.to_uppercase())
                                }
                                _ => "the types of integers are `i64`, `i32`, `i8`, `u64`, `u32` and `u8`; mostly the suffix \
                                      can be left out"
                                    .to_owned(),
                            };
                            return self.poison(literal, format!("the suffix `{suffix}` is not accepted"), help);
                        }
                    },
                };
                let sign = if negative { -1 } else { 1 };
                // Without a type it may become a u64.
                let fits = |value: i128| match ty {
                    Some(ty) => ty.holds(sign * value),
                    None => (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&(sign * value)),
                };
                match int.base10_parse::<i128>() {
                    Ok(value) if fits(value) => Val::Integer(Integer::new(value, ty)),
                    Ok(_) | Err(_) => self.poison(literal, "this integer is too large", "write it as a float"),
                }
            }
            Lit::Bool(truth) => Val::Truth(truth.value),
            other => {
                let what = match other {
                    Lit::Str(_) | Lit::ByteStr(_) | Lit::CStr(_) => "text",
                    Lit::Char(_) | Lit::Byte(_) => "a character",
                    _ => "this literal",
                };
                self.poison(
                    other,
                    format!("{what} is not part of the stencil language"),
                    "literals are numbers, `true` and `false`",
                )
            }
        }
    }

    fn float(&mut self, digits: &str, suffix: &str, tokens: &Lit) -> Val {
        let ty = match suffix {
            "" => self.types.float(),
            "f32" => self.types.known(Type::F32),
            "f64" => self.types.known(Type::F64),
            other => {
                return self.poison(
                    tokens,
                    format!("the suffix `{other}` is not accepted"),
                    "floats are `f64` or `f32`",
                );
            }
        };
        let place = self.reporter.place(tokens);
        Val::Number(self.float_literal(digits, ty, place))
    }

    /// A float whose digits are rounded when its type is known.
    pub(super) fn float_literal(&mut self, digits: &str, ty: TypeVar, place: Place) -> Id<IrExpr> {
        let expr = self.expr_of(ExprKind::Literal(Value::F64(f64::NAN)), ty, place);
        self.types.float_literal(expr, digits.to_owned());
        expr
    }
}
