//! The function of a native kernel that goes through the rows of a box, a piece at a time.

use std::collections::BTreeSet;

use super::{LINE_BYTES, Native, stored, zero};
use crate::emit::text::address::{Axes, ROWS, Stride, WHOLE, along, letters, stride};
use crate::emit::text::fold::row_type;
use crate::ir::{Axis, Output, Role, Type};

impl Native<'_> {
    /// The text of the function.
    pub(super) fn rows(&self) -> String {
        let mut text = String::from(
            "\n/// All rows of a box.\n#[inline(always)]\nunsafe fn rows(args: &BoxArgs<'_>) {\n\
             \x20   let (sy, sz, [nx, ny, nz], parity) = (args.sy, args.sz, args.size, args.parity);\n",
        );
        let addressed = self.addressed();
        if addressed.contains(&ROWS) {
            text.push_str("    let rows_of_a_plane = sz.checked_div(sy).unwrap_or(0);\n");
        }
        text.push_str(
            "    // Compilers that know how few points a piece has take narrower vectors.\n\
             \x20   let piece = std::hint::black_box(PIECE);\n",
        );
        text.push_str(&self.arguments());
        text.push_str(
            "    for z in args.lo[2]..args.lo[2] + nz as isize {\n\
             \x20       for y in args.lo[1]..args.lo[1] + ny as isize {\n",
        );
        for axes in &addressed {
            text.push_str(&format!("            let {} = {};\n", start(*axes), first_cell(*axes)));
        }
        text.push_str(
            "            // The first point that is updated, if it is every second one.\n\
             \x20           let first = (args.lo[0] + y + z + parity as isize) as usize & 1;\n",
        );
        if !self.prefetches().is_empty() {
            text.push_str(
                "            // Cells to where the box ends in this plane, and from there to where it begins in the next.\n\
                 \x20           let left = (args.lo[1] + ny as isize - y) * sy;\n\
                 \x20           let jump = sz - ny as isize * sy;\n",
            );
        }
        for axis in &self.axes {
            let (letter, first) = match axis {
                Axis::X => ("x", "args.lo[0]"),
                Axis::Y => ("y", "y"),
                Axis::Z => ("z", "z"),
            };
            let number = *axis as usize;
            text.push_str(&format!(
                "            let global_{letter} = args.global[{number}].wrapping_add({first} as i32);\n"
            ));
        }
        text.push_str(
            "            // SAFETY: whoever calls promises that the box and its footprints lie in the buffers.\n\
             \x20           unsafe {\n",
        );
        text.push_str(&self.row());
        text.push_str("            }\n        }\n    }\n}\n");
        text
    }

    /// The axes of all that is read or written.
    fn addressed(&self) -> BTreeSet<Axes> {
        let fields = self.read.iter().map(|(field, _)| self.kernel.fields[*field].axes);
        fields.chain(self.kernel.outputs.iter().map(extent)).collect()
    }

    /// Names the pointers and scalars among the arguments.
    fn arguments(&self) -> String {
        let kernel = self.kernel;
        let mut text = String::new();
        for (id, output) in kernel.outputs.enumerate() {
            let (index, ty) = (id.index(), stored(row_type(output)));
            text.push_str(&format!("    let output_{index} = args.outputs[{index}].cast::<{ty}>();\n"));
            text.push_str(&format!("    let mut piece_{index} = Piece([{}; PIECE]);\n", zero(stored(output.ty))));
        }
        for (field, _) in &self.read {
            let (index, ty) = (field.index(), stored(kernel.fields[*field].ty));
            text.push_str(&format!("    let field_{index} = args.fields[{index}].cast::<{ty}>();\n"));
        }
        for (id, param) in kernel.params.enumerate() {
            let index = id.index();
            let value = match param.ty {
                Type::F64 => format!("f64::from_bits(args.scalars[{index}])"),
                Type::F32 => format!("f32::from_bits(args.scalars[{index}] as u32)"),
                Type::Bool => format!("args.scalars[{index}] != 0"),
                Type::U64 => format!("args.scalars[{index}]"),
                ty @ (Type::I64 | Type::I32 | Type::I8 | Type::U32 | Type::U8) => {
                    format!("args.scalars[{index}] as {ty}")
                }
            };
            text.push_str(&format!("    let scalar_{index} = {value};\n"));
        }
        text
    }

    /// What is done with a row.
    fn row(&self) -> String {
        let kernel = self.kernel;
        let mut text = String::new();
        for (id, output) in kernel.outputs.enumerate() {
            let (index, row) = (id.index(), start(extent(output)));
            text.push_str(&format!("                let output_{index} = output_{index}.offset({row});\n"));
        }
        for (field, _) in &self.read {
            let (index, row) = (field.index(), start(kernel.fields[*field].axes));
            text.push_str(&format!("                let field_{index} = field_{index}.offset({row});\n"));
        }
        for (index, ty, name) in self.folds() {
            text.push_str(&format!(
                "                let mut fold_{index} = <{name}<{ty}> as Accumulator<{ty}>>::new();\n"
            ));
        }
        text.push_str("                let mut x = 0;\n");
        let head = match self.aligned() {
            Some((pointer, _)) => format!("{pointer}.align_offset({LINE_BYTES}) % LANES"),
            None => "0".to_owned(),
        };
        text.push_str(&format!(
            "                // The first piece ends at a cache line, so that all others are whole lines.\n\
             \x20               let mut head = {head};\n\
             \x20               let mut count = if head == 0 {{ piece }} else {{ piece - LANES + head }};\n\
             \x20               while x < nx {{\n\
             \x20                   // No piece is shorter than a line, unless the row is.\n\
             \x20                   if nx - x < count + LANES {{\n\
             \x20                       count = if nx - x > piece {{ count - LANES }} else {{ nx - x }};\n\
             \x20                   }}\n",
        ));
        text.push_str(&self.prefetches());
        text.push_str(&self.call());
        text.push_str(&self.stores());
        text.push_str(
            "                    x += count;\n\
             \x20                   (head, count) = (0, piece);\n\
             \x20               }\n",
        );
        for (index, ty, _) in self.folds() {
            text.push_str(&format!("                *output_{index} = Accumulator::<{ty}>::row(&fold_{index});\n"));
        }
        text
    }

    /// The results that are folded: number, type of the values and what folds them.
    fn folds(&self) -> impl Iterator<Item = (usize, Type, &'static str)> {
        self.kernel.outputs.enumerate().filter_map(|(id, output)| {
            let name = match output.role {
                Role::Value => return None,
                Role::Sum => "Total",
                Role::Max => "Largest",
                Role::Min => "Least",
            };
            Some((id.index(), output.ty, name))
        })
    }

    /// The pointer to the row that decides where pieces end, and the bytes of its cells: of the widest ones the first.
    pub(super) fn aligned(&self) -> Option<(String, usize)> {
        let fields = self.read.iter().filter(|(field, _)| self.kernel.fields[*field].axes == WHOLE);
        let fields =
            fields.map(|(field, _)| (format!("field_{}", field.index()), self.kernel.fields[*field].ty.bytes()));
        let values = self.kernel.outputs.enumerate().filter(|(_, output)| output.role == Role::Value);
        let values = values.map(|(id, output)| (format!("output_{}", id.index()), output.ty.bytes()));
        let widest = |rows: Vec<(String, usize)>| rows.into_iter().rev().max_by_key(|(_, bytes)| *bytes);
        widest(values.collect()).or_else(|| widest(fields.collect()))
    }

    /// Computes a piece: whole lines where they are lines of memory too, and what is left before and behind them as
    /// lines that overlap these. So the loop over the points of lines leaves nothing to a slower one.
    fn call(&self) -> String {
        let points = |first: &str, part: &str| format!("points({});\n", self.arguments_of_points(first, part));
        format!(
            "                    if count < LANES {{\n\
             \x20                       {}\
             \x20                   }} else {{\n\
             \x20                       let (mut first, mut lines) = (0, if head == 0 {{ count / LANES }} else {{ 1 }});\n\
             \x20                       loop {{\n\
             \x20                           {}\
             \x20                           let done = first + lines * LANES;\n\
             \x20                           if done >= count {{\n\
             \x20                               break;\n\
             \x20                           }}\n\
             \x20                           first = if first == 0 && head != 0 {{ head }} else {{ done }};\n\
             \x20                           lines = (count - first) / LANES;\n\
             \x20                           if lines == 0 {{\n\
             \x20                               (first, lines) = (count - LANES, 1);\n\
             \x20                           }}\n\
             \x20                       }}\n\
             \x20                   }}\n",
            points("x", "..count"),
            points("x + first", "first..first + lines * LANES"),
        )
    }

    /// What the function for points is given for those of a piece that are number `part`, from `first` in the row on.
    fn arguments_of_points(&self, first: &str, part: &str) -> String {
        let kernel = self.kernel;
        let fields = self.read.iter().map(|(field, _)| {
            let step = if kernel.fields[*field].axes[0] { format!(".add({first})") } else { String::new() };
            format!("field_{}{step}", field.index())
        });
        let scalars = (0..kernel.params.len()).map(|index| format!("scalar_{index}"));
        let strides = ["sy", "sz"].into_iter().chain(self.counts_rows().then_some("rows_of_a_plane"));
        let global = self.axes.iter().map(|axis| match axis {
            Axis::X => format!("global_x.wrapping_add(({first}) as i32)"),
            Axis::Y => "global_y".to_owned(),
            Axis::Z => "global_z".to_owned(),
        });
        let pieces = (0..kernel.outputs.len()).map(|index| format!("piece_{index}.0.get_unchecked_mut({part})"));
        let strides = strides.map(str::to_owned);
        let arguments: Vec<String> = fields.chain(scalars).chain(strides).chain(global).chain(pieces).collect();
        arguments.join(", ")
    }

    /// Does with a piece what its results are for.
    fn stores(&self) -> String {
        let (mut all, mut alternate) = (String::new(), String::new());
        for (id, output) in self.kernel.outputs.enumerate() {
            let n = id.index();
            let indent = " ".repeat(24);
            if output.role == Role::Value {
                let copied = format!("(output_{n}.add(x), piece_{n}.0.as_ptr(), count");
                all.push_str(&format!("{indent}store{copied}, args.stream);\n"));
                alternate.push_str(&format!("{indent}store_alternate{copied}, first);\n"));
            } else {
                let added = format!("(args.lo[0] + x as isize, piece_{n}.0.get_unchecked(..count)");
                all.push_str(&format!("{indent}fold_{n}.add_all{added});\n"));
                alternate.push_str(&format!("{indent}fold_{n}.add_alternate{added}, first);\n"));
            }
        }
        format!(
            "                    if parity < 0 {{\n{all}\
             \x20                   }} else {{\n\
             \x20                       let first = (first + x) & 1;\n{alternate}\
             \x20                   }}\n"
        )
    }

    /// Asks for each cache line of the piece in every field and result, a distance ahead in the row that is needed last,
    /// or in the next plane where the box ends before. What lacks an axis is small or stays in the caches.
    fn prefetches(&self) -> String {
        let kernel = self.kernel;
        let values = kernel.outputs.enumerate().filter(|(_, output)| output.role == Role::Value);
        let outputs: Vec<(usize, usize)> = values.map(|(id, output)| (id.index(), output.ty.bytes())).collect();
        let mut lines = String::new();
        // Cells of one size have their lines at the same points.
        for bytes in [8, 4, 1] {
            let whole = self.read.iter().filter(|(field, _)| kernel.fields[*field].axes == WHOLE);
            let fields = whole.filter(|(field, _)| kernel.fields[*field].ty.bytes() == bytes);
            let fields: Vec<String> = fields
                .map(|(field, offset)| {
                    let far = match offset.along(Axis::Z) {
                        0 => String::new(),
                        1 => " + sz".to_owned(),
                        planes => format!(" + {planes} * sz"),
                    };
                    format!("prefetch(field_{}.wrapping_offset(soon{far}));\n", field.index())
                })
                .collect();
            let outputs = outputs.iter().filter(|(_, size)| *size == bytes);
            let outputs: Vec<String> =
                outputs.map(|(index, _)| format!("prefetch(output_{index}.wrapping_offset(soon));\n")).collect();
            if fields.is_empty() && outputs.is_empty() {
                continue;
            }
            lines.push_str(&format!(
                "                        for line in (x..x + count).step_by(LINE / {bytes}) {{\n\
                 \x20                           let mut soon = line as isize + args.ahead;\n\
                 \x20                           if soon >= left {{\n\
                 \x20                               soon += jump;\n\
                 \x20                           }}\n"
            ));
            for field in fields {
                lines.push_str(&format!("                            {field}"));
            }
            if !outputs.is_empty() {
                lines.push_str("                            if !args.stream {\n");
                for output in outputs {
                    lines.push_str(&format!("                                {output}"));
                }
                lines.push_str("                            }\n");
            }
            lines.push_str("                        }\n");
        }
        if lines.is_empty() {
            return lines;
        }
        format!("                    if args.ahead != 0 {{\n{lines}                    }}\n")
    }
}

/// Along which axes a result extends.
fn extent(output: &Output) -> Axes {
    match output.role {
        Role::Value => WHOLE,
        Role::Sum | Role::Max | Role::Min => ROWS,
    }
}

/// The name of the index at which a row begins.
fn start(axes: Axes) -> String {
    if axes == WHOLE { "row".to_owned() } else { format!("row_{}", letters(axes)) }
}

/// The index at which a row begins.
fn first_cell(axes: Axes) -> String {
    let terms = along(axes).map(|axis| {
        let index = match axis {
            Axis::X => "args.lo[0]",
            Axis::Y => "y",
            Axis::Z => "z",
        };
        match stride(axes, axis) {
            Stride::Cell => index.to_owned(),
            Stride::Row => format!("{index} * sy"),
            Stride::Plane => format!("{index} * sz"),
            Stride::Rows => format!("{index} * rows_of_a_plane"),
        }
    });
    terms.collect::<Vec<_>>().join(" + ")
}
