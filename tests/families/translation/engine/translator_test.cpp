#include "families/translation/engine/translator.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "losses/registry.h"
#include "models/registry.h"
#include "tests/distributed/played_group.h"
#include "tests/distributed/thread_group.h"
#include "tests/kernels/scopes.h"
#include "tests/text/special_ids.h"
#include "text/tokenizer.h"

namespace stretto::tasks {
namespace {

using stretto::test::played_group;

constexpr int64_t kPositions = 9;

/// Fresh weights: such a model hardly ever ends a sentence by itself.
std::shared_ptr<models::Seq2SeqModel> untrained(const std::string& positions, int64_t count,
                                                uint64_t seed = 5) {
  models::Seq2SeqOptions options;
  options.d_model = 16;
  options.encoder = models::StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 16};
  options.decoder = models::StackOptions{.num_layers = 1, .num_heads = 2, .ffn_dim = 16};
  options.positions = positions;
  options.max_positions = count;
  return models::make_model(options,
                            {.src_rows = 24,
                             .tgt_rows = 24,
                             .num_tgt_classes = 21,
                             .src_specials = stretto::testing::kSpecials,
                             .tgt_specials = stretto::testing::kSpecials,
                             .seed = seed},
                            losses::make_loss({}));
}

std::vector<TranslationRequest> requests(int64_t count) {
  std::vector<TranslationRequest> all;
  for (int64_t i = 0; i < count; ++i) {
    TranslationRequest request{.src = {}, .prefix = {}, .sentence_id = i};
    for (int64_t k = 0; k <= i % 4; ++k) request.src.push_back(4 + (3 * i + k) % 16);
    request.src.push_back(stretto::testing::kSpecials.eos);
    all.push_back(request);
  }
  return all;
}

decoding::DecodeOptions long_outputs() {
  decoding::DecodeOptions options;
  options.beam_size = 3;
  options.max_len_a = 0;
  options.max_len_b = 25;
  options.min_len = 20;  // so that only a bound can end an output earlier
  return options;
}

TEST(Translator, OutputsStopWhereLearnedPositionsEnd) {
  const Translator translator({untrained("learned", kPositions)}, long_outputs());
  for (const auto& ids : translator.translate(requests(5))) {
    EXPECT_EQ(std::ssize(ids) + 1, kPositions) << "and an end of sentence";
  }
}

TEST(Translator, ThreadsWithBatchesOfTheirOwnFindWhatOneFinds) {
  auto options = long_outputs();
  options.max_tokens = 24;  // a few sentences a batch
  const std::vector<std::shared_ptr<models::Seq2SeqModel>> models{
      untrained("sinusoidal", kPositions), untrained("sinusoidal", kPositions, 6)};
  const auto all = requests(17);
  const auto search = [&](int threads) {
    const testing::Threads scope(threads);
    int inside = 0;
    const auto look = [&] {
      EXPECT_EQ(++inside, 1) << "called by two threads at once";
      --inside;
    };
    return Translator(models, options).translate(all, played_group(0, 1, look));
  };
  const auto one = search(1);
  ASSERT_EQ(one.size(), all.size());
  for (const int threads : {2, 3, 40}) {
    EXPECT_EQ(search(threads), one) << threads << " threads";
  }
}

TEST(Translator, WhatOneThreadThrowsEndsTheWorkOfAll) {
  auto options = long_outputs();
  options.max_tokens = 1;
  const testing::Threads scope(3);
  Translator translator({untrained("learned", kPositions)}, options);
  int64_t steps = 0;
  const auto stop_early = [&] {
    if (++steps == 4) throw std::runtime_error("enough");
  };
  const auto all = requests(200);
  EXPECT_THROW(
      {
        try {
          translator.translate(all, played_group(0, 1, stop_early));
        } catch (const std::runtime_error& error) {
          EXPECT_STREQ(error.what(), "enough");
          throw;
        }
      },
      std::runtime_error);
  EXPECT_EQ(steps, 4) << "others went on";
}

TEST(Translator, WhatIsThrownBeforeAStepEndsTheWork) {
  const testing::OwnProducts own_products;
  const testing::Threads scope(1);
  auto options = long_outputs();
  options.max_tokens = 1;  // one sentence after the other
  Translator translator({untrained("learned", kPositions)}, options);
  int64_t steps = 0;
  translator.translate(requests(3), played_group(0, 1, [&] { ++steps; }));
  EXPECT_EQ(steps, 1 + 3 * kPositions) << "before the stream of all, and each of its steps";
  steps = 0;
  const auto stop_in_the_second = [&] {
    if (++steps == kPositions + 4) throw std::runtime_error("enough");
  };
  EXPECT_THROW(translator.translate(requests(3), played_group(0, 1, stop_in_the_second)),
               std::runtime_error);
  EXPECT_EQ(steps, kPositions + 4);
}

TEST(Translator, BatchAfterBatchItLooksBeforeEachSearchAndEachOfItsSteps) {
  const testing::Threads scope(1);
  auto options = long_outputs();
  options.max_tokens = 1;  // a search for each sentence
  options.continuous = false;
  const Translator translator({untrained("learned", kPositions)}, options);
  int64_t steps = 0;
  translator.translate(requests(3), played_group(0, 1, [&] { ++steps; }));
  EXPECT_EQ(steps, 3 * (1 + kPositions));
}

/// Outputs of different lengths: the weights say something of every token.
std::shared_ptr<models::Seq2SeqModel> decided(const std::string& positions = "sinusoidal",
                                              uint64_t seed = 5) {
  auto model = untrained(positions, 40, seed);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model->parameters()) parameter.mul_(3);
  return model;
}

decoding::DecodeOptions short_outputs(int64_t beam_size) {
  decoding::DecodeOptions options;
  options.beam_size = options.nbest = beam_size;
  options.max_len_b = 8;
  options.max_tokens = 10 * beam_size;  // two or three sentences
  return options;
}

/// All hypotheses of all requests, in one search.
std::vector<std::vector<decoding::Hypothesis>> searched(
    const Translator& translator, const std::vector<TranslationRequest>& all) {
  const torch::NoGradGuard no_grad;
  std::vector<const TranslationRequest*> members;
  for (const auto& request : all) members.push_back(&request);
  return translator.search(members, {});
}

std::shared_ptr<const decoding::Shortlist> small_shortlist() {
  std::vector<decoding::Shortlist::Pair> pairs;
  for (int64_t src = 4; src < 20; ++src) {
    for (const int64_t tgt : {4 + src % 7, 12 + src % 3}) pairs.push_back({.src = src, .tgt = tgt});
  }
  return std::make_shared<const decoding::Shortlist>(pairs, 24, 21, 0, 10);
}

// Of hypotheses that are as likely, either may be found: tokens in another order are, to a model
// that is not trained and has no positions of its own.
void expect_same_search(const Translator& stream, const Translator& plain,
                        const std::vector<TranslationRequest>& all) {
  ASSERT_TRUE(stream.streams());
  ASSERT_FALSE(plain.streams());
  const auto found = searched(stream, all), expected = searched(plain, all);
  ASSERT_EQ(found.size(), expected.size());
  size_t hypotheses = 0, others = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].size(), expected[i].size()) << i;
    for (size_t k = 0; k < found[i].size(); ++k) {
      ++hypotheses;
      others += found[i][k].ids != expected[i][k].ids ? 1 : 0;
      EXPECT_NEAR(found[i][k].score, expected[i][k].score, 2e-6) << "request " << i << ", " << k;
    }
  }
  EXPECT_LE(others, hypotheses / 20) << "of " << hypotheses;
}

TEST(Translator, SentencesThatEnterABatchFindWhatBatchAfterBatchFinds) {
  const testing::OwnProducts own_products;
  auto all = requests(23);
  all[3].prefix = {7, 8};
  all[11].prefix.assign(30, 9);
  for (const char* positions : {"sinusoidal", "learned", "rotary", "alibi", "t5"}) {
    for (const int64_t beam_size : {1, 2, 5}) {
      SCOPED_TRACE(std::string(positions) + ", beam of " + std::to_string(beam_size));
      const auto model = decided(positions);
      auto options = short_outputs(beam_size), batches = options;
      batches.continuous = false;
      expect_same_search(Translator({model}, options), Translator({model}, batches), all);
      expect_same_search(Translator({model}, options, small_shortlist()),
                         Translator({model}, batches, small_shortlist()), all);
    }
  }
}

TEST(Translator, WithAShortlistOutputsHaveItsTokensAlone) {
  const auto list = small_shortlist();
  auto all = requests(9);
  all[2].prefix = {20};
  for (const bool continuous : {true, false}) {
    auto options = short_outputs(3);
    options.continuous = continuous;
    const auto outputs = Translator({decided()}, options, list).translate(all);
    for (size_t i = 0; i < all.size(); ++i) {
      const auto allowed = list->of(all[i].src, all[i].prefix);
      for (const int64_t id : outputs[i]) {
        EXPECT_TRUE(std::ranges::binary_search(allowed, id)) << "request " << i << ", id " << id;
      }
    }
  }
}

TEST(Translator, ThreadsAndProcessesTakeFromOneQueueAndFindWhatOneFinds) {
  const testing::OwnProducts own_products;
  const auto model = decided();
  const auto all = requests(70);
  const Translator translator({model}, short_outputs(3));
  ASSERT_TRUE(translator.streams());
  const auto search = [&](int threads) {
    const testing::Threads scope(threads);
    return translator.translate(all);
  };
  const auto one = search(1);
  EXPECT_GT(std::ranges::max(one, {}, [](const auto& ids) { return ids.size(); }).size(),
            std::ranges::min(one, {}, [](const auto& ids) { return ids.size(); }).size())
      << "of different lengths, or this tests little";
  for (const int threads : {2, 3, 8}) EXPECT_EQ(search(threads), one) << threads << " threads";
  for (const int size : {2, 3}) {
    std::mutex mutex;
    stretto::test::run_ranks(size, [&](const distributed::ProcessGroup& group) {
      const auto outputs = translator.translate(all, group);
      const std::lock_guard lock(mutex);
      EXPECT_EQ(outputs, one) << size << " processes";
    });
  }
}

TEST(Translator, SearchesBatchAfterBatchWhereModelsOrOptionsNeedIt) {
  auto options = short_outputs(2);
  EXPECT_FALSE(Translator({decided("shaw")}, options).streams());
  EXPECT_FALSE(Translator({decided(), decided("sinusoidal", 6)}, options).streams());
  options.repetition_penalty = 1.5;
  EXPECT_FALSE(Translator({decided()}, options).streams());
  options = short_outputs(2);
  options.method = "sample";
  EXPECT_FALSE(Translator({decided()}, options).streams());
}

TEST(Translator, AForcedPrefixStopsThereToo) {
  auto all = requests(2);
  all[0].prefix.assign(30, 7);
  Translator translator({untrained("learned", kPositions)}, long_outputs());
  EXPECT_EQ(translator.translate(all)[0], std::vector<int64_t>(kPositions - 1, 7));
}

TEST(Translator, ComputedPositionsSetNoBound) {
  for (const char* positions : {"sinusoidal", "rotary"}) {
    const auto model = untrained(positions, kPositions);
    EXPECT_EQ(model->max_target_length(), std::numeric_limits<int64_t>::max());
    Translator translator({model}, long_outputs());
    for (const auto& ids : translator.translate(requests(3))) {
      EXPECT_GE(ids.size(), 20U) << positions;
    }
  }
}

TEST(Translator, AnEnsembleStopsWithItsShortestMember) {
  Translator translator({untrained("learned", 15), untrained("learned", kPositions, 6)},
                        long_outputs());
  for (const auto& ids : translator.translate(requests(3))) {
    EXPECT_EQ(std::ssize(ids) + 1, kPositions);
  }
}

TEST(Translator, ProcessesShareTheBatchesAndAllHaveWhatOneFinds) {
  auto options = long_outputs();
  options.method = "sample";
  options.max_tokens = 24;  // a few sentences a batch
  options.min_len = 0;
  const auto model = untrained("sinusoidal", kPositions);
  const auto all = requests(17);
  const Translator translator({model}, options);
  const auto whole = translator.translate(all);
  for (const int size : {2, 3, 9}) {
    std::mutex mutex;
    stretto::test::run_ranks(size, [&](const distributed::ProcessGroup& group) {
      const auto outputs = translator.translate(all, group);
      const std::lock_guard lock(mutex);
      EXPECT_EQ(outputs, whole) << size << " processes";
    });
  }
}

}  // namespace
}  // namespace stretto::tasks
