// Backward: one pass of five products per pair of tiles, scores recomputed from the saved log-sum-exp.
//   P = exp(S - lse)   dP = dO V^T   dS = P (dP - delta)   dV += P^T dO   dK += dS^T Q   dQ += dS K
// A worker takes a whole document of the heads that share a key head, so every gradient row has one owner and one order of addition.

template <class T>
struct Backward {
    const ls_job& job;
    const ls_problem& p;
    const ls_gradient& grad;
    int64_t head = -1, key_head = -1, group;  // group: query heads that share a key head
    int dim, width, value_dim, value_width;
    Slots slots;  // packed key tiles with their gradients so far
    float *keys, *keys_across, *values_across;            // [slots] x [64][width], [dim][64], [value_dim][64]
    float *dk, *dv;                                       // [slots] x [64][width], [64][value_width]
    float* repeats;                                       // [repeats] x the same: gradients of tiles that repeat rows
    float *queries, *grads, *dq;                          // [64][width], [64][value_width], [64][the wider]
    float *scores, *dscores, *slopes;                     // [64][64]; the slopes only with a softcap
    float *lse, *delta;                                   // [64]
    bool queries_finite, grads_finite;
    Labels labels;
    LabelGradients label_gradients;
    SoftCap softcap;
    Dropout dropout;

    Backward(const ls_job* job, Arena& arena)
        : job(*job), p(*job->problem), grad(*job->gradient), group(heads_per_key_head(p)), dim(p.dim), width(int(round_up(p.dim, L))),
          value_dim(p.value_dim), value_width(int(round_up(p.value_dim, L))),
          slots(job->slots, p.plan.k_tiles, arena), keys(arena.get(job->slots * LS_TILE * width)),
          keys_across(arena.get(job->slots * dim * LS_TILE)), values_across(arena.get(job->slots * value_dim * LS_TILE)),
          dk(arena.get(job->slots * LS_TILE * width)), dv(arena.get(job->slots * LS_TILE * value_width)),
          repeats(arena.get(job->repeats * repeat_floats())), queries(arena.get(LS_TILE * width)), grads(arena.get(LS_TILE * value_width)),
          dq(arena.get(LS_TILE * (width > value_width ? width : value_width))), scores(arena.get(LS_TILE * LS_TILE)),
          dscores(arena.get(LS_TILE * LS_TILE)), slopes(arena.get(p.softcap > 0 ? LS_TILE * LS_TILE : 0)), lse(arena.get(LS_TILE)),
          delta(arena.get(LS_TILE)), labels(p, width, arena), label_gradients(labels, grad, arena), softcap(p), dropout(p) {}

    static Rows<T> rows_of(const ls_view& x, int64_t head) { return Forward<T>::rows_of(x, head); }

    // Where a tile's gradients are kept while it has no slot: in the result's rows, or apart if it repeats rows of other tiles.
    int32_t repeat_of(int64_t tile) const { return job.repeat_of[p.plan.head_class[head] * p.plan.k_tiles + tile]; }

    int64_t repeat_floats() const { return int64_t(LS_TILE) * (width + value_width); }
    int64_t key_at(int64_t row) const { return row * p.key_heads + key_head; }

    template <class Move>
    void each_row(int64_t s, Move move) {
        int64_t tile = slots.tag[s].tile, repeat = repeat_of(tile);
        Tile k = tile_at(p.plan.k_rows, tile);
        const int64_t size = dim, padded = width, value_size = value_dim, value_padded = value_width;
        float *my_dk = dk + s * LS_TILE * padded, *my_dv = dv + s * LS_TILE * value_padded;
        float *apart_dk = repeats + repeat * repeat_floats(), *apart_dv = apart_dk + LS_TILE * padded;
        for (int j = 0; j < k.count; j++) {
            int64_t at = key_at(k.rows[j]);
            move(my_dk + j * padded, repeat < 0 ? grad.dk + at * size : apart_dk + j * padded, size);
            move(my_dv + j * value_padded, repeat < 0 ? grad.dv + at * value_size : apart_dv + j * value_padded, value_size);
        }
    }

    // An evicted tile puts its gradients back where it found them.
    void put_away(int64_t s) {
        if (slots.tag[s].tile < 0) return;
        each_row(s, [](const float* mine, float* rest, int64_t size) { __builtin_memcpy(rest, mine, sizeof(float) * size); });
        slots.tag[s].tile = -1;
    }

    int64_t pack_keys(int64_t tile, Tile k, int64_t user) {
        int64_t s = slots.find(key_head, tile, user), piece = int64_t(LS_TILE) * width;
        if (s >= 0) return s;
        s = slots.oldest(user);
        put_away(s);
        slots.put(s, key_head, tile, user);
        slots.tag[s].finite = copy_rows(rows_of(p.k, key_head), k.rows, k.count, dim, width, 1.0f, keys + s * piece);
        transpose_rows(rows_of(p.k, key_head), k.rows, k.count, dim, LOG2E, keys_across + s * dim * LS_TILE);
        transpose_rows(rows_of(p.v, key_head), k.rows, k.count, value_dim, 1.0f, values_across + s * value_dim * LS_TILE);
        __builtin_memset(dk + s * piece, 0, sizeof(float) * piece);
        __builtin_memset(dv + s * LS_TILE * value_width, 0, sizeof(float) * LS_TILE * value_width);
        each_row(s, [](float* mine, const float* rest, int64_t size) { __builtin_memcpy(mine, rest, sizeof(float) * size); });
        return s;
    }

    // Scores and their products with the gradient become P (with dropout) and dS; both are 0 where a pair does not count.
    template <bool MASKED, int LABELS>
    void __attribute__((noinline)) differentiate(Tile q, const Pairs& pairs, float shift, const int32_t* ranks) {
        for (int i = 0; i < q.count; i++) {
            int first = 0, last = ROW;
            float *s = scores + i * LS_TILE, *ds = dscores + i * LS_TILE;
            if (MASKED) {
                Range columns = pairs.columns[i / BLOCK];
                first = columns.begin / L, last = (columns.end + L - 1) / L;
                for (int j = 0; j < ROW; j++)
                    if (j < first || j >= last) store(s + j * L, zero()), store(ds + j * L, zero());
            }
            uint32_t hash = dropout.on ? dropout.row(p.plan.q_sites + 2 * int64_t(q.rows[i]), head) : 0;
            // The saved log-sum-exp in base 2 has more digits than a float: what rounding takes away comes back as a factor.
            double exact = shift - lse[i] / LN2;
            float minus = float(exact), rest = float(1 + (exact - minus) * LN2);
            for (int j = first; j < last; j++) {
                vf x = load(s + j * L) + minus, dp = load(ds + j * L);
                if (LABELS) x += labels.template bias<LABELS>(i, j, ranks);
                vf probability = exp2_lanes(x) * rest, kept = probability;
                if (dropout.on) {
                    vf factor = dropout.kept(hash, j);
                    kept = kept * factor, dp = dp * factor;
                }
                vf d = probability * (dp - delta[i]);
                if (MASKED) {
                    vi mask = lane_mask(row_bits(pairs.bits[i], j));
                    kept = keep(mask, kept), d = keep(mask, d);
                }
                store(s + j * L, kept);
                store(ds + j * L, d);
                if (LABELS) label_gradients.template add<LABELS>(i, j, ranks, d);
            }
        }
    }

    // For each group of key columns, the query rows that need it.
    void key_ranges(int queries, int keys, const Pairs& pairs, Range* ranges) {
        for (int g = 0; g * BLOCK < keys; g++) {
            ranges[g] = {0, queries};
            if (!pairs.masked) continue;
            uint64_t group = ((uint64_t(1) << BLOCK) - 1) << (g * BLOCK);
            int begin = 0, end = queries;
            while (begin < end && !(pairs.bits[begin] & group)) begin++;
            while (end > begin && !(pairs.bits[end - 1] & group)) end--;
            ranges[g] = {begin, end};
        }
    }

    void attend(Tile q, const Entry& entry, int64_t user) {
        const ls_plan& plan = p.plan;
        Tile k = tile_at(plan.k_rows, entry.key_tile);
        Pairs pairs;
        find_pairs(plan, entry, q.count, k.count, &pairs);
        int64_t s = pack_keys(entry.key_tile, k, user), piece = int64_t(LS_TILE) * width;
        set_product(q.count, pairs.columns, queries, width, dim, keys_across + s * dim * LS_TILE, LS_TILE, scores, LS_TILE);
        set_product(q.count, pairs.columns, grads, value_width, value_dim, values_across + s * value_dim * LS_TILE, LS_TILE, dscores, LS_TILE);
        if (softcap.on) softcap.template apply<true>(q.count, pairs, scores, slopes);
        float shift = entry.multiplicity == 1 ? 0.0f : __builtin_log2f(float(entry.multiplicity));
        const int32_t* ranks = nullptr;
        if (dropout.on) dropout.set_columns(plan.k_positions, k);
        if (!labels.on) {
            pairs.masked ? differentiate<true, 0>(q, pairs, shift, ranks) : differentiate<false, 0>(q, pairs, shift, ranks);
        } else {
            ranks = labels.prepare(q.count, entry.labels);
            if (plan.label_kind[entry.labels] == 1)
                pairs.masked ? differentiate<true, 1>(q, pairs, shift, ranks) : differentiate<false, 1>(q, pairs, shift, ranks);
            else
                pairs.masked ? differentiate<true, 2>(q, pairs, shift, ranks) : differentiate<false, 2>(q, pairs, shift, ranks);
        }
        if (softcap.on) softcap.back(q.count, pairs, dscores, slopes);
        Range seen[GROUPS];
        key_ranges(q.count, k.count, pairs, seen);
        add_product(k.count, seen, {scores, 1, LS_TILE}, grads, value_width, dv + s * LS_TILE * value_width, value_width, value_width / L, grads_finite);
        add_product(k.count, seen, {dscores, 1, LS_TILE}, queries, width, dk + s * piece, width, width / L, queries_finite);
        add_product(q.count, pairs.columns, {dscores, LS_TILE, 1}, keys + s * piece, width, dq, width, width / L, slots.tag[s].finite);
    }

    void begin_tile(Tile q) {
        queries_finite = copy_rows(rows_of(p.q, head), q.rows, q.count, dim, width, p.scale, queries);
        grads_finite = copy_rows(rows_of(grad.grad_out, head), q.rows, q.count, value_dim, value_width, 1.0f, grads);
        copy_rows(rows_of(grad.out, head), q.rows, q.count, value_dim, value_width, 1.0f, dq);  // borrowed until delta is known
        for (int i = 0; i < q.count; i++) {
            int64_t at = int64_t(q.rows[i]) * p.plan.heads + head;
            vf part = zero();
            for (int d = 0; d < value_width; d += L) part += load(grads + i * value_width + d) * load(dq + i * value_width + d);
            delta[i] = sum_lanes(part) - (grad.grad_lse ? grad.grad_lse[at] : 0.0f);
            lse[i] = grad.lse[at] == NOTHING ? 0.0f : grad.lse[at];
        }
        __builtin_memset(dq, 0, sizeof(float) * q.count * width);
        if (labels.on) labels.begin(head, q.count, queries), label_gradients.begin(head);
    }

    void finish_tile(Tile q) {
        if (labels.on) label_gradients.finish_tile(q.count, dq);
        for (int i = 0; i < q.count; i++) {
            float* to = grad.dq + (int64_t(q.rows[i]) * p.plan.heads + head) * dim;
            for (int d = 0; d < dim; d++) to[d] = dq[i * width + d] * p.scale;
        }
    }

    // The gradients of tiles that repeat rows are added, in their order, to those of the rows' owners.
    void finish_keys(int64_t run) {
        const ls_plan& plan = p.plan;
        const int32_t* run_of = job.run_of + plan.head_class[head] * plan.k_tiles;
        for (int64_t s = 0; s < slots.count; s++) put_away(s);
        for (int64_t t = job.run_low[run]; t < job.run_high[run]; t++) {
            int64_t repeat = repeat_of(t);
            if (run_of[t] != run || repeat < 0) continue;
            Tile k = tile_at(plan.k_rows, t);
            for (int j = 0; j < k.count; j++) {
                int64_t at = key_at(k.rows[j]);
                const float* apart = repeats + repeat * repeat_floats();
                for (int d = 0; d < dim; d++) grad.dk[at * dim + d] += apart[j * width + d];
                for (int d = 0; d < value_dim; d++) grad.dv[at * value_dim + d] += apart[LS_TILE * width + j * value_width + d];
            }
        }
    }

    // Heads `first` to `last` of one class and key head. Terms are kept for one head: with them there is no other.
    void run(int64_t first, int64_t last, int64_t run) {
        const ls_plan& plan = p.plan;
        head = first, key_head = first / group;
        __builtin_memset(repeats, 0, sizeof(float) * job.repeats * repeat_floats());
        const Entry* entries = (const Entry*)plan.entries;
        for (int64_t t = job.run_start[run]; t < job.run_start[run + 1]; t++) {
            Tile q = tile_at(plan.q_rows, t);
            if (q.count == 0) continue;
            for (head = first; head < last; head++) {
                begin_tile(q);
                for (int64_t e = plan.entry_start[t]; e < plan.entry_start[t + 1]; e++) attend(q, entries[e], t);
                finish_tile(q);
            }
            head = first;
        }
        finish_keys(run);
        if (labels.on) label_gradients.finish_head();
    }
};

template <class T>
static void backward_units(ls_job* job, float* scratch) {
    Arena arena{scratch};
    Backward<T> worker(job, arena);
    const int32_t* head_class = job->problem->plan.head_class;
    int64_t begin, end, b = 0;
    while (job->take(&begin, &end))
        for (int64_t u = begin; u < end; u++) {
            while (job->unit_start[b + 1] <= u) b++;
            const int64_t first = job->bundles[b].first, last = first + job->bundles[b].count;
            if (job->bundles[b].apart)
                for (int64_t h = first; h < last; h++)
                    for (int64_t r = job->class_run[head_class[h]]; r < job->class_run[head_class[h] + 1]; r++) worker.run(h, h + 1, r);
            else
                worker.run(first, last, job->class_run[head_class[first]] + u - job->unit_start[b]);
        }
}

static void backward(ls_job* job, float* scratch) {
    if (job->problem->dtype == LS_F32) backward_units<F32>(job, scratch);
    if (job->problem->dtype == LS_BF16) backward_units<BF16>(job, scratch);
    if (job->problem->dtype == LS_F16) backward_units<F16>(job, scratch);
}

static int64_t backward_scratch(const ls_job* job) {
    Arena arena{nullptr};
    Backward<F32> worker(job, arena);
    return arena.used * 4;
}
