#include "plan/training_memory.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

namespace stretto::plan {
namespace {

constexpr double kBytesOfValue = 4;        // of a weight and of a value
constexpr double kFlopsOfProduct = 2;      // a product and a sum
constexpr double kForwardShare = 1.0 / 3;  // of training

}  // namespace

double kept_values(const MemoryInputs& inputs) {
  if (inputs.fan_in <= 0) return 0;
  return inputs.flops * kForwardShare / kFlopsOfProduct / inputs.fan_in;
}

double TrainingMemory::at_least() const {
  return certain() + activations / kActivationFactor + program;
}

TrainingMemory training_memory(const MemoryInputs& inputs) {
  TrainingMemory memory;
  memory.weights = kBytesOfValue * inputs.parameters;
  memory.gradients = inputs.trained_share * memory.weights;
  memory.optimizer = inputs.state_values * memory.gradients;
  if (inputs.has_average) memory.average = memory.weights;
  if (inputs.copies_to_save) memory.copy = memory.weights + memory.optimizer + memory.average;
  memory.activations = kBytesOfValue * kKeptValues * inputs.units * kept_values(inputs);
  memory.program = kProgramBytes;
  return memory;
}

double largest_work(const MemoryInputs& inputs, double bytes) {
  MemoryInputs one = inputs;
  one.units = 1;
  const TrainingMemory memory = training_memory(one);
  const double left = bytes - memory.certain() - memory.program;
  if (left <= 0) return 0;
  if (memory.activations <= 0) return std::numeric_limits<double>::infinity();
  return left / memory.activations;
}

double state_values_of(const std::string& optimizer, double momentum) {
  constexpr std::array<std::string_view, 6> kOne{"sgd",      "lars",    "larc",
                                                 "novograd", "adagrad", "muon"};
  if (optimizer == "adafactor") return 0;  // a row and a column of each matrix
  const bool is_plain = momentum == 0 && (optimizer == "sgd" || optimizer == "larc");
  if (is_plain) return 0;
  return std::ranges::find(kOne, optimizer) != kOne.end() ? 1 : 2;
}

}  // namespace stretto::plan
