#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/stop_strings.h"
#include "text/stream_decoder.h"

namespace stretto::tasks {

/// The text of an output, token by token: what is certain, and in front of the first stop string.
class OutputText {
 public:
  /// @param tokenizer  outlives this object
  /// @param prompt     tokens that the output continues, which are not part of its text
  OutputText(const text::Tokenizer& tokenizer, const std::vector<int64_t>& prompt,
             const std::vector<std::string>& stops)
      : stream_(tokenizer, prompt), stops_(stops) {}

  /// What is known to belong to the text now. Nothing behind a stop string.
  std::string add(int64_t id) { return stops_.add(stream_.add(id)); }
  bool stopped() const { return stops_.stopped(); }
  /// The rest, behind the last token.
  std::string finish() {
    std::string rest = stops_.add(stream_.finish());
    return stopped() ? rest : rest + stops_.finish();
  }

 private:
  text::StreamDecoder stream_;
  text::StopStrings stops_;
};

}  // namespace stretto::tasks
