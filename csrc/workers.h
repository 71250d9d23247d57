// Threads and their memory.
#pragma once
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <cstdint>
#include <cstdlib>
#include <functional>

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

// Runs `work` in the caller and in up to `threads` - 1 workers that are free, and returns when all of them have. `work` takes
// units until none are left, so a worker that comes late, on a busy machine, finds nothing to do and holds nobody up.
void on_threads(int threads, const std::function<void()>& work);

// A large result is fresh memory: in pages of 2 MB it is faulted in with a five-hundredth of the faults.
inline void prefer_large_pages(void* memory, int64_t bytes) {
#if defined(__linux__)
    const int64_t page = 2 << 20;
    int64_t begin = (reinterpret_cast<int64_t>(memory) + page - 1) / page * page, end = reinterpret_cast<int64_t>(memory) + bytes;
    if (end - begin >= 2 * page) madvise(reinterpret_cast<void*>(begin), (end - begin) / page * page, MADV_HUGEPAGE);
#endif
}

}  // namespace longspan
