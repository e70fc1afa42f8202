#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/text.h"
#include "families/text_classification/engine/text_classification.h"

namespace stretto::tasks {
namespace {

using data::kLabelColumn;

report::MatrixSample confusion_matrix(const data::Labels& labels,
                                      const LabelPredictions& predictions,
                                      const data::Batch& gold) {
  const auto size = static_cast<size_t>(labels.size());
  report::MatrixSample matrix{.title = "Confusion matrix",
                              .row_title = "label",
                              .column_title = "predicted",
                              .rows = labels.names(),
                              .columns = labels.names(),
                              .counts = std::vector(size, std::vector<int64_t>(size))};
  const auto& right = gold.column<int64_t>(kLabelColumn);
  for (int64_t i = 0; i < gold.num_sequences(); ++i) {
    const auto chosen = chosen_labels(LabelTarget::kOne, predictions.of(i)).front();
    ++matrix.counts[static_cast<size_t>(right.sequence(i).front())][static_cast<size_t>(chosen)];
  }
  return matrix;
}

std::string prediction_text(LabelTarget target, const data::Labels* labels,
                            std::span<const double> outputs) {
  if (labels == nullptr) return fixed(outputs.front(), 3);
  std::vector<std::string> parts;
  for (const int64_t label : chosen_labels(target, outputs)) {
    parts.push_back(labels->name(label) + " (" + fixed(outputs[static_cast<size_t>(label)], 3) +
                    ")");
  }
  return parts.empty() ? "none" : join(parts, ", ");
}

// What the model gives to the label that is right.
std::string label_with_probability(LabelTarget target, const data::Labels* labels,
                                   const LabelPredictions& predictions, const data::Batch& gold,
                                   int64_t i) {
  std::string text = label_text(gold, i, labels);
  if (target != LabelTarget::kOne) return text;
  const int64_t label = gold.column<int64_t>(kLabelColumn).sequence(i).front();
  return text + " (" + fixed(predictions.of(i)[static_cast<size_t>(label)], 3) + ")";
}

}  // namespace

std::vector<report::Sample> label_samples(const LabelOutputs& outputs, const data::Labels* labels,
                                          const LabelPredictions& predictions,
                                          const data::LabelledSamples& set, size_t most) {
  std::vector<report::Sample> samples;
  if (most == 0) return samples;
  const data::Batch gold = set.labels();
  if (outputs.target() == LabelTarget::kOne && labels != nullptr) {
    samples.emplace_back(confusion_matrix(*labels, predictions, gold));
  }
  std::vector<int64_t> order(static_cast<size_t>(set.size()));
  std::iota(order.begin(), order.end(), int64_t{0});
  const size_t count = std::min(most, order.size());
  // A loss that is not finite comes first, and equal ones in the order of texts.
  const auto badness = [&](int64_t i) {
    const double loss = predictions.loss_of(i);
    return std::isfinite(loss) ? loss : HUGE_VAL;
  };
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](int64_t a, int64_t b) {
                      const double of_a = badness(a), of_b = badness(b);
                      return of_a != of_b ? of_a > of_b : a < b;
                    });
  for (size_t k = 0; k < count; ++k) {
    const int64_t i = order[k];
    const auto& texts = set.texts();
    report::RowsSample sample;
    sample.rows.emplace_back("Text", texts.text(i));
    if (texts.has_pairs()) sample.rows.emplace_back("Second text", texts.text2(i));
    sample.rows.emplace_back(
        "Label", label_with_probability(outputs.target(), labels, predictions, gold, i));
    sample.rows.emplace_back("Predicted",
                             prediction_text(outputs.target(), labels, predictions.of(i)));
    sample.rows.emplace_back("Loss", fixed(predictions.loss_of(i), 3));
    samples.emplace_back(std::move(sample));
  }
  return samples;
}

}  // namespace stretto::tasks
