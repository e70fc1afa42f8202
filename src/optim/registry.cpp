#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "optim/adafactor.h"
#include "optim/adagrad.h"
#include "optim/adam.h"
#include "optim/bounded_gradients.h"
#include "optim/ftrl.h"
#include "optim/lamb.h"
#include "optim/lars.h"
#include "optim/lazy_adam.h"
#include "optim/muon.h"
#include "optim/novograd.h"
#include "optim/optimizer.h"
#include "optim/radam.h"
#include "optim/rmsprop.h"
#include "optim/sgd.h"

namespace stretto::optim {
namespace {

using MakeOptimizer = std::unique_ptr<Optimizer> (*)(const OptimOptions&, const Arena&, Slice);

template <class T>
std::unique_ptr<Optimizer> make(const OptimOptions& options, const Arena& arena, Slice slice) {
  return std::make_unique<T>(options, arena, slice);
}

/// The optimizer of a process that updates nothing, as every rank of a parameter server but rank 0:
/// its state is not sharded, and has the same size on every process, so that it can be handed
/// around.
class Idle : public Optimizer {
 public:
  explicit Idle(std::unique_ptr<Optimizer> whole) : whole_(std::move(whole)) {}
  void step(Arena&, const UpdateStep&) override {}
  std::vector<StateTensor> state() override { return whole_->state(); }

 private:
  std::unique_ptr<Optimizer> whole_;
};

std::unique_ptr<Optimizer> make_adafactor(const OptimOptions& options, const Arena& arena,
                                          Slice slice) {
  if (slice.size() > 0) return std::make_unique<Adafactor>(options, arena, slice);
  return std::make_unique<Idle>(
      std::make_unique<Adafactor>(options, arena, Slice{0, arena.size()}));
}

constexpr std::array<std::pair<std::string_view, MakeOptimizer>, 14> kOptimizers{{
    {"adam", &make<Adam>},
    {"adamw", &make<Adam>},
    {"radam", &make<Radam>},
    {"lamb", &make<Lamb>},
    {"sgd", &make<Sgd>},
    {"lars", &make<Lars>},
    {"larc", &make<Lars>},
    {"novograd", &make<Novograd>},
    {"adagrad", &make<Adagrad>},
    {"rmsprop", &make<Rmsprop>},
    {"adafactor", &make_adafactor},
    {"ftrl", &make<Ftrl>},
    {"lazy_adam", &make<LazyAdam>},
    {"muon", &make<Muon>},
}};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const OptimOptions& options, const Arena& arena,
                                          Slice slice) {
  std::string known;
  for (const auto& [name, create] : kOptimizers) {
    if (name == options.name) {
      auto rule = create(options, arena, slice);
      if (!options.bounds_gradients()) return rule;
      return std::make_unique<BoundedGradients>(options, arena, slice, std::move(rule));
    }
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw Error(ExitCode::kUsage, "optim.name: unknown optimizer `" + options.name + "`",
              "known: " + known);
}

std::unique_ptr<Optimizer> make_optimizer(const OptimOptions& options, const Arena& arena) {
  return make_optimizer(options, arena, {0, arena.size()});
}

std::vector<Arena::Slot> slots_in(const HeldElements& held, const std::vector<Arena::Slot>& slots) {
  std::vector<Arena::Slot> found;
  for (const auto& slot : slots) {
    const Slice elements{slot.offset, slot.offset + slot.numel};
    if (!held.has(elements)) continue;
    found.push_back(slot);
    found.back().offset = held.place_of(elements).begin;
  }
  return found;
}

double clip_factor(double norm, double clip_norm) {
  if (clip_norm <= 0) return 1.0;
  return std::min(1.0, clip_norm / (norm + 1e-6));
}

}  // namespace stretto::optim
