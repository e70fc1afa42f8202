#include "models/synthesis/voice.h"

#include <ATen/ATen.h>

#include <vector>

#include "models/synthesis/decoder_steps.h"

namespace stretto::models {

VoiceImpl::VoiceImpl(const nn::Init& init, const SynthesisKeys& keys, const SynthesisPart& part) {
  if (keys.style.is_on()) {
    style_ = register_module(
        "style", StyleTokens(init.child("style"), part.parts.decoder_width(), keys.style));
    width_ += keys.style.dim;
  }
  if (part.num_speakers > 1) {
    speakers_ = register_module("speakers", nn::Embedding(init.child("speakers"), part.num_speakers,
                                                          keys.speaker_dim, /*pad=*/-1));
    width_ += keys.speaker_dim;
  }
}

at::Tensor VoiceImpl::beside(const at::Tensor& rows, const SynthesisInput& input) const {
  if (width_ == 0) return rows;
  const int64_t sentences = input.text.offsets.values.size(0) - 1;
  const at::Tensor sequence = sequence_of_rows(input.text.offsets, rows.size(0));
  std::vector<at::Tensor> all{rows};
  const auto add = [&](const at::Tensor& of_sentences) {
    all.push_back(of_sentences.index_select(0, sequence));
  };
  if (style_) add(style_->forward(input.style, sentences));
  if (speakers_) {
    TORCH_CHECK(input.speakers.defined() && input.speakers.numel() == sentences,
                "[synthesis] the model has several speakers: give one for each of ", sentences,
                " sentences");
    add(speakers_->forward(input.speakers, {}, {}, nn::RowScale::kOne));
  }
  return at::cat(all, 1);
}

}  // namespace stretto::models
