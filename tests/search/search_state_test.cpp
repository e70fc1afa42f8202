#include "search/search_state.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "report/utf8.h"
#include "search/changes.h"
#include "search/explain.h"
#include "search/importance.h"
#include "search/load_search.h"
#include "search/search_files.h"
#include "search/search_html.h"
#include "search/search_view.h"
#include "tests/base/failure.h"
#include "tests/search/played_search.h"

namespace stretto::search {
namespace {

using stretto::testing::expect_in;
using stretto::testing::kHalving;
using stretto::testing::kHeadsGrid;
using stretto::testing::kLearningRate;
using stretto::testing::play;
using stretto::testing::played_loss;
using stretto::testing::SearchBench;

const std::string kWidth =
    "[[space]]\nkey = \"model.d_model\"\nname = \"numbers\"\nvalues = [64, 128]\n";

SearchPlan plan_of(const SearchBench& bench, const std::string& search = "max_trials = 8\n",
                   const std::string& rest = kHalving + kLearningRate + kWidth) {
  return load_search(bench.file(search, rest)).plan;
}

std::vector<JournalEntry> with_begin(const SearchPlan& plan, std::vector<JournalEntry> entries) {
  entries.insert(entries.begin(), SearchState::entry_of(plan, "begin"));
  return entries;
}

const std::string kConservative =
    "[method]\nname = \"asha\"\nmode = \"conservative\"\ndivisor = 2\n";
const std::string kMedianRule =
    "[method]\nname = \"random\"\n[method.stop]\nname = \"median\"\nmin_trials = 1\n";

TEST(SearchState, IsTheSameWhenItsJournalIsReplayedUpToAnyLine) {
  const SearchBench bench;
  for (const auto& method : {kHalving, kConservative, kMedianRule}) {
    const auto plan = plan_of(bench, "max_trials = 8\n", method + kLearningRate + kWidth);
    SearchState whole(plan);
    const auto entries = with_begin(plan, play(whole, played_loss));
    for (size_t size = 1; size <= entries.size(); ++size) {
      auto part = SearchState::replay({entries.begin(), entries.begin() + static_cast<long>(size)},
                                      "journal");
      // What was begun without a report is reported now, and then the search goes on.
      for (const Job& job : std::vector(part.running())) {
        const auto value = played_loss(part.trials()[static_cast<size_t>(job.trial)], job);
        part.report(job, {.until = job.until, .step = job.until, .value = value, .seconds = 1},
                    2.5);
      }
      play(part, played_loss);
      ASSERT_EQ(trials_jsonl(part), trials_jsonl(whole)) << "from line " << size << "\n" << method;
      ASSERT_EQ(explain(part), explain(whole)) << "from line " << size;
    }
  }
}

TEST(SearchState, KeepsItsBracketsAndRungsWhenItsBudgetIsRaised) {
  const SearchBench bench;
  const std::string standard = "[method]\nname = \"asha\"\nmode = \"standard\"\ndivisor = 2\n";
  for (const auto& method : {standard, kConservative}) {
    const auto with_trials = [&](const std::string& trials) {
      return plan_of(bench, "max_trials = " + trials + "\n", method + kLearningRate + kWidth);
    };
    SearchState state(with_trials("8"));
    play(state, played_loss);
    const auto before = state.scheduler().rungs();
    state.change(with_trials("14"));
    play(state, played_loss);
    const auto after = state.scheduler().rungs();
    ASSERT_EQ(after.size(), before.size()) << method;
    size_t first_results = 0;
    for (size_t i = 0; i < after.size(); ++i) {
      EXPECT_EQ(after[i].bracket, before[i].bracket);
      EXPECT_EQ(after[i].until, before[i].until);
      EXPECT_GE(after[i].competitors.size(), before[i].competitors.size());
      const bool is_first = i == 0 || after[i].bracket != after[i - 1].bracket;
      if (is_first) first_results += after[i].competitors.size();
    }
    EXPECT_EQ(first_results, 14u) << method;
    expect_in("14 of 14 trials begun, 0 without a result yet", explain(state));
  }
}

TEST(SearchState, RefusesAJournalThatDoesNotFollow) {
  const SearchBench bench;
  const auto plan = plan_of(bench);
  SearchState state(plan);
  const auto entries = with_begin(plan, play(state, played_loss));
  const auto refusal = [&](const std::function<void(std::vector<JournalEntry>&)>& damage) {
    auto copy = entries;
    damage(copy);
    const auto error =
        testing::failure(ExitCode::kBadData, [&] { SearchState::replay(copy, "journal"); });
    return std::string(error.what());
  };
  expect_in("journal:2: does not follow from the lines before it: the scheduler decides otherwise",
            refusal([](auto& e) { e[1]["until"] = 9; }));
  expect_in("journal:3: ", refusal([](auto& e) { e[2].erase("value"); }));
  expect_in("journal:4: ", refusal([](auto& e) { e.insert(e.begin() + 3, e[2]); }));
  expect_in("journal:2: ", refusal([](auto& e) { e[1]["point"].push_back("1"); }));
  expect_in("journal:1: it is of another version", refusal([](auto& e) { e[0]["version"] = 2; }));
  expect_in("journal:1: ", refusal([](auto& e) { e.erase(e.begin()); }));
  expect_in("journal:3: ", refusal([](auto& e) { e[2]["trial"] = -1; }));
  expect_in("journal:2: ", refusal([](auto& e) { e[1]["event"] = "unknown"; }));
  // The page adds them up.
  for (const int64_t step : {int64_t{-1}, INT64_MAX}) {
    expect_in("journal:3: ", refusal([&](auto& e) { e[2]["step"] = step; }));
  }
}

TEST(SearchState, HasTheUpdatesOfATrialThatItsConfigurationEndsEarly) {
  const SearchBench bench;
  SearchState state(plan_of(bench, "max_trials = 1\n"));
  const auto begun =
      state.next(state.plan().sampler().next({}, 0, [](const Point&) { return true; }));
  ASSERT_TRUE(begun);
  EXPECT_EQ(begun->job.until, 64);
  state.report(begun->job, {.until = 64, .step = 20, .value = 0.5}, 1);
  const auto json = trial_json(state, state.trials()[0]);
  EXPECT_EQ(json["updates"], 20);
  EXPECT_EQ(json["reports"].dump(), "[[20,0.5]]");
  EXPECT_EQ(json["state"], "finished");
  expect_in("after 20 updates", best_toml(state, 0, "space.toml"));
  expect_in("at 20 ", table_lines(state, 12, 80)[1]);
}

// Earlier releases kept values as the file has them.
TEST(SearchState, OfAnEarlierReleaseGoesOnWithThePathsThatItsFileMeans) {
  const SearchBench bench;
  bench.folder.write("more.src", "a\n");
  const auto plan = plan_of(bench, "max_trials = 4\npoints = [\"data.train_src=more.src\"]\n",
                            kHalving + kLearningRate +
                                "[[space]]\nkey = \"data.train_src\"\nname = \"categorical\"\n"
                                "values = [\"train.src\", \"more.src\"]\n");
  SearchState now(plan);
  auto entries = with_begin(plan, play(now, [](const Trial& trial, const Job&) {
                              return static_cast<double>(trial.id);
                            }));
  const auto as_before = [&](std::string text) {
    const std::string folder = (bench.folder / "").string();
    for (size_t at = 0; (at = text.find(folder, at)) != std::string::npos;) {
      text.erase(at, folder.size());
    }
    return text;
  };
  entries[0]["search"] = as_before(entries[0]["search"].get<std::string>());
  for (auto& entry : entries) {
    if (!entry.contains("point")) continue;
    entry["point"][1] = as_before(entry["point"][1].get<std::string>());
  }
  auto before = SearchState::replay(entries, "journal");
  EXPECT_EQ(before.plan().space.parameters[1].values,
            (std::vector<std::string>{"train.src", "more.src"}));
  EXPECT_NE(before.known_points(), now.known_points());
  before.make_values_absolute(plan.folder);
  EXPECT_EQ(forbidden_changes(before.plan(), plan), std::vector<std::string>{});
  EXPECT_EQ(before.known_points(), now.known_points());
}

TEST(SearchState, KeepsWhichPointsOfItsGridARuleRefuses) {
  const SearchBench bench;
  const auto plan = plan_of(bench, "", kHeadsGrid);
  const auto entries = with_begin(plan, {});
  const auto state = SearchState::replay(entries, "journal");
  EXPECT_TRUE(state.plan().refused == plan.refused);
  EXPECT_EQ(state.plan().refused.count, 3u);
  const auto text = explain(state);
  expect_in("0 of 3 points begun", text);
  expect_in("\n" + plan.refused_text() + "\n", text);
  expect_in("0 of 3 points begun · 3 refused · 0 train", table_lines(state, 12, 100)[0]);
  expect_in("of 3 points, 3 refused",
            render_search_html({.state = state, .curves = {}, .title = "x", .status = "running"}));
  const auto grid = search_json(state)["grid"];
  EXPECT_EQ(grid["points"], 6);
  EXPECT_EQ(grid["looked_at"], 6);
  EXPECT_EQ(grid["refused"], 3);
  EXPECT_EQ(grid["first_refused"].get<std::string>(), plan.refused.first);
  EXPECT_EQ(grid["why"].get<std::string>(), plan.refused.why);
  EXPECT_FALSE(search_json(SearchState(plan_of(bench))).contains("grid"));
}

TEST(SearchState, OfAnEarlierReleaseKnowsNoRefusedPoints) {
  const SearchBench bench;
  auto entries = with_begin(plan_of(bench, "", kHeadsGrid), {});
  entries[0].erase("refused");
  const auto state = SearchState::replay(entries, "journal");
  EXPECT_EQ(state.plan().refused_text(), "");
  EXPECT_EQ(state.plan().budget_text(), "6 points");
  EXPECT_EQ(search_json(state)["grid"]["looked_at"], 0);
}

TEST(SearchState, RefusesMoreRefusedPointsThanThereAre) {
  const SearchBench bench;
  const auto entries = with_begin(plan_of(bench, "", kHeadsGrid), {});
  for (const char* key : {"count", "looked_at"}) {
    auto damaged = entries;
    damaged[0]["refused"][key] = 7;
    const auto error =
        testing::failure(ExitCode::kBadData, [&] { SearchState::replay(damaged, "journal"); });
    expect_in("journal:1: ", error.what());
  }
}

// A report has the time of all trainings of its trial.
TEST(SearchState, HasTheSecondsOfTheLastReport) {
  const SearchBench bench;
  SearchState state(plan_of(bench, "max_trials = 2\n"));
  const auto sampler = state.plan().sampler();
  const auto always = [](const Point&) { return true; };
  double seconds = 0;
  while (const auto begun = state.next(sampler.next(state.known_points(), 0, always))) {
    const Job& job = begun->job;
    seconds = job.trial == 0 ? 2.0 + static_cast<double>(job.until) : 1.0;
    state.report(
        job, {.until = job.until, .step = job.until, .value = job.trial, .seconds = seconds}, 1);
  }
  ASSERT_EQ(state.trials()[0].reports.size(), 2u);
  EXPECT_EQ(trial_json(state, state.trials()[0])["seconds"], 66.0);
}

TEST(SearchState, RanksByMoreWhereMoreIsBetter) {
  const SearchBench bench;
  SearchState state(plan_of(bench, "metric = \"bleu\"\nmax_trials = 4\n"));
  play(state, [](const Trial& trial, const Job&) { return 10.0 + static_cast<double>(trial.id); });
  EXPECT_EQ(state.best(), 3);
  const auto text = explain(state);
  expect_in("more is better", text);
  expect_in("---- cut-off 12.0000", text);
}

TEST(SearchState, TakesTheBestOfThoseThatWereTrainedFurthest) {
  const SearchBench bench;
  SearchState state(plan_of(bench));
  // Trial 0 is the best until it is trained further.
  play(state, [](const Trial& trial, const Job& job) {
    return trial.id == 0 && job.until == 8 ? 0.001 : static_cast<double>(trial.id + 1);
  });
  ASSERT_TRUE(state.best());
  EXPECT_EQ(state.trials()[static_cast<size_t>(*state.best())].reports.back().until, 64);
}

TEST(SearchState, SaysWhatBecameOfEachTrial) {
  const SearchBench bench;
  SearchState state(plan_of(bench));
  play(state, [](const Trial& trial, const Job& job) {
    return trial.id == 1 ? std::nullopt : played_loss(trial, job);
  });
  EXPECT_EQ(state.state_of(1), TrialState::kFailed);
  EXPECT_EQ(state.state_of(*state.best()), TrialState::kFinished);
  const auto json = search_json(state);
  EXPECT_EQ(json["best"], *state.best());
  EXPECT_EQ(json["trials"].size(), 8u);
  EXPECT_EQ(json["trials"][1]["error"], "it <diverged>");
  EXPECT_TRUE(json["trials"][0]["point"]["model.d_model"].is_number_integer());
  EXPECT_TRUE(json["trials"][0]["point"]["optim.lr"].is_number_float());
}

TEST(Explain, NamesCompetitorsAndCutOffOfEachRung) {
  const SearchBench bench;
  SearchState state(plan_of(bench, "max_trials = 4\n"));
  play(state, [](const Trial& trial, const Job&) { return 4.0 - static_cast<double>(trial.id); });
  std::string rows;
  const char* fates[] = {"went on    ", "went on    ", "went on    ", "stopped    "};
  for (size_t i = 0; i < 4; ++i) {
    const auto& trial = state.trials()[3 - i];
    rows += "    trial " + std::to_string(trial.id) + "     " + std::to_string(i + 1) +
            ".0000      " + fates[i] + state.plan().space.text(trial.point) + "\n";
    if (i == 1) rows += "    ---- cut-off 2.0000\n";
  }
  const auto text = explain(state);
  EXPECT_EQ(text.substr(0, text.find("  rung at 32")),
            "asha by nll, less is better; 4 of 4 trials begun, 0 without a result yet\n\n"
            "bracket 0: 4 trials, rungs at 16, 32, 64 updates\n"
            "  rung at 16 updates: 4 results, the best 2 of 4 go on (one of 2)\n" +
                rows);
}

// Each trial has its least loss before its end, where it has what the log and best.toml say.
TEST(Explain, HasTheLastValueInTheLastRungOfMedianStopping) {
  const SearchBench bench;
  SearchState state(plan_of(bench, "max_trials = 4\n", kMedianRule + kLearningRate));
  play(state, [](const Trial& trial, const Job& job) {
    return (job.until < 64 ? 1.0 : 2.0) - 0.1 * static_cast<double>(trial.id);
  });
  ASSERT_EQ(state.best(), 3);
  EXPECT_EQ(value_text(state.plan(), state.trials()[3].reports.back().value), "nll 1.7000");
  const auto text = explain(state);
  const auto last = text.substr(text.find("  rung at 64 updates"));
  expect_in("    trial 3     1.7000      the best", last);
  expect_in("    trial 0     2.0000 ", last);
}

TEST(Importance, FindsTheKeyThatMattered) {
  const SearchBench bench;
  SearchState state(plan_of(bench, "max_trials = 40\n"));
  play(state, [](const Trial& trial, const Job&) {
    return std::log10(std::stod(*trial.point[0]));  // lower rates are better; the width is nothing
  });
  const auto all = importances(state);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].parameter, 0u);
  EXPECT_GT(*all[0].variance_share, 0.8);
  EXPECT_NEAR(*all[0].rank_correlation, 1, 1e-9);
  EXPECT_LT(*all[1].variance_share, 0.2);
  EXPECT_EQ(all[0].trials, 40);
}

// By hand: groups {1, 2} and {5, 6}: mean 3.5, between 2 * 4 + 2 * 4 = 16, within 0.5 + 0.5 = 1,
// epsilon squared (16 - 1 * 1 / 2) / 17.
TEST(Importance, EpsilonSquaredOfAHandWorkedCase) {
  EXPECT_NEAR(*epsilon_squared({{1, 2}, {5, 6}}), 15.5 / 17, 1e-12);
  EXPECT_EQ(epsilon_squared({{1, 2}, {1, 2}}), 0.0);
  EXPECT_FALSE(epsilon_squared({{1, 2, 3}}));
  EXPECT_FALSE(epsilon_squared({{1}, {2}}));
  EXPECT_FALSE(epsilon_squared({{1, 1}, {1}}));
}

// With ties, ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: covariance 4.5, variances 4.5 and 5.
TEST(Importance, SpearmanOfAHandWorkedCase) {
  EXPECT_NEAR(*spearman({1, 2, 2, 3}, {10, 20, 30, 40}), 4.5 / std::sqrt(4.5 * 5), 1e-12);
  EXPECT_NEAR(*spearman({1, 2, 3}, {3, 2, 1}), -1, 1e-12);
  EXPECT_FALSE(spearman({1, 2}, {1, 2}));
  EXPECT_FALSE(spearman({1, 1, 1}, {1, 2, 3}));
}

TEST(SearchHtml, ShowsAllTrialsAndLoadsNothing) {
  const SearchBench bench;
  SearchState state(plan_of(bench));
  play(state, [](const Trial& trial, const Job& job) {
    return trial.id == 1 ? std::nullopt : played_loss(trial, job);
  });
  TrialCurves curves;
  for (const auto& trial : state.trials()) {
    for (const auto& report : trial.reports) {
      if (report.value) {
        curves[trial.id].push_back({static_cast<double>(report.until), *report.value});
      }
    }
  }
  const auto page =
      render_search_html({.state = state, .curves = curves, .title = "<b>&", .status = "finished"});
  expect_in("default-src 'none'", page);
  expect_in("<h1>&lt;b&gt;&amp;</h1>", page);
  expect_in("it &lt;diverged&gt;", page);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("http://"), std::string::npos);
  EXPECT_EQ(page.find("https://"), std::string::npos);
  EXPECT_EQ(page.find("nan"), std::string::npos);
  size_t lines = 0;
  for (size_t at = 0; (at = page.find("<path class=\"ranked", at)) != std::string::npos; ++at)
    ++lines;
  EXPECT_EQ(lines, 14u) << "seven trials have a result, in two pictures";
  // A trial that failed has what its process printed, the others a report.
  expect_in("<td><a href=\"trials/1/output.txt\">1</a></td><td>failed</td>", page);
  expect_in("<td><a href=\"trials/0/report.html\">0</a></td>", page);
  EXPECT_EQ(page.find("trials/1/report.html"), std::string::npos);
  expect_in("ranked winner", page);
  expect_in("Rank correlation", page);
}

TEST(SearchHtml, ShowsASearchThatHasNothingYet) {
  const SearchBench bench;
  const SearchState state(plan_of(bench));
  const auto page = render_search_html(
      {.state = state, .curves = {}, .title = "x", .status = "running", .refresh_seconds = 10});
  expect_in("http-equiv=\"refresh\" content=\"10\"", page);
  expect_in("Nothing measured yet", page);
}

TEST(SearchView, PutsTrainingTrialsAboveTheBestOfTheOthers) {
  const SearchBench bench;
  SearchState state(plan_of(bench));
  for (const double loss : {0.5, 0.4}) {
    const auto begun = state.next(
        state.plan().sampler().next(state.known_points(), 0, [](const Point&) { return true; }));
    const int64_t until = begun->job.until;
    state.report(begun->job, {.until = until, .step = until, .value = loss}, 1);
  }
  state.next(std::nullopt);
  const auto lines = table_lines(state, 12, 60);
  ASSERT_EQ(lines.size(), 3u);
  expect_in("2 of 8 trials begun · 1 train · nll", lines[0]);
  expect_in("* 1    until 16", lines[1]);
  expect_in("  0    waiting at 8", lines[2]);
  for (const auto& line : table_lines(state, 12, 30)) {
    EXPECT_LE(report::count_code_points(line), 30u);
  }
  EXPECT_EQ(table_lines(state, 1, 60).size(), 2u);
}

TEST(SearchFiles, ShortenKeysToTheirLastName) {
  const SearchBench bench;
  const auto plan = plan_of(bench);
  EXPECT_EQ(short_point(plan.space, {"0.001", "64"}), "lr=0.001 d_model=64");
}

}  // namespace
}  // namespace stretto::search
