#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "experiment/score_spec.h"

/// What the linter (lint/rules.h) asks of a family, in terms of any family.
namespace stretto::experiment {

/// Sizes that files tell without a tokenizer. 0 = not known.
struct FileSizes {
  int64_t epoch = 0;    ///< of training, about, in what TaskRules::micro_batch() counts
  int64_t classes = 0;  ///< entries of a vocabulary, or labels: what label smoothing spreads over
  int64_t validation = 0;  ///< samples of `eval.best_metric`, counted up to kCountedSamples
};

/// No score needs more samples to be trusted.
inline constexpr int64_t kCountedSamples = 500;

/// The samples that `eval.best_metric` is computed on.
struct ScoredSamples {
  int64_t count = 0;       ///< 0 = not known
  bool is_guess = false;   ///< it may be off twofold
  std::string unit;        ///< "sentence"
  std::string key;         ///< "data.valid", or the key that is their number
  bool is_number = false;  ///< whether the key is
};

/// Label smoothing, and the classes that it spreads over.
struct LabelSmoothing {
  std::string key;        ///< "loss.label_smoothing"; empty = the family has none
  double share = 0;       ///< of the probability, for all classes but the right one
  int64_t classes = 0;    ///< 0 = not known
  std::string one, many;  ///< "entry of the vocabulary", "entries of the vocabulary"
};

/// The samples of a micro-batch.
struct MicroBatchSamples {
  std::string key;        ///< "data.max_samples"
  int64_t most = 0;       ///< its value; 0 = any number
  std::string unit;       ///< "sentence"
  double usual_size = 0;  ///< of one, about, in what micro_batch() counts; 0 = not known
};

/// A part whose layers norm each of their steps over the units of a layer.
struct NormedUnits {
  std::string key;    ///< that gives the number of units, "model.hidden_dim"
  int64_t units = 0;  ///< of the layer that has fewest
};

/// An embedding that is the output projection too, while there is no other.
struct TiedEmbedding {
  std::string setting;  ///< "model.tie_embeddings = \"all\""
  std::string others;   ///< with which there is another one
};

/// What a family says of an experiment whose rules hold (experiment/task_rules.h). By default it
/// has nothing of the kind.
class TaskFacts {
 public:
  virtual ~TaskFacts() = default;

  /// What messages call the data, behind "training": "text", "recordings".
  virtual std::string name_of_data() const { return "data"; }
  /// Reads files, though no long ones to their end. What is not there, or wrong, is not known.
  virtual FileSizes file_sizes(const Experiment& /*experiment*/) const { return {}; }
  virtual ScoredSamples scored_samples(const Experiment& /*experiment*/,
                                       const FileSizes& /*files*/) const {
    return {};
  }
  virtual LabelSmoothing label_smoothing(const Experiment& /*experiment*/,
                                         const FileSizes& /*files*/) const {
    return {};
  }
  virtual MicroBatchSamples samples_of_micro_batch(const Experiment& /*experiment*/) const {
    return {};
  }
  /// Outputs of which each has micro-batches of its own; 0 = all have the same.
  virtual int64_t num_output_heads(const Experiment& /*experiment*/) const { return 0; }
  /// The keys that choose in the place of one, such as those of several encoders; else that one.
  virtual std::vector<std::string> deciding_keys(const Experiment& /*experiment*/,
                                                 const std::string& deciding_key) const {
    return {deciding_key};
  }
  /// Nothing where an embedding is no output projection.
  virtual std::optional<TiedEmbedding> tied_embedding(const Experiment& /*experiment*/) const {
    return std::nullopt;
  }
  /// The key that makes each part of a layer start by adding nothing, where each ends in a norm
  /// whose gain starts at 1; else empty.
  virtual std::string zero_gain_key(const Experiment& /*experiment*/) const { return {}; }
  /// The key by which training runs each micro-batch twice, with other dropout; empty where it does
  /// not.
  virtual std::string two_passes_key(const Experiment& /*experiment*/) const { return {}; }
  /// The parts whose gradient goes through a norm of each step; empty where there are none.
  virtual std::vector<NormedUnits> normed_units(const Experiment& /*experiment*/) const {
    return {};
  }
  /// What gives a model batch norm, "model.norm_layer = \"batch_norm\""; empty where nothing does.
  virtual std::string batch_norm_setting() const { return {}; }
};

}  // namespace stretto::experiment
