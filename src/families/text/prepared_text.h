#pragma once

#include <memory>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "text/tokenizer.h"

/// What TaskRules::prepare_data() of families of text has in common.
namespace stretto::experiment {

/// Whether these files are to be prepared: they are small, and neither the tokenizer nor labels are
/// those of another run (`train.init_from`).
bool is_prepared(const Experiment& experiment, const std::vector<std::string>& files);

/// The tokenizer with which such a run will encode: the one that the configuration names, or one
/// that is trained on these lines. Throws as data::open_tokenizers() and
/// TextRules::require_tokenizer().
std::shared_ptr<const text::Tokenizer> prepared_tokenizer(const Experiment& experiment,
                                                          text::LineSource& lines);

}  // namespace stretto::experiment
