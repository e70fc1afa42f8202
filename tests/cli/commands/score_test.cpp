#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program.h"

namespace stretto::cli {
namespace {

using stretto::testing::has;
using stretto::testing::Program;

TEST(ScoreCommand, ScoresStdinAgainstFilesAndSpeaksJson) {
  const Program program;
  program.folder.write("ref", "the cat sat on the mat\nall is well here\n");
  const auto text = program.run({"score", "--metric", "bleu", "--reference", "ref"},
                                "the cat sat on the mat\nall is well here\n");
  EXPECT_EQ(text.code, 0);
  EXPECT_TRUE(has(text.out, "= 100.00 100.0/100.0/100.0/100.0")) << text.out;
  const auto json = nlohmann::json::parse(
      program
          .run({"score", "--metric", "chrf++", "--reference", "ref", "ref", "--json"},
               "the cat sat on a mat\nall is well here\n")
          .out);
  EXPECT_EQ(json["metric"], "chrf++");
  EXPECT_EQ(json["score"], json["chrf++"]);
  EXPECT_LT(json["score"], 100);
  EXPECT_EQ(program.run({"score", "--reference", "gone"}, "a\n").code, 2);
  EXPECT_EQ(program.run({"score", "--reference", "ref"}, "one line\n").code, 65);
}

TEST(ScoreCommand, CountsTheErrorsOfTranscripts) {
  const Program program;
  program.folder.write("ref", "the cat can't sit\n");
  const auto score = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"score", "--reference", "ref"};
    words.insert(words.end(), more.begin(), more.end());
    return program.run(words, "The cat can not sat\n");
  };
  EXPECT_EQ(score({"--metric", "wer"}).out,
            "WER|nrefs:1|case:mixed|norm:none|version:jiwer-4.0.0 = 100.00\n");
  const auto json =
      nlohmann::json::parse(score({"--metric", "wer", "--normalize", "standardize", "--json"}).out);
  EXPECT_EQ(json["wer"], 20.0);
  EXPECT_EQ(json["hits"], 4);
  EXPECT_EQ(json["substitutions"], 1);
  const auto refused = score({"--metric", "bleu", "--normalize", "standardize"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(has(refused.err, "bleu does not read --normalize\n  --normalize is for error rates"))
      << refused.err;
}

TEST(ScoreCommand, JoinsSubwordsOnBothSidesOrSaysThatItScoresPieces) {
  const Program program;
  const std::string words = "the housekeeper reads old newspapers here\n";
  program.folder.write("words", words);
  const std::vector<std::array<std::string, 3>> kinds{
      {"bpe", "the house@@ keep@@ er reads old news@@ papers here\n",
       "the hou@@ se@@ keeper reads older news@@ pap@@ ers here\n"},
      {"sentencepiece", "▁the ▁house keep er ▁reads ▁old ▁news papers ▁here\n",
       "▁the ▁hou se keeper ▁reads ▁older ▁news pap ers ▁here\n"},
      {"wordpiece", "the house ##keep ##er reads old news ##papers here\n",
       "the hou ##se ##keeper reads older news ##pap ##ers here\n"}};
  const std::string other = "the housekeeper reads older newspapers here\n";
  for (const auto& [kind, reference, output] : kinds) {
    program.folder.write("pieces", reference);
    for (const char* metric : {"bleu", "chrf", "chrf++", "ter"}) {
      const auto score = [&](const std::string& file, const std::string& text,
                             std::vector<std::string> more) {
        std::vector<std::string> all{"score", "--metric", metric, "--reference", file};
        all.insert(all.end(), more.begin(), more.end());
        return program.run(all, text);
      };
      const auto plain = score("words", other, {}),
                 joined = score("pieces", output, {"--subwords", kind});
      EXPECT_EQ(joined.out, plain.out) << kind << " " << metric;
      EXPECT_EQ(joined.err + plain.err, "") << kind;
      const auto of_pieces = score("pieces", output, {});
      EXPECT_NE(of_pieces.out, plain.out) << kind << " " << metric;
      EXPECT_TRUE(has(of_pieces.err, "warning: pieces looks split into sub-words (" + kind))
          << of_pieces.err;
      EXPECT_TRUE(has(of_pieces.err, "the hypotheses look split")) << of_pieces.err;
      EXPECT_EQ(score("pieces", output, {"--subwords", "none"}).err, "");
    }
  }
  program.folder.write("pieces", kinds[0][1]);
  program.folder.write("against", kinds[0][2]);
  const auto json =
      nlohmann::json::parse(program
                                .run({"score", "--reference", "pieces", "--bootstrap", "2",
                                      "--against", "against", "--subwords", "bpe", "--json"},
                                     kinds[0][1])
                                .out);
  EXPECT_EQ(json["bootstrap"]["against"]["score"],
            nlohmann::json::parse(
                program.run({"score", "--reference", "words", "--json"}, other).out)["score"]);
}

TEST(ScoreCommand, ResamplesSegmentsForIntervalsAndAComparison) {
  const Program program;
  std::string reference, good, bad;
  for (int i = 0; i < 60; ++i) {
    const std::string line = "the red house number " + std::to_string(i) + " stands beside it";
    reference += line + "\n";
    good += (i % 9 == 0 ? "the red house is here" : line) + "\n";
    bad += (i % 2 == 0 ? "the red house is here" : line) + "\n";
  }
  program.folder.write("ref", reference);
  program.folder.write("bad", bad);
  const std::vector<std::string> plain{"score", "--reference", "ref"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> words = plain;
    words.insert(words.end(), more.begin(), more.end());
    return program.run(words, good);
  };
  const auto json = nlohmann::json::parse(
      with({"--bootstrap", "200", "--against", "bad", "--seed", "3", "--json"}).out);
  const auto& found = json["bootstrap"];
  EXPECT_EQ(found["resamples"], 200);
  EXPECT_EQ(found["seed"], 3);
  EXPECT_EQ(found["system"]["score"], json["score"]);
  EXPECT_LT(found["system"]["low"], json["score"]);
  EXPECT_GT(found["system"]["high"], json["score"]);
  EXPECT_EQ(found["against"]["score"],
            nlohmann::json::parse(
                program.run({"score", "--reference", "ref", "--json"}, bad).out)["score"]);
  EXPECT_GT(found["difference"]["low"], 0);
  EXPECT_LT(found["p_value"], 0.02);
  EXPECT_EQ(found["significant"], true);

  const auto text = with({"--bootstrap", "200"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(text.out.starts_with(program.run(plain, good).out)) << text.out;
  EXPECT_TRUE(has(text.out, "\n95 % interval ")) << text.out;
  EXPECT_TRUE(has(text.out, "(200 resamples, seed 12345)\n")) << text.out;
  const auto paired = with({"--bootstrap", "200", "--against", "ref"});
  EXPECT_TRUE(has(paired.out, "\nref: 100.00, 95 % interval 100.00 to 100.00\n")) << paired.out;
  EXPECT_TRUE(has(paired.out, " (paired, two-sided)\n")) << paired.out;
  EXPECT_EQ(with({"--against", "bad"}).code, 2);
  EXPECT_EQ(with({"--bootstrap", "1"}).code, 2);
  EXPECT_EQ(with({"--bootstrap", "9", "--against", "gone"}).code, 2);
}

}  // namespace
}  // namespace stretto::cli
