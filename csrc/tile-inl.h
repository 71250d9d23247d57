// What forward and backward share: tiles, the pairs allowed between two tiles, dropout, and a worker's memory.
constexpr double LN2 = 0.6931471805599453;
constexpr float LOG2E = float(1 / LN2), NOTHING = -__builtin_inff();
constexpr int GROUPS = (LS_TILE + BLOCK - 1) / BLOCK;
constexpr int ROW = LS_TILE / L;  // vectors in a row of scores

struct Tile {
    const int32_t* rows;
    int count;
};
static Tile tile_at(const int32_t* tiles, int64_t number) {
    const int32_t* rows = tiles + number * LS_TILE;
    int count = LS_TILE;
    while (count > 0 && rows[count - 1] < 0) count--;
    return {rows, count};
}

struct Entry {
    int32_t key_tile, mask, multiplicity, labels;
};

// Which pairs of (query tile, key tile) count, and for each group of BLOCK query rows the key columns it needs.
struct Pairs {
    bool masked;
    uint64_t bits[LS_TILE];
    Range columns[GROUPS];
};

static void find_pairs(const ls_plan& plan, const Entry& entry, int queries, int keys, Pairs* p) {
    uint64_t present = keys == LS_TILE ? ~uint64_t(0) : (uint64_t(1) << keys) - 1;
    p->masked = entry.mask >= 0 || keys < LS_TILE;
    const uint64_t* mask = entry.mask >= 0 ? plan.masks + int64_t(entry.mask) * LS_TILE : nullptr;
    for (int i = 0, g = 0; i < queries; g++) {
        uint64_t any = 0;
        for (int end = i + BLOCK < queries ? i + BLOCK : queries; i < end; i++)
            any |= p->bits[i] = mask ? mask[i] & present : present;
        p->columns[g] = any ? Range{__builtin_ctzll(any), LS_TILE - __builtin_clzll(any)} : Range{0, 0};
    }
}

LS_INLINE uint32_t row_bits(uint64_t bits, int vector) { return uint32_t(bits >> (vector * L)) & uint32_t((uint64_t(1) << L) - 1); }

// Counter-based dropout: what is dropped depends on the seed, the document, the head and the two positions only.
LS_INLINE uint32_t mix(uint32_t x) {
    x ^= x >> 16, x *= 0x7feb352dU, x ^= x >> 15, x *= 0x846ca68bU;
    return x ^ x >> 16;
}
LS_INLINE vu mix_lanes(vu x) {
    x ^= x >> 16, x *= 0x7feb352dU, x ^= x >> 15, x *= 0x846ca68bU;
    return x ^ x >> 16;
}

struct Dropout {
    bool on;
    uint32_t seed, threshold;
    float factor;
    uint32_t column[LS_TILE];  // hashes of the key positions of the current tile

    Dropout(const ls_problem& problem) {
        on = problem.dropout > 0;
        seed = mix(mix(uint32_t(problem.seed)) ^ uint32_t(problem.seed >> 32));
        double limit = problem.dropout * 4294967296.0;
        threshold = limit >= 4294967295.0 ? 0xffffffffu : uint32_t(limit);
        factor = problem.dropout < 1 ? float(1.0 / (1.0 - problem.dropout)) : 0.0f;
    }
    void set_columns(const int32_t* positions, Tile keys) {
        for (int j = 0; j < LS_TILE; j++) column[j] = j < keys.count ? mix(uint32_t(positions[keys.rows[j]]) ^ 0x85EBCA6BU) : 0;
    }
    uint32_t row(const int32_t* site, int64_t head) const {
        return mix(mix(mix(seed + uint32_t(site[0])) ^ (uint32_t(head) * 0x9E3779B9U)) + uint32_t(site[1]));
    }
    // factor where the pair is kept, 0 where it is dropped.
    LS_INLINE_MEMBER vf kept(uint32_t row, int vector) const {
        vu c;
        __builtin_memcpy(&c, column + vector * L, sizeof c);
        vu u = mix_lanes(c + row);
        return keep(vi(u >= (vu{} + threshold)), splat(factor));
    }
};

// Hands out pieces of a worker's scratch memory; with no memory it only adds up what would be needed.
struct Arena {
    float* base;
    int64_t used = 0;
    template <class T = float>
    T* get(int64_t count) {
        T* piece = base ? (T*)(base + used) : nullptr;
        used += round_up((count * int64_t(sizeof(T)) + 3) / 4, 16);
        return piece;
    }
};

// Which slot holds which packed key tile of which key head. A new tile replaces the oldest one that the current query tile has not used.
struct Slots {
    struct Tag {
        int64_t head, tile, user;
        bool finite;
    };
    int64_t count, next = 0;
    Tag* tag;
    int32_t* where;  // [k_tiles]: the last slot of a tile

    Slots(int64_t count, int64_t tiles, Arena& arena) : count(count), tag(arena.get<Tag>(count)), where(arena.get<int32_t>(tiles)) {
        if (!arena.base) return;
        for (int64_t s = 0; s < count; s++) tag[s] = {-1, -1, -1, false};
        __builtin_memset(where, 0, sizeof(int32_t) * tiles);
    }
    // The slot of a tile, or -1.
    int64_t find(int64_t head, int64_t tile, int64_t user) {
        Tag& t = tag[where[tile]];
        if (t.tile != tile || t.head != head) return -1;
        t.user = user;
        return where[tile];
    }
    int64_t oldest(int64_t user) {
        for (int64_t tries = 0; tries < count && tag[next].user == user; tries++) next = next + 1 == count ? 0 : next + 1;
        int64_t s = next;
        next = next + 1 == count ? 0 : next + 1;
        return s;
    }
    void put(int64_t s, int64_t head, int64_t tile, int64_t user) {
        tag[s] = {head, tile, user, true};
        where[tile] = int32_t(s);
    }
};
