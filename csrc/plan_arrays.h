// The arrays of a plan, described once. The C struct, the binding, the plans of csrc/tests and the check of Python's
// PlanArrays (longspan/engine/plan.py, which says what each array means) are all made from these two tables.
#pragma once

// ARRAY(type, name, length, row): `length` rows of `row` elements each, contiguous.
#define LS_PLAN_ARRAYS(ARRAY)                                     \
    ARRAY(int32_t, head_class, heads, 1)                          \
    ARRAY(int32_t, class_start, classes + 1, 1)                   \
    ARRAY(int32_t, q_rows, q_tiles, LS_TILE)                      \
    ARRAY(int32_t, k_rows, k_tiles, LS_TILE)                      \
    ARRAY(int32_t, entry_start, q_tiles + 1, 1)                   \
    ARRAY(int32_t, entries, n_entries, 4)                         \
    ARRAY(uint64_t, masks, n_masks, LS_TILE)                      \
    ARRAY(int32_t, label_tiles, n_label_tiles, LS_TILE * LS_TILE) \
    ARRAY(int32_t, label_kind, n_label_tiles, 1)                  \
    ARRAY(int32_t, label_start, classes + 1, 1)                   \
    ARRAY(int32_t, label_list, n_label_list, 1)                   \
    ARRAY(int32_t, q_sites, queries, 2)                           \
    ARRAY(int32_t, k_positions, keys, 1)

// SIZE(name, array, extra): the length of `array` without the `extra` rows at its end.
#define LS_PLAN_SIZES(SIZE)             \
    SIZE(heads, head_class, 0)          \
    SIZE(classes, class_start, 1)       \
    SIZE(q_tiles, q_rows, 0)            \
    SIZE(k_tiles, k_rows, 0)            \
    SIZE(n_entries, entries, 0)         \
    SIZE(n_masks, masks, 0)             \
    SIZE(n_label_tiles, label_tiles, 0) \
    SIZE(n_label_list, label_list, 0)   \
    SIZE(queries, q_sites, 0)           \
    SIZE(keys, k_positions, 0)
