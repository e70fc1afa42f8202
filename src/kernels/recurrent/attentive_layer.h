#pragma once

#include <vector>

#include "kernels/gemm/gemm.h"
#include "kernels/recurrent/attention_pass.h"
#include "kernels/recurrent/cell_pass.h"
#include "kernels/recurrent/location_pass.h"
#include "kernels/recurrent/product.h"

/// What both directions of attentive() on the CPU read, without autograd.
namespace stretto::kernels {

/// The right factors of the steps' products, packed once.
struct AttentivePacks {
  StepFactor hidden, context;
  std::vector<StepFactor> query;       ///< one or none
  at::Tensor hidden_bias, query_bias;  ///< rounded

  AttentivePacks(const AttentiveWeights& weights, Compute compute);
};

/// What the passes read. Tensors are fp32 and contiguous.
class AttentiveLayer {
 public:
  AttentiveLayer(const AttentiveWeights& weights, const PreparedMemory& memory,
                 const AttentiveState& initial, const Attentive& options, Compute compute);
  /// One step of as many lanes as there are `sources`, the memory that each lane attends to.
  AttentiveLayer(const AttentiveWeights& weights, const PreparedMemory& memory,
                 const AttentiveState& before, const CellOptions& cell,
                 std::vector<int64_t> sources, Compute compute);
  AttentiveLayer(const AttentiveLayer&) = delete;
  AttentiveLayer& operator=(const AttentiveLayer&) = delete;

  const Schedule schedule;
  const AttentiveWeights weights;
  const PreparedMemory& memory;
  const at::Tensor first_context;  ///< may be undefined
  const CellProblem problem;
  const Scorer scorer;
  const Location location;  ///< of decoding's steps: none

  Compute compute() const { return scorer.compute; }
  /// What the factor of the query's product, or of the scores, is rounded to.
  Compute query_compute() const;
  /// Numbers that a step multiplies a row with.
  int64_t step_weights() const;
  int64_t source(int64_t rank) const;
  /// The attention weights of a row in a flat tensor of all, and how many there are of all rows.
  float* weights_at(const at::Tensor& all, int64_t rank, int64_t row) const;
  int64_t num_weights() const { return blocks_.back(); }
  /// The first packed row of each sequence, and N.
  const std::vector<int64_t>& begins() const { return begins_; }

 private:
  void make_blocks();

  std::vector<int64_t> sources_, begins_, blocks_;
};

/// What a pass forward leaves.
struct AttentiveTrace {
  CellTrace cells;
  at::Tensor context;  ///< [N, M]
  at::Tensor queries;  ///< [N, A], kept for backward only
  at::Tensor weights;  ///< flat
  at::Tensor sums;     ///< with a location: of the weights of all steps before, flat
};

}  // namespace stretto::kernels
