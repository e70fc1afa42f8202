#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

/// What linear maps of a model see on calibration rows.
namespace stretto::compress {

/// Inputs x of rows [from, from + count) of a weight. A merged map may give its parts other inputs.
struct RowInputs {
  int64_t from = 0, count = 0;
  int64_t num_rows = 0;            ///< of x that were seen
  at::Tensor moments;              ///< fp32 [in, in], the sum of x x^T
  double lowest = 0, highest = 0;  ///< of all inputs
};

/// While it lives, the inputs of the linear maps of `model` that run on this thread without
/// gradient on a CPU are summed. Then found() has them by the name of the weight, which is that in
/// a model file. One at a time on a thread: a second throws c10::Error.
///
///     InputStatistics statistics(model);
///     for (const Batch& batch : calibration) run(model, batch);
///     const auto inputs = statistics.found();
class InputStatistics {
 public:
  explicit InputStatistics(torch::nn::Module& model);
  ~InputStatistics();
  InputStatistics(const InputStatistics&) = delete;
  InputStatistics& operator=(const InputStatistics&) = delete;

  std::map<std::string, std::vector<RowInputs>> found() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace stretto::compress
