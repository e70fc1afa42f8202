#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/bad_samples.h"
#include "data/lines.h"
#include "text/tokenizer.h"

namespace stretto::data {

/// One column of TSV files, from 1, one file after the other. A line without it is an error as
/// throw_missing_column() says; a rule that skips leaves it out.
std::unique_ptr<text::LineSource> open_tsv_column(const std::vector<std::string>& paths,
                                                  int64_t column, char separator = '\t',
                                                  BadSampleRule bad_samples = {});

/// A SampleError for a line that has no such column. Where another separator would divide the line,
/// it says so.
[[noreturn]] void throw_missing_column(const LineReader& lines, std::string_view line,
                                       int64_t column, char separator);

}  // namespace stretto::data
