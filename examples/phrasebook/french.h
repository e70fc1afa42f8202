#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::phrasebook {

enum class Gender { kMasculine, kFeminine };

/// Whom a French word agrees with. `person` indexes Conjugation::present.
struct Agreement {
  Gender gender = Gender::kMasculine;
  bool plural = false;
  int person = 1;  ///< 0 je, 1 il or elle, 2 nous, 3 vous, 4 ils or elles
};

enum class Tense { kPresent, kPast, kImperfect, kFuture, kNearFuture, kWant, kCan, kMust };

/// The forms from which all tenses of the phrasebook are built.
struct Conjugation {
  std::string infinitive;
  std::array<std::string, 5> present;  ///< je, il, nous, vous, ils
  std::string participle;              ///< masculine singular
  std::string future;                  ///< stem: mangera -> "manger"
  std::string imperfect;               ///< stem: mangeait -> "mange"
  bool with_etre = false;              ///< passé composé with être, agreeing with the subject
};

/// A verb of the first group whose stem never changes: regarder, chanter, aimer.
Conjugation regular(std::string_view infinitive);

/// être, the copula and auxiliary.
const Conjugation& etre();

/// 1 to 99 in words; `gender` decides un or une: vingt et un, soixante et onze, quatre-vingts.
std::string number_words(int number, Gender gender);

/// Adds e and s where the last letter lets it: "mangé" -> "mangées"; "pris" -> "prise", "pris".
std::string agree_participle(const std::string& masculine, Gender gender, bool plural);

/// The words of a verb group, `negation` ("pas", "jamais" or empty) in its place.
/// @param object  what a participle with avoir agrees with: a direct object that stands before
///                the verb (la pomme que la fille a mangée), or null
std::vector<std::string> verb_group(const Conjugation& verb, Tense tense, const Agreement& subject,
                                    const std::string& negation, const Agreement* object);

/// Whether je, ne, de, que, le and la lose their vowel before this word: vowels and silent h do it,
/// "haricot" and "onze" do not.
bool elides(std::string_view word);

/// Joins words, with elision (l'eau, j'ai, n'a, qu'elle) and contraction (au, aux, du, des).
/// @param words  single words or short phrases, in lower case, without punctuation
std::string join_french(const std::vector<std::string>& words);

}  // namespace stretto::phrasebook
