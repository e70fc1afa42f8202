#include <algorithm>
#include <map>
#include <set>

#include "data/batch_walk.h"
#include "data/pairs/pair_columns.h"
#include "tests/data/pairs/corpus_fixture.h"
#include "text/subword_sampling.h"

namespace stretto::data {
namespace {

class Batches : public CorpusFixture {
 protected:
  using Order = std::vector<std::vector<int64_t>>;
  static Order order(const BatchSource& source, int64_t epoch) {
    Order ids;
    for (int64_t i = 0; i < source.num_batches(); ++i) {
      ids.push_back(source.load(epoch, i).sample_ids);
    }
    return ids;
  }
  static std::vector<int64_t> flat_sorted(const Order& order) {
    std::vector<int64_t> all;
    for (const auto& batch : order) all.insert(all.end(), batch.begin(), batch.end());
    std::sort(all.begin(), all.end());
    return all;
  }
  static std::vector<int64_t> up_to(int64_t n) {
    std::vector<int64_t> all(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) all[static_cast<size_t>(i)] = i;
    return all;
  }
};

TEST_F(Batches, HoldEveryPairOnceInEveryEpoch) {
  DataOptions o = options(5000);
  o.train_weights = {1.5};
  const auto corpus = open(o);
  const auto source = make_train_batches(corpus, o, 11);
  for (const int64_t epoch : {0, 1, 2, 1000}) {
    EXPECT_EQ(flat_sorted(order(*source, epoch)), up_to(corpus->num_pairs()));
  }
}

TEST_F(Batches, HoldTheTokensOfTheirPairs) {
  const DataOptions o = options(800);
  const auto corpus = open(o);
  const auto source = make_train_batches(corpus, o, 11);
  for (int64_t i = 0; i < source->num_batches(); ++i) {
    const Batch batch = source->load(3, i);
    ASSERT_EQ(data::source(batch).num_sequences(), batch.num_sequences());
    ASSERT_EQ(data::target(batch).num_sequences(), batch.num_sequences());
    for (int64_t k = 0; k < batch.num_sequences(); ++k) {
      const auto slice = [k](const PackedTokens& side) {
        return std::vector<int64_t>(side.values.begin() + side.offsets[k],
                                    side.values.begin() + side.offsets[k + 1]);
      };
      EXPECT_EQ(slice(data::source(batch)), corpus->src(batch.sample_ids[k]));
      EXPECT_EQ(slice(data::target(batch)), corpus->tgt(batch.sample_ids[k]));
    }
  }
}

TEST_F(Batches, NeverExceedTheirBoundsAndFillThem) {
  DataOptions o = options(5000);
  for (const int64_t max_tokens : {13, 64, 300}) {
    o.max_tokens = max_tokens;
    const auto source = make_train_batches(open(o), o, 1);
    int64_t tokens = 0;
    for (int64_t i = 0; i < source->num_batches(); ++i) {
      const Batch batch = source->load(0, i);
      const int64_t most = std::max(data::source(batch).num_rows(), data::target(batch).num_rows());
      EXPECT_LE(most, max_tokens);
      EXPECT_GE(batch.num_sequences(), 1);
      tokens += most;
    }
    if (max_tokens == 300) {
      EXPECT_GT(tokens, source->num_batches() * 270);  // nine tenths full
    }
  }
}

// Ten pairs of two tokens a side and three of four, end-of-sentence included: from short to long.
TEST_F(Batches, AreBoundedBySamplesAsWellAsByTokens) {
  std::string lines;
  for (int i = 0; i < 10; ++i) lines += "w1\n";
  for (int i = 0; i < 3; ++i) lines += "w1 w2 w3\n";
  DataOptions o = options(1);
  o.train_src = {write("table.src", lines)};
  o.train_tgt = {write("table.tgt", lines)};
  const auto corpus = open(o);
  struct Row {
    int64_t max_tokens, max_samples;
    std::vector<size_t> sizes;
  };
  for (const Row& row :
       {Row{64, 0, {13}}, Row{64, 100, {13}}, Row{64, 13, {13}}, Row{64, 12, {12, 1}},
        Row{64, 4, {4, 4, 4, 1}}, Row{64, 5, {5, 5, 3}}, Row{64, 1, std::vector<size_t>(13, 1)},
        Row{6, 0, {3, 3, 3, 2, 1, 1}},  // 2 + 2 + 2; 2 + 4; 4; 4
        Row{6, 4, {3, 3, 3, 2, 1, 1}},  // the tokens are the closer bound
        Row{6, 2, {2, 2, 2, 2, 2, 1, 1, 1}}, Row{12, 4, {4, 4, 4, 1}}}) {  // 2 + 2 + 4 + 4 = 12
    const auto sizes_of = [](const BatchSource& source) {
      std::vector<size_t> sizes;
      for (const auto& batch : order(source, 0)) sizes.push_back(batch.size());
      return sizes;
    };
    SCOPED_TRACE(std::to_string(row.max_tokens) + ", " + std::to_string(row.max_samples));
    EXPECT_EQ(sizes_of(*make_eval_batches(corpus, row.max_tokens, row.max_samples)), row.sizes);
    // Training has the same batches in another order.
    o.max_tokens = row.max_tokens;
    o.max_samples = row.max_samples;
    auto sorted = row.sizes, trained = sizes_of(*make_train_batches(corpus, o, 7));
    std::sort(sorted.begin(), sorted.end());
    std::sort(trained.begin(), trained.end());
    EXPECT_EQ(trained, sorted);
  }
}

TEST_F(Batches, OfFewSamplesAreSharedByProcessesSoThatEachSampleIsSeenOnce) {
  DataOptions o = options(300);
  o.max_samples = 3;
  const auto corpus = open(o);
  const auto source = make_train_batches(corpus, o, 42);
  for (const int64_t size : {1, 2, 3}) {
    std::vector<int64_t> seen;
    for (int64_t rank = 0; rank < size; ++rank) {
      const RankBatches share{.update_freq = 4, .rank = rank, .size = size};
      const BatchWalk walk(*source, {}, share);
      for (int64_t i = 0; i < share.of_epoch(source->num_batches()); ++i) {
        const Batch batch = walk.load(i);
        EXPECT_LE(batch.num_sequences(), 3);
        seen.insert(seen.end(), batch.sample_ids.begin(), batch.sample_ids.end());
      }
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen, up_to(corpus->num_pairs())) << size << " processes";
  }
}

// The tokens of a corpus do not depend on how they are cut.
TEST_F(Batches, OfAnotherBoundComeFromTheSameCache) {
  DataOptions o = options(300);
  const auto all = open(o);
  o.max_samples = 3;
  const auto few = open(o);
  EXPECT_TRUE(few->from_cache());
  EXPECT_EQ(few->cache_path(), all->cache_path());
}

TEST_F(Batches, AreAPureFunctionOfSeedEpochAndIndex) {
  DataOptions o = options(3000);
  const auto one = make_train_batches(open(o, Split::kTrain, 1), o, 5);
  o.cache_dir = (folder_ / "elsewhere").string();
  const auto two = make_train_batches(open(o, Split::kTrain, 4), o, 5);
  EXPECT_EQ(order(*one, 2), order(*two, 2));
  EXPECT_EQ(one->load(9, 17).sample_ids, order(*two, 9)[17]);  // no need to walk there
  EXPECT_NE(order(*one, 0), order(*one, 1));
  EXPECT_NE(order(*one, 0), order(*make_train_batches(open(o), o, 6), 0));
}

TEST_F(Batches, MixPairsOfEqualLengthsAnewInEachEpoch) {
  const DataOptions o = options(5000);
  const auto source = make_train_batches(open(o), o, 5);
  const auto as_sets = [&](int64_t epoch) {
    std::set<std::set<int64_t>> sets;
    for (const auto& batch : order(*source, epoch)) sets.emplace(batch.begin(), batch.end());
    return sets;
  };
  EXPECT_NE(as_sets(0), as_sets(1));  // not the same batches in another order
}

TEST_F(Batches, StayInOrderForEvaluation) {
  const DataOptions o = options(1000);
  const auto corpus = open(o);
  const auto source = make_eval_batches(corpus, 40);
  const Order first = order(*source, 0);
  EXPECT_EQ(first, order(*source, 5));
  EXPECT_EQ(flat_sorted(first), up_to(1000));
  std::pair<size_t, size_t> last{0, 0};
  for (const auto& batch : first) {
    for (const int64_t sample : batch) {
      const std::pair shape{corpus->tgt(sample).size(), corpus->src(sample).size()};
      EXPECT_LE(last, shape);
      last = shape;
    }
  }
}

TEST_F(Batches, TakeAnOverlongPairAloneInEvaluationAndRefuseItInTraining) {
  DataOptions o = options(200);
  const auto corpus = open(o);
  const auto source = make_eval_batches(corpus, 3);
  EXPECT_EQ(flat_sorted(order(*source, 0)), up_to(200));
  o.max_tokens = 3;
  EXPECT_TRUE(contains(failure(ExitCode::kUsage, [&] { make_train_batches(corpus, o, 1); }),
                       "data.max_tokens = 3"));
}

TEST_F(Batches, OfOnePairWork) {
  const DataOptions o = options(1);
  const auto source = make_train_batches(open(o), o, 1);
  ASSERT_EQ(source->num_batches(), 1);
  EXPECT_EQ(source->load(4, 0).sample_ids, std::vector<int64_t>{0});
  EXPECT_THROW(source->load(0, 1), std::out_of_range);
  EXPECT_THROW(source->load(0, -1), std::out_of_range);
}

// The order is a promise to every run that was ever started: when this table has to change, runs
// can no longer be resumed or repeated, and the format version of checkpoints has to say so.
TEST_F(Batches, KeepTheOrderThatTheyHaveAlwaysHad) {
  DataOptions o = options(300);
  o.max_tokens = 24;
  const auto source = make_train_batches(open(o), o, 42);
  const std::map<std::pair<int64_t, int64_t>, std::vector<int64_t>> golden{
      {{0, 0}, {184, 148, 166}}, {{0, 1}, {146}},      {{0, 2}, {243}},
      {{0, 3}, {212, 36}},       {{0, 4}, {264, 292}}, {{1, 0}, {262, 29}},
      {{1, 1}, {7, 187}},        {{1, 2}, {141, 132}}, {{1, 3}, {96, 95, 294, 279, 186}},
      {{1, 4}, {119}},
  };
  for (const auto& [place, ids] : golden) {
    EXPECT_EQ(source->load(place.first, place.second).sample_ids, ids)
        << "epoch " << place.first << ", batch " << place.second;
  }
}

/// The words w0, w1 and w2 as the pieces a, b and ab; all other words are no ordinary pieces.
std::shared_ptr<const text::SubwordSampler> sampler_of_three(double strength) {
  using Model = text::SubwordModel;
  const Model model{.kind = Model::Kind::kUnigram,
                    .pieces = {{"a", -1, 4}, {"b", -1, 5}, {"ab", -2, 6}}};
  return std::make_shared<text::SubwordSampler>(model, strength);
}

/// Ids with every ab as a b: what a segmentation spells.
std::vector<int64_t> spelled(std::vector<int64_t> ids) {
  std::vector<int64_t> all;
  for (const int64_t id : ids) {
    if (id == 6) {
      all.insert(all.end(), {4, 5});
    } else {
      all.push_back(id);
    }
  }
  return all;
}

std::vector<int64_t> sequence(const PackedTokens& side, size_t k) {
  return {side.values.begin() + side.offsets[k], side.values.begin() + side.offsets[k + 1]};
}

TEST_F(Batches, DrawSegmentationsAnewInEachEpochAsAFunctionOfTheSample) {
  const DataOptions o = options(2000);
  const auto corpus = open(o);
  const auto plain = make_train_batches(corpus, o, 5);
  const SubwordSamplers samplers{.src = sampler_of_three(1), .tgt = nullptr};
  const auto source = make_train_batches(corpus, o, 5, samplers);
  ASSERT_EQ(source->num_batches(), plain->num_batches());
  std::map<int64_t, std::vector<int64_t>> first;  // of each sample, in epoch 0
  int64_t longer = 0, otherwise = 0;
  for (const int64_t epoch : {0, 1}) {
    for (int64_t i = 0; i < source->num_batches(); ++i) {
      const Batch batch = source->load(epoch, i), again = source->load(epoch, i);
      EXPECT_EQ(data::source(batch).values, data::source(again).values);
      EXPECT_EQ(data::target(batch).values, data::target(plain->load(epoch, i)).values)
          << "of the other side nothing is drawn";
      EXPECT_EQ(batch.sample_ids, plain->sample_ids(epoch, i));
      EXPECT_EQ(data::source(batch).offsets.back(),
                static_cast<int32_t>(data::source(batch).values.size()));
      EXPECT_LE(data::source(batch).num_rows(), 2 * o.max_tokens);
      for (size_t k = 0; k < batch.sample_ids.size(); ++k) {
        const auto drawn = sequence(data::source(batch), k), own = corpus->src(batch.sample_ids[k]);
        EXPECT_EQ(spelled(drawn), spelled(own));
        longer += drawn.size() > own.size();
        if (epoch == 0) first[batch.sample_ids[k]] = drawn;
        otherwise += epoch == 1 && first.at(batch.sample_ids[k]) != drawn;
      }
    }
  }
  EXPECT_GT(longer, 100);
  EXPECT_GT(otherwise, 100);
}

TEST_F(Batches, KeepTheirOwnSegmentationWhereNoDrawIsShortEnough) {
  DataOptions o = options(1);
  o.train_src = {write("ab.src", "w2 w2\nw3\n")};
  o.train_tgt = {write("ab.tgt", "w2 w2\nw3\n")};
  o.max_src_tokens = 3;
  const auto corpus = open(o);
  const auto only_apart = std::make_shared<text::SubwordSampler>(
      text::SubwordModel{.kind = text::SubwordModel::Kind::kUnigram,
                         .pieces = {{"a", 0, 4}, {"b", 0, 5}, {"ab", -1000, 6}}},
      1.0);
  const auto source = make_train_batches(corpus, o, 5, {.src = only_apart, .tgt = only_apart});
  bool seen = false;
  for (int64_t i = 0; i < source->num_batches(); ++i) {
    const Batch batch = source->load(0, i);
    for (size_t k = 0; k < batch.sample_ids.size(); ++k) {
      if (batch.sample_ids[k] != 0) continue;
      seen = true;
      EXPECT_EQ(sequence(data::source(batch), k), (std::vector<int64_t>{6, 6, kEos}));
      EXPECT_EQ(sequence(data::target(batch), k), (std::vector<int64_t>{4, 5, 4, 5, kEos}));
    }
  }
  EXPECT_TRUE(seen);
}

}  // namespace
}  // namespace stretto::data
