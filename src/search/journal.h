#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"

namespace stretto::search {

/// One line of a journal.
using JournalEntry = nlohmann::ordered_json;

/// What a journal holds.
struct JournalContent {
  std::vector<JournalEntry> entries;
  uint64_t bytes = 0;     ///< of the lines that count
  bool is_torn = false;   ///< there was a part of a line behind them
  std::string last_hash;  ///< of the last line that counts; empty = there is none
};

/// Reads the text of a journal: lines "HASH JSON", where HASH is XXH3-64 over the hash of the line
/// before and the JSON. A last line that is cut short, or whose hash is wrong, was being written
/// when the machine stopped, and is left out. Any other broken line is Error(kBadData) with its
/// number, and so is the first one: a journal is made with it. An empty text has no lines.
/// @param where  the file, for messages
JournalContent parse_journal(std::string_view text, const std::string& where);

/// What a search has done, so that it can be killed at any moment and go on: a line for each
/// decision and each result, on the disk before anything follows from it.
class Journal {
 public:
  /// Opens the file if there is one, and cuts off a torn last line. The first append() makes it
  /// with its first line, at once: a kill leaves no journal or one that says which search it is of.
  /// Throws Error(kBadData), Error(kIo).
  explicit Journal(std::filesystem::path path);

  const std::vector<JournalEntry>& entries() const { return content_.entries; }
  bool was_torn() const { return content_.is_torn; }
  /// Appends a line and fsyncs. Throws Error(kIo); what was written of the line is taken back.
  void append(const JournalEntry& entry);

 private:
  void write_durably(const std::string& line);

  std::filesystem::path path_;
  Descriptor file_;
  JournalContent content_;
};

/// Reads a journal that another process may be writing to.
JournalContent read_journal(const std::filesystem::path& path);

}  // namespace stretto::search
