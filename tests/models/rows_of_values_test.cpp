// Encoders that read vectors instead of ids, and what makes them.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "kernels/convolution/convolution.h"
#include "models/encoders/bert.h"
#include "models/front.h"
#include "models/operations.h"
#include "models/registry.h"
#include "nn/time_convolution.h"
#include "tests/models/part_cases.h"

namespace stretto::models {
namespace {

using testing::first_batch, testing::kWidth, testing::relative_distance;

/// An encoder, and what it multiplies the vectors of tokens by.
struct ReadingEncoder {
  std::string name;
  std::shared_ptr<Encoder> encoder;
  double factor = 1;
};

/// @param rows  of their tables; 0 = they have none
std::vector<ReadingEncoder> encoders_with(int64_t rows) {
  PartSetup setup = testing::setup_of("encoder");
  setup.rows = rows;
  std::vector<ReadingEncoder> all;
  const std::vector<EncoderChoice> choices{
      StackOptions{.num_layers = 2, .num_heads = 2, .ffn_dim = 20},
      LstmEncoderOptions{.num_layers = 2}, ConvEncoderOptions{.num_layers = 2},
      LightEncoderOptions{.num_layers = 2, .num_heads = 2},
      DynamicEncoderOptions{.num_layers = 2, .num_heads = 2}};
  for (const EncoderChoice& choice : choices) {
    const bool scales =
        choice.visit([](const auto& part) { return embedding_kind(part).scales("auto"); });
    all.push_back({choice.name(), make_encoder(choice, {}, setup),
                   scales ? std::sqrt(static_cast<double>(kWidth)) : 1.0});
  }
  BertOptions bert;
  bert.preset = "none";
  bert.num_layers = 2;
  bert.d_model = kWidth;
  bert.num_heads = 2;
  all.push_back({"bert", std::make_shared<BertEncoder>(bert, setup), 1.0});
  for (const ReadingEncoder& one : all) one.encoder->to(at::kDouble);
  return all;
}

/// The rows of a batch with these vectors instead of their ids.
nn::PackedRows with_values(nn::PackedRows rows, const at::Tensor& values) {
  rows.ids = at::Tensor();
  rows.values = values;
  return rows;
}

TEST(RowsOfValues, GiveWhatTheIdsOfTheirVectorsGive) {
  const nn::PackedRows ids = testing::sources(first_batch());
  for (const ReadingEncoder& one : encoders_with(testing::kRows)) {
    SCOPED_TRACE(one.name);
    const at::Tensor values =
        one.encoder->embedding()->weight.detach().index_select(0, ids.ids) * one.factor;
    const at::Tensor got = one.encoder->forward(with_values(ids, values), {}).keys;
    EXPECT_LT(relative_distance(got, one.encoder->forward(ids, {}).keys), 1e-12);
  }
}

TEST(RowsOfValues, NeedNoTable) {
  const nn::PackedRows ids = testing::sources(first_batch());
  const at::Tensor values = at::ones({ids.num_rows(), kWidth}, at::kDouble);
  const auto with = encoders_with(testing::kRows), without = encoders_with(0);
  for (size_t i = 0; i < with.size(); ++i) {
    SCOPED_TRACE(with[i].name);
    const auto all = with[i].encoder->named_parameters();
    std::vector<std::string> expected, names;
    for (const auto& item : all) {
      if (item.key() != "embedding.weight") expected.push_back(item.key());
    }
    for (const auto& item : without[i].encoder->named_parameters()) {
      names.push_back(item.key());
      EXPECT_TRUE(at::equal(item.value(), all[item.key()])) << item.key();
    }
    EXPECT_EQ(names, expected);
    EXPECT_EQ(expected.size() + 1, all.size());
    EXPECT_TRUE(without[i].encoder->embedding().is_empty());
    EXPECT_THROW(without[i].encoder->forward(ids, {}), c10::Error);
    const at::Tensor rows = without[i].encoder->forward(with_values(ids, values), {}).keys;
    testing::expect_a_gradient_for_every_parameter(*without[i].encoder, rows);
  }
}

TEST(RowsOfValues, HaveAGradientAndTheEncodersWidth) {
  const nn::PackedRows ids = testing::sources(first_batch());
  for (const ReadingEncoder& one : encoders_with(testing::kRows)) {
    SCOPED_TRACE(one.name);
    const auto generator = at::detail::createCPUGenerator(5);
    const at::Tensor values =
        at::randn({ids.num_rows(), kWidth}, generator, at::kDouble).requires_grad_(true);
    const at::Tensor rows = one.encoder->forward(with_values(ids, values), {}).keys;
    (rows * at::randn(rows.sizes(), generator, at::kDouble)).sum().backward();
    EXPECT_GT(values.grad().abs().amin().item<double>(), 0);
    EXPECT_THROW(one.encoder->forward(with_values(ids, at::ones({ids.num_rows(), kWidth + 1})), {}),
                 c10::Error);
  }
}

constexpr int64_t kFrameWidth = 3;

/// A convolution over frames that keeps every second one.
class HalvingFront : public Front {
 public:
  HalvingFront() {
    map_ = register_module(
        "map", nn::TimeConvolution(nn::Init(5, at::kCPU).child("map"), kFrameWidth, kWidth,
                                   nn::TimeConvolutionOptions{.kernel = 3, .weight_norm = false}));
  }
  nn::PackedRows forward(const nn::PackedRows& input, const ForwardContext& context) override {
    const nn::TimeConvolutionWeights weights = map_->effective();
    const at::Tensor x = kernels::time_convolution(
        input.values, weights.weight, weights.bias,
        {.offsets = input.offsets, .kernel = map_->kernel(), .stride = 2});
    nn::PackedRows rows = behind_stride(input, 2, at::relu(x));
    rows.values = kernels::dropout(rows.values, context.dropout(rows.row_keys).at(0.3, 77));
    return rows;
  }
  int64_t width() const override { return kWidth; }
  double rate() const override { return 0.5; }
  double operations() const override { return weight_operations(*this) * rate(); }

 private:
  nn::TimeConvolution map_{nullptr};
};

/// Frames of these samples, sequences of 5, 2 and 6 of them.
nn::PackedRows frames_of(const std::vector<size_t>& samples) {
  const std::vector<int64_t> lengths{5, 2, 6}, names{17, 4, 99};
  data::Ragged<float> frames;
  frames.width = kFrameWidth;
  std::vector<int64_t> ids;
  for (const size_t sample : samples) {
    for (int64_t i = 0; i < lengths[sample] * kFrameWidth; ++i) {
      frames.values.push_back(std::sin(static_cast<float>(i) + static_cast<float>(sample)));
    }
    frames.close_sequence();
    ids.push_back(names[sample]);
  }
  return pack(frames, &ids, at::kCPU);
}

TEST(Front, BringsFramesIntoAnyEncoder) {
  HalvingFront front;
  EXPECT_EQ(front.operations(), 2 * 3 * kFrameWidth * kWidth / 2.0);
  for (const ReadingEncoder& one : encoders_with(0)) {
    SCOPED_TRACE(one.name);
    one.encoder->to(at::kFloat);
    const auto rows_of = [&](const std::vector<size_t>& samples, uint64_t key) {
      const ForwardContext context{.training = key != 0, .dropout_key = key};
      return one.encoder->forward(front.forward(frames_of(samples), context), context);
    };
    const Encoded whole = rows_of({0, 1, 2}, 0);
    EXPECT_TRUE(at::equal(whole.rows.offsets.values, at::tensor({0, 3, 4, 7}, at::kInt)));
    EXPECT_EQ(whole.keys.sizes(), (std::vector<int64_t>{7, one.encoder->width()}));
    testing::expect_a_gradient_for_every_parameter(front, rows_of({0, 1, 2}, 0).keys);
    // Each sequence sees itself alone, and drops the same in any batch.
    for (const uint64_t key : {0, 12345}) {
      const at::Tensor parts = at::cat({rows_of({0}, key).keys, rows_of({1, 2}, key).keys});
      EXPECT_LT(relative_distance(parts, rows_of({0, 1, 2}, key).keys), 1e-5) << key;
    }
    EXPECT_GT(relative_distance(rows_of({0, 1, 2}, 1).keys, rows_of({0, 1, 2}, 2).keys), 1e-3);
  }
}

}  // namespace
}  // namespace stretto::models
