#include "train/shown_numbers.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace stretto::train {

std::string key_of(const std::string& counter) {
  std::string key = counter;
  std::ranges::replace(key, ' ', '_');
  return key;
}

report::NamedNumbers named_counts(const std::vector<std::string>& names,
                                  const std::vector<int64_t>& counts) {
  report::NamedNumbers named;
  for (size_t i = 0; i < names.size(); ++i) named.push_back({key_of(names[i]), counts.at(i)});
  return named;
}

std::vector<Score> measures_of(const Task& task, const Totals& totals) {
  std::vector<Score> measures;
  const auto names = task.losses();
  for (size_t i = 0; names.size() > 1 && i < names.size(); ++i) {
    if (totals.weights[i] == 0) continue;  // no sample of this update has it
    measures.push_back({.name = names[i], .value = totals.losses[i] / totals.weights[i]});
  }
  for (auto& measure : task.measures(totals)) measures.push_back(std::move(measure));
  return measures;
}

report::NamedNumbers named_measures(const std::vector<Score>& measures) {
  report::NamedNumbers named;
  for (const Score& measure : measures) named.push_back({measure.name, measure.value});
  return named;
}

std::vector<report::ProgressNumber> progress_numbers(double loss,
                                                     const std::vector<Score>& measures,
                                                     const report::Display& display) {
  std::vector<report::ProgressNumber> numbers{{display.style("loss").progress, loss}};
  for (const Score& measure : measures) {
    const std::string label = display.style(measure.name).progress;
    if (!label.empty()) numbers.push_back({label, measure.value});
  }
  return numbers;
}

report::MetricsEvent validation_event(const Validation& validation,
                                      const report::Display& display) {
  report::MetricsEvent event{.event = "valid"};
  for (const auto& [name, value] : validation.scores) {
    if (name == "loss") {
      event.loss = value;
    } else {
      const bool of_validation = display.style(name).of_validation;
      (of_validation ? event.scores : event.measures).push_back({name, value});
    }
  }
  for (const auto& [name, count] : validation.counts) event.counts.push_back({key_of(name), count});
  return event;
}

std::string validation_text(const Validation& validation, const report::Display& display) {
  std::vector<std::string> parts;
  for (const Score& score : validation.scores) {
    const auto style = display.style(score.name);
    parts.push_back(style.label + " " + fixed(score.value, style.decimals) +
                    (style.remark.empty() ? "" : " (" + style.remark + ")"));
  }
  return join(parts, ", ");
}

}  // namespace stretto::train
