#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiment/load_experiment.h"
#include "runs/initial_weights.h"
#include "text/tokenizer.h"

/// What a run of any family takes over of another run's tokenizer: of the one that
/// `train.init_from` names, or of its teacher.
namespace stretto::tasks {

/// A line of the log: whose tokenizer it is, and which keys of the configuration, that would train
/// one, yield to it.
void tell_taken_tokenizer(const experiment::LoadedExperiment& loaded, const std::string& of);

/// The tokenizers of `train.init_from`, told as above. Throws Error(kUsage) where it has none, and
/// as load_tokenizers() does.
text::TokenizerPair taken_tokenizers(const experiment::LoadedExperiment& experiment,
                                     const runs::InitialRun& run,
                                     const text::TokenizerOptions& options);

/// `train.init_vocabulary = "match"`: for each id of `now` the row of the same piece in `before`,
/// or -1. The log says how many begin anew, and lists the first of them.
/// @param side  "source ", "target " or, of a single vocabulary, empty
std::vector<int64_t> matched_rows(const text::Tokenizer& now, const text::Tokenizer& before,
                                  const std::string& side);

/// `train.init_vocabulary = "match"` needs the other run's tokenizer: Error(kUsage) without one.
/// Asked before text is read, which may take long.
void require_pieces(const runs::InitialRun& run);

}  // namespace stretto::tasks
