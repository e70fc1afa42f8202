#pragma once

#include <cstdint>
#include <string>

#include "models/model_cost.h"

/// What the commands are asked of translation alone; no libtorch.
namespace stretto::tasks {

/// Files of `stretto eval`.
struct TranslationEvalFiles {
  std::string src, tgt;    ///< empty = data.test_*, else data.valid_*
  std::string hypotheses;  ///< file to write the translations to; empty = none
  std::string per_line;    ///< file for the log-probability of each pair; empty = none
  std::string src2 = {};   ///< second source beside `src`, of a run that reads two
  std::string head;        ///< of several decoders the only one to judge; empty = all
};

/// Input beside its lines, and output, of `stretto infer`.
struct TranslationInferFiles {
  std::string prefix_file;
  std::string src2_file = {};  ///< second sources, line for line; empty = behind a tab of each line
  bool scores = false, alignments = false;
  std::string head;  ///< of several decoders the one that writes; empty where there is one
};

/// What a translation model is made for, in `stretto plan`.
struct TranslationSizes {
  int64_t src_rows = 0, tgt_rows = 0;  ///< of the embedding tables
  models::Lengths lengths = {};
};

}  // namespace stretto::tasks
