// What attention should give, written the plain way in double precision from the pairs that count, never from the plan.
#pragma once
#include "case.h"

namespace stress {

// Numbers in rows of `inner`, and for each row how far from them float32 arithmetic may end up; 0 means exactly.
struct Expected {
    std::vector<double> value, error;
    int64_t inner = 1;
    Expected() = default;
    Expected(int64_t rows, int64_t inner) : value(rows * inner), error(rows), inner(inner) {}
};

struct ExpectedForward {
    Expected out, lse;
};
struct ExpectedBackward {
    Expected dq, dk, dv, drelative, dcontent, dtable;
};

ExpectedForward expect_forward(const Case& c);
// Gradients at the given results of a forward pass: out contiguous in the case's dtype, lse in float32.
ExpectedBackward expect_backward(const Case& c, const std::vector<char>& out, const std::vector<float>& lse);

}  // namespace stress
