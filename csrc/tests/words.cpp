// Random texts, in characters of one, two or four bytes, against maps; and stems, which are never longer than their words.
#include "words.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>

#include "random.h"
#include "words/count.h"
#include "words/porter.h"

namespace stress {
namespace {

using namespace longspan::words;

bool is_alnum(uint32_t c) { return c == 'a' || c == 'b' || c == 0xe9 || (c >= 0x400 && c < 0x500) || c >= 0x10400; }
bool is_alone(uint32_t c) { return (c >= 0x3040 && c <= 0x30ff) || (c >= 0x3400 && c <= 0x9fff) || (c >= 0xf900 && c <= 0xfaff); }

std::u32string drawn_text(Random& random, int bytes) {
    std::u32string text;
    for (int i = random.between(0, 60); i > 0; i--) {
        const uint32_t narrow = random.one_of<uint32_t>({'a', 'b', 'a', 'b', ' ', 0, 0xe9, 0xff});
        const uint32_t two = random.one_of<uint32_t>({0x3041, 0x9fff, 0xfb00, 0x400, 0xd800, uint32_t(random.between(256, 65535))});
        text += char32_t(bytes > 1 && random.chance(20) ? bytes > 2 && random.chance(50) ? 0x10400 : two : narrow);
    }
    return text;
}

std::vector<std::u32string> split(const std::u32string& text, size_t longest) {
    std::vector<std::u32string> words;
    bool inside = false;
    size_t length = 0;
    for (char32_t c : text) {
        const bool part = is_alnum(c) && !is_alone(c);
        if (is_alone(c) || (part && !inside)) words.emplace_back(), length = 0;
        if ((is_alone(c) || part) && length++ < longest) words.back() += c;
        inside = part;
    }
    return words;
}

struct Case {
    std::vector<std::u32string> texts;
    std::vector<std::vector<uint8_t>> bytes;
    std::vector<std::vector<uint16_t>> pairs;
    std::vector<Text> list;
    int longest;

    explicit Case(Random& random) : longest(random.one_of({1, 3, 64})) {
        const int number = random.between(0, 12);
        bytes.reserve(number), pairs.reserve(number), texts.reserve(number);
        for (int i = 0; i < number; i++) {
            const int size = random.one_of({1, 2, 4});
            const std::u32string& text = texts.emplace_back(drawn_text(random, size));
            const void* data = text.data();
            if (size == 1) data = bytes.emplace_back(text.begin(), text.end()).data();
            if (size == 2) data = pairs.emplace_back(text.begin(), text.end()).data();
            list.push_back({data, int64_t(text.size()), size});
        }
    }
};

std::u32string characters(const Counts& counts, const Word& word) {
    const char* p = counts.characters.data() + word.at;
    if (word.bytes == 4) return std::u32string(reinterpret_cast<const char32_t*>(p), word.length);
    return std::u32string(reinterpret_cast<const uint8_t*>(p), reinterpret_cast<const uint8_t*>(p) + word.length);
}

const char* wrong(Random& random) {
    const Case c(random);
    const Counts counts = count(c.list, c.longest, is_alnum);
    std::vector<int32_t> group_of;
    std::map<std::u32string, int32_t> group;
    const int groups = random.between(1, 5);
    for (const Word& word : counts.words) {
        group_of.push_back(random.between(0, groups - 1));
        if (!group.emplace(characters(counts, word), group_of.back()).second) return "a word has two numbers";
    }
    std::vector<std::map<uint32_t, uint32_t>> expected(groups);
    for (size_t row = 0; row < c.texts.size(); row++) {
        const std::vector<std::u32string> words = split(c.texts[row], c.longest);
        if (counts.lengths[row] != int64_t(words.size())) return "a length is wrong";
        for (const std::u32string& word : words) {
            if (!group.count(word)) return "a word is missing";
            expected[group[word]][uint32_t(row)]++;
        }
    }
    const Postings postings = merge(counts, group_of, groups);
    size_t at = 0;
    for (int g = 0; g < groups; g++) {
        for (auto [row, times] : expected[g])
            if (at >= postings.packed.size() || postings.packed[at++] != (row << 8 | std::min(times, 255u))) return "a count is wrong";
        if (postings.ends[g] != int64_t(at)) return "a group has too much";
    }
    std::string word;
    for (int i = random.between(1, 66); i > 0; i--) word += random.one_of({'a', 'e', 's', 't', 'l', 'i', 'n', 'g', 'd', 'y', 'o', '1'});
    const size_t length = word.size();
    stem(word);
    return word.empty() || word.size() > length ? "a stem has no letters or too many" : nullptr;
}

}  // namespace

bool test_words(uint64_t seed) {
    Random random{seed};
    const char* what = wrong(random);
    if (what) std::printf("seed %llu, words: %s\n", static_cast<unsigned long long>(seed), what);
    return !what;
}

}  // namespace stress
