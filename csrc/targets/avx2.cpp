#define LS_TARGET avx2
#define LS_LANES 8
#include "body.h"

extern const ls_target ls_target_avx2 = {
    "avx2",
    longspan::avx2::FOURS,
    longspan::avx2::forward_scratch,
    longspan::avx2::part_floats,
    longspan::avx2::forward,
    longspan::avx2::backward_scratch,
    longspan::avx2::backward,
    longspan::avx2::linear_panel,
    longspan::avx2::linear_scratch,
    longspan::avx2::linear,
    longspan::avx2::quantize,
    longspan::avx2::layer_norm,
    longspan::avx2::rotate,
    longspan::avx2::max_sim_scratch,
    longspan::avx2::max_sim,
};
