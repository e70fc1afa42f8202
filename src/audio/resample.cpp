#include "audio/resample.h"

#include <soxr.h>

#include <cstddef>
#include <stdexcept>
#include <string>

#include "base/error.h"

namespace stretto::audio {

std::vector<float> resampled(std::span<const float> samples, int64_t from, int64_t to) {
  if (from <= 0 || to <= 0) throw std::invalid_argument("resampled: rates are positive");
  if (from == to || samples.empty()) return {samples.begin(), samples.end()};
  const auto size = static_cast<int64_t>(samples.size());
  std::vector<float> result(static_cast<size_t>((size * to + from - 1) / from));
  const soxr_io_spec_t types = ::soxr_io_spec(SOXR_FLOAT32_I, SOXR_FLOAT32_I);
  const soxr_quality_spec_t quality = ::soxr_quality_spec(SOXR_HQ, 0);
  const soxr_runtime_spec_t one_thread = ::soxr_runtime_spec(1);
  size_t read = 0, written = 0;
  // What is not written stays zero: the last sample at most.
  const soxr_error_t error = ::soxr_oneshot(
      static_cast<double>(from), static_cast<double>(to), /*num_channels=*/1, samples.data(),
      samples.size(), &read, result.data(), result.size(), &written, &types, &quality, &one_thread);
  if (error != nullptr) {
    throw Error(ExitCode::kOutOfMemory, std::string("cannot change the rate of a sound: ") + error,
                "use shorter sounds, or let fewer threads load them");
  }
  return result;
}

}  // namespace stretto::audio
