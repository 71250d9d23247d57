// longspan._native: the C interface for Python. Tensors arrive as addresses, sizes and strides that Python has checked.
#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>

#include "longspan.h"

namespace nb = nanobind;

namespace {

#define ARRAY(type, name, length, row) +1
constexpr int ARRAYS = 0 LS_PLAN_ARRAYS(ARRAY);
#undef ARRAY

typedef std::array<int64_t, 2 * ARRAYS> PlanNumbers;  // the addresses of all arrays, then their lengths
typedef std::array<int64_t, 5> ViewNumbers;           // address, strides, then how many elements lie there
typedef std::array<int64_t, 3> SizeNumbers;           // heads of keys, head size, that of values
typedef std::array<int64_t, 4> TermNumbers;           // addresses of relative, content and table; number of labels

template <class T>
T* pointer(int64_t address) {
    return reinterpret_cast<T*>(address);
}

// A view of (rows, heads, dim) elements, none of which lies outside its memory.
ls_view view(const char* name, const ViewNumbers& v, int64_t rows, int64_t heads, int64_t dim) {
    const int64_t sizes[] = {rows, heads, dim};
    int64_t last = 0;
    bool fits = v[0] != 0;
    for (int i = 0; i < 3; i++) {
        int64_t span;
        fits &= v[i + 1] >= 0 && !__builtin_mul_overflow(sizes[i] - 1, v[i + 1], &span) && !__builtin_add_overflow(last, span, &last);
    }
    if (rows > 0 && heads > 0 && dim > 0 && (!fits || last >= v[4]))
        throw std::invalid_argument("`" + std::string(name) + "` must lie in memory, but parts of it do not.");
    return {pointer<void>(v[0]), v[1], v[2], v[3]};
}

ls_plan plan(const PlanNumbers& numbers) {
    ls_plan p;
    const int64_t* next = numbers.data();
#define ARRAY(type, name, length, row)            \
    p.name = pointer<const type>(next[0]);        \
    const int64_t length_of_##name = next[ARRAYS]; \
    next++;
#define SIZE(name, array, extra) p.name = length_of_##array - extra;
    LS_PLAN_ARRAYS(ARRAY)
    LS_PLAN_SIZES(SIZE)
#undef ARRAY
#undef SIZE
#define ARRAY(type, name, length, row) \
    if (length_of_##name != p.length) throw std::invalid_argument(#name " must have " #length " rows");
    LS_PLAN_ARRAYS(ARRAY)
#undef ARRAY
    return p;
}

// Name, bits of an element and elements of a row of every array, in order, for Python to compare with its own.
std::vector<std::tuple<std::string, int, int>> plan_arrays() {
#define ARRAY(type, name, length, row) {#name, int(8 * sizeof(type)), row},
    return {LS_PLAN_ARRAYS(ARRAY)};
#undef ARRAY
}

ls_problem problem(const PlanNumbers& numbers, const ViewNumbers& q, const ViewNumbers& k, const ViewNumbers& v, int dtype, const SizeNumbers& sizes,
                   double scale, double softcap, const TermNumbers& terms, double dropout, uint64_t seed, int threads) {
    const ls_plan arrays = plan(numbers);
    const int64_t queries = arrays.queries, keys = arrays.keys, heads = arrays.heads, key_heads = sizes[0], dim = sizes[1], value_dim = sizes[2];
    if (std::min(dim, value_dim) < 1 || std::max(dim, value_dim) > LS_MAX_DIM) throw std::invalid_argument("head sizes must be between 1 and 1024");
    ls_problem p = {arrays, view("q", q, queries, heads, dim), view("k", k, keys, key_heads, dim), view("v", v, keys, key_heads, value_dim),
                    dtype, int32_t(dim), int32_t(value_dim), key_heads, float(scale), float(softcap), pointer<const float>(terms[0]), pointer<const float>(terms[1]),
                    pointer<const float>(terms[2]), terms[3], dropout, seed, threads};
    if (const char* wrong = ls_check(&p)) throw std::invalid_argument(wrong);
    return p;
}

void succeed(int code, const std::string& target) {
    if (code == 1) throw std::bad_alloc();
    if (code == 2) throw std::invalid_argument("the target '" + target + "' is not compiled in or not supported by this CPU");
    if (code == 3) throw std::invalid_argument("`plan` must not let documents share a key where gradients are needed, but does.");
}

void forward(const PlanNumbers& numbers, const ViewNumbers& q, const ViewNumbers& k, const ViewNumbers& v, int dtype, const SizeNumbers& sizes,
             double scale, double softcap, const TermNumbers& terms, double dropout, uint64_t seed, int threads, const std::string& target,
             int64_t out, int64_t lse) {
    ls_problem p = problem(numbers, q, k, v, dtype, sizes, scale, softcap, terms, dropout, seed, threads);
    ls_result result = {pointer<void>(out), pointer<float>(lse)};
    succeed(ls_forward(&p, &result, target.c_str()), target);
}

void backward(const PlanNumbers& numbers, const ViewNumbers& q, const ViewNumbers& k, const ViewNumbers& v, int dtype, const SizeNumbers& sizes,
              double scale, double softcap, const TermNumbers& terms, double dropout, uint64_t seed, int threads, const std::string& target,
              const ViewNumbers& out, int64_t lse, const ViewNumbers& grad_out, int64_t grad_lse, std::array<int64_t, 6> gradients) {
    ls_problem p = problem(numbers, q, k, v, dtype, sizes, scale, softcap, terms, dropout, seed, threads);
    auto floats = [&](int i) { return pointer<float>(gradients[i]); };
    const int64_t queries = p.plan.queries, heads = p.plan.heads, dim = p.value_dim;
    ls_gradient g = {pointer<const float>(lse), view("out", out, queries, heads, dim), view("grad_out", grad_out, queries, heads, dim), pointer<const float>(grad_lse),
                     floats(0), floats(1), floats(2), floats(3), floats(4), floats(5)};
    succeed(ls_backward(&p, &g, target.c_str()), target);
}

// Addresses of x, weights, scales, bias, times, plus and y; then row strides of x, weights, times, plus and y, and the rows, inputs and outputs.
void linear(const std::array<int64_t, 7>& at, const std::array<int64_t, 8>& n, int act, bool across, int threads, const std::string& target) {
    auto floats = [&](int i) { return pointer<const float>(at[i]); };
    if (n[5] > 0 && n[7] > 0 && (!at[6] || (n[6] > 0 && (!at[0] || !at[1])))) throw std::invalid_argument("`x`, `weight` and `into` must lie in memory, but one does not.");
    ls_layer layer = {floats(0), pointer<const void>(at[1]), floats(2), floats(3), floats(4), floats(5), pointer<float>(at[6]),
                      n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], act, across, threads};
    succeed(ls_linear(&layer, target.c_str()), target);
}

// Addresses of x, weight, bias and y; then row strides of x and y, and the rows and their width.
void layer_norm(const std::array<int64_t, 4>& at, const std::array<int64_t, 4>& n, double eps, bool centered, int threads,
                const std::string& target) {
    ls_norm norm = {pointer<const float>(at[0]), pointer<const float>(at[1]), pointer<const float>(at[2]), pointer<float>(at[3]),
                    n[0], n[1], n[2], n[3], float(eps), centered, threads};
    succeed(ls_layer_norm(&norm, target.c_str()), target);
}

// Addresses of x, cos and sin; then strides of rows and heads of x, and how many rows and heads there are, and their size.
void rotate(const std::array<int64_t, 3>& at, const std::array<int64_t, 5>& n, double sign, int threads, const std::string& target) {
    ls_rotation rotation = {pointer<float>(at[0]), pointer<const float>(at[1]), pointer<const float>(at[2]), n[0], n[1], n[2], n[3], n[4],
                            float(sign), threads};
    succeed(ls_rotate(&rotation, target.c_str()), target);
}

// Addresses of tokens, scales (0: tokens are floats), queries, starts, ends and maxima; then the width, and how many queries and passages there are.
void max_sim(const std::array<int64_t, 6>& at, const std::array<int64_t, 3>& n, int threads, const std::string& target) {
    ls_max_sim_problem p = {pointer<const void>(at[0]), pointer<const float>(at[1]), pointer<const float>(at[2]),
                            pointer<const int64_t>(at[3]), pointer<const int64_t>(at[4]), pointer<float>(at[5]),
                            n[0], n[1], n[2], threads};
    succeed(ls_max_sim(&p, target.c_str()), target);
}

std::vector<std::string> targets(bool supported) {
    std::vector<std::string> names;
    for (int i = 0; const char* name = ls_target_name(i); i++)
        if (!supported || ls_target_supported(name)) names.push_back(name);
    return names;
}

std::map<std::string, bool> features() {
    std::map<std::string, bool> present;
    for (const char* name : {"sse4.2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vnni",
                             "avx512bf16", "amx_tile"})
        present[name] = ls_cpu_feature(name);
    return present;
}

std::string amx_state() {
    const char* const states[] = {"absent", "works", "traps"};
    return states[ls_amx_state()];
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "Longspan's native kernels.";
    m.def("forward", &forward, nb::call_guard<nb::gil_scoped_release>());
    m.def("backward", &backward, nb::call_guard<nb::gil_scoped_release>());
    m.def("linear", &linear, nb::call_guard<nb::gil_scoped_release>());
    m.def("layer_norm", &layer_norm, nb::call_guard<nb::gil_scoped_release>());
    m.def("rotate", &rotate, nb::call_guard<nb::gil_scoped_release>());
    m.def("max_sim", &max_sim, nb::call_guard<nb::gil_scoped_release>());
    m.def("abi_version", &ls_abi);
    m.def("plan_arrays", &plan_arrays);
    m.def("targets", [] { return targets(true); }, "Instruction sets this CPU can run, best first.");
    m.def("compiled_targets", [] { return targets(false); }, "Instruction sets in this build, best first.");
    m.def("features", &features);
    m.def("amx_state", &amx_state, "absent, works, or traps: advertised by the CPU but not usable here.");
}
