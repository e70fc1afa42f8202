#include "optim/ftrl.h"

#include "kernels/optimizer/steps.h"

namespace stretto::optim {
namespace {

// One over a smaller rate would come near the end of fp32.
constexpr double kLeastFtrlRate = 1e-20;

}  // namespace

Ftrl::Ftrl(const OptimOptions& options, const Arena& arena, Slice slice)
    : options_(options),
      layout_(options, arena, slice),
      sum_(layout_.zeros(arena)),
      linear_(layout_.zeros(arena)),
      last_rate_(torch::zeros({2}, torch::kFloat)) {}

void Ftrl::step(Arena& arena, const UpdateStep& update) {
  if (update.lr < kLeastFtrlRate) return;
  float* last = last_rate_.data_ptr<float>();
  double before = static_cast<double>(last[0]) + static_cast<double>(last[1]);
  const double first = options_.ftrl_start == "zero" ? update.lr : 0;
  if (before == 0) before = first;
  std::vector<kernels::Run<kernels::FtrlScalars>> runs;
  for (const Part& part : layout_.stretches()) {
    const GroupSettings& group = layout_.settings(part);
    if (!steps(update, group) || update.lr * group.lr_scale < kLeastFtrlRate) continue;
    // What begins later has no rate before its first one either.
    const bool begins = group.begins > 0 && number_for(update, group) == 1;
    const double own_before = begins ? first : before;
    const auto inverse = [&](double rate) {
      return rate > 0 ? static_cast<float>(1 / (rate * group.lr_scale)) : 0.0f;
    };
    runs.push_back({part.begin,
                    part.end,
                    {.grad = static_cast<float>(update.grad_scale),
                     .decay = static_cast<float>(group.weight_decay),
                     .inverse_rate = inverse(update.lr),
                     .inverse_rate_before = inverse(own_before),
                     .accumulator = static_cast<float>(options_.initial_accumulator),
                     .l1 = group.exempt ? 0.0f : static_cast<float>(options_.l1),
                     .l2 = group.exempt ? 0.0f : static_cast<float>(2 * options_.l2)}});
  }
  last[0] = static_cast<float>(update.lr);
  last[1] = static_cast<float>(update.lr - static_cast<double>(last[0]));
  torch::Tensor params = layout_.part_of(arena.params());
  kernels::ftrl_runs(params, layout_.part_of(arena.grads()), sum_, linear_, runs);
}

std::vector<StateTensor> Ftrl::state() {
  return {{"sum", sum_}, {"linear", linear_}, {"last_rate", last_rate_, false}};
}

}  // namespace stretto::optim
