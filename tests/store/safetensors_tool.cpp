// For check_with_safetensors.py: lets the Python package and this implementation look at the same
// files.
//   safetensors_tool verdict FILE…   prints "accept" or "reject: reason" for each
//   safetensors_tool copy IN OUT     reads one file and writes its tensors and metadata to another
#include <iostream>
#include <string_view>

#include "base/error.h"
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
  } catch (const stretto::Error& error) {
    std::cerr << "error: " << error.message() << "\n";
    return static_cast<int>(error.code());
  }
  std::cerr << "usage: safetensors_tool verdict FILE… | copy IN OUT\n";
  return 2;
}
