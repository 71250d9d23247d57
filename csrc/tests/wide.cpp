// The AVX-512 target compiled for AVX2: the compiler splits each of its vectors in two, so that what differs between eight
// and sixteen lanes (blocking, masks, transposes) is tried on machines without AVX-512.
#if defined(__x86_64__)
#pragma GCC target("avx2,fma,f16c")

#define avx512 wide
#define ls_target_avx512 ls_target_wide
#include "../targets/avx512.cpp"
#endif
