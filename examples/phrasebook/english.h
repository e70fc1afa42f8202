#pragma once

#include <string>
#include <string_view>

#include "examples/phrasebook/lexicon.h"

namespace stretto::phrasebook {

enum class Negation { kNone, kNot, kNever };

/// What the English verb needs to know; "you" and "they" are plural, "I" is the first person.
struct EnglishSubject {
  std::string words;
  bool third_singular = false;
  bool first_singular = false;
};

struct EnglishClause {
  Tense tense = Tense::kPresent;
  Negation negation = Negation::kNone;
  bool continuous = false;  ///< "is eating" in the present, "was eating" in place of "used to eat"
  bool question = false;
};

/// Subject and verb group: "the girl does not want to eat", or as a question "does the girl eat".
std::string english_clause(const Verb& verb, const EnglishSubject& subject,
                           const EnglishClause& clause);

/// am, is, are; was, were.
std::string_view english_be(const EnglishSubject& subject, bool past);

/// 1 to 99 in words: "twenty-one".
std::string english_number(int number);
/// "first", "twenty-first"; 1 to 31.
std::string english_ordinal(int number);

/// a or an.
std::string_view english_article(std::string_view next_word);

}  // namespace stretto::phrasebook
