#pragma once

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/graph_task.h>

#include "kernels/fused_common.h"
#include "kernels/recurrent/cell_pass.h"
#include "kernels/recurrent/product.h"

/// What the autograd nodes of recurrent layers share. An optional tensor is an empty one inside a
/// node, so that each input has its place whether or not it is there.
namespace stretto::kernels::fused {

inline at::Tensor present(const at::Tensor& x) {
  return x.defined() && x.dim() > 0 && x.size(0) > 0 ? x : at::Tensor();
}
at::Tensor absent_if_undefined(const at::Tensor& x);

inline at::Tensor contiguous_or_none(const at::Tensor& x) {
  return x.defined() ? x.contiguous() : x;
}
/// The same, but what stands for codes (kernels/quantised) stays as it is.
inline at::Tensor contiguous_or_codes(const at::Tensor& x) {
  return x.defined() && !stood_for(x) ? x.contiguous() : x;
}
/// The hidden weight may stand for codes.
RecurrentWeights contiguous(const RecurrentWeights& weights);

/// x_gates as a pass that keeps its gates takes it.
at::Tensor given(const at::Tensor& x_gates, const Recurrent& options);

/// What a node kept for backward, to be overwritten with slopes: its memory, or a copy of it if the
/// graph will be run once more. Without a graph of its own, which gates that were given away have.
at::Tensor writable(const at::Tensor& kept);

void keep(AutogradContext* ctx, const Recurrent& options);
Recurrent kept_recurrent(AutogradContext* ctx, const at::Tensor& offsets);

/// Whether any of a node's inputs [begin, end) needs a gradient.
bool wants_any(AutogradContext* ctx, size_t begin, size_t end);

/// The bias of each step's product, rounded; undefined: none.
at::Tensor step_bias(const CellProblem& problem, Compute compute);

/// The first `count` rows of a bundle.
struct StepPart {
  Bundle bundle;
  int64_t count;
};

inline StepRows<const float> lines_of(const Lines& lines, const StepPart& part) {
  return {lines.of_rank(part.bundle.rank(0)), lines.stride() * part.bundle.count, part.count};
}
inline StepRows<float> lines_to(const Lines& lines, const StepPart& part) {
  return {lines.of_rank(part.bundle.rank(0)), lines.stride() * part.bundle.count, part.count};
}

/// The recurrent product of a step, or its bias alone where all h are zero.
void multiply_hidden(const CellForward& cells, bool has_h, const StepFactor& hidden,
                     const at::Tensor& bias, const StepPart& part, const ThreadTeam& team);

}  // namespace stretto::kernels::fused
