#include "audio/audio_file.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "tests/audio/sounds.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::audio {
namespace {

using stretto::testing::failure;
using Samples = std::vector<float>;

class AudioFileTest : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& bytes) const {
    return folder_.write(name, bytes);
  }
  std::string written(const std::string& name, int format, int rate, int channels,
                      const Samples& samples) const {
    const std::string path = (folder_ / name).string();
    test::write_sound(path, format, rate, channels, samples);
    return path;
  }
  static std::string bytes_of(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::string refusal(const std::string& path, const AudioRequest& request = {}) {
    return failure(ExitCode::kBadData, [&] { read_audio(path, request); }).message();
  }
  static void expect_near(const Samples& got, const Samples& wanted, float tolerance) {
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance) << i;
  }

  testing::TempDir folder_;
};

TEST_F(AudioFileTest, ReadsWavesOf8To32BitsAndFloats) {
  const auto read = [&](int bits, const std::vector<int64_t>& numbers) {
    return read_audio(
        write("a.wav", test::wave(8000, 1, bits, 1, test::bytes_of_integers(numbers, bits / 8))));
  };
  EXPECT_EQ(read(8, {128, 0, 192}), (Samples{0, -1, 0.5}));
  EXPECT_EQ(read(16, {0, -32768, 16384, 1}), (Samples{0, -1, 0.5, 1.0F / 32768}));
  EXPECT_EQ(read(24, {0, -8388608, 4194304}), (Samples{0, -1, 0.5}));
  EXPECT_EQ(read(32, {0, -2147483648LL, 1073741824}), (Samples{0, -1, 0.5}));
  const auto bits = [](float number) {
    return static_cast<int64_t>(std::bit_cast<uint32_t>(number));
  };
  EXPECT_EQ(
      read_audio(write("f.wav", test::wave(8000, 1, 32, 3,
                                           test::bytes_of_integers({bits(0.25F), bits(1.5F)}, 4)))),
      (Samples{0.25, 1.5}))
      << "a float above full scale is not cut";
}

TEST_F(AudioFileTest, ReadsCompressedFiles) {
  const auto sound = test::tone(440, 16000, 4000);
  expect_near(read_audio(written("a.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 16000, 1, sound)),
              sound, 1.0F / 32768);
  expect_near(read_audio(written("a.aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_16, 16000, 1, sound)),
              sound, 1.0F / 32768);
  expect_near(read_audio(written("a.ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS, 16000, 1, sound)),
              sound, 0.05F);
}

TEST_F(AudioFileTest, MixesChannelsToTheirMean) {
  const auto path = write(
      "two.wav", test::wave(8000, 2, 16, 1, test::bytes_of_integers({16384, 0, -8192, -8192}, 2)));
  EXPECT_EQ(read_audio(path), (Samples{0.25, -0.25}));
}

TEST_F(AudioFileTest, SaysWhatTheHeaderSays) {
  const auto path =
      written("a.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 22050, 2, Samples(2 * 11025));
  const AudioInfo info = audio_info(path);
  EXPECT_EQ(info.format, AudioFormat::kFlac);
  EXPECT_EQ(info.rate, 22050);
  EXPECT_EQ(info.channels, 2);
  EXPECT_EQ(info.frames, 11025);
  EXPECT_EQ(info.seconds(), 0.5);
}

TEST_F(AudioFileTest, ReadsARangeAsThePartOfTheWhole) {
  const auto sound = test::tone(300, 8000, 30000);
  for (const auto& [name, format] :
       std::vector<std::pair<std::string, int>>{{"a.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16},
                                                {"a.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16},
                                                {"a.ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS}}) {
    const auto path = written(name, format, 8000, 1, sound);
    const auto whole = read_audio(path);
    ASSERT_EQ(whole.size(), sound.size()) << name;
    const auto part = read_audio(path, {.offset = 1.5, .duration = 2});
    EXPECT_EQ(part, Samples(whole.begin() + 12000, whole.begin() + 28000)) << name;
    EXPECT_EQ(read_audio(path, {.offset = 3}), Samples(whole.begin() + 24000, whole.end())) << name;
  }
}

TEST_F(AudioFileTest, ARangeHasToLieWithinTheSound) {
  const AudioInfo info{.rate = 8000, .channels = 1, .frames = 8000};
  const auto range = [&](double offset, double duration) {
    const auto found = range_within(info, offset, duration, "a.wav");
    return std::pair(found.begin, found.end);
  };
  EXPECT_EQ(range(0, 0), std::pair(int64_t{0}, int64_t{8000}));
  EXPECT_EQ(range(0.25, 0.5), std::pair(int64_t{2000}, int64_t{6000}));
  EXPECT_EQ(range(0.5, 0.54), std::pair(int64_t{4000}, int64_t{8000})) << "manifests round";
  for (const auto& bad : std::vector<std::pair<double, double>>{
           {0.5, 0.6}, {1, 0}, {1.5, 0}, {-0.1, 0.5}, {0, -1}, {0, NAN}, {1e300, 0}}) {
    const auto error = failure(ExitCode::kBadData, [&] { range(bad.first, bad.second); });
    EXPECT_NE(error.message().find("it lasts 1.00 s"), std::string::npos) << error.message();
  }
}

TEST_F(AudioFileTest, TellsTheKindByTheContent) {
  const auto wave = test::wave(8000, 1, 16, 1, test::bytes_of_integers({1, 2}, 2));
  EXPECT_EQ(audio_info(write("a.flac", wave)).format, AudioFormat::kWav);
  EXPECT_NE(refusal(write("b.wav", "<html>not found</html>")).find("b.wav: is no sound"),
            std::string::npos);
  for (const std::string start : {"RIFF", "FORM1234", "\xFF", "fLaC", "OggS", "ID3"}) {
    EXPECT_NE(refusal(write("e.wav", start)).find("e.wav: is no "), std::string::npos) << start;
  }
  EXPECT_NE(refusal(write("c.wav", "")).find("c.wav: is empty"), std::string::npos);
  EXPECT_NE(refusal(write("d.wav", wave.substr(0, 20))).find("d.wav: is no WAV file"),
            std::string::npos);
  EXPECT_EQ(failure(ExitCode::kUsage, [&] { audio_info(folder_ / "none.wav"); }).code(),
            ExitCode::kUsage);
}

TEST_F(AudioFileTest, RefusesAWaveThatIsShorterThanItsHeaderSays) {
  const auto whole = test::wave(8000, 1, 16, 1, std::string(2000, 'a'));
  const auto path = write("cut.wav", whole.substr(0, whole.size() - 500));
  const auto said = failure(ExitCode::kBadData, [&] { audio_info(path); }).message();
  EXPECT_NE(said.find("cut.wav: is cut off: its header tells of 2,000 bytes of samples, and 1,500"),
            std::string::npos)
      << said;
  std::string stream = whole;
  stream.replace(40, 4, "\xFF\xFF\xFF\xFF");
  EXPECT_EQ(read_audio(write("stream.wav", stream)).size(), 1000u)
      << "a stream does not know its length";
}

TEST_F(AudioFileTest, RefusesAFlacWithoutItsEnd) {
  Samples noise;
  for (uint32_t i = 0; i < 40000; ++i)
    noise.push_back(static_cast<float>(i * 2654435761U >> 16) / 65536 - 0.5F);
  const auto path = written("a.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 16000, 1, noise);
  const auto bytes = bytes_of(path);
  const auto said = refusal(write("cut.flac", bytes.substr(0, bytes.size() / 2)));
  EXPECT_NE(said.find("cut.flac: "), std::string::npos) << said;
  // Between two frames a decoder notices nothing but their number.
  const size_t last_frame = bytes.rfind("\xFF\xF8");
  ASSERT_NE(last_frame, std::string::npos);
  const auto short_one = refusal(write("short.flac", bytes.substr(0, last_frame)));
  EXPECT_NE(short_one.find("short.flac: ends or is damaged at "), std::string::npos) << short_one;
}

TEST_F(AudioFileTest, RefusesSamplesThatAreNoNumbers) {
  const auto nan = std::bit_cast<uint32_t>(std::numeric_limits<float>::quiet_NaN());
  const auto path =
      write("nan.wav", test::wave(8000, 1, 32, 3, test::bytes_of_integers({0, nan}, 4)));
  EXPECT_NE(refusal(path).find("nan.wav: sample 2 is not a finite number"), std::string::npos);
}

TEST_F(AudioFileTest, RefusesMoreThanMayBeReadAtOnce) {
  const auto path = write("long.wav", test::wave(100, 1, 8, 1, std::string(3000, '\x80')));
  const auto said = refusal(path, {.max_seconds = 20});
  EXPECT_NE(said.find("long.wav: lasts 30.0s, and at most 20.0s can be read at once"),
            std::string::npos)
      << said;
  EXPECT_EQ(read_audio(path, {.offset = 25, .max_seconds = 20}).size(), 500u);
}

TEST_F(AudioFileTest, AWaveOf12HoursIsReadInRanges) {
  constexpr int64_t kFrames = int64_t{12} * 3600 * 8000;
  std::string header = test::wave(8000, 1, 8, 1, "");
  header.replace(4, 4, test::little_endian(36 + kFrames, 4));
  header.replace(header.size() - 4, 4, test::little_endian(kFrames, 4));
  const auto path = write("day.wav", header);
  // The samples are a hole in the file: bytes of 0, which are -1.
  std::filesystem::resize_file(path, header.size() + kFrames);
  EXPECT_EQ(audio_info(path).seconds(), 12 * 3600);
  EXPECT_NE(refusal(path).find("day.wav: lasts 12h 00m, and at most 1h 00m can be read at once"),
            std::string::npos)
      << refusal(path);
  EXPECT_EQ(read_audio(path, {.offset = 40'000, .duration = 1.5}), Samples(12000, -1));
}

TEST_F(AudioFileTest, ReadsEightChannelsAt192KHz) {
  Samples samples;
  for (int64_t frame = 0; frame < 19200; ++frame) {
    for (int channel = 0; channel < 8; ++channel) {
      samples.push_back(static_cast<float>(channel) / 8);
    }
  }
  for (const int format : {SF_FORMAT_WAV | SF_FORMAT_FLOAT, SF_FORMAT_WAV | SF_FORMAT_PCM_24}) {
    const auto path = written("eight.wav", format, 192000, 8, samples);
    EXPECT_EQ(audio_info(path).channels, 8);
    expect_near(read_audio(path), Samples(19200, 3.5F / 8), 1e-6F);
    EXPECT_EQ(read_audio(path, {.rate = 16000}).size(), 1600u);
  }
}

TEST_F(AudioFileTest, RefusesMoreChannelsThanItKnowsWhatToDoWith) {
  const auto path = write("many.wav", test::wave(8000, 100, 8, 1, std::string(200, '\x80')));
  EXPECT_NE(refusal(path).find("many.wav: has 100 channels at 8000 Hz"), std::string::npos)
      << refusal(path);
}

TEST_F(AudioFileTest, ReadsMemoryAsAFile) {
  const auto bytes = bytes_of(
      written("a.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 16000, 1, test::tone(440, 16000, 4000)));
  AudioReader reader(AudioBytes(bytes, "shard.tar: a.flac"));
  EXPECT_EQ(reader.read(reader.all()), read_audio(folder_ / "a.flac"));
  EXPECT_EQ(reader.read({.begin = 100, .end = 200}),
            AudioReader(folder_ / "a.flac").read({.begin = 100, .end = 200}))
      << "a reader reads again";
  const auto error =
      failure(ExitCode::kBadData, [] { AudioReader(AudioBytes("x", "shard.tar: b")); });
  EXPECT_NE(error.message().find("shard.tar: b: is no sound"), std::string::npos);
}

TEST_F(AudioFileTest, ChangesTheRate) {
  const auto path =
      written("a.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT, 44100, 1, test::tone(440, 44100, 44100));
  expect_near(read_audio(path, {.rate = 16000, .offset = 0.25, .duration = 0.5}),
              read_audio(path, {.rate = 16000, .offset = 0.25, .duration = 0.5}), 0);
  EXPECT_EQ(read_audio(path, {.rate = 16000, .offset = 0.25, .duration = 0.5}).size(), 8000u);
}

}  // namespace
}  // namespace stretto::audio
