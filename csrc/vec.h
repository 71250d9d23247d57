// One vector of LANES floats, written with the compiler's vector extensions so that one body serves every target.
// Only what the extensions cannot express well (compare-and-test, streaming, gathers, half floats) uses intrinsics.
constexpr int L = LS_LANES;
typedef float vf __attribute__((vector_size(L * 4)));
typedef int32_t vi __attribute__((vector_size(L * 4)));
typedef uint32_t vu __attribute__((vector_size(L * 4)));
typedef uint16_t vh __attribute__((vector_size(L * 2)));
typedef int16_t vs __attribute__((vector_size(L * 2)));

#define LS_INLINE static inline __attribute__((always_inline))
#define LS_INLINE_MEMBER inline __attribute__((always_inline))

LS_INLINE vf load(const float* p) {
    vf v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
}
LS_INLINE void store(float* p, vf v) { __builtin_memcpy(p, &v, sizeof v); }
LS_INLINE vf splat(float x) { return x - vf{}; }
LS_INLINE vi bits_of(vf x) { return (vi)x; }
LS_INLINE vf float_of(vi x) { return (vf)x; }
LS_INLINE vf zero() { return vf{}; }

LS_INLINE vi lane_numbers() {
    vi v;
    for (int i = 0; i < L; i++) v[i] = i;
    return v;
}

// Lane i is all ones where bit i of `bits` is set.
LS_INLINE vi lane_mask(uint32_t bits) {
    vi one = (vi{} + 1) << lane_numbers();
    return ((vi{} + int32_t(bits)) & one) == one;
}

LS_INLINE vf choose(vi mask, vf yes, vf no) {
#if LS_LANES == 8 && defined(__AVX2__)
    return (vf)_mm256_blendv_ps((__m256)no, (__m256)yes, (__m256)mask);
#else
    return float_of((mask & bits_of(yes)) | (~mask & bits_of(no)));
#endif
}
LS_INLINE vf keep(vi mask, vf x) { return float_of(mask & bits_of(x)); }

// a > b ? a : b, so a NaN in `a` is passed over.
LS_INLINE vf larger(vf a, vf b) {
#if LS_LANES == 8 && defined(__AVX2__)
    return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#elif LS_LANES == 16 && defined(__AVX512F__)
    return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#else
    return choose(a > b, a, b);
#endif
}

LS_INLINE bool any_greater(vf a, vf b) {
#if LS_LANES == 8 && defined(__AVX2__)
    return _mm256_movemask_ps(_mm256_cmp_ps((__m256)a, (__m256)b, _CMP_GT_OQ)) != 0;
#elif LS_LANES == 16 && defined(__AVX512F__)
    return _mm512_cmp_ps_mask((__m512)a, (__m512)b, _CMP_GT_OQ) != 0;
#else
    vi m = a > b;
    int32_t any = 0;
    for (int i = 0; i < L; i++) any |= m[i];
    return any != 0;
#endif
}

LS_INLINE float sum_lanes(vf x) {
    float half[L];
    store(half, x);
    for (int w = L / 2; w >= 1; w /= 2)
        for (int i = 0; i < w; i++) half[i] += half[i + w];
    return half[0];
}

LS_INLINE float max_lanes(vf x) {
    float m = x[0];
    for (int i = 1; i < L; i++) m = x[i] > m ? x[i] : m;
    return m;
}

LS_INLINE vf gather(const float* base, const int32_t* index) {
#if LS_LANES == 8 && defined(__AVX2__)
    return (vf)_mm256_i32gather_ps(base, _mm256_loadu_si256((const __m256i*)index), 4);
#elif LS_LANES == 16 && defined(__AVX512F__)
    return (vf)_mm512_i32gather_ps(_mm512_loadu_si512(index), base, 4);
#else
    vf v;
    for (int i = 0; i < L; i++) v[i] = base[index[i]];
    return v;
#endif
}

// Each word is two 16-bit integers: the sums of their products.
LS_INLINE vi add_products(vi a, vi b) {
#if LS_LANES == 8 && defined(__AVX2__)
    return (vi)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif LS_LANES == 16 && defined(__AVX512BW__)
    return (vi)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif LS_LANES == 4 && defined(__SSE2__)
    return (vi)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    return ((vi)((vu)a << 16) >> 16) * ((vi)((vu)b << 16) >> 16) + (a >> 16) * (b >> 16);
#endif
}
// 2 L signed bytes as 16-bit integers.
LS_INLINE vi widen_bytes(const int8_t* p) {
    typedef int8_t bytes __attribute__((vector_size(2 * L)));
    typedef int16_t halves __attribute__((vector_size(4 * L)));
    bytes b;
    __builtin_memcpy(&b, p, sizeof b);
    return (vi)__builtin_convertvector(b, halves);
}

// A store that does not bring the line into the cache: outputs are not read again soon.
LS_INLINE void stream(float* p, vf v) {
#if LS_LANES == 8 && defined(__AVX2__)
    _mm256_stream_ps(p, (__m256)v);
#elif LS_LANES == 16 && defined(__AVX512F__)
    _mm512_stream_ps(p, (__m512)v);
#else
    store(p, v);
#endif
}
LS_INLINE void stream_done() {
#if defined(__AVX2__)
    _mm_sfence();
#endif
}

// Half floats. bfloat16 is the upper half of a float; float16 goes through integers so that no denormal mode can touch it.
LS_INLINE float widen_bf16(uint16_t h) {
    uint32_t u = uint32_t(h) << 16;
    float f;
    __builtin_memcpy(&f, &u, 4);
    return f;
}
LS_INLINE float widen_f16(uint16_t h) {
    uint32_t sign = uint32_t(h & 0x8000) << 16, exponent = (h >> 10) & 31, fraction = h & 1023, u;
    if (exponent == 0) {
        float f = float(int32_t(fraction)) * 0x1p-24f;
        return sign ? -f : f;
    }
    u = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | fraction << 13;
    float f;
    __builtin_memcpy(&f, &u, 4);
    return f;
}
LS_INLINE uint16_t narrow_bf16(float f) {
    uint32_t u;
    __builtin_memcpy(&u, &f, 4);
    if ((u & 0x7fffffffu) > 0x7f800000u) return uint16_t(u >> 16 | 0x40);  // a NaN stays a NaN
    return uint16_t((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
LS_INLINE uint16_t narrow_f16(float f) {
    uint32_t u;
    __builtin_memcpy(&u, &f, 4);
    uint32_t sign = u >> 16 & 0x8000, a = u & 0x7fffffff;
    if (a > 0x7f800000u) return uint16_t(sign | 0x7e00);
    if (a >= 0x477ff000u) return uint16_t(sign | 0x7c00);  // rounds up to infinity
    if (a < 0x38800000u) {                                 // below 2^-14: multiples of 2^-24, round to nearest even
        if (a < 0x33000000u) return uint16_t(sign);
        uint32_t shift = 126 - (a >> 23), fraction = (a & 0x7fffff) | 0x800000, half = 1u << (shift - 1);
        uint32_t q = fraction >> shift, rest = fraction & ((1u << shift) - 1);
        return uint16_t(sign | (q + (rest > half || (rest == half && (q & 1)))));
    }
    return uint16_t(sign | ((a - 0x38000000u + 0xfff + (a >> 13 & 1)) >> 13));
}

// L elements of any dtype as floats, and back.
struct F32 {
    typedef float type;
    static LS_INLINE_MEMBER float get(const float* p) { return *p; }
    static LS_INLINE_MEMBER vf get_lanes(const float* p) { return load(p); }
    static LS_INLINE_MEMBER void put(float* p, float x) { *p = x; }
    static LS_INLINE_MEMBER void put_lanes(float* p, vf x) { store(p, x); }
};
struct BF16 {
    typedef uint16_t type;
    static LS_INLINE_MEMBER float get(const uint16_t* p) { return widen_bf16(*p); }
    static LS_INLINE_MEMBER vf get_lanes(const uint16_t* p) {
        vh h;
        __builtin_memcpy(&h, p, sizeof h);
        return (vf)(__builtin_convertvector(h, vu) << 16);
    }
    static LS_INLINE_MEMBER void put(uint16_t* p, float x) { *p = narrow_bf16(x); }
    static LS_INLINE_MEMBER void put_lanes(uint16_t* p, vf x) {
        for (int i = 0; i < L; i++) p[i] = narrow_bf16(x[i]);
    }
};
struct F16 {
    typedef uint16_t type;
    static LS_INLINE_MEMBER float get(const uint16_t* p) { return widen_f16(*p); }
    static LS_INLINE_MEMBER vf get_lanes(const uint16_t* p) {
#if LS_LANES == 8 && defined(__AVX2__)
        return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p));
#elif LS_LANES == 16 && defined(__AVX512F__)
        return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p));
#else
        vf v;
        for (int i = 0; i < L; i++) v[i] = widen_f16(p[i]);
        return v;
#endif
    }
    static LS_INLINE_MEMBER void put(uint16_t* p, float x) { *p = narrow_f16(x); }
    static LS_INLINE_MEMBER void put_lanes(uint16_t* p, vf x) {
        for (int i = 0; i < L; i++) p[i] = narrow_f16(x[i]);
    }
};
