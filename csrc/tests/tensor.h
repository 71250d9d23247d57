// Tensors of every dtype and stride. The memory is exactly as large as the strides ask for, and what lies in between is NaN,
// so that a kernel that reads or writes anything else is found out.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "longspan.h"
#include "random.h"

namespace stress {

inline double widen(uint16_t h, int dtype) {
    if (dtype == LS_BF16) {
        uint32_t u = uint32_t(h) << 16;
        float f;
        std::memcpy(&f, &u, 4);
        return f;
    }
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double size = exponent == 31  ? (fraction ? NAN : INFINITY)
                  : exponent == 0 ? std::ldexp(fraction, -24)
                                  : std::ldexp(1024 + fraction, exponent - 25);
    return h & 0x8000 ? -size : size;
}

// The nearest half float toward zero: inputs need to be exact, not well rounded.
inline uint16_t narrow(double x, int dtype) {
    if (dtype == LS_BF16) {
        float f = float(x);
        uint32_t u;
        std::memcpy(&u, &f, 4);
        return uint16_t(u >> 16);
    }
    int sign = std::signbit(x) ? 0x8000 : 0, exponent;
    if (!std::isfinite(x)) return uint16_t(sign | (std::isnan(x) ? 0x7e00 : 0x7c00));
    double fraction = std::frexp(std::fabs(x), &exponent);
    if (exponent > 16) return uint16_t(sign | 0x7bff);
    if (exponent < -13) return uint16_t(sign | int(std::ldexp(std::fabs(x), 24)));
    return uint16_t(sign | (exponent + 14) << 10 | (int(fraction * 2048) & 1023));
}

inline int bytes_of(int dtype) { return dtype == LS_F32 ? 4 : 2; }

inline double read(const void* data, int64_t at, int dtype) {
    return dtype == LS_F32 ? static_cast<const float*>(data)[at] : widen(static_cast<const uint16_t*>(data)[at], dtype);
}
inline void write(void* data, int64_t at, int dtype, double x) {
    if (dtype == LS_F32)
        static_cast<float*>(data)[at] = float(x);
    else
        static_cast<uint16_t*>(data)[at] = narrow(x, dtype);
}

struct Tensor {
    int dtype = LS_F32;
    int64_t size[3] = {0, 0, 0};
    std::vector<char> memory;
    ls_view view{};

    Tensor() = default;
    // Contiguous, or with its axes in any order, gaps between rows, negative or zero strides, one element off alignment.
    Tensor(int dtype, int64_t rows, int64_t heads, int64_t dim, Random* odd) : dtype(dtype), size{rows, heads, dim} {
        int64_t stride[3], span = 1, start = 0;
        std::vector<int> axes = {2, 1, 0};
        if (odd && odd->chance(60)) odd->shuffle(axes);
        for (int a : axes) {
            stride[a] = odd && odd->chance(6) ? 0 : span + (odd && odd->chance(25) ? odd->between(1, 3) : 0);
            span += stride[a] * std::max<int64_t>(size[a] - 1, 0);
        }
        for (int a = 0; a < 3; a++)
            if (odd && odd->chance(15)) start += stride[a] * std::max<int64_t>(size[a] - 1, 0), stride[a] = -stride[a];
        int64_t extra = odd ? odd->between(0, 1) : 0;
        if (rows * heads * dim == 0) span = extra = start = 0;
        memory.resize((span + extra) * bytes_of(dtype));
        for (int64_t i = 0; i < span + extra; i++) write(memory.data(), i, dtype, NAN);
        view = {memory.data() + (start + extra) * bytes_of(dtype), stride[0], stride[1], stride[2]};
    }

    const float* floats() const { return memory.empty() ? nullptr : reinterpret_cast<const float*>(memory.data()); }
    int64_t at(int64_t r, int64_t h, int64_t d) const { return r * view.row + h * view.head + d * view.dim; }
    void set(int64_t r, int64_t h, int64_t d, double x) { write(view.data, at(r, h, d), dtype, x); }

    template <class Make>
    void fill(Make make) {
        for (int64_t r = 0; r < size[0]; r++)
            for (int64_t h = 0; h < size[1]; h++)
                for (int64_t d = 0; d < size[2]; d++) set(r, h, d, make());
    }
    std::vector<double> numbers() const {  // contiguous, exact
        std::vector<double> all;
        all.reserve(size[0] * size[1] * size[2]);
        for (int64_t r = 0; r < size[0]; r++)
            for (int64_t h = 0; h < size[1]; h++)
                for (int64_t d = 0; d < size[2]; d++) all.push_back(read(view.data, at(r, h, d), dtype));
        return all;
    }
};

}  // namespace stress
