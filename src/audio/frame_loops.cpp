#include "audio/frame_loops.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/random.h"
#include "base/system_info.h"

#define STRETTO_INLINE [[gnu::always_inline]] inline

namespace stretto::audio {
namespace {

constexpr float kLeastNormal = std::numeric_limits<float>::min();
constexpr float kLeastSquare = 1e-32F;  // of a number without a direction

namespace frames_portable {
constexpr int64_t kLanes = 4;
constexpr const char* kName = "portable";
#include "audio/frame_loops.inc"
}  // namespace frames_portable

#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
namespace frames_avx2 {
constexpr int64_t kLanes = 8;
constexpr const char* kName = "avx2";
#include "audio/frame_loops.inc"
}  // namespace frames_avx2
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2,fma,avx512f"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f")
#endif
namespace frames_avx512 {
constexpr int64_t kLanes = 16;
constexpr const char* kName = "avx512";
#include "audio/frame_loops.inc"
}  // namespace frames_avx512
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

#endif

}  // namespace

std::vector<const FrameLoops*> all_frame_loops() {
  std::vector<const FrameLoops*> loops{&frames_portable::kLoops};
#if defined(__x86_64__)
  const auto& processor = cpu_info();
  if (processor.avx2 && processor.fma) loops.push_back(&frames_avx2::kLoops);
  if (processor.avx2 && processor.fma && processor.avx512f) {
    loops.push_back(&frames_avx512::kLoops);
  }
#endif
  return loops;
}

const FrameLoops& frame_loops() {
  static const FrameLoops& fastest = *all_frame_loops().back();
  return fastest;
}

}  // namespace stretto::audio

#undef STRETTO_INLINE
