// What a target's workers get: the checked problem, the cut of the work into units, and where results go.
#pragma once
#include "longspan.h"

struct ls_job {
    const ls_problem* problem;
    const ls_result* result;      // forward
    const ls_gradient* gradient;  // backward
    // Forward: one unit per (head, query tile), heads one after the other. Backward: one unit per (head, document).
    const int64_t* unit_start;  // [heads + 1]
    // Backward: runs of query tiles of one document, and for each class and key tile the run that uses it and, where it
    // repeats rows that another tile of the run owns, its number among such tiles (else -1).
    const int32_t* run_start;  // [runs + 1]
    const int32_t* class_run;  // [classes + 1]; unit u of head h is run class_run[class] + u - unit_start[h]
    const int32_t* run_of;     // [classes][k_tiles], -1 for none
    const int32_t* repeat_of;  // [classes][k_tiles]
    int64_t repeats;           // the most such tiles in any run
    int64_t slots;             // how many packed key tiles a worker keeps
    int64_t units;
    int64_t next;  // first unit nobody has taken yet
    int32_t threads;
    int64_t least;  // smallest number of units taken at once

    // Takes the next run of units; large runs first, so that neighbours share packed tiles, small ones last.
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

// One instruction set's kernels. Each worker brings scratch memory of the size asked for, aligned to 64 bytes.
struct ls_target {
    const char* name;
    int64_t (*forward_scratch)(const ls_job*);
    void (*forward)(ls_job*, float* scratch);
    int64_t (*backward_scratch)(const ls_job*);
    void (*backward)(ls_job*, float* scratch);
};
