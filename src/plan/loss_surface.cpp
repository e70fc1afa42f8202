#include "plan/loss_surface.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace stretto::plan {
namespace {

constexpr size_t kFewestLosses = 4;
constexpr std::array kSizeExponents{0.05, 0.076, 0.1, 0.14, 0.2, 0.28, 0.4, 0.56};
constexpr std::array kStepExponents{0.12, 0.17, 0.25, 0.35, 0.5, 0.7, 1.0, 1.4};
constexpr double kUsualSizeExponent = 0.2, kUsualStepExponent = 0.5;
constexpr double kLossNoise = 0.01;  // of a mean over some updates, as a share

// A factor of two is one standard deviation.
double log_prior(double exponent, double usual) {
  const double deviations = std::log2(exponent / usual);
  return -0.5 * deviations * deviations;
}

void require_losses(std::span<const LossPoint> points) {
  if (points.size() < kFewestLosses) {
    throw std::invalid_argument("a loss surface needs four losses");
  }
  for (const LossPoint& point : points) {
    for (const double number : {point.parameters, point.updates, point.loss}) {
      if (!std::isfinite(number) || number <= 0) {
        throw std::invalid_argument("a number of a loss surface is not above 0");
      }
    }
  }
}

std::array<double, 3> terms(double parameters, double updates, double a, double b) {
  return {1, std::pow(parameters, -a), std::pow(updates, -b)};
}

/// Mean and spread of estimates with weights.
class Mixture {
 public:
  void add(double weight, const Estimate& estimate) {
    weight_ += weight;
    mean_ += weight * estimate.value;
    square_ += weight * (estimate.value * estimate.value + estimate.error * estimate.error);
  }
  Estimate result() const {
    const double mean = mean_ / weight_;
    return {mean, std::sqrt(std::max(0.0, square_ / weight_ - mean * mean))};
  }

 private:
  double weight_ = 0, mean_ = 0, square_ = 0;
};

}  // namespace

// With models of one size alone, A parameters^-a is part of the floor: the prior says what size
// does.
LossSurface::LossSurface(std::span<const LossPoint> points) {
  require_losses(points);
  parameters_ = std::ranges::max_element(points, {}, &LossPoint::parameters)->parameters;
  updates_ = std::ranges::max_element(points, {}, &LossPoint::updates)->updates;
  std::vector<double> log_weights;
  for (const double a : kSizeExponents) {
    for (const double b : kStepExponents) {
      std::vector<FitRow> rows;
      for (const LossPoint& point : points) {
        const auto x = terms(point.parameters / parameters_, point.updates / updates_, a, b);
        rows.push_back(
            {.x = {x.begin(), x.end()}, .y = point.loss, .weight = 1 / (point.loss * point.loss)});
      }
      LinearFit fit(rows, kLossNoise);
      log_weights.push_back(log_prior(a, kUsualSizeExponent) + log_prior(b, kUsualStepExponent) -
                            0.5 * fit.squared_error() / (kLossNoise * kLossNoise));
      members_.push_back({a, b, std::move(fit), 0});
    }
  }
  const double most = *std::ranges::max_element(log_weights);
  for (size_t i = 0; i < members_.size(); ++i) {
    members_[i].weight = std::exp(log_weights[i] - most);
  }
}

Estimate LossSurface::at(double parameters, double updates) const {
  Mixture mixture;
  for (const Member& member : members_) {
    const auto x = terms(parameters / parameters_, updates / updates_, member.size_exponent,
                         member.step_exponent);
    mixture.add(member.weight, member.fit.at(x));
  }
  return mixture.result();
}

// The geometric mean of what pairs of exponents say.
double LossSurface::balanced_updates(double parameters) const {
  double weight = 0, logarithm = 0;
  for (const Member& member : members_) {
    const auto& coefficients = member.fit.coefficients();
    const double size_part = member.size_exponent * coefficients[1] *
                             std::pow(parameters / parameters_, -member.size_exponent);
    const double step_part = member.step_exponent * coefficients[2];
    if (size_part <= 0 || step_part <= 0) continue;
    weight += member.weight;
    logarithm += member.weight * std::log(step_part / size_part) / member.step_exponent;
  }
  return weight > 0 ? updates_ * std::exp(logarithm / weight) : 0;
}

Estimate LossSurface::size_exponent() const {
  Mixture mixture;
  for (const Member& member : members_) mixture.add(member.weight, {member.size_exponent, 0});
  return mixture.result();
}

Estimate LossSurface::step_exponent() const {
  Mixture mixture;
  for (const Member& member : members_) mixture.add(member.weight, {member.step_exponent, 0});
  return mixture.result();
}

}  // namespace stretto::plan
