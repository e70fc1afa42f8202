#include "models/synthesis/synthesis_conflicts.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "models/synthesis/synthesis_model.h"

namespace stretto::models {
namespace {

std::string first_key(const SynthesisModelOptions& options) {
  const auto found = option_conflicts(options);
  return found.empty() ? "" : found.front().keys.front();
}

TEST(SynthesisConflicts, DefaultsAreSound) {
  EXPECT_EQ(first_key(Tacotron2Options{}), "");
  EXPECT_EQ(first_key(CentaurOptions{}), "");
}

TEST(SynthesisConflicts, NameTheKeyOfWhatCannotBeBuilt) {
  Tacotron2Options odd;
  odd.encoder_dim = 511;
  EXPECT_EQ(first_key(odd), "model.encoder_dim");
  Tacotron2Options even;
  even.location_kernel = 32;
  EXPECT_EQ(first_key(even), "model.location_kernel");
  Tacotron2Options heads;
  heads.style.num_heads = 7;
  EXPECT_EQ(first_key(heads), "");  // no style
  heads.style.num_tokens = 10;
  EXPECT_EQ(first_key(heads), "model.style.num_heads");
  CentaurOptions width;
  width.d_model = 255;
  EXPECT_EQ(first_key(width), "model.d_model");
}

TEST(SynthesisConflicts, AreRefusedBeforeAnythingIsBuilt) {
  Tacotron2Options odd;
  odd.encoder_dim = 511;
  try {
    make_synthesis_model({.model = odd, .num_symbols = 5, .parts = {.num_mels = 4}});
    FAIL() << "built";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("model.encoder_dim"), std::string::npos);
  }
}

TEST(FrameParts, AreWhatTheModelWrites) {
  Tacotron2Options options;
  EXPECT_EQ(frame_parts(options, 80, 513).width(), 80);
  options.spectrum = "magnitude";
  EXPECT_EQ(frame_parts(options, 80, 513).width(), 513);
  EXPECT_EQ(frame_parts(options, 80, 513).decoder_width(), 513);
  options.spectrum = "both";
  EXPECT_EQ(frame_parts(options, 80, 513).width(), 593);
  EXPECT_EQ(frame_parts(options, 80, 513).decoder_width(), 80);
}

}  // namespace
}  // namespace stretto::models
