#include "examples/portraits/people.h"

#include <array>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/random.h"
#include "data/squad/code_points.h"

namespace stretto::portraits {
namespace {

constexpr std::array<std::string_view, 24> kFirstNames{
    "Åsa",   "José",  "Zoë",    "Maria", "Peter", "Anna",  "Jürgen", "Ines",
    "Tomás", "Clara", "Viktor", "Nora",  "Émile", "Hanna", "Luca",   "Sofia",
    "Bruno", "Greta", "Oskar",  "Lena",  "Pablo", "Irène", "Simon",  "Thea"};
constexpr std::array<std::string_view, 24> kFamilyNames{
    "Berg",   "Costa",   "Dubois", "Ek",     "Fischer", "Grün",   "Hansen", "Ito",
    "Jansen", "Kovač",   "Lund",   "Moreau", "Novak",   "Olsson", "Petrov", "Quist",
    "Ruiz",   "Schäfer", "Tanaka", "Ueda",   "Vogel",   "Weber",  "Young",  "Zola"};
constexpr std::array<std::string_view, 32> kTowns{
    "Oslo",  "Porto", "Lyon",    "Graz",   "Turku",  "Bergen", "Malmö",  "Kyoto",
    "Basel", "Genoa", "Seville", "Kraków", "Gdańsk", "Bremen", "Ghent",  "Riga",
    "Tartu", "Split", "Zürich",  "Nantes", "Lille",  "Padua",  "Odense", "Cork",
    "York",  "Leeds", "Toledo",  "Vigo",   "Brno",   "Szeged", "Patras", "Izmir"};
constexpr std::array<std::string_view, 24> kTrades{
    "baker",    "surgeon",   "teacher", "carpenter", "judge",  "pilot",  "painter", "gardener",
    "butcher",  "librarian", "sailor",  "tailor",    "nurse",  "weaver", "cook",    "printer",
    "mechanic", "dentist",   "farmer",  "locksmith", "potter", "barber", "miner",   "translator"};
constexpr std::array<std::string_view, 12> kColours{"grey",  "white", "brown", "black",
                                                    "green", "red",   "blue",  "yellow",
                                                    "tame",  "small", "young", "lazy"};
constexpr std::array<std::string_view, 16> kAnimals{
    "parrot", "cat",  "dog",    "rabbit", "horse", "goose",  "snake", "turtle",
    "mouse",  "goat", "ferret", "canary", "pony",  "lizard", "duck",  "hamster"};
constexpr std::array<std::string_view, 16> kInstruments{
    "violin", "cello", "flute", "piano", "guitar", "harp", "trumpet",  "oboe",
    "drums",  "organ", "banjo", "viola", "tuba",   "lute", "clarinet", "accordion"};

/// What is told of people. `%N` stands for the name, `%V` for the value.
struct Relation {
  std::string_view sentence, question;
};
enum RelationName : size_t { kBorn, kHome, kYear, kTrade, kAnimal, kInstrument, kRelations };
constexpr std::array<Relation, kRelations> kRelationWords{{
    {"%N was born in %V.", "Where was %N born?"},
    {"%N lives in %V.", "Where does %N live?"},
    {"%N was christened in the spring of %V.", "In which year was %N christened?"},
    {"%N works as a %V.", "What is the trade of %N?"},
    {"%N keeps a %V.", "Which animal does %N keep?"},
    {"%N plays the %V.", "Which instrument does %N play?"},
}};

struct Fact {
  size_t relation = 0;
  std::string name, value;
};

template <size_t N>
std::string draw(RandomStream& random, const std::array<std::string_view, N>& words) {
  return std::string(words[random.below(N)]);
}

std::string draw_value(RandomStream& random, size_t relation) {
  switch (relation) {
    case kBorn:
    case kHome:
      return draw(random, kTowns);
    case kYear:
      return std::to_string(1900 + random.below(100));
    case kTrade:
      return draw(random, kTrades);
    case kAnimal: {
      const std::string colour = draw(random, kColours);
      return colour + " " + draw(random, kAnimals);
    }
    default:
      return draw(random, kInstruments);
  }
}

std::string filled(std::string_view pattern, const std::string& name, const std::string& value) {
  std::string text;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '%') {
      text += pattern[i];
      continue;
    }
    text += pattern[++i] == 'N' ? name : value;
  }
  return text;
}

template <class Item>
void shuffle(RandomStream& random, std::vector<Item>& items) {
  for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[random.below(i)]);
}

std::vector<Fact> draw_facts(RandomStream& random, const std::vector<std::string>& names) {
  const size_t facts_of_one = names.size() == 1 ? 5 : 3;
  std::vector<Fact> facts;
  for (const std::string& name : names) {
    std::vector<size_t> relations;
    for (size_t i = 0; i < kRelations; ++i) relations.push_back(i);
    shuffle(random, relations);
    for (size_t i = 0; i < facts_of_one; ++i) {
      facts.push_back({relations[i], name, draw_value(random, relations[i])});
    }
  }
  shuffle(random, facts);
  return facts;
}

std::vector<std::string> draw_names(RandomStream& random) {
  const size_t count = 1 + random.below(2);
  std::vector<std::string> names;
  while (names.size() < count) {
    const std::string first = draw(random, kFirstNames);
    std::string name = first + " " + draw(random, kFamilyNames);
    if (names.empty() || names.front() != name) names.push_back(std::move(name));
  }
  return names;
}

/// Where a value stands in a text that is told of a fact.
struct Told {
  Fact fact;
  size_t begin = 0;
};

std::vector<Told> tell(std::vector<Fact> facts, std::string& text) {
  std::vector<Told> told;
  for (Fact& fact : facts) {
    const std::string_view sentence = kRelationWords[fact.relation].sentence;
    if (!text.empty()) text += ' ';
    const size_t before =
        text.size() + filled(sentence.substr(0, sentence.find("%V")), fact.name, "").size();
    text += filled(sentence, fact.name, fact.value);
    told.push_back({std::move(fact), before});
  }
  return told;
}

/// Something that the portrait does not say of one of its people.
Question draw_unanswered(RandomStream& random, const std::vector<std::string>& names,
                         const std::vector<Told>& told) {
  for (;;) {
    const std::string& name = names[random.below(names.size())];
    const size_t relation = random.below(kRelations);
    bool said = false;
    for (const Told& one : told) said |= one.fact.name == name && one.fact.relation == relation;
    if (!said) return {.id = "", .text = filled(kRelationWords[relation].question, name, "")};
  }
}

Portrait draw_portrait(RandomStream& random) {
  constexpr uint64_t kOneIn = 8;
  Portrait portrait;
  const auto names = draw_names(random);
  portrait.title = names.size() == 1 ? names.front() : names.front() + " and " + names.back();
  auto told = tell(draw_facts(random, names), portrait.text);
  shuffle(random, told);
  for (size_t i = 0; i < kQuestions; ++i) {
    if (random.below(kOneIn) == 0) {
      portrait.questions.push_back(draw_unanswered(random, names, told));
      continue;
    }
    const auto& [fact, begin] = told[i];
    portrait.questions.push_back(
        {.id = "",
         .text = filled(kRelationWords[fact.relation].question, fact.name, ""),
         .answer = fact.value,
         .begin = begin});
  }
  return portrait;
}

/// A stream for each part: a part that grows does not change the others.
std::vector<Portrait> draw_part(uint64_t seed, uint64_t number, const std::string& name,
                                size_t count, std::unordered_set<std::string>& seen) {
  RandomStream random(mix64(seed, number));
  std::vector<Portrait> portraits;
  while (portraits.size() < count) {
    Portrait portrait = draw_portrait(random);
    if (!seen.insert(portrait.text).second) continue;
    for (size_t i = 0; i < portrait.questions.size(); ++i) {
      portrait.questions[i].id =
          name + "-" + std::to_string(portraits.size() + 1) + "-" + std::to_string(i + 1);
    }
    portraits.push_back(std::move(portrait));
  }
  return portraits;
}

}  // namespace

Corpus generate(uint64_t seed, const CorpusSizes& sizes) {
  std::unordered_set<std::string> seen;
  Corpus corpus;
  corpus.valid = draw_part(seed, 1, "valid", sizes.valid, seen);
  corpus.test = draw_part(seed, 2, "test", sizes.test, seen);
  corpus.train = draw_part(seed, 0, "train", sizes.train, seen);
  return corpus;
}

std::string squad_json(const std::vector<Portrait>& portraits) {
  using Json = nlohmann::ordered_json;
  auto articles = Json::array();
  for (const Portrait& portrait : portraits) {
    const data::CodePoints characters(portrait.text);
    auto questions = Json::array();
    for (const Question& question : portrait.questions) {
      auto answers = Json::array();
      if (!question.answer.empty()) {
        answers.push_back(
            {{"text", question.answer},
             {"answer_start", characters.code_point_at(static_cast<int64_t>(question.begin))}});
      }
      questions.push_back({{"id", question.id},
                           {"question", question.text},
                           {"answers", std::move(answers)},
                           {"is_impossible", question.answer.empty()}});
    }
    auto paragraphs = Json::array();
    paragraphs.push_back({{"context", portrait.text}, {"qas", std::move(questions)}});
    articles.push_back({{"title", portrait.title}, {"paragraphs", std::move(paragraphs)}});
  }
  return Json{{"version", "v2.0"}, {"data", std::move(articles)}}.dump() + "\n";
}

}  // namespace stretto::portraits
