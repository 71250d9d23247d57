// Random problems through every target, against the oracle.
//   longspan_tests [cases] [first seed] [target]
#include <cstdio>
#include <cstdlib>
#include <string>

#include "linear.h"
#include "malformed.h"
#include "max_sim.h"
#include "norm.h"
#include "rotate.h"
#include "oracle.h"
#include "run.h"
#include "words.h"
#include "workers.h"

// Fresh memory is full of NaN, so that reading it before writing it shows in the results.
extern "C" const char* __asan_default_options() { return "max_malloc_fill_size=1073741824:malloc_fill_byte=255"; }

namespace stress {
namespace {

struct Failures {
    uint64_t seed;
    const char* target;
    int count = 0;

    void say(const std::string& what) {
        if (count++ == 0) std::printf("seed %llu, %s: %s\n", static_cast<unsigned long long>(seed), target, what.c_str());
    }
    // A number that is NaN in the oracle must be so in a result; in a gradient it may be anything.
    void compare(const char* name, const void* got, int dtype, const Expected& want, bool gradient) {
        const double half = dtype == LS_BF16 ? 0x1p-8 : dtype == LS_F16 ? 0x1p-11 : 0;
        for (size_t i = 0; i < want.value.size(); i++) {
            double x = read(got, int64_t(i), dtype), y = want.value[i], error = want.error[i / want.inner];
            if (std::isnan(y) ? gradient || std::isnan(x) : x == y || std::isinf(error)) continue;
            if (error > 0 && std::fabs(x - y) <= error + half * std::fabs(y) + (half > 0 ? 0x1p-24 : 1e-30)) continue;
            char line[200];
            std::snprintf(line, sizeof line, "%s[%zu] is %.9g, not %.9g (within %.3g)", name, i, x, y, error);
            return say(line);
        }
    }
};

bool test(uint64_t seed, const std::vector<Door>& doors) {
    Case c(seed);
    int failed = 0;
    if (const char* wrong = ls_check(&c.problem)) {
        std::printf("seed %llu: refused: %s\n", static_cast<unsigned long long>(seed), wrong);
        return false;
    }
    const ExpectedForward forward = expect_forward(c);
    for (size_t d = 0; d < doors.size(); d++) {
        Failures failures{seed, doors[d].name};
        Results r = run(c, doors[d], 1);
        if (r.code) failures.say("returned " + std::to_string(r.code));
        failures.compare("out", r.out.data(), c.dtype, forward.out, false);
        failures.compare("lse", r.lse.data(), LS_F32, forward.lse, false);
        const ExpectedBackward backward = expect_backward(c, r.out, r.lse);
        failures.compare("dq", r.dq.data(), LS_F32, backward.dq, true);
        failures.compare("dk", r.dk.data(), LS_F32, backward.dk, true);
        failures.compare("dv", r.dv.data(), LS_F32, backward.dv, true);
        failures.compare("drelative", r.drelative.data(), LS_F32, backward.drelative, true);
        failures.compare("dcontent", r.dcontent.data(), LS_F32, backward.dcontent, true);
        failures.compare("dtable", r.dtable.data(), LS_F32, backward.dtable, true);
        if (seed % doors.size() == d) {
            int threads = int(2 + seed / doors.size() % 2);
            if (!(run(c, doors[d], threads) == r)) failures.say("depends on the number of threads");
        }
        failed += failures.count;
    }
    return failed == 0;
}

}  // namespace
}  // namespace stress

int main(int argc, char** argv) {
    std::setvbuf(stdout, nullptr, _IOLBF, 0);
    const long cases = argc > 1 ? std::atol(argv[1]) : 5000;
    const uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
    const std::vector<stress::Door> doors = stress::doors(argc > 3 ? argv[3] : nullptr);
    if (doors.empty()) return std::puts("no such target here"), 2;
    for (const stress::Door& door : doors) std::printf("target %s\n", door.name);
    long failed = !stress::test_workers(), accepted = argc > 2 ? 0 : stress::test_malformed(doors);
    for (uint64_t seed = first; seed < first + uint64_t(cases); seed++)
        failed += !(stress::test(seed, doors) & stress::test_linear(seed, doors) & stress::test_norm(seed, doors) & stress::test_rotate(seed, doors) & stress::test_max_sim(seed, doors) & stress::test_words(seed));
    std::printf("%ld passed, %ld failed\n", cases - failed, failed + accepted);
    return failed + accepted != 0;
}
