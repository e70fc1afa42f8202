#include "store/manifest.h"

#include <gtest/gtest.h>

#include "base/hash.h"

namespace stretto::store {
namespace {

Manifest sample() {
  return {.step = 12,
          .run_id = "run",
          .config_hash = "hash",
          .provenance = {.world_size = 4,
                         .stretto = "1.2.3",
                         .libtorch = "2.11.0",
                         .tokenizer = {{"joint.model", "dd"}, {"other", "ee"}}},
          .files = {{.name = "model.safetensors",
                     .size = 100,
                     .sha256 = "aa",
                     .header_sha256 = "bb",
                     .tensors = {{"w", "0123456789abcdef"}}},
                    {.name = "state.json", .size = 2, .sha256 = "cc"}}};
}

// With a checksum that is right, so that what stands before it is looked at.
std::string sealed(const std::string& body) {
  return body + ",\n  \"manifest_sha256\": \"" + sha256_hex(body) + "\"\n}\n";
}

std::string refusal(const std::string& bytes) {
  try {
    Manifest::from_json(bytes, "dir/manifest.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kBadData);
    EXPECT_TRUE(std::string(error.what()).starts_with("dir/manifest.json")) << error.what();
    return error.what();
  }
  return "";
}

TEST(Manifest, ComesBack) {
  const Manifest manifest = Manifest::from_json(sample().to_json(), "m");
  EXPECT_EQ(manifest.step, 12);
  EXPECT_EQ(manifest.run_id, "run");
  EXPECT_EQ(manifest.config_hash, "hash");
  EXPECT_EQ(manifest.provenance, sample().provenance);
  ASSERT_EQ(manifest.files.size(), 2u);
  EXPECT_EQ(manifest.files[0].name, "model.safetensors");
  EXPECT_EQ(manifest.files[0].size, 100u);
  EXPECT_EQ(manifest.files[0].sha256, "aa");
  EXPECT_EQ(manifest.files[0].header_sha256, "bb");
  EXPECT_EQ(manifest.files[0].tensors, sample().files[0].tensors);
  EXPECT_TRUE(manifest.files[1].tensors.empty());
  EXPECT_EQ(manifest.to_json(), sample().to_json());
}

TEST(Manifest, NoByteCanChange) {
  const std::string good = sample().to_json();
  for (size_t i = 0; i < good.size(); ++i) {
    for (const int bit : {0, 1, 5}) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      EXPECT_NE(refusal(bad), "") << "byte " << i << " bit " << bit;
    }
    EXPECT_NE(refusal(good.substr(0, i)), "") << i;
  }
  EXPECT_NE(refusal(good + " "), "");
  EXPECT_NE(refusal(" " + good), "");
}

TEST(Manifest, SaysWhatItWasWrittenByInKeysThatPeopleFind) {
  const std::string json = sample().to_json();
  for (const char* line : {R"("world_size": 4,)", R"("stretto": "1.2.3",)",
                           R"("libtorch": "2.11.0",)", R"("joint.model": "dd",)"}) {
    EXPECT_NE(json.find(line), std::string::npos) << line << " is not in " << json;
  }
}

TEST(Manifest, EarlyOnesWithoutProvenanceAreRead) {
  Manifest early = sample();
  early.provenance = {};
  const std::string json = early.to_json();
  for (const char* key : {"world_size", "stretto", "libtorch", "tokenizer"}) {
    EXPECT_EQ(json.find(key), std::string::npos) << key;
  }
  EXPECT_EQ(Manifest::from_json(json, "m").provenance, Provenance{});
}

TEST(Manifest, ANewerFormatIsToldFromADamagedOne) {
  Manifest manifest = sample();
  for (const int64_t version : {kFormatVersion + 1, int64_t{7}}) {
    manifest.format_version = version;
    EXPECT_THROW(Manifest::from_json(manifest.to_json(), "m"), NewerFormat) << version;
  }
  std::string damaged = sample().to_json();
  damaged.replace(damaged.find("\"format_version\": 1"), 19, "\"format_version\": 7");
  try {
    Manifest::from_json(damaged, "m");
    FAIL();
  } catch (const NewerFormat&) {
    FAIL() << "a flipped digit is damage";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("checksum"), std::string::npos);
  }
}

TEST(Manifest, WhatToJsonCouldNotWriteIsRefused) {
  const std::string head = R"({"format_version": 1, "step": 1, "run_id": "r", "config_hash": "c")";
  EXPECT_EQ(refusal(sealed(head + R"(, "files": [])")), "");
  for (const std::string& body :
       {head, head + R"(, "files": [1])", head + R"(, "files": [{"name": "a"}])",
        head + R"(, "files": [{"name": "a", "size": "1", "sha256": ""}])",
        head + R"(, "files": [{"name": "../a", "size": 1, "sha256": ""}])",
        head + R"(, "files": [{"name": "a", "size": 1, "sha256": "", "header_sha256": ""}])",
        std::string(R"({"format_version": "1", "files": [])"),
        std::string(R"({"format_version": 0, "files": [])")}) {
    EXPECT_NE(refusal(sealed(body)), "") << body;
  }
  for (const char* key :
       {R"("world_size": -1)", R"("world_size": "4")", R"("stretto": 1)", R"("libtorch": [])",
        R"("tokenizer_sha256": "dd")", R"("tokenizer_sha256": {"a": 1})"}) {
    EXPECT_NE(refusal(sealed(head + ", " + key + R"(, "files": [])")), "") << key;
  }
  const std::string file = R"({"name": "a", "size": 1, "sha256": ""})";
  EXPECT_NE(refusal(sealed(head + ", \"files\": [" + file + "," + file + "]")).find("twice"),
            std::string::npos);
}

}  // namespace
}  // namespace stretto::store
