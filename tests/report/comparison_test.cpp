#include "report/comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "families/question_answering/question_answering_display.h"
#include "families/translation/translation_display.h"
#include "report/comparison_charts.h"
#include "report/comparison_page.h"
#include "tests/report/markup.h"

namespace stretto::report {
namespace {

using testing::markup_error;

/// A run of translation whose updates have 100 tokens and take half a second.
ComparedRun run_of(const std::string& name, int64_t updates, double loss_at_end) {
  ComparedRun run{.name = name, .folder = "runs/" + name, .task = "translation", .status = "run"};
  run.display = tasks::translation_display({.label_smoothing = 0});
  run.machine = {{"processor", "P 1"}, {"threads", "2"}, {"host", "secret"}};
  run.keys = {{"optim.lr", "0.001"}, {"run.seed", "1"}};
  for (int64_t step = 1; step <= updates; ++step) {
    const double share = static_cast<double>(step) / static_cast<double>(updates);
    MetricsEvent event{.step = step, .epoch = 1, .event = "train"};
    event.loss = 9 - (9 - loss_at_end) * share;
    event.lr = 1e-3;
    event.grad_norm = 1;
    event.counts = {{"target_tokens", int64_t{100}}, {"tokens_per_second", 200.0}};
    event.seconds = static_cast<double>(step) / 2;
    run.events.push_back(event);
    if (step % 10 != 0) continue;
    event.event = "valid";
    event.counts.clear();
    event.scores = {{"bleu", 40 * share - loss_at_end}};
    run.events.push_back(event);
  }
  return run;
}

/// A run of another family: it shares the loss, tokens and throughput with translation.
ComparedRun answers_of(const std::string& name) {
  ComparedRun run = run_of(name, 20, 3);
  run.task = "question_answering";
  run.display = tasks::question_answering_display();
  for (MetricsEvent& event : run.events) {
    event.scores.clear();
    if (event.event == "train") {
      event.counts = {{"tokens", int64_t{50}}, {"tokens_per_second", 70.0}};
    } else {
      event.scores = {{"f1", 60.0}};
    }
  }
  run.keys = {{"optim.lr", "0.001"}, {"data.stride", "64"}, {"run.seed", "1"}};
  return run;
}

std::vector<std::string> titles(const ComparedCharts& charts) {
  std::vector<std::string> titles;
  for (const Chart& chart : charts.charts) titles.push_back(chart.title);
  return titles;
}

const Chart& chart_of(const ComparedCharts& charts, const std::string& title) {
  for (const Chart& chart : charts.charts) {
    if (chart.title == title) return chart;
  }
  ADD_FAILURE() << "no chart " << title;
  return charts.charts.at(0);
}

std::vector<ComparedCharts> charts_of(const Comparison& comparison) {
  return compared_charts(comparison, curves_of(comparison.runs));
}

TEST(Comparison, DrawsEachNumberOverUpdatesTokensAndTime) {
  const auto views = charts_of({{run_of("a", 40, 2), run_of("b", 80, 1)}});
  ASSERT_EQ(views.size(), 3U);
  EXPECT_EQ(views[0].over, "updates");
  EXPECT_EQ(views[1].over, "tokens");
  EXPECT_EQ(views[2].over, "time");
  const std::vector<std::string> expected{"Loss, training", "Loss, validation",
                                          "BLEU",           "Learning rate",
                                          "Gradient norm",  "Tokens per second"};
  for (const auto& view : views) EXPECT_EQ(titles(view), expected);
  const auto end_of = [&](size_t view, size_t run) {
    return chart_of(views[view], "Loss, training").series.at(run).points.back().x;
  };
  EXPECT_EQ(end_of(0, 0), 40);
  EXPECT_EQ(end_of(0, 1), 80);
  EXPECT_EQ(end_of(1, 0), 4000) << "100 tokens an update";
  EXPECT_EQ(end_of(1, 1), 8000);
  EXPECT_EQ(end_of(2, 0), 20) << "seconds";
  EXPECT_EQ(end_of(2, 1), 40);
  EXPECT_EQ(chart_of(views[1], "BLEU").series.at(1).points.at(0).x, 1000);
}

TEST(Comparison, UpdatesBetweenTwoEventsAreTakenForAsLargeAsTheseAre) {
  ComparedRun run = run_of("a", 30, 2);
  std::vector<MetricsEvent> events;  // at updates 1, 11 and 21, of 100, 300 and 300 tokens
  for (const int64_t step : {1, 11, 21}) {
    events.push_back({.step = step, .epoch = 1, .event = "train"});
    events.back().loss = 1;
    events.back().counts = {{"target_tokens", int64_t{step == 1 ? 100 : 300}}};
  }
  run.events = events;
  const auto views = charts_of({{run}});
  ASSERT_EQ(views.size(), 2U) << "no event tells the time";
  const auto& points = chart_of(views[1], "Loss, training").series.at(0).points;
  EXPECT_EQ(points.at(0).x, 100);
  EXPECT_EQ(points.at(1).x, 100 + 10 * 200);
  EXPECT_EQ(points.at(2).x, 100 + 10 * 200 + 10 * 300);
}

TEST(Comparison, LongRunsAreDrawnOverMinutesAndHours) {
  for (const auto& [seconds, unit] : std::vector<std::pair<double, std::string>>{
           {100, "seconds"}, {1000, "minutes"}, {100'000, "hours"}}) {
    Comparison comparison{{run_of("a", 20, 2), run_of("b", 20, 2)}};
    comparison.runs[0].events.back().seconds = seconds;
    EXPECT_EQ(charts_of(comparison).back().charts.front().x_unit, unit);
  }
}

TEST(Comparison, RunsOfDifferentFamiliesDrawWhatTheyShare) {
  const auto views = charts_of({{run_of("a", 20, 2), answers_of("b")}});
  ASSERT_EQ(views.size(), 3U);
  EXPECT_EQ(titles(views[0]),
            (std::vector<std::string>{"Loss, training", "Loss, validation", "Learning rate",
                                      "Gradient norm", "Tokens per second"}));
  EXPECT_EQ(chart_of(views[1], "Loss, training").series.at(0).points.back().x, 2000);
  EXPECT_EQ(chart_of(views[1], "Loss, training").series.at(1).points.back().x, 1000);
}

TEST(Comparison, ARunThatDoesNotKnowAMeasureIsNotDrawnOverIt) {
  Comparison comparison{{run_of("a", 20, 2), run_of("b", 20, 2), run_of("c", 20, 2)}};
  for (MetricsEvent& event : comparison.runs[1].events) event.seconds.reset();
  const auto views = charts_of(comparison);
  EXPECT_EQ(views.at(2).runs.at(0), (std::vector<size_t>{0, 2}));
  EXPECT_EQ(views.at(0).runs.at(0), (std::vector<size_t>{0, 1, 2}));
}

TEST(Comparison, ARunWithoutEventsStandsInTheTablesAlone) {
  Comparison comparison{{run_of("a", 20, 2), run_of("b", 20, 2), run_of("c", 20, 2)}};
  comparison.runs[2].events.clear();
  const std::string page = render_comparison(comparison);
  EXPECT_EQ(markup_error(page), "");
  EXPECT_EQ(charts_of(comparison).at(0).runs.at(0), (std::vector<size_t>{0, 1}));
  comparison.runs.resize(1);
  comparison.runs[0].events.clear();
  EXPECT_EQ(markup_error(render_comparison(comparison)), "");
  EXPECT_EQ(markup_error(render_comparison({})), "");
}

TEST(Comparison, EachRunHasItsOwnColourOrDashes) {
  std::vector<std::string> classes;
  for (size_t i = 0; i < kMostComparedRuns; ++i) {
    EXPECT_EQ(std::ranges::count(classes, class_of_run(i)), 0);
    classes.push_back(class_of_run(i));
  }
}

TEST(Comparison, OnlyKeysThatDifferAreListed) {
  ComparedRun a = run_of("a", 1, 1), b = run_of("b", 1, 1), c = answers_of("c");
  EXPECT_TRUE(key_differences({a, b}).empty());
  b.keys[0].second = "0.002";
  const auto differences = key_differences({a, b, c});
  ASSERT_EQ(differences.size(), 2U);
  EXPECT_EQ(differences[0].key, "optim.lr");
  EXPECT_EQ(differences[0].values,
            (std::vector<std::optional<std::string>>{"0.001", "0.002", "0.001"}));
  EXPECT_EQ(differences[1].key, "data.stride") << "behind the key that it follows in its run";
  EXPECT_EQ(differences[1].values,
            (std::vector<std::optional<std::string>>{std::nullopt, std::nullopt, "64"}));
}

TEST(Comparison, TheBestOfEachNumberIsThatOfItsDirection) {
  ComparedRun a = run_of("a", 40, 2), b = run_of("b", 40, 1);
  MetricsEvent before{.step = 0, .epoch = 0, .event = "valid"};
  before.loss = 0.001;  // before the first update, which is never the best
  a.events.insert(a.events.begin(), before);
  const std::vector<ComparedRun> runs{a, b};
  const auto numbers = best_numbers(runs, curves_of(runs));
  ASSERT_EQ(numbers.size(), 2U);
  EXPECT_EQ(numbers[0].style.name, "loss");
  EXPECT_EQ(numbers[0].best[0]->y, 2);
  EXPECT_EQ(numbers[0].best[0]->x, 40);
  EXPECT_EQ(numbers[0].winners, (std::vector<bool>{false, true}));
  EXPECT_EQ(numbers[1].style.name, "bleu");
  EXPECT_EQ(numbers[1].best[1]->y, 39);
  EXPECT_EQ(numbers[1].winners, (std::vector<bool>{false, true}));
}

TEST(Comparison, NoRunIsTheBestOfOneOrOfTwoFamilies) {
  const std::vector<ComparedRun> runs{run_of("a", 40, 2), answers_of("b")};
  for (const auto& number : best_numbers(runs, curves_of(runs))) {
    EXPECT_EQ(number.winners, (std::vector<bool>{false, false})) << number.style.name;
  }
  const auto views = charts_of({runs});
  EXPECT_EQ(chart_of(views[0], "Loss, validation").summary, "");
}

TEST(Comparison, RunsOfOneTitleAreToldByTheirFolders) {
  EXPECT_EQ(distinct_names({"base", "base", "big"}, {"x/1", "x/2", "x/3"}),
            (std::vector<std::string>{"x/1", "x/2", "big"}));
  EXPECT_EQ(distinct_names({"base", "base", "x"}, {"x", "y", "z/x"}),
            (std::vector<std::string>{"x", "y", "z/x"}))
      << "a run has the title of another one's folder";
}

TEST(ComparisonPage, HasRunsCurvesScoresAndDifferences) {
  Comparison comparison{{run_of("first", 40, 2), run_of("second", 80, 1)},
                        {{"third", "cut short"}}};
  comparison.runs[1].keys[0].second = "0.002";
  const std::string page = render_comparison(comparison);
  EXPECT_EQ(markup_error(page), "");
  for (const char* words :
       {"<title>first, second – Stretto comparison", "P 1 · 2 threads", "over updates</label>",
        "over tokens</label>", "over time (seconds)</label>", "<h2>Left out</h2>", "cut short",
        "<th scope=\"row\">optim.lr</th><td>0.001</td><td>0.002</td>", "best 39.0: second",
        "<td class=\"best\">39.00<small>step 80", "20.0s", "seconds\nfirst"}) {
    EXPECT_NE(page.find(words), std::string::npos) << words;
  }
  EXPECT_EQ(page.find("run.seed"), std::string::npos);
  EXPECT_EQ(page.find("secret"), std::string::npos) << "the host says nothing of speed";
}

// Updates take half a second.
TEST(Comparison, ARunThatWaitedForItsDataSaysForHowMuchOfItsTime) {
  Comparison comparison{{run_of("slow", 40, 2), run_of("fast", 40, 2), run_of("old", 40, 2)}};
  for (MetricsEvent& event : comparison.runs[0].events) event.data_wait_seconds = 0.2;
  for (MetricsEvent& event : comparison.runs[1].events) event.data_wait_seconds = 0.001;
  EXPECT_NEAR(data_wait_share(comparison.runs[0]).value(), 0.4, 1e-12);
  EXPECT_NEAR(data_wait_share(comparison.runs[1]).value(), 0.002, 1e-12);
  EXPECT_FALSE(data_wait_share(comparison.runs[2]).has_value());
  const std::string page = render_comparison(comparison), words = " waiting for data</small>";
  const size_t first = page.find("<small>40.0 %" + words);
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ(page.find(words), page.rfind(words)) << "of one run alone";
  comparison.runs[0].events[0].data_wait_seconds = std::nan("");
  comparison.runs[0].events[1].data_wait_seconds = 1e300;
  EXPECT_EQ(data_wait_share(comparison.runs[0]).value(), 1);
  EXPECT_EQ(markup_error(page), "");
}

TEST(ComparisonPage, LoadsNothingRunsNoScriptAndEscapesAllData) {
  const std::string hostile = "</style><script>alert('1')</script><img src=x onerror=\"a\">\xff";
  Comparison comparison{{run_of("a", 20, 2), run_of("b", 20, 1)}, {{hostile, hostile}}};
  ComparedRun& run = comparison.runs[1];
  run.name = run.folder = run.task = run.status = hostile;
  run.machine = {{"processor", hostile}};
  run.keys = {{hostile, hostile}};
  run.display.rate.unit = hostile;
  for (MetricsEvent& event : run.events) {
    if (event.event == "valid") event.scores.push_back({hostile, 1.0});
  }
  comparison.runs[0].events = run.events;
  const std::string page = render_comparison(comparison);
  EXPECT_EQ(markup_error(page), "");
  for (const char* words : {"<script", "<img", "http:", "https:", "url(", "\xff"}) {
    EXPECT_EQ(page.find(words), std::string::npos) << words;
  }
  EXPECT_EQ(page.find("</style>"), page.rfind("</style>"));
  EXPECT_NE(page.find("default-src 'none'; img-src data:; style-src 'unsafe-inline'"),
            std::string::npos);
  EXPECT_TRUE(nlohmann::json::accept(comparison_json(comparison)));
}

TEST(ComparisonPage, SurvivesNumbersThatNoAxisCanHold) {
  Comparison comparison{{run_of("a", 30, 2), run_of("b", 30, 1)}};
  const double values[] = {1.7e308, -1.7e308, std::nan(""), INFINITY, 5e-324, 0, -1e99};
  for (size_t i = 0; i < std::size(values); ++i) {
    MetricsEvent& event = comparison.runs[0].events[i];
    event.loss = event.lr = event.grad_norm = event.seconds = values[i];
    event.counts = {{"target_tokens", values[i]}, {"tokens_per_second", values[i]}};
  }
  const std::string page = render_comparison(comparison);
  EXPECT_EQ(markup_error(page), "");
  EXPECT_EQ(page.find("nan"), std::string::npos);
  for (const char* words : {"Minf", "Linf", "\"inf", ">inf"}) {
    EXPECT_EQ(page.find(words), std::string::npos) << words;
  }
}

TEST(ComparisonJson, HasTheNumbersBehindThePage) {
  Comparison comparison{{run_of("a", 40, 2), answers_of("b")}, {{"third", "cut short"}}};
  const auto json = nlohmann::json::parse(comparison_json(comparison));
  EXPECT_EQ(json.at("format"), 1);
  const auto& a = json.at("runs").at(0);
  EXPECT_EQ(a.at("name"), "a");
  EXPECT_EQ(a.at("folder"), "runs/a");
  EXPECT_EQ(a.at("step"), 40);
  EXPECT_EQ(a.at("seconds"), 20);
  EXPECT_EQ(a.at("rate"), 200);
  EXPECT_EQ(a.at("rate_unit"), "tokens/s");
  EXPECT_EQ(a.at("machine").at("processor"), "P 1");
  EXPECT_EQ(a.at("best").at("bleu").at("value"), 38);
  EXPECT_EQ(a.at("best").at("bleu").at("step"), 40);
  EXPECT_EQ(json.at("left_out").at(0).at("why"), "cut short");
  EXPECT_EQ(json.at("differences").at(0).at("key"), "data.stride");
  EXPECT_TRUE(json.at("differences").at(0).at("values").at(0).is_null());
  const auto& chart = json.at("charts").at(0);
  EXPECT_EQ(chart.at("title"), "Loss, training");
  EXPECT_EQ(chart.at("over"), "updates");
  EXPECT_EQ(chart.at("curves").at(1).at("run"), 1);
  EXPECT_EQ(chart.at("curves").at(0).at("points").size(), 40U);
  EXPECT_EQ(chart.at("curves").at(0).at("points").at(39), nlohmann::json::array({40, 2}));
}

}  // namespace
}  // namespace stretto::report
