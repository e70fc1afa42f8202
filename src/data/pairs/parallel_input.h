#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "data/lines.h"
#include "data/pairs/corpus.h"
#include "data/pairs/data_options.h"

namespace stretto::data {

/// One parallel input: two files line for line, or two columns of one TSV file.
struct ParallelInput {
  std::string src, tgt;                    ///< paths of `[data]`; the same one for TSV
  int64_t src_column = 0, tgt_column = 0;  ///< from 1; 0 = two files
};

/// "train", as in data.train_src.
std::string name_of(Split split);

/// The inputs of a split: pairs of files in the order of the lists, then TSV files.
/// Throws Error(kUsage) when the lists do not go together, or name nothing.
std::vector<ParallelInput> inputs_of(const DataOptions& options, Split split);

/// An Error whose cause is the target's file alone: it cannot be read, one of its lines is bad, or
/// it has fewer lines than the source's.
class TargetError : public Error {
 public:
  explicit TargetError(const Error& error) : Error(error) {}
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

/// Asked now and then by what may read for long; false ends it.
using StillTime = std::function<bool()>;

/// Pairs of lines of one input.
class PairReader {
 public:
  /// @param still_time  how long the rest of the longer side is counted when the sides are unequal
  /// Throws as open_bytes() does, TargetError for the target's file. Keeps a reference to `input`.
  explicit PairReader(const ParallelInput& input, StillTime still_time = nullptr);

  /// @return false at the common end. The views are valid until the next call.
  /// Throws Error(kBadData) for a bad line, a line without one of the columns, and unequal line
  /// counts (both counts and names): a TargetError where it is the target's.
  bool next(std::string_view& src, std::string_view& tgt);

  int64_t line_number() const { return src_.line_number(); }  ///< of the last pair, from 1

 private:
  bool next_target(std::string_view& line);
  bool split_columns(std::string_view& src, std::string_view& tgt) const;
  [[noreturn]] void throw_unequal(bool src_is_longer);

  const ParallelInput& input_;
  StillTime still_time_;
  LineReader src_;
  std::unique_ptr<LineReader> tgt_;
};

}  // namespace stretto::data
