#include "models/synthesis/centaur.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "nn/batch_norm.h"
#include "tests/models/synthesis/synthesis_cases.h"

namespace stretto::models::testing::synthesis {
namespace {

/// CENTAUR for one sentence in evaluation, written out on tensors by their names.
class PlainCentaur {
 public:
  PlainCentaur(const torch::nn::Module& model, const CentaurOptions& options)
      : options_(options), d_(static_cast<double>(options.d_model)) {
    for (const auto& item : model.named_parameters()) all_[item.key()] = item.value();
    for (const auto& item : model.named_buffers()) all_[item.key()] = item.value();
  }

  /// ids int64 [S], steps that have passed the pre-net [T, prenet_dim] -> [T, R * (W + 1)]
  at::Tensor speak(const at::Tensor& ids, const at::Tensor& passed) const {
    at::Tensor memory = all_.at("embedding.weight").index_select(0, ids);
    for (int64_t i = 0; i < options_.encoder_convolutions; ++i) {
      memory = convolved(memory, "encoder.convolution" + std::to_string(i),
                         "encoder.norm" + std::to_string(i), options_.encoder_kernel,
                         options_.encoder_kernel / 2);
    }
    at::Tensor x = linear(passed, "decoder.input");
    for (int64_t i = 0; i < options_.decoder_convolutions; ++i) {
      x = x + causal(x, "decoder.convolution" + std::to_string(i));
    }
    for (int64_t i = 0; i < options_.num_layers; ++i) {
      const std::string layer = "decoder.layer" + std::to_string(i) + ".";
      x = x + causal(normed(x, layer + "convolution_norm"), layer + "convolution");
      const at::Tensor query =
          linear(normed(x, layer + "attention_norm") + places(x.size(0)), layer + "query");
      const at::Tensor key = linear(memory + places(memory.size(0)), layer + "key");
      const at::Tensor weights = at::softmax(at::matmul(query, key.t()) / std::sqrt(d_), 1);
      x = x + linear(at::matmul(weights, linear(memory, layer + "value")), layer + "out");
      x = x + linear(linear(normed(x, layer + "ffn_norm"), layer + "ffn.up").relu(),
                     layer + "ffn.down");
    }
    x = normed(x, "decoder.final_norm");
    return at::cat({linear(x, "decoder.projection"), linear(x, "decoder.stop")}, 1);
  }

 private:
  at::Tensor linear(const at::Tensor& x, const std::string& name) const {
    return at::matmul(x, all_.at(name + ".weight").t()) + all_.at(name + ".bias");
  }
  at::Tensor normed(const at::Tensor& x, const std::string& name) const {
    return at::layer_norm(x, {x.size(1)}, all_.at(name + ".weight"), all_.at(name + ".bias"));
  }
  /// Sines, then cosines, of 10000^(-2 j / D) times the place.
  at::Tensor places(int64_t count) const {
    const at::Tensor rates =
        at::pow(10000.0, at::arange(0, options_.d_model, 2, at::kDouble) / -d_);
    const at::Tensor angles = at::outer(at::arange(count, at::kDouble), rates);
    return at::cat({angles.sin(), angles.cos()}, 1);
  }
  /// relu(norm(convolution)), `left` zeroes in front of x [T, C] and the rest of the taps behind.
  at::Tensor convolved(const at::Tensor& x, const std::string& place, const std::string& norm,
                       int64_t kernel, int64_t left) const {
    const at::Tensor weight = all_.at(place + ".weight");
    const at::Tensor around = at::constant_pad_nd(x.t().unsqueeze(0), {left, kernel - 1 - left});
    const at::Tensor y =
        at::conv1d(around, weight.view({weight.size(0), kernel, -1}).permute({0, 2, 1}),
                   all_.at(place + ".bias"));
    return at::batch_norm(y, all_.at(norm + ".weight"), all_.at(norm + ".bias"),
                          all_.at(norm + ".running_mean"), all_.at(norm + ".running_var"), false,
                          0.1, 1e-5, false)
        .relu()
        .squeeze(0)
        .t();
  }
  at::Tensor causal(const at::Tensor& x, const std::string& name) const {
    return convolved(x, name + ".convolution", name + ".norm", options_.decoder_kernel,
                     options_.decoder_kernel - 1);
  }

  CentaurOptions options_;
  double d_;
  std::map<std::string, at::Tensor> all_;
};

TEST(Centaur, ValuesAndGradientsAreThoseOfTheModelWrittenOut) {
  CentaurOptions options = small_centaur();
  options.prenet_dropout = 0;
  const auto model = small_model(options);
  const auto parameters = model->named_parameters();
  const SynthesisInput input = input_of({0});
  const nn::PackedRows frames = frames_of({0}, kMels);
  const auto slopes = [&](const at::Tensor& spoken, const at::Tensor& stop) {
    model->zero_grad();
    ((spoken * noise(spoken.sizes(), 1).to(at::kDouble)).sum() +
     (stop * noise(stop.sizes(), 2).to(at::kDouble)).sum())
        .backward();
    std::vector<at::Tensor> all;
    for (const auto& item : parameters) all.push_back(item.value().grad().clone());
    return all;
  };
  const SynthesisOutput out = model->forward(input, frames, {}, WantsAttention::kNo);
  const auto got = slopes(out.after, out.stop_logits);
  // Steps of two frames read zeroes, then frames 1, 3, 5 and 7.
  const at::Tensor read = at::cat({at::zeros({1, kMels}, at::kDouble),
                                   frames.values.index_select(0, at::tensor({1, 3, 5, 7}))});
  at::Tensor passed = read;
  for (const char* name : {"decoder.prenet.layer0.weight", "decoder.prenet.layer1.weight"}) {
    passed = at::matmul(passed, parameters.find(name)->t()).relu();
  }
  const at::Tensor all = PlainCentaur(*model, options).speak(input.text.ids, passed);
  const at::Tensor spoken = all.narrow(1, 0, 2 * kMels).reshape({-1, kMels}).narrow(0, 0, 9);
  const at::Tensor stop = all.narrow(1, 2 * kMels, 2).reshape({-1}).narrow(0, 0, 9);
  EXPECT_TRUE(at::allclose(out.after, spoken, 1e-8, 1e-10));
  EXPECT_TRUE(at::allclose(out.stop_logits, stop, 1e-8, 1e-10));
  const auto want = slopes(spoken, stop);
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(at::allclose(got[i], want[i], 1e-7, 1e-9)) << parameters.keys()[i];
  }
}

TEST(Centaur, FreeRunningIsTeacherForcingWithItsOwnFrames) {
  expect_free_running_to_be_teacher_forcing(*small_model(small_centaur()), 1e-8);
  expect_free_running_to_be_teacher_forcing(*small_model(small_centaur(), at::kFloat), 2e-4);
}

TEST(Centaur, ASentenceDoesNotSeeThoseBesideIt) {
  expect_sentences_to_be_alone(*small_model(small_centaur()), kMels, at::kDouble, 1e-9);
}

TEST(Centaur, ASentenceSoundsTheSameAloneAndInABatchOfSixteen) {
  expect_the_same_voice_in_a_batch(*small_model(small_centaur(), at::kFloat), 1e-5);
}

TEST(Centaur, AStepSeesNoFrameOfItsOwnOrLater) {
  const auto model = small_model(small_centaur());
  const at::NoGradGuard no_grad;
  nn::PackedRows frames = frames_of({3}, kMels);
  const at::Tensor first = model->forward(input_of({3}), frames, {}).before;
  frames.values = frames.values.clone();
  frames.values.narrow(0, 6, 6).add_(1);  // steps of two frames: step 4 reads frame 7 first
  const at::Tensor second = model->forward(input_of({3}), frames, {}).before;
  EXPECT_TRUE(at::equal(second.narrow(0, 0, 8), first.narrow(0, 0, 8)));
  EXPECT_FALSE(at::allclose(second.narrow(0, 8, 2), first.narrow(0, 8, 2)));
}

TEST(Centaur, EveryParameterLearns) {
  const auto model = small_model(small_centaur());
  model->train();
  const SynthesisOutput out = model->forward(
      input_of(every_sentence(), true), frames_of(every_sentence(), kMels, at::kDouble, true),
      {.training = true, .dropout_key = 5}, WantsAttention::kGradient);
  (out.after.square().sum() + out.stop_logits.square().sum() + out.attention.square().sum())
      .backward();
  for (const auto& item : model->named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    EXPECT_TRUE(item.value().grad().isfinite().all().item<bool>()) << item.key();
  }
  EXPECT_TRUE(at::allclose(
      out.attention.sum(),
      at::scalar_tensor(static_cast<double>(out.steps.values[-1].item<int>()), at::kDouble)));
}

TEST(Centaur, ReadsTheStyleOnce) {
  CentaurOptions options = small_centaur();
  options.style = {.num_tokens = 4, .num_heads = 2, .dim = 8, .reference_dim = 8};
  const auto model = small_model(options);
  model->train();
  size_t calls = 0;
  const auto norms = nn::batch_norms(*model);
  for (auto* norm : norms) {
    norm->hand_moments_to([&](const nn::BatchMoments& /*moments*/) { ++calls; });
  }
  SynthesisInput input = input_of(every_sentence(), true);
  const nn::PackedRows frames = frames_of(every_sentence(), kMels, at::kDouble, true);
  input.style = frames;
  model->forward(input, frames, {.training = true, .dropout_key = 5});
  EXPECT_EQ(calls, norms.size());
}

TEST(Centaur, AWindowHoldsAttentionNearItsLastPlace) {
  CentaurOptions options = small_centaur();
  options.attention_window = 1;
  const auto model = small_model(options);
  const auto spoken = synthesise(*model, input_of({3}), exactly(8));
  const at::Tensor& first = spoken[0].attention[0];
  EXPECT_GT(first.narrow(0, 0, 2).sum().item<double>(), 0.999);
  EXPECT_EQ(first.narrow(0, 2, 8).abs().max().item<double>(), 0);
}

TEST(Centaur, WritesMagnitudesBesideMelBands) {
  CentaurOptions options = small_centaur();
  options.spectrum = "both";
  const auto spoken = synthesise(*small_model(options), input_of({0, 1}), exactly(7));
  EXPECT_EQ(spoken[0].frames.sizes(), at::IntArrayRef({7, kMels + kBins}));
}

}  // namespace
}  // namespace stretto::models::testing::synthesis
