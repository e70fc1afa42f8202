#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/field.h"
#include "experiment/experiment.h"
#include "experiment/family_spec.h"

/// Labels of lines of text, such as the language of each; no libtorch.
namespace stretto::experiment {

/// `[data]` of labelled lines.
struct LabelDataOptions {
  std::vector<std::string> train, valid, test;
  int64_t max_samples = 32;
  int64_t max_bytes = 0;
  int64_t prefetch = 8;

  static auto fields() {
    using namespace config;
    using O = LabelDataOptions;
    const Meta path{.is_path = true};
    const Meta free_path{.change = Change::kFree, .is_path = true};
    return Fields{
        field(&O::train, "train", "files for training: each line is a label, a tab and a text",
              any(), path)
            .also_called({"train_file", "train_files"}),
        field(&O::valid, "valid", "files for validation", any(), path)
            .also_called({"dev", "valid_files"}),
        field(&O::test, "test", "files that `stretto eval` takes by default", any(), free_path),
        field(&O::max_samples, "max_samples", "bound of lines in one micro-batch", at_least(1),
              {.unit = "lines"})
            .also_called({"batch_size", "max_batch_size"}),
        field(&O::max_bytes, "max_bytes",
              "bound of bytes in one micro-batch, beside max_samples; 0 = none", at_least(0),
              {.unit = "bytes"}),
        field(&O::prefetch, "prefetch", "micro-batches that are made ready ahead of the model",
              between(1, 1024),
              {.unit = "micro-batches", .change = Change::kFree, .per_process = true}),
    };
  }
};

/// `[model]` of labelled lines.
struct LabelModelOptions {
  int64_t d_model = 64;

  static auto fields() {
    using namespace config;
    return Fields{
        field(&LabelModelOptions::d_model, "d_model", "width of the vector of a byte",
              between(1, 65536))
            .also_called({"hidden_size", "embedding_dim"}),
    };
  }
};

/// The sections of a configuration with `task.name = "labelling"`, beside those that every
/// experiment has.
struct LabellingOptions {
  static constexpr const char* kName = "labelling";

  LabelDataOptions data;
  LabelModelOptions model;

  static auto fields() {
    using config::field;
    using O = LabellingOptions;
    return config::Fields{
        field(&O::data, "data", "labelled lines of text").also_called({"dataset", "corpus"}),
        field(&O::model, "model", "the network").also_called({"network", "architecture"}),
    };
  }
};

/// Throw std::bad_variant_access for another family.
inline const LabellingOptions& labelling_of(const Experiment& experiment) {
  return experiment.task.as<LabellingOptions>();
}
inline LabellingOptions& labelling_of(Experiment& experiment) {
  return experiment.task.as<LabellingOptions>();
}

/// Options that `stretto eval` and `stretto infer` have for this family alone.
struct LabelEvalOptions {
  int64_t decimals = 4;  ///< of each score
};
struct LabelInferOptions {
  bool with_text = false;  ///< the line behind its label
};

/// The key of a score: the list of scores describes it, and its values are named by it.
inline constexpr const char* kLabelAccuracy = "accuracy";

/// What the family is called, its keys, its rules, and how its numbers are shown.
FamilySpec labelling_spec();

}  // namespace stretto::experiment
