// Random late interactions through every target.
#pragma once
#include "doors.h"

namespace stress {

bool test_max_sim(uint64_t seed, const std::vector<Door>& doors);

}  // namespace stress
