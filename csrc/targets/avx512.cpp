#define LS_TARGET avx512
#define LS_LANES 16
#include "body.h"

extern const ls_target ls_target_avx512 = {
    "avx512",
    longspan::avx512::FOURS,
    longspan::avx512::forward_scratch,
    longspan::avx512::part_floats,
    longspan::avx512::forward,
    longspan::avx512::backward_scratch,
    longspan::avx512::backward,
    longspan::avx512::linear_panel,
    longspan::avx512::linear_scratch,
    longspan::avx512::linear,
    longspan::avx512::quantize,
    longspan::avx512::layer_norm,
    longspan::avx512::rotate,
    longspan::avx512::max_sim_scratch,
    longspan::avx512::max_sim,
};
