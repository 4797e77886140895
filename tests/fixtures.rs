//! The kernels that the tests compile: every `#[stencil]` function of `kernels/*.rs`.

use std::fs;
use std::path::{Path, PathBuf};

use polyhalo_codegen::Verified;
use polyhalo_codegen::emit::Emitter;
use polyhalo_codegen::front::kernels_of_file;
use polyhalo_codegen::ir::{Binary, Expr, ExprKind, Function, Id, Type};

/// One kernel of one file.
pub struct Fixture {
    /// The kernel's name; no two fixtures share one.
    pub name: String,
    /// The kernel.
    pub kernel: Verified,
}

/// The folder of this package.
pub fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every kernel of every file, ordered by file, then as written.
///
/// # Panics
/// When a file can't be read or one of its kernels is refused: both are mistakes in the fixtures.
pub fn fixtures() -> Vec<Fixture> {
    let kernels = folder().join("kernels");
    let entries = fs::read_dir(&kernels).unwrap_or_else(|error| panic!("{}: {error}", kernels.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("the folder is readable").path()).collect();
    files.sort();
    let fixtures: Vec<Fixture> = files.iter().flat_map(|file| kernels_of(file)).collect();
    for (index, fixture) in fixtures.iter().enumerate() {
        let namesake = fixtures[..index].iter().find(|earlier| earlier.name == fixture.name);
        assert!(namesake.is_none(), "two kernels are called `{}`", fixture.name);
    }
    fixtures
}

/// Every kernel of a file, as written.
///
/// # Panics
/// As [`fixtures`].
pub fn kernels_of(file: &Path) -> Vec<Fixture> {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{name}: {error}"));
    let source = kernels_of_file(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(!source.kernels.is_empty(), "{name} holds no kernel");
    let compiled = source.kernels.iter().map(|kernel| {
        let mut compiled = kernel
            .compile()
            .unwrap_or_else(|refused| panic!("{name}: `{}` is refused: {:#?}", kernel.name, refused.diagnostics));
        compiled.name_file(&name);
        Fixture { name: compiled.kernel.name.clone(), kernel: compiled.kernel }
    });
    compiled.collect()
}

impl Fixture {
    /// The code for a target as text; a module is disassembled.
    pub fn text(&self, emitter: &dyn Emitter) -> String {
        emitter.emit(&self.kernel).readable()
    }

    /// Whether any value is an f64.
    pub fn has_doubles(&self) -> bool {
        let kernel = &self.kernel;
        let cells = kernel.fields.iter().map(|field| field.ty).chain(kernel.outputs.iter().map(|output| output.ty));
        let scalars = kernel.params.iter().map(|param| param.ty);
        cells.chain(scalars).chain(kernel.exprs.iter().map(|expr| expr.ty)).any(|ty| ty == Type::F64)
    }

    /// Whether a cell or a value takes one byte.
    pub fn has_bytes(&self) -> bool {
        let kernel = &self.kernel;
        let cells = kernel.fields.iter().map(|field| field.ty).chain(kernel.outputs.iter().map(|output| output.ty));
        let values = kernel.exprs.iter().map(|expr| expr.ty).filter(|ty| *ty != Type::Bool);
        cells.chain(values).any(|ty| ty.bytes() == 1)
    }

    /// Whether there are fused multiply-adds in the machine code even where none may be made of a product and a sum: the
    /// user wrote one, or a division or square root, which is computed by some.
    pub fn needs_fused_operations(&self) -> bool {
        let exprs = &self.kernel.exprs;
        let known = |id: Id<Expr>| matches!(exprs[id].kind, ExprKind::Literal(_));
        exprs.iter().any(|expr| match &expr.kind {
            ExprKind::Call(function, _) => matches!(function, Function::Sqrt | Function::MulAdd),
            // Compilers divide literals themselves.
            ExprKind::Binary(op, a, b) => *op == Binary::Div && !(known(*a) && known(*b)),
            ExprKind::Literal(_) | ExprKind::Param(_) | ExprKind::Local(_) | ExprKind::Load { .. } => false,
            ExprKind::Unary(..) | ExprKind::Cast(_) | ExprKind::Index(_) | ExprKind::Element { .. } => false,
        })
    }
}
