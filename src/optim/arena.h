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

  /// Moves the model's parameters (all of one dtype, on one device) into the arena.
  explicit Arena(torch::nn::Module& model, Gradients gradients = Gradients::kAllocated);

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
};

}  // namespace stretto::optim
