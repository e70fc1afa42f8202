// Models take special ids from ModelSetup: with other ids, and the rows of all tables where these
// ids are, a model is the same one.
#include "tests/text/special_ids.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

#include "data/pairs/pair_columns.h"
#include "losses/registry.h"
#include "models/packed.h"
#include "models/registry.h"
#include "tests/models/part_cases.h"

namespace stretto::models {
namespace {

using stretto::testing::kSpecials, testing::kRows, testing::kWidth, testing::sequences;

// Its own inverse: specials come last, and the ids that they have elsewhere are words.
int64_t renumbered(int64_t id) {
  return kRows - 1 - id;
}

constexpr text::SpecialIds kOthers{
    .pad = kRows - 1, .unk = kRows - 2, .bos = kRows - 3, .eos = kRows - 4};

data::Batch renumbered(data::Batch batch) {
  for (auto* side : {&data::source(batch), &data::target(batch)}) {
    for (int64_t& id : side->values) id = renumbered(id);
  }
  return batch;
}

/// Each source is two, with the boundary behind the first end-of-sentence.
data::Batch batch_of_two_sources() {
  return data::pair_batch({17, 4}, sequences({{5, 9, 3, 14, 7, 3}, {20, 3, 11, 3}}),
                          sequences({{10, 4, 3}, {13, 12, 5, 3}}));
}

Seq2SeqOptions options_of(const std::string& kind, const std::string& tie) {
  const StackOptions stack{.num_layers = 1, .num_heads = 2, .ffn_dim = 24};
  Seq2SeqOptions options;
  options.d_model = kWidth;
  options.encoder = stack;
  options.decoder = stack;
  if (kind == "two sources") options.encoders = {EncoderChoice(stack), EncoderChoice(stack)};
  if (kind == "heads") options.heads = {{.name = "de", .decoder = stack}};
  options.dropout = 0;
  options.tie_embeddings = tie;
  return options;
}

std::shared_ptr<Seq2SeqModel> model_of(const Seq2SeqOptions& options,
                                       const text::SpecialIds& specials) {
  auto model = make_model(options,
                          {.src_rows = kRows,
                           .tgt_rows = kRows,
                           .num_tgt_classes = kRows,
                           .src_specials = specials,
                           .tgt_specials = specials},
                          losses::make_loss({}));
  model->to(at::kDouble);
  return model;
}

at::Tensor table_of(const Seq2SeqModel& model, const VocabularyTable& table) {
  return model.named_parameters()[table.parameter];
}

/// Each row goes where its id went.
void take_tables(const Seq2SeqModel& from, const Seq2SeqModel& to) {
  const torch::NoGradGuard no_grad;
  const at::Tensor rows = at::arange(kRows - 1, -1, -1, at::kLong);
  for (const VocabularyTable& table : from.vocabulary_tables()) {
    table_of(to, table).copy_(table_of(from, table).index_select(0, rows));
  }
}

TEST(ModelSpecialIds, AreThoseOfTheSetup) {
  for (const std::string kind : {"one source", "two sources", "heads"}) {
    for (const std::string tie : {"all", "decoder", "none"}) {
      SCOPED_TRACE(kind + ", tied: " + tie);
      const Seq2SeqOptions options = options_of(kind, tie);
      const auto plain = model_of(options, kSpecials), other = model_of(options, kOthers);
      EXPECT_EQ(plain->target_specials(), kSpecials);
      EXPECT_EQ(other->target_specials(), kOthers);
      take_tables(*plain, *other);

      const data::Batch batch =
          kind == "two sources" ? batch_of_two_sources() : testing::first_batch();
      const at::Tensor expected = plain->loss(batch, {.training = true}).loss_sum;
      const at::Tensor loss = other->loss(renumbered(batch), {.training = true}).loss_sum;
      EXPECT_NEAR(loss.item<double>() / expected.item<double>(), 1, 1e-6);
      expected.backward();
      loss.backward();
      const at::Tensor rows = at::arange(kRows - 1, -1, -1, at::kLong);
      for (const VocabularyTable& table : plain->vocabulary_tables()) {
        EXPECT_TRUE(at::allclose(table_of(*other, table).grad(),
                                 table_of(*plain, table).grad().index_select(0, rows), 1e-5, 1e-6))
            << table.parameter;
      }

      const auto maps = plain->alignments(batch, -1),
                 others = other->alignments(renumbered(batch), -1);
      ASSERT_EQ(maps.size(), others.size());
      for (size_t i = 0; i < maps.size(); ++i) {
        EXPECT_TRUE(at::allclose(maps[i], others[i], 1e-6, 1e-6)) << i;
      }
    }
  }
}

TEST(ModelSpecialIds, OnlyThePaddingsRowStartsAtZero) {
  for (const std::string kind : {"one source", "two sources", "heads"}) {
    for (const std::string tie : {"all", "decoder", "none"}) {
      SCOPED_TRACE(kind + ", tied: " + tie);
      const auto model = model_of(options_of(kind, tie), kOthers);
      for (const VocabularyTable& table : model->vocabulary_tables()) {
        if (table.parameter.starts_with("output")) continue;  // looks nothing up
        const at::Tensor zero = table_of(*model, table).detach().abs().sum(1).eq(0);
        EXPECT_EQ(zero.sum().item<int64_t>(), 1) << table.parameter;
        EXPECT_TRUE(zero[kOthers.pad].item<bool>()) << table.parameter;
      }
    }
  }
}

TEST(ModelSpecialIds, OfEachSideAreItsOwn) {
  const auto model = make_model(options_of("one source", "decoder"),
                                {.src_rows = 8,
                                 .tgt_rows = 8,
                                 .num_tgt_classes = 8,
                                 .src_specials = {.pad = 5},
                                 .tgt_specials = {.pad = 6, .bos = 7, .eos = 4}},
                                losses::make_loss({}));
  for (const auto& [name, pad] : {std::pair<std::string, int64_t>{"encoder.embedding.weight", 5},
                                  {"decoder.embedding.weight", 6}}) {
    const at::Tensor zero = model->named_parameters()[name].detach().abs().sum(1).eq(0);
    EXPECT_EQ(zero.sum().item<int64_t>(), 1) << name;
    EXPECT_TRUE(zero[pad].item<bool>()) << name;
  }
  EXPECT_EQ(model->target_specials().bos, 7);
  const data::Batch pair = data::pair_batch({1}, sequences({{1, 2}}), sequences({{3, 4}}));
  EXPECT_GT(model->loss(pair, {}).loss_sum.item<double>(), 0) << "the source has no beginning";
}

TEST(ModelSpecialIds, ABeginningOfSentenceIsNeededToRun) {
  const auto model = model_of(options_of("one source", "all"), {});
  EXPECT_THROW(model->loss(testing::first_batch(), {}), c10::Error);
  EXPECT_THROW(shift_right(sequences({{4, 3}}), -1), c10::Error);
  EXPECT_EQ(shift_right(sequences({{4, 5, 3}, {3}}), 9).values, (std::vector<int64_t>{9, 4, 5, 9}));
}

}  // namespace
}  // namespace stretto::models
