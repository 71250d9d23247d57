// The dispatcher once more, with the wide target in the place of the AVX-512 one.
#if defined(__x86_64__)
#define ls_target_avx512 ls_target_wide
#define has_avx512 has_avx2
#define ls_abi ls_wide_abi
#define ls_forward ls_wide_forward
#define ls_backward ls_wide_backward
#define ls_linear ls_wide_linear
#define ls_layer_norm ls_wide_layer_norm
#define ls_rotate ls_wide_rotate
#define ls_max_sim ls_wide_max_sim
#define ls_target_name ls_wide_name
#define ls_target_supported ls_wide_supported
#include "../dispatch.cpp"
#endif
