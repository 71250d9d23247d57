// A random problem. Which pairs count (and how often, and with which label) is drawn first; the plan is then cut from that at random.
#pragma once
#include <array>
#include <map>

#include "tensor.h"

namespace stress {

typedef std::vector<int32_t> Ints;

struct Pair {
    int count = 0;      // 0: may not see
    int32_t label = 0;  // row of the score terms
};

// The arrays of a plan, each exactly as long as it needs to be.
struct PlanMemory {
    Ints head_class, class_start, q_rows, k_rows, entry_start, entries, label_tiles, label_kind, label_start, label_list, q_sites, k_positions;
    std::vector<uint64_t> masks;
    int64_t queries = 0, keys = 0;

    ls_plan plan() const {
        return {head_class.data(),  class_start.data(), q_rows.data(),      k_rows.data(),     entry_start.data(),
                entries.data(),     masks.data(),       label_tiles.data(), label_kind.data(), label_start.data(),
                label_list.data(),  q_sites.data(),     k_positions.data(), rows(head_class, 1), rows(class_start, 1) - 1,
                rows(q_rows, 64),   rows(k_rows, 64),   rows(entries, 4),   int64_t(masks.size() / 64), rows(label_kind, 1),
                rows(label_list, 1), queries,           keys};
    }
    static int64_t rows(const Ints& list, int64_t width) { return int64_t(list.size()) / width; }
    void trim() {
        for (Ints* list : {&head_class, &class_start, &q_rows, &k_rows, &entry_start, &entries, &label_tiles, &label_kind, &label_start,
                           &label_list, &q_sites, &k_positions})
            list->shrink_to_fit();
        masks.shrink_to_fit();
    }
};

struct Case {
    Random random;
    int heads, classes, queries, keys, dim, dtype, labels = 0;
    bool huge;
    std::vector<std::vector<Pair>> truth;  // [class][query * keys + key]
    PlanMemory memory;
    Tensor q, k, v, grad_out, relative, content, table, grad_lse;
    ls_problem problem{};

    explicit Case(uint64_t seed) : random{seed} {
        random.bits();
        choose_sizes();
        choose_rows();
        for (int c = 0; c < classes; c++) choose_truth(c);
        for (int c = 0; c < classes; c++) cut(c);
        memory.trim();
        choose_values();
    }
    size_t out_size() const { return size_t(queries) * size_t(heads) * size_t(dim); }
    const Pair& pair(int head, int i, int j) const { return truth[size_t(memory.head_class[size_t(head)])][size_t(i) * size_t(keys) + size_t(j)]; }
    const Pair& pair_of_class(int c, int i, int j) const { return truth[size_t(c)][size_t(i) * size_t(keys) + size_t(j)]; }

  private:
    typedef std::array<uint64_t, 64> Mask;
    std::vector<int> q_document, k_document;
    std::vector<bool> q_exists, k_exists;
    int documents;
    std::vector<int> shared_tiles;  // key tiles that every class may use

    void choose_sizes() {
        heads = random.between(1, 3), dim = random.between(1, 24);
        queries = random.between(0, 70), keys = random.between(0, 70);
        int kind = random.between(1, 100);
        if (kind > 97) {
            heads = 1, dim = random.between(100, 1024);
            queries = random.between(0, 10), keys = random.between(0, 12);
        } else if (kind > 91) {
            heads = random.between(1, 2), dim = random.one_of({31, 32, 48, 63, 64, 65, 96, 97, 128, 160});
            queries = random.between(1, 70), keys = random.between(1, 70);
        } else if (kind > 85) {
            heads = random.between(1, 2), dim = random.between(1, 17);
            queries = random.between(60, 300), keys = random.between(60, 300);
        } else if (kind > 75) {
            dim = random.one_of({1, 7, 8, 9, 15, 16, 17, 32, 33, 64});
            queries = random.between(50, 140), keys = random.between(50, 140);
        } else if (kind < 4) {
            heads = random.between(0, 9), queries = random.between(0, 3);
        } else if (kind < 8) {  // few queries, many keys: decoding
            queries = random.between(1, 17), keys = random.between(100, 300);
        }
        classes = heads == 0 ? random.between(0, 1) : random.between(1, std::min(heads, 3));
        dtype = random.one_of<int>({LS_F32, LS_F32, LS_BF16, LS_F16});
        huge = random.chance(5);
        for (int h = 0; h < heads; h++) memory.head_class.push_back(random.between(0, classes - 1));
        memory.class_start = memory.entry_start = memory.label_start = {0};
        memory.queries = queries, memory.keys = keys;
        if (random.chance(40)) labels = random.one_of({1, 2, 5, 40, 63, 64, 65, 130, 200});
    }

    void choose_rows() {
        documents = random.chance(50) ? 1 : random.between(1, 4);
        bool ordered = random.chance(70), some_missing = random.chance(20);
        for (int i = 0; i < queries; i++) {
            q_document.push_back(ordered ? i * documents / queries : random.between(0, documents - 1));
            q_exists.push_back(!some_missing || random.chance(80));
            memory.q_sites.push_back(q_document.back());
            memory.q_sites.push_back(random.chance(90) ? i : random.between(-5, 1 << 30));
        }
        for (int j = 0; j < keys; j++) {
            k_document.push_back(ordered ? j * documents / keys : random.between(0, documents - 1));
            k_exists.push_back(!some_missing || random.chance(80));
            memory.k_positions.push_back(random.chance(90) ? j : random.between(-5, 1 << 30));
        }
    }

    void choose_truth(int) {
        truth.emplace_back(size_t(queries) * size_t(keys));
        int density = random.one_of({0, 3, 30, 80, 100, 100}), band = random.chance(40) ? random.between(0, 40) : 1000;
        int most = random.chance(70) ? 1 : random.one_of({2, 3, 1000});
        int blind = random.chance(20) ? 30 : 0, unseen = random.chance(20) ? 30 : 0;  // percent
        std::vector<bool> lost;
        for (int j = 0; j < keys; j++) lost.push_back(random.chance(unseen));
        for (int i = 0; i < queries; i++) {
            if (!q_exists[size_t(i)] || random.chance(blind)) continue;
            for (int j = 0; j < keys; j++)
                if (k_exists[size_t(j)] && !lost[size_t(j)] && q_document[size_t(i)] == k_document[size_t(j)] && std::abs(i - j) <= band && random.chance(density))
                    truth.back()[size_t(i) * size_t(keys) + size_t(j)].count = random.between(1, most);
        }
    }

    // Rows of one document become tiles: whole ones or of any size, in order or not. Returns their numbers.
    std::vector<int> cut_rows(std::vector<int> rows, Ints& tiles) {
        std::vector<int> numbers;
        if (random.chance(25)) random.shuffle(rows);
        int most = random.chance(60) ? 64 : random.between(1, random.chance(30) ? 4 : 64);
        bool whole = random.chance(60);
        for (size_t next = 0; next < rows.size();) {
            size_t take = size_t(whole ? most : random.chance(10) ? 0 : random.between(1, most));
            numbers.push_back(int(tiles.size() / 64));
            for (size_t i = 0; i < 64; i++) tiles.push_back(i < take && next + i < rows.size() ? rows[next + i] : -1);
            next += take;
        }
        return numbers;
    }

    std::vector<int> cut_keys() {
        std::vector<int> all;
        for (int document = 0; document < documents; document++) {
            std::vector<int> rows, landmarks;
            for (int j = 0; j < keys; j++)
                if (k_exists[size_t(j)] && k_document[size_t(j)] == document) rows.push_back(j);
            for (int j : rows)
                if (random.chance(20)) landmarks.push_back(j);
            for (int tile : cut_rows(rows, memory.k_rows)) all.push_back(tile);
            for (int again = random.chance(60) ? 0 : random.between(1, 2); again > 0; again--)
                for (int tile : cut_rows(landmarks, memory.k_rows)) all.push_back(tile);
        }
        return all;
    }

    void cut(int c) {
        if (shared_tiles.empty() || random.chance(50)) shared_tiles = cut_keys();
        if (labels) choose_labels(c);
        // Where each key stands: tile number and place in it.
        std::vector<std::vector<std::pair<int, int>>> places(static_cast<size_t>(keys));
        for (int tile : shared_tiles)
            for (int j = 0; j < 64; j++)
                if (int row = memory.k_rows[size_t(tile) * 64 + size_t(j)]; row >= 0) places[size_t(row)].push_back({tile, j});
        for (int document = 0; document < documents; document++) {
            std::vector<int> rows;
            for (int i = 0; i < queries; i++)
                if (q_document[size_t(i)] == document) rows.push_back(i);
            for (int tile : cut_rows(rows, memory.q_rows)) add_entries(c, tile, places);
        }
        memory.class_start.push_back(int32_t(memory.q_rows.size() / 64));
    }

    void add_entries(int c, int tile, const std::vector<std::vector<std::pair<int, int>>>& places) {
        std::map<std::pair<int, int>, Mask> wanted;  // (key tile, multiplicity) -> pairs
        int document = -1;
        for (int i = 0; i < 64; i++) {
            int row = memory.q_rows[size_t(tile) * 64 + size_t(i)];
            if (row < 0) break;
            document = q_document[size_t(row)];
            for (int j = 0; j < keys; j++)
                if (int count = pair_of_class(c, row, j).count) {
                    auto [key_tile, place] = places[size_t(j)][size_t(random.between(0, int(places[size_t(j)].size()) - 1))];
                    wanted[{key_tile, count}][size_t(i)] |= uint64_t(1) << place;
                }
        }
        for (int key_tile : shared_tiles)  // entries that allow nothing are legal too
            if (int row = memory.k_rows[size_t(key_tile) * 64]; document >= 0 && random.chance(4) && (row < 0 || k_document[size_t(row)] == document))
                wanted[{key_tile, 1}];
        std::vector<std::pair<std::pair<int, int>, Mask>> list(wanted.begin(), wanted.end());
        if (random.chance(50)) random.shuffle(list);
        for (auto& [what, mask] : list) add_entry(c, tile, what.first, what.second, mask);
        memory.entry_start.push_back(int32_t(memory.entries.size() / 4));
    }

    static int count_rows(const Ints& tiles, int tile) {
        int count = 0;
        while (count < 64 && tiles[size_t(tile) * 64 + size_t(count)] >= 0) count++;
        return count;
    }

    void add_entry(int c, int tile, int key_tile, int multiplicity, Mask mask) {
        int n = count_rows(memory.q_rows, tile), m = count_rows(memory.k_rows, key_tile), number = -1;
        uint64_t present = m == 64 ? ~uint64_t(0) : (uint64_t(1) << m) - 1;
        int32_t label_tile = labels ? add_label_tile(c, tile, key_tile, n, mask) : -1;
        bool full = std::all_of(mask.begin(), mask.begin() + n, [&](uint64_t row) { return row == present; });
        if (!full || random.chance(20)) {
            number = int(memory.masks.size() / 64);
            bool noise = random.chance(30);  // what a mask says of rows that are not there means nothing
            for (int i = 0; i < 64; i++) memory.masks.push_back(mask[size_t(i)] | (noise ? random.bits() & (i < n ? ~present : ~uint64_t(0)) : 0));
        }
        memory.entries.insert(memory.entries.end(), {key_tile, number, multiplicity, label_tile});
    }

    void choose_labels(int c) {
        std::vector<int> list;
        int percent = random.one_of({30, 100});
        for (int l = 0; l < labels; l++)
            if (random.chance(percent)) list.push_back(l);
        if (list.empty()) list.push_back(random.between(0, labels - 1));
        if (random.chance(50)) std::reverse(list.begin(), list.end());
        memory.label_list.insert(memory.label_list.end(), list.begin(), list.end());
        if (memory.label_start.size() != size_t(c) + 1) std::abort();
        memory.label_start.push_back(int32_t(memory.label_list.size()));
    }

    // A ramp where the pairs that count allow one (and chance wants one), else any ranks.
    int32_t add_label_tile(int c, int tile, int key_tile, int n, const Mask& mask) {
        int from = memory.label_start[size_t(c)], count = memory.label_start[size_t(c) + 1] - from, base[64];
        bool ramp = random.chance(60);
        for (int i = 0; i < 64; i++) {
            uint64_t row = i < n ? mask[size_t(i)] : 0;
            int low = row ? -__builtin_ctzll(row) : -64, high = row ? count - 64 + __builtin_clzll(row) : count;
            ramp = ramp && low <= high;
            base[i] = ramp ? random.between(low, high) : 0;
        }
        for (int i = 0; i < 64; i++)
            for (int j = 0; j < 64; j++) {
                int rank = ramp ? base[i] + j : random.between(0, count - 1);
                memory.label_tiles.push_back(rank);
                if (i >= n || !(mask[size_t(i)] >> j & 1)) continue;
                int q_row = memory.q_rows[size_t(tile) * 64 + size_t(i)], k_row = memory.k_rows[size_t(key_tile) * 64 + size_t(j)];
                truth[size_t(c)][size_t(q_row) * size_t(keys) + size_t(k_row)].label = memory.label_list[size_t(from + rank)];
            }
        memory.label_kind.push_back(ramp);
        return int32_t(memory.label_kind.size() - 1);
    }

    void choose_values() {
        double size = huge ? random.one_of({30.0, 1e3, 1e5}) : 1.0;
        auto make = [&](int type, int64_t rows, int64_t columns, double factor, bool odd) {
            Tensor t(type, rows, heads, columns, odd && random.chance(60) ? &random : nullptr);
            t.fill([&] { return random.chance(3) ? 0.0 : random.value() * factor; });
            return t;
        };
        q = make(dtype, queries, dim, dtype == LS_F16 ? std::min(size, 1e3) : size, true);
        k = make(dtype, keys, dim, 1, true);
        v = make(dtype, keys, dim, 1, true);
        grad_out = make(dtype, queries, dim, 1, true);
        if (random.chance(50)) grad_lse = make(LS_F32, queries, 1, 1, false);
        if (labels && random.chance(70)) {
            relative = make(LS_F32, labels, dim, 1, false);
            if (random.chance(50)) content = make(LS_F32, 1, dim, 1, false);
        }
        if (labels && random.chance(60)) table = make(LS_F32, labels, 1, 1, false);
        if (!huge && random.chance(6)) poison();
        double scale = random.one_of({1 / std::sqrt(double(dim)), 1 / std::sqrt(double(dim)), 1.0 / dim, -0.3, 0.0});
        problem = {memory.plan(), q.view, k.view, v.view, dtype, dim, float(scale), relative.floats(), content.floats(), table.floats(), labels, 0, random.bits(), 1};
        if (random.chance(25)) problem.dropout = random.one_of({0.1, 0.5, 0.9, 1.0});
    }

    // One number that is not one, anywhere.
    void poison() {
        Tensor& t = *random.one_of({&q, &k, &v, &grad_out, &relative, &content, &table});
        if (t.memory.empty()) return;
        t.set(random.between(0, int(t.size[0]) - 1), random.between(0, heads - 1), random.between(0, int(t.size[2]) - 1), NAN);
    }
};

}  // namespace stress
