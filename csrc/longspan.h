// The C interface of the native core. Everything that crosses it is plain data: no Python, no torch.
#pragma once
#include <cstdint>

#include "plan_arrays.h"

extern "C" {

enum { LS_ABI = 11, LS_TILE = 64, LS_MAX_DIM = 1024 };
enum ls_dtype { LS_F32 = 0, LS_BF16 = 1, LS_F16 = 2 };

// A (rows, heads, dim) tensor; strides count elements and may be anything.
typedef struct {
    void* data;
    int64_t row, head, dim;
} ls_view;

// A plan: pointers to its arrays and the sizes they share.
typedef struct {
#define ARRAY(type, name, length, row) const type* name;
#define SIZE(name, array, extra) int64_t name;
    LS_PLAN_ARRAYS(ARRAY)
    LS_PLAN_SIZES(SIZE)
#undef ARRAY
#undef SIZE
} ls_plan;

// Heads of queries and keys have `dim` elements, those of values `value_dim`. Keys and values have `key_heads` heads, a divisor
// of the plan's: each is read by as many query heads in a row as fall to it.
typedef struct {
    ls_plan plan;
    ls_view q, k, v;
    int32_t dtype, dim, value_dim;
    int64_t key_heads;
    float scale, softcap;   // softcap: 0 for none; not with `relative`
    const float* relative;  // (labels, heads, dim) contiguous, or null
    const float* content;   // (heads, dim) contiguous, or null
    const float* table;     // (labels, heads) contiguous, or null
    int64_t labels;
    double dropout;
    uint64_t seed;
    int32_t threads;
} ls_problem;

// Results are contiguous: out (queries, heads, value_dim) in the problem's dtype, lse (queries, heads) in float32.
typedef struct {
    void* out;
    float* lse;
} ls_result;

// What the backward pass reads and writes. All gradients are float32 and contiguous, with the heads of what they are gradients
// of; those of the terms are zero on entry.
typedef struct {
    const float* lse;       // (queries, heads)
    ls_view out, grad_out;  // in the problem's dtype
    const float* grad_lse;  // (queries, heads) contiguous, or null
    float *dq, *dk, *dv, *drelative, *dcontent, *dtable;
} ls_gradient;

// The activations of a linear layer; GELU by the error function, and as it is approximated by tanh.
enum { LS_IDENTITY, LS_GELU, LS_GELU_TANH, LS_RELU, LS_SILU };

// A linear layer, y = act(x W' + bias) * times + plus, in float32. Rows have any stride, their elements are contiguous.
// `weights` (outputs, inputs) are floats, or with `scales` (outputs) int8 from -127 to 127, whose rows lie side by side. Floats
// may be `across`: then they are (inputs, outputs), as the gradients of a layer need them.
typedef struct {
    const float* x;
    const void* weights;
    const float *scales, *bias, *times, *plus;  // or null; `times` and `plus` may be y
    float* y;
    int64_t x_row, weights_row, times_row, plus_row, y_row, rows, inputs, outputs;
    int32_t act, across, threads;  // an activation above
} ls_layer;

// Layer normalization of rows of float32: rows have any stride, their elements are contiguous; x may be y. Not `centered`, it
// is RMS normalization: the mean is taken to be 0.
typedef struct {
    const float *x, *weight, *bias;  // the bias or null
    float* y;
    int64_t x_row, y_row, rows, width;
    float eps;
    int32_t centered, threads;
} ls_norm;

// Rotary positions: in each row and head of x, in place, element d and its partner d + dim / 2 are turned by the row's angle d.
// Elements of a head are contiguous; cos and sin (rows, dim / 2) are, too. Negative `sign` turns back.
typedef struct {
    float* x;
    const float *cos, *sin;
    int64_t row, head, rows, heads, dim;
    float sign;
    int32_t threads;
} ls_rotation;

// For each passage p and query i the largest product of the query with a token of rows starts[p] .. ends[p]; -inf without rows.
// A token is its int8 row times its scale; without scales it is a row of floats, and a maximum is NaN if any product is not finite.
// All arrays are contiguous.
typedef struct {
    const void* tokens;            // (rows, width) int8, or float
    const float* scales;           // (rows), or null
    const float* query;            // (queries, width)
    const int64_t *starts, *ends;  // (passages)
    float* maxima;                 // (passages, queries)
    int64_t width, queries, passages;
    int32_t threads;
} ls_max_sim_problem;

int ls_abi(void);
// Null if the problem is well formed, else what is wrong with it.
const char* ls_check(const ls_problem* problem);
// All return 0, or 1 if scratch memory could not be allocated (results are then undefined), or 2 for an unknown target. ls_backward also returns
// 3 if documents share a key, or a tile holds one twice: nothing is computed then.
int ls_forward(const ls_problem* problem, const ls_result* result, const char* target);
int ls_backward(const ls_problem* problem, const ls_gradient* gradient, const char* target);
int ls_linear(const ls_layer* layer, const char* target);
int ls_layer_norm(const ls_norm* norm, const char* target);
int ls_rotate(const ls_rotation* rotation, const char* target);
int ls_max_sim(const ls_max_sim_problem* problem, const char* target);
// The targets of this build, the best first; null after the last.
const char* ls_target_name(int number);
int ls_target_supported(const char* target);
int ls_cpu_feature(const char* name);
// 0: this CPU does not advertise AMX, 1: AMX instructions work, 2: they are advertised but trap.
int ls_amx_state(void);

}
