#include <cstdint>
#include <string>

#include "base/text.h"
#include "lint/rules.h"

namespace stretto::lint::rules {
namespace {

// With 32 units, the gradient of one batch in a hundred exceeds the median some 36 times for one
// layer, with 8 some 83 times; further layers multiply. docs/models.md has the table.
constexpr int64_t kFewUnits = 32;
constexpr const char* kEnoughUnits = "64 units a layer or more";

}  // namespace

void few_units_to_norm(const Subject& s, Remarks& out) {
  const bool clips = s.e.optim.clip_norm > 0;
  for (const auto& part : s.task.normed_units(s.e)) {
    if (part.units >= kFewUnits) continue;
    out.push_back({part.key,
                   "layers norm each step over " + counted(part.units, "unit") +
                       ", whose deviation is now and then small by chance: the gradient of a long "
                       "sequence is multiplied at each step, and single batches meet norms of "
                       "1e11",
                   clips ? kEnoughUnits : kEnoughUnits + std::string(", and optim.clip_norm = 1")});
  }
}

}  // namespace stretto::lint::rules
