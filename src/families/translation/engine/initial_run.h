#pragma once

#include <vector>

#include "experiment/load_experiment.h"
#include "models/seq2seq_model.h"
#include "runs/initial_weights.h"
#include "text/tokenizer.h"

namespace stretto::tasks {

/// Tokenizers of a new run: those that its configuration names, else those of the run that
/// `train.init_from` or `loss.teacher` names, else new ones, trained on its text. Keys of the
/// configuration that would train one yield to another run's tokenizer, and a line of the log says
/// which were given.
///
/// With `train.init_vocabulary = "match"` the other run's tokenizer only has to be there.
/// Throws Error(kUsage) when the configuration names another tokenizer than that of `init_from`,
/// names none and `init_from` has none, or is to match pieces that are not there; and as
/// open_initial_run() and make_tokenizers() do.
text::TokenizerPair first_tokenizers(const experiment::LoadedExperiment& experiment);

/// The same with the run that `train.init_from` names already opened.
text::TokenizerPair first_tokenizers(const experiment::LoadedExperiment& experiment,
                                     const runs::InitialRun& run);

/// `train.init_vocabulary = "match"`: the rows that each vocabulary table of a model, by each of
/// its names, takes from another run's table, piece by piece. The log says how many of each side's
/// pieces begin anew, and lists the first of them. Throws Error(kUsage) when the other run's
/// tokenizer is not there.
std::vector<runs::MatchedTable> matched_tables(const runs::InitialRun& run,
                                               const text::TokenizerPair& tokenizers,
                                               const models::Seq2SeqModel& model);

}  // namespace stretto::tasks
