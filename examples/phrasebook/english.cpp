#include "examples/phrasebook/english.h"

#include <array>

namespace stretto::phrasebook {
namespace {

constexpr std::array<std::string_view, 20> kOnes{
    "zero",     "one",     "two",     "three",     "four",     "five",    "six",
    "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
constexpr std::array<std::string_view, 10> kTens{"",      "",      "twenty",  "thirty", "forty",
                                                 "fifty", "sixty", "seventy", "eighty", "ninety"};

// An auxiliary (empty where affirmative English has none) and what follows it.
struct Group {
  std::string auxiliary, rest, plain;  ///< `plain` replaces both when there is no auxiliary
};

Group group_of(const Verb& verb, const EnglishSubject& subject, const EnglishClause& clause) {
  const std::string base(verb.base), ing(verb.ing);
  const std::string be(english_be(subject, false)), was(english_be(subject, true));
  const std::string does = subject.third_singular ? "does" : "do";
  switch (clause.tense) {
    case Tense::kPresent:
      if (clause.continuous) return {be, ing, ""};
      return {does, base, std::string(subject.third_singular ? verb.third : verb.base)};
    case Tense::kPast:
      return {"did", base, std::string(verb.past)};
    case Tense::kImperfect:
      if (clause.continuous) return {was, ing, ""};
      return {"did", "use to " + base, "used to " + base};
    case Tense::kFuture:
      return {"will", base, ""};
    case Tense::kNearFuture:
      return {be, "going to " + base, ""};
    case Tense::kWant:
      return {does, "want to " + base, (subject.third_singular ? "wants to " : "want to ") + base};
    case Tense::kCan:
      return {"can", base, ""};
    case Tense::kMust:
      return {"must", base, ""};
  }
  return {};
}

}  // namespace

std::string english_clause(const Verb& verb, const EnglishSubject& subject,
                           const EnglishClause& clause) {
  const Group group = group_of(verb, subject, clause);
  if (clause.question) return group.auxiliary + " " + subject.words + " " + group.rest;
  if (clause.negation == Negation::kNot) {
    const std::string negated =
        group.auxiliary == "can" ? std::string("cannot") : group.auxiliary + " not";
    return subject.words + " " + negated + " " + group.rest;
  }
  const std::string never = clause.negation == Negation::kNever ? "never " : "";
  if (!group.plain.empty()) return subject.words + " " + never + group.plain;
  return subject.words + " " + group.auxiliary + " " + never + group.rest;
}

std::string_view english_be(const EnglishSubject& subject, bool past) {
  if (past) return subject.third_singular || subject.first_singular ? "was" : "were";
  if (subject.first_singular) return "am";
  return subject.third_singular ? "is" : "are";
}

std::string english_number(int number) {
  if (number < 20) return std::string(kOnes[static_cast<size_t>(number)]);
  const std::string tens(kTens[static_cast<size_t>(number / 10)]);
  return number % 10 == 0 ? tens : tens + "-" + english_number(number % 10);
}

std::string english_ordinal(int number) {
  static constexpr std::array<std::string_view, 13> kSmall{
      "",        "first",  "second", "third", "fourth",   "fifth",  "sixth",
      "seventh", "eighth", "ninth",  "tenth", "eleventh", "twelfth"};
  if (number <= 12) return std::string(kSmall[static_cast<size_t>(number)]);
  if (number < 20) return english_number(number) + "th";
  if (number % 10 == 0) return number == 20 ? "twentieth" : "thirtieth";
  return english_number(number / 10 * 10) + "-" + english_ordinal(number % 10);
}

std::string_view english_article(std::string_view next_word) {
  const bool vowel = std::string_view("aeiou").find(next_word.front()) != std::string_view::npos;
  return vowel ? "an" : "a";
}

}  // namespace stretto::phrasebook
