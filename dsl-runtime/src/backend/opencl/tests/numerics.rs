//! Kernels give the bits of a plain loop in Rust.

use super::*;

#[test]
fn heat_has_the_bits_of_a_plain_loop_in_every_form_and_mapping() {
    let forms = |facts: &Facts| match facts.takes_spirv {
        true => vec![OpenClForm::Source, OpenClForm::SpirV],
        false => vec![OpenClForm::Source],
    };
    on_each_platform(|found, all| {
        for form in forms(&found.facts) {
            let kernel = match form {
                OpenClForm::SpirV => heat_with_module(),
                OpenClForm::Auto | OpenClForm::Source => Some(&HEAT),
            };
            let Some(kernel) = kernel else { continue };
            for entry in [Entry::Points, Entry::Rows] {
                let device = open(found, all, form, Some(entry));
                let kernel = device.load(kernel).unwrap();
                for n in SIZES {
                    check_heat(&device, kernel, n, false);
                }
                check_heat(&device, kernel, [29, 5, 3], true);
            }
        }
    });
}

#[test]
fn f32_kernels_divide_and_take_roots_as_rust_does() {
    on_each_platform(|found, all| {
        let device = open(found, all, OpenClForm::Source, None);
        let kernel = device.load(&HEAT_F32).unwrap();
        if !found.facts.rounds_f32_division {
            assert!(found.facts.notes().iter().any(|note| note.contains("f32 division")), "{:?}", found.facts.notes());
            return skip(&format!("{} doesn't promise f32 division that is correctly rounded", found.facts.info));
        }
        let cells = Box3 { lo: [-1; 3], hi: [130, 6, 4] };
        let layout = Layout::new(ScalarType::F32, WHOLE, cells, Strides::for_cells(cells.size(), 4).unwrap()).unwrap();
        let values: Vec<f32> = noise(layout.bytes / 4, 5).into_iter().map(|value| value as f32).collect();
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let region = Region::run(0, layout.bytes);
        let [u, out] = std::array::from_fn(|_| device.alloc(&layout).unwrap());
        device.write(QueueId::COMPUTE, Place { buffer: u, region: &region }, &data).unwrap();
        let at = |buffer| Cells { buffer, origin: layout.origin };
        let range = Box3 { lo: [0; 3], hi: cells.hi.map(|hi| hi - 1) };
        let scalars = [u64::from(0.1_f32.to_bits()), 1];
        let (outputs, fields) = ([at(out)], [at(u), at(u)]);
        let launch = Launch {
            kernel,
            outputs: &outputs,
            fields: &fields,
            scalars: &scalars,
            strides: layout.strides,
            global: [0; 3],
            shift: [0; 3],
            parity: None,
            range,
        };
        device.launch(QueueId::COMPUTE, &launch).unwrap();
        let mut found = vec![0; layout.bytes];
        device.read(QueueId::COMPUTE, Place { buffer: out, region: &region }, &mut found).unwrap();
        for (z, y, x) in (0..3).flat_map(|z| (0..5).flat_map(move |y| (0..129).map(move |x| (z, y, x)))) {
            let at = |d: [i64; 3]| values[layout.index([x + d[0], y + d[1], z + d[2]]).unwrap()];
            let here = at([0; 3]);
            let flux = |d: [i64; 3]| (at(d) + here) * (at(d) - here);
            let sum = flux([1, 0, 0])
                + flux([-1, 0, 0])
                + flux([0, 1, 0])
                + flux([0, -1, 0])
                + flux([0, 0, 1])
                + flux([0, 0, -1]);
            let expected = (here + 0.1 * sum) / here.sqrt();
            let index = layout.index([x, y, z]).unwrap() * 4;
            assert_eq!(
                f32::from_ne_bytes(found[index..index + 4].try_into().unwrap()),
                expected,
                "{x} {y} {z} on {}",
                device.summary()
            );
        }
    });
}

#[test]
fn events_order_two_queues() {
    let n = [40, 24, 16];
    let strides = Strides::for_cells(n.map(|n| n + 4), 8).unwrap();
    let whole = layout(n, 2, strides);
    let range = Box3 { lo: [0; 3], hi: n.map(|n| n as i64) };
    let kappa_values = noise(whole.bytes / 8, 2);
    on_each_platform(|found, all| {
        let device = open(found, all, OpenClForm::Source, None);
        let kernel = device.load(&HEAT).unwrap();
        let mut values = noise(whole.bytes / 8, 1);
        let mut fields: [Field; 2] = std::array::from_fn(|_| Field::new(&device, whole, Some(&values)));
        let kappa = Field::new(&device, whole, Some(&kappa_values));
        let mut ready = device.signal(QueueId::COMPUTE).unwrap();
        // Every step runs on the other queue, so only the events put one after the other.
        for step in 0..20 {
            let queue = QueueId(1 + step % 2);
            device.wait(queue, ready).unwrap();
            let (outputs, inputs) = ([fields[1].cells()], [fields[0].cells(), kappa.cells()]);
            let scalars = [BETA.to_bits(), 0];
            let launch = Launch {
                kernel,
                outputs: &outputs,
                fields: &inputs,
                scalars: &scalars,
                strides,
                global: [0; 3],
                shift: [0; 3],
                parity: None,
                range,
            };
            device.launch(queue, &launch).unwrap();
            ready = device.signal(queue).unwrap();
            fields.swap(0, 1);
            let mut new = values.clone();
            expected(n, false, (&whole, &values), (&whole, &kappa_values), (&whole, &mut new));
            values = new;
        }
        device.wait(QueueId::COMPUTE, ready).unwrap();
        assert!(fields[0].values(&device) == values, "{}", device.summary());
        // An event that happened long ago is no obstacle.
        device.wait(QueueId(5), EventId(1)).unwrap();
        device.finish(QueueId(5)).unwrap();
    });
}
