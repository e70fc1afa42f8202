#include "models/speech/square_resnet.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <vector>

#include "config/schema.h"
#include "models/speech/speech_conflicts.h"
#include "tests/models/speech/speech_cases.h"

namespace stretto::models {
namespace {

using testing::speech::kCharacters, testing::speech::kFeatures, testing::speech::shake_norms,
    testing::speech::speech_model, testing::speech::utterances;

static_assert(config::lists_every_member<SquareResNetOptions>);

/// Three stages of one block, as for pictures of 32 pixels.
SquareResNetOptions small_resnet() {
  SquareResNetOptions options;
  options.preset = "none";
  options.depth = 8;
  options.base_width = 4;
  options.num_frames = 12;
  return options;
}

TEST(SquareResNet, AnUtteranceStandsInTheMiddleOfItsPicture) {
  const nn::PackedRows frames = utterances({0, 1, 2, 3}, {3, 0, 6, 9});
  const at::Tensor squares = squares_of(frames, 6);
  ASSERT_EQ(squares.sizes(), (std::vector<int64_t>{4, 1, 6, kFeatures}));
  const at::Tensor& rows = frames.values;
  const auto zeros = [](int64_t count) { return at::zeros({count, kFeatures}, at::kDouble); };
  EXPECT_TRUE(at::equal(squares[0][0], at::cat({zeros(1), rows.slice(0, 0, 3), zeros(2)})));
  EXPECT_TRUE(at::equal(squares[1][0], zeros(6))) << "an utterance without frames";
  EXPECT_TRUE(at::equal(squares[2][0], rows.slice(0, 3, 9)));
  EXPECT_TRUE(at::equal(squares[3][0], rows.slice(0, 10, 16))) << "the middle of a longer one";
  EXPECT_EQ(squares_of(utterances({}, {}), 6).sizes(), (std::vector<int64_t>{0, 1, 6, kFeatures}));
}

TEST(SquareResNet, IsTheNetworkOfImages) {
  const auto options = small_resnet();
  const auto model = speech_model(options, at::kDouble, SpeechTarget::kLabel);
  const auto alone = std::make_shared<ResNet>(
      options, ImagePart{.init = nn::Init(9, at::kCPU), .channels = 1, .num_labels = kCharacters});
  alone->to(at::kDouble);
  const auto theirs = testing::speech::named_tensors(*model);
  const at::NoGradGuard no_grad;
  shake_norms(*model);
  for (auto& [name, tensor] : testing::speech::named_tensors(*alone)) {
    const bool is_head = name.starts_with("head.");
    at::Tensor own = tensor;
    own.copy_(theirs.at(is_head ? name : "encoder.resnet." + name));
  }
  model->eval();
  alone->eval();
  const nn::PackedRows frames = utterances({1, 2}, {12, 5});
  const at::Tensor got = model->label_logits(model->encode(frames, {}));
  const at::Tensor want = alone->forward({.pixels = squares_of(frames, 12)}, {});
  EXPECT_TRUE(at::allclose(got, want, 1e-9, 1e-9));
}

TEST(SquareResNet, GivesTheSameLabelsInEveryBatch) {
  const auto model = speech_model(small_resnet(), at::kFloat, SpeechTarget::kLabel);
  shake_norms(*model);
  model->eval();
  const at::NoGradGuard no_grad;
  const auto logits = [&](const std::vector<int64_t>& ids, const std::vector<int64_t>& lengths) {
    return model->label_logits(model->encode(utterances(ids, lengths, at::kFloat), {}));
  };
  const at::Tensor together = logits({0, 1, 2, 3}, {5, 12, 1, 30});
  const at::Tensor backwards = logits({3, 2, 1, 0}, {30, 1, 12, 5});
  const std::vector<int64_t> lengths{5, 12, 1, 30};
  for (int64_t i = 0; i < 4; ++i) {
    const at::Tensor alone = logits({i}, {lengths[static_cast<size_t>(i)]})[0];
    EXPECT_TRUE(at::allclose(alone, together[i], 1e-6, 1e-6)) << i;
    EXPECT_TRUE(at::allclose(alone, backwards[3 - i], 1e-6, 1e-6)) << i;
  }
}

TEST(SquareResNet, MasksOfAnUtteranceDoNotDependOnItsBatch) {
  auto options = small_resnet();
  options.block_dropout = 0.5;
  const auto model = speech_model(options, at::kDouble, SpeechTarget::kLabel);
  model->eval();  // norms by their statistics, masks by the context
  const at::NoGradGuard no_grad;
  const ForwardContext training{.training = true, .dropout_key = 7};
  const auto logits = [&](const std::vector<int64_t>& ids, const std::vector<int64_t>& lengths) {
    return model->label_logits(model->encode(utterances(ids, lengths), training));
  };
  const at::Tensor together = logits({4, 5}, {9, 12});
  EXPECT_TRUE(at::allclose(logits({5}, {12})[0], together[1]));
  EXPECT_FALSE(at::allclose(logits({6}, {12})[0], together[1]));
}

TEST(SquareResNet, OfThePresetHasOneRowAndNoText) {
  const SpeechModelOptions options = SquareResNetOptions{};
  EXPECT_TRUE(option_conflicts(options).empty());
  EXPECT_TRUE(reads_as_a_whole(options));
  EXPECT_FALSE(stream_problem(options).empty());
  const auto model = make_speech_model({.model = options,
                                        .num_features = usual_features_of(options),
                                        .num_labels = 12,
                                        .target = SpeechTarget::kLabel,
                                        .device = at::kMeta});
  for (const int64_t frames : {0, 1, 100}) {
    EXPECT_EQ(model->output_length(frames), frames > 0 ? 1 : 0);
    EXPECT_EQ(output_length(options, frames), model->output_length(frames));
  }
  // torchvision's resnet50 with one channel in the place of three, and twelve labels.
  EXPECT_EQ(num_parameters(*model), 25'557'032 - 2 * 64 * 49 - (2048 + 1) * (1000 - 12));
  EXPECT_GT(model->operations(100), 1e8);
  auto odd = small_resnet();
  odd.depth = 7;
  EXPECT_FALSE(option_conflicts(SpeechModelOptions(odd)).empty());
}

}  // namespace
}  // namespace stretto::models
