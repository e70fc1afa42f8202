#pragma once

#include <cstdint>
#include <memory>
#include <utility>

namespace stretto::decoding {

/// A text as its last token and the text in front of it: texts of a search share their beginnings.
/// For one thread.
struct TokenChain {
  using Pointer = std::shared_ptr<TokenChain>;

  TokenChain(Pointer before_it, int64_t last) : before(std::move(before_it)), token(last) {}
  /// Link by link: a text of hours is longer than the stack is deep.
  ~TokenChain() {
    Pointer rest = std::move(before);
    while (rest != nullptr && rest.use_count() == 1) rest = std::move(rest->before);
  }
  TokenChain(const TokenChain&) = delete;
  TokenChain& operator=(const TokenChain&) = delete;

  Pointer before;  ///< null: the token is the first one
  int64_t token;
};

}  // namespace stretto::decoding
