// Soft capping: a score s becomes cap * tanh(s / cap). Both are in base 2, and so is the cap.
//   tanh x = x + x^3 P(x^2) below 0.6, where P has degree 4, and (1 - e) / (1 + e) with e = exp(-2|x|) above: error below 2e-7.
// NaN stays NaN; infinity becomes the cap.
struct SoftCap {
    bool on;
    float cap, inverse;
    static constexpr float NEAR = 0.6f;

    SoftCap(const ls_problem& p) : on(p.softcap > 0), cap(on ? p.softcap * LOG2E : 0.0f), inverse(on ? 1.0f / cap : 0.0f) {}

    // With SLOPES their derivatives, too: 1 - tanh^2.
    template <bool SLOPES>
    void __attribute__((noinline)) apply(int rows, const Pairs& pairs, float* scores, float* slopes) const {
        for (int i = 0; i < rows; i++) {
            Range columns = pairs.columns[i / BLOCK];
            for (int j = columns.begin / L; j * L < columns.end; j++) {
                float* at = scores + i * LS_TILE + j * L;
                vf x = load(at) * inverse, z = x * x, a = float_of(bits_of(x) & 0x7fffffff);
                vf e = exp2_lanes(a * (-2 * LOG2E)), below = splat(1.0f) + e;
                vf p = splat(-5.89515036e-03f);
                p = p * z + 2.07959637e-02f;
                p = p * z - 5.37838265e-02f;
                p = p * z + 1.33319244e-01f;
                p = p * z - 3.33332986e-01f;
                vf far = (1.0f - e) / below;
                far = float_of(bits_of(far) | (bits_of(x) & ~0x7fffffff));
                vi near = a < splat(NEAR);
                vf t = choose(near, x + x * z * p, far);
                store(at, t * cap);
                if (SLOPES) store(slopes + i * LS_TILE + j * L, choose(near, 1.0f - t * t, 4.0f * e / (below * below)));
            }
        }
    }

    // From gradients of capped scores to those of the scores; what does not count stays 0, also where a slope is NaN.
    void __attribute__((noinline)) back(int rows, const Pairs& pairs, float* gradients, const float* slopes) const {
        for (int i = 0; i < rows; i++) {
            Range columns = pairs.columns[i / BLOCK];
            for (int j = columns.begin / L; j * L < columns.end; j++) {
                int at = i * LS_TILE + j * L;
                store(gradients + at, keep(lane_mask(row_bits(pairs.bits[i], j)), load(gradients + at) * load(slopes + at)));
            }
        }
    }
};
