#include "families/translation/engine/translator.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>
#include <mutex>
#include <stdexcept>

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
  const testing::Threads scope(1);
  auto options = long_outputs();
  options.max_tokens = 1;  // a search for each sentence
  Translator translator({untrained("learned", kPositions)}, options);
  int64_t steps = 0;
  translator.translate(requests(3), played_group(0, 1, [&] { ++steps; }));
  EXPECT_EQ(steps, 3 * (1 + kPositions)) << "before each search, and each of its steps";
  steps = 0;
  const auto stop_in_the_second = [&] {
    if (++steps == kPositions + 4) throw std::runtime_error("enough");
  };
  EXPECT_THROW(translator.translate(requests(3), played_group(0, 1, stop_in_the_second)),
               std::runtime_error);
  EXPECT_EQ(steps, kPositions + 4);
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
