#include "distributed/half.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/system_info.h"

namespace stretto::distributed {
namespace {

#if defined(__x86_64__)
// The one conversion that has an instruction of its own; everything else vectorises by itself.
__attribute__((target("avx,f16c"))) int64_t add_f16_by_eights(uint16_t* sum, const uint16_t* add,
                                                              int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    auto* place = reinterpret_cast<__m128i*>(sum + i);
    const auto* other = reinterpret_cast<const __m128i*>(add + i);
    const __m256 total = _mm256_add_ps(_mm256_cvtph_ps(_mm_loadu_si128(place)),
                                       _mm256_cvtph_ps(_mm_loadu_si128(other)));
    _mm_storeu_si128(place, _mm256_cvtps_ph(total, _MM_FROUND_TO_NEAREST_INT));
  }
  return i;
}
bool has_f16c() {
  static const CpuInfo cpu = cpu_info();
  return cpu.avx2 && cpu.f16c;
}
#else
int64_t add_f16_by_eights(uint16_t*, const uint16_t*, int64_t) {
  return 0;
}
bool has_f16c() {
  return false;
}
#endif

}  // namespace

void add_bf16(uint16_t* sum, const uint16_t* add, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sum[i] = to_bf16(from_bf16(sum[i]) + from_bf16(add[i]));
}

void add_f16(uint16_t* sum, const uint16_t* add, int64_t count) {
  int64_t i = has_f16c() ? add_f16_by_eights(sum, add, count) : 0;
  for (; i < count; ++i) sum[i] = to_f16(from_f16(sum[i]) + from_f16(add[i]));
}

}  // namespace stretto::distributed
