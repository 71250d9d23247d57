// Random heads turned by their angles against the same in double precision, and back, by any number of threads.
#include "rotate.h"

#include <cmath>
#include <cstdio>

#include "random.h"

namespace stress {
namespace {

struct Case {
    std::vector<float> x, cos, sin;
    ls_rotation rotation{};

    explicit Case(uint64_t seed) {
        Random random{seed};
        ls_rotation& p = rotation;
        p.rows = random.between(0, random.chance(10) ? 200 : 9);
        p.heads = random.between(1, 5);
        p.dim = 2 * random.between(1, random.chance(10) ? 130 : 40);
        p.head = p.dim + random.between(0, 3);
        p.row = p.heads * p.head + random.between(0, 5);
        p.sign = random.chance(50) ? 1.0f : -1.0f;
        for (int64_t i = 0; i < p.rows * p.row; i++) x.push_back(float(random.value()));
        for (int64_t i = 0; i < p.rows * p.dim / 2; i++) {
            const double angle = 7 * random.value();
            cos.push_back(float(std::cos(angle))), sin.push_back(float(std::sin(angle)));
        }
        p.cos = cos.data(), p.sin = sin.data();
    }

    double expect(int64_t r, int64_t column) const {
        const ls_rotation& p = rotation;
        const int64_t h = column / p.head, d = column % p.head, half = p.dim / 2;
        const float* row = x.data() + r * p.row;
        if (h >= p.heads || d >= p.dim) return row[column];
        const float* head = row + h * p.head;
        const int64_t angle = r * half + d % half;
        const double turned = d < half ? -head[d + half] : head[d - half];
        return double(head[d]) * cos[angle] + turned * p.sign * sin[angle];
    }
};

std::vector<float> run(const Case& c, const Door& door, int threads) {
    ls_rotation rotation = c.rotation;
    std::vector<float> x = c.x;
    rotation.x = x.data();
    rotation.threads = threads;
    door.rotate(&rotation, door.target);
    return x;
}

const char* wrong(const Case& c, const Door& door) {
    const std::vector<float> x = run(c, door, 1);
    for (int64_t r = 0; r < c.rotation.rows; r++)
        for (int64_t column = 0; column < c.rotation.row; column++)
            if (!(std::fabs(x[r * c.rotation.row + column] - c.expect(r, column)) <= 1e-6)) return "is far off";
    return run(c, door, 3) != x ? "depends on the number of threads" : nullptr;
}

}  // namespace

bool test_rotate(uint64_t seed, const std::vector<Door>& doors) {
    const Case c(seed);
    bool passed = true;
    for (const Door& door : doors)
        if (const char* what = wrong(c, door)) {
            std::printf("seed %llu, %s: a rotation %s\n", static_cast<unsigned long long>(seed), door.name, what);
            passed = false;
        }
    return passed;
}

}  // namespace stress
