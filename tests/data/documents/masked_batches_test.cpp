#include "data/documents/masked_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "tests/base/failure.h"
#include "tests/data/documents/documents_fixture.h"

namespace stretto::data {
namespace {

using Ids = std::vector<int64_t>;

class MaskedBatchesTest : public stretto::testing::DocumentsFixture {
 protected:
  MaskedText text(Packing packing) const {
    return {.sequences = std::make_shared<DocumentSequences>(
                open({folder_.write("a.txt", documents_text(120, 4))}), *tokenizer_, packing, 24),
            .masker = std::make_shared<Masker>(*tokenizer_, MaskRules{})};
  }
  static MaskedTextOptions options() {
    MaskedTextOptions options;
    options.max_text_tokens = 24;
    options.max_tokens = 120;
    return options;
  }

  /// The ids of a sequence before they were masked.
  static Ids restored(const Batch& batch, int64_t sequence) {
    const auto ids = tokens(batch).sequence(sequence);
    Ids out(ids.begin(), ids.end());
    const auto rows = masked_rows(batch).sequence(sequence);
    const auto labels = masked_labels(batch).sequence(sequence);
    EXPECT_EQ(rows.size(), labels.size());
    EXPECT_FALSE(rows.empty());
    for (size_t i = 0; i < rows.size(); ++i) out.at(static_cast<size_t>(rows[i])) = labels[i];
    return out;
  }
};

TEST_F(MaskedBatchesTest, AnEpochHasEachSequenceOnce) {
  for (const Packing packing : {Packing::kPacked, Packing::kDocument}) {
    const MaskedText own = text(packing);
    const auto batches = make_masked_train_batches(own, options(), 7);
    std::vector<bool> seen(static_cast<size_t>(own.sequences->size()));
    for (int64_t i = 0; i < batches->num_batches(); ++i) {
      const Batch batch = batches->load(2, i);
      EXPECT_LE(tokens(batch).num_rows(), 120);
      EXPECT_EQ(segments(batch).offsets, tokens(batch).offsets);
      EXPECT_EQ(batch.sample_ids, batches->sample_ids(2, i));
      for (int64_t k = 0; k < batch.num_sequences(); ++k) {
        const int64_t sample = batch.sample_ids[static_cast<size_t>(k)];
        EXPECT_FALSE(seen.at(static_cast<size_t>(sample)));
        seen.at(static_cast<size_t>(sample)) = true;
        Ids expected, unused;
        own.sequences->append(sample, expected, unused);
        EXPECT_EQ(restored(batch, k), expected);
      }
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), false), 0);
  }
}

/// Rows of each sample, by its number.
std::vector<Ids> masks_of(const BatchSource& batches, int64_t epoch, int64_t samples) {
  std::vector<Ids> masks(static_cast<size_t>(samples));
  for (int64_t i = 0; i < batches.num_batches(); ++i) {
    const Batch batch = batches.load(epoch, i);
    for (int64_t k = 0; k < batch.num_sequences(); ++k) {
      const auto rows = masked_rows(batch).sequence(k);
      const auto ids = tokens(batch).sequence(k);
      auto& mask = masks.at(static_cast<size_t>(batch.sample_ids[static_cast<size_t>(k)]));
      mask.assign(rows.begin(), rows.end());
      mask.insert(mask.end(), ids.begin(), ids.end());
    }
  }
  return masks;
}

TEST_F(MaskedBatchesTest, MasksAreAFunctionOfSeedEpochAndSample) {
  const MaskedText own = text(Packing::kPacked);
  const int64_t samples = own.sequences->size();
  auto other_batches = options();
  other_batches.max_tokens = 50;
  const auto masks = [&](uint64_t seed, int64_t epoch, const MaskedTextOptions& how) {
    return masks_of(*make_masked_train_batches(own, how, seed), epoch, samples);
  };
  const auto first = masks(7, 3, options());
  EXPECT_EQ(masks(7, 3, options()), first);
  EXPECT_EQ(masks(7, 3, other_batches), first) << "batches do not count";
  const auto differing = [&](const std::vector<Ids>& others) {
    int64_t count = 0;
    for (size_t i = 0; i < first.size(); ++i) count += others[i] != first[i] ? 1 : 0;
    return count;
  };
  EXPECT_GT(differing(masks(7, 4, options())), samples * 9 / 10);
  EXPECT_GT(differing(masks(8, 3, options())), samples * 9 / 10);
}

TEST_F(MaskedBatchesTest, MasksOfValidationStay) {
  const MaskedText own = text(Packing::kDocument);
  const int64_t samples = own.sequences->size();
  const auto masks = [&](int64_t max_tokens, int64_t max_samples, uint64_t seed, int64_t epoch) {
    return masks_of(*make_masked_eval_batches(own, max_tokens, max_samples, seed), epoch, samples);
  };
  const auto first = masks(100, 0, 7, 0);
  EXPECT_EQ(masks(100, 0, 7, 5), first);
  EXPECT_EQ(masks(64, 3, 7, 0), first);
  EXPECT_NE(masks(100, 0, 8, 0), first);
  const Batch one = masked_eval_sample(own, 11, 7);
  const auto rows = masked_rows(one).sequence(0);
  EXPECT_TRUE(std::equal(rows.begin(), rows.end(), first[11].begin()));
}

TEST_F(MaskedBatchesTest, ASequenceAboveTheBoundIsRefused) {
  auto small = options();
  small.max_tokens = 20;
  const auto error = stretto::testing::failure(
      ExitCode::kUsage, [&] { make_masked_train_batches(text(Packing::kPacked), small, 1); });
  EXPECT_NE(std::string(error.what()).find("data.max_tokens"), std::string::npos);
}

}  // namespace
}  // namespace stretto::data
