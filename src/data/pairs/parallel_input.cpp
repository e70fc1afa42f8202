#include "data/pairs/parallel_input.h"

#include <utility>

#include "base/text.h"
#include "data/pairs/tsv_lines.h"
#include "data/pairs/two_sources.h"

namespace stretto::data {
namespace {

constexpr int64_t kLinesBetweenLooks = 4096;

/// The keys of `[data]` that belong to one split.
struct SplitKeys {
  const std::vector<std::string>& src;
  const std::vector<std::string>& tgt;
  const std::vector<std::string>& tsv;
  const std::vector<std::string>& src2;
};

SplitKeys keys_of(const DataOptions& o, Split split) {
  switch (split) {
    case Split::kTrain:
      return {o.train_src, o.train_tgt, o.train_tsv, o.train_src2};
    case Split::kValid:
      return {o.valid_src, o.valid_tgt, o.valid_tsv, o.valid_src2};
    case Split::kTest:
      break;
  }
  return {o.test_src, o.test_tgt, o.test_tsv, o.test_src2};
}

std::string files_text(size_t count) {
  return counted(static_cast<int64_t>(count), "file");
}

// Each input needs a second source, or none has one.
void require_second_sources(const DataOptions& options, const SplitKeys& keys,
                            const std::string& key) {
  if (!has_two_sources(options)) return;
  if (keys.src2.size() != keys.src.size()) {
    throw Error(ExitCode::kUsage,
                key + "_src names " + files_text(keys.src.size()) + " and " + key + "_src2 " +
                    std::to_string(keys.src2.size()),
                "with two sources each source file needs its second one, in the same order");
  }
  if (!keys.tsv.empty() && options.src2_column == 0) {
    throw Error(ExitCode::kUsage, key + "_tsv has no column of a second source",
                "set data.src2_column, from 1");
  }
}

}  // namespace

bool has_two_sources(const DataOptions& o) {
  return !o.train_src2.empty() || !o.valid_src2.empty() || !o.test_src2.empty() ||
         o.src2_column > 0;
}

char separator_of(const DataOptions& options) {
  return options.separator.empty() ? '\t' : options.separator[0];
}

bool has_text(const DataOptions& o, Split split) {
  switch (split) {
    case Split::kTrain:
      return !o.train_src.empty() || !o.train_tsv.empty();
    case Split::kValid:
      return !o.valid_src.empty() || !o.valid_tsv.empty();
    case Split::kTest:
      break;
  }
  return !o.test_src.empty() || !o.test_tsv.empty();
}

std::string name_of(Split split) {
  switch (split) {
    case Split::kTrain:
      return "train";
    case Split::kValid:
      return "valid";
    case Split::kTest:
      break;
  }
  return "test";
}

std::vector<ParallelInput> inputs_of(const DataOptions& options, Split split) {
  const SplitKeys keys = keys_of(options, split);
  const std::string key = "data." + name_of(split);
  if (keys.src.size() != keys.tgt.size()) {
    throw Error(ExitCode::kUsage,
                key + "_src names " + files_text(keys.src.size()) + " and " + key + "_tgt " +
                    std::to_string(keys.tgt.size()),
                "each source file needs its target file, in the same order");
  }
  require_second_sources(options, keys, key);
  std::vector<ParallelInput> inputs;
  for (size_t i = 0; i < keys.src.size(); ++i) {
    inputs.push_back({.src = keys.src[i],
                      .tgt = keys.tgt[i],
                      .src2 = keys.src2.empty() ? std::string() : keys.src2[i]});
  }
  for (const std::string& path : keys.tsv) {
    inputs.push_back({.src = path,
                      .tgt = path,
                      .src_column = options.src_column,
                      .tgt_column = options.tgt_column,
                      .src2 = options.src2_column > 0 ? path : std::string(),
                      .src2_column = options.src2_column,
                      .separator = separator_of(options)});
  }
  if (inputs.empty()) {
    throw Error(ExitCode::kUsage, key + "_src: no files are named",
                "set " + key + "_src and " + key + "_tgt, or " + key + "_tsv");
  }
  return inputs;
}

PairReader::PairReader(const ParallelInput& input, StillTime still_time)
    : input_(input), still_time_(std::move(still_time)), src_(input.src) {
  if (input.src_column > 0) return;
  if (input.has_two_sources()) {
    src2_ = on_second_source([&] { return std::make_unique<LineReader>(input.src2); });
  }
  tgt_ = on_target_side([&] { return std::make_unique<LineReader>(input.tgt); });
}

bool PairReader::next(std::string_view& src, std::string_view& tgt) {
  fault_.reset();
  const bool has_src = take(src_, Side::kSource, src);
  if (tgt_ == nullptr) {
    if (fault_) throw PairFault(*fault_);
    if (has_src) split_columns(src, tgt);
    return has_src;
  }
  std::string_view second;
  const bool has_second = src2_ == nullptr ? has_src : next_second(second);
  const bool has_tgt = next_target(tgt);
  if (has_src != has_tgt || has_src != has_second) throw_unequal(has_src, has_second, has_tgt);
  if (fault_) throw PairFault(*fault_);
  if (has_src && src2_ != nullptr) {
    join_sources(src, second, joined_);
    src = joined_;
  }
  return has_src;
}

/// A line that its reader refuses still counts as one of the pair: the other files stay in step.
bool PairReader::take(LineReader& lines, Side side, std::string_view& line) {
  try {
    return lines.next(line);
  } catch (const SampleError& error) {
    if (!fault_) fault_.emplace(error, side);
    line = {};
    return true;
  }
}

bool PairReader::next_second(std::string_view& line) {
  return on_second_source([&] { return take(*src2_, Side::kSecondSource, line); });
}

bool PairReader::next_target(std::string_view& line) {
  return on_target_side([&] { return take(*tgt_, Side::kTarget, line); });
}

void PairReader::split_columns(std::string_view& src, std::string_view& tgt) {
  const std::string_view line = src;
  const auto cut_out = [&](int64_t column, std::string_view& text) {
    if (column_of(line, column, input_.separator, text)) return;
    try {
      throw_missing_column(src_, line, column, input_.separator);
    } catch (const SampleError& error) {
      throw PairFault(error, Side::kSource);
    }
  };
  cut_out(input_.src_column, src);
  if (input_.has_two_sources()) {
    std::string_view second;
    cut_out(input_.src2_column, second);
    join_sources(src, second, joined_);
    src = joined_;
  }
  cut_out(input_.tgt_column, tgt);
}

bool PairReader::next_line(const File& file, std::string_view& line) {
  if (&file.lines == tgt_.get()) return next_target(line);
  return &file.lines == src2_.get() ? next_second(line) : take(file.lines, Side::kSource, line);
}

// "a.en has 1,234", as far as there is time to count the rest of it.
std::string PairReader::count_rest(const File& file) {
  std::string_view line;
  bool counted = !file.has_line;
  for (int64_t i = 0; !counted; ++i) {
    if (still_time_ != nullptr && i % kLinesBetweenLooks == 0 && !still_time_()) break;
    counted = !next_line(file, line);
  }
  return file.path + " has " + with_thousands(file.lines.line_number()) +
         (counted ? "" : " or more");
}

void PairReader::throw_unequal(bool has_src, bool has_second, bool has_tgt) {
  std::vector<std::string> counts{count_rest({input_.src, src_, has_src})};
  if (src2_ != nullptr) counts.push_back(count_rest({input_.src2, *src2_, has_second}));
  counts.push_back(count_rest({input_.tgt, *tgt_, has_tgt}));
  const Error error(ExitCode::kBadData,
                    std::string(src2_ == nullptr ? "the two sides do" : "sources and target do") +
                        " not have the same number of lines: " + join(counts, ", "),
                    "line i of one file must be the translation of line i of the other: look for a "
                    "file that was cut off, or for lines that were removed on one side only");
  // With three files, the one that differs from the other two is at fault: the longer one where
  // these ended together. Otherwise, and with two files, it is the shortest.
  const bool is_longer =
      src2_ != nullptr && (has_src ? !has_second && !has_tgt : has_second != has_tgt);
  if (has_second == is_longer && src2_ != nullptr) throw SecondSourceError(error);
  if (has_tgt == is_longer) throw TargetError(error);
  throw error;
}

}  // namespace stretto::data
