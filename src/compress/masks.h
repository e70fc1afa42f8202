#pragma once

#include <c10/core/Device.h>
#include <torch/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compress/compress_options.h"
#include "optim/arena.h"
#include "optim/optimizer.h"

/// Which weights of a model are pruned, and what that means for everything that belongs to a
/// weight: it is zero, and so are its gradient, the optimizer's state of it and its average.
namespace stretto::compress {

/// Pruned weights by the name of their tensor, a bit for each: bit i % 8 of byte i / 8 is weight i
/// in row-major order, 1 = pruned. A tensor without pruned weights may be missing. Checkpoints have
/// it as masks.safetensors (runs/stored_masks.h).
using PackedMasks = std::map<std::string, std::string>;

/// Bytes that the bits of so many weights take.
constexpr int64_t mask_bytes(int64_t numel) {
  return (numel + 7) / 8;
}

/// One byte for each weight, 1 = pruned, into bits and back. `bits` has mask_bytes(numel).
std::string pack_mask(std::span<const uint8_t> pruned);
std::vector<uint8_t> unpack_mask(std::string_view bits, int64_t numel);

/// All masks as one text of bytes, for other processes, and back.
std::string joined_masks(const PackedMasks& masks);
PackedMasks split_masks(std::string_view bytes);

/// Of the masks of another model those whose weights are zero in this arena too: what began anew,
/// or was made otherwise, has its own weights. Masks that do not fit stay, for Masks::set() to
/// name.
PackedMasks masks_that_hold(PackedMasks masks, const optim::Arena& arena);

/// Writes zeros where a mask says so, in a tensor of so many elements: for files of weights.
/// TORCH_CHECK: `bits` are of as many.
void apply_mask(std::string_view bits, std::span<float> weights);

/// Prunes plain tensors outside of training: their masks, after the same rule. The tensors change.
/// @param tensors  name -> fp32 on the CPU, contiguous; those that are to be pruned
/// @param scope    "global", "layer" or "block"
/// Throws Error(kUsage) that names a tensor of which nothing would be left; then nothing changes.
PackedMasks prune_tensors(const std::vector<std::pair<std::string, torch::Tensor>>& tensors,
                          double sparsity, const std::string& scope);

/// The masks of an arena while a run trains.
///
/// All processes have the same weights before an update, so that each finds the same masks by
/// itself. They stay in the arena's order of elements, a byte for each weight of the tensors that
/// may be pruned, on the arena's device, and only once something is pruned.
class Masks {
 public:
  /// Throws Error(kUsage) for a pattern of compress.prune that matches no parameter, and when
  /// something is to be pruned but no tensor may be.
  Masks(const PruneOptions& options, const optim::Arena& arena);
  ~Masks();
  Masks(const Masks&) = delete;
  Masks& operator=(const Masks&) = delete;

  /// Whether a weight is pruned.
  bool any() const { return num_pruned_ > 0; }

  /// Prunes so far that `sparsity` of the weights that may be pruned are zero. Those that are
  /// already stay so. Of late tensors (train.unfreeze) only those are pruned that train by now, and
  /// the share is that of these.
  /// @return whether a mask changed
  /// Throws Error(kUsage) that names a tensor of which nothing would be left; then nothing changes.
  bool prune(optim::Arena& arena, double sparsity, int64_t updates);

  /// Zeros the pruned elements of a buffer of the whole arena: weights, gradients.
  void apply(const torch::Tensor& flat) const { apply(flat, {0, flat.numel()}); }
  /// The same of a part of such a buffer: `part` has the elements of `slice`.
  void apply(torch::Tensor part, optim::Slice slice) const;
  /// The same of an optimizer's state or an average for a slice of the arena. A tensor that is not
  /// flat stays.
  void apply(const optim::StateTensor& state, optim::Slice slice) const;

  /// The masks as checkpoints have them; empty as long as nothing is pruned. It does not change:
  /// another one takes its place when more is pruned.
  std::shared_ptr<const PackedMasks> packed() const { return packed_; }
  /// Takes these masks, of a checkpoint, in place of what is pruned; the weights stay as they are.
  /// Those of frozen tensors are only kept for the next checkpoint. Masks of tensors that the arena
  /// does not have, or of another size, are left out, and their names returned.
  /// @param device  of the arena
  std::vector<std::string> set(const PackedMasks& masks, at::Device device);

  /// Weights that may be pruned, and those that are.
  int64_t num_prunable() const { return num_prunable_; }
  int64_t num_pruned() const { return num_pruned_; }
  double sparsity() const {
    return num_prunable_ == 0
               ? 0
               : static_cast<double>(num_pruned_) / static_cast<double>(num_prunable_);
  }

 private:
  struct Masked;
  void take(const std::map<size_t, std::vector<uint8_t>>& pruned, at::Device device);
  void count_weights();

  std::string scope_;
  std::vector<optim::Arena::Slot> slots_;  ///< of the arena
  std::vector<size_t> prunable_;           ///< of slots_
  std::map<std::string, int64_t> frozen_;  ///< parameters without a slot, with their elements
  int64_t num_prunable_ = 0, num_pruned_ = 0;
  std::vector<Masked> masked_;  ///< tensors with a mask, in the arena's order
  PackedMasks of_frozen_;
  std::shared_ptr<const PackedMasks> packed_;
};

}  // namespace stretto::compress
