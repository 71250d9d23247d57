// One problem through one door.
#pragma once
#include <thread>

#include "case.h"
#include "doors.h"

namespace stress {

typedef std::vector<float> Floats;

struct Results {
    std::vector<char> out;
    Floats lse, dq, dk, dv, drelative, dcontent, dtable;
    int code = 0;

    explicit Results(const Case& c)
        : out(c.queries * c.heads * c.value_dim * bytes_of(c.dtype), char(0xff)), lse(c.queries * c.heads, NAN), dq(lse.size() * c.dim),
          dk(c.keys * c.key_heads * c.dim), dv(c.keys * c.key_heads * c.value_dim), drelative(c.relative.memory.size() / 4), dcontent(c.content.memory.size() / 4),
          dtable(c.table.memory.size() / 4) {}

    bool operator==(const Results& other) const {  // bit by bit
        auto same = [](const Floats& a, const Floats& b) { return a.empty() || !std::memcmp(a.data(), b.data(), a.size() * 4); };
        return out == other.out && same(lse, other.lse) && same(dq, other.dq) && same(dk, other.dk) && same(dv, other.dv) &&
               same(drelative, other.drelative) && same(dcontent, other.dcontent) && same(dtable, other.dtable);
    }
};

// Forward, then backward at its results. A thread of its own brings fresh scratch memory, as large as this problem needs.
inline Results run(const Case& c, const Door& door, int threads) {
    Results r(c);
    ls_problem problem = c.problem;
    problem.threads = threads;
    auto floats = [](Floats& list) { return list.empty() ? nullptr : list.data(); };
    std::thread([&] {
        ls_result result = {r.out.data(), r.lse.data()};
        r.code = door.forward(&problem, &result, door.target);
        ls_view out = {r.out.data(), int64_t(c.heads) * c.value_dim, c.value_dim, 1};
        ls_gradient gradient = {r.lse.data(), out, c.grad_out.view, c.grad_lse.floats(), r.dq.data(), r.dk.data(), r.dv.data(),
                                floats(r.drelative), floats(r.dcontent), floats(r.dtable)};
        r.code |= door.backward(&problem, &gradient, door.target);
    }).join();
    return r;
}

}  // namespace stress
