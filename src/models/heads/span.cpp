#include "models/heads/span.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <optional>
#include <string_view>

#include "models/operations.h"
#include "models/packed.h"

namespace stretto::models {
namespace {

/// A line of numbers in groups, one behind the other.
struct Groups {
  at::Tensor lengths;   // int64 [groups]
  at::Tensor of_place;  // int64 [numbers]: the group of each

  at::Tensor reduced(const at::Tensor& line, std::string_view how) const {
    // Unsafe: the lengths made `of_place`, and to look at them again would wait for a GPU.
    return at::segment_reduce(line, how, lengths, {}, {}, /*axis=*/0, /*unsafe=*/true);
  }
  at::Tensor spread(const at::Tensor& of_groups) const {
    return of_groups.index_select(0, of_place);
  }
};

/// The sequences' rows, for beginnings and then once more for ends.
Groups groups_of(const kernels::Offsets& offsets, int64_t rows) {
  const at::Tensor lengths = at::diff(offsets.values.to(at::kLong)).repeat({2});
  // The stated size spares a wait for a GPU.
  return {lengths, at::repeat_interleave(lengths, std::optional<int64_t>(2 * rows))};
}

/// Log of the softmax over each group, with sums in a fixed order. On a GPU index_add, which is the
/// gradient of index_select too, would add the numbers of a group in any order.
struct LogSoftmaxNode : torch::autograd::Function<LogSoftmaxNode> {
  static at::Tensor forward(torch::autograd::AutogradContext* ctx, const at::Tensor& line,
                            const Groups& groups) {
    const at::Tensor shifted = line - groups.spread(groups.reduced(line, "max"));
    const at::Tensor powers = shifted.exp(), sums = groups.reduced(powers, "sum");
    ctx->save_for_backward({powers, sums, groups.lengths, groups.of_place});
    return shifted - groups.spread(sums.log());
  }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &powers = saved[0], &sums = saved[1], &slopes = grads[0];
    const Groups groups{saved[2], saved[3]};
    return {slopes - groups.spread(groups.reduced(slopes, "sum") / sums) * powers, {}};
  }
};

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
  const int64_t n = scores.size(0);
  // One line of numbers, beginnings first: sums over single numbers are one loop, in their order.
  at::Tensor line = scores.t().reshape({2 * n});
  if (rows.allowed.defined()) {
    line = line.masked_fill(at::cat({rows.allowed, rows.allowed}).logical_not(), -INFINITY);
  }
  return LogSoftmaxNode::apply(line, groups_of(rows.offsets, n)).view({2, n}).t();
}

at::Tensor span_losses(const at::Tensor& scores, const SpanRows& rows, const at::Tensor& begins,
                       const at::Tensor& ends) {
  check_places(begins, rows.offsets, "beginnings");
  check_places(ends, rows.offsets, "ends");
  const at::Tensor log_p = span_log_probs(scores, rows);
  // Each sequence has a row of its own there, so that the gradient adds nothing up.
  const at::Tensor first = first_places(rows.offsets);
  const at::Tensor of_begins = log_p.select(1, 0).index_select(0, first + begins);
  const at::Tensor of_ends = log_p.select(1, 1).index_select(0, first + ends);
  return (of_begins + of_ends) * -0.5;
}

}  // namespace stretto::models
