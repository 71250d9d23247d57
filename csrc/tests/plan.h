// The arrays of a plan, each exactly as long as it needs to be, and their making from what may be seen.
#pragma once
#include <array>
#include <map>

#include "tensor.h"

namespace stress {

typedef std::vector<int32_t> Ints;
typedef std::array<uint64_t, 64> Mask;

struct Pair {
    int count = 0;      // 0: may not see
    int32_t label = 0;  // row of the score terms
};
typedef std::vector<Pair> Pairs;  // [query * keys + key]

struct Plan {
#define ARRAY(type, name, length, row) std::vector<type> name;
    LS_PLAN_ARRAYS(ARRAY)
#undef ARRAY

    Plan() { class_start = entry_start = label_start = {0}; }

    ls_plan arrays() {
        ls_plan p;
#define ARRAY(type, name, length, row) \
    name.shrink_to_fit();              \
    p.name = name.data();              \
    [[maybe_unused]] const int64_t length_of_##name = int64_t(name.size()) / (row);
#define SIZE(name, array, extra) p.name = length_of_##array - extra;
        LS_PLAN_ARRAYS(ARRAY)
        LS_PLAN_SIZES(SIZE)
#undef ARRAY
#undef SIZE
        return p;
    }
    std::vector<Ints*> lists() {  // every array of int32
        std::vector<Ints*> all;
        auto add = [&](auto& list) {
            if constexpr (std::is_same_v<decltype(list), Ints&>) all.push_back(&list);
        };
#define ARRAY(type, name, length, row) add(name);
        LS_PLAN_ARRAYS(ARRAY)
#undef ARRAY
        return all;
    }
};

// Cuts rows into tiles and pairs into entries, at random. Every pair that counts ends in exactly one entry.
struct Planner {
    Random& random;
    Plan& plan;
    const std::vector<int>&q_document, &k_document;  // -1: this key does not exist
    int documents, labels;
    std::vector<int> key_tiles;                            // those of the present class
    std::vector<std::vector<std::pair<int, int>>> places;  // for each key the tiles it stands in, and where

    void add_class(Pairs& pairs) {
        if (key_tiles.empty() || random.chance(50)) cut_keys();  // else this class shares the tiles of the last
        if (labels) add_label_list();
        for (int document = 0; document < documents; document++) {
            std::vector<int> rows = rows_of(q_document, document);
            for (int tile : cut(rows, plan.q_rows)) add_entries(tile, document, pairs);
        }
        plan.class_start.push_back(int(plan.q_rows.size() / 64));
    }

  private:
    static std::vector<int> rows_of(const std::vector<int>& of, int document) {
        std::vector<int> rows;
        for (int i = 0; i < int(of.size()); i++)
            if (of[i] == document) rows.push_back(i);
        return rows;
    }

    // Tiles of any size or all of one, in order or not. Returns their numbers.
    std::vector<int> cut(std::vector<int> rows, Ints& tiles) {
        std::vector<int> numbers;
        if (random.chance(25)) random.shuffle(rows);
        int most = random.chance(60) ? 64 : random.between(labels ? 8 : 1, random.chance(30) ? 8 : 64), count = int(rows.size());
        bool whole = random.chance(60), none = count == 0 && random.chance(20);  // an empty tile for no rows
        for (int next = 0, take; next < count || none; next += take, none = false) {
            take = whole ? most : random.chance(10) ? 0 : random.between(1, most);
            numbers.push_back(int(tiles.size() / 64));
            for (int i = 0; i < 64; i++) tiles.push_back(i < take && next + i < count ? rows[next + i] : -1);
        }
        return numbers;
    }

    void cut_keys() {
        key_tiles.clear();
        places.assign(k_document.size(), {});
        auto add = [&](const std::vector<int>& rows) {
            for (int tile : cut(rows, plan.k_rows)) {
                key_tiles.push_back(tile);
                for (int j = 0, row; j < 64 && (row = plan.k_rows[tile * 64 + j]) >= 0; j++) places[row].push_back({tile, j});
            }
        };
        for (int document = 0; document < documents; document++) {
            std::vector<int> rows = rows_of(k_document, document), landmarks;
            for (int row : rows)
                if (random.chance(20)) landmarks.push_back(row);
            add(rows);
            for (int again = random.chance(60) ? 0 : random.between(1, 2); again > 0; again--) add(landmarks);
        }
    }

    void add_entries(int tile, int document, Pairs& pairs) {
        std::map<std::pair<int, int>, Mask> wanted;  // (key tile, multiplicity) -> pairs
        int keys = int(k_document.size());
        for (int i = 0, row; i < 64 && (row = plan.q_rows[tile * 64 + i]) >= 0; i++)
            for (int j = 0; j < keys; j++)
                if (int count = pairs[row * keys + j].count) {
                    auto [key_tile, place] = places[j][random.between(0, int(places[j].size()) - 1)];
                    wanted[{key_tile, count}][i] |= uint64_t(1) << place;
                }
        for (int key_tile : key_tiles) {  // entries that allow nothing are legal too
            int row = plan.k_rows[key_tile * 64];
            if (random.chance(4) && (row < 0 || k_document[row] == document)) wanted[{key_tile, 1}];
        }
        std::vector<std::pair<std::pair<int, int>, Mask>> list(wanted.begin(), wanted.end());
        if (random.chance(50)) random.shuffle(list);
        for (auto& [what, mask] : list) add_entry(tile, what.first, what.second, mask, pairs);
        plan.entry_start.push_back(int(plan.entries.size() / 4));
    }

    static int count_rows(const int32_t* rows) { return int(std::find(rows, rows + 64, -1) - rows); }

    void add_entry(int tile, int key_tile, int multiplicity, const Mask& mask, Pairs& pairs) {
        int n = count_rows(&plan.q_rows[tile * 64]), m = count_rows(&plan.k_rows[key_tile * 64]), number = -1;
        uint64_t present = m == 64 ? ~uint64_t(0) : (uint64_t(1) << m) - 1;
        int label_tile = labels ? add_label_tile(tile, key_tile, n, mask, pairs) : -1;
        bool full = std::all_of(mask.begin(), mask.begin() + n, [&](uint64_t row) { return row == present; });
        if (!full || random.chance(20)) {
            number = int(plan.masks.size() / 64);
            bool noise = random.chance(30);  // what a mask says of rows that are not there means nothing
            for (int i = 0; i < 64; i++) {
                uint64_t absent = i < n ? ~present : ~uint64_t(0);
                plan.masks.push_back(mask[i] | (noise ? random.bits() & absent : 0));
            }
        }
        plan.entries.insert(plan.entries.end(), {key_tile, number, multiplicity, label_tile});
    }

    void add_label_list() {
        std::vector<int> list;
        int percent = random.one_of({30, 100});
        for (int label = 0; label < labels; label++)
            if (random.chance(percent)) list.push_back(label);
        if (list.empty()) list.push_back(random.between(0, labels - 1));
        if (random.chance(50)) std::reverse(list.begin(), list.end());
        plan.label_list.insert(plan.label_list.end(), list.begin(), list.end());
        plan.label_start.push_back(int(plan.label_list.size()));
    }

    // A ramp where the pairs that count allow one (and chance wants one), else any ranks. The pairs learn their labels.
    int add_label_tile(int tile, int key_tile, int n, const Mask& mask, Pairs& pairs) {
        int from = *(plan.label_start.end() - 2), count = plan.label_start.back() - from, base[64];
        int down = random.between(0, 1000), right = random.between(0, 1000), keys = int(k_document.size());
        bool ramp = random.chance(60);
        for (int i = 0; i < 64; i++) {
            uint64_t row = i < n ? mask[i] : 0;
            int low = row ? -__builtin_ctzll(row) : -64, high = row ? count - 64 + __builtin_clzll(row) : count;
            ramp = ramp && low <= high;
            base[i] = ramp ? random.between(low, high) : 0;
        }
        for (int i = 0; i < 64; i++)
            for (int j = 0; j < 64; j++) {
                int rank = ramp ? base[i] + j : (i * down + j * right + i * j) % count;
                plan.label_tiles.push_back(rank);
                if (i < n && mask[i] >> j & 1)
                    pairs[plan.q_rows[tile * 64 + i] * keys + plan.k_rows[key_tile * 64 + j]].label = plan.label_list[from + rank];
            }
        plan.label_kind.push_back(ramp);
        return int(plan.label_kind.size()) - 1;
    }
};

}  // namespace stress
