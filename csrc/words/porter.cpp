#include "porter.h"

#include <initializer_list>
#include <string_view>

namespace longspan::words {
namespace {

typedef std::string_view Part;

// Suffixes and what takes their place. The first that fits is the only one tried: longer ones stand before those they end with.
struct Rule {
    Part suffix, instead;
};
typedef std::initializer_list<Rule> Rules;

const Rules AFTER_ED_OR_ING = {{"at", "ate"}, {"bl", "ble"}, {"iz", "ize"}};
const Rules STEP_2 = {{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"},   {"anci", "ance"},   {"izer", "ize"},
                      {"logi", "log"},    {"bli", "ble"},     {"alli", "al"},     {"entli", "ent"},   {"eli", "e"},
                      {"ousli", "ous"},   {"ization", "ize"}, {"ation", "ate"},   {"ator", "ate"},    {"alism", "al"},
                      {"iveness", "ive"}, {"fulness", "ful"}, {"ousness", "ous"}, {"aliti", "al"},    {"iviti", "ive"},
                      {"biliti", "ble"}};
const Rules STEP_3 = {{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"}, {"ical", "ic"}, {"ful", ""}, {"ness", ""}};
const Rules STEP_4 = {{"al", ""},  {"ance", ""}, {"ence", ""}, {"er", ""},  {"ic", ""},  {"able", ""}, {"ible", ""},
                      {"ant", ""}, {"ement", ""}, {"ment", ""}, {"ent", ""}, {"ion", ""}, {"ou", ""},   {"ism", ""},
                      {"ate", ""}, {"iti", ""},  {"ous", ""},  {"ive", ""}, {"ize", ""}};

bool is_vowel(char c) { return c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u'; }

// Consonant or not, letter by letter: y is a vowel after a consonant.
struct Letters {
    bool consonant = false;
    bool next(char c) { return consonant = !(is_vowel(c) || (consonant && c == 'y')); }
};

// How often a consonant follows a vowel: Porter's m.
int measure(Part part) {
    int m = 0;
    bool vowel = false;
    Letters letters;
    for (char c : part) {
        const bool consonant = letters.next(c);
        m += vowel && consonant;
        vowel = !consonant;
    }
    return m;
}

bool has_vowel(Part part) {
    for (size_t i = 0; i < part.size(); i++)
        if (is_vowel(part[i]) || (i > 0 && part[i] == 'y')) return true;
    return false;
}

// Consonant, vowel, consonant at the end, the last not w, x or y: Porter's *o.
bool ends_short(Part part) {
    int last = 0;
    Letters letters;
    for (char c : part) last = (last << 1 | letters.next(c)) & 7;
    return last == 5 && part.back() != 'w' && part.back() != 'x' && part.back() != 'y';
}

bool ends(const std::string& word, Part suffix) { return word.size() > suffix.size() && word.ends_with(suffix); }
Part before(const std::string& word, size_t suffix) { return Part(word).substr(0, word.size() - suffix); }

// Whether a rule was applied; `least` is the m that the part before the suffix must have.
bool apply(std::string& word, const Rules& rules, int least) {
    for (const Rule& rule : rules) {
        if (!ends(word, rule.suffix)) continue;
        const Part part = before(word, rule.suffix.size());
        if (measure(part) < least) return false;
        if (rule.suffix == "ion" && part.back() != 's' && part.back() != 't') return false;
        word.erase(part.size());
        word += rule.instead;
        return true;
    }
    return false;
}

void strip_plural(std::string& word) {
    if (word.back() != 's' || word.ends_with("ss")) return;
    word.erase(word.size() - (ends(word, "sses") || ends(word, "ies") ? 2 : 1));
}

void strip_ed_or_ing(std::string& word) {
    if (ends(word, "eed")) {
        if (measure(before(word, 3)) > 0) word.pop_back();
        return;
    }
    const size_t suffix = ends(word, "ed") ? 2 : ends(word, "ing") ? 3 : 0;
    if (!suffix || !has_vowel(before(word, suffix))) return;
    word.erase(word.size() - suffix);
    if (apply(word, AFTER_ED_OR_ING, 0)) return;
    const char last = word.back();
    const bool twice = word.size() > 1 && word[word.size() - 2] == last;
    if (twice && !is_vowel(last) && last != 'l' && last != 's' && last != 'z')
        word.pop_back();
    else if (measure(word) == 1 && ends_short(word))
        word.push_back('e');
}

void tidy(std::string& word) {
    if (word.back() == 'e') {
        const Part part = before(word, 1);
        const int m = measure(part);
        if (m > 1 || (m == 1 && !ends_short(part))) word.pop_back();
    }
    if (word.ends_with("ll") && measure(before(word, 1)) > 1) word.pop_back();
}

}  // namespace

void stem(std::string& word) {
    if (word.size() < 3 || word.size() > 64) return;
    strip_plural(word);
    strip_ed_or_ing(word);
    if (word.back() == 'y' && has_vowel(before(word, 1))) word.back() = 'i';
    apply(word, STEP_2, 1);
    apply(word, STEP_3, 1);
    apply(word, STEP_4, 2);
    tidy(word);
}

}  // namespace longspan::words
