#include "report/report_charts.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "families/masked_lm/masked_lm_display.h"
#include "families/question_answering/question_answering_display.h"
#include "report/html_report.h"
#include "tests/report/markup.h"
#include "tests/report/pages.h"

namespace stretto::report {
namespace {

using test::content_with, test::count, test::figure;
using testing::markup_error;

TEST(HtmlReport, CountsSkippedUpdatesAndKeepsThemOutOfTheCurves) {
  ReportContent content = content_with(10, 5);
  content.events[3].skipped = true;
  content.events[3].loss = 12345;
  const std::string page = render_html(content);
  EXPECT_NE(page.find("1 update skipped"), std::string::npos);
  EXPECT_EQ(page.find("12,345"), std::string::npos);
}

TEST(HtmlReport, CallsTheHighestRateTheHighestThatWasLogged) {
  ReportContent content;
  for (const int64_t step : {100, 200, 300}) {  // the schedule's peak, at 150, is not in the file
    MetricsEvent event{.step = step, .epoch = 1, .event = "train"};
    event.lr = step == 200 ? 7e-4 : 4e-4;
    content.events.push_back(event);
  }
  const std::string page = render_html(content);
  EXPECT_NE(page.find("highest logged 7e-4 at step 200"), std::string::npos);
  EXPECT_EQ(page.find("peak"), std::string::npos);
}

TEST(HtmlReport, AllChartsBeginAtStepZero) {
  const std::string page = render_html(content_with(700, 200));
  for (const char* title : {"Loss", "Perplexity", "BLEU", "Tokens per second", "Learning rate"}) {
    const std::string chart = figure(page, title);
    const size_t first = chart.find("text-anchor=\"middle\"");
    ASSERT_NE(first, std::string::npos) << title;
    EXPECT_TRUE(chart.substr(chart.find('>', first)).starts_with(">0</text>")) << title;
  }
}

TEST(HtmlReport, ChartsOfScaleAreThereOnlyWithTheirData) {
  ReportContent content = content_with(40, 20);
  for (MetricsEvent& event : content.events) event.loss_scale = 1;
  std::string page = render_html(content);
  for (const char* title : {"Noise scale, target tokens", "Loss scale", "Communication"})
    EXPECT_EQ(figure(page, title), "") << title;
  EXPECT_EQ(page.find("What happened"), std::string::npos);
  content.events[5].processes = 1;
  content.events[5].comm_seconds = 0;
  EXPECT_EQ(figure(render_html(content), "Communication"), "") << "of one process";
}

TEST(HtmlReport, SaysWhereTheBatchStandsAgainstTheNoiseScale) {
  struct Case {
    int64_t batch;
    const char* summary;
  };
  const Case cases[] = {{3'000, "about 12k; batch below the band"},
                        {6'200, "about 12k; batch in the band"},
                        {24'000, "about 12k; batch in the band"},
                        {50'000, "about 12k; batch above the band"}};
  for (const Case& c : cases) {
    ReportContent content = content_with(40, 20);
    for (MetricsEvent& event : content.events) {
      event.noise_scale = 12'345;
      event.counts = {{"target_tokens", c.batch}};
    }
    const std::string chart = figure(render_html(content), "Noise scale, target tokens");
    EXPECT_NE(chart.find(c.summary), std::string::npos) << chart.substr(0, 600);
    EXPECT_NE(chart.find("class=\"band ink1\""), std::string::npos);
    EXPECT_NE(chart.find("class=\"line ink2\""), std::string::npos) << "the batch is a line";
    EXPECT_EQ(markup_error(render_html(content)), "");
  }
}

TEST(HtmlReport, JudgesTheNoiseScaleInWhatTheLossIsDividedBy) {
  ReportContent content = content_with(40, 20);
  content.display = tasks::question_answering_display();
  for (MetricsEvent& event : content.events) {
    event.noise_scale = 60;
    event.counts = {{"tokens", int64_t{4000}}, {"windows", int64_t{50}}};
  }
  std::string page = render_html(content);
  const std::string chart = figure(page, "Noise scale, windows");
  EXPECT_NE(chart.find("about 60; batch in the band"), std::string::npos) << chart.substr(0, 600);
  EXPECT_NE(page.find("Above it, more windows in an update"), std::string::npos);
  // Masked tokens were not always counted.
  content.display = tasks::masked_lm_display();
  page = render_html(content);
  EXPECT_EQ(markup_error(page), "");
  const std::string alone = figure(page, "Noise scale, masked tokens");
  EXPECT_NE(alone.find("<b>about 60</b>"), std::string::npos) << alone.substr(0, 600);
  EXPECT_EQ(alone.find("ink2"), std::string::npos) << "a batch in another unit";
  for (MetricsEvent& event : content.events) event.counts = {{"masked_tokens", int64_t{600}}};
  EXPECT_NE(figure(render_html(content), "Noise scale, masked tokens").find("above the band"),
            std::string::npos);
}

TEST(HtmlReport, SaysUnderTheChartsWhatTheShadedBandIs) {
  ReportContent content = content_with(40, 20);
  EXPECT_EQ(render_html(content).find("hardly help"), std::string::npos);
  for (MetricsEvent& event : content.events) event.noise_scale = 12'345;
  const std::string page = render_html(content);
  const size_t note = page.find("hardly help");
  ASSERT_NE(note, std::string::npos);
  // A text in one card alone would make its neighbour as tall, with nothing in it.
  EXPECT_GT(note, page.rfind("</figure>"));
  EXPECT_EQ(figure(page, "Noise scale, target tokens").find("class=\"note\""), std::string::npos);
}

TEST(HtmlReport, DrawsTheLossScaleWhenItChangesSkippedUpdatesToo) {
  ReportContent content = content_with(40, 20);
  double scale = 65536;
  for (MetricsEvent& event : content.events) {
    event.loss_scale = scale;
    if (event.step == 7) {
      event.skipped = true;
      scale /= 2;
    }
  }
  const std::string chart = figure(render_html(content), "Loss scale");
  EXPECT_NE(chart.find("now 32,768; 1 update skipped"), std::string::npos) << chart.substr(0, 300);
  EXPECT_EQ(count(chart.substr(chart.find("class=\"line")), "V"), 39u + count(chart, "<g class"))
      << "all forty updates are steps of the curve";
}

TEST(HtmlReport, ShowsHowMuchCommunicationIsHidden) {
  ReportContent content = content_with(40, 20);
  for (MetricsEvent& event : content.events) {
    if (event.event != "train") continue;
    event.processes = 4;
    event.comm_seconds = 0.25;
    event.comm_wait_seconds = 0.025;
  }
  const std::string chart = figure(render_html(content), "Communication, ms");
  EXPECT_NE(chart.find("4 processes; 90% hidden"), std::string::npos) << chart.substr(0, 300);
  EXPECT_NE(chart.find("under way 250.0"), std::string::npos);
  EXPECT_NE(chart.find("waited for 25.000"), std::string::npos);
}

TEST(HtmlReport, WhatIsHiddenIsCountedOverAllUpdates) {
  struct Case {
    const char* what;
    double comm, wait, last_comm, last_wait;  // of 39 updates, and of the last
    const char* summary;
  };
  const Case cases[] = {{"one long wait weighs as much as it took", 0.5, 0, 19.5, 19.5, "50%"},
                        {"as long as it waited", 0.25, 0.25, 0.25, 0.25, "0%"},
                        {"waited longer, as older versions counted", 0.1, 0.2, 0.1, 0.2, "0%"}};
  for (const Case& c : cases) {
    ReportContent content = content_with(40, 20);
    for (MetricsEvent& event : content.events) {
      if (event.event != "train") continue;
      event.processes = 2;
      event.comm_seconds = event.step < 40 ? c.comm : c.last_comm;
      event.comm_wait_seconds = event.step < 40 ? c.wait : c.last_wait;
    }
    const std::string chart = figure(render_html(content), "Communication, ms");
    EXPECT_NE(chart.find(std::string("2 processes; ") + c.summary + " hidden"), std::string::npos)
        << c.what << ": " << chart.substr(0, 300);
  }
}

}  // namespace
}  // namespace stretto::report
