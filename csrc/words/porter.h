// Porter's stemmer (M. F. Porter, "An algorithm for suffix stripping", 1980), with the details of SQLite's full-text search.
#pragma once
#include <string>

namespace longspan::words {

// The stem of a word of lower-case ASCII letters and digits, in its place; one of fewer than 3 or more than 64 is left as it is.
void stem(std::string& word);

}  // namespace longspan::words
