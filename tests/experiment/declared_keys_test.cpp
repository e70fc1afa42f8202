// What the keys of an experiment say of themselves where they are declared (config::Meta).
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "experiment/experiment_schema.h"

namespace stretto::experiment {
namespace {

using KeyPaths = std::vector<std::string>;

bool is_in(const KeyPaths& paths, const std::string& path) {
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

/// look(key) for each key, also of parts that are not chosen, and of entries that lists may have.
void for_each_declared(const config::Schema& schema,
                       const std::function<void(const config::Key&)>& look) {
  for (const auto& key : schema.keys) look(key);
  for (const auto& section : schema.switches) {
    for (const auto& part : section.alternatives) for_each_declared(*part.schema, look);
  }
  for (const auto& list : schema.lists) for_each_declared(*list.entry, look);
}

/// look(task, key) for each key of an experiment of each family.
void for_each_key_of_tasks(
    const std::function<void(const std::string&, const config::Key&)>& look) {
  for (const auto& task : TaskChoice::names()) {
    Experiment experiment;
    ASSERT_TRUE(experiment.task.select(task));
    for (const auto& key : experiment_schema(experiment).keys) look(task, key);
  }
}

TEST(DeclaredKeys, OfEachProcessAreThreadsPrefetchingAndWhatRankZeroWrites) {
  const KeyPaths own{"run.name",           "run.threads", "data.prefetch",      "data.threads",
                     "report.tensorboard", "report.html", "report.html_seconds"};
  for_each_key_of_tasks([&](const std::string& task, const config::Key& key) {
    EXPECT_EQ(key.meta.per_process, is_in(own, key.path)) << task << ": " << key.path;
  });
}

TEST(DeclaredKeys, OfScoresAreValidationDecodingScoringAndStops) {
  const KeyPaths others{
      "train.max_steps", "train.max_epochs",    "train.max_hours",    "train.patience",
      "data.version",    "data.answer_split",   "tokenizer.subwords", "compress.quantise.validate",
      "train.stop",      "train.size_exponent", "run.packed_weights"};
  for_each_key_of_tasks([&](const std::string& task, const config::Key& key) {
    if (key.path == "decode.continuous") return;  // scores are the same either way
    const bool shapes_scores = key.path.starts_with("eval.") || key.path.starts_with("decode.") ||
                               key.path.starts_with("augment.test_") || is_in(others, key.path);
    EXPECT_EQ(key.meta.change == config::Change::kScoring, shapes_scores)
        << task << ": " << key.path;
  });
}

TEST(DeclaredKeys, FoldersStandForFilesInListsOfPlainTextAndOfNoises) {
  const KeyPaths lists{"data.train", "data.valid", "data.test"};
  const KeyPaths of_sounds{"augment.impulse_files", "augment.noise_files"};
  for_each_key_of_tasks([&](const std::string& task, const config::Key& key) {
    const bool is_of_text = task == "language_model" || task == "masked_lm";
    EXPECT_EQ(key.meta.takes_folders,
              (is_of_text && is_in(lists, key.path)) || is_in(of_sounds, key.path))
        << task << ": " << key.path;
    EXPECT_TRUE(!key.meta.takes_folders || key.meta.is_path) << key.path;
  });
}

TEST(DeclaredKeys, HiddenInShapesAreConnectionsHeadsNormsActivationsAndPositions) {
  const KeyPaths of_parts{"num_heads", "head_dim",      "activation", "norm",
                          "positions", "residual_from", "context_to", "initial_state"};
  const KeyPaths of_translation{"model.norm",       "model.norm_layer", "model.parallel_residual",
                                "model.activation", "model.positions",  "model.adapter.activation"};
  const KeyPaths of_text{"model.num_heads", "model.head_dim",          "model.activation",
                         "model.norm",      "model.norm_layer",        "model.norm_epsilon",
                         "model.positions", "model.adapter.activation"};
  // A language model has those of angles, windows, caps and groups of tokens too.
  const KeyPaths of_language{"model.num_heads",
                             "model.head_dim",
                             "model.activation",
                             "model.norm",
                             "model.norm_layer",
                             "model.norm_epsilon",
                             "model.positions",
                             "model.parallel_residual",
                             "model.sliding_window",
                             "model.full_attention_every",
                             "model.attention_softcap",
                             "model.logit_softcap",
                             "model.embedding_scale",
                             "model.adapter.activation",
                             "model.adaptive_softmax.cutoffs"};
  const KeyPaths of_pictures{
      "augment.mean",     "augment.std",        "model.version",    "model.num_heads",
      "model.activation", "model.norm_epsilon", "model.head_scale", "model.adapter.activation"};
  // Labels are read from the stack of either.
  KeyPaths of_labels = of_language;
  of_labels.insert(of_labels.end(), of_text.begin(), of_text.end());
  Experiment defaults;
  const auto schema = experiment_schema(defaults);
  const auto* tasks = schema.find_switch("task");
  ASSERT_NE(tasks, nullptr);
  size_t hidden = 0;
  for (const auto& task : tasks->alternatives) {
    const KeyPaths& of_model = task.name == "translation"            ? of_translation
                               : task.name == "language_model"       ? of_language
                               : task.name == "text_classification"  ? of_labels
                               : task.name == "image_classification" ? of_pictures
                                                                     : of_text;
    for_each_declared(*task.schema, [&](const config::Key& key) {
      const std::string& path = key.path;
      if (task.name.starts_with("speech_")) {  // each kind of model says it of its own keys
        EXPECT_TRUE(!key.meta.hidden_in_shapes || path.starts_with("model.") ||
                    path.starts_with("features."))
            << path;
        return;
      }
      const bool of_part = path.starts_with("model.encoder") || path.starts_with("model.decoder") ||
                           path.starts_with("model.heads.");
      const std::string leaf = path.substr(path.rfind('.') + 1);
      const bool hidden_key = is_in(of_model, path) || path.starts_with("model.rope.");
      EXPECT_EQ(key.meta.hidden_in_shapes, of_part ? is_in(of_parts, leaf) : hidden_key)
          << task.name << ": " << path;
      if (key.meta.hidden_in_shapes) ++hidden;
    });
  }
  EXPECT_GE(hidden, 40u);
  for (const auto& key : schema.keys) {
    EXPECT_TRUE(!key.meta.hidden_in_shapes || key.path.starts_with("model.")) << key.path;
  }
}

}  // namespace
}  // namespace stretto::experiment
