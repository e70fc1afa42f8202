#include "models/heads/span.h"

#include <ATen/ATen.h>

#include <cmath>

#include "models/operations.h"

namespace stretto::models {
namespace {

/// The sequence that each row is of, int64 [N].
at::Tensor number_of_sequence(const kernels::Offsets& offsets) {
  return at::repeat_interleave(at::diff(offsets.values.to(at::kLong)));
}

void check_places(const at::Tensor& places, const kernels::Offsets& offsets, const char* name) {
  const at::Tensor lengths = at::diff(offsets.values.to(at::kLong));
  TORCH_CHECK(places.sizes() == lengths.sizes(), "[span] ", name, " must be ", lengths.sizes(),
              ", got ", places.sizes());
  if (!places.is_cpu()) return;
  TORCH_CHECK(places.ge(0).logical_and(places.lt(lengths)).all().item<bool>(), "[span] ", name,
              " must lie in their sequences");
}

}  // namespace

SpanHead::SpanHead(const BertOptions& options, const nn::Init& init) {
  output_ =
      register_module("output", nn::Linear(init.child("output"), sizes_of(options).d_model, 2));
}

at::Tensor SpanHead::scores(const at::Tensor& rows) const {
  const at::Tensor scores = output_->forward(rows);
  return scores.scalar_type() == at::kDouble ? scores : scores.to(at::kFloat);
}

double SpanHead::operations() const {
  return weight_operations(*this);
}

at::Tensor span_log_probs(const at::Tensor& scores, const SpanRows& rows) {
  TORCH_CHECK(scores.dim() == 2 && scores.size(1) == 2, "[span] scores must be [N, 2], got ",
              scores.sizes());
  const int64_t n = scores.size(0), sequences = rows.offsets.values.size(0) - 1;
  // One line of numbers, beginnings first: sums over single numbers are one loop, in their order.
  const at::Tensor sequence = number_of_sequence(rows.offsets);
  const at::Tensor group = at::cat({sequence, sequence + sequences});
  at::Tensor line = scores.t().reshape({2 * n});
  if (rows.allowed.defined()) {
    line = line.masked_fill(at::cat({rows.allowed, rows.allowed}).logical_not(), -INFINITY);
  }
  const at::Tensor top = at::full({2 * sequences}, -INFINITY, line.options().requires_grad(false))
                             .scatter_reduce(0, group, line.detach(), "amax");
  const at::Tensor shifted = line - top.index_select(0, group);
  const at::Tensor sums =
      at::zeros({2 * sequences}, line.options()).index_add(0, group, shifted.exp());
  return (shifted - sums.log().index_select(0, group)).view({2, n}).t();
}

at::Tensor span_losses(const at::Tensor& scores, const SpanRows& rows, const at::Tensor& begins,
                       const at::Tensor& ends) {
  check_places(begins, rows.offsets, "beginnings");
  check_places(ends, rows.offsets, "ends");
  const at::Tensor log_p = span_log_probs(scores, rows);
  const at::Tensor first =
      rows.offsets.values.narrow(0, 0, rows.offsets.values.size(0) - 1).to(at::kLong);
  const at::Tensor of_begins = log_p.select(1, 0).index_select(0, first + begins);
  const at::Tensor of_ends = log_p.select(1, 1).index_select(0, first + ends);
  return (of_begins + of_ends) * -0.5;
}

}  // namespace stretto::models
