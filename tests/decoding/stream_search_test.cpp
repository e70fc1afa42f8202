#include "decoding/stream_search.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "decoding/search.h"
#include "decoding/shortlist_steps.h"

namespace stretto::decoding {
namespace {

constexpr int64_t kStreamBos = 2, kStreamEos = 3, kStreamVocab = 11;

/// Log-probabilities that are a hash of a source and of what was written: fp32 [vocab].
at::Tensor hashed_log_probs(const std::vector<int64_t>& source,
                            const std::vector<int64_t>& written) {
  uint64_t key = 78;
  for (const int64_t id : source) key = mix64(key, static_cast<uint64_t>(id));
  for (const int64_t id : written) key = mix64(key, static_cast<uint64_t>(100 + id));
  RandomStream stream(key);
  std::vector<float> logits;
  for (int64_t v = 0; v < kStreamVocab; ++v) {
    logits.push_back(static_cast<float>(4 * stream.uniform()));
  }
  return at::log_softmax(at::tensor(logits), 0);
}

struct HashedLane {
  std::vector<int64_t> source, written;
};

/// The reference: all sources together, in whole log-probabilities.
class HashedSteps : public StepModel {
 public:
  HashedSteps(const std::vector<std::vector<int64_t>>& sources, int64_t lanes_per_source) {
    for (const auto& source : sources) {
      for (int64_t k = 0; k < lanes_per_source; ++k) lanes_.push_back({source, {}});
    }
  }
  at::Tensor step(const at::Tensor& tokens) override {
    std::vector<at::Tensor> rows;
    for (size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i].written.push_back(tokens[static_cast<int64_t>(i)].item<int64_t>());
      rows.push_back(hashed_log_probs(lanes_[i].source, lanes_[i].written));
    }
    return at::stack(rows);
  }
  void reorder(const std::vector<int64_t>& parents) override {
    std::vector<HashedLane> lanes;
    for (const int64_t parent : parents) lanes.push_back(lanes_.at(static_cast<size_t>(parent)));
    lanes_ = std::move(lanes);
  }
  int64_t vocab_size() const override { return kStreamVocab; }

 private:
  std::vector<HashedLane> lanes_;
};

/// The same for sources that come and go. It counts what is under way.
class HashedStream : public StreamModel {
 public:
  void enter(std::span<const EnteringSource> sources) override {
    entered_while_others_go_on_ |= !lanes_.empty();
    ++entries_;
    for (const EnteringSource& source : sources) {
      lanes_.push_back({{source.ids.begin(), source.ids.end()}, {}});
      candidates_[lanes_.back().source] = source.candidates;
    }
  }

  kernels::TopClasses step(const std::vector<int64_t>& tokens,
                           const kernels::TopQuery& query) override {
    EXPECT_EQ(tokens.size(), lanes_.size());
    most_lanes_ = std::max(most_lanes_, lanes_.size());
    std::vector<at::Tensor> rows;
    for (size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i].written.push_back(tokens[i]);
      rows.push_back(among(hashed_log_probs(lanes_[i].source, lanes_[i].written),
                           candidates_.at(lanes_[i].source)));
      if (lanes_[i].source == no_number_ && lanes_[i].written.size() == 2) {
        rows.back().fill_(std::numeric_limits<float>::quiet_NaN());
      }
    }
    at::Tensor all = at::stack(rows);
    return kernels::top_of_logits(all, query);
  }

  void reorder(const std::vector<int64_t>& parents) override {
    std::vector<HashedLane> lanes;
    for (const int64_t parent : parents) lanes.push_back(lanes_.at(static_cast<size_t>(parent)));
    lanes_ = std::move(lanes);
  }
  int64_t vocab_size() const override { return kStreamVocab; }

  bool entered_while_others_go_on_ = false;
  int64_t entries_ = 0;
  size_t most_lanes_ = 0;
  std::vector<int64_t> no_number_;  ///< the source whose second step is NaN

 private:
  static at::Tensor among(const at::Tensor& row, const std::vector<int64_t>& ids) {
    if (ids.empty()) return row;
    at::Tensor kept = at::full_like(row, -std::numeric_limits<float>::infinity());
    for (const int64_t id : ids) kept[id].copy_(row[id]);
    return kept;
  }

  std::vector<HashedLane> lanes_;
  std::map<std::vector<int64_t>, std::vector<int64_t>> candidates_;
};

/// Sources in their order, with their outputs.
class ListedSources : public StreamQueue {
 public:
  ListedSources(std::vector<std::vector<int64_t>> sources,
                std::vector<std::vector<int64_t>> prefixes,
                std::vector<std::vector<int64_t>> candidates, int64_t lanes)
      : sources_(std::move(sources)),
        prefixes_(std::move(prefixes)),
        candidates_(std::move(candidates)),
        lanes_(lanes),
        found_(sources_.size()),
        times_(sources_.size(), 0) {}

  std::optional<StreamSource> next(int64_t most) override {
    if (next_ == sources_.size()) return std::nullopt;
    const auto& ids = sources_[next_];
    if (most >= 0 && std::ssize(ids) * lanes_ > most) return std::nullopt;
    StreamSource source;
    source.number = next_;
    source.ids = ids;
    if (!prefixes_.empty()) source.prefix = prefixes_[next_];
    if (!candidates_.empty()) source.candidates = candidates_[next_];
    ++next_;
    return source;
  }
  void done(size_t number, std::vector<Hypothesis> found) override {
    ++times_.at(number);
    found_.at(number) = std::move(found);
  }
  const std::vector<std::vector<Hypothesis>>& found() const {
    for (const int times : times_) EXPECT_EQ(times, 1) << "each source is done once";
    return found_;
  }

 private:
  std::vector<std::vector<int64_t>> sources_, prefixes_, candidates_;
  int64_t lanes_;
  std::vector<std::vector<Hypothesis>> found_;
  std::vector<int> times_;
  size_t next_ = 0;
};

std::vector<std::vector<int64_t>> some_sources() {
  std::vector<std::vector<int64_t>> sources;
  for (int64_t i = 0; i < 17; ++i) {
    std::vector<int64_t> ids;
    for (int64_t k = 0; k < 1 + (7 * i) % 5; ++k) ids.push_back(4 + (i + k) % 6);
    ids.push_back(kStreamEos);
    ids.front() = 20 + i;  // no two are alike
    sources.push_back(ids);
  }
  return sources;
}

void expect_same_outputs(const std::vector<std::vector<Hypothesis>>& found,
                         const std::vector<std::vector<Hypothesis>>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].size(), expected[i].size()) << "source " << i;
    for (size_t k = 0; k < found[i].size(); ++k) {
      EXPECT_EQ(found[i][k].ids, expected[i][k].ids) << "source " << i << ", rank " << k;
      EXPECT_NEAR(found[i][k].score, expected[i][k].score, 1e-4);
      EXPECT_EQ(found[i][k].length, expected[i][k].length);
      EXPECT_EQ(found[i][k].token_log_probs.size(), expected[i][k].token_log_probs.size());
    }
  }
}

struct StreamCase {
  std::string name;
  DecodeOptions options;
  std::vector<std::vector<int64_t>> prefixes = {};
  int64_t max_length = std::numeric_limits<int64_t>::max();
};

DecodeOptions stream_options(int64_t beam_size) {
  DecodeOptions options;
  options.beam_size = options.nbest = beam_size;
  options.max_len_a = 1.5;
  options.max_len_b = 4;
  return options;
}

std::vector<StreamCase> stream_cases() {
  std::vector<StreamCase> cases;
  for (const int64_t beam_size : {1, 2, 5, 30}) {
    cases.push_back({"beam of " + std::to_string(beam_size), stream_options(beam_size)});
  }
  cases.push_back({"shortest output", stream_options(3)});
  cases.back().options.min_len = 4;
  cases.push_back({"n-grams", stream_options(4)});
  cases.back().options.no_repeat_ngram = 1;
  cases.push_back({"gnmt", stream_options(4)});
  cases.back().options.length_penalty_type = "gnmt";
  cases.back().options.nbest = 2;
  cases.push_back({"bound of positions", stream_options(3)});
  cases.back().max_length = 3;
  cases.push_back({"prefixes", stream_options(3)});
  for (size_t i = 0; i < some_sources().size(); ++i) {
    cases.back().prefixes.emplace_back(i % 4, 4 + static_cast<int64_t>(i % 5));
  }
  cases.push_back({"a forbidden prefix", stream_options(3)});
  cases.back().prefixes.assign(some_sources().size(), {5, kStreamBos});
  return cases;
}

std::vector<std::vector<Hypothesis>> streamed(HashedStream& model, const StreamCase& one,
                                              int64_t max_cost,
                                              std::vector<std::vector<int64_t>> candidates = {}) {
  ListedSources queue(some_sources(), one.prefixes, std::move(candidates), one.options.beam_size);
  stream_search(model, queue,
                {.max_length = one.max_length,
                 .pad = 0,
                 .bos = kStreamBos,
                 .eos = kStreamEos,
                 .max_cost = max_cost},
                one.options);
  return queue.found();
}

SearchInput plain_input(const StreamCase& one) {
  SearchInput input{.src_lengths = {},
                    .sentence_ids = {},
                    .prefixes = one.prefixes,
                    .max_length = one.max_length,
                    .pad = 0,
                    .bos = kStreamBos,
                    .eos = kStreamEos};
  for (const auto& source : some_sources()) input.src_lengths.push_back(std::ssize(source));
  return input;
}

TEST(StreamSearch, FindsWhatPlainSearchFindsHoweverManyAreUnderWay) {
  for (const StreamCase& one : stream_cases()) {
    HashedSteps plain(some_sources(), one.options.beam_size);
    const auto expected = search(plain, plain_input(one), one.options);
    for (const int64_t max_cost : {int64_t{1}, 10 * one.options.beam_size, int64_t{100000}}) {
      SCOPED_TRACE(one.name + ", " + std::to_string(max_cost));
      HashedStream model;
      expect_same_outputs(streamed(model, one, max_cost), expected);
    }
  }
}

TEST(StreamSearch, SourcesEnterWhileOthersGoOnAndKeepWithinTheBound) {
  const StreamCase one{"beam of 2", stream_options(2)};
  HashedStream model;
  streamed(model, one, 24);  // about four sources of three tokens
  EXPECT_TRUE(model.entered_while_others_go_on_);
  EXPECT_GT(model.entries_, 3);
  EXPECT_LE(model.most_lanes_, 24U / 2) << "a source has two tokens at least";
}

TEST(StreamSearch, WhenAllFitTheyEnterTogetherWithOneLaneEach) {
  const StreamCase one{"beam of 3", stream_options(3)};
  HashedStream model;
  streamed(model, one, 100000);
  EXPECT_EQ(model.entries_, 1);
  EXPECT_LE(model.most_lanes_, 3 * some_sources().size());
}

TEST(StreamSearch, GivesUpASourceOfNanAndNoOther) {
  const StreamCase one{"beam of 2", stream_options(2)};
  HashedStream whole, broken;
  const auto expected = streamed(whole, one, 30);
  broken.no_number_ = some_sources()[5];
  const auto found = streamed(broken, one, 30);
  for (size_t i = 0; i < found.size(); ++i) {
    if (i == 5) {
      ASSERT_EQ(found[i].size(), 1U);
      EXPECT_TRUE(std::isnan(found[i].front().score));
      EXPECT_TRUE(found[i].front().ids.empty());
    } else {
      ASSERT_EQ(found[i].size(), expected[i].size());
      EXPECT_EQ(found[i].front().ids, expected[i].front().ids) << i;
    }
  }
}

TEST(StreamSearch, WithShortlistsFindsWhatPlainSearchFindsWithThem) {
  std::vector<std::vector<int64_t>> candidates;
  for (size_t i = 0; i < some_sources().size(); ++i) {
    candidates.push_back(i % 3 == 2
                             ? std::vector<int64_t>{}
                             : std::vector<int64_t>{3, 4, 6 + static_cast<int64_t>(i % 2), 9});
  }
  for (const StreamCase& one : stream_cases()) {
    SCOPED_TRACE(one.name);
    auto with_prefixes = candidates;  // as stream_search() adds them
    for (size_t i = 0; i < one.prefixes.size() && !one.prefixes.empty(); ++i) {
      auto& ids = with_prefixes[i];
      if (ids.empty()) continue;
      ids.insert(ids.end(), one.prefixes[i].begin(), one.prefixes[i].end());
      std::ranges::sort(ids);
      ids.erase(std::ranges::unique(ids).begin(), ids.end());
    }
    const auto plain =
        with_shortlists(std::make_unique<HashedSteps>(some_sources(), one.options.beam_size),
                        with_prefixes, one.options.beam_size);
    const auto expected = search(*plain, plain_input(one), one.options);
    HashedStream model;
    expect_same_outputs(streamed(model, one, 40, candidates), expected);
  }
}

TEST(StreamSearch, IsForBeamsWithoutPenaltiesOfRepetition) {
  DecodeOptions options;
  EXPECT_TRUE(can_stream(options));
  options.method = "sample";
  EXPECT_FALSE(can_stream(options));
  options = {};
  options.repetition_penalty = 1.2;
  EXPECT_FALSE(can_stream(options));
}

}  // namespace
}  // namespace stretto::decoding
