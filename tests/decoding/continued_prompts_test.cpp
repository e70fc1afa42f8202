// Search that continues prompts, as a language model does.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "decoding/generation_options.h"
#include "decoding/search.h"

namespace stretto::decoding {
namespace {

constexpr int64_t kBeginOfText = 2, kEndOfText = 3, kWords = 30;

/// A made-up language without sources: logits of the next token are a hash of all tokens before it,
/// and have a sum of exponentials that is not 1.
class PromptedModel : public StepModel {
 public:
  explicit PromptedModel(int64_t lanes) : lanes_(static_cast<size_t>(lanes)) {}

  static at::Tensor logits(const std::vector<int64_t>& history) {
    uint64_t key = 91;
    for (const int64_t token : history) key = mix64(key, static_cast<uint64_t>(token));
    RandomStream stream(key);
    std::vector<float> numbers;
    for (int64_t v = 0; v < kWords; ++v) {
      numbers.push_back(static_cast<float>(4 * stream.uniform() - 1));
    }
    return at::tensor(numbers);
  }

  at::Tensor step(const at::Tensor& tokens) override {
    for (size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i].push_back(tokens[static_cast<int64_t>(i)].item<int64_t>());
    }
    most_lanes_of_a_step_.push_back(tokens.size(0));
    return next();
  }
  at::Tensor prefill_packed(const PackedPrompts& prompts, int64_t lanes_per_source) override {
    auto from = prompts.ids.begin();
    size_t lane = 0;
    for (const int64_t length : prompts.lengths) {
      for (int64_t k = 0; k < lanes_per_source; ++k) lanes_[lane++].assign(from, from + length);
      from += length;
    }
    return next();
  }
  bool takes_unequal_prompts() const override { return true; }
  void reorder(const std::vector<int64_t>& parents) override {
    std::vector<std::vector<int64_t>> lanes;
    for (const int64_t parent : parents) lanes.push_back(lanes_.at(static_cast<size_t>(parent)));
    lanes_ = lanes;
  }
  at::Tensor log_normalisers() const override { return normalisers_; }
  int64_t vocab_size() const override { return kWords; }

  const std::vector<int64_t>& lanes_of_steps() const { return most_lanes_of_a_step_; }
  size_t longest() const {
    return std::ranges::max_element(lanes_, {}, &std::vector<int64_t>::size)->size();
  }

 private:
  at::Tensor next() {
    std::vector<at::Tensor> rows, sums;
    for (const auto& lane : lanes_) {
      rows.push_back(at::log_softmax(logits(lane), 0));
      sums.push_back(at::logsumexp(logits(lane), 0));
    }
    normalisers_ = at::stack(sums);
    return at::stack(rows);
  }

  std::vector<std::vector<int64_t>> lanes_;
  std::vector<int64_t> most_lanes_of_a_step_;
  at::Tensor normalisers_;
};

using Prompts = std::vector<std::vector<int64_t>>;

SearchInput prompted_input(const Prompts& prompts, std::vector<int64_t> lines) {
  return {.src_lengths = std::vector<int64_t>(prompts.size(), 0),
          .sentence_ids = std::move(lines),
          .prefixes = {},
          .pad = 0,
          .bos = kBeginOfText,
          .eos = kEndOfText,
          .prompts = prompts,
          .ends_at_bound = true};
}

std::vector<std::vector<Hypothesis>> continued(const SearchInput& input,
                                               const GenerationOptions& options) {
  PromptedModel model(std::ssize(input.prompts) * options.lanes());
  return search(model, input, options.search_options());
}

GenerationOptions generation(const char* method, int64_t outputs, int64_t max_new_tokens,
                             int64_t min_len = 0) {
  GenerationOptions options;
  options.method = method;
  options.beam_size = options.nbest = outputs;
  options.max_new_tokens = max_new_tokens;
  options.min_len = min_len;
  return options;
}

const Prompts kThreePrompts{{2}, {2, 9, 5, 17, 9}, {2, 4, 4}};

TEST(ContinuedPrompts, GreedyTakesTheLikeliestTokenBehindEachPrompt) {
  const auto options = generation("beam", 1, 6);
  const auto found = continued(prompted_input(kThreePrompts, {0, 1, 2}), options);
  for (size_t i = 0; i < kThreePrompts.size(); ++i) {
    std::vector<int64_t> history = kThreePrompts[i], wanted;
    OutputEnd end = OutputEnd::kBound;
    while (wanted.size() < 6) {
      at::Tensor row = PromptedModel::logits(history);
      row[0] = row[kBeginOfText] = -1e9;
      const int64_t best = row.argmax().item<int64_t>();
      if (best == kEndOfText) {
        end = OutputEnd::kToken;
        break;
      }
      wanted.push_back(best);
      history.push_back(best);
    }
    ASSERT_EQ(found[i].size(), 1U);
    EXPECT_EQ(found[i][0].ids, wanted) << i;
    EXPECT_EQ(found[i][0].end, end) << i;
  }
}

TEST(ContinuedPrompts, ABatchIsItsSinglePrompts) {
  for (const char* method : {"sample", "beam"}) {
    const auto options = generation(method, 3, 12);
    const auto together = continued(prompted_input(kThreePrompts, {10, 11, 12}), options);
    for (size_t i = 0; i < kThreePrompts.size(); ++i) {
      const auto alone =
          continued(prompted_input({kThreePrompts[i]}, {10 + static_cast<int64_t>(i)}), options);
      ASSERT_EQ(together[i].size(), alone[0].size()) << method;
      for (size_t k = 0; k < alone[0].size(); ++k) {
        EXPECT_EQ(together[i][k].ids, alone[0][k].ids) << method;
        EXPECT_EQ(together[i][k].log_prob, alone[0][k].log_prob) << method;
      }
    }
  }
}

TEST(ContinuedPrompts, ASampleDoesNotDependOnHowManyThereAre) {
  const auto samples = [](int64_t count) {
    const auto options = generation("sample", count, 8);
    auto found = continued(prompted_input({kThreePrompts[1]}, {4}), options)[0];
    std::map<int64_t, std::vector<int64_t>> by_number;
    for (const Hypothesis& one : found) by_number[one.number] = one.ids;
    return by_number;
  };
  const auto four = samples(4), two = samples(2);
  ASSERT_EQ(four.size(), 4U);
  EXPECT_EQ(four.at(0), two.at(0));
  EXPECT_EQ(four.at(1), two.at(1));
  EXPECT_NE(four.at(0), four.at(1));
}

// A model of so many positions reads the prompt and all but the last of the new tokens.
TEST(ContinuedPrompts, EndAtTheModelsLastPosition) {
  for (const char* method : {"sample", "beam"}) {
    SearchInput input = prompted_input(kThreePrompts, {0, 1, 2});
    input.max_length = 8;
    const auto options = generation(method, 1, 50, 50);
    PromptedModel model(3);
    const auto found = search(model, input, options.search_options());
    for (size_t i = 0; i < kThreePrompts.size(); ++i) {
      EXPECT_EQ(found[i][0].ids.size(), 9 - kThreePrompts[i].size()) << method;
      EXPECT_EQ(found[i][0].token_log_probs.size(), found[i][0].ids.size());
      EXPECT_EQ(found[i][0].end, OutputEnd::kBound);
    }
    EXPECT_EQ(model.longest(), 8U) << method;
    // Prompts leave when they are done.
    EXPECT_EQ(model.lanes_of_steps().front(), 3) << method;
    EXPECT_EQ(model.lanes_of_steps().back(), 1) << method;
  }
}

/// Ends outputs behind a token, and keeps what it was told.
class StopAtToken : public OutputWatch {
 public:
  explicit StopAtToken(int64_t token) : token_(token) {}
  bool ends(size_t source, int64_t output, std::span<const int64_t> ids) override {
    auto& seen = told[{source, output}];
    seen.push_back(ids.back());
    EXPECT_TRUE(std::ranges::equal(seen, ids));
    return ids.back() == token_;
  }
  std::map<std::pair<size_t, int64_t>, std::vector<int64_t>> told;

 private:
  int64_t token_;
};

TEST(ContinuedPrompts, AWatchIsToldEachTokenAndEndsOutputs) {
  for (const char* method : {"sample", "beam"}) {
    const auto options = generation(method, 1, 40, 40);
    SearchInput input = prompted_input(kThreePrompts, {0, 1, 2});
    const auto whole = continued(input, options);
    const int64_t stop = whole[1][0].ids[3];
    StopAtToken watch(stop);
    input.watch = &watch;
    const auto found = continued(input, options);
    for (size_t i = 0; i < found.size(); ++i) {
      const auto& ids = whole[i][0].ids;
      const auto at = std::ranges::find(ids, stop);
      const std::vector<int64_t> wanted(ids.begin(), at == ids.end() ? at : at + 1);
      EXPECT_EQ(found[i][0].ids, wanted) << method;
      EXPECT_EQ(found[i][0].end, at == ids.end() ? OutputEnd::kBound : OutputEnd::kStop);
      EXPECT_EQ((watch.told[{i, 0}]), wanted) << method;
    }
  }
}

TEST(ContinuedPrompts, ABeamTakesOutputsThatAreStopped) {
  const auto options = generation("beam", 3, 10);
  SearchInput input = prompted_input({kThreePrompts[1]}, {0});
  // Ends every output of two tokens.
  struct : OutputWatch {
    bool ends(size_t /*source*/, int64_t /*output*/, std::span<const int64_t> ids) override {
      return ids.size() == 2;
    }
  } two_tokens;
  input.watch = &two_tokens;
  const auto found = continued(input, options)[0];
  ASSERT_EQ(found.size(), 3U);
  for (const Hypothesis& one : found) {
    EXPECT_EQ(one.ids.size(), one.end == OutputEnd::kStop ? 2U : one.ids.size());
    EXPECT_LE(one.ids.size(), 2U);
  }
}

/// The likeliest token where those that were there before are penalised as `transformers` does it.
TEST(ContinuedPrompts, RepetitionIsPenalisedInPromptAndOutput) {
  constexpr double kPenalty = 1.4;
  for (const char* method : {"beam", "sample"}) {
    auto options = generation(method, 1, 20, 20);
    options.repetition_penalty = kPenalty;
    options.top_k = 1;
    const auto found = continued(prompted_input({kThreePrompts[1]}, {0}), options)[0];
    ASSERT_EQ(found.size(), 1U);
    std::vector<int64_t> history = kThreePrompts[1];
    double log_prob = 0;
    bool was_changed = false;
    for (const int64_t token : found[0].ids) {
      const at::Tensor logits = PromptedModel::logits(history);
      at::Tensor row = logits.clone();
      for (int64_t v = 0; v < kWords; ++v) {
        if (std::ranges::find(history, v) == history.end()) continue;
        const auto x = row[v].item<float>();
        row[v] = x < 0 ? x * kPenalty : x / kPenalty;
      }
      for (const int64_t never : {int64_t{0}, kBeginOfText, kEndOfText}) row[never] = -1e9;
      EXPECT_EQ(token, row.argmax().item<int64_t>()) << method;
      at::Tensor plain = logits.clone();
      for (const int64_t never : {int64_t{0}, kBeginOfText, kEndOfText}) plain[never] = -1e9;
      was_changed |= token != plain.argmax().item<int64_t>();
      log_prob += at::log_softmax(logits, 0)[token].item<double>();
      history.push_back(token);
    }
    EXPECT_TRUE(was_changed) << "the penalty never mattered";
    if (std::string(method) == "sample") {
      EXPECT_NEAR(found[0].log_prob, log_prob, 1e-4);
    }
  }
}

TEST(ContinuedPrompts, NoNgramOfAPromptIsRepeated) {
  auto options = generation("beam", 1, 15, 15);
  options.no_repeat_ngram = 1;
  const auto found = continued(prompted_input({kThreePrompts[1]}, {0}), options)[0];
  ASSERT_EQ(found.size(), 1U);
  for (const int64_t token : kThreePrompts[1]) {
    EXPECT_EQ(std::ranges::find(found[0].ids, token), found[0].ids.end()) << token;
  }
}

}  // namespace
}  // namespace stretto::decoding
