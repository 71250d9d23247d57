// Many callers of the thread pool at once.
#pragma once

namespace stress {

bool test_workers();

}  // namespace stress
