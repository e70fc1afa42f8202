#pragma once

#include <cstdint>
#include <vector>

#include "kernels/compute.h"
#include "optim/adam.h"

namespace stretto::optim {

/// Muon (Jordan et al. 2024, kellerjordan.github.io/posts/muon; Liu et al. 2025, arXiv:2502.16982):
/// the momentum of a matrix, made orthogonal, is its step. g is gradient * grad_scale, mu
/// `optim.muon_momentum`.
///
///     m = mu m + (1 - mu) g        n = mu m + (1 - mu) g with `optim.muon_nesterov`, else m
///     p = p (1 - lr weight_decay)
///     p = p - lr scale orthogonalised(n)
///
/// with the scale of a matrix [R, C], by `optim.muon_scale`,
///
///     rms         0.2 sqrt(max(R, C)): a root mean square of about 0.2, as AdamW's steps have
///     spectral    sqrt(max(1, R / C)): outputs change by as much, whatever the shape
///
/// Tensors of more than two dimensions are matrices of their first one. A matrix that merges
/// several maps (Arena::Slot::part_rows) is stepped map by map with `optim.muon_split`. With
/// `optim.muon_fixed_norm` each map has the norm sqrt(R) before its step (airbench94_muon.py of
/// github.com/KellerJordan/cifar10-airbench).
///
/// Vectors and the matrices of optim/muon_tensors.h are AdamW's, at `optim.muon_adam_lr`; or, by
/// `optim.muon_others`, those of SGD with Nesterov's momentum: with d = g + weight_decay p,
///
///     u = mu' u + d        p = p - lr (d + mu' u)        mu' = optim.muon_other_momentum
///
/// Tensors that AdamW steps have its second moment, all others have none: `exp_avg_sq` holds the
/// former alone. `exp_avg` holds m and u.
///
/// On a CPU, matrices of up to a million numbers are stepped by a thread each, larger ones by all
/// threads one after another.
///
/// A matrix that lies in several slices is gathered: each of its owners orthogonalises the maps of
/// which it has elements, and steps those elements. On a CPU the bits are those of one process.
class Muon : public Adam {
 public:
  /// Throws Error(kUsage) for a pattern that matches no parameter.
  Muon(const OptimOptions& options, const Arena& arena, Slice slice);
  void step(Arena& arena, const UpdateStep& update) override;

 private:
  Muon(const OptimOptions& options, const Arena& arena, Slice slice, std::vector<bool> is_matrix);

  void step_others(Arena& arena, const UpdateStep& update);
  void step_by_adam(Arena& arena, const UpdateStep& update);
  void step_by_sgd(Arena& arena, const UpdateStep& update);
  torch::Tensor direction_of(Arena& arena, const UpdateStep& update, Slice part);
  torch::Tensor gathered_direction(Arena& arena, const UpdateStep& update, size_t slot);
  void step_matrix(Arena& arena, const UpdateStep& update, size_t slot,
                   const torch::Tensor& gathered);
  void apply(Arena& arena, const UpdateStep& update, size_t slot, const torch::Tensor& direction);
  bool is_cut(const Arena::Slot& slot, const UpdateStep& update) const;

  kernels::Compute compute_;
  std::vector<bool> is_matrix_;  // by slot: it has orthogonal steps
};

}  // namespace stretto::optim
