#pragma once

#include <cstdint>
#include <string>

#include "experiment/experiment.h"
#include "experiment/family_values.h"
#include "text/tokenizer_options.h"

/// What `stretto plan` asks of a family whose samples are text.
namespace stretto::experiment {

/// What an update is made of.
struct PlannedText {
  int64_t max_tokens = 0, max_samples = 0;  ///< bounds of a micro-batch; 0 samples = any number
  text::TokenizerOptions tokenizer;
  double sample_tokens = 0;       ///< of a sample, where max_samples bounds a micro-batch
  std::string sample_note = {};   ///< what is to be said of them
  std::string tokens = "tokens";  ///< what a micro-batch is counted in
  bool ties_output = false;       ///< an embedding is the output projection too
  int64_t d_model = 0;
};

/// Rows of the embedding tables of what a model reads and writes, already rounded up to
/// tokenizer.vocab_multiple. A model with one table has `output`.
struct TableRows {
  int64_t input = 0, output = 0;
};

/// When the gradients of tables are ready. The rest is ready evenly over backward.
///
/// The output projection's is ready when backward begins, since its operator makes it with the
/// loss; but what is looked up in the same table is added later, and with tied embeddings that is
/// at the end. Where looked-up rows are summed apart (parallel/embedding_gradients.h: on a CPU,
/// with all_reduce and overlap) the dense part need not wait for them.
struct TableGradients {
  int64_t first_parameters = 0, late_parameters = 0;
  double lookups = 0;  ///< in tables whose rows are summed apart, for one token that is counted
};

struct FamilyPlan {
  PlannedText (*text)(const Experiment& experiment);
  TableGradients (*tables)(const Experiment& experiment, const TableRows& rows, bool rows_apart);
  /// The struct in which the family's engine takes the sizes of a model (tasks::CostRequest).
  FamilyValues (*sizes)(const TableRows& rows);
};

}  // namespace stretto::experiment
