// Random rows through every target's layer normalization.
#pragma once
#include "doors.h"

namespace stress {

bool test_norm(uint64_t seed, const std::vector<Door>& doors);

}  // namespace stress
