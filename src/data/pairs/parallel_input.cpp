#include "data/pairs/parallel_input.h"

#include <utility>

#include "base/text.h"

namespace stretto::data {
namespace {

constexpr int64_t kLinesBetweenLooks = 4096;

/// The keys of `[data]` that belong to one split.
struct SplitKeys {
  const std::vector<std::string>& src;
  const std::vector<std::string>& tgt;
  const std::vector<std::string>& tsv;
};

SplitKeys keys_of(const DataOptions& o, Split split) {
  switch (split) {
    case Split::kTrain:
      return {o.train_src, o.train_tgt, o.train_tsv};
    case Split::kValid:
      return {o.valid_src, o.valid_tgt, o.valid_tsv};
    case Split::kTest:
      break;
  }
  return {o.test_src, o.test_tgt, o.test_tsv};
}

}  // namespace

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
                key + "_src names " + std::to_string(keys.src.size()) + " files and " + key +
                    "_tgt " + std::to_string(keys.tgt.size()),
                "each source file needs its target file, in the same order");
  }
  std::vector<ParallelInput> inputs;
  for (size_t i = 0; i < keys.src.size(); ++i) {
    inputs.push_back({.src = keys.src[i], .tgt = keys.tgt[i]});
  }
  for (const std::string& path : keys.tsv) {
    inputs.push_back({.src = path,
                      .tgt = path,
                      .src_column = options.src_column,
                      .tgt_column = options.tgt_column});
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
  tgt_ = on_target_side([&] { return std::make_unique<LineReader>(input.tgt); });
}

bool PairReader::next(std::string_view& src, std::string_view& tgt) {
  const bool has_src = src_.next(src);
  if (tgt_ == nullptr) return has_src && split_columns(src, tgt);
  const bool has_tgt = next_target(tgt);
  if (has_src != has_tgt) throw_unequal(has_src);
  return has_src;
}

bool PairReader::next_target(std::string_view& line) {
  return on_target_side([&] { return tgt_->next(line); });
}

bool PairReader::split_columns(std::string_view& src, std::string_view& tgt) const {
  const std::string_view line = src;
  if (!tsv_column(line, input_.src_column, src)) {
    throw_missing_column(src_.name(), src_.line_number(), input_.src_column);
  }
  if (!tsv_column(line, input_.tgt_column, tgt)) {
    throw_missing_column(src_.name(), src_.line_number(), input_.tgt_column);
  }
  return true;
}

void PairReader::throw_unequal(bool src_is_longer) {
  const LineReader& longer = src_is_longer ? src_ : *tgt_;
  std::string_view line;
  bool counted = false;
  for (int64_t i = 0; still_time_ == nullptr || i % kLinesBetweenLooks != 0 || still_time_(); ++i) {
    counted = src_is_longer ? !src_.next(line) : !next_target(line);
    if (counted) break;
  }
  const auto count = [&](const LineReader& side) {
    return with_thousands(side.line_number()) +
           (!counted && &side == &longer ? " or more" : std::string());
  };
  const Error error(ExitCode::kBadData,
                    "the two sides do not have the same number of lines: " + input_.src + " has " +
                        count(src_) + ", " + input_.tgt + " has " + count(*tgt_),
                    "line i of one file must be the translation of line i of the other: look for a "
                    "file that was cut off, or for lines that were removed on one side only");
  // What is cut off is the shorter one.
  if (src_is_longer) throw TargetError(error);
  throw error;
}

}  // namespace stretto::data
