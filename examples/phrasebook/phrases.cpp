#include "examples/phrasebook/phrases.h"

namespace stretto::phrasebook {
namespace {

struct Possessive {
  std::string_view english, masculine, feminine, plural;
};
constexpr auto kPossessives = std::to_array<Possessive>({{"my", "mon", "ma", "mes"},
                                                         {"his", "son", "sa", "ses"},
                                                         {"her", "son", "sa", "ses"},
                                                         {"our", "notre", "notre", "nos"},
                                                         {"your", "votre", "votre", "vos"},
                                                         {"their", "leur", "leur", "leurs"}});

// What stands before the noun, still without the determiner.
struct Core {
  std::vector<std::string> french;
  std::string english;
  bool adjective_first = false;
};

Core noun_with_adjective(RandomStream& random, const Noun& noun, const Agreement& agreement) {
  const std::string french(agreement.plural ? noun.french_plural : noun.french);
  const std::string english(agreement.plural ? noun.english_plural : noun.english);
  if (random.below(10) >= 3) return {{french}, english, false};
  const Adjective& adjective = adjective_for(random, noun);
  const std::string form =
      adjective_form(adjective, agreement, adjective.before_noun ? french : "");
  Core core{{french}, std::string(adjective.english) + " " + english, adjective.before_noun};
  core.french.insert(adjective.before_noun ? core.french.begin() : core.french.end(), form);
  return core;
}

std::string definite_article(const Agreement& agreement) {
  if (agreement.plural) return "les";
  return agreement.gender == Gender::kFeminine ? "la" : "le";
}

void put_first(Phrase& phrase, const std::string& english, std::vector<std::string> french,
               const Core& core) {
  phrase.english = english + " " + core.english;
  french.insert(french.end(), core.french.begin(), core.french.end());
  phrase.french = std::move(french);
}

// a and some: un, une, des; du, de la, de l' for what is not counted; de after a negation, and de
// for des before an adjective.
void indefinite(Phrase& phrase, const Noun& noun, const Core& core, bool negated) {
  const Agreement& agreement = phrase.agreement;
  const bool some = agreement.plural || noun.mass;
  const std::string english =
      some ? (negated ? "any" : "some") : std::string(english_article(core.english));
  if (negated || (agreement.plural && core.adjective_first)) {
    put_first(phrase, english, {"de"}, core);
  } else if (agreement.plural) {
    put_first(phrase, english, {"des"}, core);
  } else if (noun.mass) {
    put_first(phrase, english, {"de", definite_article(agreement)}, core);
  } else {
    put_first(phrase, english, {agreement.gender == Gender::kFeminine ? "une" : "un"}, core);
  }
}

void possessive(RandomStream& random, Phrase& phrase, const Core& core) {
  const Possessive& owner = pick(random, kPossessives);
  const Agreement& agreement = phrase.agreement;
  // "mon école": the feminine form would meet a vowel.
  const bool feminine = agreement.gender == Gender::kFeminine && !elides(core.french.front());
  const std::string_view form =
      agreement.plural ? owner.plural : (feminine ? owner.feminine : owner.masculine);
  put_first(phrase, std::string(owner.english), {std::string(form)}, core);
}

void demonstrative(Phrase& phrase, const Core& core) {
  const Agreement& agreement = phrase.agreement;
  std::string form = elides(core.french.front()) ? "cet" : "ce";
  if (agreement.gender == Gender::kFeminine) form = "cette";
  if (agreement.plural) form = "ces";
  put_first(phrase, agreement.plural ? "these" : "this", {form}, core);
}

void counted(RandomStream& random, Phrase& phrase, const Core& core) {
  const int number = static_cast<int>(2 + random.below(random.below(3) == 0 ? 98 : 11));
  put_first(phrase, english_number(number), {number_words(number, phrase.agreement.gender)}, core);
}

}  // namespace

const Noun& noun_of(RandomStream& random, unsigned kinds) {
  for (;;) {
    const Noun& noun = pick(random, nouns());
    if (noun.kind & kinds) return noun;
  }
}

const Adjective& adjective_for(RandomStream& random, const Noun& noun) {
  for (;;) {
    const Adjective& adjective = pick(random, adjectives());
    if (adjective.kinds & noun.kind) return adjective;
  }
}

std::string adjective_form(const Adjective& adjective, const Agreement& agreement,
                           std::string_view next) {
  const bool feminine = agreement.gender == Gender::kFeminine;
  if (agreement.plural) {
    return std::string(feminine ? adjective.feminine_plural : adjective.masculine_plural);
  }
  if (feminine) return std::string(adjective.feminine);
  const bool vowel = !next.empty() && elides(next) && !adjective.before_vowel.empty();
  return std::string(vowel ? adjective.before_vowel : adjective.masculine);
}

Phrase noun_phrase(RandomStream& random, const Noun& noun, Place place) {
  Phrase phrase;
  const bool plural = !noun.mass && random.below(3) == 0;
  phrase.agreement = {noun.gender, plural, plural ? 4 : 1};
  const Core core = noun_with_adjective(random, noun, phrase.agreement);
  const uint64_t die = random.below(100);
  const bool no_some = place == Place::kAfterDe && (plural || noun.mass);
  if (place == Place::kDefinite || die < 35 || (no_some && die < 60)) {
    put_first(phrase, "the", {definite_article(phrase.agreement)}, core);
    phrase.shape = "the";
  } else if (die < 60) {
    indefinite(phrase, noun, core, place == Place::kNegatedObject);
    phrase.shape = "a";
  } else if (die < 80) {
    possessive(random, phrase, core);
    phrase.shape = "my";
  } else if (plural && die < 92) {
    counted(random, phrase, core);
    phrase.shape = "number";
  } else {
    demonstrative(phrase, core);
    phrase.shape = "this";
  }
  phrase.subject = {.words = phrase.english, .third_singular = !plural};
  return phrase;
}

Phrase pronoun(RandomStream& random) {
  struct Pronoun {
    std::string_view english, french;
    Agreement agreement;
  };
  static const std::array<Pronoun, 6> kPronouns{{{"I", "je", {Gender::kMasculine, false, 0}},
                                                 {"he", "il", {Gender::kMasculine, false, 1}},
                                                 {"she", "elle", {Gender::kFeminine, false, 1}},
                                                 {"we", "nous", {Gender::kMasculine, true, 2}},
                                                 {"you", "vous", {Gender::kMasculine, false, 3}},
                                                 {"they", "ils", {Gender::kMasculine, true, 4}}}};
  const Pronoun& one = pick(random, kPronouns);
  Phrase phrase{.english = std::string(one.english),
                .french = {std::string(one.french)},
                .shape = "pronoun",
                .agreement = one.agreement,
                .subject = {}};
  phrase.subject = {.words = phrase.english,
                    .third_singular = one.agreement.person == 1,
                    .first_singular = one.agreement.person == 0};
  return phrase;
}

Phrase clock_time(RandomStream& random) {
  const uint64_t kind = random.below(10);
  if (kind == 0) return {"noon", {"midi"}, "time", {}, {}};
  if (kind == 1) return {"midnight", {"minuit"}, "time", {}, {}};
  const int hour = static_cast<int>(1 + random.below(11));
  const auto hours = [](int number) {
    return number_words(number, Gender::kFeminine) + (number == 1 ? " heure" : " heures");
  };
  const std::string now = english_number(hour), next = english_number(hour + 1);
  const int minutes = static_cast<int>(5 * (1 + random.below(4)));
  // Fifteen is "a quarter", with a word of its own: twenty-five stands in for it.
  const int spoken = minutes == 15 ? 25 : minutes;
  const std::string english_minutes = english_number(spoken);
  const std::string french_minutes = number_words(spoken, Gender::kMasculine);
  if (kind <= 3) return {now + " o'clock", {hours(hour)}, "time", {}, {}};
  if (kind == 4) return {"half past " + now, {hours(hour) + " et demie"}, "time", {}, {}};
  if (kind == 5) return {"a quarter past " + now, {hours(hour) + " et quart"}, "time", {}, {}};
  if (kind <= 7) {
    return {english_minutes + " past " + now, {hours(hour) + " " + french_minutes}, "time", {}, {}};
  }
  // "to twelve" would be noon or midnight; 11 is the last hour.
  const std::string& to = hour == 11 ? now : next;
  const std::string french_to = hours(hour == 11 ? hour : hour + 1) + " moins ";
  if (kind == 8) return {"a quarter to " + to, {french_to + "le quart"}, "time", {}, {}};
  return {english_minutes + " to " + to, {french_to + french_minutes}, "time", {}, {}};
}

Phrase date(RandomStream& random) {
  const Tail& month = pick(random, kMonths);
  const bool short_month = month.english == "February";
  const int day = static_cast<int>(1 + random.below(short_month ? 28 : 30));
  const std::string number = day == 1 ? "premier" : number_words(day, Gender::kMasculine);
  std::string english = "the " + english_ordinal(day) + " of " + std::string(month.english);
  std::string french = number + " " + std::string(month.french);
  if (random.below(3) != 0) {
    const Tail& weekday = pick(random, kDays);
    english = std::string(weekday.english) + " " + english;
    french = std::string(weekday.french) + " " + french;
  }
  return {english, {"le", french}, "date", {}, {}};
}

}  // namespace stretto::phrasebook
