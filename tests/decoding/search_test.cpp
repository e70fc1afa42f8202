#include "decoding/search.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "base/random.h"
#include "decoding/candidates.h"
#include "decoding/ensemble.h"
#include "decoding/sampling_rules.h"
#include "tests/config/is_read.h"

namespace stretto::decoding {
namespace {

constexpr int64_t kBos = 2, kEos = 3;

/// A made-up language: the logits of the next token are a hash of source and history.
class FakeModel : public StepModel {
 public:
  FakeModel(std::vector<int64_t> names, int64_t lanes_per_src, int64_t vocab) : vocab_(vocab) {
    for (const int64_t name : names) {
      for (int64_t k = 0; k < lanes_per_src; ++k) lanes_.push_back({name, {}});
    }
  }

  static at::Tensor next(int64_t name, const std::vector<int64_t>& history, int64_t vocab) {
    uint64_t key = mix64(77, static_cast<uint64_t>(name));
    for (const int64_t token : history) key = mix64(key, static_cast<uint64_t>(token));
    RandomStream stream(key);
    std::vector<float> logits;
    for (int64_t v = 0; v < vocab; ++v) logits.push_back(static_cast<float>(3 * stream.uniform()));
    return at::log_softmax(at::tensor(logits), 0);
  }

  at::Tensor step(const at::Tensor& tokens) override {
    EXPECT_EQ(tokens.size(0), static_cast<int64_t>(lanes_.size()));
    std::vector<at::Tensor> rows;
    for (size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i].second.push_back(tokens[i].item<int64_t>());
      rows.push_back(next(lanes_[i].first, lanes_[i].second, vocab_));
    }
    return at::stack(rows);
  }

  void reorder(const std::vector<int64_t>& parents) override {
    std::vector<std::pair<int64_t, std::vector<int64_t>>> lanes;
    for (const int64_t parent : parents) lanes.push_back(lanes_.at(parent));
    lanes_ = lanes;
  }

  int64_t vocab_size() const override { return vocab_; }

 private:
  int64_t vocab_;
  std::vector<std::pair<int64_t, std::vector<int64_t>>> lanes_;
};

struct Whole {
  std::vector<int64_t> ids;
  double score;
};

/// Every output of at most `max_len` tokens, best first: what beam search must find.
std::vector<Whole> exhaustive(int64_t name, int64_t vocab, int64_t max_len,
                              const DecodeOptions& options) {
  std::vector<Whole> all;
  std::vector<int64_t> ids;
  const std::function<void(double)> visit = [&](double log_prob) {
    std::vector<int64_t> history{kBos};
    history.insert(history.end(), ids.begin(), ids.end());
    const at::Tensor row = FakeModel::next(name, history, vocab);
    const auto length = static_cast<int64_t>(ids.size());
    if (length >= options.min_len) {
      const double done = log_prob + row[kEos].item<float>();
      all.push_back({ids, length_penalised(done, length + 1, options)});
    }
    if (length == max_len) return;
    for (int64_t token = 1; token < vocab; ++token) {
      if (token == kBos || token == kEos) continue;
      ids.push_back(token);
      visit(log_prob + row[token].item<float>());
      ids.pop_back();
    }
  };
  visit(0);
  std::sort(all.begin(), all.end(),
            [](const Whole& a, const Whole& b) { return a.score > b.score; });
  return all;
}

/// A language of a few sentences: probabilities of the next token by what stands before it.
class TableModel : public StepModel {
 public:
  using Table = std::map<std::vector<int64_t>, std::map<int64_t, double>>;
  TableModel(Table table, int64_t lanes, int64_t vocab)
      : table_(std::move(table)), lanes_(static_cast<size_t>(lanes)), vocab_(vocab) {}

  at::Tensor step(const at::Tensor& tokens) override {
    at::Tensor rows = at::full({tokens.size(0), vocab_}, std::log(1e-9));
    for (int64_t i = 0; i < tokens.size(0); ++i) {
      auto& history = lanes_[static_cast<size_t>(i)];
      if (const int64_t token = tokens[i].item<int64_t>(); token != kBos) history.push_back(token);
      for (const auto& [next, probability] : table_[history]) rows[i][next] = std::log(probability);
    }
    return rows;
  }
  void reorder(const std::vector<int64_t>& parents) override {
    std::vector<std::vector<int64_t>> lanes;
    for (const int64_t parent : parents) lanes.push_back(lanes_.at(static_cast<size_t>(parent)));
    lanes_ = lanes;
  }
  int64_t vocab_size() const override { return vocab_; }

 private:
  Table table_;
  std::vector<std::vector<int64_t>> lanes_;
  int64_t vocab_;
};

DecodeOptions bounded(int64_t beam_size, int64_t max_len) {
  DecodeOptions options;
  options.beam_size = beam_size;
  options.nbest = beam_size;
  options.max_len_a = 0;
  options.max_len_b = max_len;
  return options;
}

std::vector<std::vector<Hypothesis>> decode(const std::vector<int64_t>& names, int64_t vocab,
                                            const DecodeOptions& options,
                                            std::vector<std::vector<int64_t>> prefixes = {}) {
  FakeModel model(names, options.beam_size, vocab);
  SearchInput input{.src_lengths = std::vector<int64_t>(names.size(), 4),
                    .sentence_ids = names,
                    .prefixes = std::move(prefixes),
                    .pad = 0,
                    .bos = kBos,
                    .eos = kEos};
  return search(model, input, options);
}

void expect_same(const Hypothesis& a, const Hypothesis& b) {
  EXPECT_EQ(a.ids, b.ids);
  EXPECT_DOUBLE_EQ(a.score, b.score);
}

/// The second of two sources gives NaN in the second step, as of weights whose products overflow.
class OverflowingModel : public FakeModel {
 public:
  OverflowingModel(int64_t lanes_per_src, int64_t vocab)
      : FakeModel({5, 6}, lanes_per_src, vocab), lanes_per_src_(lanes_per_src) {}
  at::Tensor step(const at::Tensor& tokens) override {
    at::Tensor rows = FakeModel::step(tokens);
    if (++steps_ == 2) {
      rows.narrow(0, lanes_per_src_, 1).fill_(std::numeric_limits<float>::quiet_NaN());
    }
    return rows;
  }

 private:
  int64_t lanes_per_src_, steps_ = 0;
};

TEST(Search, GivesUpASourceWhoseModelGivesNan) {
  for (const char* method : {"beam", "sample"}) {
    DecodeOptions options = bounded(2, 4);
    options.method = method;
    options.min_len = 3;
    OverflowingModel model(2, 9);
    const SearchInput input{.src_lengths = {4, 4},
                            .sentence_ids = {5, 6},
                            .prefixes = {},
                            .pad = 0,
                            .bos = kBos,
                            .eos = kEos};
    const auto found = search(model, input, options);
    ASSERT_EQ(found.size(), 2U);
    const auto alone = decode({5}, 9, options);
    ASSERT_EQ(found[0].size(), alone[0].size()) << method;
    EXPECT_EQ(found[0][0].ids, alone[0][0].ids) << method << ": the other source goes on";
    ASSERT_EQ(found[1].size(), 1U) << method;
    EXPECT_TRUE(std::isnan(found[1][0].score)) << method;
    EXPECT_TRUE(found[1][0].ids.empty()) << method;
  }
}

TEST(BeamSearch, EqualsExhaustiveSearchWhenTheBeamHoldsAll) {
  for (const char* penalty : {"fairseq", "gnmt", "none"}) {
    DecodeOptions options = bounded(90, 3);
    options.length_penalty_type = penalty;
    options.length_penalty = 0.6;
    for (int64_t name = 0; name < 4; ++name) {
      const auto expected = exhaustive(name, 7, 3, options);
      const auto found = decode({name}, 7, options)[0];
      // 4 tokens besides the specials: 4 + 16 + 64 outputs; all are found, in the same order.
      ASSERT_EQ(expected.size(), 84u);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].ids, expected[i].ids) << "rank " << i;
        EXPECT_NEAR(found[i].score, expected[i].score, 1e-5);
      }
    }
  }
}

std::vector<std::vector<int64_t>> ids_of(const std::vector<Hypothesis>& hypotheses) {
  std::vector<std::vector<int64_t>> ids;
  for (const Hypothesis& hypothesis : hypotheses) ids.push_back(hypothesis.ids);
  return ids;
}

constexpr int64_t kA = 4, kB = 5, kC = 6;
const SearchInput kOneSource{.src_lengths = {4}, .pad = 0, .bos = kBos, .eos = kEos};

TEST(BeamSearch, AnEndThatRanksBelowTheBeamIsNotTaken) {
  // After `a`, the end ranks third among the continuations of a beam of two: `a b` and `a c` go on,
  // and are the only ones that may finish.
  TableModel model({{{}, {{kA, 1}}},
                    {{kA}, {{kB, 0.45}, {kC, 0.35}, {kEos, 0.2}}},
                    {{kA, kB}, {{kEos, 1}}},
                    {{kA, kC}, {{kEos, 1}}}},
                   2, 7);
  DecodeOptions options = bounded(2, 5);
  options.length_penalty_type = "none";
  const auto found = search(model, kOneSource, options)[0];
  EXPECT_EQ(ids_of(found), (std::vector<std::vector<int64_t>>{{kA, kB}, {kA, kC}}));
}

TEST(BeamSearch, NoMoreHypothesesFinishThanTheBeamHolds) {
  // `a` ends first (0.28). In the next step three more end: `b a` (0.26) and `c a` (0.24) fill the
  // beam of three, and `a a` (0.22) comes too late, though its score per token is above that of
  // `a`.
  TableModel model({{{}, {{kA, 0.5}, {kB, 0.26}, {kC, 0.24}}},
                    {{kA}, {{kEos, 0.56}, {kA, 0.44}}},
                    {{kB}, {{kA, 1}}},
                    {{kC}, {{kA, 1}}},
                    {{kA, kA}, {{kEos, 1}}},
                    {{kB, kA}, {{kEos, 1}}},
                    {{kC, kA}, {{kEos, 1}}}},
                   3, 7);
  const auto found = search(model, kOneSource, bounded(3, 5))[0];
  EXPECT_EQ(ids_of(found), (std::vector<std::vector<int64_t>>{{kB, kA}, {kC, kA}, {kA}}));
}

TEST(BeamSearch, SeveralEndsOfOneLaneDoNotPushAnotherLaneOut) {
  // In the second step the first lane has `a` (0.3) and three ends (0.12, 0.09, 0.09); behind them
  // comes `c` (0.08) of the second lane, which ends next.
  constexpr int64_t kEnd = 7, kOther = 8;
  TableModel model({{{}, {{kA, 0.6}, {kB, 0.4}}},
                    {{kA}, {{kA, 0.5}, {kEos, 0.2}, {kEnd, 0.15}, {kOther, 0.15}}},
                    {{kB}, {{kC, 0.2}}},
                    {{kA, kA}, {{kEos, 0.1}}},
                    {{kB, kC}, {{kEos, 0.9}}}},
                   2, 9);
  DecodeOptions options = bounded(2, 5);
  options.length_penalty_type = "none";
  SearchInput input = kOneSource;
  input.ends = {kEnd, kOther};
  EXPECT_EQ(ids_of(search(model, input, options)[0]),
            (std::vector<std::vector<int64_t>>{{kA}, {kB, kC}}));
}

TEST(BeamSearch, BeginsAndEndsWithTheIdsOfItsInput) {
  constexpr int64_t kVocabulary = 8, kLongest = 8;
  const SearchInput input{.src_lengths = {4}, .pad = 6, .bos = 7, .eos = 1};
  for (int64_t name = 0; name < 6; ++name) {
    FakeModel model({name}, 1, kVocabulary);
    const auto found = search(model, input, bounded(1, kLongest))[0];
    ASSERT_EQ(found.size(), 1u);
    std::vector<int64_t> expected, history{input.bos};
    while (static_cast<int64_t>(expected.size()) < kLongest) {
      at::Tensor row = FakeModel::next(name, history, kVocabulary);
      row[input.pad] = row[input.bos] = -1e9;
      if (expected.empty()) row[input.eos] = -1e9;
      const int64_t best = row.argmax().item<int64_t>();
      if (best == input.eos) break;
      expected.push_back(best);
      history.push_back(best);
    }
    EXPECT_EQ(found[0].ids, expected) << name;
  }
}

TEST(BeamSearch, AnEndThatIsTheBeginningTooIsChosen) {
  TableModel model({{{kEos}, {{kA, 1}}}, {{kEos, kA}, {{kEos, 1}}}}, 1, 7);
  const SearchInput input{.src_lengths = {4}, .pad = kEos, .bos = kEos, .eos = kEos};
  const auto found = search(model, input, bounded(1, 5))[0];
  EXPECT_EQ(ids_of(found), (std::vector<std::vector<int64_t>>{{kA}}));
  EXPECT_NEAR(found[0].log_prob, 0, 1e-6);
}

TEST(BeamSearch, RefusesAnInputWithoutBeginningOrEnd) {
  FakeModel model({0}, 1, 8);
  EXPECT_THROW(search(model, {.src_lengths = {4}}, bounded(1, 5)), c10::Error);
  EXPECT_THROW(search(model, {.src_lengths = {4}, .bos = kBos}, bounded(1, 5)), c10::Error);
}

TEST(BeamSearch, OneLaneIsGreedy) {
  const auto found = decode({5}, 20, bounded(1, 8))[0];
  ASSERT_EQ(found.size(), 1u);
  std::vector<int64_t> history{kBos};
  for (size_t step = 0; step <= found[0].ids.size(); ++step) {
    at::Tensor row = FakeModel::next(5, history, 20);
    row[0] = row[kBos] = -1e9;
    if (step == 0) row[kEos] = -1e9;
    const int64_t best = step == 8 ? kEos : row.argmax().item<int64_t>();
    EXPECT_EQ(best, step < found[0].ids.size() ? found[0].ids[step] : kEos);
    history.push_back(best);
  }
}

TEST(BeamSearch, BatchedResultsEqualOneByOneResults) {
  const DecodeOptions options = bounded(4, 12);
  const std::vector<int64_t> names{0, 1, 2, 3, 4, 5, 6, 7};
  const auto together = decode(names, 30, options);
  for (const int64_t name : names) {
    const auto alone = decode({name}, 30, options)[0];
    ASSERT_EQ(together[name].size(), alone.size());
    for (size_t i = 0; i < alone.size(); ++i) expect_same(together[name][i], alone[i]);
  }
}

TEST(BeamSearch, NBestIsSortedDistinctAndItsScoresAddUp) {
  DecodeOptions options = bounded(6, 10);
  options.nbest = 4;
  const auto found = decode({3}, 25, options)[0];
  ASSERT_EQ(found.size(), 4u);
  for (size_t i = 0; i < found.size(); ++i) {
    double sum = 0;
    for (const float token : found[i].token_log_probs) sum += token;
    EXPECT_NEAR(sum, found[i].log_prob, 1e-5);
    EXPECT_EQ(found[i].length, static_cast<int64_t>(found[i].ids.size()) + 1);
    EXPECT_EQ(found[i].token_log_probs.size(), found[i].ids.size() + 1);
    EXPECT_NEAR(found[i].score, found[i].log_prob / double(found[i].length), 1e-9);
    if (i == 0) continue;
    EXPECT_GE(found[i - 1].score, found[i].score);
    EXPECT_NE(found[i - 1].ids, found[i].ids);
  }
}

TEST(BeamSearch, LengthStaysBetweenItsBounds) {
  DecodeOptions options = bounded(5, 6);
  options.min_len = 4;
  for (const auto& hypotheses : decode({0, 1, 2, 3}, 9, options)) {
    for (const Hypothesis& hypothesis : hypotheses) {
      EXPECT_GE(hypothesis.ids.size(), 4u);
      EXPECT_LE(hypothesis.ids.size(), 6u);
    }
  }
}

// A model of seven positions reads the beginning and six tokens, whatever the options allow.
TEST(BeamSearch, NeverAsksTheModelForMorePositionsThanItHas) {
  for (const char* method : {"beam", "sample"}) {
    TableModel model({{{}, {{kA, 1}}}}, 2, 7);
    const SearchInput input{.src_lengths = {4}, .max_length = 7, .bos = kBos, .eos = kEos};
    DecodeOptions options = bounded(2, 50);
    options.min_len = 50;
    options.method = method;
    const auto found = search(model, input, options)[0];
    ASSERT_FALSE(found.empty()) << method;
    EXPECT_EQ(found[0].ids.size(), 6u) << method;
  }
}

TEST(BeamSearch, AnOutputOfExactlyMinLenTokensMayEndWhateverElseIsForbidden) {
  for (const int64_t no_repeat_ngram : {0, 2}) {
    TableModel model({{{}, {{kEos, 0.9}, {kA, 0.1}}},
                      {{kA}, {{kEos, 0.9}, {kB, 0.1}}},
                      {{kA, kB}, {{kEos, 0.9}, {kC, 0.1}}},
                      {{kA, kB, kC}, {{kEos, 1}}}},
                     1, 7);
    DecodeOptions options = bounded(1, 5);
    options.min_len = 2;
    options.no_repeat_ngram = no_repeat_ngram;
    const auto found = search(model, kOneSource, options)[0];
    EXPECT_EQ(ids_of(found), (std::vector<std::vector<int64_t>>{{kA, kB}})) << no_repeat_ngram;
  }
}

TEST(BeamSearch, KeepsForcedPrefixesOfEachSentence) {
  const std::vector<std::vector<int64_t>> prefixes{{7, 5, 8}, {}, {4}};
  const auto found = decode({0, 1, 2}, 12, bounded(3, 9), prefixes);
  for (size_t i = 0; i < prefixes.size(); ++i) {
    ASSERT_FALSE(found[i].empty());
    for (const Hypothesis& hypothesis : found[i]) {
      ASSERT_GE(hypothesis.ids.size(), prefixes[i].size());
      EXPECT_TRUE(std::equal(prefixes[i].begin(), prefixes[i].end(), hypothesis.ids.begin()));
    }
  }
  expect_same(found[1][0], decode({1}, 12, bounded(3, 9))[0][0]);
}

bool repeats(const std::vector<int64_t>& ids, int64_t order) {
  std::map<std::vector<int64_t>, int> seen;
  for (int64_t i = 0; i + order <= static_cast<int64_t>(ids.size()); ++i) {
    if (++seen[{ids.begin() + i, ids.begin() + i + order}] > 1) return true;
  }
  return false;
}

TEST(BeamSearch, NeverRepeatsAnNgramWhenForbidden) {
  DecodeOptions options = bounded(4, 30);
  options.min_len = 25;
  bool would_repeat = false;
  for (const auto& found : decode({0, 1, 2, 3}, 9, options))
    would_repeat |= repeats(found[0].ids, 2);
  EXPECT_TRUE(would_repeat);
  options.no_repeat_ngram = 2;
  options.max_len_b = 12;
  options.min_len = 10;
  for (const auto& hypotheses : decode({0, 1, 2, 3}, 9, options)) {
    for (const Hypothesis& hypothesis : hypotheses) EXPECT_FALSE(repeats(hypothesis.ids, 2));
  }
}

TEST(LengthPenalty, HasTheValuesComputedByHand) {
  DecodeOptions options;
  options.length_penalty = 0.5;
  EXPECT_NEAR(length_penalised(-6, 4, options), -3.0, 1e-12);
  options.length_penalty_type = "gnmt";
  EXPECT_NEAR(length_penalised(-6, 19, options), -3.0, 1e-12);  // (24 / 6)^0.5 = 2
  options.length_penalty_type = "none";
  EXPECT_EQ(length_penalised(-6, 4, options), -6.0);
}

TEST(RepeatedNgramEnds, NamesWhatWouldCompleteOne) {
  const std::vector<int64_t> history{5, 6, 7, 5, 6};
  EXPECT_EQ(repeated_ngram_ends(history, 3), std::vector<int64_t>{7});
  EXPECT_EQ(repeated_ngram_ends(history, 1), history);
  EXPECT_TRUE(repeated_ngram_ends(history, 4).empty());
  EXPECT_TRUE(repeated_ngram_ends(history, 0).empty());
}

TEST(Likeliest, EqualsASort) {
  const at::Tensor rows = at::log_softmax(torch::randn({7, 500}), 1);
  const auto found = likeliest(rows, 10);
  const auto [values, tokens] = rows.topk(10, 1);
  for (int64_t lane = 0; lane < 7; ++lane) {
    for (int64_t i = 0; i < 10; ++i) {
      EXPECT_EQ(found[lane][i].token, tokens[lane][i].item<int64_t>());
    }
  }
}

TEST(Sampling, FollowsTheDistribution) {
  const std::vector<float> row{std::log(0.5f), std::log(0.3f), std::log(0.2f)};
  DecodeOptions options;
  RandomStream stream(9);
  const auto frequencies = [&](const DecodeOptions& o) {
    std::vector<double> counts(3, 0);
    for (int i = 0; i < 40000; ++i)
      counts[draw(row, stream.uniform(), sampling_rules(o))] += 1.0 / 40000;
    return counts;
  };
  const auto plain = frequencies(options);
  EXPECT_NEAR(plain[0], 0.5, 0.01);
  EXPECT_NEAR(plain[1], 0.3, 0.01);
  options.top_k = 2;
  EXPECT_NEAR(frequencies(options)[0], 0.5 / 0.8, 0.01);
  EXPECT_EQ(frequencies(options)[2], 0);
  options.top_k = 0;
  options.top_p = 0.45;
  EXPECT_NEAR(frequencies(options)[0], 1.0, 1e-9);
  options.top_p = 1;
  options.temperature = 0.5;  // squares: 25 : 9 : 4
  EXPECT_NEAR(frequencies(options)[0], 25.0 / 38, 0.01);
}

TEST(Sampling, TopPKeepsTheShortestListThatReachesIt) {
  // Four equal tokens: two of them have exactly half of the mass, and a third is not asked for.
  const std::vector<float> row(4, std::log(0.25f));
  DecodeOptions options;
  options.top_p = 0.5;
  for (const double uniform : {0.0, 0.3, 0.49, 0.51, 0.7, 0.999}) {
    EXPECT_EQ(draw(row, uniform, sampling_rules(options)), uniform < 0.5 ? 0 : 1) << uniform;
  }
}

TEST(Sampling, IsReproducibleAndIndependentOfTheBatch) {
  DecodeOptions options = bounded(3, 15);
  options.method = "sample";
  const auto together = decode({10, 11, 12}, 40, options);
  for (int64_t i = 0; i < 3; ++i) {
    const auto alone = decode({10 + i}, 40, options)[0];
    ASSERT_EQ(together[i].size(), 3u);
    for (size_t k = 0; k < alone.size(); ++k) expect_same(together[i][k], alone[k]);
  }
  options.seed = 2;
  EXPECT_NE(decode({10}, 40, options)[0][0].ids, together[0][0].ids);
}

// What `read_with` says behind a key's declaration is held against what is found.
TEST(Decoding, ReadsTheKeysThatSaySo) {
  using O = DecodeOptions;
  const std::map<std::string, std::function<void(O&)>> changes{
      {"temperature", [](O& o) { o.temperature = 0.1; }},
      {"top_k", [](O& o) { o.top_k = 1; }},
      {"top_p", [](O& o) { o.top_p = 0.1; }},
      {"min_p", [](O& o) { o.min_p = 0.9; }},
      {"seed", [](O& o) { o.seed = 9; }},
      {"length_penalty", [](O& o) { o.length_penalty = 3; }},
      {"beam_size", [](O& o) { o.beam_size = 2; }},
      {"nbest", [](O& o) { o.nbest = 1; }},
  };
  const auto found = [](const O& options) {
    std::vector<std::pair<std::vector<int64_t>, double>> all;
    const auto outputs = decode({10}, 40, options);
    for (const Hypothesis& hypothesis : outputs[0]) {
      all.emplace_back(hypothesis.ids, hypothesis.score);
    }
    return all;
  };
  for (const char* method : {"beam", "sample"}) {
    for (const char* penalty : {"fairseq", "gnmt", "none"}) {
      O options = bounded(4, 15);
      options.method = method;
      options.length_penalty_type = penalty;
      const auto before = found(options);
      for (const auto& [key, apply] : changes) {
        O changed = options;
        apply(changed);
        EXPECT_EQ(found(changed) != before, stretto::testing::is_read(key, options))
            << key << " of " << method << " with " << penalty;
      }
    }
  }
}

TEST(Ensemble, OfOneModelTwiceIsTheModel) {
  std::vector<std::unique_ptr<StepModel>> members;
  for (int i = 0; i < 2; ++i) {
    members.push_back(std::make_unique<FakeModel>(std::vector<int64_t>{4}, 3, 20));
  }
  EnsembleStepModel both(std::move(members));
  const auto twice = search(both, kOneSource, bounded(3, 9))[0];
  const auto once = decode({4}, 20, bounded(3, 9))[0];
  ASSERT_EQ(twice.size(), once.size());
  for (size_t i = 0; i < once.size(); ++i) {
    EXPECT_EQ(twice[i].ids, once[i].ids);
    EXPECT_NEAR(twice[i].score, once[i].score, 1e-5);
  }
}

TEST(Ensemble, AveragesProbabilities) {
  std::vector<std::unique_ptr<StepModel>> members;
  members.push_back(std::make_unique<FakeModel>(std::vector<int64_t>{4}, 1, 20));
  members.push_back(std::make_unique<FakeModel>(std::vector<int64_t>{5}, 1, 20));
  EnsembleStepModel both(std::move(members));
  const at::Tensor mean =
      (FakeModel::next(4, {kBos}, 20).exp() + FakeModel::next(5, {kBos}, 20).exp()) / 2;
  EXPECT_TRUE(at::allclose(both.step(at::tensor({kBos})).exp()[0], mean, 1e-5, 1e-6));
}

}  // namespace
}  // namespace stretto::decoding
