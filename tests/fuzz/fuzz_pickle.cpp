// libFuzzer target: any bytes as a file of torch.save, or as the pickle in one. Error is the only
// exception that may come out, and nothing is executed.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "store/pickle_tensors.h"
#include "store/torch_file.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void read_pickle(std::string_view bytes) {
  const auto dict = stretto::store::parse_pickled_tensors(bytes, "fuzz");
  require(dict.num_bytes <= bytes.size());
  for (const auto& tensor : dict.tensors) {
    require(tensor.num_elements() >= 0 && tensor.num_elements() <= tensor.storage_size);
    tensor.is_contiguous();
  }
}

void read_torch_file(const std::string& bytes) {
  const stretto::store::TorchFile file(bytes, "fuzz");
  for (const auto& tensor : file.tensors()) {
    const auto needed = tensor.num_elements() * stretto::store::size_of(tensor.dtype);
    require(static_cast<size_t>(needed) == tensor.bytes.size());
    unsigned sum = 0;  // reads every byte
    for (const char c : tensor.bytes) sum += static_cast<unsigned char>(c);
    require(sum <= 255U * tensor.bytes.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  try {
    read_pickle(bytes);
  } catch (const stretto::Error&) {
  }
  try {
    read_torch_file(bytes);
  } catch (const stretto::Error&) {
  }
  return 0;
}
