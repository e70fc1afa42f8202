#include "report/html_report.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <limits>
#include <string>

#include "base/file.h"
#include "families/translation/translation_display.h"
#include "report/curves.h"
#include "tests/report/markup.h"
#include "tests/report/pages.h"

namespace stretto::report {
namespace {

using test::content_with, test::count, test::figure;
using testing::markup_error;

TEST(HtmlReport, IsWellFormedFromTheFirstMomentOn) {
  EXPECT_EQ(markup_error(render_html({})), "");
  EXPECT_EQ(markup_error(render_html(content_with(1, 1))), "");
  EXPECT_EQ(markup_error(render_html(content_with(2, 2))), "");
  EXPECT_EQ(markup_error(render_html(content_with(500, 50))), "");
}

TEST(HtmlReport, LoadsNothingAndRunsNoScript) {
  const std::string page = render_html(content_with(100, 10));
  EXPECT_NE(page.find("default-src 'none'; img-src data:; style-src 'unsafe-inline'"),
            std::string::npos);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("http:"), std::string::npos);
  EXPECT_EQ(page.find("https:"), std::string::npos);
  EXPECT_EQ(page.find("url("), std::string::npos);
}

TEST(HtmlReport, EscapesHostileData) {
  const std::string hostile =
      "</style></script><script>alert(1)</script><img src=x "
      "onerror=\"alert('2')\">&amp;\xff\x1b\xe2\x80\xae";
  ReportContent content = content_with(20, 5);
  content.title = content.status = content.config_toml = hostile;
  content.machine = {{hostile, hostile}};
  content.facts = {{hostile, hostile}};
  content.samples = {
      TextPairSample{hostile, hostile, hostile, {hostile, "a"}, {hostile}, {{0.5f, 0.5f}}},
      RowsSample{{{hostile, hostile}}},
      MarkedTextSample{hostile, {{hostile, true, false}}, hostile, {hostile}, hostile},
      MatrixSample{hostile, hostile, hostile, {hostile}, {hostile}, {{1}}}};
  content.display.samples = content.display.text_pair.input = hostile;
  content.display.text_pair.picture = content.display.text_pair.request = hostile;
  const std::string page = render_html(content);
  EXPECT_EQ(markup_error(page), "");
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(count(page, "</style>"), 1u);
  EXPECT_EQ(page.find('\xff'), std::string::npos);
  EXPECT_EQ(page.find('\x1b'), std::string::npos);
  EXPECT_EQ(page.find("\xe2\x80\xae"), std::string::npos);  // right-to-left override
  EXPECT_NE(page.find("&lt;script&gt;alert(1)"), std::string::npos);
}

TEST(HtmlReport, StaysUnderOneMegabyteForAHundredThousandEvents) {
  ReportContent content = content_with(100'000, 100);
  const std::vector<std::string> pieces(60, "\u2581piece");
  const std::vector<std::vector<float>> attention(60, std::vector<float>(60, 1.0f / 60));
  const std::string sentence(100'000, 'x');
  content.samples.assign(4,
                         TextPairSample{sentence, sentence, sentence, pieces, pieces, attention});
  const std::string page = render_html(content);
  EXPECT_LT(page.size(), 1'000'000u);
  EXPECT_EQ(markup_error(page), "");
}

TEST(HtmlReport, SurvivesNumbersThatNoAxisCanHold) {
  ReportContent content = content_with(30, 10);
  const double huge = std::numeric_limits<double>::max();
  const double values[] = {huge, -huge, std::nan(""), INFINITY, 5e-324, 0, -1e99, 1e99, 1e-99};
  for (size_t i = 0; i < std::size(values); ++i) {
    content.events[i].loss = content.events[i].lr = content.events[i].grad_norm = values[i];
    content.events[i].measures = {{"nll", values[i]}, {"ppl", values[i]}, {"odd", values[i]}};
    content.events[i].counts = {{"tokens_per_second", values[i]}};
    content.events[i].scores = {{"bleu", values[i]}};
    content.events[i].seconds = values[i];
    content.events[i].noise_scale = content.events[i].loss_scale = values[i];
    content.events[i].comm_seconds = content.events[i].comm_wait_seconds = values[i];
  }
  const std::string page = render_html(content);
  EXPECT_EQ(markup_error(page), "");
  EXPECT_EQ(page.find("Mnan"), std::string::npos);
  EXPECT_EQ(page.find("Lnan"), std::string::npos);
  EXPECT_EQ(page.find(" nan"), std::string::npos);
}

TEST(HtmlReport, ReloadsItselfOnlyWhileTraining) {
  ReportContent content = content_with(5, 5);
  EXPECT_EQ(render_html(content).find("http-equiv=\"refresh\""), std::string::npos);
  content.refresh_seconds = 20;
  EXPECT_NE(render_html(content).find("<meta http-equiv=\"refresh\" content=\"20\"/>"),
            std::string::npos);
}

TEST(HtmlReport, ShowsTheBestValidationAndTheKeyNumbers) {
  ReportContent content = content_with(4, 2);
  content.events[2].measures = {{"nll", 1.25}};  // the validation of step 2
  content.events[2].loss = 1.5;
  content.events[2].scores = {{"bleu", 21.04}};
  const std::string page = render_html(content);
  EXPECT_NE(page.find("best 1.500 at step 2"), std::string::npos);
  EXPECT_NE(page.find("best 21.0 at step 2"), std::string::npos);
  EXPECT_NE(page.find("<tr class=\"best\" title=\"lowest loss\"><td>2</td>"), std::string::npos);
  EXPECT_NE(page.find("<td>3.49</td>"), std::string::npos);  // exp(1.25)
}

TEST(HtmlReport, MarksTheValidationThatTrainingCallsTheBest) {
  struct Case {
    const char* by;
    const char* mark;  // of the row; empty = there is none
  };
  const Case cases[] = {{"loss", "title=\"lowest loss\"><td>2</td>"},
                        {"nll", "title=\"lowest nll\"><td>4</td>"},
                        {"bleu", "title=\"highest BLEU\"><td>6</td>"},
                        {"de.nll", ""}};
  for (const Case& c : cases) {
    ReportContent content = content_with(8, 2);
    content.display.best_by = c.by;
    for (MetricsEvent& event : content.events) {
      if (event.event != "valid") continue;
      event.loss = event.step == 2 ? 1.0 : 1.5;
      event.measures = {{"nll", event.step == 4 ? 2.0 : 2.5}};
      if (event.step == 8) event.measures.clear();               // a loss of 1.5 is no nll
      event.scores = {{"bleu", event.step >= 6 ? 30.0 : 20.0}};  // the earlier of two equal ones
    }
    MetricsEvent start{.step = 0, .epoch = 1, .event = "valid"};
    start.loss = 0.5;
    start.measures = {{"nll", 0.5}};
    start.scores = {{"bleu", 90.0}};
    content.events.insert(content.events.begin(), start);
    const std::string page = render_html(content);
    EXPECT_EQ(count(page, "<tr class=\"best\""), *c.mark == 0 ? 0U : 1U) << c.by;
    EXPECT_NE(page.find(c.mark), std::string::npos) << c.by;
    EXPECT_NE(page.find("best 30.0 at step 6"), std::string::npos) << c.by;
    EXPECT_EQ(page.find("at step 0"), std::string::npos) << c.by;
  }
}

TEST(HtmlReport, AScoreThatIsBetterLowerHasItsDecimals) {
  ReportContent content = content_with(4, 2);
  content.display.numbers = {
      {.name = "wer", .label = "WER", .decimals = 2, .tile = "WER", .of_validation = true}};
  for (MetricsEvent& event : content.events) event.scores = {{"wer", 12.3456}};
  const std::string page = render_html(content);
  EXPECT_NE(page.find("<dd>12.35<small>best 12.35 at step 2</small>"), std::string::npos);
  content.display.numbers[0].decimals = 1;
  EXPECT_NE(render_html(content).find("<dd>12.3<small>best 12.3 at step 2</small>"),
            std::string::npos);
}

TEST(HtmlReport, DrawsAValidationBeforeTheFirstUpdateAtStepZero) {
  ReportContent content = content_with(40, 20);
  MetricsEvent start{.step = 0, .epoch = 1, .event = "valid"};
  start.loss = 9.5;
  content.events.insert(content.events.begin(), start);
  const Curves curves(content.events, content.display);
  const auto& valid = curves.numbers.at("loss").valid;
  ASSERT_EQ(valid.size(), 3U);
  EXPECT_EQ(valid.front().x, 0);
  EXPECT_EQ(valid.front().y, 9.5);
  const std::string page = render_html(content);
  EXPECT_EQ(markup_error(page), "");
  EXPECT_NE(page.find("<tr><td>0</td><td>1</td>"), std::string::npos);
}

/// A run of a task that tells neither how its numbers are called nor how they are drawn.
ReportContent content_of_numbers() {
  ReportContent content{.title = "A run", .status = "running"};
  for (int64_t step = 1; step <= 40; ++step) {
    const double t = static_cast<double>(step);
    MetricsEvent event{.step = step, .epoch = 1, .event = step % 20 == 0 ? "valid" : "train"};
    event.loss = 1 / t;
    event.measures = {{"accuracy", 1 - 1 / t}};
    event.counts = {{"images", int64_t{64}}, {"images_per_second", 1000.0}};
    if (step % 20 == 0) event.scores = {{"top<5>", 0.5 + t / 100}};
    content.events.push_back(event);
  }
  return content;
}

TEST(HtmlReport, DrawsNumbersThatNobodyToldItOf) {
  const std::string page = render_html(content_of_numbers());
  EXPECT_EQ(markup_error(page), "");
  const std::string accuracy = figure(page, "accuracy");
  EXPECT_NE(accuracy.find("training"), std::string::npos) << page.substr(0, 3000);
  EXPECT_NE(accuracy.find("validation"), std::string::npos);
  EXPECT_NE(figure(page, "top&lt;5&gt;"), "");
  EXPECT_EQ(figure(page, "images"), "") << "counts are not drawn";
  EXPECT_NE(page.find("<th>Loss</th><th>accuracy</th><th>top&lt;5&gt;</th>"), std::string::npos);
  for (const char* word : {"BLEU", "Perplexity", "tokens", "Tokens"}) {
    EXPECT_EQ(page.find(word), std::string::npos) << word;
  }
}

TEST(HtmlReport, NumbersOfOneChartAreDrawnTogether) {
  ReportContent content = content_of_numbers();
  content.display.numbers = {
      {.name = "accuracy",
       .chart = "Right",
       .axis = Axis::kFromZero,
       .tile = "Accuracy",
       .higher_is_better = true},
      {.name = "top<5>", .label = "top 5", .chart = "Right", .of_validation = true}};
  content.display.rate = {.key = "images_per_second", .unit = "images"};
  content.display.best_by = "accuracy";
  const std::string page = render_html(content);
  EXPECT_EQ(markup_error(page), "");
  const std::string chart = figure(page, "Right");
  EXPECT_NE(chart.find("accuracy"), std::string::npos);
  EXPECT_NE(chart.find("top 5"), std::string::npos);
  EXPECT_NE(chart.find("best 0.9750 at step 40"), std::string::npos) << chart.substr(0, 400);
  EXPECT_NE(figure(page, "Images per second").find("median 1,000"), std::string::npos);
  EXPECT_NE(page.find("<dt>Accuracy</dt>"), std::string::npos);
  EXPECT_NE(page.find("title=\"highest accuracy\"><td>40</td>"), std::string::npos);
}

TEST(HtmlReport, ADamagedFileOfManyNamesDoesNotMakeThePageGrowWithoutEnd) {
  ReportContent content = content_of_numbers();
  for (int i = 0; i < 1000; ++i) {
    content.events[0].measures.push_back({"number " + std::to_string(i), 1.5});
  }
  EXPECT_LT(count(render_html(content), "<figure"), 40u);
}

TEST(HtmlReport, EachSkippedUpdateMovesTheEndOfTheRun) {
  ReportContent content = content_with(10, 5);
  content.max_steps = 16;
  content.events[3].skipped = content.events[7].skipped = true;
  const std::string page = render_html(content);
  EXPECT_NE(page.find("of 18"), std::string::npos);
  EXPECT_NE(page.find("aria-valuenow=\"55.6\""), std::string::npos);  // 10 of 18
}

// As an earlier version ended them, when a skipped update counted like others.
TEST(HtmlReport, ARunThatEndedByTheNumberOfItsStepsIsWhole) {
  ReportContent content = content_with(10, 5);
  content.events[3].skipped = true;
  MetricsEvent end{.step = 10, .epoch = 1, .event = "end"};
  end.reason = "train.max_steps reached";
  content.events.push_back(end);
  const std::string page = render_html(content);
  EXPECT_NE(page.find("of 10"), std::string::npos);
  EXPECT_NE(page.find("aria-valuenow=\"100.0\""), std::string::npos);
}

TEST(HtmlReport, SaysWhyTheLossIsNotTheLogarithmOfThePerplexity) {
  ReportContent content = content_with(10, 5);
  EXPECT_EQ(render_html(content).find("exp(NLL)"), std::string::npos) << "they are one";
  content.display = tasks::translation_display({.label_smoothing = 0.1});
  content.display.note += " <b>";
  const std::string page = render_html(content);
  EXPECT_EQ(markup_error(page), "");
  EXPECT_NE(page.find("with label smoothing 0.1. NLL and perplexity are without it"),
            std::string::npos);
  EXPECT_NE(page.find("<th>Smoothed loss</th><th>NLL</th>"), std::string::npos);
}

TEST(HtmlReport, SaysWhatRDropAddsToTheLossAndDrawsTheDistanceOfItsPasses) {
  ReportContent content = content_with(10, 5);
  for (auto& event : content.events) {
    if (event.event == "train") event.measures.push_back({"kl", 0.01 * double(event.step)});
  }
  content.display = tasks::translation_display({.label_smoothing = 0.1, .r_drop = 5});
  const std::string page = render_html(content);
  EXPECT_EQ(markup_error(page), "");
  EXPECT_NE(page.find("with label smoothing 0.1 and R-Drop 5. NLL"), std::string::npos);
  EXPECT_NE(page.find("R-Drop is in the loss of training alone"), std::string::npos);
  EXPECT_NE(figure(page, "KL divergence of the two passes"), "");
  content.display = tasks::translation_display({.label_smoothing = 0, .r_drop = 2.5});
  EXPECT_NE(render_html(content).find("with R-Drop 2.5. NLL"), std::string::npos);
}

TEST(HtmlReport, SaysAtWhichStepSamplesWereMade) {
  ReportContent content;
  content.samples = {TextPairSample{"a", "b", "c", {}, {}}};
  EXPECT_NE(render_html(content).find("<h2>Samples</h2>"), std::string::npos);
  content.samples_step = 1200;
  EXPECT_NE(render_html(content).find("<h2>Samples at step 1,200</h2>"), std::string::npos);
}

TEST(HtmlReport, DrawsAMatrixOfCountsDarkerWhereMoreOfTheRowLies) {
  ReportContent content = content_with(3, 1);
  content.samples = {MatrixSample{.title = "Confusion matrix",
                                  .row_title = "label",
                                  .column_title = "predicted",
                                  .rows = {"cat", "dog"},
                                  .columns = {"cat", "dog"},
                                  .counts = {{1500, 0}, {1, 4}}}};
  const std::string page = render_html(content);
  EXPECT_EQ(markup_error(page), "");
  EXPECT_NE(page.find("<caption>Confusion matrix</caption>"), std::string::npos);
  EXPECT_NE(page.find("<th scope=\"row\">cat</th><td class=\"own\" "
                      "style=\"background:rgba(var(--cell),0.56)\">1,500</td><td>0</td>"),
            std::string::npos);
  EXPECT_NE(page.find("rgba(var(--cell),0.16)"), std::string::npos);  // a fifth of the dogs
  // The names of columns have one width, whatever their length: cells are as wide as they are.
  EXPECT_NE(page.find("<th scope=\"col\"><span title=\"dog\">dog</span></th>"), std::string::npos);
  EXPECT_NE(page.find(".matrix thead span{display:block;width:9ch;"), std::string::npos);
}

TEST(HtmlReport, DrawsEachSampleByItsKindWithTheTasksHeadings) {
  ReportContent content;
  content.display = tasks::translation_display({});
  content.samples = {TextPairSample{"ein Haus", "a house", "", {}, {}},
                     RowsSample{{{"class", "cat"}, {"probability", "0.9"}}}};
  const std::string page = render_html(content);
  EXPECT_EQ(markup_error(page), "");
  EXPECT_NE(page.find("<h2>Sample translations</h2>"), std::string::npos);
  EXPECT_NE(page.find("<article class=\"sample card\"><dl><dt>Source</dt><dd dir=\"auto\">ein "
                      "Haus</dd><dt>Translation</dt><dd dir=\"auto\" class=\"out\">a house</dd>"
                      "<dt>Reference</dt><dd dir=\"auto\">–</dd></dl></article>"),
            std::string::npos);
  EXPECT_NE(page.find("<article class=\"sample card\"><dl><dt>class</dt><dd dir=\"auto\">cat</dd>"
                      "<dt>probability</dt><dd dir=\"auto\">0.9</dd></dl></article>"),
            std::string::npos);
}

TEST(HtmlReport, MarksAnswerAndReferenceInTheirParagraph) {
  ReportContent content;
  content.display.text_pair = {
      .input = "Paragraph", .output = "Answer", .reference = "Expected", .request = "Question"};
  content.samples = {MarkedTextSample{"When?",
                                      {{"Born in ", false, false},
                                       {"May", true, false},
                                       {" 1815", true, true},
                                       {".", false, false}},
                                      "May 1815",
                                      {"1815", "in 1815"},
                                      "f1 67"}};
  const std::string page = render_html(content);
  EXPECT_EQ(markup_error(page), "");
  EXPECT_NE(page.find("<dt>Question</dt><dd dir=\"auto\">When?</dd><dt>Paragraph</dt>"
                      "<dd dir=\"auto\" class=\"text\">Born in <mark class=\"out\">May</mark>"
                      "<mark class=\"out ref\"> 1815</mark>.</dd>"
                      "<dt>Answer</dt><dd dir=\"auto\" class=\"out\">May 1815 <small>f1 67</small>"
                      "</dd><dt>Expected</dt><dd dir=\"auto\">1815 · in 1815</dd></dl></article>"),
            std::string::npos)
      << page.substr(page.find("<article"));
}

TEST(HtmlReport, ALongParagraphIsCut) {
  ReportContent content;
  content.samples = {MarkedTextSample{"",
                                      {{std::string(1400, 'x'), false, false},
                                       {std::string(1400, 'y'), true, false},
                                       {"z", false, false}},
                                      "",
                                      {},
                                      ""}};
  const std::string page = render_html(content);
  EXPECT_EQ(count(page, std::string(1400, 'x')), 1u);
  EXPECT_EQ(count(page, std::string(99, 'y')), 1u);
  EXPECT_NE(page.find("y…</mark></dd>"), std::string::npos);
}

TEST(HtmlReport, TellsWhatHappenedNewestFirst) {
  ReportContent content = content_with(10, 5);
  content.events[2].note = "loss spike: z = 7.1 <b>";
  content.events[7].note = "micro-batch 3 cut in two: out of memory";
  const std::string page = render_html(content);
  EXPECT_EQ(markup_error(page), "");
  const size_t spike = page.find("loss spike: z = 7.1 &lt;b&gt;");
  const size_t split = page.find("micro-batch 3 cut in two: out of memory");
  ASSERT_NE(spike, std::string::npos);
  EXPECT_LT(split, spike);
}

TEST(HtmlReport, DrawsACellForEachPairOfPieces) {
  ReportContent content;
  TextPairSample sample{"a b",      "x y",      "x z",
                        {"a", "b"}, {"x", "y"}, {{0.9f, 0.1f}, {0.25f, 0.75f}}};
  content.samples = {sample};
  const std::string page = render_html(content);
  EXPECT_EQ(count(page, " ← "), 4u);
  EXPECT_NE(page.find("x ← a 90%"), std::string::npos);
  EXPECT_NE(page.find("y ← b 75%"), std::string::npos);
  sample.attention.pop_back();  // rows that do not fit: no picture, but the text
  content.samples = {sample};
  const std::string without = render_html(content);
  EXPECT_EQ(without.find("class=\"heat\""), std::string::npos);
  EXPECT_NE(without.find("x z"), std::string::npos);
}

TEST(HtmlReport, ReplacesTheFileWhole) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("stretto_report_" + std::to_string(::getpid()) + ".html");
  const ReportContent content = content_with(3, 3);
  write_html_report(path, {});
  write_html_report(path, content);
  EXPECT_EQ(read_file(path), render_html(content));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace stretto::report
