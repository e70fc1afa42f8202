#include "data/documents/masking.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "tests/base/failure.h"
#include "tests/data/documents/documents_fixture.h"
#include "text/tokenizer.h"

namespace stretto::data {
namespace {

using Ids = std::vector<int64_t>;
constexpr int64_t kMask = 4;

struct Masked {
  Ids ids, positions, labels;
};
Masked masked(const Masker& masker, const Ids& ids, uint64_t key) {
  Masked out{.ids = ids, .positions = {}, .labels = {}};
  masker.mask(out.ids, key, out.positions, out.labels);
  return out;
}

/// [CLS] words [SEP] words [SEP], no sub-words.
Ids sequence_of(size_t words) {
  Ids ids{2};
  for (size_t i = 0; i < words; ++i) {
    ids.push_back(5 + static_cast<int64_t>(i % 20));
    if (i == words / 2) ids.push_back(3);
  }
  ids.push_back(3);
  return ids;
}

Masker masker_of(const MaskRules& rules) {
  return {*stretto::testing::documents_tokenizer(), rules};
}

/// Checks that the share of `count` among `of` is `share`, within five standard deviations.
void expect_share(int64_t count, int64_t of, double share) {
  const double deviation = std::sqrt(share * (1 - share) / static_cast<double>(of));
  EXPECT_NEAR(static_cast<double>(count) / static_cast<double>(of), share, 5 * deviation + 1e-9);
}

TEST(Masker, LabelsAreTheHiddenTokens) {
  const auto masker = masker_of({});
  const Ids ids = sequence_of(60);
  for (uint64_t key = 0; key < 200; ++key) {
    const Masked out = masked(masker, ids, key);
    ASSERT_EQ(out.positions.size(), out.labels.size());
    EXPECT_TRUE(std::is_sorted(out.positions.begin(), out.positions.end()));
    EXPECT_EQ(std::set(out.positions.begin(), out.positions.end()).size(), out.positions.size());
    Ids restored = out.ids;
    for (size_t i = 0; i < out.positions.size(); ++i) {
      restored.at(static_cast<size_t>(out.positions[i])) = out.labels[i];
    }
    EXPECT_EQ(restored, ids) << "nothing else is changed";
  }
}

TEST(Masker, ChoosesTheAskedShareAndHidesItAsAsked) {
  const MaskRules rules;
  const auto masker = masker_of(rules);
  const Ids ids = sequence_of(50);
  int64_t chosen = 0, hidden = 0, kept = 0, other = 0;
  std::vector<int64_t> at(ids.size()), random_ids(30);
  const int64_t draws = 4000;
  for (int64_t key = 0; key < draws; ++key) {
    const Masked out = masked(masker, ids, static_cast<uint64_t>(key));
    EXPECT_GE(out.positions.size(), 7U);
    EXPECT_LE(out.positions.size(), 8U) << "7.5 on average";
    for (size_t i = 0; i < out.positions.size(); ++i) {
      const auto place = static_cast<size_t>(out.positions[i]);
      ++chosen;
      ++at[place];
      if (out.ids[place] == kMask) {
        ++hidden;
      } else if (out.ids[place] == out.labels[i]) {
        ++kept;
      } else {
        ++other;
        ++random_ids.at(static_cast<size_t>(out.ids[place]));
      }
    }
  }
  expect_share(chosen, draws * 50, 0.15);
  expect_share(hidden, chosen, 0.8);
  // A random token is the same one in 1 of 25 draws.
  expect_share(kept, chosen, 0.1 + 0.1 / 25);
  expect_share(other, chosen, 0.1 * 24 / 25);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 5) {
      EXPECT_EQ(at[i], 0) << "specials stay";
    } else {
      expect_share(at[i], draws, 0.15);
    }
  }
  for (size_t id = 0; id < 5; ++id) EXPECT_EQ(random_ids[id], 0) << "no special by chance";
  for (size_t id = 5; id < 30; ++id) EXPECT_GT(random_ids[id], 0) << id;
}

TEST(Masker, SharesMayBeOthers) {
  const Ids ids = sequence_of(40);
  const auto all = masked(masker_of({.probability = 1, .mask = 1, .random = 0}), ids, 3);
  EXPECT_EQ(all.positions.size(), 40U);
  EXPECT_EQ(std::count(all.ids.begin(), all.ids.end(), kMask), 40);
  const auto kept = masked(masker_of({.probability = 0.5, .mask = 0, .random = 0}), ids, 3);
  EXPECT_EQ(kept.positions.size(), 20U);
  EXPECT_EQ(kept.ids, ids);
  const auto random = masked(masker_of({.probability = 1, .mask = 0, .random = 1}), ids, 3);
  EXPECT_EQ(std::count(random.ids.begin(), random.ids.end(), kMask), 0);
  EXPECT_NE(random.ids, ids);
}

TEST(Masker, IsAFunctionOfItsKey) {
  const auto masker = masker_of({});
  const Ids ids = sequence_of(100);
  std::set<Ids> different;
  for (uint64_t key = 0; key < 50; ++key) {
    const Masked once = masked(masker, ids, key), again = masked(masker_of({}), ids, key);
    EXPECT_EQ(once.ids, again.ids);
    EXPECT_EQ(once.positions, again.positions);
    different.insert(once.positions);
  }
  EXPECT_EQ(different.size(), 50U);
}

TEST(Masker, AtLeastOneTokenIsChosen) {
  const auto masker = masker_of({.probability = 0.001});
  for (uint64_t key = 0; key < 50; ++key) {
    EXPECT_EQ(masked(masker, {2, 7, 3}, key).positions, Ids{1});
    EXPECT_EQ(masked(masker, sequence_of(9), key).positions.size(), 1U);
  }
  EXPECT_EQ(masked(masker, {2, 1, 3}, 1).positions, Ids{}) << "unknown ones cannot be found";
  EXPECT_EQ(masked(masker, {}, 1).positions, Ids{});
}

TEST(Masker, WholeWordsAreChosenTogether) {
  const auto masker = masker_of({.probability = 0.3, .whole_words = true});
  // Words at 1, 2-4, 5-6, 8; 7 is a separator, and a piece that continues nothing is a word.
  const Ids ids{2, 5, 6, 25, 26, 7, 27, 3, 28, 9, 3};
  const std::vector<Ids> words{{1}, {2, 3, 4}, {5, 6}, {8}, {9}};
  std::vector<int64_t> chosen(words.size());
  for (uint64_t key = 0; key < 3000; ++key) {
    const Ids positions = masked(masker, ids, key).positions;
    size_t tokens = 0;
    for (size_t i = 0; i < words.size(); ++i) {
      const auto in = [&](int64_t at) {
        return std::find(positions.begin(), positions.end(), at) != positions.end();
      };
      const auto count = static_cast<size_t>(std::count_if(words[i].begin(), words[i].end(), in));
      EXPECT_TRUE(count == 0 || count == words[i].size()) << "word " << i;
      tokens += count;
      chosen[i] += count > 0 ? 1 : 0;
    }
    EXPECT_EQ(tokens, positions.size());
    EXPECT_GE(tokens, 1U);
    EXPECT_LE(tokens, 3U);
  }
  for (const int64_t count : chosen) EXPECT_GT(count, 300);
}

TEST(Masker, AskedForAMaskTokenThatIsNotThereSaysSo) {
  const auto vocabulary = text::make_vocabulary("a\nb\n", "v");
  const Error error =
      stretto::testing::failure(ExitCode::kUsage, [&] { Masker(*vocabulary, MaskRules{}); });
  EXPECT_NE(std::string(error.what()).find("mask"), std::string::npos);
}

}  // namespace
}  // namespace stretto::data
