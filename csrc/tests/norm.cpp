// Random rows against their normalization in double precision, in place and beside, by any number of threads.
#include "norm.h"

#include <cmath>
#include <cstdio>

#include "random.h"

namespace stress {
namespace {

struct Case {
    std::vector<float> x, weight, bias;
    ls_norm norm{};
    double shift;

    explicit Case(uint64_t seed) {
        Random random{seed};
        norm.rows = random.between(0, random.chance(10) ? 200 : 9);
        norm.width = random.between(1, random.chance(10) ? 900 : 70);
        norm.x_row = norm.width + random.between(0, 3);
        norm.eps = 1e-5f;
        norm.centered = random.chance(60);
        shift = random.chance(30) ? 10 : 0;
        for (int64_t i = 0; i < norm.rows * norm.x_row; i++) x.push_back(float(random.value() + shift));
        for (int64_t i = 0; i < norm.width; i++) weight.push_back(float(random.value())), bias.push_back(float(random.value()));
        norm.weight = weight.data();
        if (random.chance(70)) norm.bias = bias.data();
    }

    double expect(int64_t r, int64_t k) const {
        const float* row = x.data() + r * norm.x_row;
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < norm.width && norm.centered; i++) mean += row[i] / double(norm.width);
        for (int64_t i = 0; i < norm.width; i++) variance += (row[i] - mean) * (row[i] - mean) / double(norm.width);
        return (row[k] - mean) / std::sqrt(variance + norm.eps) * weight[k] + (norm.bias ? bias[k] : 0);
    }
};

std::vector<float> run(const Case& c, const Door& door, int threads, bool in_place) {
    ls_norm norm = c.norm;
    std::vector<float> y = c.x;
    norm.x = in_place ? y.data() : c.x.data();
    norm.y = y.data();
    norm.y_row = norm.x_row;
    norm.threads = threads;
    door.layer_norm(&norm, door.target);
    return y;
}

const char* wrong(const Case& c, const Door& door) {
    const std::vector<float> y = run(c, door, 1, false);
    for (int64_t r = 0; r < c.norm.rows; r++)
        for (int64_t k = 0; k < c.norm.x_row; k++) {
            const double found = y[r * c.norm.x_row + k];
            if (k >= c.norm.width ? found != c.x[r * c.norm.x_row + k] : !(std::fabs(found - c.expect(r, k)) <= 2e-5 * (1 + c.shift * c.shift)))
                return "is far off";
        }
    if (run(c, door, 3, false) != y) return "depends on the number of threads";
    return run(c, door, 1, true) != y ? "differs in place" : nullptr;
}

}  // namespace

bool test_norm(uint64_t seed, const std::vector<Door>& doors) {
    const Case c(seed);
    bool passed = true;
    for (const Door& door : doors)
        if (const char* what = wrong(c, door)) {
            std::printf("seed %llu, %s: a layer norm %s\n", static_cast<unsigned long long>(seed), door.name, what);
            passed = false;
        }
    return passed;
}

}  // namespace stress
