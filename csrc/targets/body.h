// One instruction set's kernels: the whole body in a namespace of its own, so that nothing is shared between targets.
#include <cstddef>
#include <cstdint>
#include <utility>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "../job.h"

namespace longspan::LS_TARGET {
#include "../vec.h"

#include "../exp-inl.h"
#include "../gemm-inl.h"
#include "../pack-inl.h"
#include "../tile-inl.h"
#include "../labels-inl.h"
#include "../softcap-inl.h"
#include "../attend-inl.h"
#include "../backward-inl.h"
#include "../activations-inl.h"
#include "../linear-inl.h"
#include "../norm-inl.h"
#include "../rotate-inl.h"
#include "../max_sim-inl.h"
}  // namespace longspan::LS_TARGET
