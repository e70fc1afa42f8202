#include "models/speech/location_attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "kernels/convolution/convolution.h"
#include "nn/init_rules.h"
#include "nn/watch.h"

namespace stretto::models {
namespace {

/// exp(scores) over their sum in each lane, [R]; sums are taken in the order of rows.
at::Tensor softmax_of_lanes(const at::Tensor& scores, const AttendedRows& rows) {
  const auto of_rows = [&](const at::Tensor& of_lanes) {
    return of_lanes.index_select(0, rows.lanes);
  };
  const at::Tensor largest =
      at::segment_reduce(scores.detach(), "max", at::diff(rows.bounds), {}, {}, 0, /*unsafe=*/true);
  const at::Tensor raised = (scores - of_rows(largest)).exp();
  const at::Tensor sums =
      at::zeros({rows.num_lanes()}, raised.options()).index_add(0, rows.lanes, raised);
  return raised / of_rows(sums);
}

/// The sum of the rows that each lane attends to, weighed, [n, M].
at::Tensor weighed_rows(const at::Tensor& weights, const AttendedRows& rows) {
  constexpr int64_t kSum = 0;
  // at::embedding_bag has no gradient of the weights where the rows have none.
  return std::get<0>(at::_embedding_bag(rows.values, rows.places, rows.bounds,
                                        /*scale_grad_by_freq=*/false, kSum, /*sparse=*/false,
                                        weights, /*include_last_offset=*/true));
}

bool are_all_in_order(const AttendingLanes& lanes) {
  if (lanes.sources.size() != lanes.lengths.size()) return false;
  for (size_t i = 0; i < lanes.sources.size(); ++i) {
    if (lanes.sources[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

}  // namespace

AttendedRows AttendedRows::first(int64_t count, int64_t rows) const {
  if (count == num_lanes()) return *this;
  AttendedRows some = *this;
  some.keys = keys.narrow(0, 0, rows);
  some.places = places.narrow(0, 0, rows);
  some.lanes = lanes.narrow(0, 0, rows);
  some.bounds = bounds.narrow(0, 0, count + 1);
  some.offsets.values = offsets.values.narrow(0, 0, count + 1);
  return some;
}

AttendedRows attended_rows(const at::Tensor& keys, const at::Tensor& values,
                           const AttendingLanes& lanes) {
  std::vector<int64_t> begins(lanes.lengths.size() + 1, 0);
  std::partial_sum(lanes.lengths.begin(), lanes.lengths.end(), begins.begin() + 1);
  std::vector<int64_t> places, owners, bounds{0};
  AttendedRows rows;
  for (size_t lane = 0; lane < lanes.sources.size(); ++lane) {
    const auto source = static_cast<size_t>(lanes.sources[lane]);
    for (int64_t row = begins[source]; row < begins[source + 1]; ++row) {
      places.push_back(row);
      owners.push_back(static_cast<int64_t>(lane));
    }
    bounds.push_back(static_cast<int64_t>(places.size()));
    rows.offsets.max_length = std::max(rows.offsets.max_length, lanes.lengths[source]);
  }
  const at::Device device = keys.device();
  rows.places = at::tensor(places, at::kLong).to(device);
  rows.lanes = at::tensor(owners, at::kLong).to(device);
  rows.bounds = at::tensor(bounds, at::kLong).to(device);
  rows.offsets.values = rows.bounds.to(at::kInt);
  rows.keys = are_all_in_order(lanes) ? keys : keys.index_select(0, rows.places);
  rows.values = values.contiguous();
  return rows;
}

LocationAttentionImpl::LocationAttentionImpl(const nn::Init& init,
                                             const AttentionDecoderOptions& options,
                                             const Widths& widths)
    : coverage_(options.coverage), memory_width_(widths.memory) {
  const auto map = [&](const char* name, int64_t in, int64_t out, bool bias) {
    return register_module(name,
                           nn::Linear(init.child(name), in, out, nn::LinearOptions{.bias = bias}));
  };
  const int64_t width = options.attention_dim;
  query_ = map("query", widths.state, width, false);
  key_ = map("key", widths.memory, width, true);
  location_ = map("location", options.location_filters, width, false);
  score_ = map("score", width, 1, false);
  const nn::InitRule rule{.distribution = nn::Distribution::kUniform,
                          .number = 1.0 / std::sqrt(static_cast<double>(options.location_kernel))};
  filters_ = register_parameter(
      "filters", init.matrix("filters", options.location_filters, options.location_kernel, rule));
}

LocationAttentionImpl::Result LocationAttentionImpl::forward(const at::Tensor& state,
                                                             const AttendedRows& rows,
                                                             const at::Tensor& seen) const {
  if (rows.num_rows() == 0) {
    return {.context = at::zeros({rows.num_lanes(), memory_width_}, state.options()),
            .weights = at::zeros({0}, state.options())};
  }
  at::Tensor sums = rows.keys + query_->forward(state).index_select(0, rows.lanes);
  if (seen.defined()) {
    const kernels::TimeWindow window{.offsets = rows.offsets, .kernel = filters_.size(1)};
    sums = sums +
           location_->forward(kernels::time_convolution(seen.unsqueeze(1), filters_, {}, window));
  }
  const at::Tensor scores = score_->forward(at::tanh(sums)).squeeze(1);
  const at::Tensor weights = softmax_of_lanes(scores, rows);
  return {.context = nn::watch(*this, weighed_rows(weights, rows)), .weights = weights};
}

at::Tensor LocationAttentionImpl::seen_after(const at::Tensor& weights,
                                             const at::Tensor& seen) const {
  return coverage_ && seen.defined() ? seen + weights : weights;
}

double LocationAttentionImpl::operations(double length) const {
  const double of_row = location_->operations() + score_->operations() +
                        2 * static_cast<double>(filters_.numel() + memory_width_);
  return query_->operations() + length * of_row;
}

}  // namespace stretto::models
