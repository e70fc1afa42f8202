#include "report/chart.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <regex>

#include "report/chart_scale.h"

namespace stretto::report {
namespace {

struct Label {
  double x, y;
  std::string text;
};

/// The tick labels of an axis as they stand in the SVG: anchor "end" is the value axis, "middle"
/// the axis of steps.
std::vector<Label> labels_of(const std::string& svg, const std::string& anchor) {
  const std::regex tick("<text class=\"tick\" text-anchor=\"" + anchor +
                        "\" x=\"([^\"]*)\" y=\"([^\"]*)\"[^>]*>([^<]*)</text>");
  std::vector<Label> labels;
  for (std::sregex_iterator at(svg.begin(), svg.end(), tick), end; at != end; ++at)
    labels.push_back(
        {std::atof((*at)[1].str().c_str()), std::atof((*at)[2].str().c_str()), (*at)[3].str()});
  return labels;
}

std::vector<std::string> texts(const std::vector<Label>& labels) {
  std::vector<std::string> out;
  for (const Label& label : labels) out.push_back(label.text);
  return out;
}

using Texts = std::vector<std::string>;

/// `count` points at steps first, first + every, …
std::vector<Point> points(double (*value)(double), int count, double first = 1, double every = 1) {
  std::vector<Point> out;
  for (int i = 0; i < count; ++i) out.push_back({first + i * every, value(first + i * every)});
  return out;
}

double falling(double step) {
  return 1.9 + 8 * std::exp(-step / 80);
}

TEST(Chart, TheValueAxisHasALabelAtItsFoot) {
  const std::vector<Point> loss = points(falling, 600);  // from 9.8 down to 1.9
  const auto labels =
      labels_of(render_chart({.title = "Loss", .series = {{.name = "a", .points = loss}}}), "end");
  EXPECT_EQ(texts(labels), (Texts{"0", "2", "4", "6", "8", "10"}));
  EXPECT_DOUBLE_EQ(labels.front().y, kChartHeight - kChartBottom);
}

TEST(Chart, ALogarithmicAxisHasALabelAtItsFoot) {
  const std::vector<Point> ppl = points([](double step) { return std::exp(falling(step)); }, 600);
  const auto labels = labels_of(
      render_chart({.title = "P", .logarithmic = true, .series = {{.name = "a", .points = ppl}}}),
      "end");
  EXPECT_EQ(texts(labels), (Texts{"1", "10", "100", "1,000", "10,000"}));
  EXPECT_DOUBLE_EQ(labels.front().y, kChartHeight - kChartBottom);
}

TEST(Chart, NothingNegativeStandsOnTheAxisOfWhatNeverIs) {
  const std::vector<Point> small = points([](double step) { return 0.05 + 10 / step; }, 500);
  const auto labels =
      labels_of(render_chart({.title = "|g|", .series = {{.name = "a", .points = small}}}), "end");
  EXPECT_EQ(labels.front().text, "0");
}

TEST(Chart, TheLearningRateAxisHasOneFormat) {
  const std::vector<Point> warmup = points([](double step) { return 1e-3 * step / 400; }, 400);
  const auto labels = labels_of(
      render_chart({.title = "lr", .from_zero = true, .series = {{.name = "a", .points = warmup}}}),
      "end");
  EXPECT_EQ(texts(labels), (Texts{"0", "0.0002", "0.0004", "0.0006", "0.0008", "0.0010"}));
}

TEST(Chart, StepsCountFromZeroWhereverTheCurveBegins) {
  // Validations at 200, 400, 600 of a run that is at 700.
  const std::vector<Point> bleu = points([](double step) { return step / 20; }, 3, 200, 200);
  const Chart chart{.title = "BLEU",
                    .from_zero = true,
                    .series = {{.name = "a", .style = LineStyle::kDots, .points = bleu}},
                    .last_step = 700};
  const auto labels = labels_of(render_chart(chart), "middle");
  EXPECT_EQ(labels.front().text, "0");
  const std::vector<Point> loss = points(falling, 700);
  const auto others = labels_of(
      render_chart({.title = "Loss", .series = {{.name = "a", .points = loss}}, .last_step = 700}),
      "middle");
  EXPECT_EQ(texts(labels), texts(others)) << "charts of a run have the same steps";
}

TEST(Chart, AStepIsHeldUntilTheNextPoint) {
  const Chart chart{
      .title = "scale",
      .logarithmic = true,
      .series = {
          {.name = "a", .style = LineStyle::kSteps, .points = {{0, 1024}, {10, 512}, {20, 1024}}}}};
  const std::string svg = render_chart(chart);
  const std::regex path(
      "<path class=\"line ink1\" d=\"M[0-9.]+ ([0-9.]+)H[0-9.]+V([0-9.]+)"
      "H[0-9.]+V([0-9.]+)\"/>");
  std::smatch found;
  ASSERT_TRUE(std::regex_search(svg, found, path)) << svg;
  EXPECT_EQ(found[1], found[3]);
  EXPECT_LT(std::atof(found[1].str().c_str()), std::atof(found[2].str().c_str()));
}

TEST(Chart, ABandIsShadedAndInsideThePicture) {
  const std::vector<Point> flat = points([](double) { return 100.0; }, 50);
  Chart chart{.title = "B", .logarithmic = true, .series = {{.name = "a", .points = flat}}};
  EXPECT_EQ(render_chart(chart).find("class=\"band"), std::string::npos);
  chart.series[0].band = 2;
  const std::string svg = render_chart(chart);
  EXPECT_NE(svg.find("<path class=\"band ink1\" d=\"M"), std::string::npos);
  EXPECT_EQ(texts(labels_of(svg, "end")), (Texts{"20", "50", "100", "200"}));
  const std::vector<Curve> curves = curves_of(chart);
  const Scale scale(chart, curves);
  EXPECT_GT(scale.y(200), kChartTop);
  EXPECT_LT(scale.y(50), kChartHeight - kChartBottom);
  EXPECT_NEAR(scale.y(50) - scale.y(100), scale.y(100) - scale.y(200), 1e-9);
}

}  // namespace
}  // namespace stretto::report
