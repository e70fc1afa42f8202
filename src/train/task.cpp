#include "train/task.h"

#include <algorithm>

namespace stretto::train {

double Totals::loss() const {
  double sum = 0;
  for (size_t i = 0; i < losses.size(); ++i) {
    const bool is_absent = losses.size() > 1 && weights[i] == 0;
    if (!is_absent) sum += losses[i] / weights[i];
  }
  return sum;
}

const Score* find_score(const std::vector<Score>& scores, const std::string& name) {
  const auto found = std::ranges::find(scores, name, &Score::name);
  return found == scores.end() ? nullptr : &*found;
}

}  // namespace stretto::train
