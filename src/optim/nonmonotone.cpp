#include "optim/nonmonotone.h"

#include <algorithm>
#include <cmath>

namespace stretto::optim {
namespace {

std::string name_of(size_t place) {
  return "recent." + std::to_string(place);
}

}  // namespace

void NonMonotone::look(double loss, int64_t updates) {
  if (looks_ == 0 || begin_ || !std::isfinite(loss)) return;
  if (loss > best_) begin_ = updates;
  recent_.push_back(loss);
  if (static_cast<int64_t>(recent_.size()) <= looks_) return;
  best_ = std::min(best_, recent_.front());
  recent_.erase(recent_.begin());
}

void NonMonotone::forget() {
  const auto begun = begin_;
  *this = NonMonotone(looks_);
  begin_ = begun;
}

std::map<std::string, double> NonMonotone::state() const {
  std::map<std::string, double> state;
  if (std::isfinite(best_)) state["best"] = best_;
  for (size_t i = 0; i < recent_.size(); ++i) state[name_of(i)] = recent_[i];
  if (begin_) state["begin"] = static_cast<double>(*begin_);
  return state;
}

void NonMonotone::restore(const std::map<std::string, double>& state) {
  *this = NonMonotone(looks_);
  if (const auto best = state.find("best"); best != state.end()) best_ = best->second;
  for (auto at = state.find(name_of(0)); at != state.end();
       at = state.find(name_of(recent_.size())))
    recent_.push_back(at->second);
  if (const auto begin = state.find("begin"); begin != state.end()) {
    begin_ = static_cast<int64_t>(begin->second);
  }
}

}  // namespace stretto::optim
