// The words of texts, counted: no Python, no threads. The texts are in the form in which words are compared (lower case).
#pragma once
#include <cstdint>
#include <vector>

namespace longspan::words {

struct Text {
    const void* data;
    int64_t length;  // in characters
    int bytes;       // of a character: 1, 2 or 4
};

// A word in `Counts::characters`, with one byte for each character where all are below 256, else with four.
struct Word {
    int64_t at;
    int32_t length, bytes;
};

// A word of a text: `row` is the text's number, `id` the word's.
struct Entry {
    uint32_t row, id, count;
};

struct Counts {
    std::vector<char> characters;
    std::vector<Word> words;       // distinct, in the order of their first use
    std::vector<Entry> entries;    // by rows, each word once in a row
    std::vector<int64_t> lengths;  // of each text, in words
};

// A word is a kana or an ideograph, or else as many characters in a row as `is_alnum`; its first `longest` characters count.
Counts count(const std::vector<Text>& texts, int longest, bool (*is_alnum)(uint32_t));

// For each group of words where they occur: row << 8 | count, ascending; a count is at most 255. Group g ends at ends[g].
struct Postings {
    std::vector<int64_t> ends;
    std::vector<uint32_t> packed;
};

// `group_of` each word, below `groups`.
Postings merge(const Counts& counts, const std::vector<int32_t>& group_of, int32_t groups);

}  // namespace longspan::words
