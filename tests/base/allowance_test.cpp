#include "base/allowance.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/base/failure.h"

namespace stretto {
namespace {

TEST(Allowance, IsEightTimesWhatIsReadAndASpare) {
  Allowance allowance("a folder", 1000);
  allowance.add_read(500);
  EXPECT_EQ(allowance.limit(), 8 * 1500 + Allowance::kSpare);
  EXPECT_NO_THROW(allowance.take(allowance.limit(), "its pieces"));
  testing::failure(ExitCode::kBadData, [&] { allowance.take(1, "its pieces"); });
}

TEST(Allowance, BoundsTheSumOfAllParts) {
  Allowance allowance("a folder");
  for (int part = 0; part < 4; ++part) allowance.take(Allowance::kSpare / 4, "a part");
  testing::failure(ExitCode::kBadData, [&] { allowance.take(1, "one more part"); });
}

TEST(Allowance, WhatIsGivenBackIsFreeAgain) {
  Allowance allowance("f");
  allowance.take(Allowance::kSpare, "JSON");
  allowance.give_back(Allowance::kSpare / 2);
  EXPECT_EQ(allowance.taken(), Allowance::kSpare / 2);
  EXPECT_NO_THROW(allowance.take(Allowance::kSpare / 2, "pieces"));
}

TEST(Allowance, ItsErrorNamesPlacePartSizesAndRemedy) {
  Allowance allowance("m/vocab.txt", 1 << 20);
  const auto error = testing::failure(ExitCode::kBadData,
                                      [&] { allowance.take(uint64_t{1} << 40, "its pieces"); });
  const std::string what = error.what();
  for (const char* part : {"m/vocab.txt: its pieces", "264 MiB", "1.0 MiB", "publisher"}) {
    EXPECT_NE((what + error.advice()).find(part), std::string::npos) << part << ": " << what;
  }
}

}  // namespace
}  // namespace stretto
