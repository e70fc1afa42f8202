#pragma once

#include <memory>

#include "text/tokenizer.h"

namespace stretto::text {

/// The same tokenizer with texts as a language model reads them: behind the separator
/// (SpecialIds::eos), which stands in front of each text of a pair too, and with nothing behind.
///
///     separator A            separator A separator B
///
/// Other templates around texts do not count: no language model has seen them.
/// Throws Error(kUsage) for a tokenizer without separator.
std::shared_ptr<const Tokenizer> behind_separator(std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace stretto::text
