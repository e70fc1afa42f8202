#include <iostream>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/log.h"
#include "base/named_output.h"
#include "base/text.h"
#include "data/labelled/labelled_samples.h"
#include "distributed/agreement.h"
#include "families/text/engine/eval_files.h"
#include "families/text/engine/run_model.h"
#include "families/text/text_sections.h"
#include "families/text_classification/engine/commands.h"
#include "families/text_classification/engine/text_classification.h"
#include "families/text_classification/requests.h"
#include "families/text_classification/text_classification_options.h"
#include "tasks/finite_answers.h"
#include "tasks/left_out.h"
#include "tasks/load_checkpoints.h"

namespace stretto::tasks {
namespace {

// What is predicted: a label and its probability, or a value.
std::string prediction_line(const LabelOutputs& outputs, const data::Labels* labels,
                            std::span<const double> found) {
  if (labels == nullptr) return fixed(found.front(), 6);
  std::vector<std::string> names, probabilities;
  for (const int64_t label : chosen_labels(outputs.target(), found)) {
    names.push_back(labels->name(label));
  }
  for (const double p : found) probabilities.push_back(fixed(p, 6));
  return join(names, ",") + "\t" + join(probabilities, "\t");
}

void write_predictions(const std::string& path, const LabelOutputs& outputs,
                       const data::Labels* labels, const LabelPredictions& predictions,
                       int64_t count) {
  if (path.empty()) return;
  std::string lines;
  for (int64_t i = 0; i < count; ++i) {
    lines += prediction_line(outputs, labels, predictions.of(i)) + "\n";
  }
  write_named_output(path, lines);
}

void print_scores(bool as_json, const std::vector<train::Score>& scores,
                  const std::string& checkpoint, const std::string& set, int64_t samples) {
  if (as_json) {
    nlohmann::ordered_json json{{"set", set}, {"checkpoint", checkpoint}};
    for (const auto& score : scores) json[score.name] = score.value;
    json["samples"] = samples;
    std::cout << json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
    return;
  }
  for (const auto& score : scores) std::cout << score.name << " " << fixed(score.value, 4) << "  ";
  std::cout << "texts " << with_thousands(samples) << std::endl;
}

}  // namespace

int evaluate_labels(const EvalRequest& request, const CommandContext& context) {
  const auto& experiment = request.experiment.options;
  require_head(experiment);  // whatever text there is
  const auto& options = experiment.task.as<experiment::TextClassificationOptions>();
  const auto& asked = request.own.as<TextClassificationEvalFiles>();
  const auto texts = eval_files(asked.data, options.data.test, options.data.valid);
  const auto folder = runs::RunFolder::open(request.run_directory);
  const auto& group = context.group;
  const auto run =
      load_text_run(experiment, folder, request.checkpoint, label_head_of_run, context.device);
  const auto labels = labels_of(run.assets, options);
  const data::Labels* names = labels ? &*labels : nullptr;
  const auto set =
      data::open_labelled_samples(texts.paths, options.data, *run.tokenizer.tokenizer, names);
  const auto& found = set->counts();
  const std::string checkpoint = checkpoint_names(run.checkpoints, folder);
  if (group.is_root()) {
    log::info("checkpoint " + checkpoint + ", " + texts.name + " text");
    if (found.cut_samples > 0) {
      log::warn(counted(found.cut_samples, "text") + " cut to data.max_text_tokens: " +
                counted(found.cut_tokens, "token") + " were not read");
    }
    for (const auto& place : found.samples_as_header) warn_of_sample_as_header(place);
    warn_of_left_out(found.bad);
    if (found.skipped > 0) {
      log::info(counted(found.skipped, "row") + " left out (data.skipped_label)");
    }
  }
  distributed::require_agreement(
      group, {{"checkpoint", checkpoint + " " + checkpoint_hash(run.checkpoints)},
              {"text", hex64(found.hash) + " of " + counted(set->size(), "sample")}});
  // Weights of classes shape training; balanced ones would need its text.
  const bool listed = options.loss.class_weights == "list";
  const LabelOutputs outputs(options, names,
                             listed ? class_weights(options, names, {}) : std::vector<double>{});
  const auto batches = label_batches(set, options.eval, context.device);
  const auto predictions =
      predict_labels(run.models, outputs, batches,
                     {.device = context.device,
                      .group = group,
                      .loading = experiment::text_sections(experiment).loading});
  for (int64_t i = 0; i < set->size(); ++i) {
    if (!predictions.overflowed(i)) continue;
    refuse_not_finite(texts.name + ": text " + with_thousands(i + 1), "its prediction",
                      request.run_directory);
  }
  if (!group.is_root()) return 0;  // all have the same result, one says it
  write_predictions(asked.predictions, outputs, names, predictions, set->size());
  print_scores(request.json, label_scores(outputs, predictions, *set), checkpoint, texts.name,
               set->size());
  return 0;
}

}  // namespace stretto::tasks
