//! Branches, loops, guards and calls, where the threads of a group part.

use super::{check, results};

/// Inputs that send each thread another way.
fn numbers() -> Vec<[u64; 3]> {
    (0..150u64).map(|number| [number, number.wrapping_mul(0x9e37_79b9) % 97 + 1, number % 7]).collect()
}

#[test]
fn loops_end_for_each_thread_in_its_own_time() {
    // How many steps a number takes to 1, halved if it is even, else thrice as much and one.
    let body = "mov.u64 %rd5, %rd2; mov.u32 %r20, 0;\n\
                again: setp.eq.s64 %p1, %rd5, 1; @%p1 bra done;\n\
                add.s32 %r20, %r20, 1; and.b64 %rd6, %rd5, 1; setp.eq.s64 %p2, %rd6, 0; @!%p2 bra odd;\n\
                shr.u64 %rd5, %rd5, 1; bra.uni again;\n\
                odd: mul.lo.s64 %rd5, %rd5, 3; add.s64 %rd5, %rd5, 1; bra.uni again;\n\
                done:";
    check(body, &numbers(), |_, start, _| {
        let (mut value, mut steps) = (start, 0);
        while value != 1 {
            value = if value % 2 == 0 { value / 2 } else { 3 * value + 1 };
            steps += 1;
        }
        steps
    });
}

#[test]
fn nested_loops_and_branches_meet_again() {
    let body = "mov.u32 %r20, 0; mov.u32 %r5, 0;\n\
                outer: setp.ge.s32 %p1, %r5, %r3; @%p1 bra done; mov.u32 %r6, 0;\n\
                inner: setp.gt.s32 %p2, %r6, %r5; @%p2 bra next; setp.eq.s32 %p3, %r6, 2; @%p3 bra skip;\n\
                mad.lo.s32 %r20, %r6, %r2, %r20;\n\
                skip: add.s32 %r6, %r6, 1; bra.uni inner;\n\
                next: add.s32 %r5, %r5, 1; bra.uni outer;\n\
                done: add.s32 %r20, %r20, 1;";
    check(body, &numbers(), |_, factor, count| {
        let mut sum = 1;
        for outer in 0..count {
            sum += (0..=outer).filter(|inner| *inner != 2).map(|inner| inner * factor).sum::<u64>();
        }
        sum
    });
}

#[test]
fn guards_hold_for_one_instruction() {
    let body = "mov.u32 %r20, 5; setp.lt.s32 %p1, %r1, 40; @%p1 mov.u32 %r20, %r2; @!%p1 add.s32 %r20, %r20, %r3;\n\
                setp.eq.s32 %p2, %r3, 3; @%p2 ld.global.u32 %r20, [%rd90+8]; add.s32 %r20, %r20, 1;";
    check(body, &numbers(), |a, b, c| if c == 3 || a < 40 { b + 1 } else { 6 + c });
    // The guard changes in the instruction itself.
    let body = "setp.lt.s32 %p1, %r1, 40; mov.pred %p2, 1; @%p1 setp.eq.and.s32 %p1|%p2, %r3, 3, %p1; selp.u32 %r5, 1, 0, %p1; \
                selp.u32 %r6, 2, 0, %p2; add.s32 %r20, %r5, %r6;";
    check(body, &numbers(), |a, _, c| match (a < 40, c == 3) {
        (false, _) => 2,
        (true, true) => 1,
        (true, false) => 2,
    });
}

#[test]
fn threads_that_are_done_leave_the_others_alone() {
    let body = "mov.u64 %rd20, 77; st.global.u64 [%rd91], %rd20; setp.gt.s32 %p1, %r3, 4; @%p1 exit; setp.gt.s32 %p1, %r3, 2;\n\
                @%p1 ret; add.s64 %rd20, %rd20, %rd2;";
    check(body, &numbers(), |_, b, c| if c > 2 { 77 } else { 77 + b });
}

#[test]
fn tables_of_branches_send_threads_everywhere() {
    let body = "list: .branchtargets zero, one, two, one, zero, two, three;\n\
                brx.idx %r3, list;\n\
                three: mov.u32 %r20, 30; bra end; zero: mov.u32 %r20, 0; bra end; one: mov.u32 %r20, %r2; bra end; \
                two: mul.lo.s32 %r20, %r2, %r2;\n\
                end: add.s32 %r20, %r20, 1;";
    check(body, &numbers(), |_, b, c| match c {
        0 | 4 => 1,
        1 | 3 => b + 1,
        2 | 5 => b * b + 1,
        _ => 31,
    });
}

#[test]
fn functions_get_their_arguments_and_return_results() {
    let before = ".func (.param .align 8 .b8 both[16]) divided(.param .b64 a, .param .b32 b);\n\
                  .func (.param .b64 result) twice(.param .b64 a) { .reg .b64 %rd<4>; ld.param.u64 %rd1, [a]; \
                  add.s64 %rd2, %rd1, %rd1; st.param.b64 [result+0], %rd2; ret; }\n\
                  .func (.param .align 8 .b8 both[16]) divided(.param .b64 a, .param .b32 b) {\n\
                  .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .pred %p<2>; ld.param.u64 %rd1, [a]; ld.param.u32 %r1, [b]; \
                  cvt.u64.u32 %rd2, %r1; setp.eq.s64 %p1, %rd2, 0; mov.u64 %rd3, 9; mov.u64 %rd4, 9; @%p1 bra end;\n\
                  div.u64 %rd3, %rd1, %rd2; rem.u64 %rd4, %rd1, %rd2;\n\
                  end: st.param.b64 [both+0], %rd3; st.param.b64 [both+8], %rd4; ret; }";
    let body = "{ .reg .b32 temp_param_reg; .param .b64 param0; st.param.b64 [param0+0], %rd2; .param .b32 param1; \
                st.param.b32 [param1+0], %r3; .param .align 8 .b8 retval0[16]; call.uni (retval0), divided, (param0, param1); \
                ld.param.v2.u64 {%rd5, %rd6}, [retval0+0]; }\n\
                { .param .b64 param0; st.param.b64 [param0+0], %rd5; .param .b64 retval0; call (retval0), twice, (param0); \
                ld.param.b64 %rd7, [retval0+0]; }\nmad.lo.s64 %rd20, %rd7, 1000, %rd6;";
    for (input, found) in numbers().iter().zip(results(before, body, &numbers())) {
        let [_, b, c] = *input;
        let [quotient, remainder] = [b.checked_div(c), b.checked_rem(c)].map(|value| value.unwrap_or(9));
        assert_eq!(found, 2 * quotient * 1000 + remainder, "of {b} and {c}");
    }
}

#[test]
fn names_in_braces_hide_those_outside() {
    let body = "mov.u32 %r20, 1; { .reg .b32 %r20; mov.u32 %r20, 2; { .reg .b32 %r<30>; mov.u32 %r20, 3; } add.s32 %r5, %r20, 0; } \
                mad.lo.s32 %r20, %r5, 10, %r20;";
    check(body, &numbers(), |_, _, _| 21);
}
