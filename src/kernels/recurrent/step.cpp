#include "kernels/recurrent/step.h"

#include <ATen/ATen.h>

#include <optional>

#include "kernels/cuda/table.h"
#include "kernels/dispatch.h"
#include "kernels/recurrent/attentive_forward.h"
#include "kernels/recurrent/checks.h"
#include "kernels/recurrent/node.h"
#include "kernels/recurrent/reference.h"
#include "kernels/rounding.h"

namespace stretto::kernels {
namespace {

/// Decoding draws nothing.
CellOptions at_its_mean(CellOptions options) {
  options.zoneout.expected = true;
  return options;
}

RecurrentState contiguous_state(const RecurrentState& state) {
  return {fused::contiguous_or_none(state.h), fused::contiguous_or_none(state.c)};
}

/// Weights whose codes became numbers.
AttentiveWeights numbers_of(AttentiveWeights weights, const at::TensorOptions& options) {
  for (at::Tensor* weight : {&weights.recurrent.hidden, &weights.context, &weights.query})
    if (stood_for(*weight)) *weight = dense_weight(*weight).to(options);
  return weights;
}

void check_lanes(const at::Tensor& x_gates, const RecurrentWeights& weights,
                 const RecurrentState& before, const char* name) {
  const int64_t width = weights.hidden.size(1);
  TORCH_CHECK(x_gates.dim() == 2 && x_gates.size(1) == weights.hidden.size(0), "[kernels] ", name,
              ": x_gates must be [L, ", weights.hidden.size(0), "], got ", x_gates.sizes());
  checks::state(before.h, x_gates.size(0), width, "a decoding step: h");
  checks::state(before.c, x_gates.size(0), width, "a decoding step: c");
}

bool is_fused_cell(const RecurrentWeights& weights) {
  return checks::is_fused({weights.hidden, weights.hidden_bias, weights.product_gain,
                           weights.product_bias, weights.cell_gain, weights.cell_bias});
}

/// The source of each lane, int64 [lanes] on the lanes' device.
at::Tensor sources_of(const Offsets& query_offsets, const Memory& memory, const at::Tensor& x) {
  const at::Tensor offsets = query_offsets.values.to(at::kLong);
  TORCH_CHECK(offsets.sizes() == memory.offsets.values.sizes(),
              "[kernels] AttentiveStep: lanes are grouped into ", offsets.size(0) - 1,
              " sources, the memory has ", memory.offsets.values.size(0) - 1);
  const at::Tensor sources = at::repeat_interleave(at::diff(offsets)).to(x.device());
  TORCH_CHECK(sources.numel() == x.size(0), "[kernels] AttentiveStep: query_offsets end at ",
              sources.numel(), ", but there are ", x.size(0), " lanes");
  return sources.contiguous();
}

/// For each lane the weights of its own source, joined; `weights` is [lanes, longest].
at::Tensor joined_weights(const at::Tensor& weights, const Memory& memory,
                          const at::Tensor& sources) {
  const at::Tensor counts = at::diff(memory.offsets.values.to(at::kLong)).to(weights.device());
  const at::Tensor own = counts.index_select(0, sources).unsqueeze(1);
  return weights.masked_select(at::arange(weights.size(1), own.options()).unsqueeze(0).lt(own));
}

}  // namespace

struct RecurrentStep::Parts {
  RecurrentWeights weights;
  CellOptions options;
  Compute compute;
  std::optional<StepFactor> hidden;  ///< fp32 on the CPU only
  at::Tensor bias;

  RecurrentState run(const at::Tensor& x_gates, const RecurrentState& before) const {
    const Schedule schedule(x_gates.size(0));
    const CellProblem problem{
        schedule, options, weights, contiguous_state(before), {}, weights.hidden.size(1)};
    const at::Tensor x = x_gates.contiguous();
    CellForward cells(problem, x, compute, false);
    const bool starts = cells.start();
    run_steps(schedule, weights.hidden.numel(), Time::kForward,
              [&](int64_t step, const Bundle& bundle, const ThreadTeam& team) {
                const fused::StepPart part{bundle, bundle.rows(schedule.active(step))};
                if (part.count <= 0) return;
                fused::multiply_hidden(cells, starts, *hidden, bias, part, team);
                team.wait();
                const ThreadTeam::Range mine = team.range(part.count);
                for (int64_t i = mine.begin; i < mine.end; ++i)
                  cells.row(bundle.rank(i), step, nullptr);
              });
    return cells.last();
  }
};

RecurrentStep::RecurrentStep(const RecurrentWeights& weights, const CellOptions& options) {
  checks::weights_of_cell(weights, options, "RecurrentStep");
  auto parts = std::make_unique<Parts>(Parts{
      fused::contiguous(weights), at_its_mean(options), ComputeScope::current(), std::nullopt, {}});
  if (is_fused_cell(weights)) {
    parts->hidden.emplace(parts->weights.hidden, parts->compute);
    parts->bias = rounded(parts->weights.hidden_bias, parts->compute);
  }
  parts_ = std::move(parts);
}

RecurrentStep::~RecurrentStep() = default;
RecurrentStep::RecurrentStep(RecurrentStep&&) noexcept = default;
RecurrentStep& RecurrentStep::operator=(RecurrentStep&&) noexcept = default;

RecurrentState RecurrentStep::operator()(const at::Tensor& x_gates,
                                         const RecurrentState& before) const {
  const at::NoGradGuard no_grad;
  const Parts& parts = *parts_;
  check_lanes(x_gates, parts.weights, before, "RecurrentStep");
  if (parts.hidden && checks::is_fused({x_gates, before.h, before.c}))
    return parts.run(x_gates, before);
  const ComputeScope scope(parts.compute);
  RecurrentWeights weights = parts.weights;
  if (stood_for(weights.hidden))
    weights.hidden = dense_weight(weights.hidden).to(x_gates.options());
  const auto kernel = on_gpu(cuda::table().recurrent_step, x_gates, weights.hidden);
  return kernel != nullptr ? kernel(x_gates, weights, before, parts.options)
                           : reference::step(x_gates, weights, before, parts.options);
}

struct AttentiveStep::Parts {
  AttentiveWeights weights;
  CellOptions options;
  Score score;
  Compute compute;
  std::optional<AttentivePacks> packs;
};

struct AttentiveStep::Source::Parts {
  Memory memory;
  PreparedMemory prepared;
};

AttentiveStep::Source::Source() = default;
AttentiveStep::Source::~Source() = default;
AttentiveStep::Source::Source(Source&&) noexcept = default;
AttentiveStep::Source& AttentiveStep::Source::operator=(Source&&) noexcept = default;
AttentiveStep::~AttentiveStep() = default;
AttentiveStep::AttentiveStep(AttentiveStep&&) noexcept = default;
AttentiveStep& AttentiveStep::operator=(AttentiveStep&&) noexcept = default;

AttentiveStep::AttentiveStep(const AttentiveWeights& weights, const CellOptions& options,
                             Score score) {
  const at::NoGradGuard no_grad;
  checks::weights_of_cell(weights.recurrent, options, "AttentiveStep");
  checks::weights_of_attention(weights, score, "AttentiveStep");
  TORCH_CHECK(!weights.location.defined(),
              "[kernels] AttentiveStep: steps have no state of attention weights, which "
              "location would read");
  AttentiveWeights own{
      fused::contiguous(weights.recurrent),      fused::contiguous_or_codes(weights.context),
      fused::contiguous_or_codes(weights.query), fused::contiguous_or_none(weights.query_bias),
      fused::contiguous_or_none(weights.score),  fused::contiguous_or_none(weights.gain)};
  own = plain_score(std::move(own), score);
  if (score == Score::kNormedAdditive) score = Score::kAdditive;
  auto parts = std::make_unique<Parts>(
      Parts{own, at_its_mean(options), score, ComputeScope::current(), std::nullopt});
  if (is_fused_cell(own.recurrent) &&
      checks::is_fused({own.context, own.query, own.query_bias, own.score, own.gain}))
    parts->packs.emplace(own, parts->compute);
  parts_ = std::move(parts);
}

AttentiveStep::Source AttentiveStep::prepare(const Memory& memory) const {
  const at::NoGradGuard no_grad;
  const Parts& parts = *parts_;
  checks::memory(memory, parts.weights, memory.offsets.values.size(0) - 1, "AttentiveStep");
  Source source;
  const bool fused = parts.packs && checks::is_fused({memory.keys, memory.values});
  source.parts_ = std::make_unique<const Source::Parts>(Source::Parts{
      memory, fused ? PreparedMemory(memory, parts.score, parts.compute) : PreparedMemory()});
  return source;
}

AttentiveStep::Result AttentiveStep::operator()(const at::Tensor& x_gates,
                                                const AttentiveState& before, const Source& source,
                                                const Offsets& query_offsets,
                                                bool wants_weights) const {
  const at::NoGradGuard no_grad;
  TORCH_CHECK(source.parts_ != nullptr,
              "[kernels] AttentiveStep: the source is empty; make it with prepare()");
  const Parts& parts = *parts_;
  const Source::Parts& seen = *source.parts_;
  check_lanes(x_gates, parts.weights.recurrent, {before.h, before.c}, "AttentiveStep");
  checks::state(before.context, x_gates.size(0), seen.memory.values.size(1),
                "a decoding step: the context");
  const at::Tensor sources = sources_of(query_offsets, seen.memory, x_gates);
  const ComputeScope scope(parts.compute);
  if (!parts.packs || !seen.prepared.keys.defined() ||
      !checks::is_fused({x_gates, before.h, before.c, before.context})) {
    at::Tensor weights;
    const AttentiveWeights numbers = numbers_of(parts.weights, x_gates.options());
    const auto kernel = on_gpu(cuda::table().attentive_step, x_gates, numbers.recurrent.hidden);
    decltype(kernel) plain = reference::step;
    const auto step = kernel != nullptr ? kernel : plain;
    const AttentiveState next =
        step(x_gates, numbers, seen.memory, sources, before, parts.options, parts.score, &weights);
    return {next, wants_weights ? joined_weights(weights, seen.memory, sources) : at::Tensor()};
  }
  const int64_t* lane = sources.const_data_ptr<int64_t>();
  const AttentiveState state{fused::contiguous_or_none(before.h),
                             fused::contiguous_or_none(before.c),
                             fused::contiguous_or_none(before.context)};
  const AttentiveLayer layer(parts.weights, seen.prepared, state, parts.options,
                             std::vector<int64_t>(lane, lane + sources.numel()), parts.compute);
  const AttentiveResult result = run_forward(layer, *parts.packs, x_gates.contiguous(), false);
  return {{result.last.h, result.last.c, result.trace.context},
          wants_weights ? result.trace.weights : at::Tensor()};
}

}  // namespace stretto::kernels
