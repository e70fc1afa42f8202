#pragma once

#include <cstdint>
#include <vector>

#include "data/documents/documents.h"
#include "decoding/generation_options.h"
#include "families/language_model/engine/generator.h"
#include "report/sample.h"
#include "text/tokenizer.h"

namespace stretto::tasks {

/// What a report shows of a language model: beginnings of a text's documents, what the model writes
/// behind each, and how the text goes on there. The places are spread over the text, and the same
/// at every validation. A text of few documents is begun at places within them, too.
///
/// @param options  as `[decode]` says; one continuation of each, of a bounded length
/// @param count    the most samples; there are fewer of a text with fewer documents of two tokens
std::vector<report::Sample> continued_samples(const GeneratingModel& model,
                                              const text::Tokenizer& tokenizer,
                                              const data::Documents& documents,
                                              decoding::GenerationOptions options, int64_t count);

}  // namespace stretto::tasks
