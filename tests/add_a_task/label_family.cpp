#include "tests/add_a_task/label_family.h"

#include <iostream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/stdout.h"
#include "base/text.h"
#include "data/text_input.h"
#include "models/registry.h"
#include "optim/arena.h"
#include "optim/groups.h"
#include "runs/choose_checkpoint.h"
#include "runs/module_weights.h"
#include "runs/provenance.h"
#include "runs/run_folder.h"
#include "tasks/line_work.h"
#include "tests/add_a_task/label_task.h"
#include "tests/add_a_task/labelling_options.h"

namespace stretto::tasks {
namespace {

struct LabelRun {
  Labels labels;
  std::shared_ptr<LabelModel> model;
};

/// A run's labels, and its model with the weights of a checkpoint.
LabelRun load_label_run(const experiment::Experiment& experiment, const std::string& directory,
                        const std::string& selector, at::Device device) {
  const auto folder = runs::RunFolder::open(directory);
  const auto checkpoint = runs::open_checkpoint(folder.directory(), selector);
  const Assets assets = folder.read_assets();
  runs::require_same_tokenizer(checkpoint, runs::tokenizer_hashes(assets),
                               folder.directory() / "tokenizer");
  LabelRun run{.labels = labels_of(assets), .model = nullptr};
  run.model = make_label_model(experiment, run.labels, device);
  runs::load_weights(checkpoint, *run.model);
  run.model->eval();
  return run;
}

/// A line of the input of `stretto infer`.
struct AnsweredLine : WorkLine {
  LineLabel found = {};
};

/// What `stretto infer` does with lines; LineWork does the rest.
class LineLabels : public LineFamily<AnsweredLine> {
 public:
  LineLabels(const LabelRun& run, bool as_json) : run_(run), as_json_(as_json) {}

  void prepare(AnsweredLine& line) const override { line.num_tokens = std::ssize(line.input.text); }
  int64_t cost(const AnsweredLine& line) const override { return line.num_tokens + 1; }

  void run(std::span<AnsweredLine* const> lines,
           const std::function<void()>& /*beat*/) const override {
    data::PackedTokens texts;
    for (const AnsweredLine* line : lines) add_line(line->input.text, texts);
    const auto found = best_labels(*run_.model, texts);
    for (size_t i = 0; i < lines.size(); ++i) lines[i]->found = found[i];
  }

  bool is_finite(const AnsweredLine& line) const override { return line.found.is_finite; }

  void write(std::span<const AnsweredLine> lines) override {
    for (const AnsweredLine& line : lines) {
      const bool is_labelled = line.input.problem.empty();
      const std::string label =
          is_labelled ? run_.labels.at(static_cast<size_t>(line.found.number)) : "";
      std::cout << (as_json_ ? json_line({{"label", label}}) : shown_on_stdout(label) + "\n");
    }
  }

 private:
  const LabelRun& run_;
  const bool as_json_;
};

class LabelFamily : public Family {
 public:
  Assets first_assets(const experiment::LoadedExperiment& experiment) const override {
    return assets_of(find_labels(labelling_of(experiment.options).data.train));
  }

  std::unique_ptr<FamilyTask> make_task(const experiment::Experiment& experiment,
                                        const Assets& assets,
                                        const CommandContext& context) const override {
    return std::make_unique<LabelTask>(experiment, labels_of(assets), context);
  }

  int eval(const EvalRequest& request, const CommandContext& context) const override {
    const auto& data = labelling_of(request.experiment.options).data;
    const LabelRun run = load_label_run(request.experiment.options, request.run_directory,
                                        request.checkpoint, context.device);
    const auto lines = batches_to_score(std::make_shared<LinesByLength>(
        read_labelled_lines(data.test.empty() ? data.valid : data.test, run.labels)));
    if (lines->num_batches() == 0) {
      throw Error(ExitCode::kBadData, "there is no line to evaluate",
                  "name files of labelled lines in data.test");
    }
    const LabelScore score = score_lines(*run.model, *lines, context);
    if (!context.group.is_root()) return 0;  // all have the same result, one says it
    if (request.json) {
      std::cout << json_line({{"loss", score.loss}, {"accuracy", score.accuracy}});
    } else {
      std::cout << "loss " << fixed(score.loss, 4) << "  accuracy " << fixed(score.accuracy, 4)
                << "\n";
    }
    flush_stdout();
    return 0;
  }

  int infer(const InferRequest& request, const CommandContext& context) const override {
    const LabelRun run = load_label_run(request.experiment.options, request.run_directory,
                                        request.checkpoints, context.device);
    constexpr int64_t kBytesTogether = 4096;
    data::TextInput input(request.files);
    LineLabels labels(run, request.json);
    answer_lines(labels, input,
                 {.files = request.files,
                  .run = request.run_directory,
                  .device = context.device,
                  .batches = {.max_cost = kBytesTogether},
                  .words = {.answer = "the scores of this line", .problem = "it has no label"}});
    return 0;
  }

  std::string memory_advice(MemoryUse use) const override {
    return use == MemoryUse::kTrain ? "halve data.max_samples and double train.update_freq"
                                    : "stop what else takes the memory of this machine";
  }

  // What `check`, `plan` and patterns of names ask: a model without memory answers.
  std::vector<optim::TensorName> tensor_names(
      const experiment::Experiment& experiment) const override {
    return optim::names_of(optim::Arena(*described(experiment), optim::Arena::Gradients::kNone));
  }
  models::ModelCost model_cost(const CostRequest& request) const override {
    constexpr double kForwardAndBackward = 3, kMultiplyAndAdd = 2;
    const auto d = static_cast<double>(labelling_of(request.experiment).model.d_model);
    return {.parameters = models::num_parameters(*described(request.experiment)),
            .training_flops = kForwardAndBackward * kMultiplyAndAdd * d * kAnyLabels};
  }
  std::shared_ptr<torch::nn::Module> make_network(const experiment::Experiment& experiment,
                                                  const Assets& assets,
                                                  bool draws_weights) const override {
    return make_label_model(experiment, labels_of(assets), draws_weights ? at::kCPU : at::kMeta);
  }

  // Weights that do not fit stop training before its first update, with their names.
  void check_weights(const experiment::CheckRequest& /*request*/,
                     experiment::Preflight& /*found*/) const override {}
  // Lines of any length fit every model.
  void require_room(const std::filesystem::path& /*place*/, const experiment::Experiment& /*other*/,
                    const experiment::Experiment& /*own*/) const override {}

 private:
  static constexpr int64_t kAnyLabels = 2;  // no name depends on them
  static std::shared_ptr<LabelModel> described(const experiment::Experiment& experiment) {
    return make_label_model(experiment, Labels(kAnyLabels), at::kMeta);
  }
};

}  // namespace

const Family& label_family() {
  static const LabelFamily family;
  return family;
}

}  // namespace stretto::tasks
