//! What can't be done is an error with the facts in it.

use super::*;

#[test]
fn a_kernel_is_built_once_per_device_and_devices_of_a_platform_share_a_context() {
    on_each_platform(|found, all| {
        let device = open(found, all, OpenClForm::Source, None);
        let kernel = device.load(&HEAT).unwrap();
        assert_eq!(device.load(&HEAT).unwrap(), kernel);
        assert_ne!(device.load(&HEAT_F32).unwrap(), kernel);
        let second = open(found, all, OpenClForm::Source, None);
        assert!(device.shares_context(&second));
    });
}

#[test]
fn memory_is_counted_and_given_back() {
    on_each_platform(|found, all| {
        let tight = Found {
            facts: Facts {
                info: DeviceInfo { memory_bytes: 1 << 20, ..found.facts.info.clone() },
                ..found.facts.clone()
            },
            ..found.clone()
        };
        // Other tests allocate on the same device meanwhile, so the count is compared through an error and a limit of
        // its own.
        let device = open(&tight, all, OpenClForm::Auto, None);
        let layout = Layout::linear(ScalarType::F64, 3 << 17).unwrap();
        match device.alloc(&layout).unwrap_err() {
            Error::OutOfMemory { needed, free, limit, device: name, .. } => {
                assert!(
                    needed == layout.bytes as u64 && free <= 1 << 20 && limit.contains("CL_DEVICE_GLOBAL_MEM_SIZE"),
                    "{limit}"
                );
                assert_eq!(name, tight.facts.info.to_string());
            }
            other => panic!("{other}"),
        }
        let narrow = Found { facts: Facts { max_alloc_bytes: 1000, ..found.facts.clone() }, ..found.clone() };
        let device = open(&narrow, all, OpenClForm::Auto, None);
        match device.alloc(&layout).unwrap_err() {
            Error::OutOfMemory { free: 1000, limit, .. } => {
                assert!(limit.contains("CL_DEVICE_MAX_MEM_ALLOC_SIZE"), "{limit}")
            }
            other => panic!("{other}"),
        }
        // One buffer after the other: if they weren't counted out again, they would be more than the limit.
        let limit =
            Facts { info: DeviceInfo { memory_bytes: 1 << 30, ..found.facts.info.clone() }, ..found.facts.clone() };
        let device = open(&Found { facts: limit, ..found.clone() }, all, OpenClForm::Auto, None);
        let large = Layout::linear(ScalarType::F64, 16 << 20).unwrap();
        for _ in 0..12 {
            device.free(device.alloc(&large).unwrap());
        }
        let held: Vec<_> = (0..8).map_while(|_| device.alloc(&large).ok()).collect();
        let error = device.alloc(&large).unwrap_err();
        assert!(held.len() < 9 && matches!(error, Error::OutOfMemory { .. }), "{error}");
        let free = device.free_memory().unwrap().unwrap();
        assert!(free.bytes < 128 << 20, "{free:?}");
    });
}

#[test]
fn what_a_device_cannot_do_is_said_before_anything_is_built() {
    on_each_platform(|found, all| {
        let with = |facts: Facts| Found { facts, ..found.clone() };
        let facts = &found.facts;
        let single = with(Facts { info: DeviceInfo { fp64: false, ..facts.info.clone() }, ..facts.clone() });
        let few = with(Facts { max_argument_bytes: 64, ..facts.clone() });
        let source_only = with(Facts { takes_spirv: false, ..facts.clone() });
        for (found, form, part) in [
            (single, OpenClForm::Auto, "no double precision"),
            (few, OpenClForm::Auto, "its arguments take"),
            (source_only, OpenClForm::SpirV, "takes only OpenCL C"),
        ] {
            match open(&found, all, form, None).load(&HEAT).unwrap_err() {
                Error::Unsupported { device, kernel, reason } => {
                    assert_eq!((device, kernel.as_str()), (facts.info.to_string(), "heat"));
                    assert!(reason.contains(part), "{reason}");
                }
                other => panic!("{other}"),
            }
        }
    });
}

#[test]
fn a_kernel_that_does_not_build_brings_the_log() {
    static BROKEN: KernelDesc =
        describe(ScalarType::F64, "kernel void heat(global double *out) { out[0] = no_such_name; }\n", &[]);
    static SHORT: KernelDesc =
        describe(ScalarType::F64, "kernel void heat(int a) {}\nkernel void heat_rows(int a) {}\n", &[]);
    static MISNAMED: KernelDesc = describe(ScalarType::F64, "kernel void cold(int a) {}\n", &[]);
    on_each_platform(|found, all| {
        let device = open(found, all, OpenClForm::Source, None);
        match device.load(&BROKEN).unwrap_err() {
            Error::Build { device: name, kernel, form, log } => {
                assert_eq!((name, kernel.as_str(), form.as_str()), (found.facts.info.to_string(), "heat", "OpenCL C"));
                assert!(log.contains("no_such_name"), "{log}");
            }
            other => panic!("{other}"),
        }
        match device.load(&SHORT).unwrap_err() {
            Error::Build { log, .. } => assert!(log.contains("takes 1 arguments, and the descriptor has 17"), "{log}"),
            other => panic!("{other}"),
        }
        match device.load(&MISNAMED).unwrap_err() {
            Error::Driver { call, message, .. } => {
                assert_eq!((call.as_str(), message.as_str()), ("clCreateKernel", "CL_INVALID_KERNEL_NAME (-46)"));
            }
            other => panic!("{other}"),
        }
        if found.facts.takes_spirv {
            let device = open(found, all, OpenClForm::SpirV, None);
            let Some(kernel) = heat_with_module() else { return };
            let cut = &kernel.code.spirv[..kernel.code.spirv.len() / 2 / 4 * 4 - 4];
            let cut = [cut, &[0xff, 0xff, 0xff, 0xff]].concat().leak();
            let damaged = Box::leak(Box::new(describe(ScalarType::F64, SOURCE, cut)));
            match device.load(damaged).unwrap_err() {
                Error::Build { form, log, .. } => assert!(form == "SPIR-V" && log.contains("damaged"), "{log}"),
                other => panic!("{other}"),
            }
        }
    });
}

#[test]
fn misuse_is_an_error_and_never_reaches_the_driver() {
    let n = [5, 4, 3];
    let strides = Strides::for_cells(n, 8).unwrap();
    let whole = layout(n, 0, strides);
    on_each_platform(|found, all| {
        let device = open(found, all, OpenClForm::Source, None);
        let [a, b] = std::array::from_fn(|_| Field::new(&device, whole, None));
        let kernel = device.load(&HEAT).unwrap();
        let inner = Box3 { lo: [1; 3], hi: [4, 3, 2] };
        let (outputs, fields, scalars) = ([a.cells()], [b.cells(), b.cells()], [0, 0]);
        let good = Launch {
            kernel,
            outputs: &outputs,
            fields: &fields,
            scalars: &scalars,
            strides,
            global: [0; 3],
            shift: [0; 3],
            parity: None,
            range: inner,
        };
        device.launch(QueueId::COMPUTE, &good).unwrap();
        let unknown = [Cells { buffer: BufferId(99), origin: 0 }];
        let wide = Box3 { lo: [1; 3], hi: [i64::from(i32::MAX) + 1, 2, 2] };
        for bad in [
            Launch { kernel: KernelId(9), ..good },
            Launch { outputs: &unknown, ..good },
            Launch { outputs: &[b.cells()], ..good },
            Launch { fields: &fields[..1], ..good },
            Launch { scalars: &[], ..good },
            Launch { parity: Some(2), ..good },
            Launch { shift: [0, 0, 1], ..good },
            Launch { shift: [i64::MAX; 3], ..good },
            Launch { range: Box3 { lo: [0; 3], hi: [4, 3, 2] }, ..good },
            Launch { range: Box3 { lo: [1; 3], hi: [4, 3, 3] }, ..good },
            Launch { range: wide, ..good },
            Launch { range: Box3 { lo: [i64::MIN; 3], hi: [i64::MAX; 3] }, ..good },
            Launch { strides: Strides { row: usize::MAX, plane: usize::MAX }, ..good },
            Launch { outputs: &[Cells { origin: usize::MAX, ..a.cells() }], ..good },
        ] {
            let error = device.launch(QueueId::COMPUTE, &bad).unwrap_err();
            assert!(matches!(&error, Error::Driver { call, .. } if call == "launch"), "{error}");
        }
        let empty = Launch { range: Box3::EMPTY, outputs: &unknown, ..good };
        device.launch(QueueId::COMPUTE, &empty).unwrap();

        let run = |offset, bytes| Region::run(offset, bytes);
        let regions = [
            run(whole.bytes - 8, 16),
            run(usize::MAX, 8),
            run(0, usize::MAX),
            Region { rows: 2, row_pitch: 4, ..run(0, 8) },
            Region { planes: usize::MAX, plane_pitch: usize::MAX, ..run(0, 8) },
            Region { rows: 3, planes: 2, row_pitch: 16, plane_pitch: 40, ..run(0, 8) },
        ];
        for region in &regions {
            let place = Place { buffer: a.buffer, region };
            assert!(matches!(device.read(QueueId(0), place, &mut [0; 8]), Err(Error::Driver { .. })), "{region:?}");
            assert!(matches!(device.write(QueueId(0), place, &[0; 8]), Err(Error::Driver { .. })), "{region:?}");
            assert!(matches!(device.copy(QueueId(0), place, place), Err(Error::Driver { .. })), "{region:?}");
        }
        let (none, short, long) = (run(0, 0), run(0, 8), run(0, 16));
        let place = |buffer, region| Place { buffer, region };
        assert!(device.write(QueueId(0), place(a.buffer, &short), &[0; 9]).is_err());
        assert!(device.read(QueueId(0), place(BufferId(0), &short), &mut [0; 8]).is_err());
        assert!(device.copy(QueueId(0), place(a.buffer, &short), place(b.buffer, &long)).is_err());
        assert!(device.wait(QueueId(0), EventId(1)).is_err());
        device.free(BufferId(12345));
        device.free(a.buffer);
        assert!(device.write(QueueId(0), place(a.buffer, &short), &[0; 8]).is_err());
        device.write(QueueId(0), place(b.buffer, &none), &[]).unwrap();
        device.finish(QueueId(0)).unwrap();
        device.finish(QueueId(44)).unwrap();
    });
}
