// Forward: for each query tile, walk its key tiles; score, softmax against a running reference, weighted sum of values.
// Scores live in base 2: log2(e) is folded into the packed queries.

// Packed key tiles, reused by the query tiles that follow. Which slot a tile takes depends on its number only.
struct KeySlot {
    int64_t head, tile;
    bool finite;
};

template <class T>
struct Forward {
    const ls_problem& p;
    const ls_result& result;
    int64_t slots;
    int dim, width;
    KeySlot* slot;
    float *keys, *values;           // [slots][dim][64], [slots][64][width]
    float *queries, *scores, *sum;  // [64][width], [64][64], [64][width]
    float *reference, *total;       // [64], [64][L]
    Labels labels;
    Dropout dropout;

    Forward(const ls_job* job, Arena& arena)
        : p(*job->problem), result(*job->result), slots(job->slots), dim(p.dim), width(int(round_up(p.dim, L))),
          slot(arena.get<KeySlot>(slots)), keys(arena.get(slots * dim * LS_TILE)), values(arena.get(slots * LS_TILE * width)),
          queries(arena.get(LS_TILE * width)), scores(arena.get(LS_TILE * LS_TILE)), sum(arena.get(LS_TILE * width)),
          reference(arena.get(LS_TILE)), total(arena.get(LS_TILE * L)), labels(p, width, arena), dropout(p) {
        if (slot)
            for (int64_t s = 0; s < slots; s++) slot[s].tile = -1;
    }

    static Rows<T> rows_of(const ls_view& x, int64_t head) {
        return {(const typename T::type*)x.data + head * x.head, x.row, x.dim};
    }

    int64_t pack_keys(int64_t head, int64_t tile, Tile k) {
        int64_t s = tile % slots;
        if (slot[s].tile != tile || slot[s].head != head) {
            transpose_rows(rows_of(p.k, head), k.rows, k.count, dim, keys + s * dim * LS_TILE);
            bool finite = copy_rows(rows_of(p.v, head), k.rows, k.count, dim, width, 1.0f, values + s * LS_TILE * width);
            slot[s] = {head, tile, finite};
        }
        return s;
    }

    // A score went above the reference by more than 2^24 (or is the row's first): what was added up so far is rescaled.
    void __attribute__((noinline)) raise_reference(int i, float top) {
        float factor = reference[i] == NOTHING ? 0.0f : exp2_one(reference[i] - top);
        for (int d = 0; d < width; d += L) store(sum + i * width + d, load(sum + i * width + d) * factor);
        store(total + i * L, load(total + i * L) * factor);
        reference[i] = top;
    }

    // Scores become probabilities relative to each row's reference, and are added to the rows' totals.
    template <bool MASKED, int LABELS>
    void __attribute__((noinline)) softmax(int rows, const Pairs& pairs, float shift, const int32_t* label_tile) {
        for (int i = 0; i < rows; i++) {
            int first = 0, last = ROW;
            if (MASKED) {
                Range columns = pairs.columns[i / BLOCK];
                first = columns.begin / L, last = (columns.end + L - 1) / L;
            }
            float* row = scores + i * LS_TILE;
            vf x[ROW], top = splat(NOTHING);
#pragma GCC unroll 16
            for (int j = 0; j < ROW; j++) {
                if (MASKED && (j < first || j >= last)) continue;
                x[j] = load(row + j * L) + shift;
                if (LABELS) x[j] += labels.template bias<LABELS>(i, j, label_tile);
                if (MASKED) x[j] = choose(lane_mask(row_bits(pairs.bits[i], j)), x[j], splat(NOTHING));
                top = larger(x[j], top);
            }
            if (any_greater(top, splat(reference[i] + 24.0f))) raise_reference(i, max_lanes(top));
            float minus = reference[i] == NOTHING ? 0.0f : -reference[i];
            vf part = load(total + i * L);
#pragma GCC unroll 16
            for (int j = 0; j < ROW; j++) {
                if (MASKED && (j < first || j >= last)) continue;
                x[j] = exp2_lanes(x[j] + minus);
                part += x[j];
                store(row + j * L, x[j]);
            }
            store(total + i * L, part);
        }
    }

    void drop(int64_t head, Tile q, Tile k, const Pairs& pairs) {
        dropout.set_columns(p.plan.k_positions, k);
        for (int i = 0; i < q.count; i++) {
            uint32_t row = dropout.row(p.plan.q_sites + 2 * int64_t(q.rows[i]), head);
            Range columns = pairs.columns[i / BLOCK];
            for (int j = columns.begin / L; j * L < columns.end; j++) {
                float* at = scores + i * LS_TILE + j * L;
                store(at, load(at) * dropout.kept(row, j));
            }
        }
    }

    void attend(int64_t head, Tile q, const Entry& entry) {
        const ls_plan& plan = p.plan;
        Tile k = tile_at(plan.k_rows, entry.key_tile);
        Pairs pairs;
        find_pairs(plan, entry, q.count, k.count, &pairs);
        int64_t s = pack_keys(head, entry.key_tile, k);
        set_product(q.count, pairs.columns, queries, width, dim, keys + s * dim * LS_TILE, LS_TILE, scores, LS_TILE);
        float shift = entry.multiplicity == 1 ? 0.0f : __builtin_log2f(float(entry.multiplicity));
        const int32_t* ranks = labels.on ? labels.prepare(q.count, entry.labels) : nullptr;
        bool ramp = ranks && plan.label_kind[entry.labels] == 1;
        if (!ranks)
            pairs.masked ? softmax<true, 0>(q.count, pairs, shift, ranks) : softmax<false, 0>(q.count, pairs, shift, ranks);
        else if (ramp)
            pairs.masked ? softmax<true, 1>(q.count, pairs, shift, ranks) : softmax<false, 1>(q.count, pairs, shift, ranks);
        else
            pairs.masked ? softmax<true, 2>(q.count, pairs, shift, ranks) : softmax<false, 2>(q.count, pairs, shift, ranks);
        if (dropout.on) drop(head, q, k, pairs);
        add_product(q.count, pairs.columns, {scores, LS_TILE, 1}, values + s * LS_TILE * width, width, sum, width, width / L,
                    slot[s].finite);
    }

    void __attribute__((noinline)) finish(int64_t head, Tile q) {
        for (int i = 0; i < q.count; i++) {
            int64_t at = int64_t(q.rows[i]) * p.plan.heads + head;
            float whole = sum_lanes(load(total + i * L));
            float inverse = whole == 0.0f ? 0.0f : 1.0f / whole;
            result.lse[at] = whole == 0.0f ? NOTHING : (reference[i] + __builtin_log2f(whole)) * LN2;
            typename T::type* to = (typename T::type*)result.out + at * dim;
            const float* from = sum + i * width;
            int d = 0;
            if constexpr (sizeof(typename T::type) == 4)
                if (uintptr_t(to) % sizeof(vf) == 0)
                    for (; d + L <= dim; d += L) stream((float*)to + d, load(from + d) * inverse);
            for (; d + L <= dim; d += L) T::put_lanes(to + d, load(from + d) * inverse);
            for (; d < dim; d++) T::put(to + d, from[d] * inverse);
        }
    }

    // The rows that the next query tile will be the first to read come from far apart: ask for them a few at a time.
    void prefetch(const ls_view& x, int64_t head, Tile tile, int64_t part, int64_t parts) {
        for (int64_t i = tile.count * part / parts; i < tile.count * (part + 1) / parts; i++) {
            const char* row = (const char*)rows_of(x, head).at(tile.rows[i]);
            for (int64_t b = 0; b < dim * int64_t(sizeof(typename T::type)); b += 64) __builtin_prefetch(row + b, 0, 2);
        }
    }

    void run(int64_t head, int64_t tile) {
        const ls_plan& plan = p.plan;
        Tile q = tile_at(plan.q_rows, tile);
        if (q.count == 0) return;
        copy_rows(rows_of(p.q, head), q.rows, q.count, dim, width, p.scale * LOG2E, queries);
        __builtin_memset(sum, 0, sizeof(float) * q.count * width);
        __builtin_memset(total, 0, sizeof(float) * q.count * L);
        for (int i = 0; i < q.count; i++) reference[i] = NOTHING;
        if (labels.on) labels.begin(head, q.count, queries, p.scale * LOG2E);
        const Entry* entries = (const Entry*)plan.entries;
        int64_t first = plan.entry_start[tile], last = plan.entry_start[tile + 1];
        Tile next_q = {nullptr, 0}, next_k = {nullptr, 0};
        if (tile + 1 < plan.q_tiles) {
            next_q = tile_at(plan.q_rows, tile + 1);
            int64_t newest = plan.entry_start[tile + 2] - 1;
            if (newest >= last) {
                int64_t k = entries[newest].key_tile;
                if (slot[k % slots].tile != k || slot[k % slots].head != head) next_k = tile_at(plan.k_rows, k);
            }
        }
        for (int64_t e = first; e < last; e++) {
            prefetch(p.q, head, next_q, e - first, last - first);
            prefetch(p.k, head, next_k, e - first, last - first);
            prefetch(p.v, head, next_k, e - first, last - first);
            attend(head, q, entries[e]);
        }
        finish(head, q);
    }
};

template <class T>
static void forward_units(ls_job* job, float* scratch) {
    Arena arena{scratch};
    Forward<T> worker(job, arena);
    const ls_plan& plan = job->problem->plan;
    int64_t begin, end, head = 0;
    while (job->take(&begin, &end))
        for (int64_t u = begin; u < end; u++) {
            while (job->unit_start[head + 1] <= u) head++;
            worker.run(head, plan.class_start[plan.head_class[head]] + u - job->unit_start[head]);
        }
    stream_done();
}

template <class T>
static int64_t forward_scratch_of(const ls_job* job) {
    Arena arena{nullptr};
    Forward<T> worker(job, arena);
    return arena.used * 4;
}

static void forward(ls_job* job, float* scratch) {
    if (job->problem->dtype == LS_F32) forward_units<F32>(job, scratch);
    if (job->problem->dtype == LS_BF16) forward_units<BF16>(job, scratch);
    if (job->problem->dtype == LS_F16) forward_units<F16>(job, scratch);
}
static int64_t forward_scratch(const ls_job* job) { return forward_scratch_of<F32>(job); }
