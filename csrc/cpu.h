// What this CPU can do, and the floating-point mode the kernels work in.
#pragma once
#include <cstdint>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace longspan {

bool has_avx2();
bool has_avx512();

// Subnormal numbers make products many times slower and contribute nothing here; the caller's mode is restored afterwards.
class FlushDenormals {
#if defined(__x86_64__)
    unsigned saved = _mm_getcsr();

  public:
    FlushDenormals() { _mm_setcsr(saved | 0x8040); }
    ~FlushDenormals() { _mm_setcsr(saved); }
#else
  public:
    FlushDenormals() {}
#endif
    FlushDenormals(const FlushDenormals&) = delete;
    FlushDenormals& operator=(const FlushDenormals&) = delete;
};

}  // namespace longspan
