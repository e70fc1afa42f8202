#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>

#include "data/batch.h"
#include "decoding/stream_model.h"
#include "models/decoder.h"
#include "models/head.h"

namespace stretto::models {

/// What a search over a vocabulary is made of where sources come and go.
struct VocabularyStreams {
  std::shared_ptr<torch::nn::Module> model;  ///< stays alive for as long as its parts are used
  std::function<Encoded(const data::PackedTokens& src)> encode;
  std::unique_ptr<StreamDecoder> steps;
  std::shared_ptr<Head> head;
};

/// An encoder, a decoder's steps and the head behind them, as search asks for them. Nothing has a
/// gradient. Of sources with candidates, these classes of the head are laid out once, and a step
/// projects to them alone.
std::unique_ptr<decoding::StreamModel> streams_of_vocabulary(VocabularyStreams parts);

}  // namespace stretto::models
