#pragma once

#include <memory>

#include "experiment/load_experiment.h"
#include "runs/initial_weights.h"
#include "tasks/family.h"
#include "text/tokenizer.h"

namespace stretto::tasks {

/// The one tokenizer of a run whose task reads encoded texts.
struct RunTokenizer {
  std::shared_ptr<const text::Tokenizer> tokenizer;
  Assets assets;  ///< its files, and no others
};

/// The tokenizer of a new run: that which its configuration names, else that of the run that
/// `train.init_from` or `loss.teacher` names, else a new one, trained on this text. With
/// `train.init_vocabulary = "match"` the other run's only has to be there. Throws as
/// first_tokenizers() of translation does (families/translation/engine/initial_run.h).
RunTokenizer first_tokenizer(const experiment::LoadedExperiment& experiment,
                             text::LineSource& training_text);

/// The same with the run that `train.init_from` names already opened.
RunTokenizer first_tokenizer(const experiment::LoadedExperiment& experiment,
                             const runs::InitialRun& run, text::LineSource& training_text);

/// From the files of a run folder. Texts of a causal stack stand behind a separator
/// (text/behind_separator.h). Throws as text::load_tokenizers() does.
RunTokenizer load_tokenizer(const experiment::Experiment& experiment, const Assets& assets);

}  // namespace stretto::tasks
