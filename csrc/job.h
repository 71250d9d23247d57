// What a target's workers receive: the checked problem, its division into units, and where results go.
#pragma once
#include "longspan.h"

// A query tile's list of key tiles is worked on in segments, cut at lengths that depend on the tile alone. Tiles of a few
// rows are cut finely: their work is reading keys, and all heads should read a range of keys while it is in the cache.
enum { LS_FEW_ROWS = 8, LS_SEGMENT = 64, LS_SHORT_SEGMENT = 8 };

static inline __attribute__((always_inline)) int64_t segment_length(const ls_plan& plan, int64_t tile) {
    return plan.q_rows[tile * LS_TILE + LS_FEW_ROWS] < 0 ? LS_SHORT_SEGMENT : LS_SEGMENT;
}
// A tile without key tiles still has one (empty) segment: its rows must be written.
static inline __attribute__((always_inline)) int64_t segments_of(const ls_plan& plan, int64_t tile) {
    int64_t entries = plan.entry_start[tile + 1] - plan.entry_start[tile], length = segment_length(plan, tile);
    return entries <= length ? 1 : (entries + length - 1) / length;
}

// A segment to work on (first phase), or a query tile whose segments are to be merged (second phase).
struct ls_piece {
    int32_t head, tile;
    int64_t segment, part;
};

// Query heads that read the same keys. They are worked on side by side, so that packed keys serve all of them; or `apart`, one
// after the other, where their patterns differ or terms are kept for each head (backward only: forward has a bundle for each).
struct ls_bundle {
    int32_t first, count;
    bool apart;
};

static inline __attribute__((always_inline)) int64_t heads_per_key_head(const ls_problem& p) {
    return p.key_heads > 0 && p.plan.heads > 0 ? p.plan.heads / p.key_heads : 1;
}

struct ls_job {
    const ls_problem* problem;
    const ls_result* result;      // forward
    const ls_gradient* gradient;  // backward
    // Bundles one after the other. Forward: one unit per (query tile, head). Backward: one unit per document of a bundle, or for
    // all of one whose heads are apart.
    const ls_bundle* bundles;
    const int64_t* unit_start;  // [bundles + 1]
    // Forward in two phases: every segment's state goes to `parts`, then the states are merged.
    const ls_piece* pieces;  // the units, or null for one phase
    float* parts;
    bool merging;
    // Backward: runs of query tiles of one document, and for each class and key tile the run that uses it and, where it
    // repeats rows that another tile of the run owns, its number among such tiles (else -1).
    const int32_t* run_start;  // [runs + 1]
    const int32_t* class_run;  // [classes + 1]: the runs of each class
    const int32_t* run_of;     // [classes][k_tiles], -1 for none
    const int32_t *run_low, *run_high;  // [runs]: the key tiles of a run lie between these
    const int32_t* repeat_of;           // [classes][k_tiles]
    int64_t repeats;           // the most such tiles in any run
    int64_t slots;             // how many packed key tiles a worker keeps
    int64_t units;
    int64_t next;  // first unit nobody has taken yet
    int32_t threads;
    int64_t least;  // smallest number of units taken at once

    // Takes the next range of units: large ranges first, so that neighbors share packed tiles, small ones last.
    // Always inlined: targets must not share code compiled with another target's instructions.
    __attribute__((always_inline)) bool take(int64_t* begin, int64_t* end) {
        int64_t from = __atomic_load_n(&next, __ATOMIC_RELAXED);
        for (;;) {
            if (from >= units) return false;
            int64_t share = (units - from) / (3 * threads);
            int64_t to = from + (share > least ? share : least);
            if (to > units) to = units;
            if (__atomic_compare_exchange_n(&next, &from, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
                *begin = from;
                *end = to;
                return true;
            }
        }
    }
};

// What the integers of a row of x mean: steps of this size, and with 8 bits what 128 stands for.
struct ls_steps {
    float size, middle;
};

// Rows first .. first + rows of a linear layer, cut into bands of rows by panels of outputs.
struct ls_linear_job {
    const ls_layer* layer;
    int64_t first, rows;
    const float* x;  // the words of row `first`: the layer's own floats, or what quantize() wrote
    int64_t x_row;
    float* words;      // what quantize() writes: rows as integers, and the steps of each; null for floats
    ls_steps* steps;
    int per_word;      // integers in a word: 2 of 16 bits, or 4 of 8
    float most;        // steps in 16 bits, so that no sum of products overflows
    int64_t band, panels, units, next;
};

// Rows that a thread normalizes, or rotates, at once.
enum { LS_NORM_ROWS = 32 };

struct ls_norm_job {
    const ls_norm* norm;
    int64_t units, next;
};

struct ls_rotation_job {
    const ls_rotation* rotation;
    int64_t units, next;
};

struct ls_max_sim_job {
    const ls_max_sim_problem* problem;
    const void* queries;  // (queries, width): in steps as int8, or floats as they are
    const float* steps;   // (queries): the size of a step; null for floats
    bool vnni;            // the CPU has AVX-512 VNNI
    int64_t next;         // first passage nobody has taken yet
};

// One instruction set's kernels. Each worker brings scratch memory of the size requested, aligned to 64 bytes.
struct ls_target {
    const char* name;
    bool fours;  // it can use VNNI where the CPU has it
    int64_t (*forward_scratch)(const ls_job*);
    int64_t (*part_floats)(const ls_job*);
    void (*forward)(ls_job*, float* scratch);
    int64_t (*backward_scratch)(const ls_job*);
    void (*backward)(ls_job*, float* scratch);
    int64_t (*linear_panel)(const ls_linear_job*);
    int64_t (*linear_scratch)(const ls_linear_job*);
    void (*linear)(ls_linear_job*, float* scratch);
    void (*quantize)(ls_linear_job*, float* scratch);
    void (*layer_norm)(ls_norm_job*, float* scratch);
    void (*rotate)(ls_rotation_job*, float* scratch);
    int64_t (*max_sim_scratch)(const ls_max_sim_job*);
    void (*max_sim)(ls_max_sim_job*, float* scratch);
};
