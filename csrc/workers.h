// Threads and their memory.
#pragma once
#include <omp.h>
#include <pthread.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <thread>
#include <vector>

namespace longspan {

// A worker's memory stays with its thread: memory returned to the system is faulted in again at each call.
struct Scratch {
    float* data = nullptr;
    int64_t bytes = 0;
    float* get(int64_t need) {
        if (need > bytes) {
            std::free(data);
            data = static_cast<float*>(std::aligned_alloc(64, (need + 4095) / 4096 * 4096));
            bytes = data ? need : 0;
        }
        return data;
    }
    ~Scratch() { std::free(data); }
};
inline thread_local Scratch scratch;

// A forked child has none of the OpenMP threads its parent may have started: there, workers are started for each call.
inline std::atomic<bool> forked{false};
[[maybe_unused]] inline const int watch_forks = pthread_atfork(nullptr, nullptr, [] { forked = true; });

template <class Work>
void on_threads(int threads, Work work) {
    if (threads <= 1) return work();
    if (!forked) {
#pragma omp parallel num_threads(threads)
        work();
        return;
    }
    std::vector<std::thread> others;
    try {
        others.reserve(threads);
        for (int i = 1; i < threads; i++) others.emplace_back(work);
    } catch (const std::exception&) {
        // No thread or no memory for one: the workers that did start do all the work.
    }
    work();
    for (std::thread& t : others) t.join();
}

// A large result is fresh memory: in pages of 2 MB it is faulted in with a five-hundredth of the faults.
inline void prefer_large_pages(void* memory, int64_t bytes) {
#if defined(__linux__)
    const int64_t page = 2 << 20;
    int64_t begin = (reinterpret_cast<int64_t>(memory) + page - 1) / page * page, end = reinterpret_cast<int64_t>(memory) + bytes;
    if (end - begin >= 2 * page) madvise(reinterpret_cast<void*>(begin), (end - begin) / page * page, MADV_HUGEPAGE);
#endif
}

}  // namespace longspan
