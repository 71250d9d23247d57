#include "cpu.h"

#include <cstring>

#include "longspan.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace longspan {

#if defined(__x86_64__)
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c"); }
bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
static bool advertises_amx() {
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 24 & 1);  // AMX-TILE
}
#else
bool has_avx2() { return false; }
bool has_avx512() { return false; }
static bool advertises_amx() { return false; }
#endif

// Runs one AMX instruction in a child process, where a trap does no harm. The child says in shared memory that it came through:
// its exit status may go to somebody else, such as the system, where SIGCHLD is ignored, or another thread that reaps children.
static int probe_amx() {
#if defined(__x86_64__) && defined(__linux__)
    void* page = mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return 2;
    volatile int* works = static_cast<int*>(page);
    const pid_t child = fork();
    if (child == 0) {
        signal(SIGILL, SIG_DFL);
        signal(SIGSEGV, SIG_DFL);
        syscall(SYS_arch_prctl, 0x1023, 18);  // ask the kernel for the tile registers
        __asm__ volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0xc0");  // tilerelease
        *works = 1;
        _exit(0);
    }
    while (child > 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
    const int state = *works ? 1 : 2;
    munmap(page, sizeof(int));
    return state;
#else
    return 2;
#endif
}

}  // namespace longspan

extern "C" {

int ls_cpu_feature(const char* name) {
#if defined(__x86_64__)
#define FEATURE(x) \
    if (!std::strcmp(name, x)) return __builtin_cpu_supports(x) != 0;
    FEATURE("sse4.2")
    FEATURE("avx")
    FEATURE("avx2")
    FEATURE("fma")
    FEATURE("f16c")
    FEATURE("avx512f")
    FEATURE("avx512bw")
    FEATURE("avx512dq")
    FEATURE("avx512vl")
    FEATURE("avx512vnni")
    FEATURE("avx512bf16")
#undef FEATURE
    if (!std::strcmp(name, "amx_tile")) return longspan::advertises_amx();
#else
    (void)name;
#endif
    return 0;
}

int ls_amx_state(void) {
    static const int state = longspan::advertises_amx() ? longspan::probe_amx() : 0;
    return state;
}

}
