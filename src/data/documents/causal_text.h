#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/documents/causal_text_options.h"
#include "data/documents/documents.h"

namespace stretto::data {

/// How files are read. @param key  that names them, for messages: "data.train"
DocumentInput input_of(const CausalTextOptions& options, const std::vector<std::string>& paths,
                       const std::string& key, int64_t threads);

/// The lanes that a text is read by, and the keys that say so.
struct WantedLanes {
  int64_t lanes = 1;
  std::string lanes_key = {};   ///< "data.lanes"
  int64_t length = 0;           ///< of a stretch; 0 = any
  std::string length_key = {};  ///< "data.bptt"
};

/// Throws Error(kBadData) where a text has fewer than two tokens for each lane, or where each lane
/// has less than a stretch.
/// @param name    of the text: "training text"
/// @param tokens  with separators
void require_lanes_fit(const std::string& name, int64_t tokens, const WantedLanes& wanted);

}  // namespace stretto::data
