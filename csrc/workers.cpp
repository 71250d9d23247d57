// A pool of threads that sleep when there is nothing to do: OpenMP's spin for milliseconds, which on a busy machine is time taken
// from the thread that they wait for.
#include "workers.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace longspan {
namespace {

constexpr int SPINS = 2000;  // looks at a counter before a thread sleeps: about as long as it takes to wake one

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

struct Job {
    const std::function<void()>& work;
    int wanted;                  // workers that may still join
    std::atomic<int> inside{0};  // workers that are at work
    std::condition_variable left{};
    Job* next = nullptr;
};

class Pool {
    std::mutex lock;
    std::condition_variable called;
    Job* jobs = nullptr;  // of several callers
    int workers = 0;
    std::atomic<int> calls{0};

    Job* open_job() const {
        Job* job = jobs;
        while (job && job->wanted == 0) job = job->next;
        return job;
    }

    void serve() {
        std::unique_lock<std::mutex> hold(lock);
        for (;;) {
            Job* job = open_job();
            if (!job) {
                const int seen = calls;
                hold.unlock();
                for (int i = 0; i < SPINS && calls == seen; i++) pause();
                hold.lock();
                if (calls == seen) called.wait(hold, [&] { return calls != seen; });
                continue;
            }
            job->wanted--, job->inside++;
            hold.unlock();
            job->work();
            hold.lock();
            if (--job->inside == 0) job->left.notify_one();
        }
    }

public:
    void run(int threads, const std::function<void()>& work) {
        Job job{work, threads - 1};
        {
            std::lock_guard<std::mutex> hold(lock);
            try {
                for (; workers < threads - 1; workers++) std::thread([this] { serve(); }).detach();
            } catch (const std::exception&) {
                // No thread, or no memory for one: the workers that did start help.
            }
            job.next = jobs, jobs = &job;
            calls++;
        }
        called.notify_all();
        work();
        std::unique_lock<std::mutex> hold(lock);
        Job** place = &jobs;
        while (*place != &job) place = &(*place)->next;
        *place = job.next;
        if (job.inside) {
            hold.unlock();
            for (int i = 0; i < SPINS && job.inside; i++) pause();
            hold.lock();
            job.left.wait(hold, [&] { return job.inside == 0; });
        }
    }
};

// Never destroyed, since its threads never end. A forked child has none of them, and starts afresh.
Pool* pool = new Pool;
[[maybe_unused]] const int watch_forks = pthread_atfork(nullptr, nullptr, [] { pool = new Pool; });

}  // namespace

void on_threads(int threads, const std::function<void()>& work) { threads <= 1 ? work() : pool->run(threads, work); }

}  // namespace longspan
