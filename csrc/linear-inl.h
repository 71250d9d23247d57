// y = act(x W' + b) * times + plus for the rows of x: a linear layer in float32, or with weights in int8 and rows of x in 16 or 8 bits.
// An output is a sum over the inputs in one order, cut at fixed places: its bits depend on its own row and nothing else.
//
// A unit of work is a band of rows by a panel of outputs. The panel's weights are packed, [input][output], a depth at a time:
// then every row of the band streams past them. Packing costs a hundredth, so packed weights are not kept; for a few rows, as in
// a step of a decoder, it would cost more than reading the weights, and is left out.
// All kinds read words of 32 bits: a float, two neighboring inputs of 16 bits each, or four of 8.
constexpr int64_t DEPTH = 768;  // words of a packed panel, which stays in the second-level cache

struct Floats {
    typedef vf lanes;
    typedef float weight;
    static constexpr int ROWS = BLOCK, VECTORS = WIDE, PER_WORD = 1;
    static constexpr int64_t CUT = 384;  // words after which a sum is put aside: shorter sums are more exact
    static LS_INLINE_MEMBER vf spread(const float* word) { return splat(*word); }
    static LS_INLINE_MEMBER vf step(vf sum, vf a, vf b) { return sum + a * b; }
    static LS_INLINE_MEMBER vf words(const float* w) { return load(w); }
    static LS_INLINE_MEMBER void count(vi&, vf) {}
};

// Inputs of 16 bits: the row's largest is as many steps as sums have room for.
struct InputPairs {
    typedef vi lanes;
    typedef int8_t weight;
    static constexpr int ROWS = 6, VECTORS = L == 16 ? 4 : 2, PER_WORD = 2;
    static constexpr int64_t CUT = DEPTH;  // integers are exact
    static LS_INLINE_MEMBER vi spread(const float* word) {
        int32_t bits;
        __builtin_memcpy(&bits, word, 4);
        return vi{} + bits;
    }
    static LS_INLINE_MEMBER vi step(vi sum, vi a, vi b) { return sum + add_products(a, b); }
    static LS_INLINE_MEMBER vf words(const int8_t* w) { return float_of(widen_bytes(w)); }
    static LS_INLINE_MEMBER void count(vi&, vf) {}
};

#if LS_LANES == 16 && defined(__AVX512BW__)
// Inputs of 8 bits without a sign, from the row's smallest to its largest: 128 stands for the middle, whose product with the
// weights is added at the end.
struct InputFours {
    typedef vi lanes;
    typedef int8_t weight;
    static constexpr int ROWS = 6, VECTORS = 4, PER_WORD = 4;
    static constexpr int64_t CUT = DEPTH;
    static LS_INLINE_MEMBER vi spread(const float* word) { return InputPairs::spread(word); }
    static LS_INLINE_MEMBER vi step(vi sum, vi a, vi b) {  // assembly, since few CPUs of this target have it
        __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
        return sum;
    }
    static LS_INLINE_MEMBER vf words(const int8_t* w) { return load(reinterpret_cast<const float*>(w)); }
    static LS_INLINE_MEMBER void count(vi& total, vf word) { total = step(total, vi{} + 0x01010101, bits_of(word)); }
};
constexpr bool FOURS = true;
#else
constexpr bool FOURS = false;
#endif

template <class T>
constexpr int PANEL = T::VECTORS * L;

// `count` floats, then lanes of 0.
LS_INLINE vf load_some(const float* p, int64_t count) {
    if (count >= L) return load(p);
    float some[L] = {};
    __builtin_memcpy(some, p, count * sizeof *p);
    return load(some);
}

// `depth` words from word `from` of `count` rows of weights, as [word][row of the panel]. Rows after the last repeat it.
// `totals` of the rows grow by the weights, where they are wanted.
template <class T>
static void pack_panel(const typename T::weight* weights, int64_t stride, int64_t inputs, int64_t from, int64_t depth, int64_t count,
                       float* out, vi* totals) {
    for (int v = 0; v < T::VECTORS; v++) {
        const typename T::weight* row[L];
        for (int i = 0; i < L; i++) row[i] = weights + (v * L + i < count ? v * L + i : count - 1) * stride;
        for (int64_t k = 0; k < depth; k += L) {
            const int64_t at = (from + k) * T::PER_WORD, left = inputs - at;
            vf m[L];
            if (left >= L * T::PER_WORD) {
#pragma GCC unroll 16
                for (int i = 0; i < L; i++) m[i] = T::words(row[i] + at);
            } else {
                typename T::weight rest[L * T::PER_WORD] = {};
                for (int i = 0; i < L; i++) {
                    __builtin_memcpy(rest, row[i] + at, left * sizeof *rest);
                    m[i] = T::words(rest);
                }
            }
            exchange<L / 2>(m);
            for (int i = 0; i < L && k + i < depth; i++) {
                store(out + (k + i) * PANEL<T> + v * L, m[i]);
                T::count(totals[v], m[i]);
            }
        }
    }
}

// The same of floats that lie across, (inputs, outputs), from their input `weights` on: nothing is to be transposed.
static void pack_across(const float* weights, int64_t row, int64_t depth, int64_t count, float* out) {
    for (int64_t k = 0; k < depth; k++)
        for (int n = 0; n < PANEL<Floats>; n += L)
            store(out + k * PANEL<Floats> + n, n < count ? load_some(weights + k * row + n, count - n) : zero());
}

// R rows of x, from `a` on, times the packed panel: to `sums`, or added to it.
template <class T, int R>
static void multiply(const float* a, int64_t row, const float* b, int64_t depth, float* sums, bool add) {
    typedef typename T::lanes lanes;
    for (int64_t d = 0; d < depth || d == 0; d += T::CUT, add = true) {
        lanes acc[R][T::VECTORS] = {};
        auto step = [&](int64_t k) __attribute__((always_inline)) {
            lanes bv[T::VECTORS];
#pragma GCC unroll 8
            for (int n = 0; n < T::VECTORS; n++) bv[n] = (lanes)load(b + n * L);
#pragma GCC unroll 8
            for (int r = 0; r < R; r++) {
                lanes av = T::spread(a + r * row + k);
#pragma GCC unroll 8
                for (int n = 0; n < T::VECTORS; n++) acc[r][n] = T::step(acc[r][n], av, bv[n]);
            }
            b += PANEL<T>;
        };
        const int64_t end = d + T::CUT < depth ? d + T::CUT : depth;
        int64_t k = d;
        for (; k + 16 <= end; k += 16) {
#pragma GCC unroll 8
            for (int r = 0; r < R; r++) __builtin_prefetch(a + (r + R) * row + k);  // the next rows
#pragma GCC unroll 1
            for (int i = 0; i < 16; i++) step(k + i);
        }
        for (; k < end; k++) step(k);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++)
#pragma GCC unroll 8
            for (int n = 0; n < T::VECTORS; n++) {
                float* to = sums + r * PANEL<T> + n * L;
                store(to, (vf)(add ? (lanes)load(to) + acc[r][n] : acc[r][n]));
            }
    }
}

template <class T, int R>
LS_INLINE void multiply_rest(int64_t rows, const float* a, int64_t row, const float* b, int64_t depth, float* sums, bool add) {
    if constexpr (R > 0) {
        if (rows == R) return multiply<T, R>(a, row, b, depth, sums, add);
        multiply_rest<T, R - 1>(rows, a, row, b, depth, sums, add);
    }
}

// Few rows of x, from `a` on, past L rows of weights, which are transposed in registers and used at once: packing them would take
// longer than all else. An output is the same sum as in `multiply`. Rows of weights after the last repeat it.
template <int R>
static void multiply_thin(const float* a, int64_t a_row, const float* weights, int64_t stride, int64_t inputs, int64_t count,
                          float* sums) {
    const float* row[L];
    for (int i = 0; i < L; i++) row[i] = weights + (i < count ? i : count - 1) * stride;
    for (int64_t d = 0; d < inputs || d == 0; d += Floats::CUT) {
        const int64_t end = d + Floats::CUT < inputs ? d + Floats::CUT : inputs;
        vf acc[R] = {}, m[L];
        auto step = [&](int64_t k, int i) __attribute__((always_inline)) {
#pragma GCC unroll 8
            for (int r = 0; r < R; r++) acc[r] = Floats::step(acc[r], splat(a[r * a_row + k + i]), m[i]);
        };
        int64_t k = d;
        for (; k + L <= end; k += L) {
#pragma GCC unroll 16
            for (int i = 0; i < L; i++) m[i] = load(row[i] + k);
            exchange<L / 2>(m);
#pragma GCC unroll 16
            for (int i = 0; i < L; i++) step(k, i);
        }
        if (k < end) {
            for (int i = 0; i < L; i++) m[i] = load_some(row[i] + k, end - k);
            exchange<L / 2>(m);
            for (int i = 0; i < end - k; i++) step(k, i);
        }
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
            float* to = sums + r * PANEL<Floats>;
            store(to, d > 0 ? load(to) + acc[r] : acc[r]);
        }
    }
}

template <int R>
LS_INLINE void multiply_thin_rest(int64_t rows, const float* a, int64_t a_row, const float* weights, int64_t stride, int64_t inputs,
                                  int64_t count, float* sums) {
    if constexpr (R > 0) {
        if (rows == R) return multiply_thin<R>(a, a_row, weights, stride, inputs, count, sums);
        multiply_thin_rest<R - 1>(rows, a, a_row, weights, stride, inputs, count, sums);
    }
}

// What turns the sums of a panel into outputs.
template <class T>
struct Finish {
    const ls_layer& layer;
    int64_t first;
    vf scale[T::VECTORS], bias[T::VECTORS];
    vi totals[T::VECTORS] = {};

    Finish(const ls_layer& layer, int64_t first) : layer(layer), first(first) {
        for (int n = 0; n < T::VECTORS; n++) {
            scale[n] = layer.scales ? some_of(layer.scales, n) : splat(1.0f);
            bias[n] = layer.bias ? some_of(layer.bias, n) : zero();
        }
    }
    vf some_of(const float* list, int n) const {
        const int64_t at = first + n * L;
        return at < layer.outputs ? load_some(list + at, layer.outputs - at) : zero();
    }

    LS_INLINE_MEMBER vf value(vf sum, int n, ls_steps steps) const {
        if constexpr (T::PER_WORD == 1) return sum;
        if constexpr (T::PER_WORD == 2) return __builtin_convertvector(bits_of(sum), vf) * scale[n] * steps.size;
        const vf total = __builtin_convertvector(totals[n], vf);
        return (__builtin_convertvector(bits_of(sum) - totals[n] * 128, vf) * steps.size + total * steps.middle) * scale[n];
    }

    LS_INLINE_MEMBER void row(int64_t row, const float* sums, ls_steps steps) const {
#pragma GCC unroll 8
        for (int n = 0; n < T::VECTORS; n++) {
            vf y = value(load(sums + n * L), n, steps) + bias[n];
            y = activate(y, layer.act);
            if (layer.times) y = y * some_of(layer.times + row * layer.times_row, n);
            if (layer.plus) y = y + some_of(layer.plus + row * layer.plus_row, n);
            const int64_t at = first + n * L;
            if (at + L <= layer.outputs) {
                store(layer.y + row * layer.y_row + at, y);
            } else if (at < layer.outputs) {
                float some[L];
                store(some, y);
                __builtin_memcpy(layer.y + row * layer.y_row + at, some, (layer.outputs - at) * sizeof *some);
            }
        }
    }
};

// One band by one panel.
template <class T>
static void panel(const ls_linear_job& job, int64_t band, int64_t number, float* scratch) {
    const ls_layer& layer = *job.layer;
    const int64_t words = (layer.inputs + T::PER_WORD - 1) / T::PER_WORD, first = number * PANEL<T>;
    const int64_t begin = band * job.band, rows = begin + job.band < job.rows ? job.band : job.rows - begin;
    const auto* weights = static_cast<const typename T::weight*>(layer.weights) + first * (layer.across ? 1 : layer.weights_row);
    Finish<T> finish(layer, first);
    float *packed = scratch, *sums = scratch + DEPTH * PANEL<T>;
    if constexpr (T::PER_WORD == 1)
        if (rows <= T::ROWS && !layer.across) {
            for (int64_t n = 0; n < PANEL<T> && first + n < layer.outputs; n += L)
                multiply_thin_rest<T::ROWS>(rows, job.x + begin * job.x_row, job.x_row, weights + n * layer.weights_row,
                                            layer.weights_row, layer.inputs, layer.outputs - first - n, sums + n);
            for (int64_t i = 0; i < rows; i++) finish.row(job.first + begin + i, sums + i * PANEL<T>, {});
            return;
        }
    const int64_t apart = words > DEPTH ? PANEL<T> : 0;  // sums that are finished at once share memory, which stays in the cache
    for (int64_t from = 0; from < words || from == 0; from += DEPTH) {
        const int64_t depth = words - from < DEPTH ? words - from : DEPTH;
        const bool last = from + DEPTH >= words;
        if constexpr (T::PER_WORD == 1)
            if (layer.across) pack_across(weights + from * layer.weights_row, layer.weights_row, depth, layer.outputs - first, packed);
        if (!layer.across) pack_panel<T>(weights, layer.weights_row, layer.inputs, from, depth, layer.outputs - first, packed, finish.totals);
        for (int64_t r = 0; r < rows; r += T::ROWS) {
            const int64_t count = rows - r < T::ROWS ? rows - r : T::ROWS, at = begin + r;
            float* to = sums + r * apart;
            multiply_rest<T, T::ROWS>(count, job.x + at * job.x_row + from, job.x_row, packed, depth, to, from > 0);
            if (last)
                for (int64_t i = 0; i < count; i++)
                    finish.row(job.first + at + i, to + i * PANEL<T>, job.steps ? job.steps[at + i] : ls_steps{});
        }
    }
}

static int64_t linear_panel(const ls_linear_job* job) { return job->steps ? PANEL<InputPairs> : PANEL<Floats>; }

static int64_t linear_scratch(const ls_linear_job* job) { return (DEPTH + job->band) * linear_panel(job) * 4; }

template <class T>
static void linear_by(ls_linear_job* job, float* scratch) {
    for (int64_t unit; (unit = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) < job->units;)
        panel<T>(*job, unit / job->panels, unit % job->panels, scratch);
}

static void linear(ls_linear_job* job, float* scratch) {
    if (!job->steps) return linear_by<Floats>(job, scratch);
#if LS_LANES == 16 && defined(__AVX512BW__)
    static_assert(PANEL<InputFours> == PANEL<InputPairs>);
    if (job->per_word == 4) return linear_by<InputFours>(job, scratch);
#endif
    linear_by<InputPairs>(job, scratch);
}

// Whether the largest of some numbers, as integers of their bits without the sign, is finite.
LS_INLINE bool finite(vi bits) {
    int32_t most = 0;
    for (int i = 0; i < L; i++) most = bits[i] > most ? bits[i] : most;
    return most < 0x7f800000;
}

// A row of x as integers of `Whole`: each is (x - low) / step, rounded.
template <class Whole>
LS_INLINE void quantize_row(const float* x, int64_t inputs, float low, float step, Whole* out) {
    typedef Whole wholes __attribute__((vector_size(L * sizeof(Whole))));
    const float magic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer in the low bits
    const vi any = vi{} - (step > 0.0f);
    const float per_step = step > 0.0f ? 1.0f / step : 0.0f;
    for (int64_t k = 0; k < inputs; k += L) {
        const vf scaled = keep(any, load_some(x + k, inputs - k) - low) * per_step + magic;
        const wholes whole = __builtin_convertvector(bits_of(scaled) - bits_of(splat(magic)), wholes);
        __builtin_memcpy(out + k, &whole, sizeof whole);
    }
}

// Rows of x as integers in steps of the row's own size, whatever other rows hold: of 16 bits, at most job->most from 0 on either
// side, or of 8 bits, 255 steps from its smallest to its largest. A row with NaN or infinity has a step of NaN, and so have its
// results.
static void quantize(ls_linear_job* job, float*) {
    const ls_layer& layer = *job->layer;
    for (int64_t r; (r = __atomic_fetch_add(&job->next, 1, __ATOMIC_RELAXED)) < job->rows;) {
        const float* x = layer.x + (job->first + r) * layer.x_row;
        vi size = {};
        vf low = splat(layer.inputs ? x[0] : 0.0f), high = low;
        for (int64_t k = 0; k < layer.inputs; k += L) {
            const int64_t left = layer.inputs - k;
            const vf some = left >= L ? load(x + k) : choose(lane_numbers() < vi{} + int32_t(left), load_some(x + k, left), low);
            const vi bits = bits_of(some) & 0x7fffffff;
            size = bits > size ? bits : size;  // as integers, where NaN and infinity are largest
            low = choose(some < low, some, low), high = larger(some, high);
        }
        const float least = -max_lanes(-low), most = max_lanes(high), largest = most > -least ? most : -least;
        const float span = job->per_word == 4 ? most - least : largest, steps = job->per_word == 4 ? 255.0f : job->most;
        const bool sound = finite(size) && span < __builtin_inff();
        const float step = sound && span > 1e-30f ? span / steps : 0.0f;
        job->steps[r] = {sound ? step : __builtin_nanf(""), least + 128 * step};
        float* out = job->words + r * job->x_row;
        if (job->per_word == 4)
            quantize_row(x, layer.inputs, least, step, reinterpret_cast<uint8_t*>(out));
        else
            quantize_row(x, layer.inputs, 0.0f, step, reinterpret_cast<int16_t*>(out));
    }
}
