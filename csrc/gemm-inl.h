// C[i][j] (+)= sum over t of A(i, t) * B[t][j], the only matrix product of the kernels.
// A is read as scalars (element (i, t) at a[i * row + t * col]), B and C as vectors along j.
// BLOCK rows by WIDE vectors of C stay in registers: 24 accumulators of 32 registers, or 12 of 16.
constexpr int BLOCK = L == 16 ? 6 : 4;
constexpr int WIDE = L == 16 ? 4 : 3;

struct Operand {
    const float* data;
    int64_t row, col;
};

template <int R, int NV, bool ADD>
LS_INLINE void micro(const float* a, int64_t row, int64_t col, const float* b, int64_t ldb, int64_t depth, float* c,
                     int64_t ldc) {
    vf acc[R][NV];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
#pragma GCC unroll 8
        for (int n = 0; n < NV; n++) acc[r][n] = ADD ? load(c + r * ldc + n * L) : zero();
    do {  // depth is at least 1
        vf bv[NV];
#pragma GCC unroll 8
        for (int n = 0; n < NV; n++) bv[n] = load(b + n * L);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            vf av = splat(a[r * row]);
#pragma GCC unroll 8
            for (int n = 0; n < NV; n++) acc[r][n] += av * bv[n];
        }
        a += col;
        b += ldb;
    } while (--depth);
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
#pragma GCC unroll 8
        for (int n = 0; n < NV; n++) store(c + r * ldc + n * L, acc[r][n]);
}

// What is left of a row block when fewer than N + 1 vectors remain.
template <int R, int N, bool ADD>
LS_INLINE void rest_of_row_block(const float* a, int64_t row, int64_t col, const float* b, int64_t ldb, int64_t depth, float* c,
                                 int64_t ldc, int64_t vectors) {
    if constexpr (N > 0) {
        if (vectors == N) return micro<R, N, ADD>(a, row, col, b, ldb, depth, c, ldc);
        rest_of_row_block<R, N - 1, ADD>(a, row, col, b, ldb, depth, c, ldc, vectors);
    }
}

// R rows of C, `vectors` vectors wide. Few rows take more vectors at once, to keep the adders busy.
template <int R, bool ADD>
static void row_block(const float* a, int64_t row, int64_t col, const float* b, int64_t ldb, int64_t depth, float* c,
                      int64_t ldc, int64_t vectors) {
    constexpr int N = R == 1 ? 8 : R == 2 ? 4 : WIDE;
    for (; vectors >= N; vectors -= N, b += N * L, c += N * L) micro<R, N, ADD>(a, row, col, b, ldb, depth, c, ldc);
    rest_of_row_block<R, N - 1, ADD>(a, row, col, b, ldb, depth, c, ldc, vectors);
}

template <bool ADD>
LS_INLINE void rows_of(int rows, const float* a, int64_t row, int64_t col, const float* b, int64_t ldb, int64_t depth,
                       float* c, int64_t ldc, int64_t vectors) {
    switch (rows) {
#if LS_LANES == 16
        case 6: return row_block<6, ADD>(a, row, col, b, ldb, depth, c, ldc, vectors);
        case 5: return row_block<5, ADD>(a, row, col, b, ldb, depth, c, ldc, vectors);
#endif
        case 4: return row_block<4, ADD>(a, row, col, b, ldb, depth, c, ldc, vectors);
        case 3: return row_block<3, ADD>(a, row, col, b, ldb, depth, c, ldc, vectors);
        case 2: return row_block<2, ADD>(a, row, col, b, ldb, depth, c, ldc, vectors);
        case 1: return row_block<1, ADD>(a, row, col, b, ldb, depth, c, ldc, vectors);
    }
}

// As rows_of<true>, but a zero in A contributes nothing even against NaN or infinity in B: what may not be seen cannot hurt.
static void rows_of_guarded(int rows, const float* a, int64_t row, int64_t col, const float* b, int64_t ldb, int64_t depth,
                            float* c, int64_t ldc, int64_t vectors) {
    for (int r = 0; r < rows; r++)
        for (int64_t t = 0; t < depth; t++) {
            float x = a[r * row + t * col];
            if (x == 0.0f) continue;
            for (int64_t n = 0; n < vectors; n++)
                store(c + r * ldc + n * L, load(c + r * ldc + n * L) + splat(x) * load(b + t * ldb + n * L));
        }
}

// Dot products of R rows of A with N rows of B, left as lanes yet to be added up.
template <int R, int N>
LS_INLINE void dots(const float* a, int64_t lda, const float* b, int64_t ldb, int64_t depth, vf lanes[R][L], int first) {
    vf acc[R][N] = {};
    for (int64_t d = 0; d < depth; d += L) {
        vf bv[N];
#pragma GCC unroll 8
        for (int n = 0; n < N; n++) bv[n] = load(b + n * ldb + d);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            vf av = load(a + r * lda + d);
#pragma GCC unroll 8
            for (int n = 0; n < N; n++) acc[r][n] += av * bv[n];
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; r++)
#pragma GCC unroll 8
        for (int n = 0; n < N; n++) lanes[r][first + n] = acc[r][n];
}

// Columns begin..end of a group of rows (in keys), empty when begin == end.
struct Range {
    int begin, end;
};

// Adds, group of BLOCK rows by group, the product over that group's own depth range.
LS_INLINE void add_product(int rows, const Range* depth, Operand a, const float* b, int64_t ldb, float* c, int64_t ldc,
                           int64_t vectors, bool finite) {
    for (int i = 0, g = 0; i < rows; i += BLOCK, g++) {
        int n = rows - i < BLOCK ? rows - i : BLOCK;
        Range range = depth[g];
        if (range.begin == range.end) continue;
        const float* from = a.data + i * a.row + range.begin * a.col;
        if (finite)
            rows_of<true>(n, from, a.row, a.col, b + range.begin * ldb, ldb, range.end - range.begin, c + i * ldc, ldc, vectors);
        else
            rows_of_guarded(n, from, a.row, a.col, b + range.begin * ldb, ldb, range.end - range.begin, c + i * ldc, ldc, vectors);
    }
}

// Writes, group by group, the vectors of C that cover that group's own column range.
LS_INLINE void set_product(int rows, const Range* columns, const float* a, int64_t row, int64_t depth, const float* b,
                           int64_t ldb, float* c, int64_t ldc) {
    for (int i = 0, g = 0; i < rows; i += BLOCK, g++) {
        int n = rows - i < BLOCK ? rows - i : BLOCK;
        Range range = columns[g];
        if (range.begin == range.end) continue;
        int first = range.begin / L, last = (range.end + L - 1) / L;
        rows_of<false>(n, a + i * row, row, 1, b + first * L, ldb, depth, c + i * ldc + first * L, ldc, last - first);
    }
}
