// Models whose matrices are codes of few bits, beside the same models with the numbers of these
// codes. What reads a stand-in as numbers finds NaN, so that any part that does fails here.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "decoding/step_model.h"
#include "kernels/gemm/packed_weights.h"
#include "kernels/quantised/quantised.h"
#include "losses/registry.h"
#include "models/causal_model.h"
#include "models/packed.h"
#include "models/registry.h"
#include "models/text_model.h"
#include "nn/compressed.h"
#include "tests/models/part_cases.h"
#include "tests/text/special_ids.h"

namespace stretto::models {
namespace {

using testing::first_batch, testing::kRows, testing::kWidth, testing::sequences;

constexpr int64_t kCodedIds = kRows - 3;
constexpr float kHighestCode = 127;

std::shared_ptr<const kernels::QuantisedMatrix> codes_of_weight(const at::Tensor& weight) {
  const at::Tensor scales = weight.abs().amax(1, /*keepdim=*/true).clamp_min(1e-6) / kHighestCode;
  return std::make_shared<const kernels::QuantisedMatrix>(kernels::QuantisedWeights{
      .bits = 8, .group = 0, .codes = (weight / scales).round().to(at::kChar), .scales = scales});
}

/// Two models with the same weights: all that may be codes is in the first.
template <class Model>
struct CodedPair {
  std::shared_ptr<Model> codes, numbers;

  CodedPair(std::shared_ptr<Model> one, std::shared_ptr<Model> other)
      : codes(std::move(one)), numbers(std::move(other)) {
    const at::NoGradGuard no_grad;
    const std::vector<std::string> names = nn::names_that_take_codes(*codes);
    EXPECT_FALSE(names.empty());
    auto plain = numbers->named_parameters();
    for (const std::string& name : names) {
      const auto matrix = codes_of_weight(plain[name].detach());
      plain[name].copy_(matrix->dense());
      nn::set_compressed(*codes, name, matrix);
    }
    EXPECT_LT(nn::bytes_in_memory(*codes), nn::bytes_in_memory(*numbers));
  }
};

void expect_near_probabilities(const at::Tensor& got, const at::Tensor& want) {
  ASSERT_TRUE(got.isfinite().all().item<bool>());
  EXPECT_LT((got.exp() - want.exp()).abs().max().item<double>(), 0.05);
}

struct CodedTranslation {
  std::string name;
  Seq2SeqOptions options;
};

template <class Options>
Options coded_layers() {
  Options options;
  options.num_layers = 2;
  if constexpr (requires { options.num_heads; }) options.num_heads = 4;
  if constexpr (requires { options.ffn_dim; }) options.ffn_dim = 20;
  if constexpr (requires { options.kernels; }) options.kernels = {3};
  if constexpr (requires { options.channels; }) options.channels = {12};
  if constexpr (requires { options.max_positions; }) options.max_positions = 40;
  return options;
}

template <class Encoder, class Decoder>
CodedTranslation coded_translation(const std::string& name, const std::string& ties) {
  CodedTranslation made{name, {}};
  made.options.d_model = kWidth;
  made.options.encoder = coded_layers<Encoder>();
  made.options.decoder = coded_layers<Decoder>();
  made.options.max_positions = 40;
  made.options.tie_embeddings = ties;
  return made;
}

std::vector<CodedTranslation> coded_translations() {
  std::vector<CodedTranslation> all{
      coded_translation<StackOptions, StackOptions>("Transformer", "all"),
      coded_translation<StackOptions, StackOptions>("Transformer of its own tables", "none"),
      coded_translation<LstmEncoderOptions, LstmDecoderOptions>("LSTM", "all"),
      coded_translation<ConvEncoderOptions, ConvDecoderOptions>("ConvS2S", "none"),
      coded_translation<LightEncoderOptions, LightDecoderOptions>("LightConv", "all"),
      coded_translation<DynamicEncoderOptions, DynamicDecoderOptions>("DynamicConv", "none")};
  CodedTranslation llama = all[1];
  llama.name = "gated, rotary";
  llama.options.activation = "swiglu";
  llama.options.positions = "rotary";
  llama.options.norm_layer = "rms_norm";
  all.push_back(llama);
  llama.name = "Shaw";
  llama.options.positions = "shaw";
  all.push_back(llama);
  return all;
}

std::shared_ptr<Seq2SeqModel> made_of_parts(const Seq2SeqOptions& options) {
  return make_model(options,
                    {.src_rows = kRows,
                     .tgt_rows = kRows,
                     .num_tgt_classes = kCodedIds,
                     .src_specials = stretto::testing::kSpecials,
                     .tgt_specials = stretto::testing::kSpecials,
                     .seed = 3},
                    losses::make_loss({}));
}

TEST(CompressedModels, TranslateAsTheNumbersOfTheirCodes) {
  const at::NoGradGuard no_grad;
  for (const CodedTranslation& one : coded_translations()) {
    SCOPED_TRACE(one.name);
    const CodedPair<Seq2SeqModel> pair(made_of_parts(one.options), made_of_parts(one.options));
    const data::Batch batch = first_batch();
    const LossOutput got = pair.codes->loss(batch, {}), want = pair.numbers->loss(batch, {});
    const double nll = want.nll_sum.item<double>();
    EXPECT_NEAR(got.nll_sum.item<double>(), nll, 0.05 * nll);

    const auto step = pair.codes->start(data::source(batch), 2);
    const auto plain = pair.numbers->start(data::source(batch), 2);
    kernels::PackedWeights kept;
    const kernels::PackedWeightsScope scope(kept);
    for (const int64_t token : {stretto::testing::kSpecials.bos, int64_t{10}, int64_t{4}}) {
      const at::Tensor tokens = at::full({6}, token, at::kLong);
      expect_near_probabilities(step->step(tokens), plain->step(tokens));
    }
  }
}

std::vector<std::pair<std::string, CausalModelOptions>> coded_language_models() {
  CausalTransformerOptions gpt;
  gpt.preset = "none";
  gpt.num_layers = 2;
  gpt.d_model = kWidth;
  gpt.num_heads = 4;
  gpt.ffn_dim = 20;
  gpt.init_std = 0.2;
  CausalTransformerOptions llama = gpt;
  llama.norm_layer = "rms_norm";
  llama.activation = "swiglu";
  llama.biases = "none";
  llama.positions = "rotary";
  llama.tie_embeddings = false;
  CausalTransformerOptions adaptive = gpt;
  adaptive.adaptive_softmax.cutoffs = {8, 14};
  CausalLstmModelOptions lstm;
  lstm.num_layers = 2;
  lstm.d_model = kWidth;
  lstm.hidden_dim = 20;
  lstm.init_bound = 0.4;
  return {{"GPT-2", gpt}, {"Llama", llama}, {"adaptive, tied", adaptive}, {"LSTM", lstm}};
}

std::shared_ptr<CausalModel> made_of_options(const CausalModelOptions& options) {
  return make_causal_model({.model = options,
                            .rows = kRows,
                            .num_ids = kCodedIds,
                            .specials = stretto::testing::kSpecials,
                            .seed = 3},
                           losses::make_loss({}));
}

TEST(CompressedModels, PredictTextAsTheNumbersOfTheirCodes) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, options] : coded_language_models()) {
    SCOPED_TRACE(name);
    const CodedPair<CausalModel> pair(made_of_options(options), made_of_options(options));
    const std::vector<int64_t> samples{17, 4};
    const nn::PackedRows rows =
        pack(sequences({{5, 9, 14, 7, 10}, {8, 6, 4, 4, 19}}), &samples, at::kCPU);
    const at::Tensor next = at::arange(10, at::kLong) * 7 % kCodedIds;
    const CausalPass got = pair.codes->forward(rows, {}, {}),
                     want = pair.numbers->forward(rows, {}, {});
    expect_near_probabilities(pair.codes->head().log_probs(got.rows),
                              pair.numbers->head().log_probs(want.rows));
    const double nll =
        pair.numbers->head().loss(want.rows, {.labels = next}).nll_sum.item<double>();
    EXPECT_NEAR(pair.codes->head().loss(got.rows, {.labels = next}).nll_sum.item<double>(), nll,
                0.05 * nll);

    const auto step = pair.codes->start(2, 1), plain = pair.numbers->start(2, 1);
    for (const int64_t token : {int64_t{5}, int64_t{9}, int64_t{14}}) {
      const at::Tensor tokens = at::full({2}, token, at::kLong);
      expect_near_probabilities(step->step(tokens), plain->step(tokens));
    }
  }
}

TextModelSetup coded_text(TextHeadKind head, bool tied) {
  TextModelSetup setup;
  setup.model.preset = "none";
  setup.model.num_layers = 2;
  setup.model.d_model = kWidth;
  setup.model.num_heads = 4;
  setup.model.ffn_dim = 40;
  setup.model.max_positions = 16;
  setup.model.init_std = 0.2;
  setup.model.tie_embeddings = tied;
  setup.rows = kRows;
  setup.num_ids = kCodedIds;
  setup.pad = 0;
  setup.head = head;
  setup.num_labels = head == TextHeadKind::kLabels ? 3 : 0;
  return setup;
}

TEST(CompressedModels, ReadTextAsTheNumbersOfTheirCodes) {
  const at::NoGradGuard no_grad;
  const std::vector<int64_t> samples{17, 4};
  const nn::PackedRows rows =
      pack_text(sequences({{5, 9, 14, 7, 10}, {8, 6, 4}}), nullptr, &samples, at::kCPU);
  for (const TextHeadKind head : {TextHeadKind::kMaskedTokens, TextHeadKind::kLabels})
    for (const bool tied : {true, false}) {
      const TextModelSetup setup = coded_text(head, tied);
      const CodedPair<TextModel> pair(make_text_model(setup), make_text_model(setup));
      const at::Tensor got = pair.codes->encode(rows, {}), want = pair.numbers->encode(rows, {});
      EXPECT_LT((got - want).norm().item<double>(), 0.05 * want.norm().item<double>());
      if (head == TextHeadKind::kLabels) {
        const at::Tensor vectors = pair.codes->pooled(rows, {});
        EXPECT_TRUE(vectors.isfinite().all().item<bool>());
        continue;
      }
      expect_near_probabilities(pair.codes->masked_tokens().log_probs(got),
                                pair.numbers->masked_tokens().log_probs(want));
      const at::Tensor labels = at::arange(8, at::kLong) + 5;
      const double nll = pair.numbers->masked_tokens().loss(want, labels).nll_sum.item<double>();
      EXPECT_NEAR(pair.codes->masked_tokens().loss(got, labels).nll_sum.item<double>(), nll,
                  0.05 * nll);
    }
}

}  // namespace
}  // namespace stretto::models
