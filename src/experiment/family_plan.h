#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/family_values.h"
#include "text/tokenizer_options.h"

/// What `stretto plan` asks of a family.
namespace stretto::experiment {

/// The work of a micro-batch, in the units that the family's throughput counts (report::RateStyle):
/// target tokens, images, seconds of sound. models::ModelCost has the operations of one unit.
struct PlannedWork {
  double units = 0;          ///< of a micro-batch, about
  std::string assumed = {};  ///< what that rests on, in words; empty = the configuration states it
  std::string key = {};      ///< that makes micro-batches smaller: "data.max_tokens"
};

/// The bounds of a micro-batch; the one that is met first ends it.
struct WorkBounds {
  std::string unit;              ///< "target tokens"
  std::string key;               ///< of the bound in units: "data.max_tokens"
  int64_t max_units = 0;         ///< its value, at least 1
  int64_t max_samples = 0;       ///< `data.max_samples`; 0 = any number
  double sample_units = 0;       ///< of a sample, about, where max_samples bounds a micro-batch
  std::string sample_note = {};  ///< what is to be said of them
};

/// A micro-batch with nine tenths of max_units, or of max_samples where these have fewer units.
PlannedWork work_within(const WorkBounds& bounds);

/// The embedding tables of a model, which have a row for each piece of a tokenizer.
struct PlannedTables {
  text::TokenizerOptions tokenizer;
  bool ties_output = false;  ///< an embedding is the output projection too
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
  double lookups = 0;  ///< in tables whose rows are summed apart, for one unit of work
};

/// What is asked of a family whose models have tables.
struct TablePlan {
  PlannedTables (*tables)(const Experiment& experiment);
  TableGradients (*gradients)(const Experiment& experiment, const TableRows& rows, bool rows_apart);
  /// The struct in which the family's engine takes the sizes of a model (tasks::CostRequest).
  FamilyValues (*sizes)(const TableRows& rows);
  /// Ids of a tokenizer that training makes of its text, where they are characters or words, of
  /// which tokenizer.vocab_size is only the most. Nothing where that is not known. Reads the text.
  std::optional<int64_t> (*ids_of_text)(const Experiment& experiment) = nullptr;
};

/// A key that makes a model wider or deeper.
struct ShapeKey {
  std::string key;       ///< "model.d_model"
  int64_t value = 0;     ///< as the configuration has it, of a preset too; at least 1
  int64_t multiple = 1;  ///< values are multiples of it: of the heads, where these divide it
  int64_t least = 1;     ///< no smaller value: as many layers as a list has entries for
};

/// What can be changed to make a model larger or smaller. Heads, kernels and the like stay.
struct ModelShape {
  std::vector<ShapeKey> widths, depths;
  /// Products that a value which a layer gives is the sum of, about: memory for activations is
  /// operations over it. 0 = not known.
  double fan_in = 0;

  bool can_change() const { return !widths.empty() || !depths.empty(); }
};

/// The model with `width` and `depth` times what it has, as keys that replace those of the
/// configuration: "model.d_model=256". Values are rounded to their multiples, and are at least one.
std::vector<std::string> resized(const ModelShape& shape, double width, double depth);

/// The model whose widest part has `factor` times its width, for a factor below 1. Widths that are
/// close to it keep their proportion. Where the next one is more than eight times narrower, that
/// and all below stay until the widest has come down to them: a width that one key made far too
/// large does not take the others with it.
std::vector<std::string> narrowed(const ModelShape& shape, double factor);

struct FamilyPlan {
  PlannedWork (*work)(const Experiment& experiment);
  std::optional<TablePlan> tables = {};  ///< nothing: no size of the models comes from a tokenizer
  /// Null, or a shape without keys: only whoever plans knows other sizes.
  ModelShape (*shape)(const Experiment& experiment) = nullptr;
};

}  // namespace stretto::experiment
