// Prints the scores of cases on stdin, a line each, for check_with_sklearn.py. The samples of a
// case are divided among two processes, whose sums are added.
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "metrics/label_counts.h"
#include "metrics/value_pairs.h"

namespace {

using Json = nlohmann::json;
using namespace stretto::metrics;

template <class Scores, class Add>
Scores of_two_processes(int64_t size, size_t num_samples, Add add) {
  Scores halves[] = {Scores(size), Scores(size)}, both(size);
  for (size_t i = 0; i < num_samples; ++i) add(halves[i % 2], i);
  std::vector<double> sums(halves[0].sums().begin(), halves[0].sums().end());
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += halves[1].sums()[i];
  both.set_sums(sums);
  return both;
}

Json score_labels(const Json& given) {
  const auto gold = given["gold"].get<std::vector<int64_t>>();
  const auto predicted = given["predicted"].get<std::vector<int64_t>>();
  const int64_t size = given["labels"];
  const auto counts = of_two_processes<LabelCounts>(
      size, gold.size(), [&](LabelCounts& half, size_t i) { half.add(gold[i], predicted[i]); });
  Json f1 = Json::array();
  for (int64_t label = 0; label < size; ++label) f1.push_back(counts.f1(label));
  return {{"accuracy", counts.accuracy()}, {"f1", f1},
          {"macro", counts.macro_f1()},    {"micro", counts.micro_f1()},
          {"matthews", counts.matthews()}, {"confusion", counts.sums()}};
}

Json score_sets(const Json& given) {
  const auto gold = given["gold"].get<std::vector<std::vector<int64_t>>>();
  const auto predicted = given["predicted"].get<std::vector<std::vector<int64_t>>>();
  const int64_t size = given["labels"];
  const auto counts = of_two_processes<MultiLabelCounts>(
      size, gold.size(),
      [&](MultiLabelCounts& half, size_t i) { half.add(gold[i], predicted[i]); });
  Json f1 = Json::array();
  for (int64_t label = 0; label < size; ++label) f1.push_back(counts.f1(label));
  return {{"accuracy", counts.exact_match()},
          {"f1", f1},
          {"macro", counts.macro_f1()},
          {"micro", counts.micro_f1()}};
}

Json score_values(const Json& given) {
  const auto gold = given["gold"].get<std::vector<double>>();
  const auto predicted = given["predicted"].get<std::vector<double>>();
  const auto pairs = of_two_processes<ValuePairs>(
      static_cast<int64_t>(gold.size()), gold.size(), [&](ValuePairs& half, size_t i) {
        half.add(static_cast<int64_t>(i), gold[i], predicted[i]);
      });
  // JSON has no NaN: it is written as null.
  return {{"pearson", pairs.pearson()},
          {"spearman", pairs.spearman()},
          {"mean_squared_error", pairs.mean_squared_error()}};
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto given = Json::parse(line);
    const auto scores = given["kind"] == "labels" ? score_labels(given)
                        : given["kind"] == "sets" ? score_sets(given)
                                                  : score_values(given);
    std::cout << scores.dump() << "\n";
  }
  return 0;
}
