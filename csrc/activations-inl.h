// x * Phi(x), the error-function GELU. The tail h = Phi(-|x|) is 2^-f(|x|), where f is smooth: a polynomial of degree 9 gives
// it with an error in h below 2e-8. Beyond the tail's end, where 1 - h rounds to 1, it is exactly 0.
LS_INLINE vf gelu_lanes(vf x) {
    vf a = float_of(bits_of(x) & 0x7fffffff);
    vf f = splat(1.87275745e-07f);
    f = f * a - 4.52694985e-06f;
    f = f * a + 4.35094626e-05f;
    f = f * a - 1.82064599e-04f;
    f = f * a - 1.70600004e-04f;
    f = f * a + 7.11915968e-03f;
    f = f * a - 5.25354370e-02f;
    f = f * a - 4.59196627e-01f;
    f = f * a - 1.15110624e+00f;
    f = f * a - 1.0f;
    vf h = keep(a < splat(5.7f), exp2_lanes(f));  // NaN and -inf times this 0 are NaN, as in torch
    return x * choose(x > zero(), 1.0f - h, h);
}

// 1 / (1 + e^-x); exactly 0 where e^-x is beyond 2^126.
LS_INLINE vf sigmoid_lanes(vf x) {
    const vf t = x * -1.44269504f, most = splat(126.0f);
    return keep(~(t > most), 1.0f / (1.0f + exp2_lanes(choose(t > most, most, t))));
}

LS_INLINE vf activate(vf x, int32_t kind) {
    switch (kind) {
        case LS_GELU: return gelu_lanes(x);
        case LS_GELU_TANH: return x * sigmoid_lanes(x * (1.59576912f + 0.0713548163f * x * x));  // 2 sqrt(2 / pi) (x + 0.044715 x^3)
        case LS_RELU: return choose(x < zero(), zero(), x);  // in this order a NaN comes through
        case LS_SILU: return x * sigmoid_lanes(x);
        default: return x;
    }
}
