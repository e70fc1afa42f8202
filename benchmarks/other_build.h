#pragma once

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "kernels/cpu/table.h"

/// The loops of another build in this process, so that both take turns and whatever else the
/// machine does meets them alike.
namespace stretto::benchmarks {

/// Those of the processor level in use, in a libstretto_engine.so with the same cpu::Table. Ends
/// the program with exit code 2 where there are none.
inline const kernels::cpu::Table& table_of(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  const std::string level = kernels::cpu::table().name;
  const std::string symbol =
      "_ZN7stretto7kernels3cpu" + std::to_string(level.size()) + level + "6kTableE";
  const void* const found = handle == nullptr ? nullptr : dlsym(handle, symbol.c_str());
  if (found == nullptr) {
    std::fprintf(stderr, "error: no loops of level %s in %s: %s\n", level.c_str(), library.c_str(),
                 dlerror());
    std::exit(2);
  }
  return *static_cast<const kernels::cpu::Table*>(found);
}

}  // namespace stretto::benchmarks
