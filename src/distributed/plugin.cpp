#include "distributed/plugin.h"

#include <dlfcn.h>

#include <string>

#include "base/error.h"
#include "base/program_path.h"

namespace stretto::distributed {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMpiLibrary = "libstretto_mpi.so";
constexpr const char* kNcclLibrary = "libstretto_nccl.so";
constexpr const char* kMpirunGuard = "libstretto_mpirun_guard.so";
constexpr const char* kMpiRemedy =
    "install MPI (Debian, Ubuntu: apt-get install libopenmpi-dev openmpi-bin) and build again with "
    "`./dev build`";
constexpr const char* kNcclRemedy = "build with the CUDA preset on a machine that has nccl.h";

const void* open_library(const char* name, const char* symbol, const char* remedy) {
  const fs::path path = find_beside_program(name);
  if (path.empty()) {
    throw Error(ExitCode::kUsage, std::string(name) + " is not beside the program", remedy);
  }
  // Open MPI opens parts of itself that look for its symbols among the global ones. It cannot be
  // unloaded.
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  const void* const table = library == nullptr ? nullptr : ::dlsym(library, symbol);
  if (table == nullptr) {
    const char* reason = ::dlerror();
    throw Error(ExitCode::kUsage,
                "cannot open " + path.string() + ": " +
                    (reason == nullptr ? "it has no table of functions" : reason),
                remedy);
  }
  return table;
}

}  // namespace

const MpiApi& mpi_api() {
  static const void* const table = open_library(kMpiLibrary, kMpiSymbol, kMpiRemedy);
  return *static_cast<const MpiApi*>(table);
}

const NcclApi& nccl_api() {
  static const void* const table = open_library(kNcclLibrary, kNcclSymbol, kNcclRemedy);
  return *static_cast<const NcclApi*>(table);
}

bool has_mpi() {
  return !find_beside_program(kMpiLibrary).empty();
}

fs::path mpirun_guard() {
  return find_beside_program(kMpirunGuard);
}

}  // namespace stretto::distributed
