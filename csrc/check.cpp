// Whether a problem is well formed. The library builds plans, but operators can be called with any tensors.
#include <vector>

#include "longspan.h"

namespace {

bool sorted(const int32_t* start, int64_t count, int64_t end) {
    if (start[0] != 0 || start[count] != end) return false;
    for (int64_t i = 0; i < count; i++)
        if (start[i] > start[i + 1]) return false;
    return true;
}

bool tiles_in(const int32_t* rows, int64_t tiles, int64_t limit) {
    int32_t low = 0, high = -1;
    bool gap = false;
    for (int64_t t = 0; t < tiles; t++, rows += LS_TILE)
        for (int i = 0; i < LS_TILE; i++) {
            low = rows[i] < low ? rows[i] : low;
            high = rows[i] > high ? rows[i] : high;
            gap |= i > 0 && rows[i] >= 0 && rows[i - 1] < 0;
        }
    return low >= -1 && high < limit && !gap;
}

// A row that no tile holds would never be written, and one that two hold would be written twice at once.
bool each_once(const ls_plan& p) {
    std::vector<int32_t> holder(p.queries, -1);  // the last class that holds a row
    for (int32_t c = 0; c < p.classes; c++) {
        int64_t count = 0;
        for (int64_t i = int64_t(p.class_start[c]) * LS_TILE; i < int64_t(p.class_start[c + 1]) * LS_TILE; i++) {
            if (p.q_rows[i] < 0) continue;
            if (holder[p.q_rows[i]] == c) return false;
            holder[p.q_rows[i]] = c;
            count++;
        }
        if (count != p.queries) return false;
    }
    return true;
}

bool labels_in(const ls_plan& p, int64_t entry, int64_t list) {
    const int32_t tile = p.entries[entry * 4 + 3];
    if (tile < 0 || tile >= p.n_label_tiles) return false;
    const int32_t* ranks = p.label_tiles + int64_t(tile) * LS_TILE * LS_TILE;
    if (p.label_kind[tile] == 1) {
        for (int i = 0; i < LS_TILE; i++)
            if (ranks[i * LS_TILE] < -LS_TILE || ranks[i * LS_TILE] > list) return false;
        return true;
    }
    for (int i = 0; i < LS_TILE * LS_TILE; i++)
        if (ranks[i] < 0 || ranks[i] >= list) return false;
    return true;
}

}  // namespace

extern "C" const char* ls_check(const ls_problem* problem) {
    const ls_plan& p = problem->plan;
    if (problem->dim < 1 || problem->dim > LS_MAX_DIM) return "the head size must be between 1 and 1024";
    if (problem->value_dim < 1 || problem->value_dim > LS_MAX_DIM) return "the head size of values must be between 1 and 1024";
    if (problem->softcap != 0 && !(problem->softcap >= 1e-20f && problem->softcap <= 1e20f)) return "softcap must be between 1e-20 and 1e20";
    if (problem->softcap != 0 && problem->relative) return "softcap does not go with relative keys";
    if (problem->dtype < LS_F32 || problem->dtype > LS_F16) return "the dtype is unknown";
    if (!(problem->dropout >= 0 && problem->dropout <= 1)) return "dropout must be between 0 and 1";
    if (problem->key_heads < (p.heads > 0) || (p.heads > 0 && p.heads % problem->key_heads)) return "the heads of keys must divide those of queries";
    if (p.classes < 0 || (p.heads > 0 && p.classes == 0)) return "heads have no class";
    for (int64_t h = 0; h < p.heads; h++)
        if (p.head_class[h] < 0 || p.head_class[h] >= p.classes) return "head_class names a class that does not exist";
    if (!sorted(p.class_start, p.classes, p.q_tiles)) return "class_start is not an ascending cut of the query tiles";
    if (!sorted(p.entry_start, p.q_tiles, p.n_entries)) return "entry_start is not an ascending cut of the entries";
    if (!tiles_in(p.q_rows, p.q_tiles, p.queries)) return "q_rows names a query that does not exist";
    if (!each_once(p)) return "the query tiles of a class do not hold each query once";
    if (!tiles_in(p.k_rows, p.k_tiles, p.keys)) return "k_rows names a key that does not exist";
    for (int64_t e = 0; e < p.n_entries; e++) {
        const int32_t* entry = p.entries + e * 4;
        if (entry[0] < 0 || entry[0] >= p.k_tiles) return "an entry names a key tile that does not exist";
        if (entry[1] < -1 || entry[1] >= p.n_masks) return "an entry names a mask that does not exist";
        if (entry[2] < 1) return "an entry has a multiplicity below 1";
    }
    if (!problem->relative && !problem->table) return nullptr;
    if (!sorted(p.label_start, p.classes, p.n_label_list)) return "label_start is not an ascending cut of the label list";
    for (int64_t i = 0; i < p.n_label_list; i++)
        if (p.label_list[i] < 0 || p.label_list[i] >= problem->labels) return "label_list names a label that the terms do not have";
    // Distinct (class, label tile) pairs are few; remembering the last one checked keeps this linear in the entries.
    for (int64_t c = 0, last = INT64_MIN; c < p.classes; c++, last = INT64_MIN)
        for (int64_t t = p.class_start[c]; t < p.class_start[c + 1]; t++)
            for (int64_t e = p.entry_start[t]; e < p.entry_start[t + 1]; e++) {
                if (p.entries[e * 4 + 3] == last) continue;
                last = p.entries[e * 4 + 3];
                if (!labels_in(p, e, p.label_start[c + 1] - p.label_start[c])) return "a label tile names a label outside its class's list";
            }
    return nullptr;
}
