#include "optim/normal_noise.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/hash.h"
#include "base/random.h"

namespace stretto::optim {
namespace {

constexpr int64_t kNormals = 4;  // of one block of Philox
constexpr int64_t kNoiseGrain = 4096;

// In float, from the upper 24 bits of each word: never above 5.8.
std::array<float, kNormals> normals_of(const std::array<uint32_t, 4>& words) {
  std::array<float, kNormals> normals{};
  for (size_t pair = 0; pair < 4; pair += 2) {
    const float uniform = static_cast<float>((words[pair] >> 8) + 1) * 0x1p-24f;  // in (0, 1]
    const float angle = static_cast<float>(words[pair + 1] >> 8) * (6.28318531f * 0x1p-24f);
    const float radius = std::sqrt(-2 * std::log(uniform));
    normals[pair] = radius * std::cos(angle);
    normals[pair + 1] = radius * std::sin(angle);
  }
  return normals;
}

}  // namespace

torch::Tensor normal_noise(const std::string& name, Slice elements, uint64_t key, float deviation) {
  const int64_t begin = elements.begin, end = elements.end;
  torch::Tensor noise = torch::empty({end - begin}, torch::kFloat);
  float* out = noise.data_ptr<float>();
  const uint64_t tensor = xxh3_64(name);
  at::parallel_for(begin / kNormals, (end + kNormals - 1) / kNormals, kNoiseGrain,
                   [&](int64_t first, int64_t last) {
                     for (int64_t block = first; block < last; ++block) {
                       const auto normals =
                           normals_of(Philox::at(key, tensor, static_cast<uint64_t>(block)));
                       const int64_t from = std::max(begin, block * kNormals);
                       const int64_t to = std::min(end, (block + 1) * kNormals);
                       for (int64_t i = from; i < to; ++i) {
                         out[i - begin] = deviation * normals[static_cast<size_t>(i % kNormals)];
                       }
                     }
                   });
  return noise;
}

}  // namespace stretto::optim
