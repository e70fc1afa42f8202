#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "data/bad_samples.h"
#include "data/lines.h"

namespace stretto::data {

/// Whether a path of `[data]` is called like JSON lines: `.jsonl` or `.ndjson`, perhaps compressed.
bool is_named_json_lines(std::string_view path);

/// Documents as JSON lines: each line is an object, of which one string is a document. Blank lines
/// and empty strings are none. A line may have just under 1 MB (kMaxLineBytes).
class JsonDocuments {
 public:
  /// @param key  of the string: "text"
  /// @param bad  collects bad lines of several files; null: the first one is an error at once
  JsonDocuments(std::unique_ptr<ByteStream> bytes, std::string name, std::string key,
                BadSamples* bad = nullptr);
  /// Opens a path of `[data]`: plain, `.gz`, `.zst` or a zip member. Throws as open_bytes() does.
  JsonDocuments(const std::string& path, std::string key, BadSamples* bad = nullptr);

  /// @param text             valid until the next call; not empty
  /// @param begins_document  always
  /// A line that is no such object, or whose text has a NUL character, is left out as BadSamples
  /// says. Or the rest of the file is read at once, and throws Error(kBadData) with up to ten such
  /// lines.
  bool next(std::string_view& text, bool& begins_document);

  int64_t line_number() const { return lines_.line_number(); }  ///< of the last document, from 1

 private:
  bool next_text();
  [[noreturn]] void refuse(const std::string& what, const std::string& advice) const;
  SampleError with_advice(const SampleError& error) const;

  LineReader lines_;
  std::string key_;
  BadSamples* bad_;
  std::string text_;
};

}  // namespace stretto::data
