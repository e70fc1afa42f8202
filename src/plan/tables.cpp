#include "plan/tables.h"

#include <algorithm>
#include <cmath>

namespace stretto::plan {

double different_rows(double lookups, int64_t rows) {
  return std::min({4 * std::pow(lookups, 0.7), lookups, double(rows)});
}

}  // namespace stretto::plan
