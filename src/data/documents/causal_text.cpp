#include "data/documents/causal_text.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace stretto::data {
namespace {

struct Reading {
  DocumentEnd end;
  DocumentText text;
};

Reading reading_of(const CausalTextOptions& options) {
  if (options.format == "lines") {
    return {options.keep_blank_lines ? DocumentEnd::kEachLine : DocumentEnd::kLine,
            DocumentText::kJoinedLines};
  }
  if (options.format == "jsonl") return {DocumentEnd::kJsonLine, DocumentText::kExact};
  if (options.documents == "marker") return {DocumentEnd::kMarker, DocumentText::kExact};
  if (options.documents == "blank_line") return {DocumentEnd::kBlankLine, DocumentText::kExact};
  return {DocumentEnd::kFile, DocumentText::kExact};
}

}  // namespace

DocumentInput input_of(const CausalTextOptions& options, const std::vector<std::string>& paths,
                       const std::string& key, int64_t threads) {
  const Reading reading = reading_of(options);
  return {.paths = paths,
          .end = reading.end,
          .cache_dir = options.cache_dir,
          .threads = threads,
          .key = key,
          .bad_samples = bad_sample_rule(options),
          .text = reading.text,
          .marker = options.marker,
          .json_key = options.key};
}

void require_lanes_fit(const std::string& name, int64_t tokens, const WantedLanes& wanted) {
  const std::string has = name + " has " + counted(tokens, "token");
  const int64_t each = tokens / wanted.lanes;
  if (each < 2) {
    const int64_t most = std::max<int64_t>(tokens / 2, 1);
    throw Error(ExitCode::kBadData,
                has + ", and " + wanted.lanes_key + " = " + std::to_string(wanted.lanes) +
                    " lanes need two each",
                "lower " + wanted.lanes_key + " to " + std::to_string(most) +
                    (most > 1 ? " or less" : "") + ", or give more text");
  }
  if (wanted.length <= each) return;
  throw Error(ExitCode::kBadData,
              has + ", " + with_thousands(each) + " for each of " + counted(wanted.lanes, "lane") +
                  ", and " + wanted.length_key + " = " + std::to_string(wanted.length) +
                  " goes back further",
              "lower " + wanted.length_key + " or " + wanted.lanes_key + ", or give more text");
}

}  // namespace stretto::data
