#include "experiment/preflight.h"

#include <gtest/gtest.h>

#include "base/log.h"
#include "base/text.h"
#include "families/translation/translation_options.h"
#include "lint/lint.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "text/tokenizer.h"

namespace stretto::experiment {
namespace {

using std::chrono::milliseconds;
using testing::TempDir;

constexpr const char* kWords =
    "the a red blue big small house dog cat sees has wants two three old";

/// Lines of three words, no two alike.
std::string sentences(int64_t lines) {
  const auto words = split(kWords, ' ');
  std::string text;
  for (int64_t i = 0; i < lines; ++i) {
    const auto n = static_cast<size_t>(i);
    text += words[n % 15] + " " + words[n / 15 % 15] + " " + words[n / 225 % 15] + "\n";
  }
  return text;
}

/// A folder with a sound experiment of a hundred lines.
class PreflightTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"train.src", "train.tgt"}) folder.write(name, sentences(100));
    for (const char* name : {"valid.src", "valid.tgt"}) folder.write(name, sentences(10));
    std::string words;
    for (const auto& word : split(kWords, ' ')) words += word + "\n";
    folder.write("words.txt", words);
    config = folder.write("my.toml",
                          "[data]\ntrain_src = \"train.src\"\ntrain_tgt = \"train.tgt\"\n"
                          "valid_src = \"valid.src\"\nvalid_tgt = \"valid.tgt\"\n"
                          "[tokenizer]\nvocab_size = 60\n[train]\nmax_steps = 9000\n");
  }

  Preflight look(const std::vector<std::string>& overrides = {},
                 const PreflightOptions& how = {.full = true}) {
    const auto inspection = lint::inspect(config, overrides);
    for (const auto& problem : inspection.problems) ADD_FAILURE() << problem.what;
    origins = inspection.origins;
    options = inspection.options;
    return preflight(options, inspection.missing, how);
  }

  /// "my.toml:2:1: `data.train_src`: what" of the one stop, with its code.
  std::string stop(ExitCode code, const std::vector<std::string>& overrides = {}) {
    const auto found = look(overrides);
    EXPECT_TRUE(found.unread.empty());
    const auto problems = problems_of(found.stops, origins);
    EXPECT_EQ(exit_code_of(found.stops), code);
    if (problems.size() != 1) return std::to_string(problems.size()) + " stops";
    EXPECT_FALSE(problems[0].hint.empty());
    return problems[0].place.substr(problems[0].place.rfind('/') + 1) + ": " + problems[0].what;
  }

  std::vector<std::string> vocabulary() const {
    return {"tokenizer.type=vocab", "tokenizer.src_vocab=" + (folder / "words.txt").string()};
  }

  TempDir folder;
  std::string config;
  config::Origins origins;
  Experiment options;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(PreflightTest, ASoundExperimentStopsNowhere) {
  const auto found = look();
  EXPECT_TRUE(found.stops.empty()) << found.stops.front().what;
  EXPECT_TRUE(found.unread.empty());
  EXPECT_EQ(exit_code_of(found.stops), ExitCode::kOk);
  EXPECT_TRUE(look(vocabulary()).stops.empty());
}

TEST_F(PreflightTest, UnequalLineCountsAreToldAtTheKeyOfTheText) {
  folder.write("train.tgt", sentences(101));
  const auto text = stop(ExitCode::kBadData);
  EXPECT_TRUE(has(text, "my.toml:2:1: `data.train_src`: the two sides do not have the same number"))
      << text;
  EXPECT_TRUE(has(text, "train.src has 100") && has(text, "train.tgt has 101")) << text;
  folder.write("train.tgt", sentences(100));
  folder.write("valid.src", sentences(9));
  EXPECT_TRUE(has(stop(ExitCode::kBadData), "my.toml:4:1: `data.valid_src`: the two sides"));
}

TEST_F(PreflightTest, WhereTheTargetIsAtFaultItsKeyIsNamed) {
  const auto stops = [&](const std::string& name, int line, const std::string& text,
                         const std::string& said, const std::vector<std::string>& overrides = {}) {
    folder.write(name, text);
    const std::string key = name == "valid.tgt" ? "data.valid_tgt" : "data.train_tgt";
    const auto found = stop(ExitCode::kBadData, overrides);
    EXPECT_TRUE(found.starts_with("my.toml:" + std::to_string(line) + ":1: `" + key + "`: "))
        << found;
    EXPECT_TRUE(has(found, said)) << found;
  };
  const std::string nul = "a" + std::string(1, '\0') + "b\n";
  stops("valid.tgt", 5, sentences(9), "the two sides do not have the same number");
  stops("valid.tgt", 5, "", "valid.tgt has 0");
  stops("valid.tgt", 5, "\n\n\n\n\n\n\n\n\n\n", "empty corpus: none of the 10 pairs");
  stops("valid.tgt", 5, sentences(9) + nul, "valid.tgt:10:2: a NUL byte");
  stops("valid.tgt", 5, sentences(9) + "\xFF\n", "valid.tgt:10: this line is not valid UTF-8",
        {"data.invalid_utf8=error"});
  folder.write("valid.tgt", sentences(10));
  stops("train.tgt", 3, sentences(99), "train.tgt has 99");
  // Training a tokenizer meets this one first.
  stops("train.tgt", 3, sentences(99) + nul, "train.tgt:100:2: a NUL byte");
}

TEST_F(PreflightTest, WhereASecondSourceIsAtFaultItsKeyIsNamed) {
  folder.write("train.src2", sentences(100));
  folder.write("valid.src2", sentences(10));
  config = folder.write("two.toml",
                        "[data]\ntrain_src = \"train.src\"\ntrain_src2 = \"train.src2\"\n"
                        "train_tgt = \"train.tgt\"\nvalid_src = \"valid.src\"\n"
                        "valid_src2 = \"valid.src2\"\nvalid_tgt = \"valid.tgt\"\n"
                        "[tokenizer]\nvocab_size = 60\n[train]\nmax_steps = 9000\n"
                        "[[model.encoders]]\n[[model.encoders]]\n");
  EXPECT_TRUE(look().stops.empty());
  folder.write("train.src2", sentences(99));
  const auto text = stop(ExitCode::kBadData);
  EXPECT_TRUE(text.starts_with("two.toml:3:1: `data.train_src2`: ")) << text;
  EXPECT_TRUE(has(text, "train.src2 has 99")) << text;
  const auto loaded = load_experiment(config, {});
  const auto error = testing::failure(ExitCode::kBadData, [&] { require_sound_start(loaded, {}); });
  EXPECT_TRUE(has(error.what(), text)) << error.what();
  // Training a tokenizer meets this one first.
  folder.write("train.src2", sentences(99) + "a" + std::string(1, '\0') + "b\n");
  const auto byte = stop(ExitCode::kBadData);
  EXPECT_TRUE(byte.starts_with("two.toml:3:1: `data.train_src2`: ")) << byte;
  folder.write("train.src2", sentences(100));
  folder.write("valid.src2", sentences(11));
  const auto longer = stop(ExitCode::kBadData);
  EXPECT_TRUE(longer.starts_with("two.toml:6:1: `data.valid_src2`: ")) << longer;
  EXPECT_TRUE(has(longer, "valid.src2 has 11")) << longer;
  folder.write("valid.src2", "\n\n\n\n\n\n\n\n\n\n");
  const auto empty = stop(ExitCode::kBadData);
  EXPECT_TRUE(empty.starts_with("two.toml:6:1: `data.valid_src2`: empty corpus: ")) << empty;
}

TEST_F(PreflightTest, ATargetThatCannotBeOpenedIsNamedAtItsKey) {
  std::filesystem::remove(folder.path() / "valid.tgt");
  std::filesystem::create_directories(folder.path() / "valid.tgt");
  const auto text = stop(ExitCode::kUsage);
  EXPECT_TRUE(text.starts_with("my.toml:5:1: `data.valid_tgt`: ")) << text;
}

TEST_F(PreflightTest, OfBothColumnsOfATsvFileTheOneKeyIsNamed) {
  folder.write("valid.tsv", "a\t\nb\t\n");
  folder.write("tsv.toml",
               "[data]\ntrain_src = \"train.src\"\ntrain_tgt = \"train.tgt\"\n"
               "valid_tsv = \"valid.tsv\"\n"
               "[tokenizer]\nvocab_size = 60\n[train]\nmax_steps = 9000\n");
  config = (folder / "tsv.toml").string();
  EXPECT_TRUE(has(stop(ExitCode::kBadData), "`data.valid_tsv`: empty corpus: none of the 2 pairs"));
}

TEST_F(PreflightTest, EmptyFilesAreToldAsTrainingTellsThem) {
  folder.write("train.src", "");
  folder.write("train.tgt", "");
  EXPECT_TRUE(has(stop(ExitCode::kBadData),
                  "my.toml:2:1: `data.train_src`: there is no text to train a SentencePiece"));
  const auto text = stop(ExitCode::kBadData, vocabulary());
  EXPECT_TRUE(has(text, "my.toml:2:1: `data.train_src`: empty corpus: there are no lines")) << text;
}

TEST_F(PreflightTest, ATokenizerFileThatIsNoneIsToldAtItsKey) {
  folder.write("no.model", "this is no model");
  const auto text = stop(ExitCode::kBadData, {"tokenizer.model=" + (folder / "no.model").string()});
  EXPECT_TRUE(has(text, "`tokenizer.model`: ") && has(text, "no.model: not a SentencePiece model"))
      << text;
  folder.write("no.txt", "two words\n");
  auto overrides = vocabulary();
  overrides.push_back("tokenizer.tgt_vocab=" + (folder / "no.txt").string());
  overrides.push_back("model.tie_embeddings=decoder");
  const auto vocab = stop(ExitCode::kBadData, overrides);
  EXPECT_TRUE(has(vocab, "`tokenizer.tgt_vocab`: ") && has(vocab, "no.txt:1: expected `token`"))
      << vocab;
}

/// Encoders of text: a tokenizer of theirs is looked at as translation's are.
class TextPreflight : public PreflightTest {
 protected:
  void SetUp() override {
    PreflightTest::SetUp();
    folder.write("labels.tsv", "text\tlabel\na red house\tgood\na blue dog\tbad\n");
    folder.write("squad.json",
                 R"({"data": [{"paragraphs": [{"context": "A red house.", "qas": [{"id": "1",
                     "question": "Which?", "answers": [{"text": "red", "answer_start": 2}]}]}]}]})");
    folder.write("no.json", R"({"version": "1.0", "model": {"type": "Unigram"}})");
  }

  void describe(const std::string& task, const std::string& train) {
    config = folder.write("my.toml",
                          "[task]\nname = \"" + task + "\"\n[data]\ntrain = [\"" + train + "\"]\n" +
                              (task == "text_classification" ? "cache_dir = \"cache\"\n" : "") +
                              "[train]\nmax_steps = 9000\n");
  }
};

TEST_F(TextPreflight, ATokenizerFileThatIsNoneIsToldAtItsKey) {
  for (const auto& [task, train] :
       std::vector<std::pair<std::string, std::string>>{{"masked_lm", "train.src"},
                                                        {"text_classification", "labels.tsv"},
                                                        {"question_answering", "squad.json"}}) {
    describe(task, train);
    const auto sound = look();
    EXPECT_TRUE(sound.stops.empty()) << task << ": " << sound.stops.front().what;
    EXPECT_TRUE(sound.unread.empty()) << task << ": " << sound.unread.front().what;
    const auto quick = look({}, {});
    ASSERT_EQ(quick.unread.size(), 1u) << task;
    EXPECT_EQ(quick.unread[0].key, "tokenizer.vocab_size");
    const std::vector<std::string> named{"tokenizer.model=" + (folder / "no.json").string()};
    const auto text = stop(ExitCode::kBadData, named);
    EXPECT_TRUE(has(text, "`tokenizer.model`: ") && has(text, "no.json")) << text;
    // Training asks for it before it makes a folder.
    EXPECT_NO_THROW(require_sound_start(load_experiment(config, {}), {}));
    const auto loaded = load_experiment(config, named);
    const auto error =
        testing::failure(ExitCode::kBadData, [&] { require_sound_start(loaded, {}); });
    EXPECT_TRUE(has(error.what(), text)) << error.what();
  }
}

TEST_F(TextPreflight, DocumentsThatCannotBeReadAreTold) {
  folder.write("empty.txt", "\n \n");
  describe("masked_lm", "empty.txt");
  EXPECT_TRUE(has(stop(ExitCode::kBadData), "`data.train`: there is no document with a token in "));
  folder.write("long.txt", "a\n" + std::string(1200000, 'b') + "\n");
  describe("masked_lm", "long.txt");
  EXPECT_TRUE(has(stop(ExitCode::kBadData), "long.txt:2: "));
  describe("masked_lm", "train.src");
  const auto found = look({}, {.limit = milliseconds(0)});
  ASSERT_EQ(found.unread.size(), 2u);
  EXPECT_EQ(found.unread[0].what, (folder / "train.src").string() + " behind line 1");
}

/// A vocabulary of English words, and text in Chinese for training.
class UnknownTokens : public TextPreflight {
 protected:
  void SetUp() override {
    TextPreflight::SetUp();
    std::string pieces = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nwhich\n?\n.\n";
    for (const auto& word : split(kWords, ' ')) pieces += word + "\n";
    model = "tokenizer.model=" + folder.write("vocab.txt", pieces);
    folder.write("zh.txt", "我们喜欢红色的房子\n\n狗看见猫\n");
    folder.write("zh.tsv", "text\tlabel\n我们喜欢红色的房子\tgood\n狗看见猫\tbad\n");
    folder.write("zh.json",
                 R"({"data": [{"paragraphs": [{"context": "我们喜欢红色的房子", "qas": [{"id": "1",
                     "question": "Which?", "answers": [{"text": "红色", "answer_start": 4}]}]}]}]})");
  }

  struct Family {
    const char *task, *known, *unknown, *named;
  };
  static constexpr Family kFamilies[] = {
      {"masked_lm", "train.src", "zh.txt", "training text: 81.2 %"},
      {"text_classification", "labels.tsv", "zh.tsv", "training text: 76.5 %"},
      {"question_answering", "squad.json", "zh.json", "training windows: 64.3 %"},
  };

  std::string model;
};

TEST_F(UnknownTokens, OfEncodedTextsAreToldAsTrainingTellsThem) {
  for (const auto& family : kFamilies) {
    describe(family.task, family.known);
    for (const auto& how :
         {PreflightOptions{.full = true}, PreflightOptions{.limit = milliseconds(60'000)}}) {
      const auto sound = look({model}, how);
      EXPECT_TRUE(sound.stops.empty()) << family.task << ": " << sound.stops.front().what;
      EXPECT_TRUE(sound.unread.empty()) << family.task << ": " << sound.unread.front().what;
    }
    describe(family.task, family.unknown);
    const std::string text = stop(ExitCode::kBadData, {model});
    EXPECT_TRUE(has(text, "`data.train`: " + std::string(family.named) +
                              " of the tokens are unknown, more than data.max_unknown = 0.2"))
        << text;
    const auto timed = look({model}, {.limit = milliseconds(60'000)});
    ASSERT_EQ(timed.stops.size(), 1u) << family.task;
    EXPECT_EQ(timed.stops[0].key, "data.train");
    EXPECT_TRUE(has(timed.stops[0].hint, "give the tokenizer that was made for this text"));
    EXPECT_TRUE(look({model, "data.max_unknown=1"}).stops.empty()) << family.task;
    // The share is not known for text that was not read to its end.
    const auto late = look({model}, {.limit = milliseconds(0)});
    EXPECT_TRUE(late.stops.empty()) << family.task;
    ASSERT_FALSE(late.unread.empty()) << family.task;
    EXPECT_EQ(late.unread.back().key, "data.max_unknown") << family.task;
  }
}

TEST_F(UnknownTokens, AreLookedForInSoundTextAlone) {
  folder.write("short.tsv", "text\tlabel\n我们喜欢红色的房子\tgood\n狗\n");
  describe("text_classification", "short.tsv");
  EXPECT_TRUE(has(stop(ExitCode::kBadData, {model}), "short.tsv:3: "));
  describe("text_classification", "labels.tsv");
  const auto valid = "data.valid=[\"" + (folder / "zh.tsv").string() + "\"]";
  const auto found = look({model, valid});
  ASSERT_EQ(found.stops.size(), 1u);
  EXPECT_EQ(found.stops[0].key, "data.valid");
  EXPECT_TRUE(has(found.stops[0].what, "validation text: "));
}

/// Text of few samples, and a tokenizer that knows it.
class FewSamples : public UnknownTokens {};

TEST_F(FewSamples, LeaveNoRoomForAScheduleInAnyFamily) {
  for (const auto& family : kFamilies) {
    describe(family.task, family.known);
    std::vector<std::string> overrides{model, "train.max_steps=0", "train.max_epochs=1",
                                       "schedule.name=cosine", "schedule.warmup_ratio=0.1"};
    for (const auto& how :
         {PreflightOptions{.full = true}, PreflightOptions{.limit = milliseconds(60'000)}}) {
      const auto found = look(overrides, how);
      ASSERT_EQ(found.stops.size(), 1u) << family.task;
      EXPECT_EQ(found.stops[0].key, "schedule.name");
      EXPECT_TRUE(
          has(found.stops[0].what, "begin at update 1, and 1 epoch of this data has at most"))
          << family.task << ": " << found.stops[0].what;
    }
    overrides.back() = "schedule.warmup_steps=0";
    EXPECT_TRUE(look(overrides).stops.empty()) << family.task;
  }
}

TEST_F(PreflightTest, AVocabularyThatTheTextDoesNotAllowIsToldAtItsKey) {
  const auto large = stop(ExitCode::kUsage, {"tokenizer.vocab_size=9000"});
  EXPECT_TRUE(has(large, "`tokenizer.vocab_size`: the training text is too small for 9000 pieces"))
      << large;
  const auto small = stop(ExitCode::kUsage, {"tokenizer.vocab_size=16"});
  EXPECT_TRUE(has(small, "`tokenizer.vocab_size`: 16 pieces cannot hold the ")) << small;
}

TEST_F(PreflightTest, FiltersThatLeaveNothingAreTold) {
  EXPECT_TRUE(has(stop(ExitCode::kBadData, {"data.max_tgt_tokens=2"}),
                  "`data.train_src`: empty corpus: none of the 100 pairs"));
}

TEST_F(PreflightTest, TextThatTheVocabularyDoesNotKnowIsToldAsTrainingTellsIt) {
  // The first ten lines have less of the words that are missing than the hundred.
  folder.write("words.txt", "the\na\nred\nblue\nbig\n");
  const auto text = stop(ExitCode::kBadData, vocabulary());
  EXPECT_TRUE(
      has(text, "`data.train_src`: training text: ") &&
      has(text, "30.0 % of the source's tokens are `<unk>`, more than data.max_unknown = 0.2"))
      << text;
  const auto timed = look(vocabulary(), {.limit = milliseconds(60'000)});
  EXPECT_EQ(timed.stops.size(), 1u);
  EXPECT_TRUE(timed.unread.empty());
  auto allowed = vocabulary();
  allowed.push_back("data.max_unknown=1");
  EXPECT_TRUE(look(allowed).stops.empty());
  const auto late = look(vocabulary(), {.limit = milliseconds(0)});
  EXPECT_TRUE(late.stops.empty());
  EXPECT_EQ(late.unread.back().key, "data.max_unknown");
}

TEST_F(PreflightTest, AllStopsAreToldAndTheCodeIsThatOfTheFirst) {
  folder.write("train.tgt", sentences(101));
  folder.write("valid.tgt", sentences(11));
  const auto found = look({"tokenizer.vocab_size=9000"});
  EXPECT_EQ(problems_of(found.stops, origins).size(), 3u);
  EXPECT_EQ(exit_code_of(found.stops), ExitCode::kBadData) << "training reads the lines first";
}

// What `stretto train` asks before it makes a folder.
TEST_F(PreflightTest, UnequalLineCountsAreRefusedByALookAtTheFilesAlone) {
  const auto loaded = load_experiment(config, {"tokenizer.vocab_size=9000"});
  EXPECT_NO_THROW(require_sound_start(loaded, {})) << "no tokenizer is made";
  folder.write("train.tgt", sentences(101));
  const auto error = testing::failure(ExitCode::kBadData, [&] { require_sound_start(loaded, {}); });
  EXPECT_TRUE(has(error.what(), "my.toml:2:1: `data.train_src`: the two sides do not have the"))
      << error.what();
  EXPECT_NO_THROW(require_sound_start(loaded, {}, {.limit = milliseconds(0)})) << "found later";
}

TEST_F(PreflightTest, AllThatWouldStopAStartIsToldTogetherWithItsDetails) {
  folder.write("train.tgt", sentences(101));
  const auto loaded = load_experiment(config, {"optim.groups=[\"encodr.* lr_scale=0.5\"]",
                                               "train.init_from=" + folder.path().string()});
  CheckRequest asked;
  const EngineChecks engine{
      .tensors = [](const Experiment&) { return std::vector<optim::TensorName>{{"encoder.bias"}}; },
      .check =
          [&](const CheckRequest& request) {
            asked = request;
            log::info("training tells this");
            log::warn("and this");
            return Preflight{.stops = {{Stage::kWeights,
                                        "train.init_from",
                                        ExitCode::kBadData,
                                        "does not fit",
                                        "give the values of that run",
                                        {"`a` is missing", "`b` is missing"}}},
                             .unread = {}};
          }};
  ::testing::internal::CaptureStderr();
  const auto error =
      testing::failure(ExitCode::kUsage, [&] { require_sound_start(loaded, engine); });
  const std::string told = ::testing::internal::GetCapturedStderr();
  for (const char* part :
       {"my.toml:2:1: `data.train_src`: the two sides", "`encodr.*` matches no parameter",
        "`train.init_from`: does not fit\n  give the values of that run", "3 errors"}) {
    EXPECT_TRUE(has(error.what(), part)) << error.what();
  }
  EXPECT_EQ(told, loaded.origins.of("train.init_from") +
                      ", in full:\n  `a` is missing\n  `b` is missing\n");
  EXPECT_TRUE(asked.weights);
  EXPECT_FALSE(asked.machine || asked.text || asked.full);
}

TEST_F(PreflightTest, AStartLoadsATokenizerThatIsNamedBeforeItAsksForWeights) {
  folder.write("no.model", "this is no model");
  const auto loaded = load_experiment(config, {"tokenizer.model=" + (folder / "no.model").string(),
                                               "train.init_from=" + folder.path().string()});
  const EngineChecks engine{.tensors = {}, .check = [](const CheckRequest&) {
                              ADD_FAILURE() << "nobody knows the shapes";
                              return Preflight{};
                            }};
  const auto error =
      testing::failure(ExitCode::kBadData, [&] { require_sound_start(loaded, engine); });
  EXPECT_TRUE(has(error.what(), "`tokenizer.model`: ") &&
              has(error.what(), "no.model: not a SentencePiece model"))
      << error.what();
}

TEST_F(PreflightTest, AScheduleLongerThanTheEpochsOfFewPairsIsToldByTheRuleOfTraining) {
  for (const char* name : {"train.src", "train.tgt"}) folder.write(name, sentences(2));
  const auto with = [&](int epochs, const std::string& more) {
    auto overrides = vocabulary();
    for (const auto& word :
         {std::string("train.max_steps=0"), "train.max_epochs=" + std::to_string(epochs),
          std::string("schedule.name=linear"), std::string("schedule.warmup_ratio=0.1"), more}) {
      if (!word.empty()) overrides.push_back(word);
    }
    return overrides;
  };
  const auto text = stop(ExitCode::kUsage, with(1, ""));
  EXPECT_TRUE(has(text,
                  "the decay of \"linear\" would begin at update 1, and 1 epoch of this data "
                  "has at most 1 update"))
      << text;
  const auto timed = look(with(1, ""), {.limit = milliseconds(60'000)});
  ASSERT_EQ(timed.stops.size(), 1u);
  EXPECT_EQ(timed.stops[0].key, "schedule.name");
  EXPECT_EQ(timed.stops[0].stage, Stage::kSchedule);
  EXPECT_TRUE(look(with(3, "")).stops.empty());
  for (const char* enough : {"data.train_weights=[10]", "data.max_samples=1"}) {
    EXPECT_TRUE(look(with(1, enough)).stops.empty()) << enough;
  }
  EXPECT_TRUE(look(with(1, ""), {.limit = milliseconds(0)}).stops.empty()) << "nobody knows";
}

TEST_F(PreflightTest, OneCauseIsToldOnce) {
  folder.write("train.src", sentences(50) + "a" + std::string(1, '\0') + "b\n" + sentences(49));
  const auto found = look();
  EXPECT_GT(found.stops.size(), 1u) << "the tokenizer's training and the corpus meet it";
  EXPECT_EQ(problems_of(found.stops, origins).size(), 1u);
}

TEST_F(PreflightTest, WhatTheConfigurationAlreadyRefusesIsLeftOut) {
  folder.write("train.tgt", sentences(101));
  const auto inspection =
      lint::inspect(config, {"data.train_src=[\"no.src\"]", "tokenizer.vocab_size=0"});
  auto known = inspection.problems;
  known.insert(known.end(), inspection.missing.begin(), inspection.missing.end());
  EXPECT_EQ(known.size(), 2u);
  EXPECT_TRUE(preflight(inspection.options, known, {.full = true}).stops.empty());
}

TEST_F(PreflightTest, WithoutTimeItSaysWhatItLeftUnread) {
  folder.write("train.tgt", sentences(101));
  const auto found = look({}, {.limit = milliseconds(0)});
  EXPECT_TRUE(found.stops.empty());
  ASSERT_EQ(found.unread.size(), 3u);
  EXPECT_EQ(found.unread[0].key, "data.valid_src");
  EXPECT_EQ(found.unread[1].key, "data.train_src");
  EXPECT_EQ(found.unread[1].what, (folder / "train.src").string() + " from line 1 on");
  EXPECT_EQ(found.unread[2].key, "tokenizer.vocab_size");
}

// A minute is more than any machine needs for this; the child's findings come back whole.
TEST_F(PreflightTest, WithEnoughTimeTheChildSaysTheSame) {
  folder.write("valid.tgt", "\n\n\n\n\n\n\n\n\n\n");
  for (const auto& overrides :
       {std::vector<std::string>{}, {"tokenizer.vocab_size=9000"}, vocabulary()}) {
    const auto here = look(overrides), there = look(overrides, {.limit = milliseconds(60'000)});
    EXPECT_FALSE(here.stops.empty());
    ASSERT_EQ(there.stops.size(), here.stops.size());
    EXPECT_TRUE(there.unread.empty());
    for (size_t i = 0; i < here.stops.size(); ++i) {
      EXPECT_EQ(there.stops[i].what, here.stops[i].what);
      EXPECT_EQ(there.stops[i].hint, here.stops[i].hint);
      EXPECT_EQ(there.stops[i].details, here.stops[i].details);
      EXPECT_EQ(there.stops[i].key, here.stops[i].key);
      EXPECT_EQ(there.stops[i].code, here.stops[i].code);
      EXPECT_EQ(there.stops[i].stage, here.stops[i].stage);
    }
  }
}

TEST_F(PreflightTest, TheDeviceOfAnotherMachineIsNamedAsNotLookedAt) {
  const auto unread = [&](const std::vector<std::string>& overrides, bool elsewhere) {
    std::vector<std::string> keys;
    for (const auto& one : look(overrides, {.full = true, .elsewhere = elsewhere}).unread) {
      keys.push_back(one.key);
    }
    return join(keys, ", ");
  };
  EXPECT_EQ(unread({}, true), "");
  EXPECT_EQ(unread({"run.device=cpu"}, true), "");
  EXPECT_EQ(unread({"run.device=cuda"}, true), "run.device");
  EXPECT_EQ(unread({"dist.backend=nccl"}, true), "dist.backend");
  EXPECT_EQ(unread({"run.device=cuda", "dist.backend=nccl"}, true), "run.device, dist.backend");
  EXPECT_EQ(unread({"run.device=cuda"}, false), "") << "the engine is asked";
}

TEST_F(PreflightTest, TheEngineIsAskedOnlyWhereAKeyNeedsIt) {
  const auto asked = [&](const std::vector<std::string>& overrides, bool elsewhere) {
    const auto inspection = lint::inspect(config, overrides);
    return engine_request({.options = inspection.options, .origins = inspection.origins},
                          inspection.missing, {}, {.elsewhere = elsewhere});
  };
  EXPECT_FALSE(asked({}, false).any());
  EXPECT_FALSE(asked({"run.device=cpu"}, false).any());
  EXPECT_TRUE(asked({"run.device=cuda"}, false).machine);
  EXPECT_FALSE(asked({"run.device=cuda"}, true).any());
  EXPECT_TRUE(asked({"dist.backend=nccl"}, false).machine);
  const std::string here = "train.init_from=" + folder.path().string();
  EXPECT_TRUE(asked({here}, false).weights);
  EXPECT_TRUE(asked({here}, true).weights);
  EXPECT_FALSE(asked({"train.init_from=/no/such/run"}, true).weights);
  // Text is looked at there when the other run's tokenizer is taken along.
  EXPECT_TRUE(asked({here}, false).text);
  EXPECT_FALSE(asked({here, "train.init_vocabulary=match"}, false).text);
  auto named = vocabulary();
  named.push_back(here);
  EXPECT_FALSE(asked(named, false).text);
}

TEST_F(PreflightTest, WeightsAreComparedBesideASlipInFirstWeights) {
  const auto asked = [&](const std::string& override_text) {
    const auto inspection = lint::inspect(config, {"train.init_from=" + folder.path().string(),
                                                   "train.freeze=[\"encoder.*\"]", override_text});
    EXPECT_FALSE(inspection.problems.empty());
    return engine_request({.options = inspection.options, .origins = inspection.origins},
                          inspection.problems, {}, {});
  };
  const auto request = asked("model.init=[\"* zerso\"]");
  EXPECT_TRUE(request.weights);
  const auto& options = request.experiment.options;
  EXPECT_TRUE(translation_of(options).model.init.empty()) << "no model is made with that entry";
  EXPECT_EQ(options.train.freeze, std::vector<std::string>{"encoder.*"});
  EXPECT_FALSE(asked("model.d_model=7").any());
}

TEST_F(PreflightTest, LooksForTheRunOfATeacher) {
  const std::string teacher = "loss.teacher=" + (folder / "teacher").string();
  folder.write("teacher/config.toml", "[task]\nname = \"masked_lm\"\n[train]\nmax_steps = 9000\n");
  const auto found = look({teacher});
  ASSERT_EQ(found.stops.size(), 1U);
  EXPECT_EQ(found.stops[0].key, "loss.teacher");
  EXPECT_TRUE(has(found.stops[0].what, "is a model of masked_lm")) << found.stops[0].what;
  folder.write("teacher/config.toml",
               "[task]\nname = \"translation\"\n[train]\nmax_steps = 9000\n");
  EXPECT_TRUE(look({teacher}).stops.empty());
}

}  // namespace
}  // namespace stretto::experiment
