#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/bad_samples.h"

namespace stretto::data {

/// What the data say of one utterance, before its sound was looked at.
struct UtteranceRow {
  std::string id = {};  ///< empty where the data have no names
  std::string text = {}, speaker = {};
  std::string sound = {};           ///< its path; of a folder or an archive its name there
  std::string shown = {};           ///< the sound as the data name it; empty: as `sound`
  double offset = 0, duration = 0;  ///< in seconds, of a part; duration 0: to the end
  uint64_t bytes = 0;               ///< of the file, as the data say; 0: they do not
  size_t list = 0;                  ///< the file that tells of it: a place in UtteranceRows::lists
  int64_t line = 0;                 ///< of that file, from 1; 0: no file does
};

/// The utterances of one path, in the order in which they stand there.
struct UtteranceRows {
  /// Names of the files that tell of them, each beginning with the path of `[data]`.
  std::vector<std::string> lists;
  std::vector<UtteranceRow> rows;
};

/// A text that is parted from a name in front of it by white space.
struct NamedText {
  std::string_view name, text;
};
/// Parts of the line; both may be empty. Without white space at their ends.
NamedText split_name(std::string_view line);

/// Throws a SampleError of that line.
/// @param file  a name that begins with that of the path of `[data]`, `path`
[[noreturn]] void refuse_utterance(const std::string& path, const std::string& file, int64_t line,
                                   const std::string& what, const std::string& advice);

/// Calls `read` for one record after the other, until it gives false. Its SampleErrors become bad
/// samples of `path`.
template <class Read>
void read_records(const std::string& path, BadSamples& bad, const Read& read) {
  while (true) {
    try {
      if (!read()) return;
    } catch (const SampleError& error) {
      bad.add(SampleError::of(error, path));
    }
  }
}

}  // namespace stretto::data
