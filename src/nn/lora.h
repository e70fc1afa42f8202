#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nn/init.h"
#include "nn/packed_rows.h"

/// What linear maps and convolutions learn beside their weights (LoRA, nn/lora_options.h).
///
/// Shape letters: N rows, P equal or unequal maps that one matrix merges (query, key and value), r
/// the rank.
namespace stretto::nn {

/// A linear map that is merged of several.
struct MergedMap {
  int64_t in = 0;
  std::vector<int64_t> rows;  ///< of each part; they add up to the map's rows
};

/// B A of one linear map, each part of which is adapted as if it were alone:
///
///     delta(x) = scale * [B_1 A_1 x, …, B_P A_P x]
///
/// A starts uniform in ±in^-0.5 (as in Hu et al.'s code; `model.init` may name it), B as zeros.
class Lora {
 public:
  /// Its parameters and its buffer become members of `owner`, the map at `init`.
  Lora(torch::nn::Module& owner, const Init& init, std::shared_ptr<const LoraOptions> options,
       const MergedMap& map);

  /// x [N, in] -> scale * (B A x) [N, out], with dropout on x where a LoraDropoutScope of N rows
  /// says so.
  at::Tensor delta(const at::Tensor& x) const;
  /// weight [out, in] + scale * B A; the gradient goes through it. Nothing is dropped.
  at::Tensor merged(const at::Tensor& weight) const;

  const LoraOptions& options() const { return *options_; }

  at::Tensor a;  ///< `lora_a` [P r, in]
  at::Tensor b;  ///< `lora_b` [out, r]
  /// Buffer `lora_parts` [P, 2]: rows of each part, and what its B A is multiplied by. With it a
  /// stored model says all that merging asks for (runs/merged_lora.h).
  at::Tensor parts;

 private:
  at::Tensor dropped(const at::Tensor& x) const;

  std::shared_ptr<const LoraOptions> options_;
  std::vector<int64_t> rows_;
  uint64_t site_;
};

/// weight [out, in] + scale * B A with `parts` as above, on the CPU or any device. Where nothing
/// else is said of how it is computed, all that merges calls this: the bits are the same.
at::Tensor merge_lora(const at::Tensor& weight, const at::Tensor& a, const at::Tensor& b,
                      const std::vector<int64_t>& rows, double scale);

/// The LoRA of the first map in `module` that has one; null when none has.
std::shared_ptr<const LoraOptions> lora_of(const torch::nn::Module& module);

/// Where the dropout masks of LoRA come from, for as long as it lives, on this thread: whoever runs
/// a part of a model in training says which rows the part reads. Without a scope, or on rows of
/// another number, nothing is dropped.
class LoraDropoutScope {
 public:
  explicit LoraDropoutScope(DropoutSource source);
  ~LoraDropoutScope();
  LoraDropoutScope(const LoraDropoutScope&) = delete;
  LoraDropoutScope& operator=(const LoraDropoutScope&) = delete;

  /// Inside of a scope, the same for other rows: a decoder's layers read the encoder's too.
  static DropoutSource of_rows(const at::Tensor& row_keys);

 private:
  DropoutSource source_;
  const DropoutSource* before_;
};

}  // namespace stretto::nn
