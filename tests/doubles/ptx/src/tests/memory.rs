//! Loads and stores, faults, and what is counted.

use super::{Pieces, Words, arguments, check, kernel, module, pairs, parsed, results};
use crate::{Fault, Stats};

#[test]
fn values_smaller_than_registers_are_extended() {
    let inputs = pairs(&super::INTEGERS);
    check("ld.global.u8 %r20, [%rd90];", &inputs, |a, _, _| a & 0xff);
    check("ld.global.s8 %rs20, [%rd90];", &inputs, |a, _, _| u64::from(i16::from(a as i8).cast_unsigned()));
    check("ld.global.nc.s8 %r20, [%rd90+1];", &inputs, |a, _, _| u64::from(i32::from((a >> 8) as i8).cast_unsigned()));
    check("ld.global.s16 %rd20, [%rd90+2];", &inputs, |a, _, _| i64::from((a >> 16) as i16).cast_unsigned());
    check("ld.global.s32 %rd20, [%rd90+8];", &inputs, |_, b, _| i64::from(b as i32).cast_unsigned());
    check("ld.global.b32 %f20, [%rd90+12];", &inputs, |_, b, _| b >> 32);
    check("ld.volatile.global.u64 %rd20, [%rd90+16];", &inputs, |_, _, c| c);
}

#[test]
fn vectors_and_arrays_of_the_thread_hold_what_was_stored() {
    let inputs = pairs(&super::INTEGERS);
    let body = ".local .align 16 .b8 depot[40]; .reg .b64 %SP; .reg .b64 %SPL;\n\
                mov.u64 %SPL, depot; cvta.local.u64 %SP, %SPL; add.u64 %rd5, %SPL, 16; mov.b64 {%r5, %r6}, %rd1; \
                st.local.v4.u32 [%rd5], {%r6, %r5, %r2, %r3}; st.local.u8 [depot+38], %rs2; st.local.u8 [%SP+39], 5;\n\
                ld.local.v2.u64 {%rd6, %rd7}, [%rd5]; ld.u16 %rs5, [%SP+38]; cvt.u64.u16 %rd8, %rs5; xor.b64 %rd7, %rd7, %rd8; \
                xor.b64 %rd20, %rd6, %rd7;";
    check(body, &inputs, |a, b, c| {
        let second = u64::from(b as u32) | u64::from(c as u32) << 32;
        a.rotate_left(32) ^ second ^ (b & 0xff | 5 << 8)
    });
    // The address is one of the registers that are loaded.
    let body = "mov.u64 %rd5, depot; .local .align 16 .b8 depot[16];";
    let text = module("", 0, body);
    assert!(crate::Module::parse(&text).is_err(), "names come before their use");
    let body = ".local .align 16 .b8 depot[16]; mov.u64 %rd5, depot; st.local.v2.u64 [%rd5], {%rd1, %rd2}; \
                ld.local.v2.u64 {%rd5, %rd6}, [%rd5]; sub.s64 %rd20, %rd5, %rd6;";
    check(body, &inputs, |a, b, _| a.wrapping_sub(b));
}

#[test]
fn tables_are_read_but_not_written() {
    let before = ".global .align 8 .b8 bytes[16] = {1, 2, 3, 4, 5, 6, 7, 8, 255};\n\
                  .const .align 4 .f32 floats[3] = {0f3F800000, 0f40000000, 0fBF800000};\n.global .u64 one = 0x12345;";
    let inputs = [[0, 0, 0], [1, 0, 0], [8, 1, 0], [3, 2, 0]];
    let body = "mov.u64 %rd5, bytes; add.s64 %rd6, %rd5, %rd1; ld.global.nc.u8 %rs20, [%rd6];";
    assert_eq!(results(before, body, &inputs), [1, 2, 255, 4]);
    let body = "mov.u64 %rd5, floats; cvta.const.u64 %rd5, %rd5; shl.b64 %rd6, %rd2, 2; add.s64 %rd6, %rd5, %rd6; \
                ld.f32 %f20, [%rd6];";
    assert_eq!(results(before, body, &inputs), [0x3f80_0000, 0x3f80_0000, 0x4000_0000, 0xbf80_0000]);
    assert_eq!(results(before, "ld.global.u64 %rd20, [one];", &inputs), [0x12345; 4]);
    let text = module(before, 0, "mov.u64 %rd1, bytes; st.global.u64 [%rd1], 1;");
    let fault = kernel(&parsed(&text)).run([1; 3], [1; 3], &[], &Pieces(Vec::new())).expect_err("tables stay");
    assert!(fault.to_string().contains("tables are not written"), "{fault}");
}

/// What goes wrong when thread 70 of a block touches the byte at `offset` of 128 words.
fn fault(body: &str, offset: u64, may_be_written: bool) -> Fault {
    let head = "ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1]; mov.u32 %r1, %tid.x; cvt.u64.u32 %rd3, %r1; \
                shl.b64 %rd3, %rd3, 3; add.s64 %rd4, %rd1, %rd3; setp.eq.s32 %p1, %r1, 70; @%p1 add.s64 %rd4, %rd1, %rd2;";
    let text = module("", 2, &format!("{head}\n{body}"));
    let mut words = Words::new(&[3; 128], may_be_written);
    let (memory, starts) = Pieces::of(&mut [&mut words]);
    let module = parsed(&text);
    kernel(&module)
        .run([1, 2, 1], [96, 1, 1], &arguments(&[starts[0], offset]), &memory)
        .expect_err("an address is wrong")
}

#[test]
fn faults_name_the_instruction_the_thread_and_the_address() {
    for (body, offset, may_be_written, reason) in [
        ("ld.global.f64 %fd1, [%rd4];", 1024, true, "nothing is there"),
        ("ld.global.f64 %fd1, [%rd4+-8];", 0, true, "nothing is there"),
        ("ld.global.u16 %rs1, [%rd4];", 1023, true, "multiple of 2"),
        ("ld.global.f64 %fd1, [%rd4];", 4, true, "multiple of 8"),
        ("ld.global.v2.f64 {%fd1, %fd2}, [%rd4];", 8, true, "multiple of 16"),
        ("st.global.u8 [%rd4], %r1;", 5000, true, "nothing is there"),
        ("ld.local.u8 %r2, [%rd4];", 8, true, "outside the memory of the thread"),
    ] {
        // All others touch what they may.
        let body = if body.contains("v2") {
            "setp.ne.s32 %p1, %r1, 70; @%p1 exit;\n".to_owned() + body
        } else {
            body.to_owned()
        };
        let body =
            if body.contains("local") { "setp.ne.s32 %p1, %r1, 70; @%p1 exit;\n".to_owned() + &body } else { body };
        let body = if body.contains("-8") { "setp.lt.s32 %p1, %r1, 1; @%p1 exit;\n".to_owned() + &body } else { body };
        let fault = fault(&body, offset, may_be_written);
        let Fault::Access { kernel, instruction, block, thread, reason: found, .. } = &fault else { panic!("{fault}") };
        assert_eq!((kernel.as_str(), *block, *thread), ("k", [0; 3], [70, 0, 0]), "{fault}");
        assert!(body.ends_with(instruction) && found.contains(reason), "{fault}");
    }
    let Fault::Access { thread, reason, .. } = fault("st.global.u8 [%rd4], %r1;", 0, false) else {
        panic!("it is an access")
    };
    assert_eq!((thread, reason.as_str()), ([0; 3], "it is only read"));
}

#[test]
fn launches_that_no_gpu_takes_are_faults() {
    let text = module("", 1, "").replace("p0)", "p0)\n.maxntid 128, 1, 1");
    let module = parsed(&text);
    let run = |grid, block, bytes| kernel(&module).run(grid, block, &vec![0; bytes], &Pieces(Vec::new()));
    for (grid, block, bytes, reason) in [
        ([1, 0, 1], [1, 1, 1], 8, "is empty"),
        ([1, 1, 1], [129, 1, 1], 8, "may have 128"),
        ([1, 1, 1], [1, 1, 1], 7, "7 bytes of arguments"),
    ] {
        let fault = run(grid, block, bytes).expect_err("it can't be launched");
        assert!(matches!(&fault, Fault::Launch { .. }) && fault.to_string().contains(reason), "{fault}");
    }
    run([1; 3], [128, 1, 1], 8).expect("this one can");
    let params = ".version 6.3 .target sm_70 .visible .entry k(.param .u8 a, .param .f64 b, .param .align 4 .b8 c[6], .param .u32 d) { ret; }";
    let params = parsed(params).kernels[0].params.iter().map(|param| (param.offset, param.bytes)).collect::<Vec<_>>();
    assert_eq!(params, [(0, 1), (8, 8), (16, 6), (24, 4)]);
}

#[test]
fn threads_are_numbered_in_all_axes() {
    let names = ["%tid", "%ctaid", "%ntid", "%nctaid"];
    let axes = ["x", "y", "z"];
    let (grid, block) = ([2u32, 3, 2], [5u32, 3, 7]);
    let threads = 105 * 12;
    let mut body = "ld.param.u64 %rd1, [p0]; mov.u32 %r20, 0;\n".to_owned();
    for (number, name) in names.iter().enumerate() {
        for (axis, letter) in axes.iter().enumerate() {
            body += &format!("mov.u32 %r{}, {name}.{letter};\n", 3 * number + axis + 1);
        }
    }
    // The number of the block times 105 and that of the thread.
    body += "mad.lo.s32 %r30, %r6, %r11, %r5; mad.lo.s32 %r30, %r30, %r10, %r4; mad.lo.s32 %r31, %r3, %r8, %r2; \
             mad.lo.s32 %r31, %r31, %r7, %r1; mad.lo.s32 %r32, %r30, 105, %r31; mul.wide.s32 %rd2, %r32, 4; \
             add.s64 %rd1, %rd1, %rd2; ld.global.u32 %r33, [%rd1]; add.s32 %r33, %r33, %r32; st.global.u32 [%rd1], %r33;";
    let mut words = Words::new(&vec![0; threads / 2], true);
    let (memory, starts) = Pieces::of(&mut [&mut words]);
    let text = module("", 1, &body);
    let module = parsed(&text);
    let (stats, loads) = kernel(&module)
        .run_noting_loads(grid, block, &arguments(&starts), &memory)
        .unwrap_or_else(|fault| panic!("{fault}"));
    for thread in 0..threads {
        let found = (words.word(thread / 2) >> (32 * (thread % 2))) as u32;
        assert_eq!(found as usize, thread, "each thread adds its number once");
    }
    let steps = body.matches(';').count() as u64 + 1;
    let threads = threads as u64;
    assert_eq!(stats, Stats { instructions: steps * threads, loads: threads, stores: threads });
    assert_eq!(loads.len() as u64, threads);
    assert!(loads.iter().all(|([thread, address], count)| *address == starts[0] + 4 * thread && *count == 1));
}
