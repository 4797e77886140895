//! Expressions.

use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{BinOp, Expr, ExprBinary, ExprIndex, ExprPath, Lit, UnOp};

use super::Front;
use super::infer::TypeVar;
use super::report::tidy;
use super::scope::{Binding, IntType, Integer, Val};
use super::signature::Annotation;
use crate::diagnostic::Diagnostic;
use crate::ir::{Binary, BinaryKind, Expr as IrExpr, ExprKind, Id, Local, Offset, Place, Type, Unary, Value};
use crate::verify::{MAX_OFFSET, operands};

/// More expressions than this in one kernel is a mistake; no vendor's compiler would like it.
pub(super) const MAX_EXPRESSIONS: usize = 50_000;

impl Front {
    /// Whether the kernel has become so large that it was refused; there is no use in going on.
    pub(super) fn is_full(&self) -> bool {
        self.kernel.exprs.len() > MAX_EXPRESSIONS
    }

    /// Evaluates an expression; what is refused becomes [`Val::Poison`].
    pub(super) fn eval(&mut self, expr: &Expr) -> Val {
        // A name is for the value of the whole expression, not for its parts.
        if !matches!(expr, Expr::Paren(_) | Expr::Group(_) | Expr::Call(_) | Expr::If(_)) {
            self.name_hint = None;
        }
        match expr {
            Expr::Paren(inner) => self.eval(&inner.expr),
            Expr::Group(inner) => self.eval(&inner.expr),
            Expr::Reference(inner) if inner.mutability.is_none() => self.eval(&inner.expr),
            Expr::Lit(literal) => self.literal(&literal.lit, false),
            Expr::Path(path) => self.path(path),
            Expr::Unary(unary) => self.unary(unary),
            Expr::Binary(binary) => self.binary(binary, expr),
            Expr::Index(index) => self.index(index),
            Expr::Cast(cast) => self.cast(cast),
            Expr::Call(call) => self.call(call),
            Expr::MethodCall(call) => self.method(call),
            Expr::Closure(closure) => self.closure("closure".to_owned(), closure),
            Expr::Block(block) if block.label.is_none() => self.block(&block.block),
            Expr::If(branch) => self.branch(branch),
            Expr::ForLoop(repeat) => self.unroll(repeat),
            Expr::Assign(assign) => {
                let value = self.eval(&assign.right);
                self.assign(&assign.left, value, expr)
            }
            Expr::Array(array) => Val::Array(self.eval_all(array.elems.iter())),
            Expr::Tuple(tuple) if tuple.elems.is_empty() => Val::Unit,
            Expr::Tuple(tuple) => Val::Tuple(self.eval_all(tuple.elems.iter())),
            Expr::Repeat(repeat) => self.repeat(repeat),
            Expr::Field(field) => self.tuple_field(field),
            other => self.refused(other),
        }
    }

    /// Constructs that the language does not have, with what to write instead.
    fn refused(&mut self, expr: &Expr) -> Val {
        let unrolled = "loops are unrolled: write `for` over a range whose bounds are known, `for i in 0..4 { .. }`";
        let branch = "write `if a < b { .. } else { .. }`";
        let (token, message, help): (&dyn ToTokens, &str, &str) = match expr {
            Expr::While(repeat) => (&repeat.while_token, "`while` is not part of the stencil language", unrolled),
            Expr::Loop(repeat) => (&repeat.loop_token, "`loop` is not part of the stencil language", unrolled),
            Expr::Match(choice) => (&choice.match_token, "`match` is not part of the stencil language", branch),
            Expr::Let(pattern) => {
                (&pattern.let_token, "`let` in a condition is not part of the stencil language", branch)
            }
            Expr::Return(exit) => (
                &exit.return_token,
                "early `return` is not accepted yet",
                "let the value be the last expression, and choose with `if c { a } else { b }`",
            ),
            Expr::Break(exit) => (
                &exit.break_token,
                "`break` is not part of the stencil language",
                "loops are unrolled and run to their end; shorten the range, or guard the body with `if`",
            ),
            Expr::Continue(exit) => (
                &exit.continue_token,
                "`continue` is not part of the stencil language",
                "guard the rest of the body with `if`",
            ),
            Expr::Range(range) => (
                range,
                "a range is only possible in `for`",
                "read one offset at a time: `u[X]`, or loop: `for i in -1..=1 { s += u[i*X]; }`",
            ),
            Expr::Reference(reference) => (
                reference,
                "`&mut` is not part of the stencil language",
                "a stencil changes nothing outside; return the new value, or assign a `let mut` variable",
            ),
            Expr::RawAddr(address) => {
                (address, "raw pointers are not part of the stencil language", "read fields as `u[X]`")
            }
            Expr::Unsafe(block) => (
                &block.unsafe_token,
                "`unsafe` is not part of the stencil language",
                "nothing in a stencil needs it; remove the word",
            ),
            Expr::Async(block) => {
                (&block.async_token, "`async` is not part of the stencil language", "compute the value directly")
            }
            Expr::Await(wait) => {
                (&wait.await_token, "`.await` is not part of the stencil language", "compute the value directly")
            }
            Expr::Try(question) => (
                &question.question_token,
                "`?` is not part of the stencil language",
                "a stencil can't fail; choose a value with `if`",
            ),
            Expr::Struct(made) => (
                &made.path,
                "structs are not part of the stencil language",
                "use plain numbers, arrays `[a, b]` and tuples `(a, b)`",
            ),
            Expr::Const(block) => {
                (&block.const_token, "`const { }` blocks are not accepted", "write `const A: f64 = ..;` and use `A`")
            }
            Expr::Block(block) => (&block.label, "labels are not part of the stencil language", "remove the label"),
            Expr::Macro(call) => return self.macro_call(&call.mac),
            other => (
                other,
                "this construct is not part of the stencil language",
                "use arithmetic, `let`, `if`, `for`, closures and nested functions",
            ),
        };
        let place = self.reporter.place(&token.to_token_stream());
        self.reporter.report(Diagnostic::new(place, message).help(help));
        Val::Poison
    }

    pub(super) fn macro_call(&mut self, call: &syn::Macro) -> Val {
        let name = tidy(&call.path);
        let help = match name.as_str() {
            "println" | "print" | "eprintln" | "eprint" | "dbg" => {
                "a stencil has no output; look at fields after the step, or run on the `reference` device with a debugger"
            }
            "assert" | "assert_eq" | "assert_ne" | "debug_assert" | "panic" | "unreachable" | "todo"
            | "unimplemented" => "a stencil can't fail; check the fields before or after the step",
            "vec" | "format" => "memory can't be allocated in a stencil; use an array `[a, b, c]`",
            _ => "write the code that the macro stands for",
        };
        self.poison(&call.path, format!("macros such as `{name}!` are not part of the stencil language"), help)
    }

    /// Reports and gives [`Val::Poison`]. An empty help is left out.
    pub(super) fn poison(
        &mut self,
        tokens: &(impl ToTokens + ?Sized),
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Val {
        let place = self.reporter.place(&tokens.to_token_stream());
        let help: String = help.into();
        let diagnostic = Diagnostic::new(place, message);
        self.reporter.report(if help.is_empty() { diagnostic } else { diagnostic.help(help) });
        Val::Poison
    }

    /// A new expression in the kernel.
    pub(super) fn expr_of(&mut self, kind: ExprKind, ty: TypeVar, place: Place) -> Id<IrExpr> {
        if self.kernel.exprs.len() == MAX_EXPRESSIONS {
            let message = format!(
                "with its loops unrolled and calls inlined, this stencil has more than {MAX_EXPRESSIONS} operations"
            );
            let help = "use fewer turns or calls; what is the same at every point can be computed before and passed as a scalar or field";
            self.reporter.report(Diagnostic::new(place, message).help(help));
        }
        self.types.exprs.push(ty);
        self.kernel.exprs.push(IrExpr { kind, ty: Type::F64, place })
    }

    /// Makes two types one, or reports that they differ; tells whether it could.
    pub(super) fn unify(&mut self, a: TypeVar, b: TypeVar, place: Place) -> bool {
        let Err((a, b)) = self.types.unify(a, b) else { return true };
        let help = match a.is_float() && b.is_float() {
            true => format!("both sides must have one type; convert one of them: `x as {a}`"),
            false => {
                "compare numbers to get a bool; choose with `if c { 1.0 } else { 0.0 }` to get a number".to_owned()
            }
        };
        self.reporter.report(Diagnostic::new(place, format!("`{a}` meets `{b}`")).help(help));
        false
    }

    pub(super) fn expect_type(&mut self, value: Id<IrExpr>, ty: Type, place: Place) {
        let wanted = self.types.known(ty);
        self.unify(wanted, self.types.exprs[value.index()], place);
    }

    /// The value as a number of the kernel; `None` (reported) when it is none.
    pub(super) fn number(&mut self, value: &Val, wanted: Option<Type>, place: Place) -> Option<Id<IrExpr>> {
        match value {
            Val::Number(number) => Some(*number),
            Val::Truth(truth) => {
                let ty = self.types.known(Type::Bool);
                Some(self.expr_of(ExprKind::Literal(Value::Bool(*truth)), ty, place))
            }
            Val::Poison => None,
            Val::Integer(integer) => {
                let help = format!("write `{0}.0`, or convert: `x as {1}`", integer.value, wanted.unwrap_or(Type::F64));
                let message = format!("the integer {} stands where a float is needed", integer.value);
                self.reporter.report(Diagnostic::new(place, message).help(help));
                None
            }
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
                    _ => "use one of its numbers",
                };
                self.reporter.report(Diagnostic::new(place, message).help(help));
                None
            }
        }
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

    fn eval_pair(&mut self, first: &Expr, second: &Expr) -> (Val, Val) {
        let mut values = self.eval_all([first, second]).into_iter();
        let mut next = || values.next().expect("two operands give two values");
        (next(), next())
    }

    fn reads_any(&self, value: &Val, locals: &[Id<Local>]) -> bool {
        match value {
            Val::Number(number) => {
                let mut open = vec![*number];
                while let Some(id) = open.pop() {
                    let kind = &self.kernel.exprs[id].kind;
                    if matches!(kind, ExprKind::Local(local) if locals.contains(local)) {
                        return true;
                    }
                    open.extend(operands(kind));
                }
                false
            }
            Val::Array(items) | Val::Tuple(items) => items.iter().any(|item| self.reads_any(item, locals)),
            Val::Poison | Val::Unit | Val::Integer(_) | Val::Truth(_) => false,
            Val::Offset(_) | Val::Field(_) | Val::Closure(_) => false,
        }
    }

    fn literal(&mut self, literal: &Lit, negative: bool) -> Val {
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
                            return self.poison(
                                literal,
                                format!("the suffix `{suffix}` is not accepted"),
                                "leave it out",
                            );
                        }
                    },
                };
                let sign = if negative { -1 } else { 1 };
                match int.base10_parse::<i128>() {
                    Ok(value) if ty.unwrap_or(IntType { bits: 64, signed: true }).holds(sign * value) => {
                        Val::Integer(Integer { value, ty })
                    }
                    Ok(_) | Err(_) => self.poison(literal, "this integer is too large", "write it as a float"),
                }
            }
            Lit::Bool(truth) => Val::Truth(truth.value),
            other => self.poison(
                other,
                "this literal is not part of the stencil language",
                "literals are numbers, `true` and `false`",
            ),
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
        self.types.literal(expr.index(), digits.to_owned());
        expr
    }

    fn path(&mut self, path: &ExprPath) -> Val {
        let Some(name) = path.path.get_ident().map(|name| name.unraw().to_string()) else {
            return self.constant_path(path);
        };
        match self.scope.find(&name) {
            Some(Binding::Value(value)) => value,
            Some(Binding::Variable(local)) => {
                let place = self.reporter.place(path);
                let ty = self.types.locals[local.index()];
                Val::Number(self.expr_of(ExprKind::Local(local), ty, place))
            }
            Some(Binding::Counter { value, .. }) => Val::Integer(value),
            None => match name.as_str() {
                "HERE" => Val::Offset(Offset::HERE),
                "X" => Val::Offset(Offset([1, 0, 0])),
                "Y" => Val::Offset(Offset([0, 1, 0])),
                "Z" => Val::Offset(Offset([0, 0, 1])),
                _ => self.unknown_name(path, &name),
            },
        }
    }

    pub(super) fn unknown_name(&mut self, tokens: &impl ToTokens, name: &str) -> Val {
        let help = match name {
            "x" | "y" | "z" => format!("offsets are written in capitals: `{}`", name.to_uppercase()),
            "PI" => "write the whole path: `std::f64::consts::PI`".to_owned(),
            _ => format!("pass it as a parameter, or move `const {name}: .. = ..;` into the function"),
        };
        let diagnostic =
            Diagnostic::new(self.reporter.place(tokens), format!("`{name}` is not known inside the stencil"))
                .help(help)
                .note("a stencil is compiled for other devices from its own text, so it can't see names outside of it");
        self.reporter.report(diagnostic);
        Val::Poison
    }

    /// `std::f64::consts::PI`, `f64::EPSILON` and their like.
    fn constant_path(&mut self, path: &ExprPath) -> Val {
        let names: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let names = match names.as_slice() {
            ["std" | "core", rest @ ..] => rest,
            all => all,
        };
        let value = match names {
            ["f64", name] => constant64(name).map(Value::F64),
            ["f64", "consts", name] => constant64_consts(name).map(Value::F64),
            ["f32", name] => constant32(name).map(Value::F32),
            ["f32", "consts", name] => constant32_consts(name).map(Value::F32),
            ["Offset", name] => match *name {
                "HERE" => return Val::Offset(Offset::HERE),
                "X" => return Val::Offset(Offset([1, 0, 0])),
                "Y" => return Val::Offset(Offset([0, 1, 0])),
                "Z" => return Val::Offset(Offset([0, 0, 1])),
                _ => None,
            },
            _ => None,
        };
        let Some(value) = value else {
            let help =
                "known paths are the constants of `std::f64`, `std::f32` and their `consts`; pass others as parameters";
            return self.poison(path, format!("`{}` is not known inside the stencil", tidy(path)), help);
        };
        let ty = self.types.known(value.ty());
        let place = self.reporter.place(path);
        Val::Number(self.expr_of(ExprKind::Literal(value), ty, place))
    }

    fn unary(&mut self, unary: &syn::ExprUnary) -> Val {
        if let (UnOp::Neg(_), Expr::Lit(literal)) = (&unary.op, &*unary.expr)
            && let Lit::Int(_) = &literal.lit
        {
            return match self.literal(&literal.lit, true) {
                Val::Integer(integer) => Val::Integer(Integer { value: -integer.value, ty: integer.ty }),
                Val::Number(number) => self.negated(number, unary),
                other => other,
            };
        }
        let value = self.eval(&unary.expr);
        match (&unary.op, value) {
            (_, Val::Poison) => Val::Poison,
            (UnOp::Deref(_), value) => value,
            (UnOp::Neg(_), Val::Offset(Offset(cells))) => Val::Offset(Offset(cells.map(|cells| -cells))),
            (UnOp::Neg(_), Val::Integer(integer)) => self.integer(Some(-integer.value), integer.ty, unary),
            (UnOp::Neg(_), Val::Number(number)) => self.negated(number, unary),
            (UnOp::Not(_), Val::Truth(truth)) => Val::Truth(!truth),
            (UnOp::Not(_), Val::Number(number)) => {
                let place = self.reporter.place(unary);
                self.expect_type(number, Type::Bool, place);
                let ty = self.types.exprs[number.index()];
                Val::Number(self.expr_of(ExprKind::Unary(Unary::Not, number), ty, place))
            }
            (UnOp::Neg(_), value) => self.poison(unary, format!("{} can't be negated", value.describe()), ""),
            (UnOp::Not(_), value) => {
                self.poison(unary, format!("`!` of {}", value.describe()), "`!` takes a comparison")
            }
            (_, value) => self.poison(unary, format!("this operator does not take {}", value.describe()), ""),
        }
    }

    fn negated(&mut self, number: Id<IrExpr>, tokens: &syn::ExprUnary) -> Val {
        let place = self.reporter.place(tokens);
        let ty = self.types.exprs[number.index()];
        if self.types.get(ty) == Some(Type::Bool) {
            return self.poison(tokens, "a bool can't be negated by `-`", "write `!c`");
        }
        if let Some(digits) = self.types.digits(number.index()) {
            let negative = format!("-{digits}");
            return Val::Number(self.float_literal(&negative, ty, place));
        }
        Val::Number(self.expr_of(ExprKind::Unary(Unary::Neg, number), ty, place))
    }

    fn binary(&mut self, binary: &ExprBinary, whole: &Expr) -> Val {
        let (op, assigns) = match operator(&binary.op) {
            Some(found) => found,
            None => {
                let help = "integers are compile-time values here; bit operations come with run-time integers";
                return self.poison(&binary.op, format!("`{}` is not accepted yet", tidy(&binary.op)), help);
            }
        };
        let (left, right) = self.eval_pair(&binary.left, &binary.right);
        let value = self.combine(op, left, right, binary);
        match assigns {
            true if matches!(value, Val::Poison) => Val::Poison,
            true => self.assign(&binary.left, value, whole),
            false => value,
        }
    }

    fn combine(&mut self, op: Operator, left: Val, right: Val, binary: &ExprBinary) -> Val {
        match (left, right) {
            (Val::Poison, _) | (_, Val::Poison) => Val::Poison,
            (Val::Integer(a), Val::Integer(b)) => self.integers(op, a, b, binary),
            (Val::Offset(a), Val::Offset(b)) => match op {
                Operator::Ir(Binary::Add) => self.offset(a, b, |a, b| a.checked_add(b), binary),
                Operator::Ir(Binary::Sub) => self.offset(a, b, |a, b| a.checked_sub(b), binary),
                Operator::Ir(Binary::Eq) => Val::Truth(a == b),
                Operator::Ir(Binary::Ne) => Val::Truth(a != b),
                _ => self.poison(binary, format!("`{}` of two offsets", op.symbol()), "offsets are added, subtracted and multiplied by integers: `2*X - Y`"),
            },
            (Val::Integer(n), Val::Offset(offset)) | (Val::Offset(offset), Val::Integer(n)) if matches!(op, Operator::Ir(Binary::Mul)) => {
                let Ok(n) = i32::try_from(n.value) else {
                    return self.poison(binary, format!("the offset is farther than {MAX_OFFSET} cells"), "read nearer cells");
                };
                self.offset(offset, Offset([n; 3]), |a, n| a.checked_mul(n), binary)
            }
            (Val::Number(_), Val::Offset(_)) | (Val::Offset(_), Val::Number(_)) => self.poison(
                binary,
                "an offset meets a number that is only known at run time or is a float",
                "offsets must be known at compile time: use integer literals, `const`s and `for` variables, as in `2*X`",
            ),
            (Val::Truth(a), Val::Truth(b)) => match op {
                Operator::Ir(Binary::And) => Val::Truth(a && b),
                Operator::Ir(Binary::Or) => Val::Truth(a || b),
                Operator::Ir(Binary::Eq) => Val::Truth(a == b),
                Operator::Ir(Binary::Ne) => Val::Truth(a != b),
                _ => self.poison(binary, format!("`{}` of two bools", op.symbol()), "bools are combined by `&&`, `||`, `==` and `!=`"),
            },
            (Val::Tuple(a), Val::Tuple(b)) if a.len() == b.len() && matches!(op, Operator::Ir(Binary::Eq | Binary::Ne)) => {
                self.compare_tuples(op, a, b, binary)
            }
            (left @ (Val::Number(_) | Val::Truth(_)), right @ (Val::Number(_) | Val::Truth(_))) => {
                let Operator::Ir(op) = op else {
                    return self.poison(&binary.op, "`%` of floats is not accepted yet", "use `a - b * k` with a known `k`");
                };
                let place = self.reporter.place(binary);
                match (self.number(&left, None, place), self.number(&right, None, place)) {
                    (Some(left), Some(right)) => self.numbers(op, left, right, binary, place),
                    _ => Val::Poison,
                }
            }
            (Val::Number(_), Val::Integer(n)) | (Val::Integer(n), Val::Number(_)) => {
                let message = format!("the integer {} meets a float", n.value);
                self.poison(binary, message, format!("write `{}.0`, or convert it: `n as f64`", n.value))
            }
            (Val::Field(field), _) | (_, Val::Field(field)) => {
                let name = &self.kernel.fields[field].name;
                let (message, help) = (format!("`{}` of the whole field `{name}`", op.symbol()), format!("read it at a point: `{name}[HERE]`"));
                self.poison(binary, message, help)
            }
            (left, right) => {
                let message = format!("`{}` of {} and {}", op.symbol(), left.describe(), right.describe());
                self.poison(binary, message, "arithmetic is between numbers")
            }
        }
    }

    /// `(i, j) == (0, 0)` for tuples known at compile time.
    fn compare_tuples(&mut self, op: Operator, a: Vec<Val>, b: Vec<Val>, binary: &ExprBinary) -> Val {
        let mut equal = true;
        for pair in a.into_iter().zip(b) {
            equal &= match pair {
                (Val::Integer(a), Val::Integer(b)) => a.value == b.value,
                (Val::Truth(a), Val::Truth(b)) => a == b,
                (Val::Offset(a), Val::Offset(b)) => a == b,
                (Val::Poison, _) | (_, Val::Poison) => return Val::Poison,
                _ => {
                    return self.poison(
                        binary,
                        "these tuples are not known at compile time",
                        "compare their parts: `a.0 == b.0 && a.1 == b.1`",
                    );
                }
            };
        }
        Val::Truth(equal == matches!(op, Operator::Ir(Binary::Eq)))
    }

    fn numbers(&mut self, op: Binary, left: Id<IrExpr>, right: Id<IrExpr>, binary: &ExprBinary, place: Place) -> Val {
        let ty = self.types.exprs[left.index()];
        let is_bool = |number: Id<IrExpr>| self.types.get(self.types.exprs[number.index()]) == Some(Type::Bool);
        let bools = [is_bool(left), is_bool(right)];
        let takes_bools = match op.kind() {
            BinaryKind::Logic => true,
            BinaryKind::Arithmetic => false,
            BinaryKind::Comparison => bools == [true; 2] && matches!(op, Binary::Eq | Binary::Ne),
        };
        if bools != [takes_bools; 2] {
            let (message, help) = match (bools, op.kind()) {
                ([true, true], _) => {
                    (format!("`{}` of two bools", op.symbol()), "choose a number with `if c { 1.0 } else { 0.0 }`")
                }
                (_, BinaryKind::Logic) => {
                    (format!("`{}` of a number", op.symbol()), "compare it first: `a > 0.0 && b > 0.0`")
                }
                _ => (
                    format!("`{}` of a bool and a number", op.symbol()),
                    "choose a number with `if c { 1.0 } else { 0.0 }`",
                ),
            };
            return self.poison(binary, message, help);
        }
        if !self.unify(ty, self.types.exprs[right.index()], place) {
            return Val::Poison;
        }
        let result = match op.kind() {
            BinaryKind::Arithmetic => ty,
            BinaryKind::Comparison | BinaryKind::Logic => self.types.known(Type::Bool),
        };
        Val::Number(self.expr_of(ExprKind::Binary(op, left, right), result, place))
    }

    fn offset(&mut self, a: Offset, b: Offset, op: impl Fn(i32, i32) -> Option<i32>, tokens: &impl ToTokens) -> Val {
        let mut cells = [0; 3];
        for (cells, (a, b)) in cells.iter_mut().zip(a.0.into_iter().zip(b.0)) {
            match op(a, b) {
                Some(sum) if sum.abs() <= MAX_OFFSET => *cells = sum,
                _ => {
                    return self.poison(
                        tokens,
                        format!("the offset is farther than {MAX_OFFSET} cells"),
                        "read nearer cells",
                    );
                }
            }
        }
        Val::Offset(Offset(cells))
    }

    fn index(&mut self, index: &ExprIndex) -> Val {
        match self.eval_pair(&index.expr, &index.index) {
            (Val::Poison, _) | (_, Val::Poison) => Val::Poison,
            (Val::Field(field), Val::Offset(offset)) => {
                let place = self.reporter.place(index);
                let ty = self.types.known(self.kernel.fields[field].ty);
                Val::Number(self.expr_of(ExprKind::Load { field, offset }, ty, place))
            }
            (Val::Field(field), at) => {
                let name = self.kernel.fields[field].name.clone();
                let message = format!("field `{name}` is indexed by {}, not by an offset", at.describe());
                let help = match at {
                    Val::Tuple(_) | Val::Array(_) => format!("write the displacement as a sum: `{name}[X - Y]`"),
                    Val::Integer(Integer { value: 0, .. }) => format!("the point itself is `{name}[HERE]`"),
                    Val::Integer(integer) => {
                        let cells = i32::try_from(integer.value).unwrap_or(i32::MAX);
                        format!("along X that is `{name}[{}]`", Offset([cells, 0, 0]))
                    }
                    _ => format!(
                        "write `{name}[HERE]`, `{name}[X]`, `{name}[2*X - Y]`: offsets are known at compile time"
                    ),
                };
                self.poison(&*index.index, message, help)
            }
            (Val::Array(items), Val::Integer(at)) => {
                match usize::try_from(at.value).ok().and_then(|at| items.get(at)) {
                    Some(item) => item.clone(),
                    None => {
                        let message = format!("index {} is outside this array of {} elements", at.value, items.len());
                        self.poison(
                            &*index.index,
                            message,
                            format!("indices are 0 to {}", items.len().saturating_sub(1)),
                        )
                    }
                }
            }
            (Val::Array(_), at) => {
                let message =
                    format!("the array is indexed by {}, not by an integer known at compile time", at.describe());
                self.poison(
                    &*index.index,
                    message,
                    "use literals, `const`s and `for` variables, cast as needed: `w[i as usize]`",
                )
            }
            (base, _) => {
                self.poison(&*index.expr, format!("{} can't be indexed", base.describe()), "fields and arrays can")
            }
        }
    }

    fn repeat(&mut self, repeat: &syn::ExprRepeat) -> Val {
        match self.eval_pair(&repeat.expr, &repeat.len) {
            (Val::Poison, _) | (_, Val::Poison) => Val::Poison,
            (item, Val::Integer(Integer { value: length @ 0..=4096, .. })) => Val::Array(vec![item; length as usize]),
            (_, other) => {
                let message = format!("the length of the array is {}", other.describe());
                self.poison(&*repeat.len, message, "lengths are integers from 0 to 4096, known at compile time")
            }
        }
    }

    fn tuple_field(&mut self, field: &syn::ExprField) -> Val {
        match (self.eval(&field.base), &field.member) {
            (Val::Poison, _) => Val::Poison,
            (Val::Tuple(items), syn::Member::Unnamed(at)) if (at.index as usize) < items.len() => {
                items[at.index as usize].clone()
            }
            (base, member) => {
                let message = format!("{} has no part `.{}`", base.describe(), tidy(member));
                self.poison(member, message, "tuples have `.0`, `.1`, ..")
            }
        }
    }

    fn cast(&mut self, cast: &syn::ExprCast) -> Val {
        let value = self.eval(&cast.expr);
        let name = tidy(&*cast.ty);
        let integer = match value {
            Val::Poison => return Val::Poison,
            Val::Integer(integer) => Some(integer),
            Val::Truth(truth) => Some(Integer { value: i128::from(truth), ty: None }),
            _ => None,
        };
        if let (Some(integer), Some(ty)) = (integer, IntType::parse(&name)) {
            return Val::Integer(Integer { value: ty.wrap(integer.value), ty: Some(ty) });
        }
        let place = self.reporter.place(cast);
        match (self.annotation(&cast.ty), value) {
            (Annotation::Scalar(ty), Val::Integer(integer)) if ty.is_float() => {
                // The cast rounds the integer once to the type named, as rustc does.
                let value = match ty {
                    Type::F32 => Value::F32(integer.value as f32),
                    Type::F64 => Value::F64(integer.value as f64),
                    Type::Bool => unreachable!("checked to be a float"),
                };
                let ty = self.types.known(ty);
                Val::Number(self.expr_of(ExprKind::Literal(value), ty, place))
            }
            (Annotation::Scalar(ty), Val::Number(number)) if ty.is_float() => {
                if self.types.get(self.types.exprs[number.index()]) == Some(Type::Bool) {
                    return self.poison(
                        cast,
                        format!("a bool can't be cast to `{ty}`"),
                        "write `if c { 1.0 } else { 0.0 }`",
                    );
                }
                let ty = self.types.known(ty);
                Val::Number(self.expr_of(ExprKind::Cast(number), ty, place))
            }
            (_, Val::Number(_)) if IntType::parse(&name).is_some() => self.poison(
                cast,
                format!("a float can't be cast to `{name}` yet"),
                "integers are compile-time values here; stay with floats",
            ),
            (_, value) => self.poison(
                cast,
                format!("{} can't be cast to `{name}`", value.describe()),
                "casts are between `f64`, `f32` and known integers",
            ),
        }
    }

    /// An integer result; reports overflow as rustc would panic or refuse.
    pub(super) fn integer(&mut self, value: Option<i128>, ty: Option<IntType>, tokens: &impl ToTokens) -> Val {
        let range = ty.unwrap_or(IntType { bits: 64, signed: true });
        match value {
            Some(value) if range.holds(value) => Val::Integer(Integer { value, ty }),
            Some(_) | None => self.poison(tokens, "this integer overflows", "keep integers within their type"),
        }
    }

    fn integers(&mut self, op: Operator, a: Integer, b: Integer, binary: &ExprBinary) -> Val {
        let ty = a.ty.or(b.ty);
        let (x, y) = (a.value, b.value);
        let divisor_missing = y == 0 && matches!(op, Operator::Remainder | Operator::Ir(Binary::Div));
        if divisor_missing {
            return self.poison(binary, "division by zero", "the divisor is known at compile time; check it");
        }
        match op {
            Operator::Ir(Binary::Add) => self.integer(x.checked_add(y), ty, binary),
            Operator::Ir(Binary::Sub) => self.integer(x.checked_sub(y), ty, binary),
            Operator::Ir(Binary::Mul) => self.integer(x.checked_mul(y), ty, binary),
            Operator::Ir(Binary::Div) => self.integer(x.checked_div(y), ty, binary),
            Operator::Remainder => self.integer(x.checked_rem(y), ty, binary),
            Operator::Ir(Binary::Lt) => Val::Truth(x < y),
            Operator::Ir(Binary::Le) => Val::Truth(x <= y),
            Operator::Ir(Binary::Gt) => Val::Truth(x > y),
            Operator::Ir(Binary::Ge) => Val::Truth(x >= y),
            Operator::Ir(Binary::Eq) => Val::Truth(x == y),
            Operator::Ir(Binary::Ne) => Val::Truth(x != y),
            Operator::Ir(Binary::And | Binary::Or) => self.poison(
                binary,
                format!("`{}` of two integers", op.symbol()),
                "compare them first: `i != 0 && j != 0`",
            ),
        }
    }
}

/// An operator of the source.
#[derive(Clone, Copy)]
enum Operator {
    Ir(Binary),
    /// `%`, on compile-time integers only.
    Remainder,
}

impl Operator {
    fn symbol(self) -> &'static str {
        match self {
            Operator::Ir(op) => op.symbol(),
            Operator::Remainder => "%",
        }
    }
}

/// The operation, and whether it assigns its result; `None` for operators that the language does not have.
fn operator(op: &BinOp) -> Option<(Operator, bool)> {
    let ir = |op| Some((Operator::Ir(op), false));
    let assign = |op| Some((Operator::Ir(op), true));
    match op {
        BinOp::Add(_) => ir(Binary::Add),
        BinOp::Sub(_) => ir(Binary::Sub),
        BinOp::Mul(_) => ir(Binary::Mul),
        BinOp::Div(_) => ir(Binary::Div),
        BinOp::Lt(_) => ir(Binary::Lt),
        BinOp::Le(_) => ir(Binary::Le),
        BinOp::Gt(_) => ir(Binary::Gt),
        BinOp::Ge(_) => ir(Binary::Ge),
        BinOp::Eq(_) => ir(Binary::Eq),
        BinOp::Ne(_) => ir(Binary::Ne),
        BinOp::And(_) => ir(Binary::And),
        BinOp::Or(_) => ir(Binary::Or),
        BinOp::AddAssign(_) => assign(Binary::Add),
        BinOp::SubAssign(_) => assign(Binary::Sub),
        BinOp::MulAssign(_) => assign(Binary::Mul),
        BinOp::DivAssign(_) => assign(Binary::Div),
        BinOp::Rem(_) => Some((Operator::Remainder, false)),
        BinOp::RemAssign(_) => Some((Operator::Remainder, true)),
        _ => None,
    }
}

/// The same table of `consts` for both widths.
macro_rules! consts {
    ($name:ident, $float:ident, [$($constant:ident)*]) => {
        fn $name(name: &str) -> Option<$float> {
            match name {
                $(stringify!($constant) => Some(std::$float::consts::$constant),)*
                _ => None,
            }
        }
    };
}
macro_rules! limits {
    ($name:ident, $float:ident) => {
        fn $name(name: &str) -> Option<$float> {
            match name {
                "EPSILON" => Some($float::EPSILON),
                "MAX" => Some($float::MAX),
                "MIN" => Some($float::MIN),
                "MIN_POSITIVE" => Some($float::MIN_POSITIVE),
                "INFINITY" => Some($float::INFINITY),
                "NEG_INFINITY" => Some($float::NEG_INFINITY),
                "NAN" => Some($float::NAN),
                _ => None,
            }
        }
    };
}
consts!(constant64_consts, f64, [PI TAU E SQRT_2 LN_2 LN_10 LOG2_E LOG10_E FRAC_PI_2 FRAC_PI_3 FRAC_PI_4 FRAC_PI_6 FRAC_PI_8 FRAC_1_PI FRAC_2_PI FRAC_1_SQRT_2 FRAC_2_SQRT_PI]);
consts!(constant32_consts, f32, [PI TAU E SQRT_2 LN_2 LN_10 LOG2_E LOG10_E FRAC_PI_2 FRAC_PI_3 FRAC_PI_4 FRAC_PI_6 FRAC_PI_8 FRAC_1_PI FRAC_2_PI FRAC_1_SQRT_2 FRAC_2_SQRT_PI]);
limits!(constant64, f64);
limits!(constant32, f32);
