#include <gtest/gtest.h>

#include "tests/cli/program.h"
#include "tests/search/bench.h"

namespace stretto::cli {
namespace {

using stretto::testing::expect_in;
using stretto::testing::has;
using stretto::testing::Program;

/// A run of text classification that trained nothing: what is refused is refused before its weights
/// are asked for.
class ReadingKeys : public ::testing::Test {
 protected:
  ReadingKeys() {
    program_.folder.write("train.tsv", "text\tlabel\nred\tno\nblue\tyes\n");
    program_.folder.write("dev.tsv", "one\ttwo\tgold\nred\tblue\tno\n");
    program_.folder.write("labels.toml",
                          "[task]\nname = \"text_classification\"\n"
                          "[data]\ntrain = [\"train.tsv\"]\nvalid = [\"train.tsv\"]\n"
                          "[tokenizer]\nvocab_size = 40\n[schedule]\nwarmup_steps = 0\n"
                          "[train]\nmax_steps = 5\n");
    const auto resolved = program_.run({"check", "labels.toml", "--resolved"});
    EXPECT_EQ(resolved.code, 0) << resolved.err;
    program_.write_run(resolved.out);
  }

  std::string said(const std::vector<std::string>& words) const {
    const auto result = program_.run(words, "red\n");
    EXPECT_NE(result.code, 0) << result.out;
    return result.err;
  }

  Program program_;
};

TEST_F(ReadingKeys, AreFreeForEvalAndInferAlone) {
  const std::vector<std::string> keys{
      "data.text=one",     "data.text2=two",     "data.label=gold",      "data.format=tsv",
      "data.header=false", "data.label_until=:", "data.skipped_label=-", "data.encoding=latin-1"};
  program_.folder.write("run/forensics/step_00000001.json", "{}");
  for (const auto& key : keys) {
    for (const char* command : {"eval", "infer"}) {
      const std::string error = said({command, "run", key});
      EXPECT_FALSE(has(error, "fixed, since")) << command << ": " << error;
    }
    expect_in("fixed, since the run was trained with another value",
              said({"replay", "run/forensics/step_00000001.json", key}));
  }
  for (const char* command : {"eval", "infer"}) {
    const std::string error = said({command, "run", "data.text2=two", "data.label_separator=,"});
    expect_in("`data.label_separator`: fixed, since the run was trained with another value", error);
    expect_in(
        "how files are read: data.format, data.separator, data.header, data.encoding, data.text",
        error);
    EXPECT_FALSE(has(error, "`data.text2`: fixed")) << error;
  }
  program_.folder.write("run/checkpoints/step_00000001/manifest.json", "{}");
  expect_in("data.skipped_label: \"\" in the run, \"-\" now",
            said({"train", "labels.toml", "--run", "run", "data.skipped_label=-"}));
}

TEST_F(ReadingKeys, AnOverrideOfAFixedKeyIsToldBeforeARuleIsAsked) {
  const std::string fixed = ": fixed, since the run was trained with another value\n";
  for (const std::string word :
       {"model.num_heads=7", "data.label_kind=number", "task.name=masked_lm", "model.d_model=abc",
        "optim.lr=-1", "tokenizer.type=sentencepiece"}) {
    const std::string key = word.substr(0, word.find('='));
    for (const char* command : {"eval", "infer", "embed"}) {
      const std::string error = said({command, "run", word});
      expect_in("error: command line, `" + word + "`: `" + key + "`" + fixed, error);
      EXPECT_FALSE(has(error, "config.toml:")) << command << ": " << error;
    }
  }
  expect_in("how files are read: data.format, data.separator, data.header",
            said({"eval", "run", "task.name=masked_lm"}));
  const std::string both = said({"eval", "run", "eval.max_tokns=9", "model.num_heads=7"});
  expect_in("`model.num_heads`" + fixed, both);
  expect_in("perhaps you meant `eval.max_tokens`?", both);
}

TEST_F(ReadingKeys, AFixedKeyIsAnsweredWithThoseThatDoTheSameHere) {
  const std::string bounds = "did you mean `eval.max_tokens` or `eval.max_samples`? decode.*, ";
  expect_in(bounds, said({"infer", "run", "data.max_samples=2"}));
  expect_in(bounds, said({"infer", "run", "data.max_tokens=64"}));
  expect_in("did you mean `eval.max_samples`? ", said({"eval", "run", "data.max_samples=2"}));
  expect_in("did you mean `eval.precision`? ",
            said({"infer", "run", "train.precision=mixed_bf16"}));
  const std::string other = said({"infer", "run", "data.max_text_tokens=9"});
  EXPECT_FALSE(has(other, "did you mean")) << other;
}

TEST(FixedKeys, OfTranslationAndLanguageModelsAreAnsweredWithWhatBoundsTheirSearch) {
  for (const char* task : {"translation", "language_model"}) {
    const Program program;
    program.write_run(std::string("[task]\nname = \"") + task + "\"\n");
    const std::string error = program.run({"infer", "run", "data.max_samples=2"}).err;
    expect_in("did you mean `decode.max_tokens`? ", error);
    EXPECT_FALSE(has(error, "`eval.max_samples`")) << error;
  }
}

TEST_F(ReadingKeys, AFileOfDataLeavesTheKeysBehindItAlone) {
  expect_in("`data.labels`: fixed, since",
            said({"eval", "run", "--data", "dev.tsv", "data.labels=[\"no\"]"}));
  expect_in("unexpected `train.tsv`", said({"eval", "run", "--data", "dev.tsv", "train.tsv"}));
  expect_in("no file gone.tsv",
            said({"eval", "run", "--data", "dev.tsv", "--data", "gone.tsv", "data.text=one"}));
}

// What their own data are, options of the families say.
TEST(EvalAndInfer, SpeakOfTheDataOfAnyFamily) {
  const Program program;
  const std::string eval = program.run({"eval", "--help"}).out,
                    infer = program.run({"infer", "--help"}).out;
  expect_in("share the data out among so many processes", eval);
  EXPECT_FALSE(has(eval, "the text over")) << eval;
  expect_in("lines, plain, .gz, .zst or FILE.zip:MEMBER", infer);
  EXPECT_FALSE(has(infer, "text, plain")) << infer;
}

TEST_F(ReadingKeys, AModelFolderInPlaceOfARunIsToBeImported) {
  program_.folder.write("bert/config.json", "{\"model_type\": \"bert\"}");
  for (const char* command : {"eval", "infer", "embed"}) {
    const std::string error = said({command, "bert"});
    expect_in("bert is not a run", error);
    expect_in("stretto import bert --run RUN", error);
  }
}

}  // namespace
}  // namespace stretto::cli
