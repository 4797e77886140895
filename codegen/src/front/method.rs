//! Methods and associated functions of numbers.

use quote::ToTokens;
use syn::{Expr, ExprCall, ExprMethodCall, RangeLimits};

use super::Front;
use super::expr::seen_by_callers;
use super::infer::Kind;
use super::report::{counted, tidy};
use super::scope::{IntType, Integer, Val};
use super::suggest::{function_elsewhere, nearest};
use crate::ir::{Binary, Expr as IrExpr, ExprKind, Family, Function, Id, Place, Type};

/// The composite methods of floats, for messages.
const FLOAT_METHODS: &str = "`powi`, `clamp`, `signum`, `recip`, `fract`, `rem_euclid`, `div_euclid`, `is_nan`, \
                             `is_finite`, `is_infinite`, `is_sign_negative`, `is_sign_positive`, `to_degrees`, \
                             `to_radians`, `log`, `sin_cos`";
/// The methods of integers, for messages.
const INTEGER_METHODS: &str = "`abs`, `min`, `max`, `clamp`, `signum`, `pow`, `rem_euclid`, `div_euclid`, `abs_diff`, \
                               `unsigned_abs`, `count_ones`, `count_zeros`, `leading_zeros`, `trailing_zeros`, `rotate_left`, \
                               `rotate_right`, `wrapping_add`, `wrapping_sub`, `wrapping_mul`, `wrapping_neg`, \
                               `wrapping_abs`, `saturating_add`, `saturating_sub`, `is_positive`, `is_negative`, \
                               `is_multiple_of`, `is_power_of_two`, `div_ceil`";

/// Those that look at bits: of known integers too they are computed by the kernel.
const OF_BITS: &str = "`count_ones`, `count_zeros`, `leading_zeros`, `trailing_zeros`, `rotate_left`, `rotate_right`";

impl Front {
    pub(super) fn method(&mut self, call: &ExprMethodCall) -> Val {
        let name = call.method.to_string();
        if let (Some(range), "contains", 1) = (range_of(&call.receiver), name.as_str(), call.args.len()) {
            return self.contains(range, &call.args[0], call);
        }
        let mut operands = vec![&*call.receiver];
        operands.extend(call.args.iter());
        let arguments = self.eval_all(operands.iter().copied());
        let earlier = std::mem::take(&mut self.argument_places);
        self.argument_places = operands.iter().map(|operand| operand.to_token_stream()).collect();
        let value = self.method_of(&name, arguments, call, &call.method);
        self.argument_places = earlier;
        value
    }

    /// `(4..=9).contains(&n)`.
    fn contains(&mut self, range: &syn::ExprRange, item: &Expr, call: &ExprMethodCall) -> Val {
        let bounds: Vec<&Expr> = range.start.iter().chain(&range.end).map(|bound| &**bound).collect();
        let mut values = self.eval_all(bounds.iter().copied().chain([item]));
        let place = self.reporter.place(call);
        let item = match values.pop().expect("the item is one of them") {
            Val::Number(number) => Val::Number(self.named(number, "item", place)),
            item => item,
        };
        let below = if matches!(range.limits, RangeLimits::Closed(_)) { Binary::Le } else { Binary::Lt };
        let tests = range.start.iter().map(|_| Binary::Ge).chain(range.end.iter().map(|_| below));
        let mut inside = Val::Truth(true);
        for ((op, bound), tokens) in tests.zip(values).zip(bounds) {
            let fits = match (&item, &bound) {
                (Val::Number(item), Val::Integer(bound)) if self.types.kind_of(*item) == Kind::Float => {
                    self.integer_meets_float(*bound, *item, tokens)
                }
                _ => self.operate(op, item.clone(), bound, call),
            };
            inside = self.operate(Binary::And, inside, fits, call);
        }
        inside
    }

    /// The method `name` of the first argument.
    fn method_of(&mut self, name: &str, arguments: Vec<Val>, call: &dyn ToTokens, name_tokens: &dyn ToTokens) -> Val {
        if arguments.iter().any(|argument| matches!(argument, Val::Poison)) {
            return Val::Poison;
        }
        let integers: Option<Vec<Integer>> = arguments
            .iter()
            .map(|argument| if let Val::Integer(integer) = argument { Some(*integer) } else { None })
            .collect();
        if let Some(known) = integers.as_deref().and_then(|all| self.integer_method(name, all[0], &all[1..], call)) {
            return known;
        }
        match (&arguments[0], name, &arguments[1..]) {
            (Val::Array(items), "len", []) => {
                let usize = IntType { bits: 64, signed: false };
                Val::Integer(Integer::new(items.len() as i128, Some(usize)))
            }
            (Val::Number(number), ..) => match self.types.kind_of(*number) {
                Kind::Float => self.float_method(name, *number, &arguments, call, name_tokens),
                Kind::Integer => self.integer_method_at_run_time(name, &arguments, call, name_tokens),
                Kind::Bool => {
                    self.no_method(name, "a bool", name_tokens, "combine bools by `&&`, `||`, `!` and `if`".to_owned())
                }
            },
            (Val::Integer(_), ..) if integers.is_none() || is_listed(name, OF_BITS) => {
                self.integer_method_at_run_time(name, &arguments, call, name_tokens)
            }
            (Val::Fold(fold), ..) => {
                let message = format!("the method `{name}` of {}", fold.describe());
                self.fold_refused(name_tokens, message, format!("fold what it gives: `{}(x.{name}(..))`", fold.name()))
            }
            (Val::Field(field), ..) => {
                let field = self.kernel.fields[*field].name.clone();
                if function_of(name, Kind::Float).is_some() || is_listed(name, FLOAT_METHODS) {
                    let message = format!("the field `{field}` stands where a number is needed");
                    return self.poison(call, message, format!("read it at a point: `{field}[HERE].{name}(..)`"));
                }
                let help = match name {
                    "len" | "shape" | "size" | "dim" | "extent" | "cells" | "nx" | "ny" | "nz" => {
                        "a stencil is written for one point and doesn't know the size of the grid; where it matters, pass it \
                         as a scalar: `nx: i32`"
                            .to_owned()
                    }
                    _ => format!("a stencil reads a field at offsets, `{field}[X]`, and nothing else"),
                };
                self.no_method(name, &format!("the field `{field}`"), name_tokens, help)
            }
            (receiver, ..) => {
                let help = match receiver {
                    Val::Integer(_) => match instead(name, Kind::Integer) {
                        Some(help) => help,
                        None if is_known(name, Kind::Float) => "convert it, or write it as a float: `2.0`".to_owned(),
                        None => format!("integers have {INTEGER_METHODS}"),
                    },
                    Val::Array(_) if matches!(name, "push" | "extend" | "insert" | "pop" | "resize") => {
                        "an array has all its elements from the start: `let mut w = [0.0; 3]; w[0] = a;`".to_owned()
                    }
                    Val::Array(_) => {
                        "arrays have `len()`, and `for` runs over them: `let mut s = 0.0; for x in w { s += x; }`"
                            .to_owned()
                    }
                    Val::Tuple(_) => "its parts are `.0`, `.1`, ..".to_owned(),
                    Val::Offset(_) => "offsets are added, subtracted and multiplied by integers: `2*X - Y`".to_owned(),
                    Val::Point => "its global indices are `.i`, `.j` and `.k`".to_owned(),
                    _ => "numbers have methods".to_owned(),
                };
                let receiver = receiver.describe();
                self.no_method(name, receiver, name_tokens, help)
            }
        }
    }

    fn no_method(&mut self, name: &str, receiver: &str, tokens: &dyn ToTokens, help: String) -> Val {
        self.poison(tokens, format!("the method `{name}` of {receiver} is not accepted"), help)
    }

    fn float_method(
        &mut self,
        name: &str,
        receiver: Id<IrExpr>,
        arguments: &[Val],
        call: &dyn ToTokens,
        name_tokens: &dyn ToTokens,
    ) -> Val {
        let place = self.reporter.place(&call.to_token_stream());
        match (name, &arguments[1..]) {
            ("powi", [Val::Integer(exponent)]) => match i32::try_from(exponent.value) {
                Ok(exponent) => return Val::Number(self.power(receiver, exponent, place)),
                Err(_) => return self.poison(call, "the exponent of `powi` is no `i32`", "use `powf`"),
            },
            ("powi", [_]) => {
                let help = "the product is written out, so the exponent must be known at compile time; use `powf` for others: \
                            `x.powf(n as f64)`";
                return self.poison(name_tokens, "`powi` with an exponent that is only known at run time", help);
            }
            ("sin_cos", []) => {
                let receiver = self.named(receiver, "angle", place);
                let parts = [Function::Sin, Function::Cos].map(|function| {
                    let ty = self.types.exprs[receiver.index()];
                    Val::Number(self.expr_of(ExprKind::Call(function, vec![receiver]), ty, place))
                });
                return Val::Tuple(parts.to_vec());
            }
            _ => {}
        }
        if let Some(function) = function_of(name, Kind::Float) {
            return self.apply(function, arguments, call);
        }
        if !is_listed(name, FLOAT_METHODS) {
            let help = instead(name, Kind::Float)
                .unwrap_or_else(|| format!("floats have {}, {FLOAT_METHODS}", function_names(Kind::Float)));
            return self.no_method(name, "a float", name_tokens, help);
        }
        let Some(numbers) = self.alike(arguments, place) else { return Val::Poison };
        match self.float_composite(name, numbers[0], &numbers[1..], place) {
            Some(number) => Val::Number(number),
            None => {
                let help = match name {
                    "log" => "`x.log(b)` is the logarithm to the base b; the natural one is `x.ln()`",
                    "clamp" => "`x.clamp(low, high)` takes both bounds",
                    "powi" => "`x.powi(2)` takes the exponent",
                    "rem_euclid" | "div_euclid" => "it takes the divisor",
                    _ => "it stands behind its argument: `x.recip()`",
                };
                let message = format!("`{name}` does not take {}", counted(numbers.len() - 1, "argument"));
                self.poison(call, message, help)
            }
        }
    }

    fn integer_method_at_run_time(
        &mut self,
        name: &str,
        arguments: &[Val],
        call: &dyn ToTokens,
        name_tokens: &dyn ToTokens,
    ) -> Val {
        let place = self.reporter.place(&call.to_token_stream());
        if matches!(name, "pow" | "wrapping_pow") {
            return match arguments {
                [Val::Number(base), Val::Integer(exponent)] => match i32::try_from(exponent.value) {
                    Ok(exponent @ 0..) => Val::Number(self.power(*base, exponent, place)),
                    _ => self.poison(call, format!("the exponent of `{name}` is too large or negative"), ""),
                },
                _ => {
                    let help = "the product is written out, so the exponent must be known at compile time";
                    self.poison(name_tokens, format!("`{name}` with an exponent that is only known at run time"), help)
                }
            };
        }
        if let Some(function) = function_of(name, Kind::Integer) {
            return self.apply(function, arguments, call);
        }
        if let ("rotate_left" | "rotate_right", [receiver, bits]) = (name, arguments) {
            let Some(receiver) = self.number(receiver, None, place) else { return Val::Poison };
            let Some(bits) = self.typed(bits, Type::U32, &call.to_token_stream()) else { return Val::Poison };
            return Val::Number(self.rotated(name == "rotate_left", receiver, bits, place));
        }
        if !is_listed(name, INTEGER_METHODS) {
            let help = match is_known(name, Kind::Float) {
                true => format!("convert it: `(n as f64).{name}(..)`"),
                false => instead(name, Kind::Integer).unwrap_or_else(|| format!("integers have {INTEGER_METHODS}")),
            };
            return self.no_method(name, "an integer", name_tokens, help);
        }
        let Some(numbers) = self.alike(arguments, place) else { return Val::Poison };
        let ty = self.types.get(self.types.exprs[numbers[0].index()]);
        let signed_only = matches!(name, "signum" | "is_positive" | "is_negative" | "unsigned_abs" | "wrapping_abs");
        let unsigned_only = matches!(name, "is_multiple_of" | "is_power_of_two" | "div_ceil");
        if unsigned_only && ty.unwrap_or(Type::I32).family() != Family::Unsigned {
            let help = match name {
                "is_multiple_of" => "unsigned integers have it; write `n % 3 == 0`",
                _ => "unsigned integers have it: `n as u32`",
            };
            return self.no_method(name, "a signed integer", name_tokens, help.to_owned());
        }
        if signed_only && ty.is_some_and(|ty| ty.family() == Family::Unsigned) {
            return self.no_method(name, "an unsigned integer", name_tokens, "signed integers have it".to_owned());
        }
        match self.integer_composite(name, numbers[0], &numbers[1..], place) {
            Some(number) => Val::Number(number),
            None => self.poison(call, format!("`{name}` does not take {}", counted(numbers.len() - 1, "argument")), ""),
        }
    }

    /// Arguments as numbers of one type; `None` (reported) when they are not.
    fn alike(&mut self, arguments: &[Val], place: Place) -> Option<Vec<Id<IrExpr>>> {
        // Literals take the type of what is a number already.
        let wanted = arguments.iter().find_map(|argument| match argument {
            Val::Number(number) => Some(self.types.exprs[number.index()]),
            _ => None,
        });
        let mut numbers = Vec::new();
        for (at, argument) in arguments.iter().enumerate() {
            // Those of a method are shown themselves, those of `f64::max(a, b)` with the call.
            let tokens =
                self.argument_places.get(at).filter(|_| self.argument_places.len() == arguments.len()).cloned();
            let is_plain = matches!(argument, Val::Integer(_) | Val::Number(_));
            let place = match &tokens {
                Some(tokens) if is_plain => self.reporter.place(tokens),
                _ => place,
            };
            let number = self.number(argument, wanted, place)?;
            let (ty, wanted) = (self.types.exprs[number.index()], wanted.unwrap_or(self.types.exprs[number.index()]));
            match &tokens {
                Some(tokens) => self.converts(wanted, number, tokens, place).then_some(())?,
                None => self.unify(wanted, ty, place).then_some(())?,
            }
            numbers.push(number);
        }
        Some(numbers)
    }

    /// A function of the kernel.
    fn apply(&mut self, function: Function, arguments: &[Val], call: &dyn ToTokens) -> Val {
        let place = self.reporter.place(&call.to_token_stream());
        if arguments.len() != function.arity() {
            let (name, others) = (function.name(), function.arity() - 1);
            let message = format!("`{name}` takes {} besides its receiver", counted(others, "argument"));
            let sample = match others {
                0 => format!("write `x.{name}()`"),
                1 => format!("write `a.{name}(b)`"),
                _ => format!("write `a.{name}(b, c)`"),
            };
            return self.poison(call, message, sample);
        }
        let Some(numbers) = self.alike(arguments, place) else { return Val::Poison };
        let var = self.types.exprs[numbers[0].index()];
        let ty = match function {
            Function::ToBits | Function::FromBits | Function::CountOnes | Function::Abs => self.types.decide(var),
            _ => self.types.or_default(var),
        };
        let result = match function.result(ty) {
            Some(result) if result == ty => var,
            Some(result) => self.types.known(result),
            None => {
                let message = format!("the method `{}` of `{ty}` is not accepted", function.name());
                return self.poison(call, message, "convert it first: `x as i32`, `x as f64`");
            }
        };
        Val::Number(self.expr_of(ExprKind::Call(function, numbers), result, place))
    }

    /// `f64::sqrt(x)`, `f64::from(x)`, `i32::max(a, b)`, `f64::from_bits(b)`.
    pub(super) fn path_call(&mut self, call: &ExprCall, path: &syn::ExprPath) -> Val {
        let names: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let arguments = self.eval_all(call.args.iter());
        if arguments.iter().any(|argument| matches!(argument, Val::Poison)) {
            return Val::Poison;
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.argument_places = Vec::new();
        let (ty, name) = match names.as_slice() {
            [ty, name] => (Type::named(ty), *name),
            ["std" | "core", "cmp", name @ ("min" | "max")] => return self.method_of(name, arguments, call, path),
            _ => (None, ""),
        };
        match (ty, name, arguments.as_slice()) {
            (Some(ty), "from", [argument]) => self.converted(argument.clone(), ty, call),
            (Some(ty), "from_bits", [bits]) if ty.is_float() => {
                let from = if ty == Type::F64 { Type::U64 } else { Type::U32 };
                match self.typed(bits, from, call) {
                    Some(bits) => self.apply(Function::FromBits, &[Val::Number(bits)], call),
                    None => Val::Poison,
                }
            }
            (Some(ty), name, [receiver, rest @ ..]) => {
                let receiver = match (receiver, IntType::of(ty)) {
                    (Val::Integer(integer @ Integer { ty: None, .. }), Some(int)) => {
                        Val::Integer(Integer { ty: Some(int), ..*integer })
                    }
                    (receiver @ Val::Integer(_), Some(_)) => receiver.clone(),
                    (receiver, _) => match self.typed(receiver, ty, call) {
                        Some(number) => Val::Number(number),
                        None => return Val::Poison,
                    },
                };
                let mut all = vec![receiver];
                all.extend_from_slice(rest);
                self.method_of(name, all, call, path)
            }
            _ => {
                let message = format!("the function `{}` is not known inside the stencil", tidy(path));
                let help = match names.as_slice() {
                    ["Offset", ..] => "an offset is written as a sum of directions: `X - 2*Y`, `HERE`",
                    ["Point", ..] => "the point is a parameter, `p: Point`, with its indices `p.i`, `p.j` and `p.k`",
                    [.., "Vec" | "Box" | "String" | "Rc" | "Arc" | "HashMap" | "BTreeMap", _] => {
                        "memory can't be allocated in a stencil; use an array `[a, b, c]`"
                    }
                    _ => {
                        "define the function inside the stencil, as a closure or nested `fn`; kernels share functions in a \
                         `#[stencil] mod`, and functions of numbers are methods: `x.sqrt()`"
                    }
                };
                self.poison(path, message, help)
            }
        }
    }

    /// A value as a number of this type.
    fn typed(&mut self, value: &Val, ty: Type, tokens: &impl ToTokens) -> Option<Id<IrExpr>> {
        let place = self.reporter.place(tokens);
        let wanted = self.types.known(ty);
        let number = self.number(value, Some(wanted), place)?;
        self.unify(wanted, self.types.exprs[number.index()], place).then_some(number)
    }

    /// A call of a function that isn't there.
    pub(super) fn unknown_function(&mut self, path: &syn::ExprPath, name: &str) -> Val {
        let place = self.reporter.place(path);
        let methods = "functions of numbers are methods";
        let is_method = function_of(name, Kind::Float).is_some() || is_listed(name, FLOAT_METHODS);
        if self.closures.iter().any(|closure| closure.active.get() && closure.name == name) {
            return self.calls_itself(path, name);
        }
        let (help, note) = if matches!(
            name,
            "rand" | "random" | "random_number" | "ran" | "drand48" | "randn" | "uniform"
        ) {
            let help = "a stencil gives the same at every call: make a hash of the indices of a `p: Point` and a number that \
                        changes every step; `docs/recipes.md` has one under \"Random numbers\"";
            (help.to_owned(), None)
        } else if matches!(name, "Some" | "None" | "Ok" | "Err") {
            ("a stencil always gives a value; choose one by `if`".to_owned(), None)
        } else if let Some(written) = function_elsewhere(name) {
            (format!("in Rust it is `{written}`"), None)
        } else if is_method || is_listed(name, INTEGER_METHODS) {
            let others = match function_of(name, Kind::Float).map_or(1, Function::arity) {
                _ if name == "powi" => "2",
                3 => "b, c",
                2 => "b",
                _ => "",
            };
            (
                format!("{methods}: `{}.{name}({others})`", if others.is_empty() || others == "2" { "x" } else { "a" }),
                None,
            )
        } else if self.is_seen_by_callers(name) {
            (seen_by_callers(name), None)
        } else if let Some(near) = nearest(name, self.scope.names()) {
            (format!("there is `{near}`"), None)
        } else if let Some(near) = nearest(name, names(&[&function_names(Kind::Float), FLOAT_METHODS])) {
            (format!("{methods}, and there is `x.{near}(..)`"), None)
        } else {
            (
                format!(
                    "define `{name}` inside the stencil, as a closure or nested `fn`; kernels share functions in a \
                     `#[stencil] mod`"
                ),
                Some(
                    "a stencil is compiled for other devices from its own text, so it can't see functions outside of it",
                ),
            )
        };
        let message = format!("the function `{name}` is not known inside the stencil");
        let mut diagnostic = crate::Diagnostic::new(place, message).help(help);
        diagnostic.note = note.map(str::to_owned);
        self.reporter.report(diagnostic);
        Val::Poison
    }

    /// Whether a callee is written as a path to something in a module or type.
    pub(super) fn is_path_call(callee: &Expr) -> Option<&syn::ExprPath> {
        match callee {
            Expr::Path(path) if path.path.segments.len() > 1 => Some(path),
            _ => None,
        }
    }
}

/// The range of `(a..b).contains(..)`.
fn range_of(receiver: &Expr) -> Option<&syn::ExprRange> {
    match receiver {
        Expr::Paren(inner) => range_of(&inner.expr),
        Expr::Group(inner) => range_of(&inner.expr),
        Expr::Range(range) => Some(range),
        _ => None,
    }
}

/// The function of this name that takes such numbers as a method.
fn function_of(name: &str, kind: Kind) -> Option<Function> {
    let takes = |function: Function| {
        let fits = |ty: &Type| match kind {
            Kind::Float => ty.is_float(),
            Kind::Integer => ty.is_integer(),
            Kind::Bool => *ty == Type::Bool,
        };
        function != Function::FromBits
            && Type::ALL.iter().filter(|ty| fits(ty)).any(|ty| function.result(*ty).is_some())
    };
    Function::ALL.into_iter().find(|function| function.name() == name && takes(*function))
}

/// `sqrt`, `abs`, ..
fn function_names(kind: Kind) -> String {
    let all = Function::ALL.into_iter().filter(|function| function_of(function.name(), kind).is_some());
    all.map(|function| format!("`{}`", function.name())).collect::<Vec<_>>().join(", ")
}

/// The names in a list for messages.
fn names<'l>(lists: &[&'l str]) -> Vec<&'l str> {
    lists.iter().flat_map(|list| list.split(", ")).map(|listed| listed.trim_matches('`')).collect()
}

fn is_listed(name: &str, list: &str) -> bool {
    names(&[list]).contains(&name)
}

/// Whether numbers of a kind have such a method.
fn is_known(name: &str, kind: Kind) -> bool {
    let list = if kind == Kind::Float { FLOAT_METHODS } else { INTEGER_METHODS };
    function_of(name, kind).is_some() || is_listed(name, list)
}

/// What to write instead of a method that numbers don't have, where that can be told.
fn instead(name: &str, kind: Kind) -> Option<String> {
    let known = match (name, kind) {
        ("exp_m1", _) => "write `x.exp() - 1.0`",
        ("ln_1p", _) => "write `(1.0 + x).ln()`",
        ("pow", Kind::Float) => "floats have `powi` and `powf`",
        ("clone" | "copied" | "cloned" | "to_owned", _) => "numbers are copied by themselves: leave it out",
        ("into" | "try_into", _) => "name the type: `x as f64`",
        ("unwrap" | "expect" | "unwrap_or" | "unwrap_or_default", _) => "a number is always there: leave it out",
        ("to_string" | "display", _) => "a stencil knows numbers only, no text",
        ("as_f64" | "to_f64" | "f64", _) => "write `x as f64`",
        ("checked_add" | "checked_sub" | "checked_mul" | "saturating_mul", Kind::Integer) => {
            "integers wrap around in a stencil: `wrapping_add` says so; compare before, use a larger type, or stop at the \
             limits by `saturating_add` and `saturating_sub`"
        }
        _ => {
            let list = if kind == Kind::Float { FLOAT_METHODS } else { INTEGER_METHODS };
            let functions = function_names(kind);
            return match function_elsewhere(name).filter(|_| !is_known(name, kind)) {
                Some(written) => Some(format!("in Rust it is `{written}`")),
                None => nearest(name, names(&[&functions, list])).map(|near| format!("there is `{near}`")),
            };
        }
    };
    Some(known.to_owned())
}
