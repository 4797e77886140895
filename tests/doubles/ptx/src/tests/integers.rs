//! Integers and bits.

use super::{INTEGERS, check, pairs};

fn whole(body: &str, expected: impl Fn(u64, u64, u64) -> u64) {
    check(body, &pairs(&INTEGERS), expected);
}

fn of_i16(value: i16) -> u64 {
    u64::from(value.cast_unsigned())
}

fn of_i32(value: i32) -> u64 {
    u64::from(value.cast_unsigned())
}

#[test]
fn sums_and_products_wrap_around() {
    whole("add.s64 %rd20, %rd1, %rd2;", |a, b, _| a.wrapping_add(b));
    whole("sub.u32 %r20, %r1, %r2;", |a, b, _| u64::from((a as u32).wrapping_sub(b as u32)));
    whole("add.s16 %rs20, %rs1, -3;", |a, _, _| u64::from((a as u16).wrapping_sub(3)));
    whole("mul.lo.s64 %rd20, %rd1, %rd2;", |a, b, _| a.wrapping_mul(b));
    whole("mad.lo.s32 %r20, %r1, %r2, %r3;", |a, b, c| {
        u64::from((a as u32).wrapping_mul(b as u32).wrapping_add(c as u32))
    });
    whole("mul.hi.s16 %rs20, %rs1, %rs2;", |a, b, _| {
        of_i16(((i32::from(a as i16) * i32::from(b as i16)) >> 16) as i16)
    });
    whole("mul.hi.u32 %r20, %r1, %r2;", |a, b, _| (u64::from(a as u32) * u64::from(b as u32)) >> 32);
    whole("mul.hi.s32 %r20, %r1, %r2;", |a, b, _| of_i32(((i64::from(a as i32) * i64::from(b as i32)) >> 32) as i32));
    whole("mul.hi.s64 %rd20, %rd1, %rd2;", |a, b, _| ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64);
    whole("mul.wide.s32 %rd20, %r1, %r2;", |a, b, _| (i64::from(a as i32) * i64::from(b as i32)) as u64);
    whole("mul.wide.u16 %r20, %rs1, %rs2;", |a, b, _| u64::from(a as u16) * u64::from(b as u16));
    whole("mad.wide.u32 %rd20, %r1, %r2, %rd3;", |a, b, c| (u64::from(a as u32) * u64::from(b as u32)).wrapping_add(c));
    whole("mad.hi.u32 %r20, %r1, %r2, %r3;", |a, b, c| {
        u64::from((((u64::from(a as u32) * u64::from(b as u32)) >> 32) as u32).wrapping_add(c as u32))
    });
    whole("sad.s32 %r20, %r1, %r2, %r3;", |a, b, c| u64::from((c as u32).wrapping_add((a as i32).abs_diff(b as i32))));
}

#[test]
fn quotients_are_truncated_and_the_least_number_wraps() {
    whole(
        "div.s64 %rd20, %rd1, %rd2;",
        |a, b, _| {
            if b == 0 { u64::MAX } else { (a as i64).wrapping_div(b as i64) as u64 }
        },
    );
    whole("rem.s64 %rd20, %rd1, %rd2;", |a, b, _| if b == 0 { a } else { (a as i64).wrapping_rem(b as i64) as u64 });
    whole("div.u16 %rs20, %rs1, %rs2;", |a, b, _| u64::from((a as u16).checked_div(b as u16).unwrap_or(u16::MAX)));
    whole("rem.s32 %r20, %r1, 7;", |a, _, _| of_i32((a as i32) % 7));
    whole("div.s32 %r20, %r1, -1;", |a, _, _| of_i32((a as i32).wrapping_neg()));
}

#[test]
fn extremes_and_signs_follow_the_type() {
    whole("min.s32 %r20, %r1, %r2;", |a, b, _| of_i32((a as i32).min(b as i32)));
    whole("max.u32 %r20, %r1, %r2;", |a, b, _| u64::from((a as u32).max(b as u32)));
    whole("max.s16 %rs20, %rs1, %rs2;", |a, b, _| of_i16((a as i16).max(b as i16)));
    whole("min.u64 %rd20, %rd1, %rd2;", |a, b, _| a.min(b));
    whole("abs.s64 %rd20, %rd1;", |a, _, _| (a as i64).wrapping_abs() as u64);
    whole("neg.s16 %rs20, %rs1;", |a, _, _| of_i16((a as i16).wrapping_neg()));
}

#[test]
fn carries_reach_the_next_word() {
    let body = "add.cc.u32 %r10, %r1, %r2; mov.b64 {%r5, %r6}, %rd1; mov.b64 {%r7, %r8}, %rd2; addc.u32 %r11, %r6, %r8; \
                mov.b64 %rd20, {%r10, %r11};";
    whole(body, |a, b, _| a.wrapping_add(b));
    let body = "mov.b64 {%r5, %r6}, %rd1; mov.b64 {%r7, %r8}, %rd2; sub.cc.u32 %r10, %r5, %r7; subc.u32 %r11, %r6, %r8; \
                mov.b64 %rd20, {%r10, %r11};";
    whole(body, |a, b, _| a.wrapping_sub(b));
    // The upper half of 64 by 64 bits, from products of 32 bits.
    let body = "mov.b64 {%r5, %r6}, %rd1; mov.b64 {%r7, %r8}, %rd2; mul.hi.u32 %r30, %r5, %r7; \
                mad.lo.cc.u32 %r30, %r5, %r8, %r30; madc.hi.u32 %r31, %r5, %r8, 0; \
                mad.lo.cc.u32 %r30, %r6, %r7, %r30; madc.hi.cc.u32 %r31, %r6, %r7, %r31; addc.u32 %r32, 0, 0; \
                mad.lo.cc.u32 %r31, %r6, %r8, %r31; madc.hi.u32 %r32, %r6, %r8, %r32; mov.b64 %rd20, {%r31, %r32};";
    whole(body, |a, b, _| ((u128::from(a) * u128::from(b)) >> 64) as u64);
}

#[test]
fn shifts_beyond_the_width_leave_zeros_or_the_sign() {
    whole("shl.b64 %rd20, %rd1, %r2;", |a, b, _| a.checked_shl(b as u32).unwrap_or(0));
    whole("shr.u32 %r20, %r1, %r2;", |a, b, _| u64::from((a as u32).checked_shr(b as u32).unwrap_or(0)));
    whole("shr.s32 %r20, %r1, %r2;", |a, b, _| of_i32((a as i32) >> (b as u32).min(31)));
    whole("shr.s16 %rs20, %rs1, %r2;", |a, b, _| of_i16((a as i16) >> (b as u32).min(15)));
    whole("shl.b16 %rs20, %rs1, 9;", |a, _, _| u64::from((a as u16) << 9));
    whole("shf.l.wrap.b32 %r20, %r1, %r2, %r3;", |a, b, c| {
        let both = u64::from(b as u32) << 32 | u64::from(a as u32);
        both << (c & 31) >> 32
    });
    whole("shf.r.clamp.b32 %r20, %r1, %r2, %r3;", |a, b, c| {
        let both = u64::from(b as u32) << 32 | u64::from(a as u32);
        both >> (c as u32).min(32) & 0xffff_ffff
    });
}

#[test]
fn bits_are_counted_turned_and_moved() {
    whole("and.b32 %r20, %r1, %r2;", |a, b, _| a & b & 0xffff_ffff);
    whole("or.b16 %rs20, %rs1, %rs2;", |a, b, _| (a | b) & 0xffff);
    whole("xor.b64 %rd20, %rd1, %rd2;", |a, b, _| a ^ b);
    whole("not.b32 %r20, %r1;", |a, _, _| !a & 0xffff_ffff);
    whole("popc.b64 %r20, %rd1;", |a, _, _| u64::from(a.count_ones()));
    whole("clz.b32 %r20, %r1;", |a, _, _| u64::from((a as u32).leading_zeros()));
    whole("brev.b32 %r20, %r1;", |a, _, _| u64::from((a as u32).reverse_bits()));
    whole("bfind.u32 %r20, %r1;", |a, _, _| u64::from((a as u32).checked_ilog2().unwrap_or(u32::MAX)));
    whole("bfind.s64 %r20, %rd1;", |a, _, _| {
        let bits = if (a as i64) < 0 { !a } else { a };
        u64::from(bits.checked_ilog2().unwrap_or(u32::MAX))
    });
    whole("bfind.shiftamt.u32 %r20, %r1;", |a, _, _| {
        if a as u32 == 0 { 0xffff_ffff } else { u64::from((a as u32).leading_zeros()) }
    });
    whole("bfe.u32 %r20, %r1, 4, 9;", |a, _, _| a >> 4 & 0x1ff);
    whole("bfe.s32 %r20, %r1, 4, 9;", |a, _, _| of_i32((a as i32) << 19 >> 23));
    whole("bfe.s32 %r20, %r1, 28, 9;", |a, _, _| of_i32((a as i32) >> 28));
    whole("bfe.u64 %rd20, %rd1, 70, 3;", |_, _, _| 0);
    whole("bfi.b64 %rd20, %rd1, %rd2, 11, 60;", |a, b, _| b & 0x7ff | a << 11);
    whole("bfi.b32 %r20, %r1, %r2, 8, 8;", |a, b, _| b & 0xffff_00ff | (a & 0xff) << 8);
    whole("prmt.b32 %r20, %r1, %r2, 0xf604;", |a, b, _| {
        let bytes = [(a as u32).to_le_bytes(), (b as u32).to_le_bytes()].concat();
        let sign = if bytes[7] > 0x7f { 0xff } else { 0 };
        u64::from(u32::from_le_bytes([bytes[4], bytes[0], bytes[6], sign]))
    });
}

#[test]
fn predicates_follow_comparisons() {
    whole("setp.lt.s32 %p20, %r1, %r2;", |a, b, _| u64::from((a as i32) < b as i32));
    whole("setp.lt.u32 %p20, %r1, %r2;", |a, b, _| u64::from((a as u32) < b as u32));
    whole("setp.hs.u64 %p20, %rd1, %rd2;", |a, b, _| u64::from(a >= b));
    whole("setp.ne.b64 %p20, %rd1, %rd2;", |a, b, _| u64::from(a != b));
    whole("setp.eq.s16 %p20, %rs1, %rs2;", |a, b, _| u64::from(a as u16 == b as u16));
    whole("setp.gt.s64 %p1, %rd1, %rd2; setp.lt.or.s64 %p20, %rd2, %rd3, %p1;", |a, b, c| {
        u64::from((a as i64) > b as i64 || (b as i64) < c as i64)
    });
    whole("setp.gt.s64 %p1, %rd1, %rd2; setp.lt.and.s64 %p20, %rd2, %rd3, !%p1;", |a, b, c| {
        u64::from((a as i64) <= b as i64 && (b as i64) < c as i64)
    });
    let pair = "setp.gt.u64 %p1, %rd1, %rd2; setp.lt.xor.u64 %p1|%p2, %rd2, %rd3, %p1; selp.u32 %r5, 1, 0, %p1; \
                selp.u32 %r6, 2, 0, %p2; add.s32 %r20, %r5, %r6;";
    whole(pair, |a, b, c| u64::from((b < c) ^ (a > b)) + 2 * u64::from((b >= c) ^ (a > b)));
    whole("setp.eq.u64 %p1, %rd1, %rd2; not.pred %p2, %p1; mov.pred %p3, 1; and.pred %p20, %p2, %p3;", |a, b, _| {
        u64::from(a != b)
    });
    whole("setp.eq.u64 %p1, %rd1, %rd2; selp.b64 %rd20, %rd3, -5, %p1;", |a, b, c| {
        if a == b { c } else { (-5i64).cast_unsigned() }
    });
}

#[test]
fn integers_of_other_sizes_keep_their_sign() {
    whole("cvt.s64.s32 %rd20, %r1;", |a, _, _| i64::from(a as i32) as u64);
    whole("cvt.u64.u16 %rd20, %rs1;", |a, _, _| u64::from(a as u16));
    whole("cvt.s32.s8 %r20, %r1;", |a, _, _| of_i32(i32::from(a as i8)));
    whole("cvt.s16.s8 %rs20, %r1;", |a, _, _| of_i16(i16::from(a as i8)));
    whole("cvt.u16.u8 %rs20, %rs1;", |a, _, _| a & 0xff);
    whole("cvt.u32.u8 %r20, %rs1;", |a, _, _| a & 0xff);
    whole("cvt.s64.s8 %rd20, %rs1;", |a, _, _| i64::from(a as i8) as u64);
    whole("cvt.sat.s16.s64 %rs20, %rd1;", |a, _, _| of_i16((a as i64).clamp(-32768, 32767) as i16));
    whole("cvt.sat.u32.s64 %r20, %rd1;", |a, _, _| (a as i64).clamp(0, 0xffff_ffff) as u64);
}

#[test]
fn registers_are_split_and_joined() {
    whole("mov.b64 {%r5, %r6}, %rd1; mov.b64 %rd20, {%r6, %r5};", |a, _, _| a.rotate_left(32));
    whole("mov.b64 {_, %r20}, %rd1;", |a, _, _| a >> 32);
    whole("mov.b32 {%rs5, %rs6}, %r1; mov.b32 %r20, {%rs6, %rs5};", |a, _, _| u64::from((a as u32).rotate_left(16)));
    let body = "mov.b64 {%rs5, %rs6, %rs7, %rs8}, %rd1; mov.b64 %rd20, {%rs8, %rs7, %rs6, %rs5};";
    whole(body, |a, _, _| a.rotate_left(16) & 0xffff | (a >> 32 & 0xffff) << 16 | (a >> 16 & 0xffff) << 32 | a << 48);
}
