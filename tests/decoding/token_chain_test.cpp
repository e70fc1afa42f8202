#include "decoding/token_chain.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace stretto::decoding {
namespace {

TEST(TokenChain, ALongTextEndsWithoutADeepStack) {
  TokenChain::Pointer text;
  for (int64_t i = 0; i < 1'000'000; ++i) text = std::make_shared<TokenChain>(std::move(text), i);
  text.reset();
  EXPECT_EQ(text, nullptr);
}

TEST(TokenChain, TextsShareTheirBeginning) {
  const auto beginning = std::make_shared<TokenChain>(nullptr, 1);
  auto one = std::make_shared<TokenChain>(std::make_shared<TokenChain>(beginning, 2), 3);
  const auto other = std::make_shared<TokenChain>(beginning, 4);
  one.reset();
  EXPECT_EQ(other->before, beginning);
  EXPECT_EQ(beginning->token, 1);
  EXPECT_EQ(beginning.use_count(), 2);
}

}  // namespace
}  // namespace stretto::decoding
