#include "experiment/family_plan.h"

#include "base/text.h"

namespace stretto::experiment {
namespace {

constexpr double kFill = 0.9;  // units that are not padding or room at the end, of the bound

}  // namespace

PlannedWork work_within(const WorkBounds& bounds) {
  const double filled = kFill * double(bounds.max_units);
  const double sampled = double(bounds.max_samples) * bounds.sample_units;
  if (bounds.max_samples > 0 && sampled < filled) {
    return {
        .units = sampled,
        .assumed = "a micro-batch has data.max_samples = " + counted(bounds.max_samples, "sample") +
                   " of " + shortest(bounds.sample_units) + " " + bounds.unit + bounds.sample_note};
  }
  const char* earlier =
      bounds.max_samples > 0 ? ", though data.max_samples may end a micro-batch earlier" : "";
  return {.units = filled,
          .assumed = shortest(kFill) + " of " + bounds.key + " are " + bounds.unit + earlier};
}

}  // namespace stretto::experiment
