// A random layer against sums in double precision, and its rows by themselves against the same rows among others.
#include "linear.h"

#include <cstdio>
#include <cstring>
#include <thread>

#include "random.h"

namespace stress {
namespace {

struct Case {
    std::vector<float> x, weights, scales, bias, times, plus;
    std::vector<int8_t> bytes;
    ls_layer layer{};
    int64_t extra;  // between two rows of y

    explicit Case(uint64_t seed) {
        Random random{seed};
        auto floats = [&](std::vector<float>& list, int64_t count) {
            for (int64_t i = 0; i < count; i++) list.push_back(float(random.value()));
            return list.data();
        };
        const int64_t most = random.chance(5) ? 1700 : 70;
        layer.rows = random.between(0, random.chance(5) ? 1100 : 20);
        layer.inputs = random.between(0, int(most));
        layer.outputs = random.between(1, 70);
        layer.x_row = layer.inputs + random.between(0, 3);
        layer.times_row = layer.outputs + random.between(0, 3);
        layer.plus_row = layer.outputs + random.between(0, 3);
        extra = random.between(0, 3);
        layer.y_row = layer.outputs + extra;
        layer.act = random.chance(40) ? random.between(LS_GELU, LS_SILU) : LS_IDENTITY;
        layer.x = floats(x, layer.rows * layer.x_row);
        layer.across = random.chance(25);
        if (layer.across || random.chance(50)) {
            layer.weights_row = (layer.across ? layer.outputs : layer.inputs) + random.between(0, 3);
            layer.weights = floats(weights, (layer.across ? layer.inputs : layer.outputs) * layer.weights_row);
        } else {
            layer.weights_row = layer.inputs;
            for (int64_t i = 0; i < layer.outputs * layer.inputs; i++) bytes.push_back(int8_t(random.between(-127, 127)));
            layer.weights = bytes.data();
            layer.scales = floats(scales, layer.outputs);
        }
        if (random.chance(70)) layer.bias = floats(bias, layer.outputs);
        if (random.chance(30)) layer.times = floats(times, layer.rows * layer.times_row);
        if (random.chance(30)) layer.plus = floats(plus, layer.rows * layer.plus_row);
    }

    // Output (r, o), and how far off it may be.
    double activated(double x) const {
        switch (layer.act) {
            case LS_GELU: return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
            case LS_GELU_TANH: return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
            case LS_RELU: return std::fmax(x, 0);
            default: return x / (1 + std::exp(-x));
        }
    }

    double weight(int64_t o, int64_t k) const {
        if (!scales.empty()) return bytes[o * layer.inputs + k] * double(scales[o]);
        return weights[layer.across ? k * layer.weights_row + o : o * layer.weights_row + k];
    }

    double expect(int64_t r, int64_t o, bool fours, double* error) const {
        double sum = 0, size = 0, largest = 0;
        for (int64_t k = 0; k < layer.inputs; k++) {
            const double a = x[r * layer.x_row + k], w = weight(o, k);
            sum += a * w, size += std::fabs(a * w), largest = std::fmax(largest, std::fabs(a));
        }
        if (layer.bias) sum += layer.bias[o];
        *error = 1e-6 * (1 + size + std::fabs(sum));
        if (!scales.empty()) {  // half a step for each input
            const double steps = std::fmin(32767, std::floor(2147483647.0 / (127 * std::fmax(1, double(layer.inputs)))));
            *error += largest / (fours ? 127.5 : steps) * 0.51 * 127 * std::fabs(scales[o]) * double(layer.inputs);
        }
        if (layer.act) sum = activated(sum), *error *= 1.2;
        if (layer.times) {
            const double by = layer.times[r * layer.times_row + o];
            sum *= by, *error = *error * std::fabs(by) + 1e-6 * std::fabs(sum);
        }
        if (!layer.plus) return sum;
        const double more = layer.plus[r * layer.plus_row + o];
        *error += 1e-6 * std::fabs(more);
        return sum + more;
    }
};

// A thread of its own brings fresh scratch memory, as large as this layer needs.
std::vector<float> run(ls_layer layer, const Door& door, int threads) {
    std::vector<float> y(layer.rows * layer.y_row, 7.0f);
    layer.y = y.data();
    layer.threads = threads;
    std::thread([&] { door.linear(&layer, door.target); }).join();
    return y;
}

const char* wrong(const Case& c, const Door& door) {
    const ls_layer& layer = c.layer;
    const bool fours = !std::strcmp(door.name, "avx512") && ls_cpu_feature("avx512vnni");  // rows of 8 bits
    const std::vector<float> y = run(layer, door, 1);
    for (int64_t r = 0; r < layer.rows; r++)
        for (int64_t o = 0; o < layer.y_row; o++) {
            double error = 0, found = y[r * layer.y_row + o];
            if (o >= layer.outputs ? found != 7.0f : !(std::fabs(found - c.expect(r, o, fours, &error)) <= error)) return "is far off";
        }
    if (run(layer, door, 3) != y) return "depends on the number of threads";
    if (layer.rows < 2) return nullptr;
    ls_layer last = layer;
    last.x += (layer.rows - 1) * layer.x_row;
    if (last.times) last.times += (layer.rows - 1) * layer.times_row;
    if (last.plus) last.plus += (layer.rows - 1) * layer.plus_row;
    last.rows = 1;
    const std::vector<float> alone = run(last, door, 1);
    return std::memcmp(alone.data(), y.data() + (layer.rows - 1) * layer.y_row, alone.size() * 4) ? "depends on other rows" : nullptr;
}

}  // namespace

bool test_linear(uint64_t seed, const std::vector<Door>& doors) {
    const Case c(seed);
    bool passed = true;
    for (const Door& door : doors)
        if (const char* what = wrong(c, door)) {
            std::printf("seed %llu, %s: a linear layer %s\n", static_cast<unsigned long long>(seed), door.name, what);
            passed = false;
        }
    return passed;
}

}  // namespace stress
