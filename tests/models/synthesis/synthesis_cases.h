#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "models/packed.h"
#include "models/registry.h"
#include "models/synthesis/synthesis_model.h"
#include "tests/kernels/gradcheck.h"

/// What tests of models that write frames of sound share.
namespace stretto::models::testing::synthesis {

using stretto::testing::noise;

constexpr int64_t kSymbols = 20, kMels = 6, kBins = 9;

inline Tacotron2Options small_tacotron2() {
  Tacotron2Options options;
  options.embedding_dim = 10;
  options.encoder_dim = 8;
  options.encoder_convolutions = 2;
  options.encoder_kernel = 5;
  options.prenet_dim = 7;
  options.decoder_dim = 9;
  options.attention_dim = 5;
  options.location_filters = 3;
  options.location_kernel = 5;
  options.postnet_layers = 3;
  options.postnet_dim = 8;
  return options;
}

inline CentaurOptions small_centaur() {
  CentaurOptions options;
  options.d_model = 8;
  options.encoder_convolutions = 2;
  options.prenet_dim = 6;
  options.decoder_convolutions = 2;
  options.decoder_kernel = 3;
  options.num_layers = 2;
  options.attention_window = 0;
  options.reduction = 2;
  return options;
}

/// First weights and statistics that hide nothing.
inline void shake(torch::nn::Module& model) {
  const at::NoGradGuard no_grad;
  uint64_t seed = 100;
  for (const auto& item : model.named_parameters()) {
    item.value().add_(0.2 * noise(item.value().sizes(), ++seed).to(item.value().scalar_type()));
  }
  for (const auto& item : model.named_buffers()) {
    item.value().add_(noise(item.value().sizes(), ++seed).abs().to(item.value().scalar_type()) *
                      0.2);
  }
}

inline std::shared_ptr<SynthesisModel> small_model(const SynthesisModelOptions& options,
                                                   at::ScalarType dtype = at::kDouble,
                                                   int64_t num_speakers = 1) {
  auto model = make_synthesis_model({.model = options,
                                     .num_symbols = kSymbols,
                                     .pad = 0,
                                     .num_speakers = num_speakers,
                                     .parts = frame_parts(options, kMels, kBins)});
  model->to(dtype);
  shake(*model);
  model->eval();
  return model;
}

inline data::PackedTokens packed(const std::vector<std::vector<int64_t>>& all) {
  data::PackedTokens tokens;
  for (const auto& ids : all) tokens.append(ids);
  return tokens;
}

/// Texts of one symbol, of fewer than a kernel's taps, and of more.
inline const std::vector<std::vector<int64_t>>& texts() {
  static const std::vector<std::vector<int64_t>> all{
      {5, 9, 14, 7, 10, 12, 3}, {3}, {11, 6, 3}, {4, 4, 15, 16, 17, 18, 2, 1, 9, 3}};
  return all;
}
inline const std::vector<int64_t>& frame_counts() {
  static const std::vector<int64_t> all{9, 2, 5, 12};
  return all;
}

inline const std::vector<int64_t>& sample_ids() {
  static const std::vector<int64_t> all{17, 4, 99, 1};
  return all;
}

/// Sentences of `which`, by number.
inline std::vector<int64_t> every_sentence() {
  return {0, 1, 2, 3};
}

inline SynthesisInput input_of(const std::vector<int64_t>& which, bool training = false) {
  std::vector<std::vector<int64_t>> chosen;
  std::vector<int64_t> ids;
  for (const int64_t i : which) {
    chosen.push_back(texts()[static_cast<size_t>(i)]);
    ids.push_back(sample_ids()[static_cast<size_t>(i)]);
  }
  const data::PackedTokens tokens = packed(chosen);
  SynthesisInput input;
  input.text = pack(tokens, training ? &ids : nullptr, at::kCPU);
  input.sentence_keys = sentence_keys(tokens, at::kCPU);
  return input;
}

/// Frames of these sentences, [N, width], the same for a sentence wherever it stands.
inline nn::PackedRows frames_of(const std::vector<int64_t>& which, int64_t width,
                                at::ScalarType dtype = at::kDouble, bool training = false) {
  data::Ragged<float> rows;
  rows.width = width;
  std::vector<int64_t> ids;
  for (const int64_t i : which) {
    const at::Tensor values =
        noise({frame_counts()[static_cast<size_t>(i)], width}, 50 + static_cast<uint64_t>(i));
    const float* from = values.const_data_ptr<float>();
    rows.append(std::vector<float>(from, from + values.numel()));
    ids.push_back(sample_ids()[static_cast<size_t>(i)]);
  }
  nn::PackedRows made = pack(rows, training ? &ids : nullptr, at::kCPU);
  made.values = made.values.to(dtype);
  return made;
}

/// Rows of sentence number `i` of a packed tensor.
inline at::Tensor sentence(const at::Tensor& rows, const kernels::Offsets& offsets, int64_t i) {
  const auto begin = offsets.values[i].item<int64_t>();
  return rows.narrow(0, begin, offsets.values[i + 1].item<int64_t>() - begin);
}

/// So many frames of each sentence, whatever the model thinks of stopping.
inline decoding::FrameLimits exactly(int64_t frames) {
  return {.stop_threshold = 2, .max_frames = frames};
}

inline nn::PackedRows packed_frames(const std::vector<decoding::WrittenFrames>& written) {
  data::Ragged<float> rows;
  rows.width = written.front().frames.size(1);
  for (const decoding::WrittenFrames& one : written) {
    const at::Tensor values = one.frames.to(at::kFloat).contiguous();
    const float* from = values.const_data_ptr<float>();
    rows.append(std::vector<float>(from, from + values.numel()));
  }
  return pack(rows, nullptr, at::kCPU);
}

/// A model under teacher forcing with the frames that it wrote itself gives these frames and their
/// attention again.
inline void expect_free_running_to_be_teacher_forcing(SynthesisModel& model, double tolerance) {
  const at::NoGradGuard no_grad;
  const SynthesisInput input = input_of(every_sentence());
  const auto written = decoding::write_frames(*model.start(input), exactly(11));
  std::vector<at::Tensor> frames, weights;
  for (const decoding::WrittenFrames& one : written) {
    frames.push_back(one.frames);
    weights.push_back(one.weights.flatten());
  }
  nn::PackedRows targets = packed_frames(written);
  targets.values = at::cat(frames);
  const SynthesisOutput out = model.forward(input, targets, {}, WantsAttention::kValues);
  EXPECT_TRUE(at::allclose(out.before, targets.values, tolerance, tolerance))
      << (out.before - targets.values).abs().max().item<double>();
  EXPECT_TRUE(at::allclose(out.attention, at::cat(weights), tolerance, tolerance));
}

/// A sentence alone, and among others in another order, under teacher forcing.
inline void expect_sentences_to_be_alone(SynthesisModel& model, int64_t width, at::ScalarType dtype,
                                         double tolerance) {
  const at::NoGradGuard no_grad;
  const std::vector<int64_t> order{2, 0, 3, 1};
  const nn::PackedRows frames = frames_of(order, width, dtype);
  const SynthesisOutput all = model.forward(input_of(order), frames, {}, WantsAttention::kValues);
  for (size_t i = 0; i < order.size(); ++i) {
    const nn::PackedRows own = frames_of({order[i]}, width, dtype);
    const SynthesisOutput one =
        model.forward(input_of({order[i]}), own, {}, WantsAttention::kValues);
    const auto place = static_cast<int64_t>(i);
    EXPECT_TRUE(
        at::allclose(sentence(all.after, frames.offsets, place), one.after, tolerance, tolerance));
    EXPECT_TRUE(at::allclose(sentence(all.stop_logits, frames.offsets, place), one.stop_logits,
                             tolerance, tolerance));
  }
}

/// A sentence that is spoken alone, and in a batch of sixteen others.
inline void expect_the_same_voice_in_a_batch(SynthesisModel& model, double tolerance) {
  std::vector<int64_t> many;
  for (int64_t i = 0; i < 16; ++i) many.push_back((i * 3 + 1) % 4);
  const decoding::FrameLimits limits{.stop_threshold = 0.6, .max_frames = 20};
  const auto batch = synthesise(model, input_of(many), limits);
  ASSERT_EQ(batch.size(), many.size());
  for (size_t i = 0; i < many.size(); ++i) {
    const auto alone = synthesise(model, input_of({many[i]}), limits);
    ASSERT_EQ(alone[0].frames.sizes(), batch[i].frames.sizes()) << i;
    EXPECT_EQ(alone[0].reason, batch[i].reason);
    EXPECT_TRUE(at::allclose(alone[0].frames, batch[i].frames, tolerance, tolerance)) << i;
    EXPECT_TRUE(at::allclose(alone[0].attention, batch[i].attention, tolerance, tolerance)) << i;
  }
}

}  // namespace stretto::models::testing::synthesis
