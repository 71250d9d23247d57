#include "doors.h"

#include <cstring>

#if defined(__x86_64__)
extern "C" {
int ls_wide_forward(const ls_problem*, const ls_result*, const char*);
int ls_wide_backward(const ls_problem*, const ls_gradient*, const char*);
int ls_wide_linear(const ls_layer*, const char*);
int ls_wide_layer_norm(const ls_norm*, const char*);
int ls_wide_rotate(const ls_rotation*, const char*);
int ls_wide_max_sim(const ls_max_sim_problem*, const char*);
int ls_wide_supported(const char*);
}
#endif

namespace stress {

std::vector<Door> doors(const char* only) {
    std::vector<Door> found;
    for (int i = 0; const char* target = ls_target_name(i); i++)
        if (ls_target_supported(target)) found.push_back({target, target, ls_forward, ls_backward, ls_linear, ls_layer_norm, ls_rotate, ls_max_sim});
#if defined(__x86_64__)
    if (ls_wide_supported("avx512"))
        found.push_back({"wide", "avx512", ls_wide_forward, ls_wide_backward, ls_wide_linear, ls_wide_layer_norm, ls_wide_rotate, ls_wide_max_sim});
#endif
    if (only) std::erase_if(found, [&](const Door& door) { return std::strcmp(door.name, only) != 0; });
    return found;
}

}  // namespace stress
