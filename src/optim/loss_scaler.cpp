#include "optim/loss_scaler.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "config/schema.h"

namespace stretto::optim {
namespace {

using config::number_text;
using State = std::map<std::string, double>;

double at(const State& state, const std::string& name) {
  const auto found = state.find(name);
  if (found != state.end()) return found->second;
  throw Error(ExitCode::kBadData, "the saved state of the loss scaler has no `" + name + "`",
              "it was written with another train.loss_scale.name; keep that, or start a new run");
}

/// The smallest scale, and whether it is that of train.loss_scale.min.
struct Floor {
  double least;
  bool is_set;
};

/// @param scale  at which it happened
[[noreturn]] void stop_at_floor(double scale, const Floor& floor) {
  throw Error(ExitCode::kNumeric,
              "a gradient overflowed at the loss scale " + number_text(scale) +
                  ", and no smaller one is allowed (smallest: " + number_text(floor.least) + ")" +
                  (floor.is_set ? "" : ": the loss is probably exploding"),
              floor.is_set ? "lower train.loss_scale.min, " + number_text(floor.least) : "");
}

/// One scale for ever; 1 for "none".
class StaticScaler : public LossScaler {
 public:
  StaticScaler(std::string name, double scale) : name_(std::move(name)), scale_(scale) {}
  std::string name() const override { return name_; }
  double scale() const override { return scale_; }
  bool adapts() const override { return false; }
  void update(const ScaledStep&) override {}
  State state() const override { return {{"scale", scale_}}; }
  void restore(const State& state) override { scale_ = at(state, "scale"); }

 private:
  std::string name_;
  double scale_;
};

/// "backoff" (OpenSeq2Seq) and "fairseq": divided by `factor` on overflow, multiplied by it
/// whenever `window` attempts have passed since the last one. They differ in constants and in the
/// floor: the one stays at its smallest scale for as long as nothing overflows there, the other
/// never takes it.
class DynamicScaler : public LossScaler {
 public:
  struct Limits {
    std::string name;
    double init, most, factor;
    Floor floor;
    int64_t window;
    bool floor_is_allowed;
  };

  explicit DynamicScaler(Limits limits) : limits_(std::move(limits)), scale_(limits_.init) {}

  std::string name() const override { return limits_.name; }
  double scale() const override { return scale_; }

  void update(const ScaledStep& step) override {
    if (step.overflow) {
      const double least = limits_.floor.least, smaller = scale_ / limits_.factor;
      if (limits_.floor_is_allowed ? scale_ <= least : smaller <= least)
        stop_at_floor(scale_, limits_.floor);
      scale_ = std::max(smaller, least);
      last_overflow_ = iteration_;
    } else if ((iteration_ - last_overflow_) % limits_.window == 0) {
      scale_ = std::min(scale_ * limits_.factor, limits_.most);
    }
    ++iteration_;
  }

  State state() const override {
    return {{"scale", scale_},
            {"iteration", static_cast<double>(iteration_)},
            {"last_overflow", static_cast<double>(last_overflow_)}};
  }
  void restore(const State& state) override {
    scale_ = at(state, "scale");
    iteration_ = static_cast<int64_t>(at(state, "iteration"));
    last_overflow_ = static_cast<int64_t>(at(state, "last_overflow"));
  }

 private:
  Limits limits_;
  double scale_;
  int64_t iteration_ = 0;
  int64_t last_overflow_ = -1;  // so that the first growth comes after `window` attempts
};

/// "logmax" (OpenSeq2Seq): x = log2 of the largest gradient, taken as normally distributed; the
/// scale is the largest at which one update in a thousand overflows,
///
///     scale = 2^(16 - (m + 3.09 sigma)),   m = mean of x (decay 0.99),
///     sigma^2 = mean of x^2 - (mean of x)^2 (decay 0.999), all corrected by 1 - decay^t,
///
/// since binary16 ends just under 2^16. An overflow counts as x = 16; upstream feeds 2^16 into this
/// average of logarithms, which keeps the scale at its minimum for long. At scales of 1 and less,
/// which upstream has not, it says that x is above 16 - log2 scale, and counts as one more than
/// that: 16 would keep the scale, or raise it. A gradient that is zero everywhere has no logarithm
/// and says nothing: the averages stay.
class LogMaxScaler : public LossScaler {
 public:
  LogMaxScaler(double init, Floor floor, double most) : floor_(floor), most_(most), scale_(init) {}

  std::string name() const override { return "logmax"; }
  double scale() const override { return scale_; }
  bool wants_max_abs() const override { return true; }

  void update(const ScaledStep& step) override {
    const bool overflow = step.overflow || !std::isfinite(step.max_abs);
    if (overflow && scale_ <= floor_.least) stop_at_floor(scale_, floor_);
    if (!overflow && step.max_abs <= 0) return;
    const double x = overflow ? overflowed() : std::log2(step.max_abs);
    count_ += 1;
    mean_ = kBeta1 * mean_ + (1 - kBeta1) * x;
    slow_mean_ = kBeta2 * slow_mean_ + (1 - kBeta2) * x;
    slow_square_ = kBeta2 * slow_square_ + (1 - kBeta2) * x * x;
    const double fast = 1 - std::pow(kBeta1, count_), slow = 1 - std::pow(kBeta2, count_);
    const double m = mean_ / fast, s = slow_mean_ / slow, q = slow_square_ / slow;
    const double cutoff = m + kDeviations * std::sqrt(std::max(0.0, q - s * s));
    scale_ = std::clamp(std::exp2(kLogMax - cutoff), floor_.least, most_);
  }

  State state() const override {
    return {{"scale", scale_},
            {"count", count_},
            {"mean", mean_},
            {"slow_mean", slow_mean_},
            {"slow_square", slow_square_}};
  }
  void restore(const State& state) override {
    scale_ = at(state, "scale");
    count_ = at(state, "count");
    mean_ = at(state, "mean");
    slow_mean_ = at(state, "slow_mean");
    slow_square_ = at(state, "slow_square");
  }

 private:
  static constexpr double kLogMax = 16, kBeta1 = 0.99, kBeta2 = 0.999;
  static constexpr double kDeviations = 3.09;  // one side of a normal distribution: 1 in 1000

  double overflowed() const { return scale_ > 1 ? kLogMax : kLogMax - std::log2(scale_) + 1; }

  Floor floor_;
  double most_, scale_;
  double count_ = 0, mean_ = 0, slow_mean_ = 0, slow_square_ = 0;
};

const LossScaleMethod& method_of(const std::string& name) {
  if (const auto* method = find_loss_scale_method(name)) return *method;
  std::string known;
  for (const auto& method : kLossScaleMethods) {
    known += (known.empty() ? "" : ", ") + std::string(method.name);
  }
  throw Error(ExitCode::kUsage, "train.loss_scale.name: unknown method `" + name + "`",
              "known: " + known);
}

}  // namespace

std::unique_ptr<LossScaler> make_loss_scaler(const LossScaleOptions& options, int64_t update_freq) {
  const LossScaleMethod& method = method_of(options.name);
  if (method.name == "none") return std::make_unique<StaticScaler>("none", 1.0);
  const auto [least, most] = loss_scale_bounds(options, method);
  if (least > most)
    throw Error(
        ExitCode::kUsage,
        "train.loss_scale: min " + number_text(least) + " is above max " + number_text(most),
        "set train.loss_scale.min below train.loss_scale.max");
  if (options.init > 0 && (options.init < least || options.init > most))
    throw Error(ExitCode::kUsage,
                "train.loss_scale: init " + number_text(options.init) + " is outside of what \"" +
                    options.name + "\" allows, " + number_text(least) + " to " + number_text(most),
                "set train.loss_scale.min and train.loss_scale.max around it");
  const double init = std::clamp(options.init > 0 ? options.init : method.init, least, most);
  const Floor floor{.least = least, .is_set = options.min == least};
  if (method.name == "static") return std::make_unique<StaticScaler>("static", init);
  if (method.name == "logmax") return std::make_unique<LogMaxScaler>(init, floor, most);
  const bool fairseq = method.name == "fairseq";
  const int64_t shared = fairseq ? std::max<int64_t>(update_freq, 1) : 1;
  const int64_t window =
      options.window > 0 ? options.window : std::max<int64_t>(method.window / shared, 1);
  return std::make_unique<DynamicScaler>(DynamicScaler::Limits{.name = options.name,
                                                               .init = init,
                                                               .most = most,
                                                               .factor = options.factor,
                                                               .floor = floor,
                                                               .window = window,
                                                               .floor_is_allowed = !fairseq});
}

}  // namespace stretto::optim
