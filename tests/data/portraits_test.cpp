// What the questions on portraits promise.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "data/squad/squad_file.h"
#include "examples/portraits/people.h"

namespace stretto::portraits {
namespace {

const Corpus& shipped_portraits() {
  static const Corpus corpus = generate(1);
  return corpus;
}

data::SquadData read(const std::vector<Portrait>& portraits) {
  data::SquadData data;
  data::BadSamples bad;
  data::parse_squad(squad_json(portraits), "portraits", {.require_answers = true}, data, bad);
  return data;
}

// The reader refuses answers that are not where the file says, and ids that occur twice.
TEST(Portraits, AreSoundFilesOfSquad) {
  for (const auto* part :
       {&shipped_portraits().train, &shipped_portraits().valid, &shipped_portraits().test}) {
    const auto data = read(*part);
    EXPECT_EQ(data.questions.size(), kQuestions * part->size());
    const auto impossible =
        std::count_if(data.questions.begin(), data.questions.end(),
                      [](const auto& question) { return question.is_impossible; });
    const double share =
        static_cast<double>(impossible) / static_cast<double>(data.questions.size());
    EXPECT_GT(share, 0.08);
    EXPECT_LT(share, 0.18);
  }
}

TEST(Portraits, HaveTheSizesThatTheyPromise) {
  EXPECT_EQ(shipped_portraits().train.size(), CorpusSizes{}.train);
  EXPECT_EQ(shipped_portraits().valid.size(), CorpusSizes{}.valid);
  EXPECT_EQ(shipped_portraits().test.size(), CorpusSizes{}.test);
}

TEST(Portraits, AreTheSameForTheSameSeed) {
  const CorpusSizes few{.train = 5, .valid = 2, .test = 2};
  EXPECT_EQ(squad_json(generate(3, few).train), squad_json(generate(3, few).train));
  EXPECT_NE(squad_json(generate(3, few).train), squad_json(generate(4, few).train));
}

TEST(Portraits, OfOnePartOccurInNoOther) {
  std::set<std::string> held_out;
  for (const auto* part : {&shipped_portraits().valid, &shipped_portraits().test}) {
    for (const auto& portrait : *part) {
      EXPECT_TRUE(held_out.insert(portrait.text).second) << portrait.text;
    }
  }
  for (const auto& portrait : shipped_portraits().train) {
    EXPECT_FALSE(held_out.contains(portrait.text)) << portrait.text;
  }
}

}  // namespace
}  // namespace stretto::portraits
