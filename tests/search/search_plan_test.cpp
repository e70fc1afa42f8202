#include "search/search_plan.h"

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <filesystem>

#include "config/describe.h"
#include "search/load_search.h"
#include "tests/base/failure.h"
#include "tests/search/bench.h"

namespace stretto::search {
namespace {

using stretto::testing::block;
using stretto::testing::expect_in;
using stretto::testing::kHeadsGrid;
using stretto::testing::kLearningRate;
using stretto::testing::SearchBench;

std::string refusal(const SearchBench& bench, const std::string& search, const std::string& rest) {
  const std::string path = bench.file(search, rest);
  return testing::failure(ExitCode::kUsage, [&] { load_search(path); }).message();
}

TEST(SearchPlan, HasWhatTheFileAndItsConfigurationSay) {
  const SearchBench bench;
  const auto plan =
      load_search(bench.file("max_trials = 5\nseed = 7\n",
                             kLearningRate + block("key = \"model.d_model\"\nname = \"numbers\"\n"
                                                   "values = [64, 128]")))
          .plan;
  EXPECT_EQ(plan.metric, "nll");
  EXPECT_FALSE(plan.higher_is_better);
  EXPECT_EQ(plan.max_steps, 64);
  ASSERT_EQ(plan.space.parameters.size(), 2u);
  EXPECT_EQ(plan.space.parameters[0].kind, Parameter::Kind::kLog);
  EXPECT_EQ(plan.space.parameters[1].values, (std::vector<std::string>{"64", "128"}));
  EXPECT_EQ(plan.options.search.config, bench.config);
}

TEST(SearchPlan, ReadsBackFromWhatTheJournalKeeps) {
  const SearchBench bench;
  const auto plan =
      load_search(bench.file("points = [\"optim.lr=1e-3\"]\n",
                             "[method]\nname = \"random\"\n[method.stop]\nname = \"median\"\n" +
                                 kLearningRate))
          .plan;
  const auto again = stored_plan(plan.toml, "journal");
  EXPECT_EQ(again.toml, plan.toml);
  EXPECT_EQ(again.space.draw(1, 2, 3), plan.space.draw(1, 2, 3));
  EXPECT_EQ(again.enqueued, plan.enqueued);
  ASSERT_TRUE(again.options.method.is<RandomOptions>());
  EXPECT_EQ(again.options.method.as<RandomOptions>().stop.name, "median");
}

TEST(SearchPlan, KnowsScoresByTheirOtherNames) {
  const SearchBench bench;
  EXPECT_EQ(load_search(bench.file("metric = \"valid.nll\"\n", kLearningRate)).plan.metric, "nll");
  const auto bleu = load_search(bench.file("metric = \"sacrebleu\"\n", kLearningRate)).plan;
  EXPECT_EQ(bleu.metric, "bleu");
  EXPECT_TRUE(bleu.higher_is_better);
  const auto worst =
      load_search(bench.file("metric = \"bleu\"\ngoal = \"minimize\"\n", kLearningRate)).plan;
  EXPECT_FALSE(worst.higher_is_better);
  expect_in("no score `blue`; it has nll, bleu\n  did you mean `bleu`?",
            refusal(bench, "metric = \"blue\"\n", kLearningRate));
}

TEST(SearchPlan, AnswersAKeyThatDoesNotExistAsCheckDoes) {
  const SearchBench bench;
  const auto message =
      refusal(bench, "", block("key = \"optim.learning_rate\"\nname = \"double\"\nmin=0.1\nmax=1"));
  expect_in("space.toml:4:", message);
  expect_in("`space.0.key`: unknown key `optim.learning_rate`\n  did you mean `optim.lr`?",
            message);
  expect_in("did you mean `model.encoder.num_layers`?",
            refusal(bench, "",
                    block("key = \"model.encoder.layers\"\nname = \"int\"\nmin = 1\nmax = 2")));
}

TEST(SearchPlan, RefusesAKeyThatHasAValueInIt) {
  const SearchBench bench;
  expect_in("`run.name=x optim.lr` is no key",
            refusal(bench, "",
                    block("key = \"run.name=x optim.lr\"\nname = \"double\"\nmin=0.1\nmax=1")));
}

TEST(SearchPlan, RefusesValuesOutOfTheKeysRangeOrType) {
  const SearchBench bench;
  expect_in(
      "`model.dropout` must be in [0, 1), got 1",
      refusal(bench, "", block("key = \"model.dropout\"\nname = \"numbers\"\nvalues = [0.1, 1]")));
  expect_in(
      "takes whole numbers\n  name = \"int\"",
      refusal(bench, "", block("key = \"model.d_model\"\nname = \"double\"\nmin = 64\nmax = 128")));
  expect_in("`optim.name` must be one of",
            refusal(bench, "",
                    block("key = \"optim.name\"\nname = \"categorical\"\nvalues = [\"adamm\"]")));
}

TEST(SearchPlan, BlamesTheValuesOfABlockForAValueThatItsKeyDoesNotTake) {
  const SearchBench bench;
  const auto message = refusal(bench, "",
                               block("key = \"model.d_model\"\nname = \"categorical\"\n"
                                     "values = [\"64\", \"abc\", \"[32\"]"));
  expect_in(
      "space.toml:6:1: `space.0.values`: `model.d_model` must be an integer, got the string "
      "\"abc\"\n  \"abc\" is not a whole number",
      message);
  expect_in("space.toml:6:1: `space.0.values`: `[32`: is no TOML value", message);
  EXPECT_EQ(message.find("space.0.key"), std::string::npos) << message;
}

TEST(SearchPlan, BlamesEachBoundThatItsKeyDoesNotTake) {
  const SearchBench bench;
  const auto message = refusal(
      bench, "", block("key = \"model.dropout\"\nname = \"double\"\nmin = -0.5\nmax = 1.5"));
  expect_in("space.toml:6:1: `space.0.min`: `model.dropout` must be in [0, 1), got -0.5", message);
  expect_in("space.toml:7:1: `space.0.max`: `model.dropout` must be in [0, 1), got 1.5", message);
  expect_in(
      "space.toml:6:1: `space.0.min`: `model.d_model` must be in [2, 65536], got 1",
      refusal(bench, "", block("key = \"model.d_model\"\nname = \"int\"\nmin = 1\nmax = 64")));
  expect_in(
      "space.toml:7:1: `space.0.max`: `model.dropout` must be in [0, 1), got 2",
      refusal(bench, "", block("key = \"model.dropout\"\nname = \"log\"\nmin = 0.1\nmax = 2")));
}

TEST(SearchPlan, BlamesTheNameOfABlockThatDrawsFractionsOfAWholeNumber) {
  const SearchBench bench;
  expect_in(
      "space.toml:5:1: `space.0.name`: `model.d_model` takes whole numbers",
      refusal(bench, "", block("key = \"model.d_model\"\nname = \"double\"\nmin = 64\nmax = 128")));
}

TEST(SearchPlan, TakesAKeyOfAPartWithTheConditionThatChoosesIt) {
  const SearchBench bench;
  const std::string parts = block(
      "key = \"model.encoder.name\"\nname = \"categorical\"\n"
      "values = [\"transformer\", \"lstm\"]");
  const std::string cells =
      "key = \"model.encoder.bidirectional\"\nname = \"categorical\"\nvalues = [\"true\", "
      "\"false\"]\n";
  EXPECT_NO_THROW(
      load_search(bench.file("", parts + block(cells + "when = [\"model.encoder.name=lstm\"]"))));
  expect_in("`model.encoder.bidirectional` is a key of lstm",
            refusal(bench, "", parts + block(cells)));
}

TEST(SearchPlan, RefusesASpaceOfNoPoints) {
  const SearchBench bench;
  expect_in("the space has no points: there is no block [[space]]", refusal(bench, "", ""));
  expect_in("so that the space has no points",
            refusal(bench, "", block("key = \"optim.name\"\nname = \"categorical\"\nvalues = []")));
  expect_in("is less than min, so that the space has no points",
            refusal(bench, "", block("key = \"optim.lr\"\nname = \"double\"\nmin = 1\nmax = 0.5")));
  expect_in("leaves no whole number",
            refusal(bench, "",
                    block("key = \"model.d_model\"\nname = \"log\"\ninteger = true\nmin = "
                          "64.2\nmax = 64.8")));
  // Each value by itself is sound, but every point breaks the rule across keys.
  const auto message = refusal(
      bench, "", block("key = \"model.encoder.num_heads\"\nname = \"numbers\"\nvalues = [5, 7]"));
  expect_in("none of those that were looked at makes a sound configuration", message);
  expect_in("num_heads", message);
}

TEST(SearchPlan, RefusesWhatTheSearchSetsItself) {
  const SearchBench bench;
  for (const char* key : {"train.max_steps", "run.threads"}) {
    expect_in("`space.0.key`",
              refusal(bench, "",
                      block(std::string("key = \"") + key + "\"\nname = \"int\"\nmin=5\nmax=6")));
  }
}

// The same of a search that such a key was part of before: it goes on.
TEST(SearchPlan, RefusesKeysThatEndTrialsBeforeTheirLengthWhereASearchBegins) {
  const SearchBench bench;
  for (const std::string key : {"train.max_epochs", "train.max_hours"}) {
    const std::string space = block("key = \"" + key + "\"\nname = \"int\"\nmin=5\nmax=6");
    expect_in("`space.0.key`: ends trials before their length, by which trials are compared",
              refusal(bench, "", space));
    const auto before = load_search(bench.file("", space), {.begins = false}).plan;
    EXPECT_EQ(stored_plan(before.toml, "journal").space.parameters[0].key, key);
  }
}

TEST(SearchPlan, RefusesAKeyThatStandsTwiceUnlessConditionsKeepThemApart) {
  const SearchBench bench;
  expect_in("`optim.lr` is there already", refusal(bench, "", kLearningRate + kLearningRate));
  const std::string names =
      block("key = \"optim.name\"\nname = \"categorical\"\nvalues = [\"adam\", \"sgd\"]");
  const auto plan =
      load_search(bench.file("", names + kLearningRate + "when = [\"optim.name=adam\"]\n" +
                                     kLearningRate + "when = [\"optim.name=sgd\"]\n"))
          .plan;
  EXPECT_EQ(plan.space.parameters.size(), 3u);
}

TEST(SearchPlan, RefusesConditionsThatNameNothing) {
  const SearchBench bench;
  expect_in("`optim.nam` is no hyperparameter above this one",
            refusal(bench, "", kLearningRate + "when = [\"optim.nam=adam\"]\n"));
  expect_in("is no condition", refusal(bench, "", kLearningRate + "when = [\"adam\"]\n"));
  const std::string names =
      block("key = \"optim.name\"\nname = \"categorical\"\nvalues = [\"adam\", \"sgd\"]");
  expect_in(
      "`optim.name=adm` never holds: `optim.name` has no such value here\n  did you mean `adam`?",
      refusal(bench, "", names + kLearningRate + "when = [\"optim.name=adm\"]\n"));
}

TEST(SearchPlan, RefusesAGridWithoutCounts) {
  const SearchBench bench;
  expect_in("`space.0.count`", refusal(bench, "", "[method]\nname = \"grid\"\n" + kLearningRate));
  EXPECT_NO_THROW(
      load_search(bench.file("", "[method]\nname = \"grid\"\n" + kLearningRate + "count = 3\n")));
}

TEST(SearchPlan, HasAllPointsOfAGridWhereMaxTrialsIsNotGiven) {
  const SearchBench bench;
  const std::string grid = "[method]\nname = \"grid\"\n" + kLearningRate + "count = 40\n";
  const auto whole = load_search(bench.file("", grid)).plan;
  EXPECT_EQ(whole.grid_points, 40u);
  EXPECT_EQ(whole.budget(), kAllPoints);
  EXPECT_EQ(whole.budget_text(), "40 points");
  EXPECT_EQ(whole.cut_text(), "");
  EXPECT_EQ(stored_plan(whole.toml, "journal").budget(), kAllPoints);
  const auto cut = load_search(bench.file("max_trials = 16\n", grid)).plan;
  EXPECT_EQ(cut.budget(), 16);
  EXPECT_EQ(cut.cut_text(), "search.max_trials: the grid has 40 points, of which 16 are tried");
  EXPECT_EQ(load_search(bench.file("max_trials = 100\n", grid)).plan.cut_text(), "");
}

TEST(SearchPlan, SaysHowManyPointsOfAGridARuleRefusesAndWhy) {
  const SearchBench bench;
  const auto plan = load_search(bench.file("", kHeadsGrid)).plan;
  EXPECT_EQ(plan.grid_points, 6u);
  EXPECT_EQ(plan.refused.looked_at, 6u);
  EXPECT_EQ(plan.refused.count, 3u);
  EXPECT_EQ(plan.points_left(), 3u);
  EXPECT_EQ(plan.budget_text(), "3 points");
  EXPECT_EQ(plan.refused_text(),
            "space: 3 of 6 points of the grid can be tried; 3 are refused, the first is "
            "`model.d_model=64 model.encoder.num_heads=5`: `model.encoder.num_heads=5`: "
            "`model.encoder.num_heads`: 5 heads do not divide model.d_model = 64");
  EXPECT_EQ(plan.cut_text(), "");
}

TEST(SearchPlan, CutsAGridByThePointsThatNoRuleRefuses) {
  const SearchBench bench;
  EXPECT_EQ(load_search(bench.file("max_trials = 4\n", kHeadsGrid)).plan.cut_text(), "");
  EXPECT_EQ(load_search(bench.file("max_trials = 2\n", kHeadsGrid)).plan.cut_text(),
            "search.max_trials: the grid has 3 points that can be tried, of which 2 are tried");
}

TEST(SearchPlan, SaysNothingOfRefusedPointsWhereNoneIs) {
  const SearchBench bench;
  const auto grid =
      load_search(bench.file("", "[method]\nname = \"grid\"\n" + kLearningRate + "count = 3\n"))
          .plan;
  EXPECT_EQ(grid.refused.looked_at, 3u);
  EXPECT_EQ(grid.refused_text(), "");
  EXPECT_EQ(load_search(bench.file("", kLearningRate)).plan.refused, RefusedPoints{});
}

TEST(SearchPlan, LooksAtTheFirstPointsOfALargeGridAlone) {
  SearchPlan plan;
  plan.grid_points = 5000;
  plan.refused = {
      .looked_at = SearchPlan::kMostLookedAt, .count = 1, .first = "a.b=1", .why = "no"};
  EXPECT_EQ(plan.refused_text(),
            "space: of the first 1,000 points of the grid, 1 is refused, `a.b=1`: no");
  EXPECT_EQ(plan.points_left(), 5000u);
}

TEST(SearchPlan, HasSixteenTrialsOfAnotherMethodWhereMaxTrialsIsNotGiven) {
  const SearchBench bench;
  const auto plan = load_search(bench.file("", kLearningRate)).plan;
  EXPECT_EQ(plan.budget(), 16);
  EXPECT_EQ(plan.grid_points, 0u);
  expect_in("max_trials = 16\n", plan.toml);
}

/// While it lives, the test's working directory is another folder.
class InFolder {
 public:
  explicit InFolder(const std::filesystem::path& folder) { std::filesystem::current_path(folder); }
  ~InFolder() { std::filesystem::current_path(before_); }
  InFolder(const InFolder&) = delete;
  InFolder& operator=(const InFolder&) = delete;

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
};

TEST(SearchPlan, HasPathsBesideItsFileWhereverItIsReadFrom) {
  const SearchBench bench;
  bench.folder.write("more/train.src", "a\n");
  bench.folder.write("other.src", "a\n");
  const std::string path = bench.file(
      "overrides = ['data.valid_src=[\"other.src\"]', 'data={cache_dir=\"cache\"}', "
      "\"report.every=3\"]\npoints = [\"data.train_src=more/train.src\"]\n",
      block("key = \"data.train_src\"\nname = \"categorical\"\n"
            "values = [\"train.src\", \"more/train.src\"]") +
          kLearningRate + "when = [\"data.train_src=./train.src\"]\n");
  const auto in = [&](const std::string& name) { return (bench.folder / name).string(); };
  const InFolder elsewhere("/");
  const auto plan = load_search(path).plan;
  EXPECT_EQ(plan.options.search.overrides,
            (std::vector<std::string>{"data.valid_src=[\"" + in("other.src") + "\"]",
                                      "data={cache_dir=\"cache\"}", "data.cache_dir=" + in("cache"),
                                      "report.every=3"}));
  EXPECT_EQ(plan.space.parameters[0].values,
            (std::vector<std::string>{in("train.src"), in("more/train.src")}));
  EXPECT_EQ(plan.space.parameters[1].when[0].values, (std::vector<std::string>{in("train.src")}));
  EXPECT_EQ(plan.enqueued[0][0], in("more/train.src"));
  const auto trial = experiment_of(plan, {in("more/train.src"), std::nullopt});
  expect_in("train_src = [\"" + in("more/train.src") + "\"]", trial.resolved_toml);
  expect_in("cache_dir = \"" + in("cache") + "\"", trial.resolved_toml);
  const InFolder beside(bench.folder.path());
  EXPECT_EQ(load_search("space.toml").plan.toml, plan.toml);
}

TEST(SearchPlan, HasPathsBesideTheIncludedFileThatStatesThem) {
  const SearchBench bench;
  bench.folder.write("parts/train.src", "a\n");
  bench.folder.write("parts/texts.toml", block("key = \"data.train_src\"\nname = \"categorical\"\n"
                                               "values = [\"train.src\", \"../train.src\"]"));
  const auto path = bench.folder.write(
      "space.toml", "include = \"parts/texts.toml\"\n[search]\nconfig = \"my.toml\"\n");
  EXPECT_EQ(load_search(path).plan.space.parameters[0].values,
            (std::vector<std::string>{(bench.folder / "parts/train.src").string(),
                                      (bench.folder / "train.src").string()}));
}

/// Counts how often a file is opened while it lives.
class OpenedFile {
 public:
  explicit OpenedFile(const std::string& path) : events_(::inotify_init1(IN_NONBLOCK)) {
    // Events of one kind in a row are one: what closes the file stands between two that open it.
    watch_ = ::inotify_add_watch(events_, path.c_str(), IN_OPEN | IN_CLOSE);
  }
  ~OpenedFile() {
    if (events_ >= 0) ::close(events_);
  }
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;

  bool is_watched() const { return watch_ >= 0; }
  int times() const {
    alignas(inotify_event) std::array<char, 4096> bytes{};
    int times = 0;
    for (ssize_t size = 0; (size = ::read(events_, bytes.data(), bytes.size())) > 0;) {
      // The events of a watch on a file itself, not on its folder, carry no name.
      for (ssize_t at = 0; at < size; at += static_cast<ssize_t>(sizeof(inotify_event))) {
        const auto* event = reinterpret_cast<const inotify_event*>(bytes.data() + at);
        times += (event->mask & IN_OPEN) != 0 ? 1 : 0;
      }
    }
    return times;
  }

 private:
  int events_, watch_ = -1;
};

TEST(SearchPlan, ReadsItsFilesOnce) {
  const SearchBench bench;
  const auto part = bench.folder.write("parts/rate.toml", kLearningRate);
  const auto path = bench.folder.write(
      "space.toml", "include = \"parts/rate.toml\"\n[search]\nconfig = \"my.toml\"\n");
  const OpenedFile file(path), included(part);
  if (!file.is_watched() || !included.is_watched()) GTEST_SKIP() << "no inotify here";
  load_search(path);
  EXPECT_EQ(file.times(), 1);
  EXPECT_EQ(included.times(), 1);
}

TEST(SearchPlan, HasPointsWithPathsInAFolderWithSpaces) {
  const SearchBench bench;
  for (const char* name : {"my texts/a.src", "my texts/b.src"}) bench.folder.write(name, "a\n");
  const auto path = bench.folder.write(
      "my texts/space.toml",
      "[search]\nconfig = \"../my.toml\"\n"
      "points = [\"data.train_src=b.src\", 'data.train_src=[\"a.src\",\"b.src\"]']\n" +
          block("key = \"data.train_src\"\nname = \"categorical\"\n"
                "values = [\"a.src\", \"b.src\", '[\"a.src\", \"b.src\"]']"));
  const auto plan = load_search(path).plan;
  EXPECT_EQ(plan.enqueued[0][0], (bench.folder / "my texts/b.src").string());
  EXPECT_EQ(plan.enqueued[1][0], plan.space.parameters[0].values[2]);
  EXPECT_EQ(stored_plan(plan.toml, "journal").enqueued, plan.enqueued);
}

TEST(SearchPlan, RefusesPointsOutsideTheSpace) {
  const SearchBench bench;
  expect_in("`optim.lr=5` is not in the space",
            refusal(bench, "points = [\"optim.lr=5\"]\n", kLearningRate));
  expect_in("did you mean `optim.lr`?",
            refusal(bench, "points = [\"optim.rl=1e-3\"]\n", kLearningRate));
}

TEST(SearchPlan, RefusesPointsThatContradictThemselves) {
  const SearchBench bench;
  expect_in("has `optim.lr` twice",
            refusal(bench, "points = [\"optim.lr=1e-3 optim.lr=2e-3\"]\n", kLearningRate));
  const std::string names =
      block("key = \"optim.name\"\nname = \"categorical\"\nvalues = [\"adam\", \"sgd\"]");
  const std::string conditional = names + kLearningRate + "when = [\"optim.name=adam\"]\n";
  expect_in("search.points`: `optim.lr=0.001` is no part of this point",
            refusal(bench, "points = [\"optim.lr=1e-3 optim.name=sgd\"]\n", conditional));
  EXPECT_NO_THROW(load_search(bench.file("points = [\"optim.lr=1e-3\"]\n", conditional)));
}

// What was tried, and what conditions name, may be outside a space that became narrower.
TEST(SearchPlan, OfASearchThatGoesOnMayBeNarrowerThanItsPointsAndConditions) {
  const SearchBench bench;
  const std::string path =
      bench.file("points = [\"optim.lr=1e-4\", \"optim.lr=5e-3\"]\n",
                 block("key = \"optim.name\"\nname = \"categorical\"\nvalues = [\"adam\"]") +
                     "[[space]]\nkey = \"optim.lr\"\nname = \"log\"\nmin = 1e-3\nmax = 1e-2\n" +
                     block("key = \"optim.momentum\"\nname = \"double\"\nmin = 0.0\nmax = 0.9\n"
                           "when = [\"optim.name=sgd\"]"));
  testing::failure(ExitCode::kUsage, [&] { load_search(path); });
  testing::failure(ExitCode::kUsage, [&] { load_search(path, {.begins = false}); });
  const auto plan = load_search(path, {.begins = false, .used_points = 1}).plan;
  EXPECT_EQ(plan.enqueued[1][1], "0.005");
  EXPECT_EQ(stored_plan(plan.toml, "journal").enqueued, plan.enqueued);
}

TEST(SearchPlan, ReadsTheHostsThatItNames) {
  const SearchBench bench;
  bench.folder.write("hosts.txt", "node1 slots=4\nnode2 slots=1\n");
  const auto loaded =
      load_search(bench.file("hosts = \"hosts.txt\"\nslots_per_trial = 2\n", kLearningRate));
  ASSERT_EQ(loaded.hosts.size(), 2u);
  EXPECT_EQ(loaded.hosts[0].slots, 4);
  expect_in("names no host with room for a trial, which takes 8 slots",
            refusal(bench, "hosts = \"hosts.txt\"\nslots_per_trial = 8\n", kLearningRate));
  expect_in("names no host with room",
            refusal(bench, "hosts = \"hosts.txt\"\ngpus_per_trial = 1\n", kLearningRate));
  expect_in("search.slots`: is of this machine",
            refusal(bench, "hosts = \"hosts.txt\"\nslots = 2\n", kLearningRate));
  expect_in("no such file", refusal(bench, "hosts = \"host.txt\"\n", kLearningRate));
}

TEST(SearchPlan, NeedsALengthAndValidation) {
  const SearchBench bench;
  expect_in("has no train.max_steps",
            refusal(bench, "overrides = [\"train.max_steps=0\", \"train.max_epochs=2\"]\n",
                    kLearningRate));
  expect_in("it has train.max_epochs = 2",
            refusal(bench, "overrides = [\"train.max_steps=0\", \"train.max_epochs=2\"]\n",
                    kLearningRate));
  expect_in("line `schedule`",
            refusal(bench, "overrides = [\"train.max_steps=0\", \"train.max_epochs=2\"]\n",
                    kLearningRate));
  expect_in("has no validation text",
            refusal(bench, "overrides = [\"data.valid_src=[]\", \"data.valid_tgt=[]\"]\n",
                    kLearningRate));
}

TEST(SearchPlan, CallsOverridesWhatAProblemOfTheConfigurationCallsCommandLine) {
  const std::string sentence = "what is called command line here is search.overrides";
  const std::string overrides = "overrides = [\"optim.lr=-1\"]\n";
  expect_in(sentence, refusal(SearchBench(), overrides, kLearningRate));
  const SearchBench wrong("[optim]\nlr = -1\n");
  const auto message = refusal(wrong, "overrides = [\"report.every=3\"]\n", kLearningRate);
  expect_in("my.toml:", message);
  EXPECT_EQ(message.find(sentence), std::string::npos) << message;
}

TEST(SearchPlan, IsOneProblemWhereAConfigurationIsExpected) {
  const SearchBench bench;
  const std::string with_a_recipe = bench.file("", "");
  const auto problems = problems_as_configuration(with_a_recipe);
  ASSERT_EQ(problems.size(), 1u);
  expect_in("search file", problems[0].what);
  expect_in("stretto search " + with_a_recipe + " --dir DIR", problems[0].hint);
  const std::string spaces_alone = bench.folder.write("spaces.toml", kLearningRate);
  EXPECT_EQ(problems_as_configuration(spaces_alone).size(), 1u);
  EXPECT_TRUE(problems_as_configuration(bench.config).empty());
  const std::string section = bench.folder.write("other.toml", "[search]\nbeam_size = 4\n");
  EXPECT_TRUE(problems_as_configuration(section).empty());
  EXPECT_TRUE(problems_as_configuration(bench.folder.write("no.toml", "[[space")).empty());
  EXPECT_TRUE(problems_as_configuration(bench.folder / "nowhere.toml").empty());
}

TEST(SearchPlan, AConfigurationOfOneRunIsOneProblemWhereASearchFileIsExpected) {
  const SearchBench bench;
  const auto refused = [](const std::string& path) {
    return testing::failure(ExitCode::kUsage, [&] { load_search(path); }).message();
  };
  const std::string said =
      ": is a configuration of one run, and no search file\n  name it as search.config in a file "
      "of "
      "its own; `stretto search describe search` lists the keys";
  EXPECT_EQ(refused(bench.config), bench.config + said);
  const std::string including = bench.folder.write("more.toml", "include = \"my.toml\"\n");
  EXPECT_EQ(refused(including), including + said);
  EXPECT_TRUE(problems_as_search_file(bench.file("", "[data]\n")).empty());
  for (const char* text : {"[method]\nname = \"grid\"\n[data]\n", "[serach]\n", "[[space", ""}) {
    EXPECT_TRUE(problems_as_search_file(bench.folder.write("other.toml", text)).empty()) << text;
  }
  EXPECT_TRUE(problems_as_search_file(bench.folder / "nowhere.toml").empty());
}

TEST(SearchPlan, TellsOfMistypedKeysOfItsOwn) {
  const SearchBench bench;
  expect_in("did you mean `search.max_trials`?", refusal(bench, "n_trials = 3\n", kLearningRate));
  expect_in("perhaps you meant `search.metric`?",
            refusal(bench, "metrc = \"nll\"\n", kLearningRate));
  expect_in(
      "must be a list of strings",
      refusal(bench, "", block("key = \"model.d_model\"\nname = \"categorical\"\nvalues = [64]")));
}

TEST(SearchPlan, NamesTheCommandThatDescribesItsKeys) {
  const SearchBench bench;
  expect_in("; `stretto search describe space.log` lists the keys of log",
            refusal(bench, "", kLearningRate + "values = [1]\n"));
}

TEST(SearchPlan, DescribesItsKeys) {
  SearchFileOptions options;
  const auto text = config::describe(search_schema(options), "method.asha");
  expect_in("max_rungs", text);
}

}  // namespace
}  // namespace stretto::search
