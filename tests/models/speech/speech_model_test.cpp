#include "models/speech/speech_model.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/schema.h"
#include "data/batch.h"
#include "models/packed.h"
#include "models/speech/speech_conflicts.h"
#include "tests/models/speech/speech_cases.h"

namespace stretto::models {
namespace {

using testing::speech::kFeatures, testing::speech::kCharacters, testing::speech::shake_norms,
    testing::speech::speech_model, testing::speech::each_utterance, testing::speech::named_tensors,
    testing::speech::utterances;

/// One convolution with a stride of 2.
template <class Options>
Options one_convolution() {
  Options options;
  options.preset = "none";
  options.blocks = {{.channels = 7, .kernel = 3, .stride = 2}};
  return options;
}

nn::PackedRows labels_of(const std::vector<std::vector<int64_t>>& labels) {
  data::PackedTokens tokens;
  for (const auto& each : labels) tokens.append(each);
  return pack(tokens, nullptr, at::kCPU);
}

/// Every preset of every kind.
std::vector<SpeechModelOptions> published_models() {
  std::vector<SpeechModelOptions> all;
  const auto add = [&](auto options, const std::vector<std::string>& presets) {
    for (const std::string& preset : presets) {
      options.preset = preset;
      all.push_back(options);
    }
  };
  add(DeepSpeech2Options{},
      {"deepspeech2_large", "deepspeech2_medium", "deepspeech2_small", "deepspeech2_toy"});
  add(Wave2LetterOptions{}, {"wave2letter_plus", "wave2letter_small"});
  add(JasperOptions{},
      {"jasper_10x5_dr", "jasper_10x5", "jasper_10x3", "jasper_mini", "jasper_commands"});
  add(QuartzNetOptions{}, {"quartznet_15x5", "quartznet_10x5", "quartznet_5x5"});
  add(ConformerOptions{}, {"conformer_small", "conformer_medium", "conformer_large"});
  add(LasOptions{}, {"las_large", "las_small"});
  return all;
}

TEST(SpeechModel, OfEveryPresetCanBeBuiltAndKnowsItsLengths) {
  for (const SpeechModelOptions& options : published_models()) {
    SCOPED_TRACE(options.name());
    EXPECT_TRUE(option_conflicts(options).empty());
    const auto model = make_speech_model({.model = options,
                                          .num_features = usual_features_of(options),
                                          .num_labels = 28,
                                          .device = at::kMeta});
    for (const int64_t frames : {0, 1, 2, 3, 4, 17, 100}) {
      EXPECT_EQ(model->output_length(frames), output_length(options, frames)) << frames;
      const int64_t rate = frames_per_row(options);
      EXPECT_EQ(output_length(options, frames), (frames + rate - 1) / rate);
    }
    EXPECT_GT(model->operations(100, 10), 0);
    EXPECT_EQ(model->attention() != nullptr, options.is<LasOptions>());
    EXPECT_EQ(stream_problem(options).empty(), stream_delay(options) > 0);
  }
}

TEST(SpeechModel, LossesAreThoseOfItsScores) {
  const auto model = speech_model(one_convolution<QuartzNetOptions>());
  shake_norms(*model);
  // Rows 3, 2 and 2; two labels that are alike need three.
  const Encoded encoded = model->encode(utterances({1, 2, 3}, {5, 4, 3}), {});
  const nn::PackedRows labels = labels_of({{2, 0}, {1, 1}, {4}});
  const SpeechLosses got = model->losses(encoded, labels, {});
  const auto want = model->ctc().losses(model->ctc_scores(encoded), encoded.rows.offsets, labels);
  EXPECT_TRUE(at::equal(got.each, want.each));
  EXPECT_TRUE(at::equal(got.possible, at::tensor({1, 0, 1}, at::kInt).to(at::kBool)));
  EXPECT_FALSE(got.ctc.defined());
  got.each.sum().backward();
  for (const auto& item : model->named_parameters()) {
    EXPECT_TRUE(item.value().grad().defined()) << item.key();
  }
}

TEST(SpeechModel, JoinsCtcWithAttentionByItsWeight) {
  auto options = one_convolution<LasOptions>();
  options.decoder.weight = 0.25;
  options.decoder.hidden_dim = 6;
  options.decoder.embedding_dim = 4;
  options.decoder.attention_dim = 5;
  options.decoder.location_filters = 3;
  options.decoder.location_kernel = 3;
  const auto model = speech_model(options);
  shake_norms(*model);
  const Encoded encoded = model->encode(utterances({1, 2, 3}, {5, 4, 3}), {});
  const nn::PackedRows labels = labels_of({{2, 0}, {1, 1}, {4}});
  const SpeechLosses got = model->losses(encoded, labels, {});
  const at::Tensor ctc =
      model->ctc().losses(model->ctc_scores(encoded), encoded.rows.offsets, labels).each;
  const at::Tensor attention = model->attention()->losses(labels, encoded, {});
  const at::Tensor possible = got.possible.to(at::kDouble);
  EXPECT_TRUE(at::allclose(got.each, 0.75 * ctc + 0.25 * attention * possible));
  EXPECT_EQ(got.each[1].item<double>(), 0) << "labels that no rows are enough for";
  EXPECT_TRUE(at::allclose(got.ctc, ctc));
  EXPECT_TRUE(at::allclose(got.attention, attention * possible));
  EXPECT_FALSE(got.ctc.requires_grad() || got.attention.requires_grad());
  got.each.sum().backward();
  for (const auto& item : model->named_parameters()) {
    EXPECT_TRUE(item.value().grad().defined()) << item.key();
  }
}

TEST(SpeechModel, ReadsALabelFromTheMeanRowOfAnUtterance) {
  const auto model =
      speech_model(one_convolution<JasperOptions>(), at::kDouble, SpeechTarget::kLabel);
  shake_norms(*model);
  model->eval();
  const Encoded encoded = model->encode(utterances({1, 2, 3}, {5, 0, 8}), {});
  const auto rows = each_utterance(encoded.keys, encoded.rows.offsets);
  const auto tensors = named_tensors(*model);
  const auto logits_of = [&](const at::Tensor& mean) {
    return at::mv(tensors.at("head.weight"), mean) + tensors.at("head.bias");
  };
  const at::Tensor got = model->label_logits(encoded);
  ASSERT_EQ(got.sizes(), (std::vector<int64_t>{3, kCharacters}));
  EXPECT_TRUE(at::allclose(got[0], logits_of(rows[0].mean(0))));
  EXPECT_TRUE(at::allclose(got[1], tensors.at("head.bias"))) << "an utterance without frames";
  EXPECT_TRUE(at::allclose(got[2], logits_of(rows[2].mean(0))));
  EXPECT_THROW(model->ctc_scores(encoded), c10::Error);
  EXPECT_THROW(model->stream(), c10::Error);
  const auto of_tokens = speech_model(one_convolution<JasperOptions>());
  EXPECT_THROW(of_tokens->label_logits(encoded), c10::Error);
}

TEST(SpeechModel, RefusesFramesOfAnotherWidth) {
  const auto model = speech_model(one_convolution<JasperOptions>());
  nn::PackedRows frames = utterances({1}, {4});
  frames.values = frames.values.narrow(1, 0, kFeatures - 1);
  try {
    model->encode(frames, {});
    FAIL() << "frames of another width were read";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData);
    EXPECT_NE(std::string(error.what()).find("got 9"), std::string::npos) << error.what();
  }
}

TEST(SpeechModel, ReadsUtterancesWithoutFramesBesideOthers) {
  DeepSpeech2Options deepspeech2;
  deepspeech2.preset = "deepspeech2_toy";
  deepspeech2.hidden_dim = 4;
  deepspeech2.convolutions = {{.channels = 2, .time_kernel = 3, .frequency_kernel = 3}};
  ConformerOptions conformer;
  conformer.preset = "none";
  conformer.num_layers = 1;
  conformer.d_model = 8;
  conformer.num_heads = 2;
  conformer.kernel = 3;
  for (const SpeechModelOptions& options :
       {SpeechModelOptions(deepspeech2), SpeechModelOptions(one_convolution<JasperOptions>()),
        SpeechModelOptions(conformer)}) {
    SCOPED_TRACE(options.name());
    const auto model = speech_model(options);
    model->eval();
    const auto scores = [&](const nn::PackedRows& frames) {
      return model->ctc_scores(model->encode(frames, {}));
    };
    const at::Tensor alone = scores(utterances({7}, {12}));
    EXPECT_TRUE(at::allclose(scores(utterances({1, 7, 2}, {0, 12, 0})), alone));
    EXPECT_EQ(scores(utterances({1, 2}, {0, 0})).size(0), 0);
    EXPECT_EQ(scores(utterances({1}, {1})).size(0), 1);
  }
}

TEST(SpeechModel, FirstWeightsDependOnSeedAndName) {
  const auto weights = [](uint64_t seed) {
    return named_tensors(*make_speech_model({.model = one_convolution<JasperOptions>(),
                                             .num_features = kFeatures,
                                             .num_labels = kCharacters,
                                             .seed = seed}));
  };
  EXPECT_TRUE(at::equal(weights(3).at("encoder.blocks.0.conv0.weight"),
                        weights(3).at("encoder.blocks.0.conv0.weight")));
  EXPECT_FALSE(at::equal(weights(3).at("encoder.blocks.0.conv0.weight"),
                         weights(4).at("encoder.blocks.0.conv0.weight")));
  auto options = one_convolution<JasperOptions>();
  options.init = {"*.conv0.weight constant value=2"};
  const auto model = speech_model(options);
  EXPECT_TRUE(named_tensors(*model).at("encoder.blocks.0.conv0.weight").eq(2).all().item<bool>());
  options.init = {"nonsense"};
  EXPECT_THROW(speech_model(options), Error);
}

TEST(SpeechModel, CountsTheProductsOfAnUtterance) {
  const auto model = speech_model(one_convolution<JasperOptions>());
  // 50 rows, each a filter of three frames, and a score for each label and the blank one.
  const double rows = 50, conv = 2.0 * 7 * 3 * kFeatures, ctc = 2.0 * 7 * (kCharacters + 1);
  EXPECT_DOUBLE_EQ(model->operations(100), rows * (conv + ctc));
  EXPECT_DOUBLE_EQ(cost_of(*model, 100).training_flops, 3 * rows * (conv + ctc));
  EXPECT_EQ(cost_of(*model, 100).parameters, 7 * 3 * kFeatures + 14 + 8 * (kCharacters + 1));
}

}  // namespace
}  // namespace stretto::models
