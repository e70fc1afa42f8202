#include "runs/unpacked_weights.h"

#include <utility>

#include "base/error.h"
#include "compress/quantise.h"
#include "store/quantised_file.h"

namespace stretto::runs {

UnpackedWeights unpack_weights(const store::SafetensorsFile& file, const std::string& where) {
  const store::QuantisedTensors packed(file, where);
  std::vector<store::TensorView> views;
  for (const auto& tensor : file.tensors()) {
    if (!packed.has_part(tensor.name)) views.push_back(tensor);
  }
  UnpackedWeights unpacked{.file = store::SafetensorsFile(std::vector<store::TensorView>{})};
  for (const auto& [name, view] : packed.tensors()) {
    unpacked.values.push_back(compress::dequantise(view));
    const at::Tensor& values = unpacked.values.back();
    views.push_back({name,
                     store::DType::kF32,
                     view.shape,
                     {static_cast<const char*>(values.const_data_ptr()), values.nbytes()}});
  }
  unpacked.file = store::SafetensorsFile(std::move(views));
  return unpacked;
}

void require_unpacked(const store::SafetensorsFile& file, const std::string& where,
                      const std::string& what, const std::string& advice) {
  if (!store::is_packed(file)) return;
  throw Error(ExitCode::kUsage, where + " has weights of few bits: " + what, advice);
}

}  // namespace stretto::runs
