#include "optim/muon.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/optimizer/steps.h"
#include "optim/muon_tensors.h"
#include "optim/orthogonal.h"

namespace stretto::optim {
namespace {

OptimOptions with_decoupled_decay(OptimOptions options) {
  options.name = "adamw";
  return options;
}

kernels::Compute compute_of(const OptimOptions& options, const Arena& arena) {
  const bool is_half = options.muon_precision == "bf16" ||
                       (options.muon_precision == "auto" && !arena.params().is_cpu());
  return is_half ? kernels::Compute::kBf16 : kernels::Compute::kFp32;
}

double scale_of(const OptimOptions& options, int64_t rows, int64_t columns) {
  const auto r = static_cast<double>(rows), c = static_cast<double>(columns);
  return options.muon_scale == "rms" ? 0.2 * std::sqrt(std::max(r, c))
                                     : std::sqrt(std::max(1.0, r / c));
}

/// By slot: whether it has orthogonal steps.
std::vector<bool> find_matrices(const OptimOptions& options, const Arena& arena) {
  const auto names = names_of(arena);  // slots come first
  for (const auto& pattern : options.muon_adam_tensors) {
    if (const auto problem = matches_nothing(pattern, names)) {
      throw Error(ExitCode::kUsage, "optim.muon_adam_tensors: " + problem->what, problem->hint);
    }
  }
  std::vector<bool> is_matrix;
  for (size_t slot = 0; slot < arena.slots().size(); ++slot) {
    is_matrix.push_back(arena.slots()[slot].numel > 0 &&
                        has_orthogonal_steps(options, names[slot]));
  }
  return is_matrix;
}

/// Everything but the matrices, gaps behind tensors included; nothing where SGD steps it.
HeldElements held_by_adam(const OptimOptions& options, const Arena& arena,
                          const std::vector<bool>& is_matrix) {
  std::vector<Slice> stretches;
  if (options.muon_others == "sgd") return HeldElements(std::move(stretches));
  const auto& slots = arena.slots();
  for (size_t slot = 0; slot < slots.size(); ++slot) {
    const int64_t begin = slots[slot].offset;
    const int64_t end = slot + 1 < slots.size() ? slots[slot + 1].offset : arena.size();
    if (is_matrix[slot] || begin == end) continue;
    if (!stretches.empty() && stretches.back().end == begin) {
      stretches.back().end = end;
    } else {
      stretches.push_back({begin, end});
    }
  }
  return HeldElements(std::move(stretches));
}

/// Where the slices begin among the elements of a tensor.
std::vector<int64_t> begins_in(const Arena::Slot& slot, std::span<const int64_t> slice_begins) {
  std::vector<int64_t> begins;
  for (const int64_t begin : slice_begins) {
    begins.push_back(std::clamp<int64_t>(begin - slot.offset, 0, slot.numel));
  }
  return begins;
}

/// A matrix to be stepped.
struct Matrix {
  size_t slot;
  int64_t numbers;         ///< of the matrix
  torch::Tensor gathered;  ///< its direction; undefined where the whole of it is held here
};

/// Calls step(matrix) for each. The products of a small matrix are too short to share out: each
/// thread takes the largest one that is left. Who steps a matrix depends on its own size alone, and
/// so do its bits.
void for_each_matrix(std::vector<Matrix> matrices, bool on_cpu,
                     const std::function<void(const Matrix&)>& step) {
  constexpr int64_t kShared = int64_t{1} << 20;  // numbers; a larger one takes all threads
  const auto by_size = [](const Matrix& a, const Matrix& b) { return a.numbers > b.numbers; };
  std::stable_sort(matrices.begin(), matrices.end(), by_size);
  auto small = matrices.begin();
  for (; small != matrices.end() && (!on_cpu || small->numbers > kShared); ++small) step(*small);
  const auto first = small - matrices.begin(), end = std::ssize(matrices);
  std::atomic<ptrdiff_t> next = first;
  at::parallel_for(0, std::min<int64_t>(at::get_num_threads(), end - first), 1,
                   [&](int64_t, int64_t) {
                     const torch::NoGradGuard no_grad;  // of this thread
                     for (ptrdiff_t i = next++; i < end; i = next++)
                       step(matrices[static_cast<size_t>(i)]);
                   });
}

}  // namespace

Muon::Muon(const OptimOptions& options, const Arena& arena, Slice slice)
    : Muon(options, arena, slice, find_matrices(options, arena)) {}

Muon::Muon(const OptimOptions& options, const Arena& arena, Slice slice,
           std::vector<bool> is_matrix)
    : Adam(with_decoupled_decay(options), arena, slice, held_by_adam(options, arena, is_matrix)),
      compute_(compute_of(options, arena)),
      is_matrix_(std::move(is_matrix)) {}

bool Muon::is_cut(const Arena::Slot& slot, const UpdateStep& update) const {
  TORCH_CHECK(layout_.is_whole() || (!update.slice_begins.empty() && update.gather_over_ranks),
              "[muon] matrices need slice_begins and gather_over_ranks when a slice is stepped");
  return std::any_of(update.slice_begins.begin(), update.slice_begins.end(), [&](int64_t begin) {
    return begin > slot.offset && begin < slot.offset + slot.numel;
  });
}

void Muon::step(Arena& arena, const UpdateStep& update) {
  const torch::NoGradGuard no_grad;
  step_others(arena, update);
  std::vector<Matrix> matrices;
  for (size_t slot = 0; slot < is_matrix_.size(); ++slot) {
    const Arena::Slot& place = arena.slots()[slot];
    if (!is_matrix_[slot] || !steps(update, layout_.settings()[slot])) continue;
    // The processes meet over those that are cut before any of them computes for long.
    const torch::Tensor gathered =
        is_cut(place, update) ? gathered_direction(arena, update, slot) : torch::Tensor();
    if (part_in(place, layout_.slice()).size() > 0) {
      matrices.push_back({slot, place.numel, gathered});
    }
  }
  for_each_matrix(std::move(matrices), arena.params().is_cpu(), [&](const Matrix& matrix) {
    step_matrix(arena, update, matrix.slot, matrix.gathered);
  });
}

void Muon::step_matrix(Arena& arena, const UpdateStep& update, size_t slot,
                       const torch::Tensor& gathered) {
  const Slice part = part_in(arena.slots()[slot], layout_.slice());
  apply(arena, update, slot, gathered.defined() ? gathered : direction_of(arena, update, part));
}

void Muon::step_others(Arena& arena, const UpdateStep& update) {
  UpdateStep others = update;
  if (options_.muon_adam_lr > 0) others.lr *= options_.muon_adam_lr / options_.lr;
  if (options_.muon_others == "sgd") {
    step_by_sgd(arena, others);
  } else {
    step_by_adam(arena, others);
  }
}

void Muon::step_by_adam(Arena& arena, const UpdateStep& update) {
  std::vector<kernels::Run<kernels::AdamScalars>> runs;
  for (const Part& part : layout_.tensors()) {
    const GroupSettings& group = layout_.settings(part);
    if (is_matrix_[part.slot] || !steps(update, group)) continue;
    runs.push_back({part.begin, part.end, numbers(update, group)});
  }
  step_runs(arena, runs);
}

void Muon::step_by_sgd(Arena& arena, const UpdateStep& update) {
  const double momentum = options_.muon_other_momentum;
  std::vector<kernels::Run<kernels::MomentumScalars>> runs;
  for (const Part& part : layout_.tensors()) {
    const GroupSettings& group = layout_.settings(part);
    if (is_matrix_[part.slot] || !steps(update, group)) continue;
    const double lr = update.lr * group.lr_scale;
    runs.push_back({part.begin,
                    part.end,
                    {.grad = static_cast<float>(update.grad_scale),
                     .decay = static_cast<float>(group.weight_decay),
                     .carry = static_cast<float>(momentum),
                     .gain = 1,
                     .ahead = static_cast<float>(lr),
                     .look = static_cast<float>(lr * momentum)}});
  }
  torch::Tensor params = layout_.part_of(arena.params());
  kernels::momentum_runs(params, layout_.part_of(arena.grads()), exp_avg(), runs);
}

// Moves the averages of elements of the arena, and gives what of them is to become orthogonal.
torch::Tensor Muon::direction_of(Arena& arena, const UpdateStep& update, Slice part) {
  const auto keep = static_cast<float>(options_.muon_momentum);
  const auto gain = static_cast<float>(1 - options_.muon_momentum);
  const bool nesterov = options_.muon_nesterov;
  // The loop takes `ahead` times the gradient and `look` times the average off its first buffer,
  // which is zero here.
  const kernels::Run<kernels::MomentumScalars> run{0,
                                                   part.size(),
                                                   {.grad = static_cast<float>(update.grad_scale),
                                                    .decay = 0,
                                                    .carry = keep,
                                                    .gain = gain,
                                                    .ahead = nesterov ? -gain : 0.0f,
                                                    .look = nesterov ? -keep : -1.0f}};
  torch::Tensor values = torch::zeros({part.size()}, arena.params().options());
  torch::Tensor average = exp_avg().narrow(0, part.begin - layout_.slice().begin, part.size());
  kernels::momentum_runs(values, arena.grads().narrow(0, part.begin, part.size()), average,
                         std::span(&run, 1));
  return values;
}

// The same for a matrix of which other processes have a part; all of them come here.
torch::Tensor Muon::gathered_direction(Arena& arena, const UpdateStep& update, size_t slot) {
  const Arena::Slot& place = arena.slots()[slot];
  const Slice mine = part_in(place, layout_.slice());
  torch::Tensor whole = torch::empty({place.numel}, arena.params().options());
  if (mine.size() > 0) {
    whole.narrow(0, mine.begin - place.offset, mine.size())
        .copy_(direction_of(arena, update, mine));
  }
  update.gather_over_ranks(whole, begins_in(place, update.slice_begins));
  return whole;
}

/// @param direction  of the whole matrix, flat
void Muon::apply(Arena& arena, const UpdateStep& update, size_t slot,
                 const torch::Tensor& direction) {
  const Arena::Slot& place = arena.slots()[slot];
  const GroupSettings& group = layout_.settings()[slot];
  const Slice mine = part_in(place, layout_.slice());
  const double lr = update.lr * group.lr_scale;
  const int64_t all_rows = place.shape.front(), columns = place.numel / all_rows;
  const bool is_split = options_.muon_split && !place.part_rows.empty();
  const auto parts = is_split ? place.part_rows : std::vector<int64_t>{all_rows};
  int64_t end = place.offset;
  for (const int64_t rows : parts) {
    const int64_t begin = std::exchange(end, end + rows * columns);
    const int64_t from = std::max(begin, mine.begin), to = std::min(end, mine.end);
    if (from >= to) continue;
    const torch::Tensor matrix =
        direction.narrow(0, begin - place.offset, end - begin).view({rows, columns});
    torch::Tensor change = orthogonalised(matrix, compute_, options_.muon_iterations)
                               .reshape({-1})
                               .narrow(0, from - begin, to - from);
    change.mul_(lr * scale_of(options_, rows, columns));
    torch::Tensor weights = arena.params().narrow(0, from, to - from);
    if (options_.muon_fixed_norm) {
      scale_by_norm(weights, arena.params().narrow(0, begin, end - begin),
                    std::sqrt(static_cast<double>(rows)));
    }
    weights.mul_(1 - lr * group.weight_decay).sub_(change);
  }
}

}  // namespace stretto::optim
