#include "report/curves.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "report/report_options.h"

namespace stretto::report {
namespace {

struct Length {
  int64_t updates, interval;
};

TEST(ReportInterval, LeavesARunSomeTwoHundredEvents) {
  const ReportOptions automatic;
  for (const Length& run : std::vector<Length>{{1, 1},
                                               {12, 1},
                                               {399, 1},
                                               {500, 2},
                                               {1'000, 5},
                                               {2'345, 11},
                                               {19'999, 99},
                                               {20'000, 100},
                                               {300'000, 100},
                                               {0, 100}}) {
    EXPECT_EQ(automatic.interval(run.updates), run.interval) << run.updates;
  }
  ReportOptions given;
  for (const int64_t every : {1, 25, 5'000}) {
    given.every = every;
    for (const int64_t updates : {0, 10, 300'000}) EXPECT_EQ(given.interval(updates), every);
  }
}

MetricsEvent update(int64_t step, double grad_norm) {
  MetricsEvent event{.step = step, .epoch = 1, .event = "train"};
  event.loss = 2;
  event.grad_norm = grad_norm;
  event.loss_scale = 64;
  return event;
}

TEST(Curves, TheBestIsAmongTheValidationsThatWerePrunedTheFurthest) {
  std::vector<MetricsEvent> events;
  const std::vector<std::pair<double, double>> losses{{1, 0}, {3, 0.5}, {2.5, 0.9}, {2, 0.9}};
  for (const auto& [loss, sparsity] : losses) {
    MetricsEvent event{
        .step = 10 * static_cast<int64_t>(events.size() + 1), .epoch = 1, .event = "valid"};
    event.loss = loss;
    if (sparsity > 0) event.sparsity = sparsity;
    events.push_back(event);
  }
  const Curves curves(events, Display{});
  EXPECT_EQ(curves.best_from, 30);
  const auto& points = curves.numbers.at("loss").valid;
  EXPECT_NE(best_text(points, loss_style(), curves.best_from).find("at step 40"),
            std::string::npos);
  EXPECT_NE(best_text(points, loss_style()).find("at step 10"), std::string::npos);
  events.resize(1);
  EXPECT_EQ(first_comparable_step(events), 0);
}

TEST(Curves, AWarningAddsNoPointButToTheLossScale) {
  std::vector<MetricsEvent> events{update(1, 0.5), update(7, 50), update(10, 0.6), update(20, 70)};
  events[1].note = "gradient norm 50";
  events[1].unscheduled = true;
  events[3].note = "gradient norm 70";  // a point of its own
  const Curves curves(events, Display{});
  std::vector<double> steps, scales;
  for (const Point& point : curves.grad_norm) steps.push_back(point.x);
  for (const Point& point : curves.loss_scale) scales.push_back(point.x);
  EXPECT_EQ(steps, (std::vector<double>{1, 10, 20}));
  EXPECT_EQ(scales, (std::vector<double>{1, 7, 10, 20}));
  EXPECT_EQ(curves.last_step, 20);
}

}  // namespace
}  // namespace stretto::report
