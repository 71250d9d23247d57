// Random heads through every target's rotation.
#pragma once
#include "doors.h"

namespace stress {

bool test_rotate(uint64_t seed, const std::vector<Door>& doors);

}  // namespace stress
