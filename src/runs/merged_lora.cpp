#include "runs/merged_lora.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "nn/adapter_options.h"
#include "nn/lora.h"
#include "runs/tensors_fit.h"
#include "runs/unpacked_weights.h"

namespace stretto::runs {
namespace {

constexpr std::string_view kLoraA = ".lora_a", kLoraB = ".lora_b", kLoraParts = ".lora_parts";

bool belongs_to_lora(std::string_view name) {
  return name.ends_with(kLoraA) || name.ends_with(kLoraB) || name.ends_with(kLoraParts);
}

bool is_fp32_matrix(const store::TensorView* tensor) {
  return tensor != nullptr && tensor->dtype == store::DType::kF32 && tensor->shape.size() == 2;
}

// from_blob wants a mutable pointer; the matrix is only read.
at::Tensor lora_matrix_of(const store::TensorView& tensor) {
  return at::from_blob(const_cast<char*>(tensor.bytes.data()), at::IntArrayRef(tensor.shape),
                       at::dtype(at::kFloat));
}

/// A linear map with its LoRA, all in the file.
struct AdaptedMap {
  const store::TensorView *weight, *a, *b, *parts;
};

/// The parts of a map: rows of each, and the one factor of all.
struct LoraParts {
  std::vector<int64_t> rows;
  double scale = 0;
};

// Numbers from outside: what does not fit is nothing.
std::optional<LoraParts> parts_of(const AdaptedMap& map) {
  for (const auto* tensor : {map.weight, map.a, map.b, map.parts}) {
    if (!is_fp32_matrix(tensor)) return std::nullopt;
  }
  const int64_t count = map.parts->shape[0], rank = map.b->shape[1];
  const int64_t out = map.weight->shape[0];
  const bool shapes_fit = map.parts->shape[1] == 2 && count > 0 && count <= out && rank > 0 &&
                          map.b->shape[0] == out && map.a->shape[1] == map.weight->shape[1] &&
                          map.a->shape[0] % count == 0 && map.a->shape[0] / count == rank;
  if (!shapes_fit) return std::nullopt;
  const at::Tensor numbers = lora_matrix_of(*map.parts).contiguous();
  const auto* number = numbers.const_data_ptr<float>();
  LoraParts parts{.scale = static_cast<double>(number[1])};
  int64_t left = out;
  for (int64_t i = 0; i < count; ++i) {
    const float rows = number[2 * i], scale = number[2 * i + 1];
    const bool sound = rows >= 1 && rows <= static_cast<float>(left) && rows == std::floor(rows) &&
                       std::isfinite(scale) && scale == number[1];
    if (!sound) return std::nullopt;
    parts.rows.push_back(static_cast<int64_t>(rows));
    left -= parts.rows.back();
  }
  return left == 0 ? std::optional(parts) : std::nullopt;
}

store::TensorView view_of_lora(const std::string& name, const at::Tensor& host,
                               std::vector<int64_t> shape) {
  return {name,
          store::DType::kF32,
          std::move(shape),
          {static_cast<const char*>(host.const_data_ptr()), host.nbytes()}};
}

/// What stands in a file for each linear map with LoRA, by the map's name.
std::map<std::string, AdaptedMap> adapted_maps(const store::SafetensorsFile& file,
                                               std::vector<TensorMismatch>& mismatches) {
  std::map<std::string, AdaptedMap> maps;
  for (const auto& tensor : file.tensors()) {
    if (!belongs_to_lora(tensor.name)) continue;
    const std::string map = tensor.name.substr(0, tensor.name.rfind('.'));
    if (maps.contains(map)) continue;
    const AdaptedMap found{.weight = file.find(map + ".weight"),
                           .a = file.find(map + std::string(kLoraA)),
                           .b = file.find(map + std::string(kLoraB)),
                           .parts = file.find(map + std::string(kLoraParts))};
    maps.emplace(map, found);
    if (!parts_of(found)) {
      mismatches.push_back(
          {map + ".weight", "and its lora_a, lora_b and lora_parts are not of one linear map"});
    }
  }
  return maps;
}

std::vector<store::TensorView> without_lora(const store::SafetensorsFile& file) {
  std::vector<store::TensorView> views;
  for (const auto& tensor : file.tensors()) {
    if (!belongs_to_lora(tensor.name)) views.push_back(tensor);
  }
  return views;
}

// Beside those that the other run has, `made.file`.
void add_own_tensors(const optim::Arena& arena, LoraValues values, MadeWeights& made,
                     std::vector<store::TensorView>& views) {
  const auto add = [&](const std::string& name, const at::Tensor& tensor) {
    const bool new_adapter = nn::is_adapter(name) && made.file.find(name) == nullptr;
    if (!belongs_to_lora(name) && !new_adapter) return;
    if (new_adapter && name.ends_with(".down.weight")) ++made.num_new_adapters;
    made.added.insert(name);
    if (values == LoraValues::kNames) {
      views.push_back({name, store::DType::kF32, tensor.sizes().vec(), {}});
      return;
    }
    made.values.push_back(tensor.detach().cpu().clone());
    views.push_back(view_of_lora(name, made.values.back(), tensor.sizes().vec()));
  };
  for (const auto& slot : arena.slots()) {
    add(slot.name, optim::Arena::view(arena.params(), slot));
  }
  for (const auto& buffer : arena.buffers()) add(buffer.name, buffer.values);
}

}  // namespace

bool has_lora(const store::SafetensorsFile& file) {
  return std::any_of(file.tensors().begin(), file.tensors().end(),
                     [](const auto& tensor) { return belongs_to_lora(tensor.name); });
}

MadeWeights merge_lora(const store::SafetensorsFile& file, const std::string& where) {
  const at::NoGradGuard no_grad;
  UnpackedWeights unpacked = unpack_weights(file, where);
  std::vector<TensorMismatch> mismatches;
  const auto maps = adapted_maps(unpacked.file, mismatches);
  require_fit(mismatches, where);
  std::vector<store::TensorView> views = without_lora(unpacked.file);
  MadeWeights made{.file = store::SafetensorsFile(std::vector<store::TensorView>{})};
  made.values = std::move(unpacked.values);
  for (auto& view : views) {
    if (!view.name.ends_with(".weight")) continue;
    const auto found = maps.find(view.name.substr(0, view.name.rfind('.')));
    if (found == maps.end()) continue;
    const AdaptedMap& map = found->second;
    const LoraParts parts = *parts_of(map);
    made.values.push_back(nn::merge_lora(lora_matrix_of(*map.weight), lora_matrix_of(*map.a),
                                         lora_matrix_of(*map.b), parts.rows, parts.scale));
    view = view_of_lora(view.name, made.values.back(), view.shape);
    ++made.num_merged;
  }
  made.file = store::SafetensorsFile(std::move(views));
  return made;
}

MadeWeights weights_to_begin_with(const store::SafetensorsFile& file, const std::string& where,
                                  const optim::Arena& arena, LoraValues values) {
  MadeWeights made{.file = store::SafetensorsFile(std::vector<store::TensorView>{})};
  std::vector<store::TensorView> views;
  if (values == LoraValues::kAll) {
    made = merge_lora(file, where);
    views = made.file.tensors();
  } else {
    UnpackedWeights unpacked = unpack_weights(file, where);
    views = without_lora(unpacked.file);
    made.values = std::move(unpacked.values);
  }
  made.file = store::SafetensorsFile(views);
  add_own_tensors(arena, values, made, views);
  made.file = store::SafetensorsFile(std::move(views));
  return made;
}

}  // namespace stretto::runs
