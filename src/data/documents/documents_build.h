#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/bad_samples.h"
#include "data/documents/documents.h"
#include "data/sample_store.h"
#include "text/tokenizer.h"

namespace stretto::data {

/// Tokenises documents into the parts of a store (data/documents/stored_documents.h). One thread
/// reads chunks of lines, others tokenise them, and results are written in the order of lines: the
/// parts do not depend on the number of threads, and memory is a few chunks.
///
/// @return the words of the head
/// Throws as open_documents() does.
std::vector<uint64_t> build_documents(const DocumentInput& input, const text::Tokenizer& tokenizer,
                                      SampleStoreWriter& store);

/// A line of a document as it is tokenised: behind the first one with a space before it, and with
/// U+FFFD for bytes that are not UTF-8. @return whether all of it was UTF-8
bool set_document_line(std::string_view text, bool begins_document, std::string& line);

/// Words of a text: what ASCII white space separates.
int64_t words_in(std::string_view text);

/// Error(kBadData) for files of a key that have no text.
/// @param key       "data.train"
/// @param left_out  lines that BadSampleRule left out, which may be all that there was
[[noreturn]] void throw_no_documents(const std::string& key, const std::vector<std::string>& paths,
                                     const LeftOut& left_out);

}  // namespace stretto::data
