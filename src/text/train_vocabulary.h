#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stretto::text {

/// The words of lines, which stand between spaces, as a file of make_vocabulary(): a word and its
/// count a line, from frequent to rare, and of equal ones by their bytes. Where there are more than
/// `most`, the first of them. Words that are special tokens to a vocabulary, such as `<unk>`, have
/// an id already and are left out. So are words with a NUL byte, or a byte order mark in front.
/// Throws Error(kBadData) for a text without a word.
std::string train_vocabulary(const std::vector<std::string>& lines, int64_t most);

}  // namespace stretto::text
