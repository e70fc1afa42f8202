#pragma once

#include <cstdint>

namespace stretto::plan {

/// Different rows that `lookups` lookups meet in a table of `rows` rows: 4 lookups^0.7, and never
/// more than there are. Micro-batches of 1,000 to 8,000 tokens a side of Multi30k, with a joint
/// vocabulary of 8,000, have 0.87 to 0.98 times as many.
double different_rows(double lookups, int64_t rows);

}  // namespace stretto::plan
