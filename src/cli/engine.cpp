#include "cli/engine.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <system_error>
#include <thread>

#include "base/build_id.h"
#include "base/error.h"
#include "base/program_path.h"

namespace stretto::cli {

namespace fs = std::filesystem;

namespace {

// After a build of some targets only, or an installation over another one.
void require_one_build(uint64_t engine_id, const fs::path& path) {
  const uint64_t program = build_id();
  const bool core_fits = core_build_id() == program;
  if (core_fits && engine_id == program) return;
  throw Error(ExitCode::kUsage,
              std::string(core_fits ? path.string() : "libstretto_core.so") +
                  " is of another build than the program: they would misread each other",
              "`./dev build` builds all of them; of an installation, copy all files anew");
}

// OpenMP's threads wait for each other by spinning, by default for milliseconds. On a machine that
// does anything else besides that is many times slower; a short spin costs nothing on a quiet one.
void shorten_spins() {
  ::setenv("GOMP_SPINCOUNT", "10000", /*overwrite=*/0);
}

std::atomic<bool>& engine_begun() {
  static std::atomic<bool> begun = false;
  return begun;
}

}  // namespace

fs::path engine_path() {
  return find_beside_program("libstretto_engine.so");
}

const engine::EngineApi& engine() {
  // Stays open until the process ends: libtorch cannot be unloaded.
  static const engine::EngineApi* const api = [] {
    const fs::path path = engine_path();
    if (path.empty()) {
      throw Error(ExitCode::kUsage, "libstretto_engine.so is not beside the program",
                  "this build has no libtorch; build it with `./dev build`");
    }
    shorten_spins();
    engine_begun() = true;
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const void* const symbol =
        library == nullptr ? nullptr : ::dlsym(library, engine::kEngineSymbol);
    if (symbol == nullptr) {
      throw Error(ExitCode::kUsage, "cannot open " + path.string() + ": " + ::dlerror(),
                  "`stretto doctor` says whether libtorch was found; `./dev build` builds anew");
    }
    const auto* const table = static_cast<const engine::EngineApi*>(symbol);
    require_one_build(table->build_id, path);
    return table;
  }();
  return *api;
}

bool is_engine_begun() {
  return engine_begun();
}

void begin_to_open_engine() {
  if (engine_path().empty()) return;
  shorten_spins();  // here, while no other thread reads the environment
  try {
    std::thread([] {
      try {
        engine();
      } catch (...) {  // whoever asks for the engine tries again, and gets the error
      }
    }).detach();
    engine_begun() = true;
  } catch (const std::system_error&) {  // no thread: engine() opens it when it is asked
  }
}

experiment::EngineChecks engine_checks() {
  return {.tensors = [](const experiment::Experiment& e) { return engine().tensor_names(e); },
          .check = [](const experiment::CheckRequest& request) { return engine().check(request); }};
}

}  // namespace stretto::cli
