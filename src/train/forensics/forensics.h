#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/batch.h"
#include "kernels/compute.h"
#include "optim/arena.h"
#include "train/task.h"

/// What made the loss or a gradient of an update infinite or NaN: the update runs again with every
/// tensor looked at.
namespace stretto::train {

/// What a tensor is to the model.
enum class TensorKind : uint8_t {
  kNone,            ///< nothing was non-finite
  kOutput,          ///< the output of a module, or the loss (name "loss")
  kOutputGradient,  ///< in backward: the gradient of a module's output, so what follows it made it
  kParameterGradient,  ///< of one parameter, or of one use of it ("output.weight", tied or not)
  /// A parameter's gradient summed over micro-batches that are finite one by one; or over processes
  /// that are, then the name goes on with " over 4 processes" and how it was sent.
  kSum,
};

/// The first tensor that was not finite, in the order in which they are computed.
struct FirstNonfinite {
  TensorKind kind = TensorKind::kNone;
  std::string name;         ///< path of the module or name of the parameter
  std::string last_finite;  ///< the tensor before it, "" when there was none

  bool operator==(const FirstNonfinite&) const = default;
};

struct NonfiniteWeight {
  std::string name;   ///< of the tensor; "carry/h" is the state "h" of the lanes
  int64_t count = 0;  ///< elements that are not finite

  bool operator==(const NonfiniteWeight&) const = default;
};

/// The gradient of one parameter, or of all parameters of one layer, as backward left it: times the
/// loss scale, and where there is one loss not divided by its weight (Task::weights).
struct GradientPeak {
  std::string name;           ///< of the parameter, or path of the layer
  double max_abs = 0;         ///< over its finite elements
  int64_t num_nonfinite = 0;  ///< other elements

  bool operator==(const GradientPeak&) const = default;
};

/// Those with elements that are not finite come first.
bool larger_peak(const GradientPeak& a, const GradientPeak& b);

struct MicroBatchFinding {
  std::vector<int64_t> sample_ids;
  double loss_sum = 0;  ///< of all losses, neither scaled nor divided; may be NaN or infinite
  bool finite = true;   ///< loss and all gradients, of this micro-batch alone
};

/// What `examine` found.
struct NonfiniteReport {
  // What was run again.
  StepContext context;
  double loss_scale = 1;
  kernels::Compute compute = kernels::Compute::kFp32;
  std::vector<double> divisors = {};  ///< of several losses; empty of one

  FirstNonfinite first;                  ///< kNone: this time all was finite
  std::vector<NonfiniteWeight> weights;  ///< that were not finite before the update began
  std::vector<GradientPeak> gradients;   ///< largest 10 by parameter, non-finite ones first
  std::vector<GradientPeak> layers;      ///< one for each layer_of(), in the order of forward
  std::vector<MicroBatchFinding> micro_batches;
  int64_t micro_batch = -1;  ///< the first that is not finite alone; -1 = none
  /// The samples of that micro-batch that are not finite as a batch of one. Empty when none is,
  /// when a weight is at fault, since then no sample is, or where samples are tied together
  /// (train/tied_samples.h).
  std::vector<int64_t> samples;

  bool found() const { return first.kind != TensorKind::kNone; }
};

/// The layer that a parameter belongs to: the module that owns it, but the whole member of a stack.
/// "encoder.layers.3" of "encoder.layers.3.ffn.up.weight", "decoder.final_norm" of
/// "decoder.final_norm.bias", "model" of a parameter of the model itself.
std::string layer_of(const std::string& parameter);

/// Runs forward and backward of an update's micro-batches again and looks at every tensor.
///
/// Costs two to three times the update, and is meant for the rare one that failed. It sums no
/// gradients over processes: each rank examines its own micro-batches, alone or all at once, and a
/// synchronised BatchNorm must not be synchronised meanwhile. What it finds does not depend on the
/// number of processes. Weights, optimizer and the model's
/// buffers are as before afterwards; arena.grads() is zero.
///
/// @param context     of the update, so that dropout masks and the state of lanes are the same
/// @param loss_scale  the loss is multiplied by it before backward
/// @param divisors    what the update divided its losses by (Updater::divisors()); empty = its
///                    micro-batches are these
NonfiniteReport examine(Task& task, optim::Arena& arena,
                        const std::vector<data::Batch>& micro_batches, const StepContext& context,
                        double loss_scale, kernels::Compute compute,
                        const std::vector<double>& divisors = {});

}  // namespace stretto::train
