#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

namespace stretto::text {

/// Words and their phonemes, between single spaces. CMUdict's form:
///
///     ;;; a comment
///     HELLO  HH AH0 L OW1
///     HELLO(1)  HH EH0 L OW1
class Pronunciations {
 public:
  /// @param bytes  of the file
  /// @param name   of it, for messages
  /// Throws Error(kBadData) with the line for a word without phonemes and for what is not UTF-8,
  /// and for a file without a word.
  Pronunciations(std::string_view bytes, const std::string& name);

  /// Empty where it is not there. Words are compared in lower case.
  std::string_view of(std::string_view word) const;
  size_t size() const { return words_.size(); }

 private:
  std::unordered_map<std::string, std::string> words_;
};

/// Reads a file of at most 256 MB.
std::shared_ptr<const Pronunciations> read_pronunciations(const std::string& path);

}  // namespace stretto::text
