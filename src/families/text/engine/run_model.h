#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "families/text/engine/run_tokenizer.h"
#include "losses/teacher.h"
#include "models/text_model.h"
#include "runs/run_folder.h"
#include "tasks/family.h"

namespace stretto::tasks {

/// What stands behind the encoder, as a family wants it.
struct TextHead {
  models::TextHeadKind kind = models::TextHeadKind::kNone;
  int64_t num_labels = 0;                              ///< of kLabels
  double label_smoothing = 0;                          ///< of kMaskedTokens
  std::optional<losses::TeacherWeights> teacher = {};  ///< of kMaskedTokens, while it trains
};

/// Patterns of tensors that are a task's (train::Task::replaceable_parts): heads of texts, and what
/// a language model predicts tokens with.
inline std::vector<std::string> text_parts_of_tasks() {
  return {"head.*", "output.*"};
}

/// What the model of an experiment is made from, for a tokenizer with so many ids.
models::TextModelSetup text_model_setup(const experiment::Experiment& experiment, int64_t num_ids,
                                        const TextHead& head, at::Device device);

/// The network that an experiment describes. Throws Error(kUsage) where its parts do not fit
/// together.
std::shared_ptr<models::TextModel> make_run_model(const experiment::Experiment& experiment,
                                                  const text::Tokenizer& tokenizer,
                                                  const TextHead& head, at::Device device,
                                                  FirstWeights weights = FirstWeights::kDrawn);

/// Throws Error(kUsage) unless the model has a vector for each segment of texts as the tokenizer's
/// template places them: of pairs where the experiment's texts are pairs. A model without segments
/// reads none.
void require_segments(const experiment::Experiment& experiment, const text::Tokenizer& tokenizer);

/// Throws Error(kUsage) for an experiment with model.head = "none".
void require_head(const experiment::Experiment& experiment);

/// Models of a run for reading: its tokenizer, its other files, and one network for each
/// checkpoint, which may be another run's (tasks/checkpoint_experiment.h).
struct LoadedTextRun {
  RunTokenizer tokenizer;
  Assets assets;  ///< all of them
  std::vector<std::shared_ptr<models::TextModel>> models;
  std::vector<std::filesystem::path> checkpoints;
};

/// The head of a run's model: the number of labels, for instance, stands in its files.
using HeadOfRun =
    std::function<TextHead(const experiment::Experiment& experiment, const Assets& assets)>;

/// As load_checkpoints() reads them. Throws as it does, Error(kUsage) for a model without a head,
/// and Error(kBadData) for one that does not fit the run's other files.
LoadedTextRun load_text_run(const experiment::Experiment& experiment, const runs::RunFolder& folder,
                            const std::string& checkpoints, const HeadOfRun& head,
                            at::Device device);

}  // namespace stretto::tasks
