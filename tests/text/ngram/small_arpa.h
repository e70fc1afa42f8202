#pragma once

#include <string>

namespace stretto::testing {

/// A trigram model with all that back-off has: n-grams of each order, contexts without a back-off,
/// and "the cat" without "cat" behind "a". log10.
inline const std::string kSmallArpa =
    "a line in front\n"
    "\\data\\\n"
    "ngram 1=7\n"
    "ngram 2=5\n"
    "ngram 3=2\n"
    "\n"
    "\\1-grams:\n"
    "-2.0\t<unk>\n"
    "-99\t<s>\t-0.5\n"
    "-1.0\t</s>\n"
    "-0.8\tthe\t-0.4\n"
    "-1.2\tcat\t-0.3\n"
    "-1.3\tsat\t-0.2\n"
    "-1.5\ta\n"
    "\n"
    "\\2-grams:\n"
    "-0.3\t<s> the\t-0.25\n"
    "-0.6\tthe cat\t-0.15\n"
    "-0.5\tcat sat\n"
    "-0.7\tsat </s>\n"
    "-0.9\tsat a\n"
    "\n"
    "\\3-grams:\n"
    "-0.1\t<s> the cat\n"
    "-0.2\tthe cat sat\n"
    "\n"
    "\\end\\\n";

}  // namespace stretto::testing
