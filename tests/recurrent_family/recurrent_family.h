#pragma once

#include <cstdint>

#include "config/field.h"
#include "experiment/experiment.h"
#include "experiment/family_spec.h"
#include "tasks/family.h"

/// A family of tasks whose model takes a state from one update to the next
/// (tests/train/recurrent_task.h), so that commands can be tried on one. The library has no such
/// family yet.
namespace stretto::experiment {

/// `[data]`: numbers that need no file.
struct LaneDataOptions {
  int64_t groups = 6;

  static auto fields() {
    using namespace config;
    return Fields{field(&LaneDataOptions::groups, "groups",
                        "micro-batches that are a stretch of all lanes together", at_least(1))};
  }
};

/// `[model]`.
struct RecurrentModelOptions {
  int64_t nan_after = -1;

  static auto fields() {
    using namespace config;
    return Fields{field(&RecurrentModelOptions::nan_after, "nan_after",
                        "the loss is NaN where lane 0 has had so many stretches; -1 = nowhere",
                        at_least(-1))};
  }
};

struct RecurrentOptions {
  static constexpr const char* kName = "recurrent";

  LaneDataOptions data;
  RecurrentModelOptions model;

  static auto fields() {
    using config::field;
    using O = RecurrentOptions;
    return config::Fields{field(&O::data, "data", "lanes of numbers"),
                          field(&O::model, "model", "the network")};
  }
};

FamilySpec recurrent_spec();

}  // namespace stretto::experiment

namespace stretto::tasks {

const Family& recurrent_family();

/// Makes the family known to this process, once.
void add_recurrent_family();

}  // namespace stretto::tasks
