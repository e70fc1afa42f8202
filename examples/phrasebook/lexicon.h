#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "examples/phrasebook/french.h"

namespace stretto::phrasebook {

/// What a noun is; verbs and adjectives choose their company by it.
enum Kind : unsigned {
  kPerson = 1,
  kAnimal = 2,
  kFood = 4,
  kDrink = 8,
  kText = 16,
  kClothing = 32,
  kThing = 64,
  kVehicle = 128,
  kPlace = 256,
  kRoom = 512,  ///< a place that fits after "in the"
};

struct Noun {
  std::string_view english, english_plural, french, french_plural;
  Gender gender;
  unsigned kind;
  bool mass = false;  ///< takes "some" in the singular: some bread, du pain
};

struct Verb {
  std::string_view base, third, past, ing;
  std::string_view english_preposition;  ///< "to" of "go to", or empty
  std::string_view french_preposition;   ///< "à", "de" or empty for a direct object
  unsigned objects;                      ///< kinds of object; 0 = takes none
  bool stative;                          ///< no "is liking"
  Conjugation french;
};

struct Adjective {
  std::string_view english, masculine, feminine, masculine_plural, feminine_plural;
  std::string_view before_vowel;  ///< bel, vieil, nouvel; empty = as masculine
  bool before_noun;
  unsigned kinds;
};

/// A phrase at the end of a sentence that goes with some tenses.
struct Tail {
  std::string_view english, french;
};

std::span<const Noun> nouns();
std::span<const Verb> verbs();
std::span<const Adjective> adjectives();
std::span<const Tail> past_tails();
std::span<const Tail> present_tails();
std::span<const Tail> future_tails();
std::span<const Tail> fixed_phrases();

inline constexpr std::array<Tail, 7> kDays{{{"Monday", "lundi"},
                                            {"Tuesday", "mardi"},
                                            {"Wednesday", "mercredi"},
                                            {"Thursday", "jeudi"},
                                            {"Friday", "vendredi"},
                                            {"Saturday", "samedi"},
                                            {"Sunday", "dimanche"}}};
inline constexpr std::array<Tail, 12> kMonths{{{"January", "janvier"},
                                               {"February", "février"},
                                               {"March", "mars"},
                                               {"April", "avril"},
                                               {"May", "mai"},
                                               {"June", "juin"},
                                               {"July", "juillet"},
                                               {"August", "août"},
                                               {"September", "septembre"},
                                               {"October", "octobre"},
                                               {"November", "novembre"},
                                               {"December", "décembre"}}};

}  // namespace stretto::phrasebook
