// Random texts through the word counter.
#pragma once
#include <cstdint>

namespace stress {

bool test_words(uint64_t seed);

}  // namespace stress
