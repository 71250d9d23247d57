#include "malformed.h"

#include <climits>
#include <cstdio>
#include <functional>

#include "run.h"

namespace stress {
namespace {

// Something that can be wrong; `spoil` says whether this case had what it takes.
struct Fault {
    const char* name;
    std::function<bool(Case&)> spoil;
};

bool put(Ints& list, size_t at, int64_t value) {
    if (at >= list.size() || list[at] == value) return false;
    list[at] = int32_t(value);
    return true;
}
bool with_terms(Case& c) { return c.problem.relative || c.problem.table; }
bool set_label_tile(Case& c, bool ramp, int rank) {
    if (!with_terms(c) || c.plan.label_kind[c.plan.entries[3]] != ramp) return false;
    return put(c.plan.label_tiles, c.plan.entries[3] * 4096 + (ramp ? 64 : 77), rank);
}

// The last row of the first tile that has any becomes padding.
bool drop_query(Case& c) {
    const auto end = std::find(c.plan.q_rows.begin(), c.plan.q_rows.begin() + 64, -1);
    return end != c.plan.q_rows.begin() && put(c.plan.q_rows, end - c.plan.q_rows.begin() - 1, -1);
}

const Fault faults[] = {
    {"head size 0", [](Case& c) { return c.problem.dim = 0, true; }},
    {"head size 1025", [](Case& c) { return c.problem.dim = 1025, true; }},
    {"values of size 0", [](Case& c) { return c.problem.value_dim = 0, true; }},
    {"values of size 1025", [](Case& c) { return c.problem.value_dim = 1025, true; }},
    {"softcap below 0", [](Case& c) { return c.problem.softcap = -1, true; }},
    {"softcap NaN", [](Case& c) { return c.problem.softcap = NAN, true; }},
    {"softcap without end", [](Case& c) { return c.problem.softcap = INFINITY, true; }},
    {"softcap of nearly nothing", [](Case& c) { return c.problem.softcap = 1e-30f, true; }},
    {"softcap with relative keys", [](Case& c) { return c.problem.softcap = 1, c.problem.relative != nullptr; }},
    {"no key heads", [](Case& c) { return c.problem.key_heads = 0, true; }},
    {"key heads below 0", [](Case& c) { return c.problem.key_heads = -1, true; }},
    {"key heads that do not divide", [](Case& c) { return c.problem.key_heads = c.heads + 1, true; }},
    {"dtype -1", [](Case& c) { return c.problem.dtype = -1, true; }},
    {"dtype 3", [](Case& c) { return c.problem.dtype = 3, true; }},
    {"class below 0", [](Case& c) { return put(c.plan.head_class, 0, -1); }},
    {"class too large", [](Case& c) { return put(c.plan.head_class, 0, c.classes); }},
    {"first class late", [](Case& c) { return put(c.plan.class_start, 0, 1); }},
    {"last class early", [](Case& c) { return put(c.plan.class_start, c.classes, c.plan.q_rows.size() / 64 - 1); }},
    {"last class late", [](Case& c) { return put(c.plan.class_start, c.classes, c.plan.q_rows.size() / 64 + 1); }},
    {"classes descend", [](Case& c) { return c.classes > 1 && put(c.plan.class_start, 1, c.plan.class_start[2] + 1); }},
    {"first entry late", [](Case& c) { return put(c.plan.entry_start, 0, 1); }},
    {"last entry late", [](Case& c) { return put(c.plan.entry_start, c.plan.entry_start.size() - 1, INT_MAX); }},
    {"entries descend", [](Case& c) { return c.plan.entry_start.size() > 2 && put(c.plan.entry_start, 1, INT_MAX); }},
    {"query too large", [](Case& c) { return put(c.plan.q_rows, 0, c.queries); }},
    {"query below -1", [](Case& c) { return put(c.plan.q_rows, 63, -2); }},
    {"query after padding", [](Case& c) { return c.plan.q_rows[1] >= 0 && put(c.plan.q_rows, 0, -1); }},
    {"query twice", [](Case& c) { return c.plan.q_rows[1] >= 0 && put(c.plan.q_rows, 1, c.plan.q_rows[0]); }},
    {"query missing", [](Case& c) { return drop_query(c); }},
    {"key too large", [](Case& c) { return put(c.plan.k_rows, 0, c.keys); }},
    {"key below -1", [](Case& c) { return put(c.plan.k_rows, 63, INT_MIN); }},
    {"key after padding", [](Case& c) { return c.plan.k_rows[1] >= 0 && put(c.plan.k_rows, 0, -1); }},
    {"key tile too large", [](Case& c) { return put(c.plan.entries, 0, int64_t(c.plan.k_rows.size()) / 64); }},
    {"key tile below 0", [](Case& c) { return put(c.plan.entries, 0, -1); }},
    {"mask too large", [](Case& c) { return put(c.plan.entries, 1, int64_t(c.plan.masks.size()) / 64); }},
    {"mask below -1", [](Case& c) { return put(c.plan.entries, 1, -2); }},
    {"multiplicity 0", [](Case& c) { return put(c.plan.entries, 2, 0); }},
    {"label tile missing", [](Case& c) { return with_terms(c) && put(c.plan.entries, 3, -1); }},
    {"label tile too large", [](Case& c) { return with_terms(c) && put(c.plan.entries, 3, int64_t(c.plan.label_kind.size())); }},
    {"label too large", [](Case& c) { return with_terms(c) && put(c.plan.label_list, 0, c.labels); }},
    {"label below 0", [](Case& c) { return with_terms(c) && put(c.plan.label_list, 0, -1); }},
    {"label list late", [](Case& c) { return with_terms(c) && put(c.plan.label_start, 0, 1); }},
    {"rank too large", [](Case& c) { return set_label_tile(c, false, 100000); }},
    {"rank below 0", [](Case& c) { return set_label_tile(c, false, -1); }},
    {"ramp too high", [](Case& c) { return set_label_tile(c, true, c.labels + 1); }},
    {"ramp too low", [](Case& c) { return set_label_tile(c, true, -65); }},
};

// Any number of any list becomes any number; now and then a list is said to be shorter than it is.
void spoil_at_random(Case& c) {
    Random& random = c.random;
    ls_plan& p = c.problem.plan;
    const std::vector<Ints*> lists = c.plan.lists();
    for (int times = random.between(1, 3); times > 0; times--) {
        Ints& list = *lists[random.between(0, int(lists.size()) - 1)];
        if (list.empty()) continue;
        int32_t& x = list[random.between(0, int(list.size()) - 1)];
        x = random.one_of({std::min(x, 1000) + 1, std::max(x, -1000) - 1, -1, 0, 1, 63, 64, INT_MIN, INT_MAX, random.between(0, 300)});
#define SIZE(name, array, extra) &p.name,
        int64_t& size = *random.one_of({LS_PLAN_SIZES(SIZE)});
#undef SIZE
        if (random.chance(10) && size > 0) size--;
    }
}

bool is_rich(const Case& c) {
    return c.heads > 0 && !c.plan.k_rows.empty() && !c.plan.entries.empty() && c.queries * c.keys * (c.dim + c.value_dim) < 80000;
}

}  // namespace

int test_malformed(const std::vector<Door>& doors) {
    int accepted = 0;
    for (const Fault& fault : faults) {
        int tried = 0;
        for (uint64_t seed = 1; tried < 3; seed++) {
            Case c(seed);
            if (!is_rich(c) || !fault.spoil(c)) continue;
            tried++;
            if (ls_check(&c.problem)) continue;
            std::printf("seed %llu: accepted: %s\n", static_cast<unsigned long long>(seed), fault.name);
            accepted++;
        }
    }
    int refused = 0, harmless = 0;
    for (uint64_t seed = 1; seed <= 1500; seed++) {
        Case c(seed);
        if (!is_rich(c)) continue;
        spoil_at_random(c);
        if (ls_check(&c.problem)) {
            refused++;
            continue;
        }
        harmless++;
        run(c, doors[seed % doors.size()], 1);
    }
    std::printf("malformed plans: %d refused, %d harmless\n", refused, harmless);
    return accepted;
}

}  // namespace stress
