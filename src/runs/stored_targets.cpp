#include "runs/stored_targets.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"

namespace stretto::runs {
namespace {

// from_blob wants a mutable pointer; the tensor is only read.
at::Tensor floats_of(const store::TensorView& source) {
  return torch::from_blob(const_cast<char*>(source.bytes.data()), at::IntArrayRef(source.shape),
                          at::kFloat);
}

void copy_matched(const store::TensorView& source, const MatchedTable& matched, at::Tensor target) {
  const torch::NoGradGuard no_grad;
  std::vector<int64_t> from, to;
  for (size_t row = 0; row < matched.rows.size(); ++row) {
    if (matched.rows[row] < 0) continue;
    from.push_back(matched.rows[row]);
    to.push_back(static_cast<int64_t>(row));
  }
  const auto rows = floats_of(source).index_select(0, at::tensor(from, at::kLong));
  target.index_copy_(0, at::tensor(to, at::kLong).to(target.device()), rows.to(target.device()));
}

}  // namespace

void copy_into(const store::TensorView& source, at::Tensor target) {
  const torch::NoGradGuard no_grad;
  target.copy_(floats_of(source));
}

std::optional<TensorMismatch> mismatch(const store::SafetensorsFile& file,
                                       const std::string& stored_name, const std::string& name,
                                       const std::vector<int64_t>& shape) {
  const auto* found = file.find(stored_name);
  if (auto problem = shape_mismatch(found, name, shape)) return problem;
  if (found->dtype == store::DType::kF32) return std::nullopt;
  return TensorMismatch{name, "is " + std::string(name_of(found->dtype)) + ", expected F32"};
}

std::vector<int64_t> stored_shape(const store::SafetensorsFile& file, const StoredTarget& target) {
  auto shape = target.values.sizes().vec();
  const auto* found = file.find(target.stored_name);
  if (target.matched == nullptr || found == nullptr || found->shape.empty()) return shape;
  const auto& rows = target.matched->rows;
  const int64_t last = rows.empty() ? -1 : *std::max_element(rows.begin(), rows.end());
  shape.front() = std::max(found->shape.front(), last + 1);
  return shape;
}

std::optional<TensorMismatch> mismatch(const store::SafetensorsFile& file,
                                       const StoredTarget& target) {
  return mismatch(file, target.stored_name, target.name, stored_shape(file, target));
}

std::vector<StoredTarget> slot_targets(const std::string& prefix,
                                       const std::vector<optim::Arena::Slot>& slots,
                                       const at::Tensor& flat) {
  std::vector<StoredTarget> wanted;
  for (const auto& slot : slots) {
    wanted.push_back({prefix + slot.name, slot.name, optim::Arena::view(flat, slot)});
  }
  return wanted;
}

std::vector<StoredTarget> weight_targets(const optim::Arena& arena,
                                         const std::vector<MatchedTable>& matched) {
  auto wanted = slot_targets("", arena.slots(), arena.params());
  for (const auto& buffer : arena.buffers()) {
    wanted.push_back({buffer.name, buffer.name, buffer.values});
  }
  for (StoredTarget& target : wanted) {
    for (const auto& table : matched) {
      if (table.parameter == target.name) target.matched = &table;
    }
  }
  return wanted;
}

void require_all_fit(const store::SafetensorsFile& file, const std::string& where,
                     const std::string& prefix, const std::vector<StoredTarget>& wanted,
                     const std::set<std::string>& left_out) {
  std::vector<TensorMismatch> wrong;
  std::set<std::string> names = left_out;
  for (const StoredTarget& target : wanted) {
    names.insert(target.stored_name);
    if (const auto problem = mismatch(file, target)) wrong.push_back(*problem);
  }
  for (const auto& tensor : file.tensors()) {
    if (tensor.name.starts_with(prefix) && !names.contains(tensor.name)) {
      wrong.push_back(unexpected_tensor(tensor.name));
    }
  }
  require_fit(wrong, where);
}

// A sum is read faster than values are compared, and a sum of finite values may be infinite.
bool all_finite(const at::Tensor& values) {
  if (!at::isFloatingType(values.scalar_type())) return true;
  return std::isfinite(values.sum(at::kFloat).item<float>()) ||
         at::isfinite(values).all().item<bool>();
}

void require_finite(const store::SafetensorsFile& file, const std::string& where,
                    const std::vector<StoredTarget>& wanted) {
  const torch::NoGradGuard no_grad;
  for (const StoredTarget& target : wanted) {
    const auto& stored = *file.find(target.stored_name);
    if (all_finite(floats_of(stored))) continue;
    throw Error(
        ExitCode::kNumeric, where + ": `" + stored.name + "` has values that are infinite or NaN",
        "begin with another checkpoint (RUN/checkpoints/step_00000100), or take other tensors "
        "alone with train.init_only");
  }
}

void copy_all(const store::SafetensorsFile& file, const std::vector<StoredTarget>& wanted) {
  for (const StoredTarget& target : wanted) {
    const auto& stored = *file.find(target.stored_name);
    if (target.matched != nullptr) {
      copy_matched(stored, *target.matched, target.values);
    } else {
      copy_into(stored, target.values);
    }
  }
}

}  // namespace stretto::runs
