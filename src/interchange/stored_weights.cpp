#include "interchange/stored_weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace stretto::interchange {
namespace {

constexpr float kLargestInt8 = 127, kSmallestRow = kLargestInt8 / std::numeric_limits<float>::max();

}  // namespace

NamedTensors::NamedTensors(std::vector<store::TensorView> tensors) : tensors_(std::move(tensors)) {
  for (size_t i = 0; i < tensors_.size(); ++i) places_.emplace(tensors_[i].name, i);
}

const store::TensorView& NamedTensors::take(const std::string& name) {
  if (const auto* tensor = find(name)) return *tensor;
  throw Error(ExitCode::kBadData, "the checkpoint has no tensor `" + printable(name) + "`",
              "its model is another one than config.toml describes");
}

const store::TensorView* NamedTensors::find(const std::string& name) {
  const auto found = places_.find(name);
  if (found == places_.end()) return nullptr;
  taken_.insert(name);
  return &tensors_[found->second];
}

void NamedTensors::require_all_taken(std::string_view format) const {
  for (const auto& tensor : tensors_) {
    if (taken_.contains(tensor.name)) continue;
    throw Error(ExitCode::kBadData,
                "the checkpoint has a tensor `" + printable(tensor.name) + "`, which a model of " +
                    std::string(format) + " has no place for",
                "its model is another one than config.toml describes");
  }
}

store::TensorView rows_of(const store::TensorView& tensor, int64_t from, int64_t count) {
  const int64_t rows = tensor.shape.at(0);
  const size_t row_bytes = rows > 0 ? tensor.bytes.size() / static_cast<size_t>(rows) : 0;
  store::TensorView view = tensor;
  view.shape[0] = count;
  view.bytes = tensor.bytes.substr(static_cast<size_t>(from) * row_bytes,
                                   static_cast<size_t>(count) * row_bytes);
  return view;
}

std::vector<float> floats_of(const store::TensorView& tensor) {
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  if (!values.empty())
    std::memcpy(values.data(), tensor.bytes.data(), values.size() * sizeof(float));
  return values;
}

std::vector<float> int8_scales(const std::vector<float>& values, int64_t rows) {
  std::vector<float> scales(static_cast<size_t>(rows), 1);
  const size_t columns = rows > 0 ? values.size() / scales.size() : 0;
  for (size_t row = 0; row < scales.size(); ++row) {
    float largest = 0;
    for (size_t i = row * columns; i < (row + 1) * columns; ++i) {
      largest = std::max(largest, std::abs(values[i]));
    }
    // Of the smallest weights too it stays a number.
    if (largest > 0) scales[row] = kLargestInt8 / std::max(largest, kSmallestRow);
  }
  return scales;
}

std::string int8_codes(const std::vector<float>& values, const std::vector<float>& scales) {
  std::string codes(values.size(), '\0');
  const size_t columns = scales.empty() ? 0 : values.size() / scales.size();
  for (size_t row = 0; row < scales.size(); ++row) {
    for (size_t i = row * columns; i < (row + 1) * columns; ++i) {
      codes[i] = static_cast<char>(static_cast<int8_t>(std::nearbyint(values[i] * scales[row])));
    }
  }
  return codes;
}

std::string bytes_of_floats(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace stretto::interchange
