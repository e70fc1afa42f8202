#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>

#include "decoding/step_model.h"
#include "models/decoder.h"
#include "models/head.h"

namespace stretto::models {

/// What a search over a vocabulary is made of.
struct VocabularySteps {
  std::shared_ptr<torch::nn::Module> model;  ///< stays alive for as long as its parts are used
  std::unique_ptr<StepDecoder> steps;
  std::shared_ptr<Head> head;
  int64_t lanes = 0;  ///< of all sources together
};

/// A decoder's steps with the head behind them, as search asks for them: with the memory of an
/// encoder, or of a language model without one. Nothing has a gradient.
/// step() throws c10::Error for another number of tokens than there are lanes.
std::unique_ptr<decoding::StepModel> steps_of_vocabulary(VocabularySteps parts);

}  // namespace stretto::models
