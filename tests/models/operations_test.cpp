// What models say of their operations, against the products that a forward pass really makes.
#include "models/operations.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <gtest/gtest.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <set>
#include <string>
#include <vector>

#include "data/pairs/pair_columns.h"
#include "losses/registry.h"
#include "models/registry.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/time_convolution.h"
#include "tests/text/special_ids.h"

namespace stretto::models {
namespace {

/// libtorch keeps this place in front of all others for tests: what is registered there sees every
/// call that is made while the key is included, and passes it on.
constexpr auto kSeesCalls = c10::DispatchKey::TESTING_ONLY_GenericMode;

/// Multiplications and additions of libtorch's products while it is alive. With fp64 rows every
/// product of ours is one of libtorch's, by the operators' references.
class ProductCounter {
 public:
  ProductCounter() { sum_ = 0; }
  static double sum() { return sum_; }

  static void pass_on(const c10::OperatorHandle& call, torch::jit::Stack* stack) {
    // The calls that this call makes are not counted.
    const c10::impl::ExcludeDispatchKeyGuard unseen(kSeesCalls);
    static const std::set<std::string> kProducts{"aten::linear", "aten::matmul", "aten::mm",
                                                 "aten::bmm", "aten::mv"};
    if (!kProducts.contains(call.schema().name())) return call.callBoxed(stack);
    const size_t arguments = call.schema().arguments().size();
    const int64_t depth = torch::jit::peek(*stack, 0, arguments).toTensor().size(-1);
    call.callBoxed(stack);
    sum_ += 2 * static_cast<double>(stack->back().toTensor().numel() * depth);
  }

 private:
  static inline thread_local double sum_ = 0;
  const c10::impl::IncludeDispatchKeyGuard sees_{kSeesCalls};
};

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&ProductCounter::pass_on>());
}

constexpr int64_t kWords = 24, kSource = 7, kTarget = 5;

data::PackedTokens tokens_of(int64_t length) {
  data::PackedTokens tokens;
  for (int64_t i = 0; i < length; ++i) tokens.values.push_back(4 + i);
  tokens.offsets.push_back(static_cast<int32_t>(length));
  return tokens;
}

/// The operations of the loss of one pair.
double counted_operations(const Seq2SeqOptions& options,
                          const data::PackedTokens& source = tokens_of(kSource)) {
  const torch::NoGradGuard no_grad;
  const auto model = make_model(options,
                                {.src_rows = kWords,
                                 .tgt_rows = kWords,
                                 .num_tgt_classes = kWords,
                                 .src_specials = stretto::testing::kSpecials,
                                 .tgt_specials = stretto::testing::kSpecials},
                                losses::make_loss({}));
  model->to(at::kDouble);
  const data::Batch pair = data::pair_batch({1}, source, tokens_of(kTarget));
  const ProductCounter counter;
  model->loss(pair, {});
  return ProductCounter::sum();
}

double told_operations(const Seq2SeqOptions& options, int64_t source = kSource) {
  const auto model = make_model(
      options,
      {.src_rows = kWords, .tgt_rows = kWords, .num_tgt_classes = kWords, .device = at::kMeta},
      nullptr);
  return model->operations(static_cast<double>(source), kTarget);
}

Seq2SeqOptions pair_of(const EncoderChoice& encoder, const DecoderChoice& decoder) {
  Seq2SeqOptions options;
  options.d_model = 8;
  options.encoder = encoder;
  options.decoder = decoder;
  return options;
}

StackOptions stack() {
  return {.num_layers = 2, .num_heads = 2, .ffn_dim = 12};
}

void expect_what_is_counted(const std::string& what, const Seq2SeqOptions& options) {
  EXPECT_DOUBLE_EQ(told_operations(options), counted_operations(options)) << what;
}

TEST(Operations, OfTransformersAreThoseOfTheirProducts) {
  for (const char* activation : {"relu", "gelu", "swiglu"}) {
    for (const char* positions : {"sinusoidal", "learned", "rotary", "alibi", "t5", "shaw"}) {
      for (const char* ties : {"all", "decoder", "none"}) {
        auto options = pair_of(stack(), stack());
        options.decoder.as<StackOptions>().num_layers = 3;
        options.activation = activation;
        options.positions = positions;
        options.tie_embeddings = ties;
        expect_what_is_counted(std::string(activation) + ", " + positions + ", " + ties, options);
      }
    }
  }
}

TEST(Operations, OfParallelLayersAreThoseOfTheSameProducts) {
  auto options = pair_of(stack(), stack());
  options.norm = "pre";
  options.norm_layer = "rms_norm";
  const double in_a_row = told_operations(options);
  options.parallel_residual = true;
  expect_what_is_counted("parallel", options);
  EXPECT_EQ(told_operations(options), in_a_row);
}

TEST(Operations, OfAdaptersAreThoseOfTheirProducts) {
  auto options = pair_of(stack(), stack());
  options.norm = "pre";
  options.adapter.dim = 3;
  expect_what_is_counted("in a row", options);
  options.parallel_residual = true;
  expect_what_is_counted("parallel", options);

  auto recurrent =
      pair_of(LstmEncoderOptions{.num_layers = 3}, LstmDecoderOptions{.num_layers = 3});
  const double plain = told_operations(recurrent);
  recurrent.adapter.dim = 3;
  expect_what_is_counted("lstm", recurrent);
  // A row's two products with each adapter. The encoder's first layer has both directions.
  EXPECT_DOUBLE_EQ(told_operations(recurrent) - plain,
                   2.0 * 2 * 3 * (kSource * (2 * 8 + 8 + 8) + kTarget * 3 * 8));
  const std::vector<double> channels{8, 12};
  auto convolutional = pair_of(ConvEncoderOptions{.num_layers = 2, .channels = channels},
                               ConvDecoderOptions{.num_layers = 2, .channels = channels});
  convolutional.adapter.dim = 3;
  expect_what_is_counted("conv", convolutional);
}

TEST(Operations, OfTwoSourcesAreThoseOfTwoHalves) {
  auto options = pair_of(stack(), stack());
  options.encoders = {LstmEncoderOptions{.num_layers = 1}, stack()};
  data::PackedTokens halves;
  halves.append(std::vector<int64_t>{4, 5, 6, 3, 7, 8, 9, 3});
  EXPECT_DOUBLE_EQ(told_operations(options, 8), counted_operations(options, halves));
}

TEST(Operations, OfSharedKeysAreFewer) {
  auto options = pair_of(stack(), stack());
  const double all = told_operations(options);
  options.encoder.as<StackOptions>().num_kv_heads = 1;
  expect_what_is_counted("shared keys in the encoder", options);
  // Two layers that make keys and values of 4 columns each instead of 8.
  EXPECT_DOUBLE_EQ(told_operations(options), all - kSource * 2 * 2 * 8 * (2 * 4));
  options.decoder.as<StackOptions>().num_kv_heads = 1;
  expect_what_is_counted("shared keys on both sides", options);
}

TEST(Operations, OfRecurrentPartsAreThoseOfTheirProducts) {
  for (const char* cell : {"lstm", "gru", "norm_lstm"}) {
    for (const char* attention : {"bahdanau", "bahdanau_normed", "luong", "luong_scaled"}) {
      for (const char* context : {"first", "gnmt", "gnmt_v2"}) {
        LstmEncoderOptions encoder{.cell = cell, .num_layers = 3};
        LstmDecoderOptions decoder{
            .cell = cell, .num_layers = 3, .attention = attention, .context_to = context};
        expect_what_is_counted(std::string(cell) + ", " + attention + ", " + context,
                               pair_of(encoder, decoder));
        // Widths of their own.
        encoder.hidden_dim = 6;
        encoder.bidirectional_layers = 3;
        decoder.hidden_dim = 10;
        decoder.output = "attended";
        decoder.initial_state = "mean";
        if (decoder.has_query()) decoder.attention_width = 7;
        expect_what_is_counted(std::string("other widths, ") + cell + ", " + attention,
                               pair_of(encoder, decoder));
      }
    }
  }
}

TEST(Operations, OfConvolutionsAreThoseOfTheirProducts) {
  const std::vector<double> channels{8, 12, 6}, taps{3, 2, 1};
  for (const bool normed : {false, true}) {
    ConvEncoderOptions encoder{
        .num_layers = 3, .channels = channels, .kernels = taps, .weight_norm = normed};
    ConvDecoderOptions decoder{
        .num_layers = 3, .channels = channels, .kernels = taps, .weight_norm = normed};
    expect_what_is_counted("conv", pair_of(encoder, decoder));
    decoder.out_dim = 10;
    auto wide = pair_of(encoder, decoder);
    wide.tie_embeddings = "none";
    expect_what_is_counted("conv of another output", wide);
  }
}

/// Filters are sums of products of their own, which are no products of matrices: for each row and
/// channel as many as there are taps.
template <class EncoderOptions, class DecoderOptions>
void expect_filters_beside_products() {
  for (const bool glu : {false, true}) {
    const EncoderOptions encoder{
        .num_layers = 2, .num_heads = 2, .kernels = {3, 5}, .glu = glu, .ffn_dim = 12};
    const DecoderOptions decoder{
        .num_layers = 2, .num_heads = 4, .kernels = {2, 4}, .glu = glu, .ffn_dim = 12};
    const auto options = pair_of(encoder, decoder);
    const double filters = 2.0 * 8 * (kSource * (3 + 5) + kTarget * (2 + 4));
    EXPECT_DOUBLE_EQ(told_operations(options), counted_operations(options) + filters) << glu;
  }
}

TEST(Operations, OfLightConvolutionsAreThoseOfProductsAndFilters) {
  expect_filters_beside_products<LightEncoderOptions, LightDecoderOptions>();
}

TEST(Operations, OfDynamicConvolutionsAreThoseOfProductsAndFilters) {
  expect_filters_beside_products<DynamicEncoderOptions, DynamicDecoderOptions>();
}

// A decoder that makes keys of one thing and values of another makes no more of them.
TEST(Operations, OfADecoderDoNotDependOnTheEncodersKind) {
  const ConvEncoderOptions conv{.num_layers = 1};
  expect_what_is_counted("conv, transformer", pair_of(conv, stack()));
  expect_what_is_counted("conv, lstm", pair_of(conv, LstmDecoderOptions{}));
  expect_what_is_counted("lstm, conv",
                         pair_of(LstmEncoderOptions{}, ConvDecoderOptions{.num_layers = 2}));
  expect_what_is_counted("lstm, transformer", pair_of(LstmEncoderOptions{}, stack()));
}

TEST(Operations, OfWeightsAreTwoForEachThatARowMeets) {
  struct Parent : torch::nn::Module {
    Parent() {
      const nn::Init init(1, at::kCPU);
      register_module("linear", nn::Linear(init.child("linear"), 3, 5));
      register_module("convolution", nn::TimeConvolution(init.child("convolution"), 2, 4,
                                                         nn::TimeConvolutionOptions{.kernel = 3}));
      register_module("table", nn::Embedding(init.child("table"), 100, 8, -1));
    }
  };
  EXPECT_EQ(weight_operations(Parent()), 2 * (3 * 5 + 4 * 3 * 2));
  EXPECT_EQ(weight_operations(*nn::Linear(nn::Init(1, at::kCPU).child("one"), 3, 5)), 30);
}

/// A layer that no room knows: for each row a plane of windows.
struct PlaneLayer : torch::nn::Module, nn::Counted {
  PlaneLayer() { register_module("map", nn::Linear(nn::Init(1, at::kCPU).child("map"), 3, 5)); }
  double operations() const override { return 1000; }
};

TEST(Operations, OfALayerAreWhatItSaysAndThoseOfTheLayersBelowIt) {
  const torch::nn::ModuleList layers(std::make_shared<PlaneLayer>(),
                                     std::make_shared<PlaneLayer>());
  EXPECT_EQ(weight_operations(*layers), 2 * (1000 + 30));
}

}  // namespace
}  // namespace stretto::models
