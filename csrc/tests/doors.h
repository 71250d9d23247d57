// The ways into the kernels: the library's own door with each target it has, and the door to the wide target.
#pragma once
#include <vector>

#include "longspan.h"

namespace stress {

struct Door {
    const char *name, *target;
    int (*forward)(const ls_problem*, const ls_result*, const char*);
    int (*backward)(const ls_problem*, const ls_gradient*, const char*);
    int (*linear)(const ls_layer*, const char*);
    int (*layer_norm)(const ls_norm*, const char*);
    int (*rotate)(const ls_rotation*, const char*);
    int (*max_sim)(const ls_max_sim_problem*, const char*);
};

// Every target that this machine can run, or only the one named.
std::vector<Door> doors(const char* only);

}  // namespace stress
