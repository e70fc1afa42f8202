#include "examples/phrasebook/grammar.h"

#include <optional>
#include <set>
#include <sstream>
#include <unordered_set>

#include "base/random.h"
#include "examples/phrasebook/phrases.h"

namespace stretto::phrasebook {
namespace {

std::string capital(std::string text) {
  // All French sentences that begin with an accent are fixed phrases, already capitalised.
  if (text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return text;
}

void append(std::vector<std::string>& words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
}

Sentence finish(const std::string& english, const std::vector<std::string>& french, bool question,
                std::string construction) {
  return {.english = capital(english) + (question ? "?" : "."),
          .french = capital(join_french(french)) + (question ? " ?" : "."),
          .triple = "",
          .construction = std::move(construction)};
}

bool animals_do(const Verb& verb) {
  static const std::set<std::string_view> kDone{"eat",  "drink",    "see",      "look for",
                                                "find", "wait for", "sleep",    "arrive",
                                                "fall", "go out",   "come back"};
  return kDone.contains(verb.base);
}

struct Plan {
  EnglishClause clause;
  std::string shape;
};

// Which tenses and negations may meet, so that English says exactly one French thing.
Plan plan_clause(RandomStream& random, const Verb& verb, const EnglishSubject& subject,
                 bool question) {
  EnglishClause clause{.question = question};
  clause.tense = static_cast<Tense>(random.below(8));
  if (!question && random.below(3) == 0) {
    clause.negation = random.below(4) == 0 ? Negation::kNever : Negation::kNot;
  }
  const bool imperfect = clause.tense == Tense::kImperfect;
  if (imperfect && clause.negation == Negation::kNever) clause.negation = Negation::kNot;
  const bool may_continue = !verb.stative && clause.negation != Negation::kNever;
  if (clause.tense == Tense::kPresent) clause.continuous = may_continue && random.below(2) == 0;
  if (imperfect) clause.continuous = !verb.stative && random.below(2) == 0;
  // "did not use to" is rare: the negated and the asked imperfect are continuous or become past.
  if (imperfect && !clause.continuous && (question || clause.negation != Negation::kNone)) {
    if (verb.stative) {
      clause.tense = Tense::kPast;
    } else {
      clause.continuous = true;
    }
  }
  // "they read" is present, since nothing tells it from the past.
  const bool silent_past = verb.base == verb.past && !subject.third_singular && !question &&
                           clause.negation != Negation::kNot;
  if (clause.tense == Tense::kPast && silent_past) clause.tense = Tense::kPresent;
  std::ostringstream shape;
  shape << "tense" << static_cast<int>(clause.tense) << " neg" << static_cast<int>(clause.negation)
        << (clause.continuous ? " ing" : "");
  return {clause, shape.str()};
}

Phrase tail_of_tense(RandomStream& random, Tense tense) {
  const bool past = tense == Tense::kPast || tense == Tense::kImperfect;
  const bool future = tense == Tense::kFuture || tense == Tense::kNearFuture;
  const Tail& tail =
      pick(random, past ? past_tails() : (future ? future_tails() : present_tails()));
  return {std::string(tail.english), {std::string(tail.french)}, "when", {}, {}};
}

// What may follow the object: when, at what time, on what day, where, with whom; or nothing.
Phrase tail(RandomStream& random, Tense tense, const Verb& verb) {
  const uint64_t die = random.below(20);
  if (die < 8) return {"", {}, "end", {}, {}};
  if (die < 11) return tail_of_tense(random, tense);
  if (die < 13) {
    Phrase time = clock_time(random);
    return {"at " + time.english, {"à", time.french[0]}, "time", {}, {}};
  }
  const bool dated = tense == Tense::kPast || tense == Tense::kFuture;
  if (die < 15 && dated) {
    Phrase day = date(random);
    return {"on " + day.english, day.french, "date", {}, {}};
  }
  if (die < 15 && tense == Tense::kPresent) {
    const Tail& day = pick(random, kDays);
    return {
        "on " + std::string(day.english) + "s", {"le", std::string(day.french)}, "days", {}, {}};
  }
  const bool goes_somewhere = verb.french.with_etre || (verb.objects & kPlace);
  if (die < 18 && !goes_somewhere) {
    const bool near = random.below(3) == 0;
    Phrase place = noun_phrase(random, noun_of(random, near ? kPlace : kRoom), Place::kDefinite);
    std::vector<std::string> french{near ? "près de" : "dans"};
    append(french, place.french);
    return {(near ? "near " : "in ") + place.english, french, near ? "near" : "in", {}, {}};
  }
  Phrase company = noun_phrase(random, noun_of(random, kPerson), Place::kSubject);
  std::vector<std::string> french{"avec"};
  append(french, company.french);
  return {"with " + company.english, french, "with " + company.shape, {}, {}};
}

Phrase object_of(RandomStream& random, const Verb& verb, const Noun& noun, bool negated) {
  Place place = negated ? Place::kNegatedObject : Place::kDirectObject;
  if (verb.french_preposition == "à") place = Place::kAfterA;
  if (verb.french_preposition == "de") place = Place::kAfterDe;
  Phrase object = noun_phrase(random, noun, place);
  if (!verb.french_preposition.empty()) {
    object.english = std::string(verb.english_preposition) + " " + object.english;
    object.french.insert(object.french.begin(), std::string(verb.french_preposition));
  }
  return object;
}

std::string negation_word(Negation negation) {
  if (negation == Negation::kNone) return "";
  return negation == Negation::kNot ? "pas" : "jamais";
}

// "I think that", "je pense que", before a statement; or nothing.
Phrase frame(RandomStream& random) {
  struct Says {
    std::string_view base, third;
    std::array<std::string_view, 5> french;
  };
  static constexpr std::array<Says, 4> kSays{
      {{"think", "thinks", {"pense", "pense", "pensons", "pensez", "pensent"}},
       {"say", "says", {"dis", "dit", "disons", "dites", "disent"}},
       {"know", "knows", {"sais", "sait", "savons", "savez", "savent"}},
       {"hope", "hopes", {"espère", "espère", "espérons", "espérez", "espèrent"}}}};
  const Says& says = pick(random, kSays);
  Phrase who = pronoun(random);
  const auto person = static_cast<size_t>(who.agreement.person);
  const std::string_view english = who.subject.third_singular ? says.third : says.base;
  return {who.english + " " + std::string(english) + " that",
          {who.french[0], std::string(says.french[person]), "que"},
          "that ",
          {},
          {}};
}

// Here is the apple that the girl ate: the participle agrees with what stands before it.
Sentence relative(RandomStream& random, const Verb& verb, const Phrase& subject,
                  const Noun& object_noun) {
  const Plan plan = plan_clause(random, verb, subject.subject, false);
  const Phrase object = noun_phrase(random, object_noun, Place::kDefinite);
  const Phrase ending = tail(random, plan.clause.tense, verb);
  std::vector<std::string> french{"voici"};
  append(french, object.french);
  french.emplace_back("que");
  append(french, subject.french);
  append(french, verb_group(verb.french, plan.clause.tense, subject.agreement,
                            negation_word(plan.clause.negation), &object.agreement));
  append(french, ending.french);
  std::string english = (object.agreement.plural ? "here are " : "here is ") + object.english +
                        " that " + english_clause(verb, subject.subject, plan.clause);
  if (!ending.english.empty()) english += " " + ending.english;
  return finish(english, french, false, "relative " + plan.shape + " " + ending.shape);
}

Sentence statement(RandomStream& random, const Verb& verb, const Phrase& subject,
                   const Noun* object_noun) {
  const bool question = random.below(6) == 0;
  const Plan plan = plan_clause(random, verb, subject.subject, question);
  const bool negated = plan.clause.negation != Negation::kNone;
  Phrase object;
  if (object_noun) object = object_of(random, verb, *object_noun, negated);
  const Phrase ending = tail(random, plan.clause.tense, verb);
  Phrase before;
  if (question) {
    before = {"", {"est-ce que"}, "question ", {}, {}};
  } else if (random.below(8) == 0) {
    before = frame(random);
  }
  std::vector<std::string> french = before.french;
  append(french, subject.french);
  append(french, verb_group(verb.french, plan.clause.tense, subject.agreement,
                            negation_word(plan.clause.negation), nullptr));
  append(french, object.french);
  append(french, ending.french);
  std::string english = before.english;
  for (const std::string& part :
       {english_clause(verb, subject.subject, plan.clause), object.english, ending.english}) {
    if (!part.empty()) english += (english.empty() ? "" : " ") + part;
  }
  return finish(english, french, question,
                before.shape + plan.shape + " " + std::string(verb.french_preposition) + " " +
                    object.shape + " " + ending.shape);
}

/// Subject, verb, object: with noun subjects these have the triple that is held out.
Sentence clause_sentence(RandomStream& random, bool noun_subject) {
  const Verb& verb = pick(random, verbs());
  const Noun& who = noun_of(random, kPerson | (animals_do(verb) ? kAnimal : 0u));
  const Phrase subject = noun_subject ? noun_phrase(random, who, Place::kSubject) : pronoun(random);
  if (verb.objects == 0) return statement(random, verb, subject, nullptr);
  const Noun* object = &noun_of(random, verb.objects);
  while (object == &who) object = &noun_of(random, verb.objects);
  const bool direct = verb.french_preposition.empty();
  Sentence sentence = direct && random.below(8) == 0 ? relative(random, verb, subject, *object)
                                                     : statement(random, verb, subject, object);
  if (noun_subject) {
    sentence.triple = std::string(who.english) + "|" + std::string(verb.base) + "|" +
                      std::string(object->english);
  }
  return sentence;
}

Sentence copula(RandomStream& random) {
  const Noun& noun = noun_of(random, ~0u);
  const Phrase subject = noun_phrase(random, noun, Place::kDefinite);
  const Adjective& adjective = adjective_for(random, noun);
  const bool negated = random.below(3) == 0;
  const uint64_t tense = random.below(3);
  const std::string_view be = english_be(subject.subject, tense == 1);
  std::string english = subject.english + " " + (tense == 2 ? "will" : std::string(be));
  english += std::string(negated ? " not" : "") + (tense == 2 ? " be" : "");
  english += " " + std::string(adjective.english);
  constexpr std::array<Tense, 3> kTenses{Tense::kPresent, Tense::kImperfect, Tense::kFuture};
  std::vector<std::string> french = subject.french;
  append(french,
         verb_group(etre(), kTenses[tense], subject.agreement, negated ? "pas" : "", nullptr));
  french.push_back(adjective_form(adjective, subject.agreement, ""));
  return finish(english, french, false, "be");
}

Sentence there_is(RandomStream& random) {
  const bool negated = random.below(4) == 0;
  const Noun& noun = noun_of(random, kPerson | kAnimal | kFood | kThing | kVehicle);
  Phrase thing = noun_phrase(random, noun, negated ? Place::kNegatedObject : Place::kDirectObject);
  while (thing.shape != "a" && thing.shape != "number") {
    thing = noun_phrase(random, noun, negated ? Place::kNegatedObject : Place::kDirectObject);
  }
  const Phrase room = noun_phrase(random, noun_of(random, kRoom), Place::kDefinite);
  const std::string be(thing.agreement.plural ? "are" : "is");
  std::vector<std::string> french{negated ? "il n'y a pas" : "il y a"};
  append(french, thing.french);
  french.emplace_back("dans");
  append(french, room.french);
  return finish("there " + be + (negated ? " not " : " ") + thing.english + " in " + room.english,
                french, false, "there");
}

Sentence age_or_price(RandomStream& random) {
  const bool age = random.below(2) == 0;
  const int number = static_cast<int>(2 + random.below(98));
  const std::string words = number_words(number, Gender::kMasculine);
  const Noun& noun = noun_of(random, age ? kPerson : unsigned{kText | kClothing | kThing});
  const Phrase subject = noun_phrase(random, noun, Place::kDefinite);
  const bool plural = subject.agreement.plural;
  std::vector<std::string> french = subject.french;
  if (age) {
    append(french, {plural ? "ont" : "a", words, "ans"});
    return finish(
        subject.english + (plural ? " are " : " is ") + english_number(number) + " years old",
        french, false, "age");
  }
  append(french, {plural ? "coûtent" : "coûte", words, "euros"});
  return finish(
      subject.english + (plural ? " cost " : " costs ") + english_number(number) + " euros", french,
      false, "price");
}

Sentence other_sentence(RandomStream& random) {
  const uint64_t die = random.below(40);
  if (die == 0) {
    const Tail& fixed = pick(random, fixed_phrases());
    return {std::string(fixed.english), std::string(fixed.french), "", "fixed"};
  }
  if (die < 5) {
    const Phrase time = clock_time(random);
    return finish("it is " + time.english, {"il", "est", time.french[0]}, false, "clock");
  }
  if (die < 10) {
    const Phrase day = date(random);
    return finish("today is " + day.english, {"aujourd'hui, c'est", day.french[0], day.french[1]},
                  false, "date");
  }
  if (die < 22) return copula(random);
  if (die < 32) return there_is(random);
  return age_or_price(random);
}

// 0 and 1: valid and test; anything else is training.
uint64_t part_of(const std::string& triple, uint64_t seed) {
  uint64_t hash = mix64(seed, 0x7472);
  for (const char letter : triple) hash = mix64(hash, static_cast<unsigned char>(letter));
  return hash % 20;
}

class Vocabulary {
 public:
  void add(const Sentence& sentence) {
    constructions_.insert(sentence.construction);
    for (const std::string* side : {&sentence.english, &sentence.french}) {
      std::istringstream words(*side);
      for (std::string word; words >> word;) words_.insert(word);
    }
  }
  bool knows(const Sentence& sentence) const {
    if (!constructions_.contains(sentence.construction)) return false;
    for (const std::string* side : {&sentence.english, &sentence.french}) {
      std::istringstream words(*side);
      for (std::string word; words >> word;) {
        if (!words_.contains(word)) return false;
      }
    }
    return true;
  }

 private:
  std::unordered_set<std::string> words_, constructions_;
};

}  // namespace

Corpus generate(uint64_t seed, const CorpusSizes& sizes) {
  Corpus corpus;
  Vocabulary vocabulary;
  std::unordered_set<std::string> seen;
  RandomStream random(mix64(seed, 0x7068726173650aull));
  while (corpus.train.size() < sizes.train) {
    const uint64_t die = random.below(100);
    Sentence sentence = die < 85 ? clause_sentence(random, die < 70) : other_sentence(random);
    if (!sentence.triple.empty() && part_of(sentence.triple, seed) < 2) continue;
    if (!seen.insert(sentence.english).second) continue;
    vocabulary.add(sentence);
    corpus.train.push_back(std::move(sentence));
  }
  while (corpus.valid.size() < sizes.valid || corpus.test.size() < sizes.test) {
    Sentence sentence = clause_sentence(random, true);
    const uint64_t part = part_of(sentence.triple, seed);
    if (sentence.triple.empty() || part >= 2) continue;
    std::vector<Sentence>& into = part == 0 ? corpus.valid : corpus.test;
    if (into.size() >= (part == 0 ? sizes.valid : sizes.test)) continue;
    if (!vocabulary.knows(sentence) || !seen.insert(sentence.english).second) continue;
    into.push_back(std::move(sentence));
  }
  return corpus;
}

}  // namespace stretto::phrasebook
