#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "data/batch_source.h"
#include "optim/group_options.h"
#include "parallel/carry.h"
#include "report/sample.h"
#include "train/prepared.h"
#include "train/task_words.h"

namespace stretto::train {

/// What one micro-batch, or a part of one, adds to an update: sums over its samples, which the loop
/// adds up over micro-batches and ranks. What stays a tensor stays on the device until the whole
/// update is done.
struct Sums {
  std::vector<at::Tensor> losses;           ///< scalars with a gradient, as Task::losses()
  std::vector<at::Tensor> statistics = {};  ///< scalars without one, as Task::statistics()
  std::vector<int64_t> counts = {};         ///< as Task::counters()
  /// The next state of the batch's lanes, in the shapes of StepContext::carry_of(); as
  /// Task::carry(). It is in force once the update is stepped.
  std::vector<at::Tensor> carry = {};
};

/// The sums of a whole update, over all micro-batches and ranks.
struct Totals {
  std::vector<double> losses;
  std::vector<double> weights;  ///< what each loss is divided by: Task::weights()
  std::vector<double> statistics = {};
  std::vector<int64_t> counts = {};

  /// Each loss divided by its weight, added up: what an update minimises. Losses of which no sample
  /// came, with a weight of 0, add nothing.
  double loss() const;
};

/// A number that people judge a model by. The row of its name in report::Display says which way is
/// better.
struct Score {
  std::string name;  ///< its key in metrics.jsonl: "nll"
  double value = 0;
};

/// The first of this name; null when there is none.
const Score* find_score(const std::vector<Score>& scores, const std::string& name);

/// What a validation came to.
struct Validation {
  /// "loss" among them, by which the plateau schedule goes; `eval.best_metric` names one.
  std::vector<Score> scores;
  std::map<std::string, int64_t> counts = {};  ///< by a name of Task::counters()
  std::vector<report::Sample> samples = {};
};

/// Where in the run a micro-batch stands: all that randomness may depend on.
struct StepContext {
  uint64_t seed = 0;
  int64_t update = 0;

  /// For the masks of dropout (models::ForwardContext): one of an update, whatever its
  /// micro-batches are.
  uint64_t dropout_key() const { return mix64(seed, static_cast<uint64_t>(update)); }

  /// What the last stepped update left in the lanes of a batch: a tensor [sequences, …] for each of
  /// Task::carry(), in its order, without a gradient. Throws c10::Error where there is no state.
  std::vector<at::Tensor> carry_of(const data::Batch& batch) const;

  const parallel::Carry* carry = nullptr;  ///< null: the task has no state
};

/// What the training loop sees of a task. It names no model, no loss and no score.
///
/// An update minimises sum_i L_i / W_i, where L_i is a loss summed over all samples of the update
/// and W_i the sum of its weights; a loss with W_i = 0 is left out. With one loss the division
/// comes after the sum, so that a micro-batch need not know of the others; with several, each is
/// divided before backward.
class Task {
 public:
  virtual ~Task() = default;
  virtual torch::nn::Module& model() = 0;
  virtual const data::BatchSource& train_batches() = 0;
  /// The other names of tied parameters of the model, beside those that it registers them by.
  virtual std::vector<optim::TiedName> tied_names() const { return {}; }

  /// Patterns of tensors that a run may begin anew where the run that `train.init_from` names has
  /// others, or none: its head is another task's. Empty = all of them must fit.
  virtual std::vector<std::string> replaceable_parts() const { return {}; }
  /// Whether they begin anew even where those of that run fit, since they mean something else
  /// there. Asked only when there is no checkpoint to go on from.
  virtual bool replaces_all_parts() const { return false; }

  /// Names of the losses: "loss", or one for each head, which then are measures under their names.
  virtual std::vector<std::string> losses() const { return {"loss"}; }
  /// Whether every micro-batch has samples of all losses. Else none of them is a small sample of
  /// the update, and train.noise_scale measures nothing.
  virtual bool has_all_losses_together() const { return true; }
  /// Names of the sums that measures() needs beside the losses.
  virtual std::vector<std::string> statistics() const { return {}; }
  /// Names of what is counted, in words: "audio seconds". Throughput is that of the first.
  virtual std::vector<std::string> counters() const = 0;

  virtual TaskWords words() const { return {}; }
  /// A sample of a batch as people read it, in parts with a name each: {"text", "…"}. Where there
  /// are two parts, the first is the input, and the second the wanted output.
  /// @param index  in [0, batch.num_sequences())
  virtual std::vector<std::pair<std::string, std::string>> show(const data::Batch& batch,
                                                                int64_t index) const {
    return {{"id", std::to_string(batch.sample_ids.at(static_cast<size_t>(index)))}};
  }

  /// The state that the model takes from one update to the next, for all lanes, as it is before the
  /// first update; see parallel/carry.h. Empty, as of most tasks: it takes none. With a state,
  /// train_batches() have Order::kLanes, and loss() is a function of its arguments and the weights
  /// alone: it reads StepContext::carry_of(), and returns Sums::carry.
  virtual std::vector<parallel::LaneState> carry() const { return {}; }

  /// A batch with the tensors that loss() reads, made on the CPU while the model computes earlier
  /// batches. Several threads call it at once, so that it changes nothing; what it throws, training
  /// throws where this batch is due. Without it loss() makes tensors itself.
  ///
  /// Files are decoded here, and samples augmented: by the seed, Batch::epoch and the sample's id
  /// alone, so that a part of the batch, a resumed run and a replay have the same. A sample that
  /// cannot be used keeps its place in the batch, which processes compare by its ids: a column says
  /// so, and weights() and loss() leave it out.
  virtual Prepared prepare(data::Batch batch) const { return Prepared(std::move(batch)); }
  /// @param batch  as prepare() made it, its tensors on the device of the model
  virtual Sums loss(const Prepared& batch, const StepContext& context) = 0;
  /// What each loss of a batch is divided by, from the data alone: its tokens, its images.
  virtual std::vector<double> weights(const data::Batch& batch) const = 0;
  /// What is shown as the loss of an update.
  virtual double shown_loss(const Totals& totals) const { return totals.loss(); }
  /// What is shown beside the loss of an update.
  virtual std::vector<Score> measures(const Totals& /*totals*/) const { return {}; }

  /// False when the experiment has no validation data.
  virtual bool can_validate() const = 0;
  virtual Validation validate() = 0;
  /// Files that later commands need from the run folder, name -> bytes (the tokenizer's models).
  virtual std::map<std::string, std::string> assets() const = 0;
};

/// How the batches of a task are made ready for its model. The task must outlive it.
/// @param device  of the model
Preparation preparation_of(const Task& task, at::Device device);

/// What each of several losses is divided by if these are the batches of the update, prepared or
/// not; empty of one, which is divided after the sum.
template <class Batches>
std::vector<double> divisors_of(const Task& task, const Batches& batches) {
  const size_t count = task.losses().size();
  if (count == 1) return {};
  std::vector<double> divisors(count, 0);
  for (const data::Batch& batch : batches) {
    const auto weights = task.weights(batch);
    for (size_t i = 0; i < count; ++i) divisors[i] += weights.at(i);
  }
  return divisors;
}

/// What the backward pass of a micro-batch begins at: its loss; or of several their sum, each over
/// its divisor, without those that no sample of the update has.
at::Tensor objective(const std::vector<at::Tensor>& losses, const std::vector<double>& divisors);

}  // namespace stretto::train
