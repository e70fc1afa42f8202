// Draws by groups of tokens beside draws by ranks, on rows of many tokens.
#include "decoding/group_draw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "decoding/sampling_rules.h"

namespace stretto::decoding {
namespace {

constexpr size_t kVocab = 6000;

/// Log-probabilities of normal logits of this deviation, rounded to multiples of `grain` (0 = as
/// they are), of which every `gap`-th is forbidden (0 = none).
std::vector<float> noisy_row(RandomStream& random, double deviation, double grain, size_t gap) {
  std::vector<float> row;
  double sum = 0;
  for (size_t i = 0; i < kVocab; ++i) {
    double logit = deviation * random.normal();
    if (grain > 0) logit = std::round(logit / grain) * grain;
    row.push_back(gap > 0 && i % gap == 0 ? kNever : static_cast<float>(logit));
    sum += std::exp(static_cast<double>(row.back()));
  }
  for (float& x : row) x = static_cast<float>(x - std::log(sum));
  return row;
}

TEST(GroupDraw, FindsTheTokenOfADrawByRanks) {
  RandomStream random(5);
  const std::vector<std::pair<std::string, std::vector<float>>> rows{
      {"almost even", noisy_row(random, 0.1, 0, 0)},
      {"wide", noisy_row(random, 3, 0, 0)},
      {"steep", noisy_row(random, 20, 0, 0)},
      {"of equal tokens", noisy_row(random, 1, 0.25, 0)},
      {"with forbidden tokens", noisy_row(random, 2, 0, 3)}};
  const std::vector<SamplingOptions> all{{},
                                         {.temperature = 0.4},
                                         {.temperature = 2},
                                         {.top_p = 0.9},
                                         {.temperature = 1.5, .top_p = 0.3}};
  int64_t answers = 0, draws = 0;
  for (const auto& [name, row] : rows) {
    for (const SamplingOptions& options : all) {
      const std::vector<SamplingRule> rules = sampling_rules(options);
      for (int i = 0; i < 12; ++i) {
        const double uniform = random.uniform();
        const int64_t wanted = draw_by_ranks(row, uniform, rules);
        const auto found = draw_by_groups(
            row, uniform, {.temperature = options.temperature, .top_p = options.top_p});
        ++draws;
        answers += found ? 1 : 0;
        EXPECT_EQ(found.value_or(wanted), wanted) << name << ", draw " << i;
        EXPECT_EQ(draw(row, uniform, rules), wanted) << name << ", draw " << i;
      }
    }
  }
  EXPECT_EQ(answers, draws);
}

TEST(GroupDraw, GivesNoAnswerWhereRoundingCouldDecide) {
  const std::vector<float> even(kVocab, -std::log(static_cast<float>(kVocab)));
  EXPECT_FALSE(draw_by_groups(even, 0.5, {}).has_value()) << "between two tokens";
  EXPECT_EQ(draw(even, 0.5, {}), draw_by_ranks(even, 0.5, {}));
  EXPECT_EQ(draw_by_groups(even, 0.5 + 0.5 / kVocab, {}).value_or(-1),
            static_cast<int64_t>(kVocab / 2));
  EXPECT_FALSE(draw_by_groups(even, 0.25, {.top_p = 0.5}).has_value()) << "where top-p cuts";
}

TEST(GroupDraw, GivesTheLikeliestTokenForTheLeastDraw) {
  std::vector<float> row(kVocab, -20);
  row[4321] = -0.1F;
  EXPECT_EQ(draw_by_groups(row, 0, {}).value_or(-1), 4321);
  EXPECT_EQ(draw_by_groups(row, 0.9, {.temperature = 0.5, .top_p = 0.2}).value_or(-1), 4321);
}

TEST(GroupDraw, GivesNoAnswerWhereNothingCanComeAndForExtremeTemperatures) {
  const std::vector<float> none(kVocab, kNever), row(kVocab, -1);
  EXPECT_FALSE(draw_by_groups(none, 0.5, {}).has_value());
  EXPECT_EQ(draw(none, 0.5, {}), -1);
  EXPECT_FALSE(draw_by_groups(row, 0.3, {.temperature = 1e-20}).has_value());
  EXPECT_FALSE(draw_by_groups({}, 0.3, {}).has_value());
}

}  // namespace
}  // namespace stretto::decoding
