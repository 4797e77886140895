//! Bytes arrive where they belong.

use super::*;

#[test]
fn boxes_are_written_copied_and_read_where_they_belong() {
    let n = [13, 7, 5];
    let strides = Strides::for_cells(n, 8).unwrap();
    let layout = layout(n, 0, strides);
    let count = layout.bytes / 8;
    let boxes = [
        (Box3 { lo: [0, 0, 2], hi: [13, 7, 3] }, [0, 0, -2]),
        (Box3 { lo: [12, 0, 0], hi: [13, 7, 5] }, [-12, 0, 0]),
        (Box3 { lo: [0, 6, 0], hi: [13, 7, 5] }, [0, -6, 0]),
        (Box3 { lo: [3, 2, 1], hi: [4, 3, 2] }, [5, 1, 2]),
        (Box3 { lo: [1, 1, 0], hi: [5, 4, 2] }, [6, 3, 3]),
        (Box3 { lo: [0, 0, 0], hi: [13, 7, 2] }, [0, 0, 3]),
    ];
    on_each_platform(|found, all| {
        let device = open(found, all, OpenClForm::Auto, None);
        let fresh = Field::new(&device, layout, None);
        assert!(fresh.values(&device).iter().all(|value| value.to_bits() == 0), "new memory is zero");
        for (part, by) in boxes {
            let mut model = noise(count, 4);
            let other = noise(count, 5);
            let field = Field::new(&device, layout, Some(&model));
            let source = Field::new(&device, layout, Some(&other));
            let (here, there) = (layout.region(&part).unwrap(), layout.region(&part.shifted(by)).unwrap());
            // A written box, then one copied within the buffer, then one copied from another buffer; the last must win.
            let data = noise(here.bytes() / 8, 6);
            device.write(QueueId::COMPUTE, Place { buffer: field.buffer, region: &here }, &bytes_of(&data)).unwrap();
            let from = Place { buffer: field.buffer, region: &here };
            device.copy(QueueId::COMPUTE, from, Place { buffer: field.buffer, region: &there }).unwrap();
            let mut rows = data.chunks_exact(here.row_bytes / 8);
            for (to, copy) in here.row_starts().zip(there.row_starts()) {
                let row = rows.next().unwrap();
                model[to / 8..to / 8 + row.len()].copy_from_slice(row);
                model[copy / 8..copy / 8 + row.len()].copy_from_slice(row);
            }
            let from = Place { buffer: source.buffer, region: &there };
            device.copy(QueueId::COMPUTE, from, Place { buffer: field.buffer, region: &here }).unwrap();
            for (to, from) in here.row_starts().zip(there.row_starts()) {
                let cells = here.row_bytes / 8;
                model[to / 8..to / 8 + cells].copy_from_slice(&other[from / 8..from / 8 + cells]);
            }
            let mut bytes = vec![0; there.bytes()];
            device.read(QueueId::COMPUTE, Place { buffer: field.buffer, region: &there }, &mut bytes).unwrap();
            assert_eq!(values_of(&bytes), data, "{part} on {}", device.summary());
            assert_eq!(field.values(&device), model, "{part} on {}", device.summary());
        }
    });
}

#[test]
fn data_may_change_as_soon_as_a_write_returns() {
    on_each_platform(|found, all| {
        let device = open(found, all, OpenClForm::Auto, None);
        let (bytes, pieces) = (1 << 20, 64);
        let buffer = device.alloc(&Layout::linear(ScalarType::F64, bytes * pieces / 8).unwrap()).unwrap();
        let mut data = vec![0_u8; bytes];
        for piece in 0..pieces {
            data.fill(piece as u8 + 1);
            let region = Region::run(piece * bytes, bytes);
            device.write(QueueId(piece as u32 % 3), Place { buffer, region: &region }, &data).unwrap();
            data.fill(0xff);
        }
        (0..3).for_each(|queue| device.finish(QueueId(queue)).unwrap());
        let mut found = vec![0; bytes * pieces];
        device.read(QueueId(7), Place { buffer, region: &Region::run(0, bytes * pieces) }, &mut found).unwrap();
        assert!(
            found.chunks_exact(bytes).enumerate().all(|(piece, part)| part.iter().all(|&byte| byte == piece as u8 + 1))
        );
    });
}

#[test]
fn a_write_too_long_to_stage_arrives_whole() {
    on_each_platform(|found, all| {
        let device = open(found, all, OpenClForm::Auto, None);
        let layout = Layout::linear(ScalarType::F64, (9 << 20) + 3).unwrap();
        let values = noise(layout.bytes / 8, 8);
        let field = Field::new(&device, layout, Some(&values));
        assert!(field.values(&device) == values);
    });
}

#[test]
fn boxes_of_one_buffer_may_interlock_as_long_as_they_do_not_overlap() {
    let n = [13_i64, 7, 5];
    let cells = n.map(|n| n as usize);
    let layout = layout(cells, 1, Strides::for_cells(cells.map(|n| n + 2), 8).unwrap());
    let mut numbers = noise(1 << 14, 9).into_iter().map(|value| ((value - 0.5) * 1000.0) as i64).cycle();
    let mut below = |n: i64| numbers.next().expect("a cycle") % n;
    let mut pairs = Vec::new();
    while pairs.len() < 300 {
        let size: [i64; 3] = std::array::from_fn(|axis| 1 + below(n[axis] + 2));
        let [here, there] = std::array::from_fn(|_| {
            let lo: [i64; 3] = std::array::from_fn(|axis| below(n[axis] + 3 - size[axis]) - 1);
            Box3 { lo, hi: std::array::from_fn(|axis| lo[axis] + size[axis]) }
        });
        if here.intersection(&there).is_empty() {
            pairs.push((layout.region(&here).unwrap(), layout.region(&there).unwrap()));
        }
    }
    on_each_platform(|found, all| {
        let device = open(found, all, OpenClForm::Auto, None);
        let mut model = noise(layout.bytes / 8, 10);
        let field = Field::new(&device, layout, Some(&model));
        let place = |region| Place { buffer: field.buffer, region };
        for (from, to) in &pairs {
            device.copy(QueueId::COMPUTE, place(from), place(to)).unwrap();
            for (source, target) in from.row_starts().zip(to.row_starts()) {
                model.copy_within(source / 8..(source + from.row_bytes) / 8, target / 8);
            }
        }
        assert!(field.values(&device) == model, "{}", device.summary());
    });
}
