//! A kernel with fields to run on, and what must come out.

use std::fmt;

use polyhalo_codegen::emit::text::ir::show;
use polyhalo_codegen::interpret::{Point, interpret};
use polyhalo_codegen::ir::{Axis, Field, Id, Offset, Param, Type, Value};
use polyhalo_codegen::random::Random;
use polyhalo_codegen::{Analysis, Verified, analyse};
use polyhalo_runtime::geometry::Box3;
use polyhalo_runtime::kernel::ScalarType;
use polyhalo_runtime::layout::{Layout, Strides};

/// One run of a kernel.
pub(super) struct Case<'k> {
    pub(super) kernel: &'k Verified,
    /// The points that are computed.
    pub(super) range: Box3,
    pub(super) strides: Strides,
    pub(super) fields: Vec<Values>,
    /// For each field of the kernel the one of `fields` that it gets: two may get the same.
    pub(super) of_field: Vec<usize>,
    pub(super) scalars: Vec<Value>,
    pub(super) outputs: Vec<Output>,
}

/// A field in memory, padding included.
pub(super) struct Values {
    pub(super) layout: Layout,
    pub(super) cells: Vec<Value>,
}

/// A result.
pub(super) struct Output {
    /// What is in memory before the run.
    pub(super) before: Values,
    /// For each element the point that writes it and what must be there then.
    expected: Vec<Option<([i64; 3], Value)>>,
}

/// The boxes on which each kernel is run.
const CASES: u64 = 3;

/// All cases of a kernel.
pub(super) fn cases(kernel: &Verified) -> Vec<Case<'_>> {
    // FNV-1a over the text: the same kernel meets the same numbers wherever it comes from.
    let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let seed = show(kernel).bytes().fold(0xcbf2_9ce4_8422_2325, hash);
    (0..CASES).map(|number| Case::new(kernel, &mut Random::new(seed.wrapping_add(number)))).collect()
}

impl<'k> Case<'k> {
    fn new(kernel: &'k Verified, random: &mut Random) -> Self {
        let range = range(random);
        let of_field = shared(kernel, random);
        let stored = stored(&analyse(kernel), &of_field, &range, random);
        let results: Vec<Box3> = kernel.outputs.iter().map(|_| grown(range, random)).collect();
        let most = |axis: usize| stored.iter().chain(&results).map(|cells| cells.size()[axis]).max().unwrap_or(1);
        let row = most(0) + random.below(12);
        let strides = Strides { row, plane: row * (most(1) + random.below(3)) };
        let mut values = |ty: Type, cells: &Box3| {
            let layout = Layout::new(scalar_type(ty), *cells, strides).expect("a few cells fit");
            Values { layout, cells: (0..layout.bytes / ty.bytes()).map(|_| random.value(ty)).collect() }
        };
        let fields = kernel.fields.iter().zip(&stored).map(|(field, cells)| values(field.ty, cells)).collect();
        let before = kernel.outputs.iter().zip(&results).map(|(output, cells)| values(output.ty, cells));
        let outputs = before.map(|before| Output { expected: vec![None; before.cells.len()], before }).collect();
        let scalars = kernel.params.iter().map(|param| random.value(param.ty)).collect();
        let mut case = Case { kernel, range, strides, fields, of_field, scalars, outputs };
        for cell in points(&range) {
            let results = interpret(kernel, &At { case: &case, cell });
            for (output, value) in case.outputs.iter_mut().zip(results) {
                let index = output.before.layout.index(cell).expect("results hold the box");
                output.expected[index] = Some((cell, value));
            }
        }
        case
    }

    /// The field that field number `number` of the kernel gets.
    pub(super) fn field(&self, number: usize) -> &Values {
        &self.fields[self.of_field[number]]
    }

    /// The bits of the scalars.
    pub(super) fn scalar_bits(&self) -> Vec<u64> {
        self.scalars.iter().map(|scalar| scalar.bits()).collect()
    }

    /// What is wrong with the bytes that are in the results after a run that computes those points of the box at least
    /// that are `certain`.
    pub(super) fn difference(&self, found: &[Vec<u8>], certain: impl Fn([i64; 3]) -> bool) -> Option<String> {
        assert_eq!(found.len(), self.outputs.len(), "the bytes of each result");
        let wrong = |number: usize| {
            let Output { before, expected } = &self.outputs[number];
            let found = found[number].chunks_exact(before.layout.ty.bytes());
            assert_eq!(found.len(), expected.len(), "a value per element");
            found.enumerate().find_map(|(index, bytes)| {
                let old = before.cells[index];
                let found = value(old.ty(), bytes);
                match expected[index] {
                    None if found == old => None,
                    None => Some(format!("element {index} of result {number} is outside the box and became {found:?}")),
                    Some((_, value)) if alike(found, value) => None,
                    Some((cell, _)) if found == old && !certain(cell) => None,
                    Some((cell, value)) => Some(format!("result {number} at {cell:?} is {found:?}, not {value:?}")),
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
        write!(
            f,
            "over {}, strides {row} and {plane}, scalars {:?}, of\n{}",
            self.range,
            self.scalars,
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
        let cell = [0, 1, 2].map(|axis| self.cell[axis] + i64::from(offset.0[axis]));
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

/// Which field each one gets: mostly one of its own.
fn shared(kernel: &Verified, random: &mut Random) -> Vec<usize> {
    let types: Vec<Type> = kernel.fields.iter().map(|field| field.ty).collect();
    let own = |number: usize| {
        let other = random.below(number + 1);
        if types[other] == types[number] && random.once_in(4) { other } else { number }
    };
    (0..types.len()).map(own).collect()
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
