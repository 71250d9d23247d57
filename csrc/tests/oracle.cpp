#include "oracle.h"

// Nobody looks for memory errors here, and most of the time would be spent on them.
#pragma GCC optimize("O3")
#define PLAIN __attribute__((no_sanitize("address", "undefined")))

namespace stress {
namespace {

typedef std::vector<double> Numbers;
const double TINY = 1e-250;  // a pair that counts never has an error of exactly 0

PLAIN double dot(const double* a, const double* b, int n) {
    double sum = 0;
    for (int d = 0; d < n; d++) sum += a[d] * b[d];
    return sum;
}
PLAIN void add(double* to, double factor, const double* from, int n) {
    for (int d = 0; d < n; d++) to[d] += factor * from[d];
}

// For each row of n numbers its length (which bounds products) and its largest number.
struct Sizes {
    Numbers length, largest;
    Sizes(const Numbers& x, int n) {
        for (size_t r = 0; r + n <= x.size(); r += n) {
            double most = 0;
            for (int d = 0; d < n; d++) most = std::max(most, std::fabs(x[r + d]));
            length.push_back(std::sqrt(dot(&x[r], &x[r], n)));
            largest.push_back(most);
        }
    }
};

uint32_t mix(uint32_t x) {
    x ^= x >> 16, x *= 0x7feb352dU, x ^= x >> 15, x *= 0x846ca68bU;
    return x ^ x >> 16;
}

struct Seen {
    int key;
    size_t label_row;             // row of the terms, for this head
    double score, delta, factor;  // delta: how far off the score may be; factor: what dropout makes of the probability
    double slope, slope_error;    // of the softcap
};

// Both passes look at one query of one head at a time.
struct Walk {
    const Case& c;
    int n, m;  // head sizes of keys and of values
    Numbers q, k, v, relative, content, table;
    Sizes q_size, k_size, v_size, relative_size, content_size;
    double scale, unit;  // unit: the relative error of a sum of products
    std::vector<Seen> seen;
    Numbers shifted;  // q + content
    double worst;     // largest delta

    explicit Walk(const Case& c)
        : c(c), n(c.dim), m(c.value_dim), q(c.q.numbers()), k(c.k.numbers()), v(c.v.numbers()), relative(c.relative.numbers()),
          content(c.content.numbers()), table(c.table.numbers()), q_size(q, n), k_size(k, n), v_size(v, m),
          relative_size(relative, n), content_size(content, n), scale(c.problem.scale),
          unit((8 + std::sqrt(double(std::max({c.dim, c.value_dim, c.queries, c.keys})))) * 0x1p-24), shifted(c.dim) {}

    size_t row(int64_t r, int head) const { return size_t(r * c.heads + head); }
    size_t key_row(int64_t r, int head) const { return size_t(r * c.key_heads + head * c.key_heads / c.heads); }
    const double* at(const Numbers& x, size_t row) const { return x.data() + row * n; }
    const double* value_at(const Numbers& x, size_t row) const { return x.data() + row * m; }

    PLAIN void look(int head, int i) {
        seen.clear();
        worst = 0;
        size_t r = row(i, head);
        for (int d = 0; d < n; d++) shifted[d] = at(q, r)[d] + (content.empty() ? 0 : at(content, head)[d]);
        double shifted_length = q_size.length[r] + (content.empty() ? 0 : content_size.length[head]);
        for (int j = 0; j < c.keys; j++) {
            const Pair& pair = c.pair(head, i, j);
            if (!pair.count) continue;
            size_t key = key_row(j, head), label = row(pair.label, head);
            double score = scale * dot(at(q, r), at(k, key), n);
            double size = std::fabs(scale) * q_size.length[r] * k_size.length[key], slope = 1, slope_error = 0;
            if (const double cap = c.problem.softcap) {
                const double t = std::tanh(score / cap);
                slope = 1 - t * t;
                slope_error = std::min(1.0, slope * std::expm1(std::min(2 * unit * size / cap, 60.0)) + 4 * unit);
                score = cap * t;
                size = std::min(size, 2 * cap / unit) + std::fabs(score);
            }
            score += std::log(pair.count), size += std::log(pair.count);
            if (!relative.empty()) {
                score += scale * dot(shifted.data(), at(relative, label), n);
                size += std::fabs(scale) * shifted_length * relative_size.length[label];
            }
            if (!table.empty()) score += table[label], size += std::fabs(table[label]);
            seen.push_back({j, label, score, unit * (1 + size), keep(head, i, j), slope, slope_error});
            worst = std::max(worst, unit * (1 + size));
        }
    }
    double keep(int head, int i, int j) const {
        double p = c.problem.dropout;
        if (p <= 0) return 1;
        if (p >= 1) return 0;
        uint32_t s = mix(mix(uint32_t(c.problem.seed)) ^ uint32_t(c.problem.seed >> 32));
        uint32_t document = uint32_t(c.plan.q_sites[2 * i]), position = uint32_t(c.plan.q_sites[2 * i + 1]);
        uint32_t r = mix(mix(mix(s + document) ^ (uint32_t(head) * 0x9E3779B9U)) + position);
        uint32_t u = mix(r + mix(uint32_t(c.plan.k_positions[j]) ^ 0x85EBCA6BU));
        return u >= uint32_t(p * 0x1p32) ? 1 / (1 - p) : 0;
    }
    // The relative error of a probability whose score may be off by delta, like the scores it is measured against.
    double spread(double delta) const { return std::expm1(std::min(delta + worst, 60.0)) + unit; }
};

}  // namespace

PLAIN ExpectedForward expect_forward(const Case& c) {
    Walk walk(c);
    int64_t rows = int64_t(c.queries) * c.heads;
    ExpectedForward e{{rows, c.value_dim}, {rows, 1}};
    for (int head = 0; head < c.heads; head++)
        for (int i = 0; i < c.queries; i++) {
            walk.look(head, i);
            size_t r = walk.row(i, head);
            double top = -INFINITY, sum = 0;
            for (const Seen& s : walk.seen) top = std::max(top, s.score);
            for (const Seen& s : walk.seen) sum += std::exp(s.score - top);
            e.lse.value[r] = walk.seen.empty() ? -INFINITY : top + std::log(sum);
            e.lse.error[r] = walk.seen.empty() ? 0 : 2 * walk.worst + walk.unit * (1 + std::fabs(e.lse.value[r]));
            for (const Seen& s : walk.seen) {
                double p = (std::exp(s.score - e.lse.value[r]) + TINY) * s.factor;
                if (p == 0) {  // dropped: a NaN value may show or not
                    if (std::isnan(walk.v_size.length[walk.key_row(s.key, head)])) e.out.error[r] = INFINITY;
                    continue;
                }
                add(&e.out.value[r * c.value_dim], p, walk.value_at(walk.v, walk.key_row(s.key, head)), c.value_dim);
                e.out.error[r] += p * walk.spread(s.delta) * walk.v_size.largest[walk.key_row(s.key, head)];
            }
        }
    return e;
}

PLAIN ExpectedBackward expect_backward(const Case& c, const std::vector<char>& out, const std::vector<float>& lse) {
    Walk walk(c);
    const int n = c.dim, m = c.value_dim;
    int64_t q_rows = int64_t(c.queries) * c.heads, k_rows = int64_t(c.keys) * c.key_heads, labels = int64_t(c.labels) * c.heads;
    ExpectedBackward e{{q_rows, n}, {k_rows, n}, {k_rows, m}, {}, {}, {}};
    if (!walk.relative.empty()) e.drelative = {labels, n};
    if (!walk.content.empty()) e.dcontent = {c.heads, n};
    if (!walk.table.empty()) e.dtable = {labels, 1};
    Numbers grad = c.grad_out.numbers(), grad_lse = c.grad_lse.numbers(), result(q_rows * m);
    for (size_t i = 0; i < result.size(); i++) result[i] = read(out.data(), int64_t(i), c.dtype);
    Sizes grad_size(grad, m), result_size(result, m);
    for (int head = 0; head < c.heads; head++)
        for (int i = 0; i < c.queries; i++) {
            walk.look(head, i);
            size_t r = walk.row(i, head);
            const double *q = walk.at(walk.q, r), *g = walk.value_at(grad, r);
            double delta = dot(g, walk.value_at(result, r), m) - (grad_lse.empty() ? 0 : grad_lse[r]);
            double delta_size = grad_size.length[r] * result_size.length[r] + (grad_lse.empty() ? 0 : std::fabs(grad_lse[r]));
            walk.worst += walk.unit * std::fabs(double(lse[r]));
            for (const Seen& s : walk.seen) {
                size_t key = walk.key_row(s.key, head), label = s.label_row;
                const double *k = walk.at(walk.k, key), *v = walk.value_at(walk.v, key);
                double p = std::exp(s.score - double(lse[r])) + TINY, spread = walk.spread(s.delta);
                double ds = p * (s.factor * dot(g, v, m) - delta);
                double error = p * (s.factor * grad_size.length[r] * walk.v_size.length[key] + delta_size) * spread;
                double weight = ds * s.slope * walk.scale;
                double off = (error * s.slope + (std::fabs(ds) + error) * s.slope_error) * std::fabs(walk.scale);
                add(&e.dv.value[key * m], p * s.factor, g, m);
                e.dv.error[key] += p * s.factor * spread * grad_size.largest[r];
                add(&e.dk.value[key * n], weight, q, n);
                e.dk.error[key] += off * walk.q_size.largest[r];
                add(&e.dq.value[r * n], weight, k, n);
                e.dq.error[r] += off * walk.k_size.largest[key];
                if (!walk.table.empty()) e.dtable.value[label] += ds, e.dtable.error[label] += error;
                if (walk.relative.empty()) continue;
                const double* across = walk.at(walk.relative, label);
                double across_size = walk.relative_size.largest[label];
                add(&e.dq.value[r * n], weight, across, n);
                e.dq.error[r] += off * across_size;
                add(&e.drelative.value[label * n], weight, walk.shifted.data(), n);
                double shifted_size = walk.q_size.largest[r] + (walk.content.empty() ? 0 : walk.content_size.largest[head]);
                e.drelative.error[label] += off * shifted_size;
                if (walk.content.empty()) continue;
                add(&e.dcontent.value[head * n], weight, across, n);
                e.dcontent.error[head] += off * across_size;
            }
        }
    return e;
}

}  // namespace stress
