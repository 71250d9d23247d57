// Packs rows of a strided tensor into dense float tiles: a plain copy, or a transpose for the right side of a score product.
// Tiles are lists of row numbers, so dilation, gathered tokens and packed documents all look the same from here on.

// Square transpose in registers: at each distance d, lane bit d and row bit d are swapped.
template <int D, size_t... I>
LS_INLINE vf low_halves(vf a, vf b, std::index_sequence<I...>) {
    return __builtin_shufflevector(a, b, int((I & D) ? I - D + L : I)...);
}
template <int D, size_t... I>
LS_INLINE vf high_halves(vf a, vf b, std::index_sequence<I...>) {
    return __builtin_shufflevector(a, b, int((I & D) ? I + L : I + D)...);
}
template <int D>
LS_INLINE void exchange(vf* m) {
    constexpr auto lanes = std::make_index_sequence<L>{};
#pragma GCC unroll 16
    for (int i = 0; i < L; i++)
        if (!(i & D)) {
            vf a = m[i], b = m[i + D];
            m[i] = low_halves<D>(a, b, lanes);
            m[i + D] = high_halves<D>(a, b, lanes);
        }
    if constexpr (D > 1) exchange<D / 2>(m);
}

// Lane i of the result is the sum of the lanes of m[i]; m is used up.
template <int D = L / 2>
LS_INLINE vf sums_of_lanes(vf* m) {
    constexpr auto lanes = std::make_index_sequence<L>{};
#pragma GCC unroll 16
    for (int i = 0; i < D; i++) m[i] = low_halves<D>(m[i], m[i + D], lanes) + high_halves<D>(m[i], m[i + D], lanes);
    if constexpr (D > 1) return sums_of_lanes<D / 2>(m);
    return m[0];
}

static int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

template <class T>
struct Rows {  // one head of a tensor
    const typename T::type* data;
    int64_t row, dim;
    const typename T::type* at(int64_t r) const { return data + r * row; }
};

// Rows of one head are far apart, most of them in pages of their own: they are prefetched some rows ahead.
constexpr int AHEAD = 8;
template <class T>
LS_INLINE void ask_for(Rows<T> x, const int32_t* rows, int from, int to, int dim) {
    for (int i = from; i < to; i++) {
        const char* row = (const char*)x.at(rows[i]);
        for (int64_t b = 0; b < dim * int64_t(sizeof(typename T::type)); b += 64) __builtin_prefetch(row + b);
    }
}

// out[i][d] = x[rows[i]][d] * factor, padded with zeros to `width` columns and LS_TILE rows. Returns whether all is finite.
template <class T>
static __attribute__((noinline)) bool copy_rows(Rows<T> x, const int32_t* rows, int count, int dim, int width, float factor, float* out) {
    vf check = zero();
    ask_for(x, rows, 0, AHEAD < count ? AHEAD : count, dim);
    for (int i = 0; i < count; i++) {
        if (i + AHEAD < count) ask_for(x, rows, i + AHEAD, i + AHEAD + 1, dim);
        const typename T::type* from = x.at(rows[i]);
        float* to = out + int64_t(i) * width;
        int d = 0;
        if (x.dim == 1)
            for (; d + L <= dim; d += L) {
                vf y = T::get_lanes(from + d) * factor;
                check += y * 0.0f;
                store(to + d, y);
            }
        for (; d < dim; d++) {
            to[d] = T::get(from + d * x.dim) * factor;
            check[0] += to[d] * 0.0f;
        }
        for (; d < width; d++) to[d] = 0.0f;
    }
    if (count < LS_TILE) __builtin_memset(out + int64_t(count) * width, 0, sizeof(float) * (LS_TILE - count) * width);
    return sum_lanes(check) == 0.0f;
}

// out[d][i] = x[rows[i]][d] * factor: LS_TILE columns, missing rows are zero columns.
template <class T>
static __attribute__((noinline)) void transpose_rows(Rows<T> x, const int32_t* rows, int count, int dim, float factor, float* out) {
    if (count < LS_TILE) __builtin_memset(out, 0, sizeof(float) * LS_TILE * dim);
    int i = 0;
    if (x.dim == 1)
        for (; i + L <= count; i += L) {
            ask_for(x, rows, i + L, i + 2 * L < count ? i + 2 * L : count, dim);
            const typename T::type* from[L];
            for (int r = 0; r < L; r++) from[r] = x.at(rows[i + r]);
            int d = 0;
            for (; d + L <= dim; d += L) {
                vf m[L];
#pragma GCC unroll 16
                for (int r = 0; r < L; r++) m[r] = T::get_lanes(from[r] + d) * factor;
                exchange<L / 2>(m);
#pragma GCC unroll 16
                for (int r = 0; r < L; r++) store(out + int64_t(d + r) * LS_TILE + i, m[r]);
            }
            for (; d < dim; d++)
                for (int r = 0; r < L; r++) out[int64_t(d) * LS_TILE + i + r] = T::get(from[r] + d) * factor;
        }
    for (; i < count; i++) {
        const typename T::type* from = x.at(rows[i]);
        for (int d = 0; d < dim; d++) out[int64_t(d) * LS_TILE + i] = T::get(from + d * x.dim) * factor;
    }
}
