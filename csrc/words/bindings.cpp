// longspan._postings: words counted for Python. A module of its own: searching by words needs neither torch nor OpenMP.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "count.h"
#include "porter.h"

namespace nb = nanobind;

namespace {

using namespace longspan::words;

bool is_alnum(uint32_t c) { return Py_UNICODE_ISALNUM(Py_UCS4(c)); }

template <class T>
nb::bytes bytes_of(const std::vector<T>& list) {
    return nb::bytes(list.data(), list.size() * sizeof(T));
}

Counts count_words(nb::object sequence, int longest) {
    if (longest < 1 || longest > 1 << 16) throw std::invalid_argument("longest must be between 1 and 65536");
    const nb::tuple strings(sequence);  // which keeps them alive, whatever happens to the sequence meanwhile
    if (strings.size() >> 24) throw std::invalid_argument("there are too many texts for rows of 24 bits");
    std::vector<Text> texts;
    for (nb::handle string : strings) {
        if (!PyUnicode_Check(string.ptr())) throw nb::type_error("a text must be a str");
        texts.push_back({PyUnicode_DATA(string.ptr()), PyUnicode_GET_LENGTH(string.ptr()), int(PyUnicode_KIND(string.ptr()))});
    }
    nb::gil_scoped_release release;
    return count(texts, longest, is_alnum);
}

nb::list words_of(const Counts& counts) {
    nb::list words;
    for (const Word& word : counts.words) {
        PyObject* string = PyUnicode_FromKindAndData(word.bytes, counts.characters.data() + word.at, word.length);
        if (!string) throw nb::python_error();
        words.append(nb::steal(string));
    }
    return words;
}

// None for words that are not of lower-case ASCII letters and digits.
nb::list stems_of(const nb::list& words) {
    nb::list stems;
    std::string stem_of;
    for (nb::handle string : words) {
        if (!PyUnicode_Check(string.ptr())) throw nb::type_error("a word must be a str");
        const bool ascii = PyUnicode_IS_ASCII(string.ptr());
        if (ascii) stem_of.assign(static_cast<const char*>(PyUnicode_DATA(string.ptr())), PyUnicode_GET_LENGTH(string.ptr()));
        auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
        if (!ascii || stem_of.empty() || !std::all_of(stem_of.begin(), stem_of.end(), plain)) {
            stems.append(nb::none());
            continue;
        }
        stem(stem_of);
        stems.append(nb::str(stem_of.data(), stem_of.size()));
    }
    return stems;
}

nb::tuple merge_words(const Counts& counts, const nb::bytes& groups, int32_t number) {
    std::vector<int32_t> group_of(groups.size() / 4);
    if (groups.size() != 4 * counts.words.size()) throw std::invalid_argument("there must be one group for each word");
    if (number < 0 || size_t(number) > counts.words.size()) throw std::invalid_argument("there must be at most as many groups as words");
    std::memcpy(group_of.data(), groups.data(), groups.size());
    for (int32_t group : group_of)
        if (group < 0 || group >= number) throw std::invalid_argument("a group is out of range");
    Postings postings;
    {
        nb::gil_scoped_release release;
        postings = merge(counts, group_of, number);
    }
    return nb::make_tuple(bytes_of(postings.ends), bytes_of(postings.packed));
}

}  // namespace

NB_MODULE(_postings, m) {
    m.doc() = "Longspan's word counts.";
    m.def("count", &count_words, "Count the words of texts in lower case; of a word only the first characters count.");
    m.def("stems", &stems_of, "Porter's stem of each word; None for words that are not lower-case ASCII.");
    nb::class_<Counts>(m, "Counts")
        .def_prop_ro("words", &words_of, "The distinct words.")
        .def_prop_ro("lengths", [](const Counts& counts) { return bytes_of(counts.lengths); }, "The words of each text, as int64.")
        .def("merge", &merge_words, "Postings of groups of words: their ends as int64, then row << 8 | count as uint32.");
}
