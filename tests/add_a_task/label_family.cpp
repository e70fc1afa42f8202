#include "tests/add_a_task/label_family.h"

#include <torch/torch.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/stdout.h"
#include "base/text.h"
#include "data/text_input.h"
#include "models/packed.h"
#include "models/registry.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/watch.h"
#include "optim/arena.h"
#include "optim/groups.h"
#include "runs/choose_checkpoint.h"
#include "runs/module_weights.h"
#include "runs/provenance.h"
#include "runs/run_folder.h"
#include "tasks/line_work.h"
#include "tests/add_a_task/label_lines.h"
#include "tests/add_a_task/labelling.h"
#include "train/evaluation.h"

namespace stretto::tasks {
namespace {

constexpr const char* kLabelFile = "labels.txt";
constexpr int64_t kScoredLines = 1024;  // of a batch

/// The labels as a file of the run folder, and back.
Assets assets_of(const Labels& labels) {
  return {{kLabelFile, join(labels, "\n") + "\n"}};
}

Labels labels_of(const Assets& assets) {
  Labels labels = split(assets.at(kLabelFile), '\n');
  labels.pop_back();  // what stands behind the last line end
  return labels;
}

// The model.

/// The label of a line of bytes: logits = W mean(e_b) + c, over the bytes b of the line.
///
/// L labels, D model.d_model. Parameters: `bytes.weight` [256, D], `output.weight` [L, D],
/// `output.bias` [L].
class LabelModel : public torch::nn::Module {
 public:
  LabelModel(const nn::Init& init, int64_t d_model, int64_t num_labels) {
    bytes_ = register_module("bytes", nn::Embedding(init.child("bytes"), 256, d_model, /*pad=*/-1));
    output_ = register_module("output", nn::Linear(init.child("output"), d_model, num_labels));
  }

  /// One row of logits for each line: [lines, L].
  at::Tensor forward(const nn::PackedRows& rows) const {
    const at::Tensor lengths = at::diff(rows.offsets.values.to(at::kLong));
    const at::Tensor means =
        at::segment_reduce(bytes_->forward(rows.ids, {}), "mean", lengths, {}, {}, /*axis=*/0,
                           /*unsafe=*/false, /*initial=*/0);
    return output_->forward(nn::watch(*this, means));
  }
  at::Device device() const { return output_->weight.device(); }

 private:
  nn::Embedding bytes_{nullptr};
  nn::Linear output_{nullptr};
};

std::shared_ptr<LabelModel> make_label_model(const experiment::Experiment& experiment,
                                             const Labels& labels, at::Device device) {
  return std::make_shared<LabelModel>(nn::Init(static_cast<uint64_t>(experiment.run.seed), device),
                                      labelling_of(experiment).model.d_model,
                                      static_cast<int64_t>(labels.size()));
}

// What a loss, a score and an answer are.

/// What a loss reads of a batch of lines: their bytes and their labels as tensors. It is called on
/// the loader's threads, and the loop takes the tensors to the device.
train::Prepared prepare_lines(data::Batch batch) {
  train::Prepared lines(std::move(batch));
  lines.add(models::pack(lines.batch().column<int64_t>(kText), nullptr, at::kCPU));
  lines.add(lines.column(kLabel));
  return lines;
}

/// The loss summed over some lines, and how many labels are right.
std::pair<at::Tensor, at::Tensor> sums_of(const LabelModel& model, const train::Prepared& lines) {
  const at::Tensor logits = model.forward(lines.rows()), wanted = lines.tensor();
  return {at::cross_entropy_loss(logits, wanted, {}, at::Reduction::Sum),
          logits.argmax(1).eq(wanted).sum()};
}

train::EvaluationSetup evaluation_of(const experiment::LabellingOptions& options,
                                     const CommandContext& context) {
  return {.device = context.device,
          .group = context.group,
          .loading = {.depth = options.data.prefetch},
          .prepare = prepare_lines};
}

/// Means over lines.
struct LabelScore {
  double loss = 0, accuracy = 0;
};
/// The batches are shared out among the processes of the command.
LabelScore score_lines(const LabelModel& model, const data::BatchSource& lines,
                       const train::EvaluationSetup& setup) {
  const auto score = [&](const train::Prepared& batch) -> std::vector<double> {
    const auto [loss, right] = sums_of(model, batch);
    return {static_cast<double>(batch.batch().num_sequences()), loss.item<double>(),
            right.item<double>()};
  };
  const auto sums = train::evaluate_sums(lines, /*num_sums=*/3, setup, score);
  return {.loss = sums[1] / sums[0], .accuracy = sums[2] / sums[0]};
}

/// The lines of an evaluation in batches.
std::unique_ptr<data::BatchSource> batches_to_score(std::shared_ptr<const LinesByLength> lines) {
  return data::make_length_batches(std::move(lines), {.max_rows = {0}, .max_samples = kScoredLines},
                                   data::Shuffle::kNo, /*seed=*/0);
}

/// The best label of a line.
struct LineLabel {
  int64_t number = 0;
  bool is_finite = true;  ///< whether the logits of all labels are
};
std::vector<LineLabel> best_labels(const LabelModel& model, const data::PackedTokens& lines) {
  const torch::NoGradGuard no_grad;
  const at::Tensor logits = model.forward(models::pack(lines, nullptr, model.device()));
  const at::Tensor best = logits.argmax(1).cpu(), finite = logits.isfinite().all(1).cpu();
  std::vector<LineLabel> labels;
  for (int64_t i = 0; i < best.numel(); ++i) {
    labels.push_back({best.const_data_ptr<int64_t>()[i], finite.const_data_ptr<bool>()[i]});
  }
  return labels;
}

std::string text_of(const data::PackedTokens& lines, int64_t index) {
  const auto bytes = lines.sequence(index);
  return {bytes.begin(), bytes.end() - 1};
}

distributed::Fact fact_of(const std::string& name, const data::Batch& lines) {
  Xxh3Stream hash;
  for (const size_t number : {kText, kLabel}) {
    const auto& values = lines.column<int64_t>(number).values;
    hash.update(values.data(), values.size() * sizeof(int64_t));
  }
  return {name, counted(lines.num_sequences(), "line") + ", " + hex64(hash.digest())};
}

// Training.

/// Training as the loop sees it: cross entropy of labels, and how many are right.
class LabelTask : public FamilyTask {
 public:
  LabelTask(const experiment::Experiment& experiment, const Labels& labels,
            const CommandContext& context)
      : options_(labelling_of(experiment)),
        labels_(labels),
        num_samples_(experiment.report.samples),
        update_bound_(options_.data.max_samples * experiment.train.update_freq),
        context_(context),
        model_(make_label_model(experiment, labels, context.device)),
        lines_(std::make_shared<LinesByLength>(read_labelled_lines(options_.data.train, labels))),
        valid_(std::make_shared<LinesByLength>(read_labelled_lines(options_.data.valid, labels))),
        train_(data::make_length_batches(
            lines_,
            {.max_rows = {options_.data.max_bytes}, .max_samples = options_.data.max_samples},
            data::Shuffle::kEachEpoch, static_cast<uint64_t>(experiment.run.seed))),
        valid_batches_(batches_to_score(valid_)) {}

  torch::nn::Module& model() override { return *model_; }
  const data::BatchSource& train_batches() override { return *train_; }
  std::vector<std::string> statistics() const override { return {"right"}; }
  std::vector<std::string> counters() const override { return {"lines", "bytes"}; }
  train::TaskWords words() const override {
    return {.sample = "line",
            .samples = "lines",
            .smaller_batches =
                "lower data.max_samples (raise train.update_freq by the same factor "
                "to keep the batch)"};
  }
  std::vector<std::pair<std::string, std::string>> show(const data::Batch& batch,
                                                        int64_t index) const override {
    const auto label = static_cast<size_t>(batch.column<int64_t>(kLabel).sequence(index).front());
    return {{"text", text_of(batch.column<int64_t>(kText), index)}, {"label", labels_.at(label)}};
  }

  train::Prepared prepare(data::Batch batch) const override {
    return prepare_lines(std::move(batch));
  }
  train::Sums loss(const train::Prepared& batch, const train::StepContext& /*context*/) override {
    const auto [loss, right] = sums_of(*model_, batch);
    const data::Batch& lines = batch;
    return {.losses = {loss},
            .statistics = {right},
            .counts = {lines.num_sequences(), lines.column<int64_t>(kText).num_rows()}};
  }
  std::vector<double> weights(const data::Batch& batch) const override {
    return {static_cast<double>(batch.num_sequences())};
  }
  std::vector<train::Score> measures(const train::Totals& totals) const override {
    return {{.name = "accuracy", .value = totals.statistics.front() / totals.weights.front()}};
  }
  bool can_validate() const override { return valid_->lines().num_sequences() > 0; }
  train::Validation validate() override {
    const LabelScore score =
        score_lines(*model_, *valid_batches_, evaluation_of(options_, context_));
    train::Validation result{
        .scores = {{.name = "loss", .value = score.loss},
                   {.name = "accuracy", .value = score.accuracy, .higher_is_better = true}},
        .counts = {{"lines", valid_->lines().num_sequences()}}};
    result.samples = samples();
    return result;
  }
  Assets assets() const override { return assets_of(labels_); }

  std::vector<distributed::Fact> data_facts() const override {
    return {fact_of("training lines", lines_->lines()),
            fact_of("validation lines", valid_->lines())};
  }
  // Every byte is known, and a label that is not stops the reading.
  void require_known_data(bool /*warn*/) const override {
    if (train_->num_batches() > 0) return;
    throw Error(ExitCode::kBadData, "data.train: the files have no line",
                "give lines of a label, a tab and a text");
  }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    return {{"parameters", with_thousands(models::num_parameters(*model_))},
            {"labels", join(labels_, ", ")},
            {"training lines", with_thousands(lines_->lines().num_sequences())}};
  }
  data::Loading loading() const override { return {.depth = options_.data.prefetch}; }
  int64_t update_bound() const override { return update_bound_; }
  std::vector<runs::MatchedTable> matched_tables(const runs::InitialRun& /*run*/) const override {
    return {};
  }

 private:
  std::vector<report::Sample> samples() const {
    if (num_samples_ == 0) return {};
    const auto& lines = valid_->lines();
    const auto shown = data::part(lines, 0, std::min(num_samples_, lines.num_sequences()));
    const auto best = best_labels(*model_, shown.column<int64_t>(kText));
    std::vector<report::Sample> samples;
    for (size_t i = 0; i < best.size(); ++i) {
      report::RowsSample sample{.rows = show(shown, static_cast<int64_t>(i))};
      sample.rows.emplace_back("answer", labels_.at(static_cast<size_t>(best[i].number)));
      samples.emplace_back(std::move(sample));
    }
    return samples;
  }

  const experiment::LabellingOptions options_;
  const Labels labels_;
  const int64_t num_samples_, update_bound_;
  const CommandContext context_;
  std::shared_ptr<LabelModel> model_;
  std::shared_ptr<const LinesByLength> lines_, valid_;
  std::unique_ptr<data::BatchSource> train_, valid_batches_;
};

// Commands.

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
  LineLabels(const LabelRun& run, const InferRequest& request)
      : run_(run),
        as_json_(request.json),
        with_text_(request.own.as<experiment::LabelInferOptions>().with_text) {}

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
      const std::string behind = with_text_ ? "\t" + shown_on_stdout(line.input.text) : "";
      std::cout << (as_json_ ? json_line({{"label", label}})
                             : shown_on_stdout(label) + behind + "\n");
    }
  }

 private:
  const LabelRun& run_;
  const bool as_json_, with_text_;
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
    const auto& options = labelling_of(request.experiment.options);
    const auto& data = options.data;
    const LabelRun run = load_label_run(request.experiment.options, request.run_directory,
                                        request.checkpoint, context.device);
    const auto lines = batches_to_score(std::make_shared<LinesByLength>(
        read_labelled_lines(data.test.empty() ? data.valid : data.test, run.labels)));
    if (lines->num_batches() == 0) {
      throw Error(ExitCode::kBadData, "there is no line to evaluate",
                  "name files of labelled lines in data.test");
    }
    const LabelScore score = score_lines(*run.model, *lines, evaluation_of(options, context));
    if (!context.group.is_root()) return 0;  // all have the same result, one says it
    if (request.json) {
      std::cout << json_line({{"loss", score.loss}, {"accuracy", score.accuracy}});
    } else {
      const auto decimals =
          static_cast<int>(request.own.as<experiment::LabelEvalOptions>().decimals);
      std::cout << "loss " << fixed(score.loss, decimals) << "  accuracy "
                << fixed(score.accuracy, decimals) << "\n";
    }
    flush_stdout();
    return 0;
  }

  int infer(const InferRequest& request, const CommandContext& context) const override {
    const LabelRun run = load_label_run(request.experiment.options, request.run_directory,
                                        request.checkpoints, context.device);
    constexpr int64_t kBytesTogether = 4096;
    data::TextInput input(request.files);
    LineLabels labels(run, request);
    answer_lines(labels, input,
                 {.files = request.files,
                  .run = request.run_directory,
                  .device = context.device,
                  .batches = {.max_cost = kBytesTogether},
                  .words = {.answer = "the scores of this line", .problem = "it has no label"},
                  .stats = request.stats});
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
