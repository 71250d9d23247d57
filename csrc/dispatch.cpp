// The C interface: selects an instruction set, cuts the work into units, runs them on threads.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "cpu.h"
#include "job.h"
#include "workers.h"

extern const ls_target ls_target_scalar;
#ifdef LONGSPAN_X86
extern const ls_target ls_target_avx2, ls_target_avx512;
#endif

namespace {

using namespace longspan;

struct Choice {
    const ls_target* target;
    bool (*supported)();
};
const Choice choices[] = {
#ifdef LONGSPAN_X86
    {&ls_target_avx512, longspan::has_avx512},
    {&ls_target_avx2, longspan::has_avx2},
#endif
    {&ls_target_scalar, [] { return true; }},
};

const Choice* find(const char* name) {
    for (const Choice& c : choices)
        if (!name || !*name ? c.supported() : !std::strcmp(c.target->name, name)) return &c;
    return nullptr;
}

int run(ls_job& job, int64_t (*need)(const ls_job*), void (*body)(ls_job*, float*)) {
    if (job.units == 0) return 0;
    job.next = 0;
    int64_t bytes = need(&job);
    job.threads = std::max<int64_t>(1, std::min<int64_t>(job.problem->threads, job.units));
    on_threads(job.threads, [&] {
        longspan::FlushDenormals guard;
        if (float* memory = scratch.get(bytes)) body(&job, memory);
    });
    // The units of a worker without memory are done by the others, unless none has any.
    return job.next < job.units ? 1 : 0;
}

// Zeros; threads take a piece at a time.
void clear(float* memory, int64_t count, int threads) {
    prefer_large_pages(memory, count * 4);
    const int64_t piece = 1 << 19;
    std::atomic<int64_t> next{0};
    on_threads(int(std::min<int64_t>(threads, count / piece + 1)), [&] {
        for (int64_t at; (at = next.fetch_add(piece)) < count;) std::memset(memory + at, 0, sizeof(float) * std::min(piece, count - at));
    });
}

// Enough slots for the longest list of key tiles and a few neighbors, within a memory limit.
int64_t slots_for(const ls_plan& plan, int64_t floats_per_slot, int64_t limit_bytes) {
    int64_t longest = 1;
    for (int64_t t = 0; t < plan.q_tiles; t++) longest = std::max<int64_t>(longest, plan.entry_start[t + 1] - plan.entry_start[t]);
    int64_t most = std::max<int64_t>(16, limit_bytes / (floats_per_slot * 4));
    return std::max<int64_t>(1, std::min({plan.k_tiles, longest + 4, most}));
}

// Cutting lists into pieces changes no result, only which thread does what. It pays where there are too few query tiles
// to share, or only tiles with a few rows.
bool worth_cutting(const ls_plan& plan, int64_t units, int64_t threads) {
    bool thin = true, cut = false;
    for (int64_t t = 0; t < plan.q_tiles && (thin || units < 4 * threads); t++) {
        thin &= segment_length(plan, t) == LS_SHORT_SEGMENT;
        cut |= segments_of(plan, t) > 1;
    }
    return cut && units < 1024 && (thin || (threads > 1 && units < 4 * threads));
}

struct Pieces {
    std::vector<ls_piece> segments, tiles;

    // Segments in an order in which all heads read the same keys one after the other.
    explicit Pieces(const ls_plan& plan) {
        int64_t part = 0;
        for (int32_t t = 0, c = 0; t < plan.q_tiles; t++) {
            while (plan.class_start[c + 1] <= t) c++;
            int64_t count = segments_of(plan, t), before = int64_t(tiles.size());
            for (int32_t h = 0; h < plan.heads; h++)
                if (plan.head_class[h] == c) tiles.push_back({h, t, 0, part}), part += count;
            for (int64_t s = 0; s < count; s++)
                for (size_t i = before; i < tiles.size(); i++) segments.push_back({tiles[i].head, t, s, tiles[i].part + s});
        }
    }
};

// Which query tiles make up one document of a class, and which of its key tiles share rows.
struct Runs {
    std::vector<int32_t> start, class_run, run_of, repeat_of;
    std::vector<int32_t> low, high;  // the first key tile of each run, and the one after its last
    int64_t repeats = 0;
    bool shared = false;  // two runs, or two places of a tile, hold the same key: its gradient would have two owners

    // Score terms collect their gradients over a whole head, so there all documents are one run.
    Runs(const ls_plan& plan, bool whole_heads)
        : class_run(1, 0), run_of(plan.classes * plan.k_tiles, -1), repeat_of(plan.classes * plan.k_tiles, -1) {
        std::vector<int32_t> owner(plan.keys);
        for (int64_t c = 0; c < plan.classes; c++) {
            int32_t document = -1;
            int32_t *run = run_of.data() + c * plan.k_tiles, *repeat = repeat_of.data() + c * plan.k_tiles;
            for (int32_t t = plan.class_start[c]; t < plan.class_start[c + 1]; t++) {
                int32_t row = plan.q_rows[int64_t(t) * LS_TILE];
                // An empty tile goes with its neighbors: a document's tiles are one run.
                int32_t here = whole_heads ? 0 : row < 0 ? document : plan.q_sites[2 * int64_t(row)];
                if (t == plan.class_start[c] || here != document) start.push_back(t);
                document = here;
                for (int64_t e = plan.entry_start[t]; e < plan.entry_start[t + 1] && row >= 0; e++) {
                    const int32_t key = plan.entries[4 * e], present = int32_t(start.size()) - 1;
                    shared |= run[key] >= 0 && run[key] != present && plan.k_rows[int64_t(key) * LS_TILE] >= 0;
                    run[key] = present;
                }
            }
            class_run.push_back(int32_t(start.size()));
            low.resize(start.size(), INT32_MAX), high.resize(start.size(), 0);
            find_repeats(plan, run, repeat, owner);
        }
        start.push_back(int32_t(plan.q_tiles));
    }

    void find_repeats(const ls_plan& plan, const int32_t* run, int32_t* repeat, std::vector<int32_t>& owner) {
        std::fill(owner.begin(), owner.end(), -1);
        std::vector<int32_t> count(start.size(), 0);
        for (int64_t k = 0; k < plan.k_tiles; k++) {
            if (run[k] < 0) continue;
            low[run[k]] = std::min(low[run[k]], int32_t(k)), high[run[k]] = int32_t(k + 1);
            const int32_t* rows = plan.k_rows + k * LS_TILE;
            bool repeats_rows = false;
            for (int i = 0; i < LS_TILE && rows[i] >= 0; i++) {
                repeats_rows |= owner[rows[i]] >= 0;
                shared |= owner[rows[i]] >= 0 && run[owner[rows[i]]] != run[k];
            }
            for (int i = 0; i < LS_TILE && rows[i] >= 0 && !repeats_rows; i++) {
                shared |= owner[rows[i]] == k;
                owner[rows[i]] = int32_t(k);
            }
            if (repeats_rows) repeat[k] = count[run[k]]++;
        }
        for (int32_t n : count) repeats = std::max<int64_t>(repeats, n);
    }
};

// Neighbors among the query heads of a key head make a bundle if they are of one class and no terms are kept for each head.
std::vector<ls_bundle> alike(const ls_problem& p) {
    const int64_t group = heads_per_key_head(p);
    std::vector<ls_bundle> bundles;
    for (int32_t h = 0; h < p.plan.heads; h++)
        if (h % group && !p.relative && !p.table && p.plan.head_class[h] == p.plan.head_class[h - 1])
            bundles.back().count++;
        else
            bundles.push_back({h, 1, false});
    return bundles;
}

// All query heads of a key head: its gradient has one owner.
std::vector<ls_bundle> owners(const ls_problem& p) {
    const int32_t group = int32_t(heads_per_key_head(p));
    std::vector<ls_bundle> bundles;
    for (const ls_bundle& part : alike(p))
        if (part.first % group)
            bundles.back() = {bundles.back().first, group, true};
        else
            bundles.push_back(part);
    return bundles;
}

// Rows that are quantized together, few enough for the cache; and rows that a packed panel serves.
constexpr int64_t TOGETHER = 2048, BAND = 256;

template <class Body>
bool share(ls_linear_job& job, int64_t units, int64_t bytes, Body body) {
    job.next = 0;
    on_threads(int(std::max<int64_t>(1, std::min<int64_t>(job.layer->threads, units))), [&] {
        FlushDenormals guard;
        if (float* memory = scratch.get(bytes)) body(&job, memory);
    });
    return job.next >= units;  // as in run(), unless no worker had memory
}

int multiply(ls_linear_job& job, const ls_target& target) {
    const int64_t bands = (job.rows + BAND - 1) / BAND, panel = target.linear_panel(&job);
    job.band = (job.rows + bands - 1) / bands;
    job.panels = (job.layer->outputs + panel - 1) / panel;
    job.units = bands * job.panels;
    return share(job, job.units, target.linear_scratch(&job), target.linear) ? 0 : 1;
}

int multiply_quantized(ls_linear_job& job, const ls_target& target) {
    const ls_layer& layer = *job.layer;
    // Sums of products of 8 bits have room for this many inputs.
    job.per_word = target.fours && ls_cpu_feature("avx512vnni") && layer.inputs <= INT32_MAX / (255 * 127) ? 4 : 2;
    // Rows whose stride divides a page would compete for the same few cache lines.
    job.x_row = (layer.inputs + 16 * job.per_word - 1) / (16 * job.per_word) * 16;
    if (job.x_row % 64 == 0) job.x_row += 16;
    job.most = float(std::min<int64_t>(INT16_MAX, INT32_MAX / (127 * std::max<int64_t>(1, layer.inputs))));
    const int64_t together = std::min(layer.rows, TOGETHER);
    static thread_local Scratch kept;
    float* memory = kept.get(together * (job.x_row + 2) * 4);
    if (!memory) return 1;
    job.x = job.words = memory;
    job.steps = reinterpret_cast<ls_steps*>(memory + together * job.x_row);
    for (; job.first < layer.rows; job.first += job.rows) {
        job.rows = std::min(together, layer.rows - job.first);
        if (!share(job, (job.rows + 31) / 32, 64, target.quantize)) return 1;  // a few rows are not worth a thread
        if (int failed = multiply(job, target)) return failed;
    }
    return 0;
}

// Query tokens as int8, in steps of their own size. One with NaN or infinity has a step of NaN, and so have its results.
struct Queries {
    std::vector<int8_t> bytes;
    std::vector<float> steps;

    explicit Queries(const ls_max_sim_problem& p) : bytes(p.queries * p.width), steps(p.queries) {
        for (int64_t i = 0; i < p.queries; i++) {
            const float* x = p.query + i * p.width;
            float largest = 0;
            for (int64_t c = 0; c < p.width; c++) largest = std::isfinite(x[c]) ? std::max(largest, std::fabs(x[c])) : INFINITY;
            const bool any = largest > 1e-30f && largest < INFINITY;
            steps[i] = any ? largest / 127 : largest < INFINITY ? 0 : NAN;
            for (int64_t c = 0; any && c < p.width; c++) bytes[i * p.width + c] = int8_t(std::lrint(x[c] * (127 / largest)));
        }
    }
};

}  // namespace

extern "C" {

int ls_abi(void) { return LS_ABI; }

const char* ls_target_name(int number) { return number < int(std::size(choices)) ? choices[number].target->name : nullptr; }
int ls_target_supported(const char* name) {
    const Choice* c = name && *name ? find(name) : nullptr;
    return c && c->supported();
}

int ls_forward(const ls_problem* problem, const ls_result* result, const char* name) {
    const Choice* choice = find(name);
    if (!choice || !choice->supported()) return 2;
    const ls_target& target = *choice->target;
    const ls_plan& plan = problem->plan;
    const std::vector<ls_bundle> bundles = alike(*problem);
    std::vector<int64_t> unit_start(1, 0);
    for (const ls_bundle& b : bundles) {
        int32_t c = plan.head_class[b.first];
        unit_start.push_back(unit_start.back() + int64_t(plan.class_start[c + 1] - plan.class_start[c]) * b.count);
    }
    prefer_large_pages(result->out, plan.queries * plan.heads * problem->value_dim * (problem->dtype == LS_F32 ? 4 : 2));
    ls_job job{};
    job.problem = problem;
    job.result = result;
    job.bundles = bundles.data();
    job.unit_start = unit_start.data();
    job.units = unit_start.back();
    job.least = 2;
    job.slots = slots_for(plan, (int64_t(problem->dim) + problem->value_dim) * LS_TILE, 8 << 20);
    if (!worth_cutting(plan, job.units, problem->threads)) return run(job, target.forward_scratch, target.forward);
    const Pieces pieces(plan);
    std::unique_ptr<float[]> parts(new (std::nothrow) float[pieces.segments.size() * target.part_floats(&job)]);
    if (!parts) return run(job, target.forward_scratch, target.forward);
    job.parts = parts.get();
    job.least = 1;
    for (const std::vector<ls_piece>& phase : {std::cref(pieces.segments), std::cref(pieces.tiles)}) {
        job.merging = &phase == &pieces.tiles;
        job.pieces = phase.data();
        job.units = int64_t(phase.size());
        if (int failed = run(job, target.forward_scratch, target.forward)) return failed;
    }
    return 0;
}

int ls_backward(const ls_problem* problem, const ls_gradient* gradient, const char* name) {
    const Choice* choice = find(name);
    if (!choice || !choice->supported()) return 2;
    const ls_plan& plan = problem->plan;
    const Runs runs(plan, problem->relative || problem->table);
    if (runs.shared) return 3;
    prefer_large_pages(gradient->dq, plan.queries * plan.heads * problem->dim * 4);
    clear(gradient->dk, plan.keys * problem->key_heads * problem->dim, problem->threads);
    clear(gradient->dv, plan.keys * problem->key_heads * problem->value_dim, problem->threads);
    const std::vector<ls_bundle> bundles = owners(*problem);
    std::vector<int64_t> unit_start(1, 0);
    for (const ls_bundle& b : bundles) {
        int32_t c = plan.head_class[b.first];
        unit_start.push_back(unit_start.back() + (b.apart ? 1 : runs.class_run[c + 1] - runs.class_run[c]));
    }
    ls_job job{};
    job.problem = problem;
    job.gradient = gradient;
    job.bundles = bundles.data();
    job.unit_start = unit_start.data();
    job.run_start = runs.start.data();
    job.class_run = runs.class_run.data();
    job.run_of = runs.run_of.data();
    job.run_low = runs.low.data();
    job.run_high = runs.high.data();
    job.repeat_of = runs.repeat_of.data();
    job.repeats = runs.repeats;
    job.units = unit_start.back();
    job.least = 1;
    job.slots = slots_for(plan, (3 * int64_t(problem->dim) + 2 * problem->value_dim) * LS_TILE, 16 << 20);
    return run(job, choice->target->backward_scratch, choice->target->backward);
}

int ls_linear(const ls_layer* layer, const char* name) {
    const Choice* choice = find(name);
    if (!choice || !choice->supported()) return 2;
    if (layer->rows == 0 || layer->outputs == 0) return 0;
    prefer_large_pages(layer->y, ((layer->rows - 1) * layer->y_row + layer->outputs) * 4);
    ls_linear_job job{};
    job.layer = layer;
    if (layer->scales) return multiply_quantized(job, *choice->target);
    job.rows = layer->rows;
    job.x = layer->x;
    job.x_row = layer->x_row;
    return multiply(job, *choice->target);
}

int ls_layer_norm(const ls_norm* norm, const char* name) {
    const Choice* choice = find(name);
    if (!choice || !choice->supported()) return 2;
    ls_norm_job job = {norm, (norm->rows + LS_NORM_ROWS - 1) / LS_NORM_ROWS, 0};
    on_threads(int(std::max<int64_t>(1, std::min<int64_t>(norm->threads, job.units))), [&] {
        FlushDenormals guard;
        choice->target->layer_norm(&job, nullptr);
    });
    return 0;
}

int ls_rotate(const ls_rotation* rotation, const char* name) {
    const Choice* choice = find(name);
    if (!choice || !choice->supported()) return 2;
    ls_rotation_job job = {rotation, (rotation->rows + LS_NORM_ROWS - 1) / LS_NORM_ROWS, 0};
    on_threads(int(std::max<int64_t>(1, std::min<int64_t>(rotation->threads, job.units))), [&] {
        FlushDenormals guard;
        choice->target->rotate(&job, nullptr);
    });
    return 0;
}

int ls_max_sim(const ls_max_sim_problem* problem, const char* name) {
    const Choice* choice = find(name);
    if (!choice || !choice->supported()) return 2;
    if (problem->queries == 0 || problem->passages == 0) return 0;
    ls_max_sim_job job = {problem, problem->query, nullptr, ls_cpu_feature("avx512vnni") != 0, 0};
    std::optional<Queries> queries;
    if (problem->scales) queries.emplace(*problem), job.queries = queries->bytes.data(), job.steps = queries->steps.data();
    const int64_t bytes = choice->target->max_sim_scratch(&job);
    on_threads(int(std::max<int64_t>(1, std::min<int64_t>(problem->threads, problem->passages))), [&] {
        FlushDenormals guard;
        if (float* memory = scratch.get(bytes)) choice->target->max_sim(&job, memory);
    });
    return job.next < problem->passages ? 1 : 0;  // as in run()
}

}
