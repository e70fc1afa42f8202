#pragma once

#include <string>
#include <vector>

#include "base/random.h"
#include "examples/phrasebook/english.h"

namespace stretto::phrasebook {

/// The same phrase in both languages; `shape` names how it was built.
struct Phrase {
  std::string english;
  std::vector<std::string> french;
  std::string shape;
  Agreement agreement;
  EnglishSubject subject;  ///< as the subject of a clause
};

/// Where a noun phrase stands, which limits its determiner.
enum class Place { kSubject, kDirectObject, kNegatedObject, kAfterA, kAfterDe, kDefinite };

template <typename Range>
const auto& pick(RandomStream& random, const Range& items) {
  return items[random.below(items.size())];
}

/// The noun with a determiner and sometimes an adjective, agreeing in gender and number.
Phrase noun_phrase(RandomStream& random, const Noun& noun, Place place);

/// I, he, she, we, you or they.
Phrase pronoun(RandomStream& random);

/// "at a quarter past three", "à trois heures et quart"; without "at" and "à".
Phrase clock_time(RandomStream& random);

/// "Monday the third of May", "lundi trois mai"; the day of the week in two of three.
Phrase date(RandomStream& random);

/// A random noun of one of the kinds.
const Noun& noun_of(RandomStream& random, unsigned kinds);

/// A random adjective for the noun.
const Adjective& adjective_for(RandomStream& random, const Noun& noun);

/// The form of the adjective that agrees, before a vowel (bel, vieil) where `next` says so.
std::string adjective_form(const Adjective& adjective, const Agreement& agreement,
                           std::string_view next);

}  // namespace stretto::phrasebook
