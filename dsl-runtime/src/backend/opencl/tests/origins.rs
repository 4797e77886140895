//! Origins that come in pairs, 32 bits each.

use super::*;
use crate::backend::opencl::arguments::Origins;
use crate::kernel::Role;
use crate::layout::ROWS;

/// Adds up the rows of a field.
static COUNT: KernelDesc = KernelDesc {
    name: "count",
    fields: &[FieldDesc { name: "u", ty: ScalarType::U8, axes: WHOLE, reads: &[Read { offset: [0; 3], line: 1 }] }],
    params: &[],
    outputs: &[OutputDesc { ty: ScalarType::U64, role: Role::Sum }],
    code: DeviceCode { rows_entry: "count_rows", paired_origins: true, opencl: COUNT_SOURCE, ..HEAT_CODE },
    ..describe(ScalarType::F64, "", &[])
};

const HEAT_CODE: DeviceCode = describe(ScalarType::F64, "", &[]).code;

const COUNT_SOURCE: &str = "\
kernel void count_rows(global ulong *sum, global const uchar *u, int2 origins, long sy, long sz, int lo_x, int lo_y,
                       int lo_z, int n_x, int n_y, int n_z, int parity) {
    const int j = get_global_id(0), k = get_global_id(1);
    if (j >= n_y || k >= n_z) return;
    sum += origins.x;
    u += origins.y;
    ulong total = 0;
    for (int i = 0; i < n_x; i++) total += u[(lo_x + i) + (lo_y + j) * sy + (lo_z + k) * sz];
    sum[(lo_y + j) + (lo_z + k) * (sz / sy)] = total;
}
";

/// The origins of a result and a field, of which only these matter.
fn origins(kernel: &KernelDesc, origins: [i64; 2]) -> Result<Origins, String> {
    let [output, field] = origins.map(|origin| Cells { buffer: BufferId(1), origin: origin as usize });
    Origins::new(
        kernel,
        &Launch {
            kernel: KernelId(0),
            outputs: &[output],
            fields: &[field, output],
            shift: [0; 3],
            scalars: &[],
            strides: Strides { row: 1, plane: 1 },
            range: Box3::EMPTY,
            global: [0; 3],
            parity: None,
        },
    )
}

#[test]
fn what_fits_32_bits_with_a_sign_travels_so_and_the_rest_is_refused_by_name() {
    const MOST: i64 = i32::MAX as i64;
    const LEAST: i64 = i32::MIN as i64;
    let pairs = |first, second| Ok(Origins::Paired(vec![[first, second], [first, 0]]));
    assert_eq!(origins(&COUNT, [7, -3]), pairs(7, -3));
    assert_eq!(origins(&COUNT, [MOST, LEAST]), pairs(i32::MAX, i32::MIN));
    for far in [MOST + 1, LEAST - 1, 1 << 32, i64::MAX, i64::MIN] {
        let reason = origins(&COUNT, [0, far]).unwrap_err();
        assert!(reason.contains(&format!("that of field `u` is cell {far} of its buffer")), "{reason}");
        assert!(origins(&COUNT, [far, 0]).unwrap_err().contains("that of result 0 is"));
        assert_eq!(origins(&HEAT, [7, far]), Ok(Origins::Whole(vec![7, far, 7])));
    }
}

#[test]
fn arguments_are_counted_with_their_pairs() {
    // A result, a field and their pair; strides, box and parity.
    assert_eq!(program::arguments(&COUNT), (3 + 9, 3 * 8 + 16 + 28));
    static THREE: KernelDesc = KernelDesc { code: COUNT.code, ..HEAT };
    assert_eq!(program::arguments(&THREE), (3 + 2 + 2 + 9, 5 * 8 + 12 + 16 + 28));
}

#[test]
fn an_origin_before_the_buffer_is_right_or_an_error_with_the_name_of_the_kernel() {
    const N: usize = 1 << 20;
    const PLANES: i64 = 2100;
    let strides = Strides { row: N, plane: N };
    let sums = Layout::new(ScalarType::U64, ROWS, Box3 { lo: [0; 3], hi: [1, 1, PLANES] }, strides).unwrap();
    let ones = Layout::new(ScalarType::U8, WHOLE, Box3 { lo: [0; 3], hi: [N as i64, 1, 2] }, strides).unwrap();
    on_each_platform(|found, all| {
        let device = open(found, all, OpenClForm::Source, None);
        let (to, from) = (device.alloc(&sums).unwrap(), device.alloc(&ones).unwrap());
        let values: Vec<u8> = (0..ones.bytes).map(|cell| 1 + (cell / N) as u8).collect();
        let region = Region::run(0, ones.bytes);
        device.write(QueueId::COMPUTE, Place { buffer: from, region: &region }, &values).unwrap();
        let kernel = device.load(&COUNT).unwrap();
        // Plane k reads plane k - below, so that the origin of `u` lies that many planes before its buffer.
        let launch = |below: i64| {
            device.launch(
                QueueId::COMPUTE,
                &Launch {
                    kernel,
                    outputs: &[Cells { buffer: to, origin: sums.origin }],
                    fields: &[Cells { buffer: from, origin: ones.shifted_origin([0, 0, -below]) }],
                    shift: [0, 0, -below],
                    scalars: &[],
                    strides,
                    range: Box3 { lo: [0, 0, below], hi: [N as i64, 1, below + 2] },
                    global: [0; 3],
                    parity: None,
                },
            )
        };
        launch(2048).unwrap(); // -2^31
        match launch(2049).unwrap_err() {
            Error::Unsupported { kernel, reason, .. } => {
                assert!(kernel == "count" && reason.contains(&format!("cell {} ", -2049 * N as i64)), "{reason}");
            }
            other => panic!("{other}"),
        }
        let mut found = vec![0; sums.bytes];
        let region = Region::run(0, sums.bytes);
        device.read(QueueId::COMPUTE, Place { buffer: to, region: &region }, &mut found).unwrap();
        let found: Vec<u64> = found.as_chunks().0.iter().map(|bytes| u64::from_ne_bytes(*bytes)).collect();
        let expected = |k| {
            if k == 2048 {
                N as u64
            } else if k == 2049 {
                2 * N as u64
            } else {
                0
            }
        };
        let wrong = (0..PLANES as usize).find(|&k| found[sums.origin + k] != expected(k));
        assert_eq!(wrong, None, "on {}", device.summary());
    });
}
