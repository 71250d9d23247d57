LS_INLINE float mean_of(const float* x, int64_t width) {
    vf sum[4] = {};
    int64_t k = 0;
    for (; k + 4 * L <= width; k += 4 * L)
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) sum[i] += load(x + k + i * L);
    for (; k < width; k += L) sum[0] += load_some(x + k, width - k);
    return sum_lanes((sum[0] + sum[1]) + (sum[2] + sum[3])) / float(width);
}

// y = (x - mean) / sqrt(variance + eps) * weight + bias for each row of x, which may be y. A row's bits depend on that row alone.
// In RMS normalization the mean is 0.
static void layer_norm(ls_norm_job* job, float*) {
    const ls_norm& p = *job->norm;
    const int64_t width = p.width;
    for (int64_t unit; (unit = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) < job->units;)
        for (int64_t r = unit * LS_NORM_ROWS; r < p.rows && r < (unit + 1) * LS_NORM_ROWS; r++) {
            const float* x = p.x + r * p.x_row;
            float* y = p.y + r * p.y_row;
            const float mean = p.centered ? mean_of(x, width) : 0.0f;
            int64_t k = 0;
            vf square[4] = {};
            for (; k + 4 * L <= width; k += 4 * L)
#pragma GCC unroll 4
                for (int i = 0; i < 4; i++) {
                    const vf d = load(x + k + i * L) - mean;
                    square[i] += d * d;
                }
            for (; k < width; k += L) {
                const vf d = keep(lane_numbers() < vi{} + int32_t(width - k < L ? width - k : L), load_some(x + k, width - k) - mean);
                square[0] += d * d;
            }
            const float variance = sum_lanes((square[0] + square[1]) + (square[2] + square[3])) / float(width);
            const float scale = 1.0f / __builtin_sqrtf(variance + p.eps);
            for (k = 0; k < width; k += L) {
                const int64_t left = width - k;
                vf v = (load_some(x + k, left) - mean) * scale * load_some(p.weight + k, left);
                if (p.bias) v = v + load_some(p.bias + k, left);
                if (left >= L) {
                    store(y + k, v);
                } else {
                    float some[L];
                    store(some, v);
                    __builtin_memcpy(y + k, some, left * sizeof *some);
                }
            }
        }
}
