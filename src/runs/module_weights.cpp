#include "runs/module_weights.h"

#include <ATen/ops/empty.h>
#include <c10/core/ScalarType.h>

#include <memory>
#include <optional>
#include <set>
#include <unordered_set>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/name_pattern.h"
#include "base/text.h"
#include "compress/quantise.h"
#include "compress/stored_numbers.h"
#include "kernels/quantised/quantised.h"
#include "nn/compressed.h"
#include "runs/stored_targets.h"
#include "runs/tensors_fit.h"
#include "store/quantised_file.h"

namespace stretto::runs {
namespace {

/// A tensor of a module, under its name.
struct ModuleTensor {
  std::string name;
  at::Tensor values;
};

std::vector<ModuleTensor> tensors_of(const torch::nn::Module& module) {
  std::vector<ModuleTensor> tensors;
  std::unordered_set<const void*> seen;
  for (const auto& item : module.named_parameters()) {
    const bool is_new = seen.insert(item.value().unsafeGetTensorImpl()).second;
    if (is_new) tensors.push_back({item.key(), item.value()});
  }
  for (const auto& item : module.named_buffers()) {
    if (item.value().defined()) tensors.push_back({item.key(), item.value()});
  }
  return tensors;
}

/// A model file and what is packed in it.
struct ModelFile {
  const store::SafetensorsFile& file;
  const store::QuantisedTensors packed;
};

// A packed tensor is compared by its shape; it has floating-point numbers.
std::optional<TensorMismatch> mismatch_of(const ModelFile& model, const ModuleTensor& tensor) {
  const auto* packed = model.packed.find(tensor.name);
  store::TensorView unpacked;
  if (packed != nullptr) unpacked.shape = packed->shape;
  const auto* found = packed != nullptr ? &unpacked : model.file.find(tensor.name);
  if (auto problem = shape_mismatch(found, tensor.name, tensor.values.sizes().vec()))
    return problem;
  const std::string type = "is " + std::string(store::name_of(found->dtype));
  if (!compress::floating_type(found->dtype)) {
    return TensorMismatch{tensor.name, type + ", the model wants floating-point numbers"};
  }
  if (!at::isFloatingType(tensor.values.scalar_type())) {
    return TensorMismatch{tensor.name, type + ", the model wants integers"};
  }
  return std::nullopt;
}

void require_all_of_module(const ModelFile& model, const std::string& where,
                           const std::vector<ModuleTensor>& tensors, std::string_view left_out) {
  std::vector<TensorMismatch> mismatches;
  std::set<std::string> names;
  for (const ModuleTensor& tensor : tensors) {
    names.insert(tensor.name);
    if (const auto problem = mismatch_of(model, tensor)) mismatches.push_back(*problem);
  }
  const auto expect = [&](const std::string& stored) {
    if (!names.contains(stored) && !matches(left_out, stored))
      mismatches.push_back(unexpected_tensor(stored));
  };
  for (const auto& stored : model.file.tensors()) {
    if (!model.packed.has_part(stored.name)) expect(stored.name);
  }
  for (const auto& [name, view] : model.packed.tensors()) expect(name);
  require_fit(mismatches, where);
}

// Packed tensors are: their scales were looked at. Codes have no numbers to be looked at.
void require_finite_module(const ModelFile& model, const std::string& where,
                           const std::vector<ModuleTensor>& tensors) {
  for (const ModuleTensor& tensor : tensors) {
    if (model.packed.find(tensor.name) != nullptr) continue;
    if (all_finite(tensor.values)) continue;
    throw Error(ExitCode::kNumeric,
                where + ": `" + tensor.name + "` has values that are infinite or NaN",
                "name another checkpoint with --checkpoint, or train or import the run anew");
  }
}

at::Tensor borrowed(void* data, at::IntArrayRef shape, at::ScalarType type) {
  return at::from_blob(data, shape, at::dtype(type));
}

/// Codes as products take them: a copy of what is packed, laid out for them.
std::shared_ptr<const kernels::QuantisedMatrix> matrix_of_codes(const store::QuantisedView& view) {
  const store::QuantLayout layout = view.layout();
  store::QuantisedValues values = store::unpack(view);
  const std::vector<int64_t> of_scales{layout.scale_rows, layout.groups};
  kernels::QuantisedWeights weights;
  weights.bits = static_cast<int>(view.format.bits);
  weights.group = view.format.group_size;
  weights.codes = borrowed(values.codes.data(), view.shape, at::kChar);
  weights.scales = borrowed(values.scales.data(), of_scales, at::kFloat);
  if (!view.format.symmetric) {
    weights.zeros = borrowed(values.zeros.data(), of_scales, at::kChar);
  }
  return std::make_shared<const kernels::QuantisedMatrix>(weights);
}

bool stays_codes(const torch::nn::Module& module, const std::string& name,
                 const store::QuantisedView& view, PackedAs packed) {
  const int bits = static_cast<int>(view.format.bits);
  const int64_t group = view.format.group_size;
  const bool wanted = packed == PackedAs::kCodes ||
                      (packed == PackedAs::kFaster && kernels::quantised_is_faster(bits, group));
  return wanted && view.shape.size() == 2 &&
         kernels::QuantisedMatrix::problem(bits, view.shape[1], group) == nullptr &&
         nn::takes_codes(module, name);
}

/// Where codes of an earlier file stand for a parameter, it gets memory for numbers again.
at::Tensor numbers_of(const at::Tensor& values) {
  at::Tensor numbers = values;
  if (kernels::stood_for(values))
    numbers.set_data(at::empty(values.sizes(), at::dtype(at::kFloat)));
  return numbers;
}

/// @return whether it stays codes
bool load_packed(torch::nn::Module& module, const ModuleTensor& tensor,
                 const store::QuantisedView& view, PackedAs packed) {
  if (stays_codes(module, tensor.name, view, packed)) {
    nn::set_compressed(module, tensor.name, matrix_of_codes(view));
    return true;
  }
  numbers_of(tensor.values).copy_(compress::dequantise(view));
  return false;
}

void tell_of_packed(const ModelFile& model, const std::string& where, PackedAs packed,
                    int64_t num_codes) {
  const auto num_packed = static_cast<int64_t>(model.packed.tensors().size());
  if (num_packed == 0) {
    if (packed != PackedAs::kCodes) return;
    log::warn("run.packed_weights = \"codes\" changes nothing: the weights of " + where +
              " are not packed; `stretto compress RUN --bits 8 --run OUT` packs them");
    return;
  }
  log::info(counted(num_packed, "tensor") + " of few bits: products read the codes of " +
            with_thousands(num_codes) + ", the others are unpacked");
}

}  // namespace

PackedAs packed_as(std::string_view name) {
  if (name == "codes") return PackedAs::kCodes;
  return name == "numbers" ? PackedAs::kNumbers : PackedAs::kFaster;
}

void load_weights(const store::SafetensorsFile& file, const std::string& where,
                  torch::nn::Module& module, std::string_view left_out, PackedAs packed) {
  const ModelFile model{.file = file, .packed = store::QuantisedTensors(file, where)};
  const std::vector<ModuleTensor> tensors = tensors_of(module);
  require_all_of_module(model, where, tensors, left_out);
  const at::NoGradGuard no_grad;
  int64_t num_codes = 0;
  for (const ModuleTensor& tensor : tensors) {
    if (const auto* view = model.packed.find(tensor.name)) {
      num_codes += load_packed(module, tensor, *view, packed) ? 1 : 0;
      continue;
    }
    const auto& stored = *file.find(tensor.name);
    // from_blob wants a mutable pointer; the copy only reads.
    numbers_of(tensor.values).copy_(compress::stored_numbers(stored));
    file.forget(stored);
  }
  require_finite_module(model, where, tensors);
  tell_of_packed(model, where, packed, num_codes);
}

void load_weights(const store::LoadedCheckpoint& checkpoint, torch::nn::Module& module,
                  std::string_view left_out, PackedAs packed) {
  load_weights(checkpoint.file("model"), checkpoint.directory.string() + "/model.safetensors",
               module, left_out, packed);
}

}  // namespace stretto::runs
