#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "kernels/compute.h"
#include "models/registry.h"
#include "models/speech/speech_model.h"
#include "tests/kernels/gradcheck.h"
#include "tests/models/plain_networks.h"

/// What tests of recognisers of speech share.
namespace stretto::models::testing::speech {

using plain::expect_same, plain::run;
using stretto::testing::noise;

constexpr int64_t kFeatures = 10, kCharacters = 5;

/// Every parameter and buffer by its name.
inline std::map<std::string, at::Tensor> named_tensors(const torch::nn::Module& model) {
  return plain::tensors_of(model);
}

inline std::shared_ptr<SpeechModel> speech_model(const SpeechModelOptions& options,
                                                 at::ScalarType dtype = at::kDouble,
                                                 SpeechTarget target = SpeechTarget::kTokens) {
  auto model = make_speech_model(
      {.model = options, .num_features = kFeatures, .num_labels = kCharacters, .target = target});
  model->to(dtype);
  return model;
}

/// Parameters of a model without memory.
inline int64_t num_parameters_of(const SpeechModelOptions& options, int64_t num_features = 64,
                                 int64_t num_labels = 28) {
  return num_parameters(*make_speech_model({.model = options,
                                            .num_features = num_features,
                                            .num_labels = num_labels,
                                            .device = at::kMeta}));
}

/// First weights that hide nothing: gains, shifts and statistics of norms are not those that leave
/// rows as they are.
inline void shake_norms(torch::nn::Module& model) {
  const at::NoGradGuard no_grad;
  uint64_t seed = 300;
  for (const auto& item : model.named_parameters()) {
    if (item.value().dim() == 1) item.value().add_(0.3 * noise(item.value().sizes(), ++seed));
  }
  for (const auto& item : model.named_buffers()) {
    item.value().add_(noise(item.value().sizes(), ++seed).abs() * 0.2);
  }
}

/// Utterances of so many frames, number i with the key i; what one has does not depend on others.
inline nn::PackedRows utterances(const std::vector<int64_t>& numbers,
                                 const std::vector<int64_t>& lengths,
                                 at::ScalarType dtype = at::kDouble) {
  std::vector<at::Tensor> values{at::empty({0, kFeatures}, dtype)};
  std::vector<int64_t> positions, keys;
  std::vector<int> bounds{0};
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto number = static_cast<uint64_t>(numbers[i]);
    values.push_back(noise({lengths[i], kFeatures}, 50 + number).to(dtype));
    for (int64_t t = 0; t < lengths[i]; ++t) {
      positions.push_back(t);
      keys.push_back(static_cast<int64_t>(mix64(number, static_cast<uint64_t>(t))));
    }
    bounds.push_back(bounds.back() + static_cast<int>(lengths[i]));
  }
  nn::PackedRows rows;
  rows.values = at::cat(values);
  rows.positions = at::tensor(positions, at::kLong);
  rows.row_keys = at::tensor(keys, at::kLong);
  rows.offsets = {.values = at::tensor(bounds, at::kInt),
                  .max_length = lengths.empty() ? 0 : *std::ranges::max_element(lengths)};
  return rows;
}

/// The rows of each sequence.
inline std::vector<at::Tensor> each_utterance(const at::Tensor& rows,
                                              const kernels::Offsets& offsets) {
  std::vector<at::Tensor> parts;
  for (int64_t b = 0; b + 1 < offsets.values.size(0); ++b) {
    parts.push_back(
        rows.slice(0, offsets.values[b].item<int>(), offsets.values[b + 1].item<int>()));
  }
  return parts;
}

/// Utterances of [T, C] one by one: what layers of a plain network read and give.
using Utterances = std::vector<at::Tensor>;

/// Layers of libtorch's operators, by the names of a model's tensors. Each utterance is convolved
/// by itself; a norm is over the rows of all.
class PlainLayers {
 public:
  PlainLayers(const torch::nn::Module& model, bool training, double epsilon)
      : tensors_(named_tensors(model)), training_(training), epsilon_(epsilon) {}

  const at::Tensor& at(const std::string& name) const { return tensors_.at(name); }
  bool has(const std::string& name) const { return tensors_.count(name) > 0; }

  template <class Layer>
  static Utterances each(const Utterances& all, const Layer& layer) {
    Utterances out;
    for (const at::Tensor& x : all) out.push_back(layer(x));
    return out;
  }

  /// Zeroes on both sides, one more on the right where the window has no middle. Outputs of groups
  /// alternate.
  Utterances conv(const std::string& name, const Utterances& all, int64_t kernel, int64_t stride,
                  int64_t dilation, int64_t groups = 1) const {
    const at::Tensor& weight = at(name + ".weight");
    const bool depthwise = name.find("depthwise") != std::string::npos;
    return each(all, [&](const at::Tensor& x) {
      const int64_t reach = (kernel - 1) * dilation, channels = x.size(1), padding = 0;
      const at::Tensor padded =
          at::constant_pad_nd(x.t().unsqueeze(0), {reach / 2, reach - reach / 2});
      if (depthwise) {
        return at::conv1d(padded, weight.unsqueeze(1), {}, stride, padding, dilation, channels)
            .squeeze(0)
            .t();
      }
      const int64_t outputs = weight.size(0);
      // PyTorch's outputs of a group lie side by side.
      const at::Tensor by_group = weight.view({outputs / groups, groups, kernel, channels / groups})
                                      .permute({1, 0, 3, 2})
                                      .reshape({outputs, channels / groups, kernel});
      const at::Tensor y =
          at::conv1d(padded, by_group, {}, stride, padding, dilation, groups).squeeze(0);
      return y.reshape({groups, outputs / groups, y.size(1)}).permute({2, 1, 0}).flatten(1);
    });
  }

  /// Rows [T, W * C] of the norm's C channels.
  Utterances norm(const std::string& name, const Utterances& all) const {
    const at::Tensor& gain = at(name + ".weight");
    std::vector<int64_t> lengths;
    for (const at::Tensor& x : all) lengths.push_back(x.size(0));
    const at::Tensor rows = at::cat(all), flat = rows.reshape({-1, gain.size(0)});
    const at::Tensor normed =
        at::batch_norm(flat, gain, at(name + ".bias"), at(name + ".running_mean").clone(),
                       at(name + ".running_var").clone(), training_, 0.1, epsilon_, false);
    return normed.view(rows.sizes()).split_with_sizes(lengths);
  }

 private:
  std::map<std::string, at::Tensor> tensors_;
  bool training_;
  double epsilon_;
};

/// A model's scores and gradients beside those of a plain network, in training and in evaluation.
/// Utterances have many lengths; some are shorter than a filter.
/// @param plain_encoder  of (layers, frames of each utterance), gives rows of each
template <class Plain>
void expect_plain_network(const SpeechModelOptions& options, double epsilon,
                          const Plain& plain_encoder) {
  const auto model = speech_model(options);
  shake_norms(*model);
  const nn::PackedRows frames = utterances({0, 1, 2, 3}, {23, 1, 40, 6});
  for (const bool training : {true, false}) {
    SCOPED_TRACE(training ? "training" : "evaluation");
    model->train(training);
    const PlainLayers layers(*model, training, epsilon);
    const auto want = run(*model, [&] {
      const Utterances rows = plain_encoder(layers, each_utterance(frames.values, frames.offsets));
      return at::linear(at::cat(rows), layers.at("ctc.output.weight"),
                        layers.at("ctc.output.bias"));
    });
    const auto got = run(*model, [&] { return model->ctc_scores(model->encode(frames, {})); });
    expect_same(got, want, 1e-8);
    const at::NoGradGuard no_grad;  // where norms are part of the filters
    if (training) continue;
    EXPECT_TRUE(
        at::allclose(model->ctc_scores(model->encode(frames, {})), want.logits, 1e-8, 1e-9));
  }
}

/// Scores in fp32, and with products rounded to bf16, are near those in fp64; in training, where
/// norms go by the batch, and in evaluation.
inline void expect_near_in_narrow_types(const SpeechModelOptions& options) {
  const auto model = speech_model(options);
  shake_norms(*model);
  const auto scores = [&](at::ScalarType type) {
    model->to(type);
    return model->ctc_scores(model->encode(utterances({0, 1, 2}, {23, 31, 40}, type), {}))
        .detach()
        .to(at::kDouble);
  };
  const auto distance = [](const at::Tensor& got, const at::Tensor& want) {
    return ((got - want).norm() / want.norm()).item<double>();
  };
  for (const bool training : {false, true}) {
    SCOPED_TRACE(training ? "training" : "evaluation");
    model->train(training);
    const at::Tensor narrow = scores(at::kFloat), wide = scores(at::kDouble);
    EXPECT_LT(distance(narrow, wide), 1e-5);
    const kernels::ComputeScope scope(kernels::Compute::kBf16);
    const at::Tensor rounded = scores(at::kFloat);
    EXPECT_LT(distance(rounded, wide), 1e-1);
    EXPECT_GT(distance(rounded, wide), 1e-5) << "nothing was rounded";
    model->to(at::kDouble);
  }
}

/// Scores of utterances alone are those of a batch to 1e-6 of the largest, in fp32 and in either
/// order.
inline void expect_no_batch(const SpeechModelOptions& options) {
  const auto model = speech_model(options, at::kFloat);
  shake_norms(*model);
  model->eval();
  const at::NoGradGuard no_grad;
  std::vector<int64_t> numbers, lengths;
  for (int64_t i = 0; i < 16; ++i) {
    numbers.push_back(i);
    lengths.push_back(i * i * 7 % 61 + 1);
  }
  const auto scores = [&](const std::vector<int64_t>& ids, const std::vector<int64_t>& sizes) {
    const Encoded encoded = model->encode(utterances(ids, sizes, at::kFloat), {});
    return each_utterance(model->ctc_scores(encoded), encoded.rows.offsets);
  };
  const auto together = scores(numbers, lengths);
  const auto backwards =
      scores({numbers.rbegin(), numbers.rend()}, {lengths.rbegin(), lengths.rend()});
  for (size_t i = 0; i < numbers.size(); ++i) {
    const at::Tensor alone = scores({numbers[i]}, {lengths[i]})[0];
    EXPECT_EQ(alone.size(0), model->output_length(lengths[i]));
    const double near = 1e-6 * std::max(1.0, alone.abs().max().item<double>());
    EXPECT_TRUE(at::allclose(alone, together[i], 1e-6, near)) << i;
    EXPECT_TRUE(at::allclose(alone, backwards[numbers.size() - 1 - i], 1e-6, near)) << i;
  }
}

}  // namespace stretto::models::testing::speech
