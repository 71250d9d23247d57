// Four callers share the pool: every unit of every call is done once, and done when the call returns.
#include "workers.h"

#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "../workers.h"

namespace stress {

bool test_workers() {
    constexpr int CALLERS = 4, CALLS = 500, UNITS = 20;
    std::atomic<int> wrong{0};
    std::vector<std::thread> callers;
    for (int c = 0; c < CALLERS; c++)
        callers.emplace_back([&] {
            for (int call = 0; call < CALLS; call++) {
                std::atomic<int> next{0};
                int done[UNITS] = {};
                longspan::on_threads(1 + call % 4, [&] {
                    for (int unit; (unit = next.fetch_add(1)) < UNITS;) done[unit]++;
                });
                for (int times : done) wrong += times != 1;
            }
        });
    for (std::thread& caller : callers) caller.join();
    if (wrong) std::printf("the thread pool: %d units were not done, or not once\n", wrong.load());
    return !wrong;
}

}  // namespace stress
