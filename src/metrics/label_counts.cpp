#include "metrics/label_counts.h"

#include <cmath>
#include <numeric>

#include "metrics/sums.h"

namespace stretto::metrics {
namespace {

double f1_of(double true_positives, double errors) {
  const double divisor = 2 * true_positives + errors;
  return divisor == 0 ? 0 : 2 * true_positives / divisor;
}

}  // namespace

LabelCounts::LabelCounts(int64_t num_labels) : num_labels_(num_labels) {
  if (num_labels < 1) throw std::invalid_argument("there must be at least one label");
  counts_.resize(static_cast<size_t>(num_labels * num_labels));
}

void LabelCounts::add(int64_t gold, int64_t predicted) {
  require_index(gold, num_labels_, "label");
  require_index(predicted, num_labels_, "label");
  counts_[static_cast<size_t>(gold * num_labels_ + predicted)] += 1;
}

void LabelCounts::set_sums(std::span<const double> sums) {
  take_sums(counts_, sums);
}

double LabelCounts::cell(int64_t gold, int64_t predicted) const {
  return counts_[static_cast<size_t>(gold * num_labels_ + predicted)];
}

int64_t LabelCounts::count(int64_t gold, int64_t predicted) const {
  require_index(gold, num_labels_, "label");
  require_index(predicted, num_labels_, "label");
  return static_cast<int64_t>(cell(gold, predicted));
}

int64_t LabelCounts::num_samples() const {
  return static_cast<int64_t>(std::accumulate(counts_.begin(), counts_.end(), 0.0));
}

std::vector<double> LabelCounts::gold_totals() const {
  std::vector<double> totals(static_cast<size_t>(num_labels_));
  for (size_t i = 0; i < counts_.size(); ++i) totals[i / totals.size()] += counts_[i];
  return totals;
}

std::vector<double> LabelCounts::predicted_totals() const {
  std::vector<double> totals(static_cast<size_t>(num_labels_));
  for (size_t i = 0; i < counts_.size(); ++i) totals[i % totals.size()] += counts_[i];
  return totals;
}

double LabelCounts::accuracy() const {
  double correct = 0;
  for (int64_t label = 0; label < num_labels_; ++label) correct += cell(label, label);
  const auto samples = static_cast<double>(num_samples());
  return samples == 0 ? 0 : correct / samples;
}

double LabelCounts::f1(int64_t label) const {
  require_index(label, num_labels_, "label");
  const auto at = static_cast<size_t>(label);
  const double hits = cell(label, label);
  return f1_of(hits, gold_totals()[at] + predicted_totals()[at] - 2 * hits);
}

double LabelCounts::macro_f1() const {
  const auto gold = gold_totals(), predicted = predicted_totals();
  double sum = 0, occurring = 0;
  for (size_t label = 0; label < gold.size(); ++label) {
    if (gold[label] + predicted[label] == 0) continue;
    const double hits = cell(static_cast<int64_t>(label), static_cast<int64_t>(label));
    sum += f1_of(hits, gold[label] + predicted[label] - 2 * hits);
    occurring += 1;
  }
  return occurring == 0 ? 0 : sum / occurring;
}

double LabelCounts::matthews() const {
  const auto gold = gold_totals(), predicted = predicted_totals();
  const auto samples = static_cast<double>(num_samples());
  const auto product = [](const std::vector<double>& a, const std::vector<double>& b) {
    return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  };
  double correct = 0;
  for (int64_t label = 0; label < num_labels_; ++label) correct += cell(label, label);
  const double both = correct * samples - product(gold, predicted);
  const double of_gold = samples * samples - product(gold, gold);
  const double of_predicted = samples * samples - product(predicted, predicted);
  if (of_gold == 0 || of_predicted == 0) return 0;
  return both / (std::sqrt(of_gold) * std::sqrt(of_predicted));
}

MultiLabelCounts::MultiLabelCounts(int64_t num_labels) : num_labels_(num_labels) {
  if (num_labels < 1) throw std::invalid_argument("there must be at least one label");
  sums_.resize(static_cast<size_t>(3 * num_labels + 2));
}

void MultiLabelCounts::add(std::span<const int64_t> gold, std::span<const int64_t> predicted) {
  const auto as_flags = [this](std::span<const int64_t> labels) {
    std::vector<bool> flags(static_cast<size_t>(num_labels_));
    for (const int64_t label : labels) {
      require_index(label, num_labels_, "label");
      if (flags[static_cast<size_t>(label)]) {
        throw std::invalid_argument("label " + std::to_string(label) + " twice in one sample");
      }
      flags[static_cast<size_t>(label)] = true;
    }
    return flags;
  };
  const auto is_gold = as_flags(gold), is_predicted = as_flags(predicted);
  for (size_t label = 0; label < is_gold.size(); ++label) {
    if (!is_gold[label] && !is_predicted[label]) continue;
    const size_t kind = is_gold[label] && is_predicted[label] ? 0 : is_predicted[label] ? 1 : 2;
    sums_[3 * label + kind] += 1;
  }
  sums_[sums_.size() - 2] += 1;
  sums_[sums_.size() - 1] += is_gold == is_predicted ? 1 : 0;
}

void MultiLabelCounts::set_sums(std::span<const double> sums) {
  take_sums(sums_, sums);
}

double MultiLabelCounts::exact_match() const {
  const double samples = sums_[sums_.size() - 2];
  return samples == 0 ? 0 : sums_.back() / samples;
}

double MultiLabelCounts::f1(int64_t label) const {
  require_index(label, num_labels_, "label");
  const size_t at = 3 * static_cast<size_t>(label);
  return f1_of(sums_[at], sums_[at + 1] + sums_[at + 2]);
}

double MultiLabelCounts::macro_f1() const {
  double sum = 0;
  for (int64_t label = 0; label < num_labels_; ++label) sum += f1(label);
  return sum / static_cast<double>(num_labels_);
}

double MultiLabelCounts::micro_f1() const {
  double hits = 0, errors = 0;
  for (size_t at = 0; at < 3 * static_cast<size_t>(num_labels_); at += 3) {
    hits += sums_[at];
    errors += sums_[at + 1] + sums_[at + 2];
  }
  return f1_of(hits, errors);
}

}  // namespace stretto::metrics
