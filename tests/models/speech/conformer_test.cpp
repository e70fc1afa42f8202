#include "models/speech/conformer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "config/schema.h"
#include "models/registry.h"
#include "models/speech/conformer_conflicts.h"
#include "tests/models/speech/packed_frames.h"
#include "tests/models/speech/plain_conformer.h"
#include "tests/models/speech/speech_cases.h"

namespace stretto::models {
namespace {

using testing::speech::expect_same, testing::speech::shake_norms, testing::speech::named_tensors;
using testing::speech::packed_frames, testing::speech::PlainConformer,
    testing::speech::sequences_of;

static_assert(config::lists_every_member<ConformerOptions>);

constexpr int64_t kConformerFeatures = 7;

ConformerOptions small_conformer(const std::string& positions = "relative",
                                 const std::string& subsampling = "conv2d",
                                 const std::string& norm = "batch_norm") {
  ConformerOptions options;
  options.preset = "none";
  options.num_layers = 2;
  options.d_model = 8;
  options.num_heads = 2;
  options.ffn_dim = 12;
  options.kernel = 5;
  options.positions = positions;
  options.subsampling = subsampling;
  options.convolution_norm = norm;
  options.dropout = options.attention_dropout = options.activation_dropout = 0;
  return options;
}

std::shared_ptr<ConformerEncoder> conformer(const ConformerOptions& options,
                                            at::ScalarType dtype = at::kDouble) {
  const SpeechPart part{.init = nn::Init(3, at::kCPU), .num_features = kConformerFeatures};
  auto encoder = std::make_shared<ConformerEncoder>(options, part);
  shake_norms(*encoder);
  encoder->to(dtype);
  return encoder;
}

std::vector<ConformerOptions> all_small_forms() {
  std::vector<ConformerOptions> forms;
  for (const char* positions : {"relative", "rotary"}) {
    for (const char* subsampling : {"conv2d", "conv1d"}) {
      for (const char* norm : {"batch_norm", "layer_norm"}) {
        forms.push_back(small_conformer(positions, subsampling, norm));
      }
    }
  }
  return forms;
}

std::string form_name(const ConformerOptions& o) {
  return o.positions + " " + o.subsampling + " " + o.convolution_norm + " " +
         std::to_string(o.subsampling_factor);
}

TEST(ConformerEncoder, IsThePlainNetworkInTrainingAndEvaluation) {
  const nn::PackedRows frames = packed_frames({19, 1, 8, 0, 5}, kConformerFeatures);
  for (const ConformerOptions& options : all_small_forms()) {
    for (const bool training : {true, false}) {
      SCOPED_TRACE(form_name(options) + (training ? " in training" : ""));
      const auto encoder = conformer(options);
      encoder->train(training);
      const PlainConformer plain(named_tensors(*encoder), options, training);
      const auto want = testing::speech::run(*encoder, [&] {
        return at::cat(plain.forward(sequences_of(frames.values, frames.offsets)));
      });
      const auto got = testing::speech::run(
          *encoder, [&] { return encoder->forward(frames, {.training = training}).keys; });
      expect_same(got, want, 1e-8);
    }
  }
}

TEST(ConformerEncoder, SubsamplesByEachFactor) {
  const std::vector<int64_t> lengths{0, 1, 2, 3, 4, 5, 8, 9, 16, 17};
  const nn::PackedRows frames = packed_frames(lengths, kConformerFeatures);
  for (const char* subsampling : {"conv2d", "conv1d"}) {
    for (const int64_t factor : {1, 2, 4, 8}) {
      ConformerOptions options = small_conformer("relative", subsampling);
      options.subsampling_factor = factor;
      options.num_layers = 1;
      SCOPED_TRACE(form_name(options));
      const auto encoder = conformer(options);
      encoder->eval();
      const PlainConformer plain(named_tensors(*encoder), options, false);
      const torch::NoGradGuard no_grad;
      const Encoded encoded = encoder->forward(frames, {});
      const auto want = plain.forward(sequences_of(frames.values, frames.offsets));
      const auto got = sequences_of(encoded.keys, encoded.rows.offsets);
      ASSERT_EQ(got.size(), lengths.size());
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_EQ(got[i].size(0), (lengths[i] + factor - 1) / factor);
        EXPECT_EQ(got[i].size(0), encoder->output_length(lengths[i]));
        EXPECT_TRUE(at::allclose(got[i], want[i], 1e-8, 1e-8)) << lengths[i] << " frames";
      }
    }
  }
}

TEST(ConformerEncoder, GivesAnUtteranceTheSameRowsInEveryBatch) {
  const std::vector<int64_t> lengths{61, 3, 30, 1, 44};
  for (const ConformerOptions& options : all_small_forms()) {
    SCOPED_TRACE(form_name(options));
    const auto encoder = conformer(options, at::kFloat);
    encoder->eval();
    const torch::NoGradGuard no_grad;
    const Encoded together =
        encoder->forward(packed_frames(lengths, kConformerFeatures, at::kFloat), {});
    const auto rows = sequences_of(together.keys, together.rows.offsets);
    for (size_t i = 0; i < lengths.size(); ++i) {
      const std::vector<int64_t> length{lengths[i]}, id{static_cast<int64_t>(i)};
      const Encoded alone =
          encoder->forward(packed_frames(length, kConformerFeatures, id, at::kFloat), {});
      EXPECT_TRUE(at::allclose(alone.keys, rows[i], 3e-6, 3e-6))
          << "off by " << (alone.keys - rows[i]).abs().max().item<double>();
    }
  }
}

TEST(ConformerEncoder, DropsTheSameElementsInEveryCutOfABatch) {
  ConformerOptions options = small_conformer("relative", "conv2d", "layer_norm");
  options.dropout = options.attention_dropout = options.activation_dropout = 0.3;
  const auto encoder = conformer(options);
  const ForwardContext training{.training = true, .dropout_key = 99};
  const Encoded both = encoder->forward(packed_frames({13, 22}, kConformerFeatures), training);
  const auto rows = sequences_of(both.keys, both.rows.offsets);
  for (const int64_t id : {0, 1}) {
    const std::vector<int64_t> length{id == 0 ? 13 : 22}, ids{id};
    const Encoded alone =
        encoder->forward(packed_frames(length, kConformerFeatures, ids), training);
    EXPECT_TRUE(at::allclose(alone.keys, rows[static_cast<size_t>(id)], 1e-9, 1e-9));
  }
  const Encoded other = encoder->forward(packed_frames({13, 22}, kConformerFeatures),
                                         {.training = true, .dropout_key = 98});
  EXPECT_FALSE(at::allclose(other.keys, both.keys, 1e-3, 1e-3));
}

TEST(ConformerEncoder, EvaluatesABatchWithoutFrames) {
  for (const ConformerOptions& options : all_small_forms()) {
    SCOPED_TRACE(form_name(options));
    const auto encoder = conformer(options);
    encoder->eval();
    for (const auto& lengths : std::vector<std::vector<int64_t>>{{}, {0, 0}}) {
      const Encoded encoded = encoder->forward(packed_frames(lengths, kConformerFeatures), {});
      EXPECT_EQ(encoded.keys.sizes(), at::IntArrayRef({0, 8}));
    }
  }
}

TEST(ConformerEncoder, RefusesFramesOfAnotherWidth) {
  const auto encoder = conformer(small_conformer());
  EXPECT_THROW(encoder->forward(packed_frames({4}, kConformerFeatures + 1), {}), c10::Error);
}

TEST(ConformerEncoder, HasTheParametersOfItsPreset) {
  const auto count = [](const std::string& preset) {
    ConformerOptions options;
    options.preset = preset;
    const SpeechPart part{.init = nn::Init(1, at::kMeta), .num_features = 80};
    return num_parameters(ConformerEncoder(options, part));
  };
  // Table 1 of the paper has 10.3, 30.7 and 118.8 million with a decoder of one LSTM.
  EXPECT_EQ(count("conformer_small"), 8708544);
  EXPECT_EQ(count("conformer_medium"), 27323392);
  EXPECT_EQ(count("conformer_large"), 115102720);
}

TEST(ConformerEncoder, CostsItsProducts) {
  ConformerOptions options = small_conformer("rotary", "conv1d");
  const auto encoder = conformer(options);
  const double d = 8, f = 12, k = 5, features = kConformerFeatures, rows = 25;
  const double layer = 4 * d * f + 4 * d * d + 2 * d * d + d * d + d * k + 2 * d * rows;
  const double front = 3 * features * d / 2 + 3 * d * d / 4 + d * d / 4;
  EXPECT_NEAR(encoder->operations(100), 2 * (front + 2 * layer / 4), 1e-6);
  options.positions = "relative";
  EXPECT_NEAR(conformer(options)->operations(100),
              2 * (front + 2 * (layer + d * d + d * (2 * rows - 1)) / 4), 1e-6);
}

TEST(ConformerEncoder, ShowsTheFiltersOfItsFirstLayer) {
  ConformerOptions options = small_conformer();
  EXPECT_EQ(conformer(options)->first_filters().sizes(), at::IntArrayRef({8, 1, 3, 3}));
  options.subsampling = "conv1d";
  EXPECT_EQ(conformer(options)->first_filters().sizes(),
            at::IntArrayRef({8, 1, 3, kConformerFeatures}));
  options.subsampling_factor = 1;
  EXPECT_EQ(conformer(options)->first_filters().sizes(),
            at::IntArrayRef({8, 1, 1, kConformerFeatures}));
}

/// The key that is blamed first, or nothing.
std::string blamed_key(const ConformerOptions& options) {
  const auto conflicts = conflicts_of_kind(options);
  return conflicts.empty() ? "" : conflicts.front().keys.front();
}

TEST(ConformerConflicts, NameTheKeyThatDoesNotFit) {
  EXPECT_EQ(blamed_key(ConformerOptions()), "");
  EXPECT_EQ(blamed_key(small_conformer()), "");
  const auto with = [](auto change) {
    ConformerOptions options = small_conformer();
    change(options);
    return blamed_key(options);
  };
  EXPECT_EQ(with([](auto& o) { o.num_layers = 0; }), "model.num_layers");
  EXPECT_EQ(with([](auto& o) { o.num_heads = 3; }), "model.num_heads");
  EXPECT_EQ(with([](auto& o) { o.kernel = 4; }), "model.kernel");
  EXPECT_EQ(with([](auto& o) { o.subsampling_factor = 3; }), "model.subsampling_factor");
  EXPECT_EQ(with([](auto& o) { o.d_model = 9, o.num_heads = 1; }), "model.d_model");
  EXPECT_EQ(with([](auto& o) { o.positions = "rotary", o.num_heads = 8; }), "model.positions");
  const auto with_decoder = [&](double weight) {
    return with([&](auto& o) { o.decoder.weight = weight, o.decoder.location_kernel = 6; });
  };
  EXPECT_EQ(with_decoder(0.5), "model.decoder.location_kernel");
  EXPECT_EQ(with_decoder(0), "");  // nothing reads the key
}

TEST(ConformerOptions, AnotherWidthHasFourTimesTheFeedForwardWidth) {
  ConformerOptions options;
  options.d_model = 96;
  EXPECT_EQ(sizes_of(options).ffn_dim, 384);
  options.ffn_dim = 100;
  EXPECT_EQ(sizes_of(options).ffn_dim, 100);
  EXPECT_EQ(sizes_of(options).num_layers, 16);
}

}  // namespace
}  // namespace stretto::models
