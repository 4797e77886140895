//! What Rust has and the language has not.

use quote::ToTokens;
use syn::Expr;

use super::Front;
use super::report::tidy;
use super::scope::Val;
use crate::diagnostic::Diagnostic;

impl Front {
    /// Constructs that the language does not have, with what to write instead.
    pub(super) fn refused(&mut self, expr: &Expr) -> Val {
        let unrolled = "loops are unrolled: write `for` over a range whose bounds are known, `for i in 0..4 { .. }`; an \
                        iteration to convergence is a step, run until a scalar says so";
        let branch = "write `if a < b { .. } else { .. }`";
        let (token, message, help): (&dyn ToTokens, &str, &str) = match expr {
            Expr::While(repeat) => (&repeat.while_token, "`while` is not part of the stencil language", unrolled),
            Expr::Loop(repeat) => (&repeat.loop_token, "`loop` is not part of the stencil language", unrolled),
            Expr::Let(pattern) => {
                (&pattern.let_token, "`let` in a condition is not part of the stencil language", branch)
            }
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
            Expr::Struct(made) if made.path.is_ident("Offset") => (
                &made.path,
                "an offset is not written as a struct",
                "write it as a sum of directions: `X - 2*Y`, and `HERE` for the point itself",
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
                "use arithmetic, `let`, `if`, `match`, `for`, closures and nested functions",
            ),
        };
        let place = self.reporter.place(&token.to_token_stream());
        self.reporter.report(Diagnostic::new(place, message).help(help));
        Val::Poison
    }

    pub(super) fn macro_call(&mut self, call: &syn::Macro) -> Val {
        let name = tidy(&call.path);
        let help = match name.as_str() {
            "println" | "print" | "eprintln" | "eprint" | "dbg" | "write" | "writeln" => {
                "a stencil has no output: return the value into a field and look at it after the step"
            }
            "assert" | "assert_eq" | "assert_ne" | "debug_assert" | "panic" | "unreachable" | "todo"
            | "unimplemented" => "a stencil can't fail; check the fields before or after the step",
            "vec" => "memory can't be allocated in a stencil; use an array `[a, b, c]`",
            "format" | "concat" | "stringify" => "a stencil knows numbers only, no text",
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
}
