// Forward: for each query tile, walk its key tiles; score, softmax against a running reference, weighted sum of values.
// Scores live in base 2: packed queries carry the scale, packed keys log2(e), here as in the backward pass.

// The state of a query tile's rows after some of its keys: sums of values and of probabilities, both relative to
// 2^reference. The sum of probabilities is kept in lanes.
struct State {
    float *sum, *total, *reference;  // [64][width], [64][L], [64]

    static int64_t floats(int width) { return LS_TILE * (int64_t(width) + L + 1); }
    static State at(float* memory, int width) {
        if (!memory) return {};
        return {memory, memory + LS_TILE * width, memory + LS_TILE * (width + L)};
    }
    void clear(int rows, int width) {
        __builtin_memset(sum, 0, sizeof(float) * rows * width);
        __builtin_memset(total, 0, sizeof(float) * rows * L);
        for (int i = 0; i < rows; i++) reference[i] = NOTHING;
    }
    // Row i relative to another reference, not below the present one.
    void __attribute__((noinline)) raise(int i, int width, float to) {
        float factor = reference[i] == NOTHING ? 0.0f : exp2_one(reference[i] - to);
        for (int d = 0; d < width; d += L) store(sum + i * width + d, load(sum + i * width + d) * factor);
        store(total + i * L, load(total + i * L) * factor);
        reference[i] = to;
    }
    void merge(State& other, int rows, int width) {
        for (int i = 0; i < rows; i++) {
            if (reference[i] < other.reference[i]) raise(i, width, other.reference[i]);
            if (other.reference[i] < reference[i]) other.raise(i, width, reference[i]);
            for (int d = 0; d < width; d += L) store(sum + i * width + d, load(sum + i * width + d) + load(other.sum + i * width + d));
            store(total + i * L, load(total + i * L) + load(other.total + i * L));
        }
    }
};

template <class T>
struct Forward {
    const ls_problem& p;
    const ls_result& result;
    int64_t group;             // query heads that share a key head
    int dim, width, value_dim, value_width;
    Slots slots;               // packed key tiles, reused by the query tiles that follow
    float *keys, *values;      // [slots][dim, or width][64], [slots][64][value_width]
    float *queries, *scores;   // [64][width], [64][64]
    State state, part;         // the tile's, and that of one of its later segments
    Labels labels;
    SoftCap softcap;
    Dropout dropout;

    Forward(const ls_job* job, Arena& arena)
        : p(*job->problem), result(*job->result), group(heads_per_key_head(p)), dim(p.dim), width(int(round_up(p.dim, L))),
          value_dim(p.value_dim), value_width(int(round_up(p.value_dim, L))), slots(job->slots, p.plan.k_tiles, arena), keys(arena.get(job->slots * width * LS_TILE)),
          values(arena.get(job->slots * LS_TILE * value_width)),
          queries(arena.get(LS_TILE * width)), scores(arena.get(LS_TILE * LS_TILE)),
          state(State::at(arena.get(State::floats(value_width)), value_width)),
          part(State::at(arena.get(State::floats(value_width)), value_width)), labels(p, width, arena), softcap(p), dropout(p) {}

    static Rows<T> rows_of(const ls_view& x, int64_t head) {
        return {(const typename T::type*)x.data + head * x.head, x.row, x.dim};
    }

    int64_t pack_keys(int64_t head, int64_t tile, Tile k, int64_t user) {
        int64_t key_head = head / group, s = slots.find(key_head, tile, user);
        if (s >= 0) return s;
        s = slots.oldest(user);
        slots.put(s, key_head, tile, user);
        transpose_rows(rows_of(p.k, key_head), k.rows, k.count, dim, LOG2E, keys + s * width * LS_TILE);
        slots.tag[s].finite = copy_rows(rows_of(p.v, key_head), k.rows, k.count, value_dim, value_width, 1.0f, values + s * LS_TILE * value_width);
        return s;
    }

    // Scores become probabilities relative to each row's reference, and are added to the rows' totals.
    template <bool MASKED, int LABELS>
    void __attribute__((noinline)) softmax(State& to, int rows, const Pairs& pairs, float shift, const int32_t* ranks) {
        for (int i = 0; i < rows; i++) {
            int first = 0, last = ROW;
            if (MASKED) {
                Range columns = pairs.columns[i / BLOCK];
                first = columns.begin / L, last = (columns.end + L - 1) / L;
            }
            float* row = scores + i * LS_TILE;
            vf top = splat(NOTHING);
            for (int j = first; j < last; j++) {
                vf x = load(row + j * L);
                if (LABELS) x += labels.template bias<LABELS>(i, j, ranks);
                if (MASKED) x = choose(lane_mask(row_bits(pairs.bits[i], j)), x, splat(NOTHING));
                if (MASKED || LABELS) store(row + j * L, x);
                top = larger(x, top);
            }
            // Rescaling waits until a score is 2^24 above the reference, so most rows never need it again.
            if (any_greater(top, splat(to.reference[i] - shift + 24.0f))) to.raise(i, value_width, max_lanes(top) + shift);
            float minus = to.reference[i] == NOTHING ? 0.0f : shift - to.reference[i];
            vf total = load(to.total + i * L);
            for (int j = first; j < last; j++) {
                vf x = exp2_lanes(load(row + j * L) + minus);
                total += x;
                store(row + j * L, x);
            }
            store(to.total + i * L, total);
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

    // A few queries use a key tile too little to pay for packing it: its rows are read in place if they are equally spaced
    // and every query sees all of them, else copied.
    struct Source {
        const float* data;
        int64_t stride;
        bool finite;
    };
    Source rows_in_place(const ls_view& x, int64_t head, Tile k, int size, bool masked, float* buffer) {
        Rows<T> rows = rows_of(x, head);
        if constexpr (sizeof(typename T::type) == 4)
            if (!masked && x.dim == 1 && size % L == 0) {
                int64_t step = k.count > 1 ? k.rows[1] - k.rows[0] : 1;
                int i = 1;
                while (i < k.count && k.rows[i] - k.rows[i - 1] == step) i++;
                if (i == k.count) return {rows.at(k.rows[0]), step * x.row, true};
            }
        int padded = int(round_up(size, L));
        bool finite = copy_rows(rows, k.rows, k.count, size, padded, 1.0f, buffer);
        return {buffer, padded, finite};
    }

    // Products of R query rows with the keys of a tile, L keys at a time; the values to come are prefetched meanwhile.
    template <int R>
    void dot_rows(const float* query, Tile k, const Source& key, const Source& value, float* to) {
        constexpr int KEYS = R == 1 ? (L < 8 ? L : 8) : R == 2 ? 4 : 2;
        for (int j = 0; j < k.count; j += L) {
            vf lanes[R][L];
            int count = k.count - j < L ? k.count - j : L;
            for (int n = 0; n < count; n++) {
                for (int d = 0; d < width; d += 16) __builtin_prefetch(key.data + (j + 2 * L + n) * key.stride + d);
                for (int d = 0; d < value_width; d += 16) __builtin_prefetch(value.data + (j + n) * value.stride + d);
            }
            int n = 0;
            for (; n + KEYS <= count; n += KEYS) dots<R, KEYS>(query, width, key.data + (j + n) * key.stride, key.stride, width, lanes, n);
            for (; n < count; n++) dots<R, 1>(query, width, key.data + (j + n) * key.stride, key.stride, width, lanes, n);
            for (; n < L; n++)
                for (int r = 0; r < R; r++) lanes[r][n] = zero();
            for (int r = 0; r < R; r++) store(to + r * LS_TILE + j, sums_of_lanes(lanes[r]) * LOG2E);
        }
    }
    void thin_scores(int rows, Tile k, const Source& key, const Source& value) {
        for (int i = 0; i < rows; i += 4) {
            const float* query = queries + i * width;
            float* to = scores + i * LS_TILE;
            if (rows - i >= 4) dot_rows<4>(query, k, key, value, to);
            if (rows - i == 3) dot_rows<3>(query, k, key, value, to);
            if (rows - i == 2) dot_rows<2>(query, k, key, value, to);
            if (rows - i == 1) dot_rows<1>(query, k, key, value, to);
        }
    }
    // A few keys at a time: with some strides, more rows in place would evict each other.
    void thin_sum(State& to, int rows, const Pairs& pairs, const Source& value) {
        for (int j = 0; j < LS_TILE; j += L) {
            Range some[GROUPS];
            for (int i = 0, g = 0; i < rows; i += BLOCK, g++) {
                Range all = pairs.columns[g];
                int begin = all.begin > j ? all.begin : j, end = all.end < j + L ? all.end : j + L;
                some[g] = begin < end ? Range{begin, end} : Range{0, 0};
            }
            add_product(rows, some, {scores, LS_TILE, 1}, value.data, value.stride, to.sum, value_width, value_width / L, value.finite);
        }
    }

    void attend(State& to, int64_t head, Tile q, const Entry& entry, int64_t user) {
        const ls_plan& plan = p.plan;
        Tile k = tile_at(plan.k_rows, entry.key_tile);
        Pairs pairs;
        find_pairs(plan, entry, q.count, k.count, &pairs);
        Source value;
        if (q.count <= LS_FEW_ROWS) {
            int64_t s = slots.oldest(user);  // its memory is borrowed where rows must be copied
            slots.tag[s].tile = -1;
            Source key = rows_in_place(p.k, head / group, k, dim, entry.mask >= 0, keys + s * width * LS_TILE);
            value = rows_in_place(p.v, head / group, k, value_dim, entry.mask >= 0, values + s * LS_TILE * value_width);
            thin_scores(q.count, k, key, value);
        } else {
            int64_t s = pack_keys(head, entry.key_tile, k, user);
            value = {values + s * LS_TILE * value_width, value_width, slots.tag[s].finite};
            set_product(q.count, pairs.columns, queries, width, dim, keys + s * width * LS_TILE, LS_TILE, scores, LS_TILE);
        }
        if (softcap.on) softcap.template apply<false>(q.count, pairs, scores, nullptr);
        float shift = entry.multiplicity == 1 ? 0.0f : __builtin_log2f(float(entry.multiplicity));
        const int32_t* ranks = labels.on ? labels.prepare(q.count, entry.labels) : nullptr;
        bool ramp = ranks && plan.label_kind[entry.labels] == 1;
        if (!ranks)
            pairs.masked ? softmax<true, 0>(to, q.count, pairs, shift, ranks) : softmax<false, 0>(to, q.count, pairs, shift, ranks);
        else if (ramp)
            pairs.masked ? softmax<true, 1>(to, q.count, pairs, shift, ranks) : softmax<false, 1>(to, q.count, pairs, shift, ranks);
        else
            pairs.masked ? softmax<true, 2>(to, q.count, pairs, shift, ranks) : softmax<false, 2>(to, q.count, pairs, shift, ranks);
        if (dropout.on) drop(head, q, k, pairs);
        if (q.count <= LS_FEW_ROWS)
            thin_sum(to, q.count, pairs, value);
        else
            add_product(q.count, pairs.columns, {scores, LS_TILE, 1}, value.data, value.stride, to.sum, value_width, value_width / L, value.finite);
    }

    // One segment of a query tile's list of key tiles. Lists are cut at fixed lengths, whatever the threads.
    void run_segment(State to, int64_t head, int64_t tile, int64_t segment) {
        const ls_plan& plan = p.plan;
        Tile q = tile_at(plan.q_rows, tile);
        copy_rows(rows_of(p.q, head), q.rows, q.count, dim, width, p.scale, queries);
        if (labels.on) labels.begin(head, q.count, queries);
        to.clear(q.count, value_width);
        const Entry* entries = (const Entry*)plan.entries;
        int64_t length = segment_length(plan, tile), first = plan.entry_start[tile] + segment * length, last = plan.entry_start[tile + 1];
        if (last > first + length) last = first + length;
        for (int64_t e = first; e < last; e++) attend(to, head, q, entries[e], tile);
    }

    void finish(const State& from, int64_t head, Tile q) {
        for (int i = 0; i < q.count; i++) {
            int64_t at = int64_t(q.rows[i]) * p.plan.heads + head;
            float whole = sum_lanes(load(from.total + i * L));
            float inverse = whole == 0.0f ? 0.0f : 1.0f / whole;
            result.lse[at] = whole == 0.0f ? NOTHING : float((double(from.reference[i]) + __builtin_log2f(whole)) * LN2);
            typename T::type* to = (typename T::type*)result.out + at * value_dim;
            const float* sum = from.sum + i * value_width;
            int d = 0;
            if constexpr (sizeof(typename T::type) == 4)
                if (uintptr_t(to) % sizeof(vf) == 0)
                    for (; d + L <= value_dim; d += L) stream((float*)to + d, load(sum + d) * inverse);
            for (; d + L <= value_dim; d += L) T::put_lanes(to + d, load(sum + d) * inverse);
            for (; d < value_dim; d++) T::put(to + d, sum[d] * inverse);
        }
    }

    // A whole query tile; with `parts`, its segments are already computed.
    void run(int64_t head, int64_t tile, float* parts) {
        Tile q = tile_at(p.plan.q_rows, tile);
        if (q.count == 0) return;
        State whole = parts ? State::at(parts, value_width) : state;
        if (!parts) run_segment(whole, head, tile, 0);
        for (int64_t s = 1; s < segments_of(p.plan, tile); s++) {
            State next = parts ? State::at(parts + s * State::floats(value_width), value_width) : part;
            if (!parts) run_segment(next, head, tile, s);
            whole.merge(next, q.count, value_width);
        }
        finish(whole, head, q);
    }
};

template <class T>
static void forward_units(ls_job* job, float* scratch) {
    Arena arena{scratch};
    Forward<T> worker(job, arena);
    const ls_plan& plan = job->problem->plan;
    int64_t begin, end, b = 0, size = State::floats(worker.value_width);
    while (job->take(&begin, &end))
        for (int64_t u = begin; u < end; u++) {
            if (job->pieces) {
                const ls_piece& piece = job->pieces[u];
                if (job->merging)
                    worker.run(piece.head, piece.tile, job->parts + piece.part * size);
                else
                    worker.run_segment(State::at(job->parts + piece.part * size, worker.value_width), piece.head, piece.tile, piece.segment);
            } else {
                while (job->unit_start[b + 1] <= u) b++;
                const ls_bundle& bundle = job->bundles[b];
                int64_t number = u - job->unit_start[b], tile = number / bundle.count;
                worker.run(bundle.first + number % bundle.count, plan.class_start[plan.head_class[bundle.first]] + tile, nullptr);
            }
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
static int64_t part_floats(const ls_job* job) { return State::floats(int(round_up(job->problem->value_dim, L))); }
