#include "base/program_path.h"

namespace stretto {

namespace fs = std::filesystem;

fs::path program_path() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/exe", ignored);
}

fs::path find_beside_program(const char* name) {
  std::error_code ignored;
  const fs::path here = program_path().parent_path();
  for (const fs::path& folder : {here, here / ".." / "lib"}) {
    if (fs::exists(folder / name, ignored)) return (folder / name).lexically_normal();
  }
  return {};
}

}  // namespace stretto
