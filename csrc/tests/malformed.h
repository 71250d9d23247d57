#pragma once
#include "doors.h"

namespace stress {

// Problems that are not well formed must be refused, and whatever is not refused must not touch memory it does not own.
// Returns how many were wrongly accepted.
int test_malformed(const std::vector<Door>& doors);

}  // namespace stress
