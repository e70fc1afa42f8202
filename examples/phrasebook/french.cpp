#include "examples/phrasebook/french.h"

#include <algorithm>

namespace stretto::phrasebook {
namespace {

constexpr std::array<std::string_view, 5> kImperfectEndings{"ais", "ait", "ions", "iez", "aient"};
constexpr std::array<std::string_view, 5> kFutureEndings{"ai", "a", "ons", "ez", "ont"};

const std::array<std::string, 5> kAvoir{"ai", "a", "avons", "avez", "ont"};
const std::array<std::string, 5> kAller{"vais", "va", "allons", "allez", "vont"};
const std::array<std::string, 5> kVouloir{"veux", "veut", "voulons", "voulez", "veulent"};
const std::array<std::string, 5> kPouvoir{"peux", "peut", "pouvons", "pouvez", "peuvent"};
const std::array<std::string, 5> kDevoir{"dois", "doit", "devons", "devez", "doivent"};

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

// The finite verb; what follows it (participle, infinitive) stands after the negation.
std::pair<std::string, std::string> parts(const Conjugation& verb, Tense tense,
                                          const Agreement& subject, const Agreement* object) {
  const auto person = static_cast<size_t>(subject.person);
  switch (tense) {
    case Tense::kPresent:
      return {verb.present[person], ""};
    case Tense::kImperfect: {
      const std::string_view ending = kImperfectEndings[person];
      std::string stem = verb.imperfect;
      if (stem.ends_with("ge") && ending.front() == 'i') stem.pop_back();  // mangeait, mangions
      return {stem + std::string(ending), ""};
    }
    case Tense::kFuture:
      return {verb.future + std::string(kFutureEndings[person]), ""};
    case Tense::kPast: {
      const Agreement* with = verb.with_etre ? &subject : object;
      return {
          verb.with_etre ? etre().present[person] : kAvoir[person],
          with ? agree_participle(verb.participle, with->gender, with->plural) : verb.participle};
    }
    case Tense::kNearFuture:
      return {kAller[person], verb.infinitive};
    case Tense::kWant:
      return {kVouloir[person], verb.infinitive};
    case Tense::kCan:
      return {kPouvoir[person], verb.infinitive};
    case Tense::kMust:
      return {kDevoir[person], verb.infinitive};
  }
  return {};
}

}  // namespace

Conjugation regular(std::string_view infinitive) {
  const std::string stem(infinitive.substr(0, infinitive.size() - 2));
  return {.infinitive = std::string(infinitive),
          .present = {stem + "e", stem + "e", stem + "ons", stem + "ez", stem + "ent"},
          .participle = stem + "é",
          .future = stem + "er",
          .imperfect = stem};
}

const Conjugation& etre() {
  static const Conjugation verb{.infinitive = "être",
                                .present = {"suis", "est", "sommes", "êtes", "sont"},
                                .participle = "été",
                                .future = "ser",
                                .imperfect = "ét"};
  return verb;
}

std::string number_words(int number, Gender gender) {
  static constexpr std::array<std::string_view, 17> kSmall{
      "zéro", "un",  "deux", "trois", "quatre", "cinq",     "six",    "sept", "huit",
      "neuf", "dix", "onze", "douze", "treize", "quatorze", "quinze", "seize"};
  static constexpr std::array<std::string_view, 7> kTens{
      "", "", "vingt", "trente", "quarante", "cinquante", "soixante"};
  if (number == 1) return gender == Gender::kFeminine ? "une" : "un";
  if (number <= 16) return std::string(kSmall[static_cast<size_t>(number)]);
  if (number < 20) return "dix-" + number_words(number - 10, gender);
  if (number == 80) return "quatre-vingts";
  if (number > 80) return "quatre-vingt-" + number_words(number - 80, gender);
  const int base = number >= 60 ? 60 : number / 10 * 10;
  const std::string tens(kTens[static_cast<size_t>(base / 10)]);
  const int rest = number - base;
  if (rest == 0) return tens;
  const bool with_et = rest == 1 || rest == 11;
  return tens + (with_et ? " et " : "-") + number_words(rest, gender);
}

std::string agree_participle(const std::string& masculine, Gender gender, bool plural) {
  std::string word = masculine;
  if (gender == Gender::kFeminine) word += "e";
  if (plural && word.back() != 's') word += "s";
  return word;
}

std::vector<std::string> verb_group(const Conjugation& verb, Tense tense, const Agreement& subject,
                                    const std::string& negation, const Agreement* object) {
  const auto [finite, rest] = parts(verb, tense, subject, object);
  std::vector<std::string> words;
  if (!negation.empty()) words.emplace_back("ne");
  words.push_back(finite);
  if (!negation.empty()) words.push_back(negation);
  if (!rest.empty()) words.push_back(rest);
  return words;
}

bool elides(std::string_view word) {
  if (word.starts_with("haricot") || word.starts_with("huit") || word.starts_with("onze") ||
      word.starts_with("homard")) {
    return false;
  }
  for (const std::string_view first :
       {"a", "e", "i", "o", "u", "h", "é", "è", "ê", "â", "à", "î", "ô", "œ"}) {
    if (word.starts_with(first)) return true;
  }
  return false;
}

std::string join_french(const std::vector<std::string>& words) {
  // Articles first: "à le hôpital" is à l'hôpital, while "à le marché" contracts.
  std::vector<std::string> out;
  for (auto word = words.rbegin(); word != words.rend(); ++word) {
    const bool elide = !out.empty() && elides(out.back());
    if (elide && is_one_of(*word, {"le", "la", "je", "ne", "de", "que", "est-ce que", "près de"})) {
      out.back() = word->substr(0, word->size() - 1) + "'" + out.back();
    } else if (!out.empty() && word->ends_with("de") && is_one_of(out.back(), {"le", "les"}) &&
               is_one_of(*word, {"de", "près de"})) {
      out.back() = word->substr(0, word->size() - 2) + (out.back() == "le" ? "du" : "des");
    } else if (!out.empty() && *word == "à" && is_one_of(out.back(), {"le", "les"})) {
      out.back() = out.back() == "le" ? "au" : "aux";
    } else {
      out.push_back(*word);
    }
  }
  std::string text;
  for (auto word = out.rbegin(); word != out.rend(); ++word) {
    if (!text.empty()) text += " ";
    text += *word;
  }
  return text;
}

}  // namespace stretto::phrasebook
