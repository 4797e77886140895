//! A kernel with fields to run on, and what must come out.

use std::fmt;

use polyhalo_codegen::emit::text::ir::show;
use polyhalo_codegen::interpret::{Point, interpret};
use polyhalo_codegen::ir::{self, Axis, Field, Id, Offset, Param, Type, Value};
use polyhalo_codegen::random::Random;
use polyhalo_codegen::{Analysis, Verified, analyse};
use polyhalo_runtime::geometry::Box3;
use polyhalo_runtime::kernel::{OutputDesc, Role, ScalarType};
use polyhalo_runtime::layout::{Layout, ROWS, Strides, WHOLE};
use polyhalo_runtime::reduction::words;

/// One run of a kernel.
pub(super) struct Case<'k> {
    pub(super) kernel: &'k Verified,
    /// The points that are computed.
    pub(super) range: Box3,
    /// Which of them: all, or those whose indices add up to an even or an odd number.
    pub(super) parity: Option<u8>,
    /// From a point to where fields are read for it.
    pub(super) shift: [i64; 3],
    pub(super) strides: Strides,
    /// All fields and results before the run.
    pub(super) memory: Vec<Values>,
    /// For each field of the kernel the memory that it gets: two may get the same.
    pub(super) of_field: Vec<usize>,
    /// For each result the memory that it goes to, which may be that of a field.
    pub(super) of_output: Vec<usize>,
    pub(super) scalars: Vec<Value>,
    /// For each element of each memory what must be there after the run, if it is written.
    expected: Vec<Vec<Option<Written>>>,
}

/// The point that writes an element, and what it writes.
type Written = ([i64; 3], Value);

/// A field in memory, padding included.
pub(super) struct Values {
    pub(super) layout: Layout,
    pub(super) cells: Vec<Value>,
}

/// The boxes on which each kernel is run.
const CASES: u64 = 4;

/// All cases of a kernel.
pub(super) fn cases(kernel: &Verified) -> Vec<Case<'_>> {
    // FNV-1a over the text: the same kernel meets the same numbers wherever it comes from.
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let seed = show(kernel).bytes().fold(0xcbf2_9ce4_8422_2325, hash);
    (0..CASES).map(|number| Case::new(kernel, &mut Random::new(seed.wrapping_add(number)))).collect()
}

impl<'k> Case<'k> {
    fn new(kernel: &'k Verified, random: &mut Random) -> Self {
        let (range, analysis) = (range(random), analyse(kernel));
        let parity = random.pick(&[None, None, Some(0), Some(1)]);
        let shift = shift(&range, random);
        let of_field = shared(kernel, random);
        let fields = stored(&analysis, &of_field, &range.shifted(shift), random);
        let in_place = in_place(kernel, &analysis, &of_field, (&range, parity, shift), random);
        // The memories of the fields come first, then those of the other results.
        let mut memories: Vec<(Type, [bool; 3], Box3)> =
            kernel.fields.iter().zip(fields).map(|(field, cells)| (field.ty, field.axes, cells)).collect();
        let mut of_output = Vec::new();
        for (output, place) in kernel.outputs.iter().map(description).zip(in_place) {
            of_output.push(place.unwrap_or(memories.len()));
            if let Some(place) = place {
                memories[place].2 = memories[place].2.hull(&range);
            } else {
                let axes = if output.role == Role::Value { WHOLE } else { ROWS };
                memories.push((ir_type(output.stored()), axes, grown(range, random)));
            }
        }
        let most = |axis: usize| memories.iter().map(|(.., cells)| cells.size()[axis]).max().unwrap_or(1);
        let row = most(0) + random.below(12);
        let strides = Strides { row, plane: row * (most(1) + random.below(3)) };
        let mut values = |(ty, axes, cells): (Type, [bool; 3], Box3)| {
            let layout = Layout::new(scalar_type(ty), axes, cells, strides).expect("a few cells fit");
            Values { layout, cells: (0..layout.bytes / ty.bytes()).map(|_| random.value(ty)).collect() }
        };
        let memory: Vec<Values> = memories.into_iter().map(&mut values).collect();
        let expected = memory.iter().map(|values| vec![None; values.cells.len()]).collect();
        let scalars = kernel.params.iter().map(|param| random.value(param.ty)).collect();
        let mut case = Case { kernel, range, parity, shift, strides, memory, of_field, of_output, scalars, expected };
        case.compute();
        case
    }

    /// Finds out what must be in the results.
    fn compute(&mut self) {
        let outputs: Vec<OutputDesc> = self.kernel.outputs.iter().map(description).collect();
        let mut expected = std::mem::take(&mut self.expected);
        let mut expect = |number: usize, cell: [i64; 3], value: Value| {
            let memory = self.of_output[number];
            let index = self.memory[memory].layout.index(cell).expect("results hold the box");
            expected[memory][index] = Some((cell, value));
        };
        let first = self.range.lo[0];
        for [_, y, z] in points(&Box3 { hi: [first + 1, self.range.hi[1], self.range.hi[2]], ..self.range }) {
            let mut folded: Vec<_> = outputs.iter().map(|output| words(output.role, output.ty)).collect();
            let row = (first..self.range.hi[0]).map(|x| [x, y, z]);
            for cell in row.filter(|cell| self.is_updated(*cell)) {
                let results = interpret(self.kernel, &At { case: self, cell });
                for (number, value) in results.into_iter().enumerate() {
                    match &mut folded[number] {
                        Some(folded) => folded.add(cell[0], value.bits()),
                        None => expect(number, cell, value),
                    }
                }
            }
            for (number, (output, folded)) in outputs.iter().zip(&folded).enumerate() {
                if let Some(folded) = folded {
                    expect(number, [first, y, z], Value::from_bits(ir_type(output.stored()), folded.row()));
                }
            }
        }
        self.expected = expected;
    }

    fn is_updated(&self, cell: [i64; 3]) -> bool {
        self.parity.is_none_or(|parity| cell.iter().sum::<i64>() & 1 == i64::from(parity))
    }

    /// The field that field number `number` of the kernel gets.
    fn field(&self, number: usize) -> &Values {
        &self.memory[self.of_field[number]]
    }

    /// Whether a result goes to the memory of a field.
    pub(super) fn is_in_place(&self) -> bool {
        self.of_output.iter().any(|memory| self.of_field.contains(memory))
    }

    /// The bits of the scalars.
    pub(super) fn scalar_bits(&self) -> Vec<u64> {
        self.scalars.iter().map(|scalar| scalar.bits()).collect()
    }

    /// What is wrong with the bytes that are in all memories after a run that computes those points of the box at least
    /// that are `certain`.
    pub(super) fn difference(&self, found: &[Vec<u8>], certain: impl Fn([i64; 3]) -> bool) -> Option<String> {
        assert_eq!(found.len(), self.memory.len(), "the bytes of each memory");
        let wrong = |number: usize| {
            let (Values { layout, cells }, expected) = (&self.memory[number], &self.expected[number]);
            let found = found[number].chunks_exact(layout.ty.bytes());
            assert_eq!(found.len(), expected.len(), "a value per element");
            found.enumerate().find_map(|(index, bytes)| {
                let old = cells[index];
                let found = value(old.ty(), bytes);
                match expected[index] {
                    None if found == old => None,
                    None => Some(format!("element {index} of memory {number} isn't updated and became {found:?}")),
                    Some((_, value)) if alike(found, value) => None,
                    Some((cell, _)) if found == old && !certain(cell) => None,
                    Some((cell, value)) => Some(format!("memory {number} at {cell:?} is {found:?}, not {value:?}")),
                }
            })
        };
        (0..found.len()).find_map(wrong)
    }
}

/// The conditions of a failure.
impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Strides { row, plane } = self.strides;
        let Case { range, parity, shift, scalars, of_field, of_output, .. } = self;
        write!(
            f,
            "over {range}, parity {parity:?}, shift {shift:?}, strides {row} and {plane}, scalars {scalars:?}, fields in \
             memories {of_field:?}, results in {of_output:?}, of\n{}",
            show(self.kernel)
        )
    }
}

impl Values {
    /// The bytes in memory.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.cells.iter().flat_map(|cell| cell.bits().to_le_bytes().into_iter().take(cell.ty().bytes())).collect()
    }
}

/// The global index of local cell (0, 0, 0) in every case.
pub(super) const GLOBAL: [i32; 3] = [5, -3, 70_000];

/// What the interpreter sees.
struct At<'c, 'k> {
    case: &'c Case<'k>,
    cell: [i64; 3],
}

impl Point for At<'_, '_> {
    fn load(&self, field: Id<Field>, offset: Offset) -> Value {
        let Values { layout, cells } = self.case.field(field.index());
        let cell = [0, 1, 2].map(|axis| self.cell[axis] + self.case.shift[axis] + i64::from(offset.0[axis]));
        cells[layout.index(cell).expect("fields hold the footprint")]
    }

    fn param(&self, param: Id<Param>) -> Value {
        self.case.scalars[param.index()]
    }

    fn index(&self, axis: Axis) -> i32 {
        let local = i32::try_from(self.cell[axis as usize]).expect("grids of tests are small");
        GLOBAL[axis as usize] + local
    }
}

/// Every not-a-number is alike: their bits are nobody's promise.
fn alike(a: Value, b: Value) -> bool {
    match (a, b) {
        (Value::F64(a), Value::F64(b)) if a.is_nan() => b.is_nan(),
        (Value::F32(a), Value::F32(b)) if a.is_nan() => b.is_nan(),
        _ => a == b,
    }
}

/// The value in little-endian bytes.
fn value(ty: Type, bytes: &[u8]) -> Value {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    Value::from_bits(ty, u64::from_le_bytes(word))
}

/// The runtime's word for a type.
pub(super) fn scalar_type(ty: Type) -> ScalarType {
    match ty {
        Type::F64 => ScalarType::F64,
        Type::F32 => ScalarType::F32,
        Type::I64 => ScalarType::I64,
        Type::I32 => ScalarType::I32,
        Type::I8 => ScalarType::I8,
        Type::U64 => ScalarType::U64,
        Type::U32 => ScalarType::U32,
        Type::U8 => ScalarType::U8,
        Type::Bool => ScalarType::Bool,
    }
}

/// The language's word for a type.
fn ir_type(ty: ScalarType) -> Type {
    let same = Type::ALL.into_iter().find(|known| scalar_type(*known) == ty);
    same.expect("the runtime has no other types")
}

/// A result as the macro describes it.
pub(super) fn description(output: &ir::Output) -> OutputDesc {
    let role = match output.role {
        ir::Role::Value => Role::Value,
        ir::Role::Sum => Role::Sum,
        ir::Role::Max => Role::Max,
        ir::Role::Min => Role::Min,
    };
    OutputDesc { ty: scalar_type(output.ty), role }
}

fn points(range: &Box3) -> impl Iterator<Item = [i64; 3]> + use<> {
    let Box3 { lo, hi } = *range;
    (lo[2]..hi[2]).flat_map(move |z| (lo[1]..hi[1]).flat_map(move |y| (lo[0]..hi[0]).map(move |x| [x, y, z])))
}

/// Rows shorter and longer than vectors and cache lines, beginning anywhere; never more planes than rows, nor more rows
/// than points in a row.
fn range(random: &mut Random) -> Box3 {
    let nx = 1 + random.below(70);
    let ny = 1 + random.below(nx.min(5));
    let size = [nx, ny, 1 + random.below(ny.min(3))];
    let lo = size.map(|_| random.below(9) as i64);
    Box3 { lo, hi: [0, 1, 2].map(|axis| lo[axis] + size[axis] as i64) }
}

/// Where fields are read: mostly where the kernel says, else a few cells from there or beyond the range.
fn shift(range: &Box3, random: &mut Random) -> [i64; 3] {
    let mut near = [(); 3].map(|()| random.below(5) as i64 - 2);
    match random.below(6) {
        0 => near,
        1 => {
            let axis = random.below(3);
            let beyond = range.size()[axis] as i64 + 2 + random.below(4) as i64;
            near[axis] = if random.once_in(2) { beyond } else { -beyond };
            near
        }
        _ => [0; 3],
    }
}

/// Which field each one gets: mostly one of its own.
fn shared(kernel: &Verified, random: &mut Random) -> Vec<usize> {
    let types: Vec<(Type, [bool; 3])> = kernel.fields.iter().map(|field| (field.ty, field.axes)).collect();
    let own = |number: usize| {
        let other = random.below(number + 1);
        if types[other] == types[number] && random.once_in(4) { other } else { number }
    };
    (0..types.len()).map(own).collect()
}

/// For each result perhaps the memory of a field to which it may go: no point reads there what another one writes.
fn in_place(
    kernel: &Verified,
    analysis: &Analysis,
    of_field: &[usize],
    (range, parity, shift): (&Box3, Option<u8>, [i64; 3]),
    random: &mut Random,
) -> Vec<Option<usize>> {
    let mut taken = Vec::new();
    let may_be_written = |reads: &[&Offset]| {
        let left_out = |offset: &Offset| parity.is_some() && offset.0.iter().sum::<i32>() & 1 == 1;
        let own = |offset: &&Offset| shift == [0; 3] && (**offset == Offset::HERE || left_out(offset));
        let moved = |offset: &&Offset| range.shifted(shift).shifted(offset.0.map(i64::from));
        let read = reads.iter().map(moved).fold(Box3::EMPTY, |all, part| all.hull(&part));
        reads.iter().all(own) || read.intersection(range).is_empty()
    };
    let mut place = |output: &ir::Output| {
        let fits = |memory: &usize| {
            let field = &kernel.fields[Id::new(*memory)];
            let readers = analysis.footprints.iter().zip(of_field).filter(|(_, owner)| *owner == memory);
            let reads: Vec<&Offset> = readers.flat_map(|(footprint, _)| footprint.reads.keys()).collect();
            output.role == ir::Role::Value && (field.ty, field.axes) == (output.ty, WHOLE) && may_be_written(&reads)
        };
        let mut free = (0..of_field.len()).filter(|memory| of_field.contains(memory) && !taken.contains(memory));
        let memory = free.find(fits).filter(|_| !random.once_in(3))?;
        taken.push(memory);
        Some(memory)
    };
    kernel.outputs.iter().map(&mut place).collect()
}

/// The cells that each field stores: what is read of it and perhaps more.
fn stored(analysis: &Analysis, of_field: &[usize], range: &Box3, random: &mut Random) -> Vec<Box3> {
    let mut stored = vec![*range; of_field.len()];
    for (footprint, owner) in analysis.footprints.iter().zip(of_field) {
        for Offset(offset) in footprint.reads.keys() {
            stored[*owner] = stored[*owner].hull(&range.shifted(offset.map(i64::from)));
        }
    }
    stored.into_iter().map(|cells| grown(cells, random)).collect()
}

/// `cells`, the origin, which every layout holds, and perhaps a few more.
fn grown(cells: Box3, random: &mut Random) -> Box3 {
    let mut more = || random.below(3) as i64;
    let grown = Box3 { lo: cells.lo.map(|lo| lo - more()), hi: cells.hi.map(|hi| hi + more()) };
    grown.hull(&Box3 { lo: [0; 3], hi: [1; 3] })
}
