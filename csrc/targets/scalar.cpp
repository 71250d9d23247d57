#define LS_TARGET scalar
#define LS_LANES 4
#include "body.h"

extern const ls_target ls_target_scalar = {
    "scalar",
    longspan::scalar::FOURS,
    longspan::scalar::forward_scratch,
    longspan::scalar::part_floats,
    longspan::scalar::forward,
    longspan::scalar::backward_scratch,
    longspan::scalar::backward,
    longspan::scalar::linear_panel,
    longspan::scalar::linear_scratch,
    longspan::scalar::linear,
    longspan::scalar::quantize,
    longspan::scalar::layer_norm,
    longspan::scalar::rotate,
    longspan::scalar::max_sim_scratch,
    longspan::scalar::max_sim,
};
