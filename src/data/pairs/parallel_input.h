#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "data/lines.h"
#include "data/pairs/corpus.h"
#include "data/pairs/data_options.h"
#include "data/pairs/pair_faults.h"

namespace stretto::data {

/// One parallel input: files line for line, or columns of one TSV file. With a second source, the
/// source line of a pair is "FIRST<TAB>SECOND" (data/pairs/two_sources.h).
struct ParallelInput {
  std::string src, tgt;                    ///< paths of `[data]`; the same one for TSV
  int64_t src_column = 0, tgt_column = 0;  ///< from 1; 0 = files
  std::string src2 = {};                   ///< of the second source; empty = there is none
  int64_t src2_column = 0;                 ///< from 1; 0 = a file, or none
  char separator = '\t';                   ///< between columns

  bool has_two_sources() const { return !src2.empty(); }
};

/// "train", as in data.train_src.
std::string name_of(Split split);

/// Whether the options name second sources: all inputs of all splits must then have one.
bool has_two_sources(const DataOptions& options);

/// Between the columns of TSV files.
char separator_of(const DataOptions& options);

/// Whether the options name a split's sources: files of them, or TSV files.
bool has_text(const DataOptions& options, Split split);

/// The inputs of a split: pairs of files in the order of the lists, then TSV files.
/// Throws Error(kUsage) when the lists do not go together, or name nothing.
std::vector<ParallelInput> inputs_of(const DataOptions& options, Split split);

/// An Error whose cause is the target's file alone: it cannot be read, one of its lines is bad, or
/// it has fewer lines than the source's. With three files it is the one that differs from the other
/// two, be it shorter or longer; where all three differ, the shortest.
class TargetError : public Error {
 public:
  explicit TargetError(const Error& error) : Error(error) {}
};

/// The same of a second source's file.
class SecondSourceError : public Error {
 public:
  explicit SecondSourceError(const Error& error) : Error(error) {}
};

/// Runs what reads the target's file alone. @return what `read` does; its Error is a TargetError
template <class Read>
auto on_target_side(const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw TargetError(error);
  }
}

/// The same for the file of a second source: its Error is a SecondSourceError.
template <class Read>
auto on_second_source(const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw SecondSourceError(error);
  }
}

/// Asked now and then by what may read for long; false ends it.
using StillTime = std::function<bool()>;

/// Pairs of lines of one input.
class PairReader {
 public:
  /// @param still_time  how long the rest of the longer files is counted when they are unequal
  /// Throws as open_bytes() does, TargetError for the target's file and SecondSourceError for that
  /// of a second source. Keeps a reference to `input`.
  explicit PairReader(const ParallelInput& input, StillTime still_time = nullptr);

  /// @return false at the common end. The views are valid until the next call.
  /// Throws a PairFault for a bad line and one without one of the columns: the next call goes on
  /// with the next pair. Throws Error(kBadData) for unequal line counts (all counts and names): a
  /// TargetError where it is the target's, a SecondSourceError where it is that of a second source.
  bool next(std::string_view& src, std::string_view& tgt);

  int64_t line_number() const { return src_.line_number(); }  ///< of the last pair, from 1

 private:
  /// One of the files, and whether its last call gave a line.
  struct File {
    const std::string& path;
    LineReader& lines;
    bool has_line;
  };
  bool next_second(std::string_view& line);
  bool next_target(std::string_view& line);
  bool take(LineReader& lines, Side side, std::string_view& line);
  void split_columns(std::string_view& src, std::string_view& tgt);
  bool next_line(const File& file, std::string_view& line);
  std::string count_rest(const File& file);
  [[noreturn]] void throw_unequal(bool has_src, bool has_second, bool has_tgt);

  const ParallelInput& input_;
  StillTime still_time_;
  LineReader src_;
  std::unique_ptr<LineReader> src2_, tgt_;
  std::string joined_;              ///< the last source line of two
  std::optional<PairFault> fault_;  ///< the first one of the last pair
};

}  // namespace stretto::data
