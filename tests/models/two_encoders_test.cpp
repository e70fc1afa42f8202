// Two sources, an encoder for each, and a decoder that attends to the rows of both.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "data/pairs/pair_columns.h"
#include "losses/registry.h"
#include "models/encoder_decoder.h"
#include "models/join_memory.h"
#include "models/packed.h"
#include "models/registry.h"
#include "models/split_sources.h"
#include "tests/models/part_cases.h"
#include "tests/text/special_ids.h"
#include "text/tokenizer.h"

namespace stretto::models {
namespace {

using testing::kRows, testing::kWidth, testing::sequences;

using Ids = std::vector<int64_t>;

/// Two sources of one target.
struct Triple {
  Ids first, second, target;
};

const std::vector<Triple>& triples() {
  static const std::vector<Triple> all{{{5, 9, 3}, {14, 7, 10, 3}, {10, 4, 18, 3}},
                                       {{11, 3}, {6, 3}, {13, 12, 5, 3}},
                                       {{20, 8, 12, 3}, {4, 3}, {6, 7, 8, 3}}};
  return all;
}

data::Batch batch_of(const std::vector<Triple>& all, int64_t first_sample = 17) {
  data::Batch batch = data::pair_batch();
  for (const Triple& triple : all) {
    Ids both = triple.first;
    both.insert(both.end(), triple.second.begin(), triple.second.end());
    batch.sample_ids.push_back(first_sample++);
    data::source(batch).append(both);
    data::target(batch).append(triple.target);
  }
  return batch;
}

Ids numbers(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.to(at::kLong).contiguous();
  return {flat.const_data_ptr<int64_t>(), flat.const_data_ptr<int64_t>() + flat.numel()};
}

// The cut of a column.

TEST(SplitSources, CutsBehindTheFirstEndOfSentence) {
  const data::Batch batch = batch_of(triples());
  const nn::PackedRows rows = testing::sources(batch);
  const SplitSources split =
      split_sources(rows, data::source(batch), stretto::testing::kSpecials.eos);
  EXPECT_EQ(numbers(split.first.ids), (Ids{5, 9, 3, 11, 3, 20, 8, 12, 3}));
  EXPECT_EQ(numbers(split.first.positions), (Ids{0, 1, 2, 0, 1, 0, 1, 2, 3}));
  EXPECT_EQ(numbers(split.first.offsets.values), (Ids{0, 3, 5, 9}));
  EXPECT_EQ(split.first.offsets.max_length, 4);
  EXPECT_EQ(numbers(split.second.ids), (Ids{14, 7, 10, 3, 6, 3, 4, 3}));
  EXPECT_EQ(numbers(split.second.positions), (Ids{0, 1, 2, 3, 0, 1, 0, 1}));
  EXPECT_EQ(numbers(split.second.offsets.values), (Ids{0, 4, 6, 8}));
  EXPECT_EQ(split.second.offsets.max_length, 4);
  Ids keys = numbers(split.first.row_keys);
  for (const int64_t key : numbers(split.second.row_keys)) keys.push_back(key);
  const Ids of_column = numbers(rows.row_keys);
  EXPECT_EQ(std::multiset<int64_t>(keys.begin(), keys.end()),
            std::multiset<int64_t>(of_column.begin(), of_column.end()));
  EXPECT_EQ(split.second.row_keys[0].item<int64_t>(), of_column[3]);
}

TEST(SplitSources, KeepsDroppedWordsAndBothPasses) {
  const data::Batch batch = batch_of(triples());
  nn::PackedRows rows = pack_twice(data::source(batch), batch.sample_ids, at::kCPU);
  rows.dropped_words = rows.ids.eq(9);
  const SplitSources split =
      split_sources(rows, data::source(batch), stretto::testing::kSpecials.eos);
  EXPECT_EQ(numbers(split.first.ids),
            (Ids{5, 9, 3, 11, 3, 20, 8, 12, 3, 5, 9, 3, 11, 3, 20, 8, 12, 3}));
  EXPECT_EQ(numbers(split.first.offsets.values), (Ids{0, 3, 5, 9, 12, 14, 18}));
  EXPECT_TRUE(at::equal(split.first.dropped_words, split.first.ids.eq(9)));
  EXPECT_FALSE(split.second.dropped_words.any().item<bool>());
  const Ids keys = numbers(split.second.row_keys);
  EXPECT_EQ(std::set<int64_t>(keys.begin(), keys.end()).size(), 16u);
}

TEST(SplitSources, RefusesASequenceOfOneSource) {
  const data::Batch batch = testing::first_batch();
  EXPECT_THROW(
      split_sources(testing::sources(batch), data::source(batch), stretto::testing::kSpecials.eos),
      c10::Error);
}

// The joined memory.

Encoded rows_of_lengths(const std::vector<int32_t>& offsets, uint64_t seed, bool has_values) {
  const auto random = [&](uint64_t which) {
    return at::randn({offsets.back(), kWidth}, at::detail::createCPUGenerator(which), at::kDouble)
        .set_requires_grad(true);
  };
  return {.rows = {.row_keys = at::arange(offsets.back(), at::kLong) + static_cast<int64_t>(seed),
                   .offsets = {.values = at::tensor(offsets, at::kInt), .max_length = 4}},
          .keys = random(seed),
          .values = has_values ? random(seed + 1) : at::Tensor(),
          .state = {at::full({3, 2}, static_cast<double>(seed), at::kDouble)}};
}

/// The plain formula: sequence by sequence.
at::Tensor one_behind_the_other(const at::Tensor& a, const std::vector<int32_t>& a_offsets,
                                const at::Tensor& b, const std::vector<int32_t>& b_offsets) {
  std::vector<at::Tensor> rows;
  for (size_t i = 0; i + 1 < a_offsets.size(); ++i) {
    rows.push_back(a.slice(0, a_offsets[i], a_offsets[i + 1]));
    rows.push_back(b.slice(0, b_offsets[i], b_offsets[i + 1]));
  }
  return at::cat(rows);
}

TEST(JoinMemory, HoldsTheRowsOfTheFirstThenOfTheSecondForEachSequence) {
  // An encoder that strides may leave nothing of a sequence.
  const std::vector<int32_t> a{0, 3, 3, 7}, b{0, 1, 5, 6};
  for (const bool a_values : {false, true}) {
    for (const bool b_values : {false, true}) {
      const Encoded first = rows_of_lengths(a, 100, a_values),
                    second = rows_of_lengths(b, 200, b_values);
      const Encoded joined = join_memory(first, second, 5);
      EXPECT_EQ(numbers(joined.rows.offsets.values), (Ids{0, 4, 8, 13}));
      EXPECT_EQ(joined.rows.offsets.max_length, 5);
      EXPECT_TRUE(at::equal(joined.keys, one_behind_the_other(first.keys, a, second.keys, b)));
      EXPECT_TRUE(at::equal(joined.rows.row_keys,
                            one_behind_the_other(first.rows.row_keys, a, second.rows.row_keys, b)));
      ASSERT_EQ(joined.values.defined(), a_values || b_values);
      EXPECT_TRUE(at::equal(joined.attended(),
                            one_behind_the_other(first.attended(), a, second.attended(), b)));
      ASSERT_EQ(joined.state.size(), 1u);
      EXPECT_TRUE(at::equal(joined.state[0], first.state[0]));
    }
  }
}

TEST(JoinMemory, SendsEachGradientToItsRows) {
  const std::vector<int32_t> a{0, 3, 3, 7}, b{0, 1, 5, 6};
  const Encoded first = rows_of_lengths(a, 100, false), second = rows_of_lengths(b, 200, true);
  const Encoded joined = join_memory(first, second, 8);
  const at::Tensor weights =
      at::randn({13, kWidth}, at::detail::createCPUGenerator(7), at::kDouble);
  const std::vector<at::Tensor> leaves{first.keys, second.keys, second.values};
  const auto grads = torch::autograd::grad(
      {(joined.keys * weights).sum() + (joined.values * weights * 2).sum()}, leaves);
  const auto plain = torch::autograd::grad(
      {(one_behind_the_other(first.keys, a, second.keys, b) * weights).sum() +
       (one_behind_the_other(first.keys, a, second.values, b) * weights * 2).sum()},
      leaves);
  for (size_t i = 0; i < leaves.size(); ++i) EXPECT_TRUE(at::allclose(grads[i], plain[i])) << i;
}

// Whole models.

Seq2SeqOptions options_of(const EncoderChoice& first, const EncoderChoice& second,
                          const DecoderChoice& decoder) {
  Seq2SeqOptions options;
  options.d_model = kWidth;
  options.encoders = {first, second};
  options.decoder = decoder;
  options.dropout = 0;
  return options;
}

StackOptions small_stack() {
  return {.num_layers = 1, .num_heads = 2, .ffn_dim = 24};
}
LstmEncoderOptions small_lstm() {
  return {.num_layers = 1, .dropout = 0};
}
ConvEncoderOptions small_conv() {
  return {.num_layers = 1, .dropout = 0};
}

/// Encoders of one kind and of two, with each kind of decoder.
std::vector<std::pair<std::string, Seq2SeqOptions>> pairs_of_encoders() {
  const LstmDecoderOptions lstm{.num_layers = 1, .dropout = 0};
  auto with_state =
      options_of(small_lstm(), small_stack(),
                 LstmDecoderOptions{.num_layers = 1, .dropout = 0, .initial_state = "last"});
  return {
      {"two transformers", options_of(small_stack(), small_stack(), small_stack())},
      {"lstm and transformer", options_of(small_lstm(), small_stack(), small_stack())},
      {"transformer and lstm, lstm", options_of(small_stack(), small_lstm(), lstm)},
      {"lstm's last state", with_state},
      {"conv and transformer, conv",
       options_of(small_conv(), small_stack(), ConvDecoderOptions{.num_layers = 1, .dropout = 0})},
      {"lstm and conv, transformer", options_of(small_lstm(), small_conv(), small_stack())}};
}

std::shared_ptr<EncoderDecoder> joined_model(const Seq2SeqOptions& options,
                                             at::ScalarType dtype = at::kDouble) {
  const losses::CrossEntropyOptions loss{.label_smoothing = 0};
  auto model = std::dynamic_pointer_cast<EncoderDecoder>(
      make_model(options,
                 {.src_rows = kRows,
                  .tgt_rows = kRows,
                  .num_tgt_classes = kRows,
                  .src_specials = stretto::testing::kSpecials,
                  .tgt_specials = stretto::testing::kSpecials},
                 losses::make_loss(loss)));
  model->to(dtype);
  return model;
}

/// A model's parts, to be put together by hand.
struct Parts {
  std::shared_ptr<Encoder> first, second;
  std::shared_ptr<Decoder> decoder;

  explicit Parts(const EncoderDecoder& model) {
    for (const auto& item : model.named_modules()) {
      if (item.key() == "encoders.0") first = std::dynamic_pointer_cast<Encoder>(item.value());
      if (item.key() == "encoders.1") second = std::dynamic_pointer_cast<Encoder>(item.value());
      if (item.key() == "decoder") decoder = std::dynamic_pointer_cast<Decoder>(item.value());
    }
  }
};

/// The output projection, whatever it is tied to.
at::Tensor output_matrix(const EncoderDecoder& model) {
  std::string name = "output.weight";
  for (const auto& tied : model.tied_names()) {
    if (tied.name == "output.weight") name = tied.parameter;
  }
  return model.named_parameters()[name];
}

/// The plain formula for one target: both sources by themselves, their rows one behind the other.
at::Tensor plain_log_probs(const EncoderDecoder& model, const Triple& triple) {
  const Parts parts(model);
  const auto encoded = [](Encoder& encoder, const Ids& ids) {
    return encoder.forward(pack(sequences({ids}), nullptr, at::kCPU), {});
  };
  const Encoded a = encoded(*parts.first, triple.first), b = encoded(*parts.second, triple.second);
  const int64_t rows = a.keys.size(0) + b.keys.size(0);
  const Encoded memory{
      .rows = {.offsets = {.values = at::tensor({int64_t{0}, rows}, at::kInt), .max_length = rows}},
      .keys = at::cat({a.keys, b.keys}),
      .values = a.values.defined() || b.values.defined() ? at::cat({a.attended(), b.attended()})
                                                         : at::Tensor(),
      .state = a.state};
  const nn::PackedRows input = pack(
      shift_right(sequences({triple.target}), stretto::testing::kSpecials.bos), nullptr, at::kCPU);
  const at::Tensor x = parts.decoder->forward(input, memory, {});
  return at::log_softmax(x.mm(output_matrix(model).t()), 1);
}

at::Tensor plain_loss(const EncoderDecoder& model, const std::vector<Triple>& all) {
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (const Triple& triple : all) {
    const at::Tensor targets = at::tensor(triple.target, at::kLong).unsqueeze(1);
    sum = sum - plain_log_probs(model, triple).gather(1, targets).sum();
  }
  return sum;
}

std::vector<at::Tensor> gradients(EncoderDecoder& model, const at::Tensor& loss) {
  loss.backward();
  std::vector<at::Tensor> all;
  for (at::Tensor& parameter : model.parameters()) {
    all.push_back(parameter.grad().defined() ? parameter.grad().clone()
                                             : at::zeros_like(parameter));
    parameter.mutable_grad() = at::Tensor();
  }
  return all;
}

TEST(TwoEncoders, LossAndGradientsAreThoseOfThePlainFormula) {
  for (const auto& [name, options] : pairs_of_encoders()) {
    SCOPED_TRACE(name);
    const auto model = joined_model(options);
    const at::Tensor loss = model->loss(batch_of(triples()), {}).loss_sum,
                     plain = plain_loss(*model, triples());
    EXPECT_NEAR(loss.item<double>(), plain.item<double>(), 1e-8 * plain.item<double>());
    const auto found = gradients(*model, loss), expected = gradients(*model, plain);
    const auto names = model->named_parameters();
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_LT((found[i] - expected[i]).norm().item<double>(),
                1e-7 * (1 + expected[i].norm().item<double>()))
          << names[i].key();
    }
  }
}

TEST(TwoEncoders, BothEncodersHaveTheGradientOfACentralDifference) {
  const auto model = joined_model(options_of(small_lstm(), small_stack(), small_stack()));
  const data::Batch batch = batch_of(triples());
  model->loss(batch, {}).loss_sum.backward();
  const auto named = model->named_parameters();
  for (const char* name :
       {"encoders.0.layers.0.forward.input.weight", "encoders.1.layers.0.ffn.up.weight"}) {
    ASSERT_NE(named.find(name), nullptr) << name;
    at::Tensor weight = named[name];
    const double slope = weight.grad()[1][2].item<double>();
    const torch::NoGradGuard no_grad;
    const auto loss_at = [&](double step) {
      weight[1][2] += step;
      const double loss = model->loss(batch, {}).loss_sum.item<double>();
      weight[1][2] -= step;
      return loss;
    };
    constexpr double kStep = 1e-5;
    EXPECT_NEAR(slope, (loss_at(kStep) - loss_at(-kStep)) / (2 * kStep), 1e-6) << name;
    EXPECT_GT(std::abs(slope), 1e-9) << name;
  }
}

TEST(TwoEncoders, TheLossDependsOnEitherSourceAlone) {
  for (const auto& [name, options] : pairs_of_encoders()) {
    SCOPED_TRACE(name);
    const auto model = joined_model(options);
    const torch::NoGradGuard no_grad;
    const auto loss_of = [&](const Triple& triple) {
      return model->loss(batch_of({triple}), {}).loss_sum.item<double>();
    };
    const Triple before = triples().front();
    Triple other = before;
    other.second[1] = 19;
    EXPECT_GT(std::abs(loss_of(other) - loss_of(before)), 1e-9);
    other = before;
    other.first[0] = 19;
    EXPECT_GT(std::abs(loss_of(other) - loss_of(before)), 1e-9);
    // The same tokens, cut elsewhere.
    EXPECT_GT(std::abs(loss_of({{5, 3}, {9, 14, 7, 10, 3}, before.target}) - loss_of(before)),
              1e-9);
  }
}

TEST(TwoEncoders, StepsOfDecodingAreThoseOfTheWholePass) {
  for (const auto& [name, options] : pairs_of_encoders()) {
    SCOPED_TRACE(name);
    const auto model = joined_model(options, at::kFloat);
    model->eval();
    const torch::NoGradGuard no_grad;
    const auto steps = model->start(data::source(batch_of(triples())), 1);
    for (size_t t = 0; t < triples().front().target.size(); ++t) {
      Ids before;
      for (const Triple& triple : triples()) {
        before.push_back(t == 0 ? stretto::testing::kSpecials.bos : triple.target[t - 1]);
      }
      const at::Tensor rows = steps->step(at::tensor(before, at::kLong));
      for (size_t i = 0; i < triples().size(); ++i) {
        const at::Tensor expected = plain_log_probs(*model, triples()[i])[static_cast<int64_t>(t)];
        EXPECT_TRUE(at::allclose(rows[static_cast<int64_t>(i)], expected, 1e-4, 1e-4))
            << "pair " << i << ", step " << t;
      }
    }
  }
}

TEST(TwoEncoders, AlignmentsGoOverTheRowsOfBoth) {
  const auto model = joined_model(options_of(small_lstm(), small_stack(), small_stack()));
  const auto maps = model->alignments(batch_of(triples()), -1);
  ASSERT_EQ(maps.size(), 3u);
  for (size_t i = 0; i < maps.size(); ++i) {
    const Triple& triple = triples()[i];
    EXPECT_EQ(maps[i].size(0), static_cast<int64_t>(triple.target.size()));
    EXPECT_EQ(maps[i].size(1), static_cast<int64_t>(triple.first.size() + triple.second.size()));
    EXPECT_TRUE(at::allclose(maps[i].to(at::kDouble).sum(1),
                             at::ones({maps[i].size(0)}, at::kDouble), 1e-5, 1e-5));
  }
}

TEST(TwoEncoders, MasksDifferBetweenThemAndNotByTheCutOfABatch) {
  auto options = options_of(small_stack(), small_stack(), small_stack());
  options.dropout = options.src_word_dropout = 0.3;
  options.attention_dropout = 0.2;
  const auto model = joined_model(options);
  const ForwardContext context{.training = true, .dropout_key = 12345};
  const torch::NoGradGuard no_grad;
  const auto sum = [&](const data::Batch& batch) {
    return model->loss(batch, context).loss_sum.item<double>();
  };
  const std::vector<Triple> ab{triples()[0], triples()[1]}, c{triples()[2]};
  EXPECT_NEAR(sum(batch_of(triples())), sum(batch_of(ab)) + sum(batch_of(c, 19)), 1e-8);
  EXPECT_GT(std::abs(sum(batch_of(triples())) -
                     model->loss(batch_of(triples()), {}).loss_sum.item<double>()),
            1e-3);
}

TEST(TwoEncoders, TwoPassesOfAMicroBatchAreSplitToo) {
  auto options = options_of(small_stack(), small_lstm(), small_stack());
  const losses::CrossEntropyOptions loss{.label_smoothing = 0, .r_drop = 1};
  const auto model = make_model(options,
                                {.src_rows = kRows,
                                 .tgt_rows = kRows,
                                 .num_tgt_classes = kRows,
                                 .src_specials = stretto::testing::kSpecials,
                                 .tgt_specials = stretto::testing::kSpecials},
                                losses::make_loss(loss), losses::make_pair_loss(loss));
  const torch::NoGradGuard no_grad;
  const data::Batch batch = batch_of(triples());
  const auto twice = model->loss(batch, {.training = true, .dropout_key = 3});
  const double once = model->loss(batch, {}).nll_sum.item<double>();
  // Nothing is dropped: both passes are the one of validation.
  EXPECT_NEAR(twice.kl_sum.item<double>(), 0, 1e-3);
  EXPECT_NEAR(twice.nll_sum.item<double>(), once, 1e-3 * once);
}

// Names.

std::set<std::string> tables_of(const std::string& tie) {
  auto options = options_of(small_stack(), small_stack(), small_stack());
  options.tie_embeddings = tie;
  std::set<std::string> names;
  for (const auto& item : joined_model(options)->named_parameters()) {
    if (item.key().ends_with("embedding.weight") || item.key() == "output.weight") {
      names.insert(item.key());
    }
  }
  return names;
}

TEST(TwoEncoders, TablesAreSharedAndNamedAsTheyAreTied) {
  using Names = std::set<std::string>;
  EXPECT_EQ(tables_of("all"), (Names{"embedding.weight"}));
  EXPECT_EQ(tables_of("decoder"),
            (Names{"encoders.0.embedding.weight", "decoder.embedding.weight"}));
  EXPECT_EQ(tables_of("none"), (Names{"encoders.0.embedding.weight", "encoders.1.embedding.weight",
                                      "decoder.embedding.weight", "output.weight"}));
}

TEST(TwoEncoders, VocabularyTablesAndTiedNamesAreThoseOfTheModel) {
  auto options = options_of(small_stack(), small_stack(), small_stack());
  for (const char* tie : {"all", "decoder", "none"}) {
    SCOPED_TRACE(tie);
    options.tie_embeddings = tie;
    const auto model = joined_model(options);
    std::set<std::string> told;
    for (const auto& table : model->vocabulary_tables()) {
      told.insert(table.parameter);
      EXPECT_EQ(table.of_source, table.parameter.starts_with("encoders.")) << table.parameter;
    }
    EXPECT_EQ(told, tables_of(tie));
    std::set<std::string> also;
    for (const auto& tied : model->tied_names()) {
      also.insert(tied.name);
      EXPECT_TRUE(told.contains(tied.parameter)) << tied.parameter;
    }
    const bool all = std::string(tie) == "all", none = std::string(tie) == "none";
    EXPECT_EQ(also.contains("encoders.0.embedding.weight"), all);
    EXPECT_EQ(also.contains("encoders.1.embedding.weight"), !none);
    EXPECT_EQ(also.contains("output.weight"), !none);
  }
}

TEST(TwoEncoders, OneEncoderKeepsItsName) {
  Seq2SeqOptions options;
  options.d_model = kWidth;
  options.encoder = small_stack();
  options.decoder = small_stack();
  for (const auto& item : joined_model(options)->named_parameters()) {
    EXPECT_FALSE(item.key().starts_with("encoders")) << item.key();
  }
}

TEST(TwoEncoders, RowsOfTwoWidthsAreRefused) {
  const auto options = options_of(
      small_stack(), LstmEncoderOptions{.num_layers = 1, .hidden_dim = 20, .bidirectional = false},
      LstmDecoderOptions{.num_layers = 1});
  try {
    joined_model(options);
    ADD_FAILURE() << "a model was made";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("model.encoders.1.hidden_dim"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace stretto::models
