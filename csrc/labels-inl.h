// Score terms by label. A query tile has one row of biases per query, one for each label:
//   bias[i][rank] = scale * (q_i + content) . relative[label] + table[label]
// computed 64 labels at a time when a key tile first needs them, then read with a shift (ramps) or a gather.
struct Labels {
    const ls_problem& p;
    bool on;
    int dim, width;
    int64_t blocks = 0, stride = 0;  // blocks of 64 ranks; floats per row of bias, 0 when all queries share one row
    int64_t head = -1, count = 0;
    float *relative, *table, *bias_rows, *queries;  // [blocks][dim][64], [blocks * 64], [64][64 + blocks * 64 + 64], [64][width]
    bool finite;  // whether `queries` are
    uint8_t* ready;
    int32_t *low, *high;  // first and last block a label tile reads

    Labels(const ls_problem& problem, int width, Arena& arena) : p(problem), dim(problem.dim), width(width) {
        on = p.relative || p.table;
        if (!on) return;
        int64_t longest = 0;
        for (int64_t c = 0; c < p.plan.classes; c++)
            if (p.plan.label_start[c + 1] - p.plan.label_start[c] > longest) longest = p.plan.label_start[c + 1] - p.plan.label_start[c];
        blocks = (longest + LS_TILE - 1) / LS_TILE;
        stride = p.relative ? (blocks + 2) * LS_TILE : 0;
        relative = arena.get(p.relative ? blocks * dim * LS_TILE : 0);
        table = arena.get((blocks + 2) * LS_TILE);
        bias_rows = arena.get(LS_TILE * stride);
        queries = arena.get(p.relative ? LS_TILE * width : 0);
        ready = arena.get<uint8_t>(blocks);
        low = arena.get<int32_t>(p.plan.n_label_tiles);
        high = arena.get<int32_t>(p.plan.n_label_tiles);
        if (!arena.base) return;
        for (int64_t t = 0; t < p.plan.n_label_tiles; t++) find_blocks(t);
        for (int64_t i = 0; i < LS_TILE * stride; i++) bias_rows[i] = 0.0f;
    }

    void find_blocks(int64_t t) {
        const int32_t* ranks = p.plan.label_tiles + t * LS_TILE * LS_TILE;
        int32_t least = INT32_MAX, most = 0;
        for (int i = 0; i < LS_TILE * LS_TILE; i++) {
            if (ranks[i] < 0) continue;
            if (ranks[i] < least) least = ranks[i];
            if (ranks[i] > most) most = ranks[i];
        }
        low[t] = least == INT32_MAX ? 0 : least / LS_TILE;
        high[t] = most / LS_TILE;
    }

    // The head's part of the terms, in the order of its class's label list.
    void pack(int64_t h) {
        head = h;
        const ls_plan& plan = p.plan;
        int32_t c = plan.head_class[h];
        const int32_t* list = plan.label_list + plan.label_start[c];
        count = plan.label_start[c + 1] - plan.label_start[c];
        for (int64_t r = 0; r < (blocks + 2) * LS_TILE; r++) {
            int64_t rank = r - LS_TILE;
            table[r] = p.table && rank >= 0 && rank < count ? p.table[list[rank] * plan.heads + h] * LOG2E : 0.0f;
        }
        if (p.relative) {
            Rows<F32> rows = {p.relative + h * dim, plan.heads * dim, 1};
            for (int64_t b = 0; b * LS_TILE < count; b++) {
                int n = count - b * LS_TILE < LS_TILE ? int(count - b * LS_TILE) : LS_TILE;
                transpose_rows(rows, list + b * LS_TILE, n, dim, LOG2E, relative + b * dim * LS_TILE);
            }
        }
    }

    void begin(int64_t h, int rows, const float* packed_queries) {
        if (h != head) pack(h);
        if (!p.relative) return;
        __builtin_memset(ready, 0, blocks);
        float check = 0.0f;
        for (int i = 0; i < rows; i++)
            for (int d = 0; d < dim; d++) {
                queries[i * width + d] = packed_queries[i * width + d] + (p.content ? p.content[h * dim + d] * p.scale : 0.0f);
                check += queries[i * width + d] * 0.0f;
            }
        finite = check == 0.0f;
    }

    // Computes the bias that a label tile reads, and returns the tile.
    const int32_t* prepare(int rows, int32_t tile) {
        if (p.relative)
            for (int64_t b = low[tile]; b <= high[tile] && b * LS_TILE < count; b++) {
                if (ready[b]) continue;
                ready[b] = 1;
                float* to = bias_rows + LS_TILE + b * LS_TILE;
                const float* start = table + LS_TILE + b * LS_TILE;
                for (int i = 0; i < rows; i++) __builtin_memcpy(to + i * stride, start, sizeof(float) * LS_TILE);
                Range all[GROUPS];
                for (int g = 0; g < GROUPS; g++) all[g] = {0, dim};
                add_product(rows, all, {queries, width, 1}, relative + b * dim * LS_TILE, LS_TILE, to, stride, ROW, true);
            }
        return p.plan.label_tiles + int64_t(tile) * LS_TILE * LS_TILE;
    }

    template <int KIND>
    LS_INLINE_MEMBER vf bias(int i, int j, const int32_t* ranks) const {
        const float* row = (p.relative ? bias_rows + i * stride : table) + LS_TILE;
        if (KIND == 1) return load(row + ranks[i * LS_TILE] + j * L);
        return gather(row, ranks + i * LS_TILE + j * L);
    }
};

// Gradients of the score terms: dS is summed per query and label, then multiplied with the terms once per query tile.
struct LabelGradients {
    Labels& labels;
    const ls_problem& p;
    const ls_gradient& grad;
    int64_t head = -1;
    bool finite;  // whether the head's relative keys are
    float* sums;                               // like the bias rows: [64][stride], or one row when all queries share it
    float *rows_across, *drelative, *dcontent;  // [blocks * 64][width] twice, [width]
    float *part, *dtable;                       // [64][width], [blocks * 64]

    LabelGradients(Labels& labels, const ls_gradient& gradient, Arena& arena) : labels(labels), p(labels.p), grad(gradient) {
        if (!labels.on) return;
        int64_t all = labels.blocks * LS_TILE, width = p.relative ? labels.width : 0;
        sums = arena.get(p.relative ? LS_TILE * labels.stride : all + 2 * LS_TILE);
        rows_across = arena.get(all * width);
        drelative = arena.get(all * width);
        dcontent = arena.get(width);
        part = arena.get(LS_TILE * width);
        dtable = arena.get(all);
        if (arena.base) __builtin_memset(sums, 0, sizeof(float) * (p.relative ? LS_TILE * labels.stride : all + 2 * LS_TILE));
    }

    void begin(int64_t h) {
        if (h == head) return;
        head = h;
        int64_t all = labels.blocks * LS_TILE;
        __builtin_memset(dtable, 0, sizeof(float) * all);
        if (!p.relative) return;
        finite = true;
        const int32_t* list = p.plan.label_list + p.plan.label_start[p.plan.head_class[h]];
        Rows<F32> rows = {p.relative + h * labels.dim, p.plan.heads * labels.dim, 1};
        for (int64_t b = 0; b * LS_TILE < labels.count; b++) {
            int n = labels.count - b * LS_TILE < LS_TILE ? int(labels.count - b * LS_TILE) : LS_TILE;
            finite &= copy_rows(rows, list + b * LS_TILE, n, labels.dim, labels.width, 1.0f, rows_across + b * LS_TILE * labels.width);
        }
        __builtin_memset(drelative, 0, sizeof(float) * all * labels.width);
        __builtin_memset(dcontent, 0, sizeof(float) * labels.width);
    }

    template <int KIND>
    LS_INLINE_MEMBER void add(int i, int j, const int32_t* ranks, vf d) {
        float* row = sums + i * labels.stride + LS_TILE;
        if (KIND == 1) {
            float* at = row + ranks[i * LS_TILE] + j * L;
            store(at, load(at) + d);
        } else {
            for (int n = 0; n < L; n++) row[ranks[i * LS_TILE + j * L + n]] += d[n];
        }
    }

    void finish_tile(int rows, float* dq) {
        if (!p.relative) return;
        int64_t width = labels.width, vectors = width / L;
        __builtin_memset(part, 0, sizeof(float) * LS_TILE * width);
        Range all_labels[GROUPS], all_rows[GROUPS];
        for (int g = 0; g < GROUPS; g++) all_labels[g] = {0, LS_TILE}, all_rows[g] = {0, rows};
        for (int64_t b = 0; b * LS_TILE < labels.count; b++) {
            if (!labels.ready[b]) continue;
            float* block = sums + LS_TILE + b * LS_TILE;
            add_product(rows, all_labels, {block, labels.stride, 1}, rows_across + b * LS_TILE * width, width, part, width, vectors, finite);
            add_product(LS_TILE, all_rows, {block, 1, labels.stride}, labels.queries, width, drelative + b * LS_TILE * width, width, vectors, labels.finite);
            for (int i = 0; i < rows; i++)
                for (int j = 0; j < LS_TILE; j++) dtable[b * LS_TILE + j] += block[i * labels.stride + j], block[i * labels.stride + j] = 0.0f;
        }
        for (int i = 0; i < rows; i++)
            for (int64_t d = 0; d < width; d++) dq[i * width + d] += part[i * width + d], dcontent[d] += part[i * width + d];
    }

    void finish_head() {
        if (head < 0) return;  // there was no query
        const int32_t* list = p.plan.label_list + p.plan.label_start[p.plan.head_class[head]];
        for (int64_t r = 0; r < labels.count; r++) {
            if (!p.relative) dtable[r] = sums[LS_TILE + r];
            if (grad.dtable) grad.dtable[list[r] * p.plan.heads + head] = dtable[r];
            if (p.relative)
                for (int d = 0; d < labels.dim; d++)
                    grad.drelative[(list[r] * p.plan.heads + head) * labels.dim + d] = drelative[r * labels.width + d];
        }
        if (!p.relative) __builtin_memset(sums, 0, sizeof(float) * (labels.blocks + 2) * LS_TILE);
        if (grad.dcontent)
            for (int d = 0; d < labels.dim; d++) grad.dcontent[head * labels.dim + d] = dcontent[d] * p.scale;
        head = -1;
    }
};
