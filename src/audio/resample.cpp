#include "audio/resample.h"

#include <dlfcn.h>
#include <soxr.h>

#include <cstddef>
#include <stdexcept>
#include <string>

#include "base/error.h"

namespace stretto::audio {
namespace {

constexpr const char* kSoxrFile = "libsoxr.so.0";

/// libsoxr, loaded when the first rate is changed. It needs libgomp: were it linked, every program
/// would load the system's libgomp at its start, and libtorch would get that one, not its own.
class Soxr {
 public:
  static const Soxr& get() {
    static const Soxr library;
    return library;
  }

  decltype(&::soxr_io_spec) io_spec;
  decltype(&::soxr_quality_spec) quality_spec;
  decltype(&::soxr_runtime_spec) runtime_spec;
  decltype(&::soxr_oneshot) oneshot;

 private:
  Soxr() {
    void* library = ::dlopen(kSoxrFile, RTLD_NOW | RTLD_LOCAL);
    find(library, "soxr_io_spec", io_spec);
    find(library, "soxr_quality_spec", quality_spec);
    find(library, "soxr_runtime_spec", runtime_spec);
    find(library, "soxr_oneshot", oneshot);
  }
  template <class Function>
  static void find(void* library, const char* name, Function& function) {
    function = library == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(library, name));
    if (function != nullptr) return;
    const char* reason = ::dlerror();
    throw Error(ExitCode::kUsage,
                std::string("cannot change the rate of sounds: ") + kSoxrFile +
                    " cannot be loaded" + (reason == nullptr ? "" : std::string(": ") + reason),
                "install the package libsoxr0");
  }
};

}  // namespace

std::vector<float> resampled(std::span<const float> samples, int64_t from, int64_t to) {
  if (from <= 0 || to <= 0) throw std::invalid_argument("resampled: rates are positive");
  if (from == to || samples.empty()) return {samples.begin(), samples.end()};
  const Soxr& soxr = Soxr::get();
  const auto size = static_cast<int64_t>(samples.size());
  std::vector<float> result(static_cast<size_t>((size * to + from - 1) / from));
  const soxr_io_spec_t types = soxr.io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
  const soxr_quality_spec_t quality = soxr.quality_spec(SOXR_HQ, 0);
  const soxr_runtime_spec_t one_thread = soxr.runtime_spec(1);
  size_t read = 0, written = 0;
  // What is not written stays zero: the last sample at most.
  const soxr_error_t error = soxr.oneshot(
      static_cast<double>(from), static_cast<double>(to), /*num_channels=*/1, samples.data(),
      samples.size(), &read, result.data(), result.size(), &written, &types, &quality, &one_thread);
  if (error != nullptr) {
    throw Error(ExitCode::kOutOfMemory, std::string("cannot change the rate of a sound: ") + error,
                "use shorter sounds, or let fewer threads load them");
  }
  return result;
}

}  // namespace stretto::audio
