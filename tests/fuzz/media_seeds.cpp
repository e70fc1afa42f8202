// Writes the seeds of audio_fuzz and image_fuzz:
//   media_seeds tests/fuzz/corpus
// Run it again after a new format, and commit what is new.
#include <gtest/gtest.h>
#include <sndfile.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "tests/audio/sounds.h"
#include "tests/image/pictures.h"

namespace {

namespace fs = std::filesystem;
using namespace stretto;

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void write_sounds(const fs::path& folder) {
  fs::create_directories(folder);
  const auto tone = audio::test::tone(440, 8000, 400);
  const std::vector<float> two_channels(200, 0.25F);
  for (const auto& [name, format] : std::vector<std::pair<std::string, int>>{
           {"pcm8.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_U8},
           {"pcm16.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16},
           {"pcm24.wav", SF_FORMAT_WAVEX | SF_FORMAT_PCM_24},
           {"float.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT},
           {"ulaw.wav", SF_FORMAT_WAV | SF_FORMAT_ULAW},
           {"adpcm.wav", SF_FORMAT_WAV | SF_FORMAT_IMA_ADPCM},
           {"long.wav", SF_FORMAT_RF64 | SF_FORMAT_PCM_16},
           {"pcm16.aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_16},
           {"pcm16.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16},
           {"vorbis.ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS},
           {"opus.ogg", SF_FORMAT_OGG | SF_FORMAT_OPUS},
           {"layer3.mp3", SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III}}) {
    audio::test::write_sound((folder / name).string(), format, 8000, 1, tone);
  }
  audio::test::write_sound((folder / "two.wav").string(), SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000,
                           2, two_channels);
}

void write_pictures(const fs::path& folder) {
  fs::create_directories(folder);
  const auto picture = image::test::gradient(13, 17);
  auto jpeg = image::test::jpeg_picture(picture);
  write_file(folder / "rgb.jpg", image::test::jpeg_of(jpeg));
  jpeg.is_progressive = true;
  jpeg.app1 = image::test::exif_of(6, true);
  write_file(folder / "progressive.jpg", image::test::jpeg_of(jpeg));
  const std::vector<uint8_t> ink(size_t{4} * 64, 100);
  write_file(folder / "cmyk.jpg",
             image::test::jpeg_of(
                 {.height = 8, .width = 8, .components = 4, .space = JCS_CMYK, .bytes = ink}));
  write_file(folder / "grey.jpg", image::test::jpeg_of({.height = 8,
                                                        .width = 8,
                                                        .components = 1,
                                                        .space = JCS_GRAYSCALE,
                                                        .bytes = std::vector<uint8_t>(64, 9)}));
  write_file(folder / "rgb.png", image::test::png_of(picture));
  const auto pixels = image::test::interleaved(picture);
  write_file(
      folder / "interlaced.png",
      image::test::png_of({.height = 13, .width = 17, .bytes = pixels, .is_interlaced = true}));
  write_file(folder / "palette.png", image::test::png_of({.height = 2,
                                                          .width = 3,
                                                          .color_type = PNG_COLOR_TYPE_PALETTE,
                                                          .bytes = {0, 1, 0, 1, 1, 0},
                                                          .palette = {{1, 2, 3}, {4, 5, 6}}}));
  write_file(folder / "grey16.png", image::test::png_of({.height = 1,
                                                         .width = 2,
                                                         .color_type = PNG_COLOR_TYPE_GRAY_ALPHA,
                                                         .bits = 16,
                                                         .bytes = {1, 2, 3, 4, 5, 6, 7, 8}}));
  write_file(folder / "turned.png",
             image::test::png_of({.height = 13,
                                  .width = 17,
                                  .bytes = pixels,
                                  .exif = image::test::exif_of(6, true).substr(6)}));
  write_file(folder / "wide_grey.png", image::test::png_of({.height = 1,
                                                            .width = 2,
                                                            .color_type = PNG_COLOR_TYPE_GRAY,
                                                            .bits = 16,
                                                            .bytes = {0, 2, 3, 4}}));
  const auto small = image::test::gradient(5, 7);
  write_file(folder / "lossless.webp", image::test::webp_of(small));
  write_file(folder / "lossy.webp", image::test::webp_of(small, 50));
  write_file(folder / "animated.webp", image::test::animated_webp(9, 9, 1, {small, small}));
  constexpr int kExif = 8;
  write_file(folder / "turned.webp",
             image::test::extended_webp(
                 5, 7, kExif,
                 image::test::chunks_of_webp(image::test::webp_of(small)) +
                     image::test::riff_chunk("EXIF", image::test::exif_of(6, true))));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: media_seeds tests/fuzz/corpus\n";
    return 2;
  }
  const fs::path corpus = argv[1];
  write_sounds(corpus / "audio_fuzz");
  write_pictures(corpus / "image_fuzz");
  return 0;
}
