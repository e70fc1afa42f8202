#include "cli/engine.h"

#include <dlfcn.h>

#include <cstdlib>

#include "base/error.h"

namespace stretto::cli {

namespace fs = std::filesystem;

fs::path engine_path() {
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const fs::path& folder : {here, here / ".." / "lib"}) {
    const fs::path candidate = folder / "libstretto_engine.so";
    if (fs::exists(candidate, ignored)) return candidate.lexically_normal();
  }
  return {};
}

const experiment::EngineApi& engine() {
  // Stays open until the process ends: libtorch cannot be unloaded.
  static const experiment::EngineApi* const api = [] {
    const fs::path path = engine_path();
    if (path.empty()) {
      throw Error(ExitCode::kUsage, "libstretto_engine.so is not beside the program",
                  "this build has no libtorch; build it with `./dev build`");
    }
    // OpenMP's threads wait for each other by spinning, by default for milliseconds. On a machine
    // that does anything else besides that is many times slower; a short spin costs nothing on a
    // quiet one.
    ::setenv("GOMP_SPINCOUNT", "10000", /*overwrite=*/0);
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const void* const symbol =
        library == nullptr ? nullptr : ::dlsym(library, experiment::kEngineSymbol);
    if (symbol == nullptr) {
      throw Error(ExitCode::kUsage, "cannot open " + path.string() + ": " + ::dlerror(),
                  "`stretto doctor` says whether libtorch was found; `./dev build` builds anew");
    }
    return static_cast<const experiment::EngineApi*>(symbol);
  }();
  return *api;
}

}  // namespace stretto::cli
