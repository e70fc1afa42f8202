// A head of labels on the stack of a language model.
#include "models/text_stack.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "models/causal_model.h"
#include "models/packed.h"
#include "models/text_model.h"
#include "tests/models/part_cases.h"
#include "tests/text/special_ids.h"

namespace stretto::models {
namespace {

using testing::sequences;

constexpr int64_t kStackRows = 24, kStackLabels = 3;

CausalModelOptions transformer_stack() {
  CausalTransformerOptions options;
  options.preset = "none";
  options.num_layers = 2;
  options.d_model = 16;
  options.num_heads = 4;
  options.ffn_dim = 20;
  options.max_positions = 16;
  options.init_std = 0.3;
  return options;
}

CausalModelOptions lstm_stack() {
  CausalLstmModelOptions options;
  options.num_layers = 2;
  options.d_model = 16;
  options.hidden_dim = 20;
  options.init_bound = 0.4;
  return options;
}

std::vector<CausalModelOptions> stack_kinds() {
  return {transformer_stack(), lstm_stack()};
}

std::shared_ptr<TextModel> label_model(const CausalModelOptions& stack, const CausalPool& pool,
                                       TextHeadKind head = TextHeadKind::kLabels) {
  TextModelSetup setup;
  setup.causal = CausalTextOptions{.stack = stack, .pool = pool};
  setup.rows = kStackRows;
  setup.pad = stretto::testing::kSpecials.pad;
  setup.head = head;
  setup.num_labels = head == TextHeadKind::kLabels ? kStackLabels : 0;
  setup.seed = 3;
  return make_text_model(setup);
}

std::shared_ptr<CausalModel> token_model(const CausalModelOptions& stack) {
  return make_causal_model(
      {.model = stack, .rows = kStackRows, .specials = stretto::testing::kSpecials, .seed = 3}, {});
}

nn::PackedRows packed_texts(const std::vector<std::vector<int64_t>>& texts,
                            const std::vector<int64_t>& samples) {
  return pack(sequences(texts), &samples, at::kCPU);
}

TEST(CausalStack, HasTheTensorsOfALanguageModelUnderTheirNames) {
  for (const CausalModelOptions& kind : stack_kinds()) {
    const auto model = label_model(kind, {.head_units = 5});
    const auto own = model->named_parameters();
    const auto theirs = token_model(kind)->named_parameters();
    int64_t shared = 0;
    for (const auto& item : theirs) {
      if (!item.key().starts_with("decoder.")) continue;
      ++shared;
      ASSERT_NE(own.find(item.key()), nullptr) << item.key();
      EXPECT_TRUE(at::equal(own[item.key()], item.value())) << item.key();
    }
    EXPECT_EQ(static_cast<int64_t>(own.size()), shared + 4) << kind.name();
    for (const char* name :
         {"head.hidden.weight", "head.hidden.bias", "head.output.weight", "head.output.bias"}) {
      EXPECT_NE(own.find(name), nullptr) << name;
    }
    EXPECT_TRUE(model->is_causal());
    EXPECT_FALSE(model->has_segments());
    EXPECT_EQ(model->vocabulary_tables().size(), 1U);
    EXPECT_TRUE(model->tied_names().empty());
  }
}

TEST(CausalStack, GivesTheRowsOfALanguageModel) {
  const torch::NoGradGuard no_grad;
  const auto input = packed_texts({{5, 9, 14, 7}, {8}, {6, 4, 19}}, {17, 4, 99});
  for (const CausalModelOptions& kind : stack_kinds()) {
    const at::Tensor rows = label_model(kind, {})->encode(input, {});
    EXPECT_TRUE(at::equal(rows, token_model(kind)->forward(input, {}, {}).rows)) << kind.name();
  }
}

TEST(CausalStack, PoolsRowsOfEachTextAlone) {
  const torch::NoGradGuard no_grad;
  const auto input = packed_texts({{5, 9, 14, 7}, {8}, {6, 4, 19}}, {17, 4, 99});
  const std::vector<int64_t> begins{0, 4, 5, 8};
  for (const CausalModelOptions& kind : stack_kinds()) {
    const at::Tensor rows = label_model(kind, {})->encode(input, {});
    for (const std::string pooling : {"last", "max", "mean", "concat"}) {
      const auto model = label_model(kind, {.pooling = pooling});
      const at::Tensor got = model->pooled(input, {});
      for (size_t i = 0; i + 1 < begins.size(); ++i) {
        const at::Tensor own = rows.slice(0, begins[i], begins[i + 1]);
        const at::Tensor last = own[own.size(0) - 1], max = std::get<0>(own.max(0)),
                         mean = own.mean(0);
        const at::Tensor plain = pooling == "last"   ? last
                                 : pooling == "max"  ? max
                                 : pooling == "mean" ? mean
                                                     : at::cat({last, max, mean});
        EXPECT_TRUE(at::allclose(got[static_cast<int64_t>(i)], plain, 1e-5, 1e-6))
            << kind.name() << " " << pooling << " " << i;
      }
    }
  }
}

TEST(CausalStack, PoolsWhatAnLstmEndsIn) {
  const auto input = packed_texts({{5, 9, 14, 7}, {8}, {6, 4, 19}}, {17, 4, 99});
  const auto model = label_model(lstm_stack(), {.pooling = "state", .head_dropout = 0});
  const at::Tensor got = model->pooled(input, {});
  EXPECT_EQ(got.size(1), 32);
  {
    const torch::NoGradGuard no_grad;
    const CausalPass pass = token_model(lstm_stack())->forward(input, {}, {});
    ASSERT_EQ(pass.carry.size(), 4U) << "h and c of two layers";
    const at::Tensor last = last_rows(pass.rows, input.offsets);
    EXPECT_TRUE(at::allclose(got.slice(1, 0, 16), last, 1e-5, 1e-6));
    EXPECT_TRUE(at::allclose(got.slice(1, 16, 32), pass.carry[3], 1e-5, 1e-6));
  }
  model->labels().logits(got).square().sum().backward();
  for (const auto& item : model->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_GT(item.value().grad().abs().sum().item<float>(), 0) << item.key();
  }
  auto gru = lstm_stack();
  gru.as<CausalLstmModelOptions>().cell = "gru";
  for (const CausalModelOptions& kind : {gru, transformer_stack()}) {
    EXPECT_THROW(label_model(kind, {.pooling = "state"})->pooled(input, {}), c10::Error);
  }
}

TEST(CausalStack, NeighboursInABatchChangeNoLogitNorAMask) {
  const torch::NoGradGuard no_grad;
  const auto together = packed_texts({{5, 9, 14, 7}, {8}, {6, 4, 19}}, {17, 4, 99});
  const auto alone = packed_texts({{6, 4, 19}}, {99});
  for (const CausalModelOptions& kind : stack_kinds()) {
    for (const std::string pooling : {"last", "concat"}) {
      const auto model = label_model(kind, {.pooling = pooling, .head_units = 5});
      for (const bool training : {false, true}) {
        const ForwardContext context{.training = training, .dropout_key = 5};
        const at::Tensor all = model->labels().logits(model->pooled(together, context));
        const at::Tensor one = model->labels().logits(model->pooled(alone, context));
        EXPECT_TRUE(at::allclose(all[2], one[0], 1e-5, 1e-6)) << kind.name() << " " << pooling;
      }
    }
  }
}

TEST(CausalStack, LaterTokensChangeNoRow) {
  const torch::NoGradGuard no_grad;
  for (const CausalModelOptions& kind : stack_kinds()) {
    const auto model = label_model(kind, {});
    const at::Tensor whole = model->encode(packed_texts({{5, 9, 14, 7}}, {17}), {});
    const at::Tensor part = model->encode(packed_texts({{5, 9}}, {17}), {});
    EXPECT_TRUE(at::allclose(whole.slice(0, 0, 2), part, 1e-5, 1e-6)) << kind.name();
  }
}

TEST(CausalStack, GradientsReachEveryTensor) {
  const auto input = packed_texts({{5, 9, 14, 7}, {8}, {6, 4, 19}}, {17, 4, 99});
  for (const CausalModelOptions& kind : stack_kinds()) {
    const auto model = label_model(kind, {.pooling = "concat", .head_dropout = 0, .head_units = 5});
    model->labels().logits(model->pooled(input, {})).square().sum().backward();
    for (const auto& item : model->named_parameters()) {
      ASSERT_TRUE(item.value().grad().defined()) << item.key();
      EXPECT_TRUE(item.value().grad().isfinite().all().item<bool>()) << item.key();
    }
  }
}

TEST(CausalStack, WithoutLabelsNothingStandsBehindIt) {
  const torch::NoGradGuard no_grad;
  const auto input = packed_texts({{5, 9}, {8}}, {17, 4});
  const auto model =
      label_model(lstm_stack(), {.pooling = "concat", .head_units = 5}, TextHeadKind::kNone);
  for (const auto& item : model->named_parameters()) {
    EXPECT_TRUE(item.key().starts_with("decoder.")) << item.key();
  }
  EXPECT_EQ(model->sentence_vectors(model->encode(input, {}), input.offsets, "mean").size(1), 16);
  EXPECT_THROW(label_model(lstm_stack(), {}, TextHeadKind::kSpans), c10::Error);
}

}  // namespace
}  // namespace stretto::models
