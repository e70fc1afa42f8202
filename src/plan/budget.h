#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "plan/linear_fit.h"
#include "plan/loss_surface.h"

namespace stretto::plan {

/// A size of the model, and what it costs.
struct ModelSize {
  std::vector<std::string> overrides;  ///< "model.d_model=256", against the configuration
  double width = 1, depth = 1;         ///< against the configuration's
  double parameters = 0;
  double flops = 0;   ///< of training, for a unit of work
  double fan_in = 0;  ///< as MemoryInputs has it
};

/// A size that was trained for some seconds.
struct MeasuredSize {
  ModelSize size;
  double units = 0;          ///< of work of an update
  double micro_batches = 1;  ///< of an update
  double seconds = 0;        ///< of an update
  double peak_bytes = 0;     ///< of the process
  std::vector<LossPoint> losses;
  double noise_scale = 0;  ///< 0 = not known; in what `batch` is in
  double batch = 0;        ///< of an update, in what the loss is divided by
};

/// A form in which the model is deployed. Pruned weights take their place in a file, and so are not
/// one. Biases and gains of norms, about one weight in a hundred, are counted as if they were
/// packed too.
struct CompressedForm {
  double bits = 32;      ///< of a code; 32 = fp32, without scales
  int64_t group = 64;    ///< weights with one scale of 16 bits
  double loss_cost = 0;  ///< assumed: the loss grows by this share

  double bits_per_weight() const;  ///< scales included
  double bytes(double parameters) const { return parameters * bits_per_weight() / 8; }
  std::string text() const;  ///< "4 bits, groups of 64"
};

/// The forms that are tried, with the costs that are assumed.
std::vector<CompressedForm> usual_forms();

/// What may be spent.
struct Budget {
  double seconds = 0;         ///< of training
  int64_t processes = 1;      ///< that train together
  int64_t rate_batches = 1;   ///< micro-batches of an update for which the learning rate is
  double deploy_bytes = 0;    ///< 0 = any number
  double deploy_seconds = 0;  ///< for deploy_units of work in fp32; 0 = any time
  double deploy_units = 0;
  double memory_bytes = 0;  ///< of a process while it trains; 0 = any number
};

/// What the measured sizes tell about others. Each fit is of times and bytes relative to what was
/// measured, so that small models count as much as large ones.
class SizeModel {
 public:
  /// Throws std::invalid_argument for fewer than two sizes, or without four losses.
  explicit SizeModel(std::vector<MeasuredSize> measured);

  /// Seconds for a micro-batch of so much work, in one process.
  Estimate micro_batch_seconds(const ModelSize& size) const;
  /// Seconds that a unit of work takes where the model is only used: a third of training.
  double forward_seconds(const ModelSize& size, double units) const;
  Estimate peak_bytes(const ModelSize& size) const;
  Estimate loss(const ModelSize& size, double updates) const;
  /// The mean of those that were measured; nothing where none was.
  std::optional<double> noise_scale() const { return noise_scale_; }
  double units() const { return units_; }  ///< of a micro-batch
  double batch() const { return batch_; }  ///< of a micro-batch, as the noise scale counts
  double measured_batches() const { return micro_batches_; }  ///< of an update, when measured
  const LossSurface& surface() const { return surface_; }
  /// Parameters of the smallest and largest size that was measured.
  double smallest() const { return smallest_; }
  double largest() const { return largest_; }

 private:
  double units_ = 0, batch_ = 0, micro_batches_ = 1, smallest_ = 0, largest_ = 0;
  LinearFit seconds_, bytes_;
  LossSurface surface_;
  std::optional<double> noise_scale_;
};

/// One way to spend a budget.
struct Choice {
  ModelSize size;
  int64_t micro_batches = 1;  ///< of an update
  double worth = 1;           ///< updates of the measured batch that one of this batch stands for
  double rate_factor = 1;     ///< by which the learning rate changes
  Estimate update_seconds, updates, loss, peak_bytes;
  /// Updates that would have been as good at the batch that was measured.
  double worth_updates = 0;
  double stop_updates = 0;            ///< from where a larger model would gain more; 0 = never
  std::vector<CompressedForm> forms;  ///< that fit what is deployed, the best first
  double deploy_seconds = 0;
  double deployed_loss = 0;  ///< with the best form
};

struct Plan {
  std::vector<Choice> choices;  ///< the best first
  /// How many sizes each Refusal had, and of those the least that would be needed.
  int64_t too_large_to_train = 0, too_large_to_deploy = 0, too_slow_to_deploy = 0, too_slow = 0;
  double least_memory = 0, least_deploy_bytes = 0, least_deploy_seconds = 0, least_seconds = 0;
};

/// Seconds of an update of so many micro-batches of one process's `compute` seconds each.
struct UpdateTimer {
  virtual ~UpdateTimer() = default;
  virtual double seconds(const ModelSize& size, double compute, int64_t micro_batches,
                         int64_t processes) const = 0;
};

/// Tries each size with 1, 2, 4 … 256 micro-batches an update, and takes for each size the number
/// that gets furthest in the time. B = noise scale, b = batch: an update is worth (1 + B / b0) /
/// (1 + B / b) of those at the measured batch b0. Its learning rate is (1 + B / b1) / (1 + B / b)
/// times that of the configuration, which is for batch b1 (McCandlish et al. 2018,
/// arXiv:1812.06162, equations 2.6 and 2.8). Without a noise scale the batch is the measured one.
Plan plan_budget(const SizeModel& model, const std::vector<ModelSize>& sizes, const Budget& budget,
                 const UpdateTimer& timer);

}  // namespace stretto::plan
