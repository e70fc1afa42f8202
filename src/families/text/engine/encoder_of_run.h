#pragma once

#include <memory>
#include <string>

#include "families/text/engine/run_tokenizer.h"
#include "models/text_model.h"
#include "runs/run_folder.h"

namespace stretto::tasks {

/// The encoder of a run without its head, for reading, and its tokenizer.
struct EncoderOfRun {
  RunTokenizer tokenizer;
  std::shared_ptr<models::TextModel> model;  ///< without a head and without a pooler
};

/// @param checkpoint  one, as runs/choose_checkpoint.h reads it; empty = best, else last
/// Writes nothing. Throws Error(kUsage) when the run has none, Error(kBadData) when it is damaged
/// or does not fit its model or the run's tokenizer.
EncoderOfRun load_encoder(const experiment::Experiment& experiment, const runs::RunFolder& folder,
                          const std::string& checkpoint, at::Device device);

}  // namespace stretto::tasks
