#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/documents/stream_columns.h"
#include "families/language_model/engine/language_model.h"
#include "families/language_model/engine/language_model_family.h"
#include "families/language_model/engine/scored_text.h"
#include "families/language_model/language_model_options.h"
#include "models/packed.h"
#include "tests/base/temp_dir.h"
#include "tests/data/documents/animal_lines.h"
#include "tests/tasks/train_family.h"

/// A small language model and its text, for tests of its training and its scores.
namespace stretto::tasks {

/// Lines in which an animal tells what it does, read by either kind of models.
class LanguageModelTest : public ::testing::Test {
 protected:
  LanguageModelTest() { choose("transformer"); }

  void choose(const std::string& kind) {
    experiment_.options.task = experiment::LanguageModelOptions{};
    auto& own = sections();
    own.data.train = {folder_.write("train.txt", testing::animal_lines(300, 1))};
    own.data.valid = {folder_.write("valid.txt", testing::animal_lines(30, 2))};
    own.data.format = "lines";
    own.data.max_text_tokens = 12;
    own.data.max_tokens = 96;
    own.data.lanes = 4;
    own.data.bptt = 10;
    own.data.cache_dir = (folder_ / "cache").string();
    own.tokenizer.type = "word";
    own.eval.max_tokens = 64;
    if (kind == "lstm") {
      models::CausalLstmModelOptions lstm;
      lstm.num_layers = 2;
      lstm.d_model = lstm.hidden_dim = 16;
      lstm.embedding_dropout = lstm.input_dropout = lstm.hidden_dropout = 0;
      lstm.output_dropout = lstm.weight_drop = lstm.activation_reg = lstm.temporal_reg = 0;
      own.model = lstm;
    } else {
      models::CausalTransformerOptions transformer;
      transformer.preset = "none";
      transformer.num_layers = 1;
      transformer.d_model = 16;
      transformer.num_heads = 2;
      transformer.max_positions = 512;
      transformer.dropout = 0;
      own.model = transformer;
    }
    assets_.clear();
  }

  experiment::LanguageModelOptions& sections() {
    return experiment_.options.task.as<experiment::LanguageModelOptions>();
  }

  std::unique_ptr<LanguageModelTask> make_task() {
    if (assets_.empty()) assets_ = family_.first_assets(experiment_);
    auto task = std::make_unique<LanguageModelTask>(experiment_.options, assets_, CommandContext{});
    task->model().eval();
    return task;
  }
  static models::CausalModel& model_of(LanguageModelTask& task) {
    return dynamic_cast<models::CausalModel&>(task.model());
  }
  ScoredText valid_text() {
    return open_scored_text(experiment_.options,
                            *load_tokenizer(experiment_.options, assets_).tokenizer,
                            sections().data.valid, "data.valid");
  }
  double valid_nll(LanguageModelTask& task) {
    const TextScore score =
        score_text(model_of(task), sections(), valid_text(), "validation text", {});
    return score.mean_nll();
  }

  /// -log p of the tokens behind these inputs, from the beginning of a text: [N].
  static at::Tensor nll_of(models::CausalModel& model, const std::vector<int64_t>& inputs,
                           const std::vector<int64_t>& next) {
    const at::NoGradGuard no_grad;
    data::PackedTokens tokens;
    tokens.append(inputs);
    const auto pass = model.forward(models::pack(tokens, nullptr, at::kCPU), {}, {});
    const at::Tensor log_probs = model.head().log_probs(pass.rows);
    const at::Tensor labels = torch::tensor(next).unsqueeze(1);
    return -log_probs.gather(1, labels).squeeze(1).to(at::kDouble);
  }

  static std::vector<int64_t> ids_of(std::span<const int64_t> ids) {
    return {ids.begin(), ids.end()};
  }

  /// All tokens of a text, with separators, and a separator in front.
  static std::vector<int64_t> stream_of(const data::Documents& documents) {
    std::vector<int64_t> ids;
    documents.append(documents.num_ids() - 1, documents.num_ids(), ids);
    documents.append(0, documents.num_ids(), ids);
    return ids;
  }

  train::TrainerSetup train(int64_t updates) {
    return train_family(family_, experiment_, folder_ / "run",
                        {.updates = updates, .eval_every = 40});
  }

  const Family& family_ = language_model_family();
  testing::TempDir folder_;
  experiment::LoadedExperiment experiment_;
  Assets assets_;
};

/// What holds of both kinds of models.
class LanguageModelKinds : public LanguageModelTest,
                           public ::testing::WithParamInterface<const char*> {};

}  // namespace stretto::tasks
