// A small generator of its own, so that a seed means the same case on every machine.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

namespace stress {

struct Random {
    uint64_t state;

    uint64_t bits() {  // splitmix64
        uint64_t z = state += 0x9E3779B97F4A7C15u;
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        return z ^ z >> 31;
    }
    int between(int low, int high) { return low + int(bits() % uint64_t(high - low + 1)); }  // both ends included
    bool chance(int percent) { return between(1, 100) <= percent; }
    double unit() { return double(bits() >> 11) * 0x1p-53; }
    double value() { return (unit() + unit() + unit() + unit() - 2) * 1.7; }  // near enough to a normal variate
    template <class T>
    T one_of(std::initializer_list<T> list) {
        return list.begin()[between(0, int(list.size()) - 1)];
    }
    template <class T>
    void shuffle(std::vector<T>& list) {
        for (size_t i = list.size(); i > 1; i--) std::swap(list[i - 1], list[between(0, int(i) - 1)]);
    }
};

}  // namespace stress
