#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stretto::text {

/// The lines of a text, one by one.
class ArpaLines {
 public:
  virtual ~ArpaLines() = default;
  /// @return false = there are no more. A line is valid until the next one.
  virtual bool next(std::string_view& line) = 0;
};

/// Of bytes, which stay the caller's.
std::unique_ptr<ArpaLines> arpa_lines(std::string_view bytes);
/// Of a file that was compressed with gzip, or plain. Throws Error(kBadData) at a damaged place.
std::unique_ptr<ArpaLines> arpa_file_lines(const std::filesystem::path& path);

/// An n-gram of an ARPA file.
struct ArpaNgram {
  std::span<const std::string_view> words;  ///< the first word first
  float log_prob = 0;                       ///< log10, not above 0
  float backoff = 0;                        ///< log10; 0 where the line has none
  int64_t line = 0;                         ///< counted from 1
};

/// Reads ARPA's text (SRILM's ngram-format) strictly: `\data\`, counts, sections in order, `\end\`.
/// @param on_counts  told once, before the first n-gram: n-grams of order 1, 2, …
/// Throws Error(kBadData) with the line of what is none: other counts than promised, too few words,
/// probabilities above 1, numbers that are none, no end.
void read_arpa(ArpaLines& lines, const std::string& place,
               const std::function<void(const std::vector<uint64_t>&)>& on_counts,
               const std::function<void(const ArpaNgram&)>& on_ngram);

}  // namespace stretto::text
