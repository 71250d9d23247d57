// exp2 of a vector: 2^x = 2^n * 2^f with n = round(x), f in [-1/2, 1/2]; a degree-5 polynomial gives 2^f to 1e-7.
// Below 2^-127 the result is exactly 0, also for -inf: there n = -127 and f = 0, whose bits are those of +0.
// NaN stays NaN. Arguments above 126 do not occur: the caller keeps its reference within 2^24 of the largest score.
LS_INLINE vf exp2_lanes(vf x) {
    const float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer in the low bits
    x = larger(splat(-127.0f), x);    // in this order a NaN comes through
    vf shifted = x + magic;
    vf f = x - (shifted - magic);
    vf p = splat(1.3264727e-3f);
    p = p * f + 9.6715130e-3f;
    p = p * f + 5.5507336e-2f;
    p = p * f + 2.4022242e-1f;
    p = p * f + 6.9314700e-1f;
    p = p * f + 1.0f;
    return (vf)((vu)p + ((vu)shifted << 23));
}

LS_INLINE float exp2_one(float x) { return exp2_lanes(splat(x))[0]; }
