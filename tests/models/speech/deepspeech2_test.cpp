#include "models/speech/deepspeech2.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/schema.h"
#include "models/speech/speech_conflicts.h"
#include "tests/models/speech/speech_cases.h"

namespace stretto::models {
namespace {

using testing::speech::expect_near_in_narrow_types, testing::speech::expect_no_batch,
    testing::speech::expect_plain_network, testing::speech::num_parameters_of,
    testing::speech::PlainLayers, testing::speech::shake_norms, testing::speech::speech_model,
    testing::speech::Utterances, testing::speech::utterances;

static_assert(config::lists_every_member<DeepSpeech2Options>);
static_assert(config::lists_every_member<PlaneConvOptions>);

/// Two convolutions, two recurrent layers and a row convolution, all narrow; kernels with and
/// without a middle.
DeepSpeech2Options narrow_deepspeech2(const std::string& cell, bool bidirectional) {
  DeepSpeech2Options options;
  options.preset = "none";
  options.convolutions = {{.channels = 3,
                           .time_kernel = 5,
                           .frequency_kernel = 4,
                           .time_stride = 2,
                           .frequency_stride = 2},
                          {.channels = 2,
                           .time_kernel = 4,
                           .frequency_kernel = 3,
                           .time_stride = 1,
                           .frequency_stride = 3}};
  options.cell = cell;
  options.num_layers = 2;
  options.hidden_dim = 6;
  options.direction = bidirectional ? "both" : "forward";
  options.row_convolution = 3;
  options.output_dim = 8;
  return options;
}

/// Zeroes on both sides of time and features, one more behind where a window has no middle; [T, W *
/// C] -> [T', W' * O].
at::Tensor plain_plane_conv(const at::Tensor& x, const at::Tensor& weight,
                            const PlaneConvOptions& form) {
  const int64_t channels = weight.size(1);
  const auto sides = [](int64_t kernel) {
    return std::vector<int64_t>{(kernel - 1) / 2, kernel - 1 - (kernel - 1) / 2};
  };
  const auto time = sides(form.time_kernel), columns = sides(form.frequency_kernel);
  const at::Tensor planes = x.view({1, x.size(0), -1, channels}).permute({0, 3, 1, 2});
  const at::Tensor padded = at::constant_pad_nd(planes, {columns[0], columns[1], time[0], time[1]});
  const at::Tensor y = at::conv2d(padded, weight, {}, {form.time_stride, form.frequency_stride});
  return y.permute({0, 2, 3, 1}).flatten(2).squeeze(0);
}

/// One direction, step by step.
at::Tensor plain_recurrence(const PlainLayers& layers, const std::string& name,
                            const std::string& cell, const at::Tensor& x, bool backward) {
  const at::Tensor gates =
      at::linear(x, layers.at(name + ".input.weight"), layers.at(name + ".input.bias"));
  const at::Tensor& w = layers.at(name + ".hidden.weight");
  at::Tensor h = at::zeros({w.size(1)}, x.options()), c = h;
  std::vector<at::Tensor> rows(static_cast<size_t>(x.size(0)));
  for (int64_t step = 0; step < x.size(0); ++step) {
    const int64_t t = backward ? x.size(0) - 1 - step : step;
    if (cell == "gru") {
      const auto in = gates[t].chunk(3);
      const auto own = (at::mv(w, h) + layers.at(name + ".hidden.bias")).chunk(3);
      const at::Tensor r = at::sigmoid(in[0] + own[0]), z = at::sigmoid(in[1] + own[1]);
      h = (1 - z) * at::tanh(in[2] + r * own[2]) + z * h;
    } else {
      const auto all = (gates[t] + at::mv(w, h)).chunk(4);
      c = at::sigmoid(all[1]) * c + at::sigmoid(all[0]) * at::tanh(all[2]);
      h = at::sigmoid(all[3]) * at::tanh(c);
    }
    rows[static_cast<size_t>(t)] = h;
  }
  return at::stack(rows);
}

Utterances each_positive(const Utterances& all) {
  return PlainLayers::each(all, [](const at::Tensor& x) { return x.relu(); });
}

/// Filter of each unit over a row and those behind it.
at::Tensor plain_row_conv(const at::Tensor& x, const at::Tensor& weight) {
  const int64_t taps = weight.size(1), padding = 0;
  const at::Tensor padded = at::constant_pad_nd(x.t().unsqueeze(0), {0, taps - 1});
  return at::conv1d(padded, weight.unsqueeze(1), {}, 1, padding, 1, weight.size(0)).squeeze(0).t();
}

auto plain_deepspeech2(const DeepSpeech2Options& options) {
  return [=](const PlainLayers& layers, Utterances x) {
    for (size_t i = 0; i < options.convolutions.size(); ++i) {
      const std::string name = "encoder.convolutions." + std::to_string(i) + ".";
      x = PlainLayers::each(x, [&](const at::Tensor& rows) {
        return plain_plane_conv(rows, layers.at(name + "conv.weight"), options.convolutions[i]);
      });
      x = each_positive(layers.norm(name + "norm", x));
    }
    for (int64_t i = 0; i < options.num_layers; ++i) {
      const std::string name = "encoder.recurrent." + std::to_string(i);
      x = PlainLayers::each(x, [&](const at::Tensor& rows) {
        if (options.direction == "forward") {
          return plain_recurrence(layers, name, options.cell, rows, false);
        }
        return at::cat({plain_recurrence(layers, name + ".forward", options.cell, rows, false),
                        plain_recurrence(layers, name + ".backward", options.cell, rows, true)},
                       1);
      });
    }
    x = PlainLayers::each(x, [&](const at::Tensor& rows) {
      return plain_row_conv(rows, layers.at("encoder.row_conv.weight"));
    });
    x = each_positive(layers.norm("encoder.row_norm", x));
    return PlainLayers::each(x, [&](const at::Tensor& rows) {
      return at::linear(rows, layers.at("encoder.output.weight"), layers.at("encoder.output.bias"))
          .relu();
    });
  };
}

TEST(DeepSpeech2, IsThePlainNetwork) {
  for (const char* cell : {"gru", "lstm"}) {
    for (const bool bidirectional : {true, false}) {
      SCOPED_TRACE(std::string(cell) + (bidirectional ? " in both directions" : " forward"));
      const auto options = narrow_deepspeech2(cell, bidirectional);
      expect_plain_network(options, options.norm_epsilon, plain_deepspeech2(options));
    }
  }
}

TEST(DeepSpeech2, IsNearInNarrowTypes) {
  expect_near_in_narrow_types(narrow_deepspeech2("gru", true));
  expect_near_in_narrow_types(narrow_deepspeech2("lstm", false));
}

TEST(DeepSpeech2, GivesTheSameScoresInEveryBatch) {
  expect_no_batch(narrow_deepspeech2("gru", true));
  expect_no_batch(narrow_deepspeech2("lstm", false));
}

TEST(DeepSpeech2, DropsTheSameElementsInEveryBatch) {
  const auto model = speech_model(narrow_deepspeech2("gru", true));
  model->eval();  // norms of a batch would differ
  const ForwardContext context{.training = true, .dropout_key = 77};
  const at::Tensor both = model->encode(utterances({3, 8}, {9, 12}), context).keys;
  const at::Tensor alone = model->encode(utterances({8}, {12}), context).keys;
  EXPECT_TRUE(at::allclose(both.narrow(0, 5, 6), alone));
  EXPECT_FALSE(at::allclose(alone, model->encode(utterances({8}, {12}), {}).keys));
}

/// Scores of an utterance that comes in pieces of so many frames, and after how many frames each
/// row came.
struct Streamed {
  at::Tensor scores;
  std::vector<int64_t> frames_until;
};

Streamed streamed(SpeechModel& model, const at::Tensor& frames, int64_t piece) {
  const auto stream = model.stream();
  std::vector<at::Tensor> parts;
  Streamed result;
  const auto take = [&](const at::Tensor& scores, int64_t frames_until) {
    parts.push_back(scores);
    result.frames_until.insert(result.frames_until.end(), static_cast<size_t>(scores.size(0)),
                               frames_until);
  };
  for (int64_t t = 0; t < frames.size(0); t += piece) {
    const int64_t end = std::min(t + piece, frames.size(0));
    take(stream->push(frames.slice(0, t, end)), end);
  }
  take(stream->finish(), frames.size(0));
  result.scores = at::cat(parts);
  return result;
}

TEST(DeepSpeech2, GivesTheSameRowsInPiecesWithinItsDelay) {
  for (const char* cell : {"gru", "lstm"}) {
    for (const int64_t row_convolution : {1, 3}) {
      auto options = narrow_deepspeech2(cell, false);
      options.row_convolution = row_convolution;
      const auto model = speech_model(options);
      shake_norms(*model);
      model->eval();
      // Convolutions see 2 frames and then 2 rows of 2 frames behind a row; so does the row
      // convolution.
      const int64_t delay = stream_delay(options);
      EXPECT_EQ(delay, 2 + 2 * 2 + 2 * (row_convolution - 1));
      for (const int64_t length : {0, 1, 2, 3, 5, 30, 41}) {
        const nn::PackedRows frames = utterances({5}, {length});
        const at::NoGradGuard no_grad;
        const at::Tensor whole = model->ctc_scores(model->encode(frames, {}));
        for (const int64_t piece : {1, 2, 3, 7, 50}) {
          SCOPED_TRACE(std::to_string(length) + " frames in pieces of " + std::to_string(piece));
          const Streamed got = streamed(*model, frames.values, piece);
          ASSERT_EQ(got.scores.sizes(), whole.sizes());
          EXPECT_TRUE(at::allclose(got.scores, whole, 1e-9, 1e-10));
          for (int64_t t = 0; t < whole.size(0); ++t) {
            EXPECT_LE(got.frames_until[static_cast<size_t>(t)],
                      std::min(2 * t + delay + piece, length));
          }
        }
      }
    }
  }
}

TEST(DeepSpeech2, SeesNoFrameBeyondItsDelay) {
  const auto options = narrow_deepspeech2("gru", false);
  const auto model = speech_model(options);
  shake_norms(*model);
  model->eval();
  nn::PackedRows frames = utterances({5}, {40});
  const at::Tensor before = model->ctc_scores(model->encode(frames, {}));
  const int64_t changed = 20, delay = stream_delay(options);
  frames.values = frames.values.clone();
  frames.values[changed].add_(1);
  const at::Tensor apart = (model->ctc_scores(model->encode(frames, {})) - before).abs().amax(1);
  for (int64_t t = 0; t < apart.size(0); ++t) {
    if (2 * t + delay < changed) {
      EXPECT_EQ(apart[t].item<double>(), 0) << t;
    }
  }
  EXPECT_GT(apart.max().item<double>(), 0);
}

TEST(DeepSpeech2, RefusesPiecesWhereItReadsBackward) {
  const auto options = narrow_deepspeech2("gru", true);
  const auto model = speech_model(options);
  EXPECT_FALSE(stream_problem(options).empty());
  try {
    model->stream();
    FAIL() << "a bidirectional model begins a stream";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("backward"), std::string::npos) << error.what();
    EXPECT_EQ(error.code(), ExitCode::kUsage);
  }
  EXPECT_TRUE(stream_problem(narrow_deepspeech2("gru", false)).empty());
}

TEST(DeepSpeech2, HasAsManyParametersAsItsLayers) {
  DeepSpeech2Options large;
  EXPECT_EQ(num_parameters_of(large, 160), 58'971'133);
  large.cell = "lstm";  // whose gates have one bias, and are four
  const int64_t lstm = 2 * (3200 * (1280 + 800) + 3200) + 4 * 2 * (3200 * (1600 + 800) + 3200);
  const int64_t gru = 2 * (2400 * (1280 + 800) + 4800) + 4 * 2 * (2400 * (1600 + 800) + 4800);
  EXPECT_EQ(num_parameters_of(large, 160), 58'971'133 + lstm - gru);
}

TEST(DeepSpeech2, PresetsAreThePublishedSizes) {
  const auto shape = [](const char* preset) {
    DeepSpeech2Options options;
    options.preset = preset;
    return shape_of(options);
  };
  const DeepSpeech2Shape large = shape("deepspeech2_large"), medium = shape("deepspeech2_medium");
  ASSERT_EQ(large.convolutions.size(), 2u);
  EXPECT_EQ(large.convolutions[1].channels, 32);
  EXPECT_EQ(large.convolutions[0].frequency_kernel, 41);
  EXPECT_EQ(large.convolutions[1].frequency_kernel, 21);
  EXPECT_EQ(large.convolutions[0].time_stride, 2);
  EXPECT_EQ(large.convolutions[1].time_stride, 1);
  EXPECT_EQ(large.recurrent_width(), 1600);
  ASSERT_EQ(medium.convolutions.size(), 3u);
  EXPECT_EQ(medium.convolutions[2].channels, 96);
  EXPECT_EQ(medium.recurrent_width(), 1024);
  EXPECT_EQ(medium.row_convolution, 8);
  EXPECT_EQ(shape("deepspeech2_small").output_dim, 1024);
  EXPECT_EQ(shape("deepspeech2_toy").num_layers, 1);
}

TEST(DeepSpeech2, SaysWhichSizesAreMissing) {
  DeepSpeech2Options options;
  options.preset = "none";
  const auto found = option_conflicts(options);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].keys.front(), "model.num_layers");
  EXPECT_THROW(speech_model(options), Error);
  EXPECT_TRUE(option_conflicts(narrow_deepspeech2("gru", true)).empty());
}

TEST(DeepSpeech2, FirstFiltersAreThoseOfTheFirstConvolution) {
  auto options = narrow_deepspeech2("gru", true);
  EXPECT_EQ(speech_model(options)->first_filters().sizes(), (std::vector<int64_t>{3, 1, 5, 4}));
  EXPECT_EQ(speech_model(options)->output_length(7), 4);
}

}  // namespace
}  // namespace stretto::models
