#include "models/synthesis/centaur.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <vector>

#include "tests/models/synthesis/synthesis_cases.h"

namespace stretto::models {
namespace {

using namespace testing::synthesis;  // NOLINT(google-build-using-namespace)

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
}  // namespace stretto::models
