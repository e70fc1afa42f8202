#include "seeds/seeds_record.h"

#include <gtest/gtest.h>

#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::seeds {
namespace {

TEST(SeedsRecord, IsReadAsItWasWritten) {
  const std::vector<SeedRun> runs{
      {.seed = 3, .state = SeedState::kFinished, .fingerprint = "a", .exit_code = 0},
      {.seed = 7, .state = SeedState::kFailed, .fingerprint = "b", .exit_code = 70},
      {.seed = 9, .state = SeedState::kWaiting, .fingerprint = "c", .exit_code = {}}};
  const RunScores scores{.best = ValidationScores{.step = 4, .scores = {{"nll", 1.5}}},
                         .last = ValidationScores{.step = 6, .scores = {{"nll", 2.5}}},
                         .seconds = 10};
  const auto json = seeds_json(runs, {scores, scores, {}}, {});
  const auto again = parse_seeds_json(json.dump(), "seeds.json");
  ASSERT_EQ(again.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(again[i].seed, runs[i].seed);
    EXPECT_EQ(again[i].state, runs[i].state);
    EXPECT_EQ(again[i].fingerprint, runs[i].fingerprint);
    EXPECT_EQ(again[i].exit_code, runs[i].exit_code);
  }
  ASSERT_TRUE(again[0].scores);
  EXPECT_EQ(difference_between(*again[0].scores, scores), "");
  EXPECT_FALSE(again[1].scores) << "it did not finish";
  EXPECT_EQ(json["runs"][0]["run"], "seed_3");
  EXPECT_EQ(json["runs"][0]["best"], (nlohmann::ordered_json{{"step", 4}, {"nll", 1.5}}));
  EXPECT_EQ(json["runs"][2]["last"], nullptr);
  EXPECT_EQ(json["finished"], 1) << "what failed is in no mean";
  EXPECT_EQ(json["best"]["nll"]["mean"], 1.5);
  EXPECT_EQ(json["best"]["nll"]["deviation"], nullptr);
  EXPECT_EQ(json["last"]["nll"]["mean"], 2.5);
  EXPECT_EQ(json["seconds"]["mean"], 10);
}

TEST(SeedsRecord, TellsOfDataThatWereAccepted) {
  EXPECT_FALSE(seeds_json({}, {}, {}).contains("accepted_data"));
  const auto json = seeds_json({}, {}, {}, {{"then", {{"data.train", "/a", "is new"}}}});
  EXPECT_EQ(json["accepted_data"].dump(),
            R"([{"time":"then","changes":"data.train: /a: is new"}])");
}

TEST(SeedsRecord, RefusesADamagedFile) {
  for (const char* text : {"", "[]", "{}", "{\"runs\":[1]}", "{\"runs\":[{\"seed\":1}]}",
                           "{\"runs\":[{\"seed\":1,\"state\":\"odd\",\"fingerprint\":\"\"}]}",
                           "{\"runs\":[{\"seed\":1,\"state\":\"finished\",\"fingerprint\":\"\"}]}",
                           "{\"runs\":[{\"seed\":1,\"state\":\"finished\",\"fingerprint\":\"\","
                           "\"best\":{\"nll\":\"\"},\"last\":null,\"seconds\":null}]}",
                           "{\"runs\":[{\"seed\":1.5,\"state\":\"failed\",\"fingerprint\":\"\"}]}",
                           "{\"runs\":[{\"seed\":1,\"state\":\"failed\",\"fingerprint\":\"\"},"
                           "{\"seed\":1,\"state\":\"failed\",\"fingerprint\":\"\"}]}"}) {
    EXPECT_THROW(parse_seeds_json(text, "seeds.json"), Error) << text;
  }
  const testing::TempDir folder;
  EXPECT_TRUE(read_seeds_json(folder.path()).empty());
  folder.write("seeds.json", "{}");
  const auto error = testing::failure(ExitCode::kBadData, [&] { read_seeds_json(folder.path()); });
  EXPECT_NE(error.message().find("seeds.json"), std::string::npos);
}

}  // namespace
}  // namespace stretto::seeds
