// For check_with_safetensors.py: lets the Python package and this implementation look at the same
// files.
//   safetensors_tool verdict FILE…   prints "accept" or "reject: reason" for each
//   safetensors_tool copy IN OUT     reads one file and writes its tensors and metadata to another
//   safetensors_tool unpack IN OUT   writes the packed tensors of a file as F32
#include <iostream>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "store/quantised_file.h"
#include "store/safetensors.h"

namespace {

using stretto::store::SafetensorsFile;

void print_verdict(const char* path) {
  try {
    const SafetensorsFile file(path);
    std::cout << "accept\n";
  } catch (const stretto::Error& error) {
    std::cout << "reject: " << error.what() << "\n";
  }
}

void unpack(const char* from, const char* to) {
  namespace store = stretto::store;
  const SafetensorsFile file(from);
  const store::QuantisedTensors packed(file, from);
  std::vector<std::vector<float>> values;
  std::vector<store::TensorView> tensors;
  for (const auto& [name, view] : packed.tensors()) {
    const store::QuantLayout layout = view.layout();
    auto& weights = values.emplace_back(static_cast<size_t>(layout.rows * layout.columns));
    store::dequantise_rows(view, 0, layout.rows, weights);
    const std::string_view bytes(reinterpret_cast<const char*>(weights.data()),
                                 weights.size() * sizeof(float));
    tensors.push_back({name, store::DType::kF32, view.shape, bytes});
  }
  store::write_safetensors(to, tensors, {});
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view command = argc > 1 ? argv[1] : "";
  try {
    if (command == "verdict") {
      for (int i = 2; i < argc; ++i) print_verdict(argv[i]);
      return 0;
    }
    if (command == "copy" && argc == 4) {
      const SafetensorsFile file(argv[2]);
      stretto::store::write_safetensors(argv[3], file.tensors(), file.metadata());
      return 0;
    }
    if (command == "unpack" && argc == 4) {
      unpack(argv[2], argv[3]);
      return 0;
    }
  } catch (const stretto::Error& error) {
    std::cerr << "error: " << error.message() << "\n";
    return static_cast<int>(error.code());
  }
  std::cerr << "usage: safetensors_tool verdict FILE… | copy IN OUT | unpack IN OUT\n";
  return 2;
}
