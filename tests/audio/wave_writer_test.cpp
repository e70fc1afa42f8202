#include "audio/wave_writer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "audio/audio_file.h"
#include "base/file.h"
#include "tests/audio/sounds.h"
#include "tests/base/temp_dir.h"

namespace stretto::audio {
namespace {

std::vector<float> read_back(const std::string& bytes) {
  AudioReader reader(AudioBytes(std::string_view(bytes), "written"));
  EXPECT_EQ(reader.info().format, AudioFormat::kWav);
  EXPECT_EQ(reader.info().channels, 1);
  return reader.read(reader.all());
}

TEST(WaveWriter, MakesTheBytesOfAWavFile) {
  const std::vector<float> samples{0, 0.5F, -1, 1.0F / 32768};
  EXPECT_EQ(wave_bytes(samples, 22050),
            test::wave(22050, 1, 16, 1, test::bytes_of_integers({0, 16384, -32768, 1}, 2)));
}

TEST(WaveWriter, SamplesOf16BitsComeBack) {
  std::vector<float> samples;
  for (int64_t i = -32768; i < 32768; i += 5) samples.push_back(static_cast<float>(i) / 32768);
  EXPECT_EQ(read_back(wave_bytes(samples, 16000)), samples);
}

TEST(WaveWriter, RoundsCutsAndSilences) {
  const auto back = read_back(wave_bytes(
      std::vector<float>{0.4F / 32768, 0.6F / 32768, 2, -3, std::numeric_limits<float>::infinity(),
                         std::numeric_limits<float>::quiet_NaN()},
      8000));
  EXPECT_EQ(back, (std::vector<float>{0, 1.0F / 32768, 32767.0F / 32768, -1, 0, 0}));
}

TEST(WaveWriter, AFileIsWrittenAsAWhole) {
  const testing::TempDir folder;
  const std::string path = (folder / "tone.wav").string();
  const auto sound = test::tone(440, 22050, 2205);
  write_wave(path, sound, 22050);
  EXPECT_EQ(read_file(path), wave_bytes(sound, 22050));
  EXPECT_EQ(audio_info(path).rate, 22050);
  EXPECT_EQ(audio_info(path).frames, 2205);
  write_wave(path, {}, 22050);
  EXPECT_EQ(audio_info(path).frames, 0);
}

TEST(WaveWriter, RefusesARateThatNobodyReads) {
  EXPECT_THROW(wave_bytes({}, 0), std::invalid_argument);
  EXPECT_THROW(wave_bytes({}, kMaxRate + 1), std::invalid_argument);
}

}  // namespace
}  // namespace stretto::audio
