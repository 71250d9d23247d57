#include "count.h"

#include <algorithm>
#include <cstring>

namespace longspan::words {
namespace {

enum Kind : uint8_t { OTHER, WORD, ALONE };

// An open table from words to their numbers.
class Vocabulary {
    struct Slot {
        uint32_t tag, next_id;  // part of the hash; the word's number plus 1, or 0 for an empty slot
    };
    Counts& counts;
    std::vector<Slot> slots = std::vector<Slot>(1 << 12);
    std::vector<uint64_t> hashes;

    static uint64_t mix(uint64_t hash, uint64_t bits) {
        hash = (hash ^ bits) * 0x9E3779B97F4A7C15u;
        return hash ^ hash >> 29;
    }
    static uint32_t word(const char* p) {
        uint32_t bits;
        std::memcpy(&bits, p, 4);
        return bits;
    }
    static uint64_t hash_of(const char* p, size_t size) {
        uint64_t hash = size, bits = 0;
        for (; size >= 8; size -= 8, p += 8) std::memcpy(&bits, p, 8), hash = mix(hash, bits);
        bits = 0;
        if (size & 4) bits = word(p), p += 4;
        for (size_t i = 0; i < (size & 3); i++) bits = bits << 8 | uint8_t(p[i]);
        return mix(hash, bits);
    }
    void grow() {
        slots.assign(slots.size() * 2, {});
        for (uint32_t id = 0; id < hashes.size(); id++) {
            size_t at = hashes[id];
            while (slots[at &= slots.size() - 1].next_id) at++;
            slots[at] = {uint32_t(hashes[id] >> 32), id + 1};
        }
    }

  public:
    explicit Vocabulary(Counts& counts) : counts(counts) {}

    uint32_t id(const char* p, int32_t length, int32_t bytes) {
        const size_t size = size_t(length) * bytes;
        const uint64_t hash = hash_of(p, size) + bytes;
        size_t at = hash;
        for (;; at++) {
            const Slot slot = slots[at &= slots.size() - 1];
            if (!slot.next_id) break;
            const Word& word = counts.words[slot.next_id - 1];
            if (slot.tag == uint32_t(hash >> 32) && word.length == length && word.bytes == bytes &&
                !std::memcmp(counts.characters.data() + word.at, p, size))
                return slot.next_id - 1;
        }
        const uint32_t fresh = uint32_t(counts.words.size());
        slots[at] = {uint32_t(hash >> 32), fresh + 1};
        hashes.push_back(hash);
        if (bytes > 1) counts.characters.resize((counts.characters.size() + 3) / 4 * 4);  // aligned
        counts.words.push_back({int64_t(counts.characters.size()), length, bytes});
        counts.characters.insert(counts.characters.end(), p, p + size);
        if (2 * hashes.size() > slots.size()) grow();
        return fresh;
    }
};

class Counter {
    Counts& counts;
    Vocabulary vocabulary{counts};
    const int longest;
    bool (*const is_alnum)(uint32_t);
    Kind kinds[256];
    std::vector<char> narrow;
    std::vector<uint32_t> wide;
    std::vector<size_t> entry_of;  // where each word was counted last
    uint32_t row = 0;

    Kind kind(uint32_t c) const { return c < 256 ? kinds[c] : kind_beyond(c); }
    Kind kind_beyond(uint32_t c) const {
        const bool alone = (c >= 0x3040 && c <= 0x30ff) || (c >= 0x3400 && c <= 0x9fff) || (c >= 0xf900 && c <= 0xfaff);
        return alone ? ALONE : is_alnum(c) ? WORD : OTHER;
    }

    template <class Char>
    uint32_t id(const Char* p, int32_t length) {
        if constexpr (sizeof(Char) == 1) return vocabulary.id(reinterpret_cast<const char*>(p), length, 1);
        if (std::all_of(p, p + length, [](Char c) { return c < 256; })) {
            std::copy(p, p + length, narrow.begin());
            return vocabulary.id(narrow.data(), length, 1);
        }
        std::copy(p, p + length, wide.begin());
        return vocabulary.id(reinterpret_cast<const char*>(wide.data()), length, 4);
    }

    template <class Char>
    void text(const Char* p, int64_t length) {
        int64_t words = 0;
        for (int64_t i = 0, end; i < length; i = end) {
            const Kind first = kind(p[i]);
            for (end = i + 1; first == WORD && end < length && kind(p[end]) == WORD;) end++;
            if (first == OTHER) continue;
            add(id(p + i, int32_t(std::min<int64_t>(end - i, longest))));
            words++;
        }
        counts.lengths.push_back(words);
    }

    void add(uint32_t id) {
        if (id == entry_of.size()) entry_of.push_back(SIZE_MAX);
        size_t& at = entry_of[id];
        if (at == SIZE_MAX || counts.entries[at].row != row) {
            at = counts.entries.size();
            counts.entries.push_back({row, id, 0});
        }
        counts.entries[at].count++;
    }

  public:
    Counter(Counts& counts, int longest, bool (*is_alnum)(uint32_t))
        : counts(counts), longest(longest), is_alnum(is_alnum), narrow(longest), wide(longest) {
        for (uint32_t c = 0; c < 256; c++) kinds[c] = is_alnum(c) ? WORD : OTHER;
    }

    void add(const Text& t) {
        if (t.bytes == 1) text(static_cast<const uint8_t*>(t.data), t.length);
        if (t.bytes == 2) text(static_cast<const uint16_t*>(t.data), t.length);
        if (t.bytes == 4) text(static_cast<const uint32_t*>(t.data), t.length);
        row++;
    }
};

}  // namespace

Counts count(const std::vector<Text>& texts, int longest, bool (*is_alnum)(uint32_t)) {
    Counts counts;
    Counter counter(counts, longest, is_alnum);
    for (const Text& text : texts) counter.add(text);
    return counts;
}

Postings merge(const Counts& counts, const std::vector<int32_t>& group_of, int32_t groups) {
    std::vector<Entry> merged;  // by rows, each group once in a row
    std::vector<size_t> entry_of(groups, SIZE_MAX);
    Postings postings{std::vector<int64_t>(groups + 1, 0), {}};
    merged.reserve(counts.entries.size());
    for (const Entry& entry : counts.entries) {
        const uint32_t group = uint32_t(group_of[entry.id]);
        size_t& at = entry_of[group];
        if (at == SIZE_MAX || merged[at].row != entry.row) {
            at = merged.size();
            merged.push_back({entry.row, group, 0});
            postings.ends[group + 1]++;
        }
        merged[at].count += entry.count;
    }
    for (int32_t g = 0; g < groups; g++) postings.ends[g + 1] += postings.ends[g];
    postings.packed.resize(merged.size());
    for (const Entry& entry : merged)  // ends[g] moves from the beginning of group g to its end
        postings.packed[postings.ends[entry.id]++] = entry.row << 8 | std::min(entry.count, 255u);
    postings.ends.pop_back();
    return postings;
}

}  // namespace longspan::words
