#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiment/load_experiment.h"

/// What the command line asks of runs whose model encodes texts; no libtorch.
namespace stretto::tasks {

/// `stretto embed`
struct EmbedRequest {
  experiment::LoadedExperiment experiment;
  std::string run_directory;
  std::string checkpoint;          ///< one, as runs/choose_checkpoint.h reads it
  std::vector<std::string> files;  ///< as data::open_bytes() takes them, "-" = stdin; empty = stdin
  std::string output;              ///< a .npy file; empty = JSON on stdout
  std::string pooling = "mean";    ///< or "cls"
  bool normalize = false;
  int64_t batch_tokens = 0;  ///< of one pass; 0 = as fits the device
  int64_t max_tokens = 0;    ///< of a line, special ones included; 0 = data.max_text_tokens
  bool stats = false;        ///< at the end lines, batches, tokens and time on stderr
};

}  // namespace stretto::tasks
