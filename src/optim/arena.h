#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <string>
#include <vector>

namespace stretto::optim {

/// All parameters of a model in one flat buffer, all gradients in a second one with the same
/// offsets.
///
/// Each parameter becomes a view of the first and its `.grad()` a view of the second, so autograd
/// accumulates in place, zeroing is one call, an optimizer step is one pass, and a slice of the
/// buffer can be sent or saved without a copy. Matrices come first and vectors (biases, norms)
/// last, so that the default no-decay group is one stretch. Offsets are multiples of 16 elements
/// (64 bytes in fp32); the gaps stay zero.
///
/// Tied parameters appear once. A parameter that requires no gradient is frozen: it has no slot and
/// stays where the model has it, but belongs to what is saved. The arena must outlive use of the
/// model's gradients.
class Arena {
 public:
  /// One parameter's place.
  struct Slot {
    std::string name;
    int64_t offset = 0;
    int64_t numel = 0;
    std::vector<int64_t> shape;
    int64_t begins = 0;  ///< updates of the run that pass before it trains (train.unfreeze)
    /// Rows of each of the maps that a matrix merges; empty = it is one map.
    std::vector<int64_t> part_rows = {};
  };

  /// A parameter that trains only from some update on.
  struct LateParameter {
    std::string name;
    int64_t begins = 0;  ///< completed updates before the first that moves it
  };

  /// A tensor of the model without a gradient: the running statistics of a batch norm, a frozen
  /// parameter. It stays where the model has it, but belongs to what is saved.
  struct Buffer {
    std::string name;
    torch::Tensor values;
    bool is_parameter = false;  ///< a frozen one
  };

  /// Whether there is a buffer of gradients: a model that only decodes has no use for one.
  enum class Gradients : uint8_t { kAllocated, kNone };

  /// Moves the model's parameters (all of one dtype, on one device) into the arena. Late ones have
  /// slots like all others, so that the layout never changes; train_after() says when they train.
  explicit Arena(torch::nn::Module& model, Gradients gradients = Gradients::kAllocated,
                 const std::vector<LateParameter>& late = {});

  torch::Tensor& params() { return params_; }  ///< [size()]
  torch::Tensor& grads() { return grads_; }    ///< [size()]; undefined with Gradients::kNone
  const torch::Tensor& params() const { return params_; }
  const std::vector<Slot>& slots() const { return slots_; }

  /// The parameter of the model that lies in slots()[slot].
  const torch::Tensor& parameter(size_t slot) const { return parameters_[slot]; }

  const std::vector<Buffer>& buffers() const { return buffers_; }

  int64_t size() const { return params_.numel(); }  ///< elements, gaps included
  /// Elements, gaps and frozen parameters left out.
  int64_t num_parameters() const { return num_parameters_; }

  void zero_grads() { grads_.zero_(); }

  /// Whether slots()[slot] trains after so many completed updates.
  bool trains(size_t slot, int64_t updates) const { return slots_[slot].begins <= updates; }
  /// Has autograd compute gradients of those parameters alone that train after so many completed
  /// updates; the others' stay zero. Without late parameters nothing happens.
  /// @return whether other parameters train now than after the last call, or, at first, than all
  bool train_after(int64_t updates);
  bool has_late() const { return any_late_; }

  /// Says that a parameter merges several maps, one below the other, of so many rows each. One
  /// without a slot is left out. TORCH_CHECK: the rows add up to those of the parameter.
  void set_part_rows(const torch::Tensor& parameter, std::vector<int64_t> rows);

  /// The part of `buffer` (params(), grads() or an optimizer's state of the same size) that belongs
  /// to a slot, in the parameter's shape.
  static torch::Tensor view(const torch::Tensor& buffer, const Slot& slot);

  /// XXH3-64 of the raw parameters sorted by name, tied tensors once, frozen ones too: what
  /// `weights_hash` prints.
  uint64_t weights_hash() const;

 private:
  std::vector<Slot> slots_;
  torch::Tensor params_, grads_;
  int64_t num_parameters_ = 0;
  std::vector<torch::Tensor> parameters_;  // one for each slot
  std::vector<Buffer> buffers_;
  bool any_late_ = false;
};

}  // namespace stretto::optim
