#include "parallel/ready_watch.h"

#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

namespace stretto::parallel {

using torch::autograd::variable_list;
using torch::autograd::utils::LambdaPostHook;

ReadyWatch::ReadyWatch(const optim::Arena& arena, std::function<void(size_t)> on_ready)
    : on_ready_(std::move(on_ready)), times_(arena.slots().size()), expected_(times_.size()) {
  for (size_t slot = 0; slot < times_.size(); ++slot) {
    auto node = torch::autograd::impl::grad_accumulator(arena.parameter(slot));
    const auto hook = [this, slot](const variable_list& outputs, const variable_list&) {
      accumulated(slot);
      return outputs;
    };
    const uintptr_t key = node->add_post_hook(std::make_unique<LambdaPostHook>(hook));
    hooks_.emplace_back(std::move(node), key);
  }
}

ReadyWatch::~ReadyWatch() {
  for (const auto& [node, key] : hooks_) node->del_post_hook(key);
}

void ReadyWatch::start(Mode mode) {
  const std::lock_guard lock(mutex_);
  std::fill(times_.begin(), times_.end(), 0);
  events_.clear();
  mode_.store(mode);
}

void ReadyWatch::start_reporting(const Readiness& readiness) {
  expected_ = readiness.times;
  start(Mode::kReporting);
}

void ReadyWatch::accumulated(size_t slot) {
  if (mode_.load() == Mode::kOff) return;
  const std::lock_guard lock(mutex_);
  const int64_t times = ++times_[slot];
  if (mode_.load() == Mode::kLearning) {
    events_.push_back(slot);
  } else if (times == expected_[slot]) {
    on_ready_(slot);
  } else if (expected_[slot] > 0 && times > expected_[slot]) {
    late_ = slot;
  }
}

Readiness ReadyWatch::learned() const {
  const std::lock_guard lock(mutex_);
  Readiness result{.order = {}, .times = times_};
  std::vector<bool> seen(times_.size());
  for (auto slot = events_.rbegin(); slot != events_.rend(); ++slot) {
    if (!seen[*slot]) result.order.push_back(*slot);
    seen[*slot] = true;
  }
  std::reverse(result.order.begin(), result.order.end());
  for (size_t slot = times_.size(); slot-- > 0;) {
    if (!seen[slot]) result.order.push_back(slot);
  }
  return result;
}

std::optional<size_t> ReadyWatch::late() {
  const std::lock_guard lock(mutex_);
  return std::exchange(late_, std::nullopt);
}

}  // namespace stretto::parallel
