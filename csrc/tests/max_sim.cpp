// Random passages and queries against products in double precision. Numbers of threads change no bits, nor do targets if tokens are int8.
#include "max_sim.h"

#include <cstdio>
#include <cstring>
#include <thread>

#include "random.h"

namespace stress {
namespace {

struct Case {
    std::vector<int8_t> tokens;
    std::vector<float> floats, scales, query;
    bool whole;
    std::vector<int64_t> starts, ends;
    ls_max_sim_problem problem{};

    explicit Case(uint64_t seed) {
        Random random{seed};
        const int64_t rows = random.between(0, 60);
        problem.width = random.between(1, random.chance(10) ? 1300 : 150);
        problem.queries = random.between(0, 40);
        problem.passages = random.between(0, 9);
        whole = random.chance(60);
        for (int64_t i = 0; i < rows * problem.width; i++) tokens.push_back(int8_t(random.between(-128, 127)));
        for (int64_t i = 0; i < rows; i++) scales.push_back(random.chance(5) ? 0.0f : float(random.unit()));
        for (int64_t i = 0; i < problem.queries; i++)
            for (int64_t c = 0, silent = random.chance(5); c < problem.width; c++) query.push_back(silent ? 0.0f : float(random.value()));
        for (int64_t i = 0; i < problem.passages; i++) {
            starts.push_back(random.between(0, int(rows)));
            ends.push_back(random.chance(10) ? 0 : random.between(int(starts.back()), int(rows)));
        }
        for (const int8_t token : tokens) floats.push_back(float(token) / 100);
        problem.tokens = whole ? static_cast<const void*>(tokens.data()) : floats.data();
        problem.scales = whole ? scales.data() : nullptr, problem.query = query.data();
        problem.starts = starts.data(), problem.ends = ends.data();
    }

    // Maximum (p, i), and how far off it may be: half a step of the query for each element, or roundings.
    double expect(int64_t p, int64_t i, double* error) const {
        const float* q = query.data() + i * problem.width;
        double most = -INFINITY, largest = 0;
        for (int64_t c = 0; c < problem.width; c++) largest = std::fmax(largest, std::fabs(q[c]));
        for (int64_t row = starts[p]; row < ends[p]; row++) {
            double sum = 0, size = 0, scale = whole ? scales[row] : 1;
            for (int64_t c = 0; c < problem.width; c++) {
                const double token = whole ? tokens[row * problem.width + c] : floats[row * problem.width + c];
                sum += double(q[c]) * token, size += std::fabs(token);
            }
            most = std::fmax(most, sum * scale);
            *error = std::fmax(*error, scale * size * largest * ((whole ? 0.5 / 127 : 0) + 1e-6));
        }
        return most;
    }
};

// A thread of its own brings fresh scratch memory, as large as this problem needs.
std::vector<float> run(ls_max_sim_problem problem, const Door& door, int threads) {
    std::vector<float> maxima(problem.passages * problem.queries, 7.0f);
    problem.maxima = maxima.data();
    problem.threads = threads;
    std::thread([&] { door.max_sim(&problem, door.target); }).join();
    return maxima;
}

const char* wrong(const Case& c, const std::vector<float>& maxima) {
    for (int64_t p = 0; p < c.problem.passages; p++)
        for (int64_t i = 0; i < c.problem.queries; i++) {
            double error = 0, value = maxima[p * c.problem.queries + i], exact = c.expect(p, i, &error);
            if (value != exact && !(std::fabs(value - exact) <= error)) return "is far off";
        }
    return nullptr;
}

}  // namespace

bool test_max_sim(uint64_t seed, const std::vector<Door>& doors) {
    const Case c(seed);
    bool passed = true;
    const std::vector<float> first = run(c.problem, doors[0], 1);
    for (const Door& door : doors) {
        const std::vector<float> maxima = run(c.problem, door, 1);
        const char* what = wrong(c, maxima);
        if (c.whole && maxima != first) what = "differs from the first target's";
        if (run(c.problem, door, 3) != maxima) what = "depends on the number of threads";
        if (what) std::printf("seed %llu, %s: a late interaction %s\n", static_cast<unsigned long long>(seed), door.name, what);
        passed &= !what;
    }
    return passed;
}

}  // namespace stress
