#include "tests/add_a_task/label_task.h"

#include <torch/torch.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "base/text.h"
#include "models/packed.h"
#include "models/registry.h"
#include "nn/watch.h"
#include "tests/add_a_task/labelling_options.h"
#include "train/evaluation.h"

namespace stretto::tasks {
namespace {

constexpr const char* kLabelFile = "labels.txt";
constexpr int64_t kScoredLines = 1024;  // of a batch

/// Of some lines: the loss summed over them, and how many labels are right.
std::pair<at::Tensor, at::Tensor> sums_of(const LabelModel& model, const data::Batch& lines) {
  const at::Tensor logits = model.forward(lines.column<int64_t>(kText));
  const at::Tensor wanted =
      at::tensor(lines.column<int64_t>(kLabel).values, at::kLong).to(logits.device());
  return {at::cross_entropy_loss(logits, wanted, {}, at::Reduction::Sum),
          logits.argmax(1).eq(wanted).sum()};
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

}  // namespace

LabelModel::LabelModel(const nn::Init& init, int64_t d_model, int64_t num_labels) {
  bytes_ = register_module("bytes", nn::Embedding(init.child("bytes"), 256, d_model, /*pad=*/-1));
  output_ = register_module("output", nn::Linear(init.child("output"), d_model, num_labels));
}

at::Tensor LabelModel::forward(const data::PackedTokens& lines) const {
  const nn::PackedRows rows = models::pack(lines, nullptr, output_->weight.device());
  const at::Tensor lengths = at::diff(rows.offsets.values.to(at::kLong));
  const at::Tensor means = at::segment_reduce(bytes_->forward(rows.ids, {}), "mean", lengths, {},
                                              {}, /*axis=*/0, /*unsafe=*/false, /*initial=*/0);
  return output_->forward(nn::watch(*this, means));
}

std::shared_ptr<LabelModel> make_label_model(const experiment::Experiment& experiment,
                                             const Labels& labels, at::Device device) {
  return std::make_shared<LabelModel>(nn::Init(static_cast<uint64_t>(experiment.run.seed), device),
                                      labelling_of(experiment).model.d_model,
                                      static_cast<int64_t>(labels.size()));
}

LabelScore score_lines(const LabelModel& model, const data::BatchSource& lines,
                       const CommandContext& context) {
  const auto score = [&](const data::Batch& batch) -> std::vector<double> {
    const auto [loss, right] = sums_of(model, batch);
    return {static_cast<double>(batch.num_sequences()), loss.item<double>(), right.item<double>()};
  };
  const auto sums = train::evaluate_sums(lines, /*num_sums=*/3,
                                         {.device = context.device, .group = context.group}, score);
  return {.loss = sums[1] / sums[0], .accuracy = sums[2] / sums[0]};
}

std::unique_ptr<data::BatchSource> batches_to_score(std::shared_ptr<const LinesByLength> lines) {
  return data::make_length_batches(std::move(lines), {.max_rows = {0}, .max_samples = kScoredLines},
                                   data::Shuffle::kNo, /*seed=*/0);
}

std::vector<LineLabel> best_labels(const LabelModel& model, const data::PackedTokens& lines) {
  const torch::NoGradGuard no_grad;
  const at::Tensor logits = model.forward(lines);
  const at::Tensor best = logits.argmax(1).cpu(), finite = logits.isfinite().all(1).cpu();
  std::vector<LineLabel> labels;
  for (int64_t i = 0; i < best.numel(); ++i) {
    labels.push_back({best.const_data_ptr<int64_t>()[i], finite.const_data_ptr<bool>()[i]});
  }
  return labels;
}

LabelTask::LabelTask(const experiment::Experiment& experiment, const Labels& labels,
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
          lines_, {.max_rows = {options_.data.max_bytes}, .max_samples = options_.data.max_samples},
          data::Shuffle::kEachEpoch, static_cast<uint64_t>(experiment.run.seed))),
      valid_batches_(batches_to_score(valid_)) {}

train::TaskWords LabelTask::words() const {
  return {.sample = "line",
          .samples = "lines",
          .smaller_batches =
              "lower data.max_samples (raise train.update_freq by the same factor "
              "to keep the batch)"};
}

std::vector<std::pair<std::string, std::string>> LabelTask::show(const data::Batch& batch,
                                                                 int64_t index) const {
  const auto label = static_cast<size_t>(batch.column<int64_t>(kLabel).sequence(index).front());
  return {{"text", text_of(batch.column<int64_t>(kText), index)}, {"label", labels_.at(label)}};
}

train::Sums LabelTask::loss(const data::Batch& batch, const train::StepContext& /*context*/) {
  const auto [loss, right] = sums_of(*model_, batch);
  return {.losses = {loss},
          .statistics = {right},
          .counts = {batch.num_sequences(), batch.column<int64_t>(kText).num_rows()}};
}

std::vector<double> LabelTask::weights(const data::Batch& batch) const {
  return {static_cast<double>(batch.num_sequences())};
}

std::vector<train::Score> LabelTask::measures(const train::Totals& totals) const {
  return {{.name = "accuracy", .value = totals.statistics.front() / totals.weights.front()}};
}

train::Validation LabelTask::validate() {
  const LabelScore score = score_lines(*model_, *valid_batches_, context_);
  train::Validation result{
      .scores = {{.name = "loss", .value = score.loss},
                 {.name = "accuracy", .value = score.accuracy, .higher_is_better = true}},
      .counts = {{"lines", valid_->lines().num_sequences()}}};
  result.samples = samples();
  return result;
}

std::vector<report::Sample> LabelTask::samples() const {
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

Assets LabelTask::assets() const {
  return assets_of(labels_);
}

std::vector<distributed::Fact> LabelTask::data_facts() const {
  return {fact_of("training lines", lines_->lines()), fact_of("validation lines", valid_->lines())};
}

// Every byte is known, and a label that is not stops the reading.
void LabelTask::require_known_data(bool /*warn*/) const {
  if (train_->num_batches() > 0) return;
  throw Error(ExitCode::kBadData, "data.train: the files have no line",
              "give lines of a label, a tab and a text");
}

std::vector<std::pair<std::string, std::string>> LabelTask::facts() const {
  return {{"parameters", with_thousands(models::num_parameters(*model_))},
          {"labels", join(labels_, ", ")},
          {"training lines", with_thousands(lines_->lines().num_sequences())}};
}

Assets assets_of(const Labels& labels) {
  return {{kLabelFile, join(labels, "\n") + "\n"}};
}

Labels labels_of(const Assets& assets) {
  Labels labels = split(assets.at(kLabelFile), '\n');
  labels.pop_back();  // what stands behind the last line end
  return labels;
}

}  // namespace stretto::tasks
