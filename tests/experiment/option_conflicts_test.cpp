#include "models/option_conflicts.h"

#include <gtest/gtest.h>

#include <limits>

namespace stretto::models {
namespace {

constexpr int64_t kFarTooMany = std::numeric_limits<int64_t>::max();

// Whoever reads a configuration goes on with such a number, to name all mistakes at once.
TEST(OptionConflicts, LeaveNumbersBeyondTheirRangesToTheirKeys) {
  Seq2SeqOptions model;
  model.positions = "rotary";
  for (const int64_t heads : {int64_t{0}, int64_t{-8}}) {
    model.encoder = StackOptions{.num_heads = heads};
    EXPECT_TRUE(option_conflicts(model).empty()) << heads;
  }
  model.encoder = LstmEncoderOptions{.num_layers = kFarTooMany, .bidirectional = false};
  model.decoder = LstmDecoderOptions{.num_layers = kFarTooMany, .initial_state = "last"};
  EXPECT_TRUE(option_conflicts(model).empty());
}

}  // namespace
}  // namespace stretto::models
