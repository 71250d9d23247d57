// Random linear layers through every target.
#pragma once
#include "doors.h"

namespace stress {

bool test_linear(uint64_t seed, const std::vector<Door>& doors);

}  // namespace stress
