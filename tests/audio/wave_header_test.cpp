#include "audio/wave_header.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/audio/sounds.h"

namespace stretto::audio {
namespace {

std::optional<WaveData> wave_data_in(const std::string& bytes) {
  return find_wave_data(AudioBytes(bytes, "a.wav"));
}

TEST(WaveHeader, TellsOfTheBytesOfSamples) {
  const auto found = wave_data_in(test::wave(8000, 1, 16, 1, std::string(10, 'a')) + "LIST");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->said_bytes, 10u);
  EXPECT_EQ(found->bytes_there, 14u);
  EXPECT_FALSE(found->is_cut_off());
}

TEST(WaveHeader, SkipsOtherChunksAndTheirPadding) {
  std::string bytes = test::wave(8000, 1, 16, 1, std::string(10, 'a'));
  bytes.insert(12, "LIST" + test::little_endian(3, 4) + std::string("abc\0", 4));
  ASSERT_TRUE(wave_data_in(bytes));
  EXPECT_EQ(wave_data_in(bytes)->said_bytes, 10u);
  bytes.pop_back();
  EXPECT_TRUE(wave_data_in(bytes)->is_cut_off());
}

TEST(WaveHeader, ReadsTheLengthOfRf64) {
  const std::string long_sizes =
      test::little_endian(100, 8) + test::little_endian(6, 8) + std::string(12, '\0');
  const std::string bytes = "RF64\xFF\xFF\xFF\xFFWAVEds64" +
                            test::little_endian(long_sizes.size(), 4) + long_sizes +
                            "data\xFF\xFF\xFF\xFF" + "abcde";
  ASSERT_TRUE(wave_data_in(bytes));
  EXPECT_EQ(wave_data_in(bytes)->said_bytes, 6u);
  EXPECT_TRUE(wave_data_in(bytes)->is_cut_off());
}

TEST(WaveHeader, ALengthThatNobodyKnewIsNone) {
  for (const char* length : {"\xFF\xFF\xFF\xFF", "\x00\xF0\xFF\x7F"}) {
    std::string bytes = test::wave(8000, 1, 16, 1, "abcd");
    bytes.replace(40, 4, std::string(length, 4));
    ASSERT_TRUE(wave_data_in(bytes));
    EXPECT_TRUE(wave_data_in(bytes)->is_open_ended);
    EXPECT_FALSE(wave_data_in(bytes)->is_cut_off());
  }
}

TEST(WaveHeader, FindsNothingInOtherFiles) {
  EXPECT_FALSE(wave_data_in("fLaC and more than twelve bytes"));
  EXPECT_FALSE(wave_data_in("RIFF"));
  EXPECT_FALSE(wave_data_in("RIFF1234AVI LIST"));
  EXPECT_FALSE(wave_data_in("RIFF1234WAVEfmt \x10"));
}

}  // namespace
}  // namespace stretto::audio
