// MaxSim: for each passage and each query token the largest product with a token of the passage.
// Queries and tokens are int8 and their products summed as integers: exact, so every target gives the same bits. Or both are floats.
//
// Lanes are query tokens, packed [vector][word][lane]. A tile of tokens is copied as words once, then each word is spread over the
// lanes and meets all queries.
constexpr int TOKENS = L == 16 ? 12 : 4;  // rows of a tile: as many sums as registers hold, for two vectors of queries
// A tile lies in memory as [piece][token][word]: one address serves all its rows where their distance is a constant.
constexpr int64_t PIECE = 256, PIECE_ROW = PIECE + 16;

// A word is one float.
struct TokenFloats {
    typedef float element;
    typedef vf lanes;
    static constexpr int PER_WORD = 1;
    static LS_INLINE_MEMBER vi words(const float* p) { return bits_of(load(p)); }
    static LS_INLINE_MEMBER vf step(vf sum, vf queries, int32_t token) { return sum + queries * float_of(vi{} + token); }
    static LS_INLINE_MEMBER int32_t start(float) { return 0; }
    static LS_INLINE_MEMBER vf value(vf sum) { return sum; }
};
// A word is two elements of 16 bits.
struct TokenPairs {
    typedef int8_t element;
    typedef vi lanes;
    static constexpr int PER_WORD = 2;
    static LS_INLINE_MEMBER vi words(const int8_t* p) { return widen_bytes(p); }
    static LS_INLINE_MEMBER vi step(vi sum, vi queries, int32_t token) { return sum + add_products(queries, vi{} + token); }
    static LS_INLINE_MEMBER int32_t start(int32_t) { return 0; }
    static LS_INLINE_MEMBER vf value(vi sum) { return __builtin_convertvector(sum, vf); }
};
#if LS_LANES == 16 && defined(__AVX512BW__)
// A word is four bytes, those of tokens plus 128: the instruction takes one factor without a sign.
struct TokenFours {
    typedef int8_t element;
    typedef vi lanes;
    static constexpr int PER_WORD = 4;
    static LS_INLINE_MEMBER vi words(const int8_t* p) { return bits_of(load(reinterpret_cast<const float*>(p))); }
    static LS_INLINE_MEMBER vi step(vi sum, vi queries, int32_t token) {  // assembly, since few CPUs of this target have it
        __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(vi{} + token), "v"(queries));
        return sum;
    }
    static LS_INLINE_MEMBER int32_t start(int32_t sum_of_query) { return -128 * sum_of_query; }
    static LS_INLINE_MEMBER vf value(vi sum) { return __builtin_convertvector(sum, vf); }
};
#endif

template <class T>
struct MaxSim {
    typedef typename T::element element;
    typedef typename T::lanes lanes;
    const ls_max_sim_job& job;
    const ls_max_sim_problem& p = *job.problem;
    const int64_t words = (p.width + T::PER_WORD - 1) / T::PER_WORD, vectors = (p.queries + L - 1) / L;
    float *packed, *starts, *largest, *unsound;  // the last is NaN where a product was not finite, else 0
    int32_t* tile;
    float scales[TOKENS] = {};

    MaxSim(const ls_max_sim_job& job, float* memory) : job(job), packed(memory) {
        starts = packed + vectors * words * L;
        largest = starts + vectors * L;
        unsound = largest + vectors * L;
        tile = reinterpret_cast<int32_t*>(unsound + vectors * L);
    }

    static int64_t scratch(int64_t width, int64_t queries) {
        const int64_t words = (width + T::PER_WORD - 1) / T::PER_WORD, vectors = (queries + L - 1) / L;
        return (vectors * L * (words + 3) + (words + PIECE - 1) / PIECE * TOKENS * PIECE_ROW) * 4;
    }

    // PER_WORD * L elements from element `c` of a row on, those after its end 0.
    LS_INLINE_MEMBER vi words_of(const element* row, int64_t c) const {
        constexpr int64_t count = T::PER_WORD * L;
        if (c + count <= p.width) return T::words(row + c);
        element rest[count] = {};
        __builtin_memcpy(rest, row + c, (p.width - c) * sizeof(element));
        return T::words(rest);
    }

    void pack_queries() const {
        for (int64_t i = 0; i < vectors * L; i++) {  // lanes after the last query repeat it
            const element* query = static_cast<const element*>(job.queries) + (i < p.queries ? i : p.queries - 1) * p.width;
            decltype(query[0] + query[0]) sum = 0;
            for (int64_t c = 0; c < p.width; c++) sum += query[c];
            const int32_t start = T::start(sum);
            __builtin_memcpy(starts + i, &start, 4);
            for (int64_t k = 0; k < words; k += L) {
                const vi own = words_of(query, k * T::PER_WORD);
                for (int64_t j = 0; j < L && k + j < words; j++) {
                    const int32_t word = own[j];
                    __builtin_memcpy(packed + (i / L * words + k + j) * L + i % L, &word, 4);
                }
            }
        }
    }

    // Rows from `row` on; rows after the last repeat it, which changes no maximum.
    void fill_tile(int64_t row, int64_t end) {
        const vi sign = vi{} + (T::PER_WORD == 4 ? int32_t(0x80808080) : 0);
        for (int t = 0; t < TOKENS; t++) {
            const int64_t own = row + t < end ? row + t : end - 1;
            scales[t] = p.scales ? p.scales[own] : 1.0f;
            for (int64_t k = 0; k < words; k += L) {
                const vi some = words_of(static_cast<const element*>(p.tokens) + own * p.width, k * T::PER_WORD) ^ sign;
                __builtin_memcpy(tile + (k / PIECE * TOKENS + t) * PIECE_ROW + k % PIECE, &some, sizeof some);
            }
        }
    }

    // V vectors of queries, from vector `first` on, past the tile.
    template <int V>
    void compare(int64_t first) const {
        lanes sums[TOKENS][V];
#pragma GCC unroll 12
        for (int t = 0; t < TOKENS; t++)
#pragma GCC unroll 2
            for (int v = 0; v < V; v++) sums[t][v] = (lanes)load(starts + (first + v) * L);
        const int32_t* piece = tile;
        for (int64_t from = 0; from < words; from += PIECE, piece += TOKENS * PIECE_ROW) {
            const int64_t count = words - from < PIECE ? words - from : PIECE;
            for (int64_t k = 0; k < count; k++) {
                lanes q[V];
#pragma GCC unroll 2
                for (int v = 0; v < V; v++) q[v] = (lanes)load(packed + ((first + v) * words + from + k) * L);
#pragma GCC unroll 12
                for (int t = 0; t < TOKENS; t++)
#pragma GCC unroll 2
                    for (int v = 0; v < V; v++) sums[t][v] = T::step(sums[t][v], q[v], piece[t * PIECE_ROW + k]);
            }
        }
#pragma GCC unroll 2
        for (int v = 0; v < V; v++) {
            float *most = largest + (first + v) * L, *wrong = unsound + (first + v) * L;
#pragma GCC unroll 12
            for (int t = 0; t < TOKENS; t++) {
                const vf product = T::value(sums[t][v]) * scales[t];
                store(most, larger(product, load(most)));
                if constexpr (T::PER_WORD == 1) store(wrong, load(wrong) + product * 0.0f);
            }
        }
    }

    void passage(int64_t begin, int64_t end, float* out) {
        const float none = -__builtin_inff();
        for (int64_t i = 0; i < vectors * L; i++) largest[i] = none, unsound[i] = 0.0f;
        for (int64_t row = begin; row < end; row += TOKENS) {
            fill_tile(row, end);
            int64_t v = 0;
            for (; v + 2 <= vectors; v += 2) compare<2>(v);
            if (v < vectors) compare<1>(v);
        }
        for (int64_t i = 0; i < p.queries; i++) out[i] = begin < end ? largest[i] * (job.steps ? job.steps[i] : 1.0f) + unsound[i] : none;
    }
};

template <class T>
static void max_sim_by(ls_max_sim_job* job, float* scratch) {
    MaxSim<T> worker(*job, scratch);
    const ls_max_sim_problem& p = *job->problem;
    worker.pack_queries();
    for (int64_t i; (i = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) < p.passages;)
        worker.passage(p.starts[i], p.ends[i], p.maxima + i * p.queries);
}

static int64_t max_sim_scratch(const ls_max_sim_job* job) {
    const ls_max_sim_problem& p = *job->problem;
    return p.scales ? MaxSim<TokenPairs>::scratch(p.width, p.queries) : MaxSim<TokenFloats>::scratch(p.width, p.queries);
}

static void max_sim(ls_max_sim_job* job, float* scratch) {
    if (!job->problem->scales) return max_sim_by<TokenFloats>(job, scratch);
#if LS_LANES == 16 && defined(__AVX512BW__)
    if (job->vnni) return max_sim_by<TokenFours>(job, scratch);
#endif
    max_sim_by<TokenPairs>(job, scratch);
}
