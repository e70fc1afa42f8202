#pragma once

#include <torch/csrc/autograd/function.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "optim/arena.h"

namespace stretto::parallel {

/// In which order the gradients of an arena become ready in a backward pass.
struct Readiness {
  std::vector<size_t> order;   ///< slots by their last accumulation; those without one come last
  std::vector<int64_t> times;  ///< by slot: accumulations in one backward, 0 = none
};

/// Tells during backward when the gradient of a slot is complete, by hooks behind autograd's
/// accumulation into each parameter. A tensor that several layers share may be accumulated into
/// more than once: it is complete when that happened as often as in the pass that was learned from.
///
/// The hooks run on the thread of the backward pass (on a GPU one of autograd's own).
class ReadyWatch {
 public:
  /// `on_ready(slot)` is called from the hooks, one call at a time. The arena must outlive this.
  ReadyWatch(const optim::Arena& arena, std::function<void(size_t)> on_ready);
  ~ReadyWatch();
  ReadyWatch(const ReadyWatch&) = delete;
  ReadyWatch& operator=(const ReadyWatch&) = delete;

  /// The next backward pass is only looked at, to learn from it.
  void start_learning() { start(Mode::kLearning); }
  /// In the next backward pass on_ready is called for each slot of `readiness` that is accumulated
  /// into at all.
  void start_reporting(const Readiness& readiness);
  void stop() { mode_.store(Mode::kOff); }

  /// What the pass since start_learning() showed.
  Readiness learned() const;
  /// A slot that was accumulated into after on_ready was called for it, since the last call.
  std::optional<size_t> late();

 private:
  enum class Mode { kOff, kLearning, kReporting };
  void start(Mode mode);
  void accumulated(size_t slot);

  std::function<void(size_t)> on_ready_;
  std::atomic<Mode> mode_{Mode::kOff};
  mutable std::mutex mutex_;
  std::vector<int64_t> times_, expected_;
  std::vector<size_t> events_;  // slots as they were accumulated into, while learning
  std::optional<size_t> late_;
  // Parameters hold their accumulation nodes weakly; without an owner the hooks would vanish.
  std::vector<std::pair<std::shared_ptr<torch::autograd::Node>, uintptr_t>> hooks_;
};

}  // namespace stretto::parallel
