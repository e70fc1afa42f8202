#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <unordered_set>

namespace stretto::data {

/// Whether a sound was too loud for its recorder: one of a thousand samples or more stands in a run
/// of three or more that are equal and at full scale, 0.99 or more.
/// @param samples  in [-1, 1], as the file has them: resampling rounds the runs off
bool is_clipped(std::span<const float> samples);

/// Counts clipped sounds of a source, each once. They are used all the same. Safe to use from
/// several threads.
class ClippedSounds {
 public:
  /// Looks at a sound; warns of the first one, and of each tenth, hundredth and so on.
  void look(int64_t number, std::span<const float> samples, const std::string& path);
  int64_t count() const;
  std::string first() const;  ///< the path of the first one that was found

 private:
  mutable std::mutex lock_;
  std::unordered_set<int64_t> found_;
  int64_t next_told_ = 1;
  std::string first_;
};

/// "3 sounds are clipped, such as PATH: …"
std::string clipped_text(int64_t count, const std::string& first);

}  // namespace stretto::data
