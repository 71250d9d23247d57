// A random problem. What may be seen, how often and by which label is known before and apart from the plan, for the oracle.
#pragma once
#include "plan.h"

namespace stress {

struct Case {
    Random random;
    int heads, key_heads, classes, queries, keys, dim, value_dim, dtype, labels = 0;
    bool huge;                 // scores far beyond what exp() can hold
    std::vector<Pairs> pairs;  // for each class
    Plan plan;
    Tensor q, k, v, grad_out, relative, content, table, grad_lse;
    ls_problem problem{};

    explicit Case(uint64_t seed) : random{seed} {
        choose_sizes();
        choose_rows();
        Planner planner{random, plan, q_document, k_document, documents, labels, {}, {}};
        for (int c = 0; c < classes; c++) {
            choose_pairs();
            planner.add_class(pairs.back());
        }
        choose_values();
    }
    const Pair& pair(int head, int i, int j) const { return pairs[plan.head_class[head]][i * keys + j]; }

  private:
    std::vector<int> q_document, k_document;
    std::vector<bool> blind;  // queries that see nothing
    int documents;

    // Mostly small: many cases find more than large ones do.
    void choose_sizes() {
        heads = random.between(1, 3), dim = random.between(1, 24);
        queries = random.between(0, 70), keys = random.between(0, 70);
        int kind = random.between(1, 100);
        if (kind > 97) {
            heads = 1, dim = random.between(100, 1024);
            queries = random.between(0, 10), keys = random.between(0, 12);
        } else if (kind > 91) {
            heads = random.between(1, 2), dim = random.one_of({31, 32, 48, 63, 64, 65, 96, 97, 128, 160});
        } else if (kind > 85) {
            heads = random.between(1, 2), dim = random.between(1, 17);
            queries = random.between(60, 300), keys = random.between(60, 300);
        } else if (kind > 75) {
            dim = random.one_of({1, 7, 8, 9, 15, 16, 17, 32, 33, 64});
            queries = random.between(50, 140), keys = random.between(50, 140);
        } else if (kind < 4) {
            heads = random.between(0, 9), queries = random.between(0, 3);
        } else if (kind < 8) {  // as when decoding
            queries = random.between(1, 17), keys = random.between(100, 300), dim = random.one_of({5, 8, 16, 32});
        }
        value_dim = random.chance(60) ? dim : random.between(1, std::max(24, dim));
        key_heads = heads;
        if (random.chance(40)) heads *= random.between(2, 5);
        classes = heads == 0 ? random.between(0, 1) : random.between(1, std::min(heads, 3));
        for (int h = 0; h < heads; h++) plan.head_class.push_back(random.between(0, classes - 1));
        dtype = random.one_of<int>({LS_F32, LS_F32, LS_BF16, LS_F16});
        huge = random.chance(5);
        if (random.chance(40)) labels = random.one_of({1, 2, 5, 40, 63, 64, 65, 130, 200});
    }

    void choose_rows() {
        documents = random.chance(50) ? 1 : random.between(1, 4);
        bool ordered = random.chance(70);
        int missing = random.chance(20) ? 20 : 0;
        auto document = [&](int i, int n) { return ordered ? i * documents / n : random.between(0, documents - 1); };
        auto position = [&](int i) { return random.chance(90) ? i : random.between(-5, 1 << 30); };
        for (int i = 0; i < queries; i++) {
            q_document.push_back(document(i, queries));
            blind.push_back(random.chance(missing));
            plan.q_sites.insert(plan.q_sites.end(), {q_document.back(), position(i)});
        }
        for (int j = 0; j < keys; j++) {
            k_document.push_back(random.chance(missing) ? -1 : document(j, keys));
            plan.k_positions.push_back(position(j));
        }
    }

    void choose_pairs() {
        pairs.emplace_back(queries * keys);
        int density = random.one_of({0, 3, 30, 80, 100, 100}), band = random.chance(40) ? random.between(0, 40) : 1000;
        int multiplicity = random.one_of({1, 1, 1, 2, 3, 1000});
        std::vector<bool> unseen;
        for (int j = 0, percent = random.chance(20) ? 30 : 0; j < keys; j++) unseen.push_back(random.chance(percent));
        for (int i = 0; i < queries; i++)
            for (int j = 0; j < keys; j++) {
                if (blind[i] || unseen[j] || q_document[i] != k_document[j] || std::abs(i - j) > band) continue;
                if (random.chance(density)) pairs.back()[i * keys + j].count = random.chance(60) ? 1 : multiplicity;
            }
    }

    void choose_values() {
        double size = huge ? random.one_of({30.0, 1e3, dtype == LS_F16 ? 1e3 : 1e5}) : 1.0;
        auto make = [&](int type, int64_t rows, int64_t columns, double factor, bool odd, int of = -1) {
            Tensor t(type, rows, of < 0 ? heads : of, columns, odd && random.chance(60) ? &random : nullptr);
            t.fill([&] { return random.chance(3) ? 0.0 : random.value() * factor; });
            return t;
        };
        q = make(dtype, queries, dim, size, true);
        k = make(dtype, keys, dim, 1, true, key_heads);
        v = make(dtype, keys, value_dim, 1, true, key_heads);
        grad_out = make(dtype, queries, value_dim, 1, true);
        if (random.chance(50)) grad_lse = make(LS_F32, queries, 1, 1, false);
        if (labels && random.chance(70)) relative = make(LS_F32, labels, dim, 1, false);
        if (!relative.memory.empty() && random.chance(50)) content = make(LS_F32, 1, dim, 1, false);
        if (labels && random.chance(60)) table = make(LS_F32, labels, 1, 1, false);
        if (!huge && random.chance(6)) poison();
        double usual = 1 / std::sqrt(double(dim)), scale = random.one_of({usual, usual, usual, 1.0 / dim, -0.3, 0.0});
        double softcap = random.chance(25) && relative.memory.empty() ? random.one_of({0.5, 3.0, 30.0, 50.0}) : 0;
        double dropout = random.chance(75) ? 0 : random.one_of({0.1, 0.5, 0.9, 1.0});
        problem = {plan.arrays(), q.view, k.view, v.view, dtype, dim, value_dim, key_heads, float(scale), float(softcap),
                   relative.floats(), content.floats(), table.floats(), labels, dropout, random.bits(), 1};
    }

    // One number that is not one, anywhere.
    void poison() {
        Tensor& t = *random.one_of({&q, &k, &v, &grad_out, &relative, &content, &table});
        auto any = [&](int axis) { return random.between(0, int(t.size[axis]) - 1); };
        if (!t.memory.empty()) t.set(any(0), any(1), any(2), NAN);
    }
};

}  // namespace stress
