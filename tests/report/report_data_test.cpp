#include "report/report_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"

namespace stretto::report {
namespace {

namespace fs = std::filesystem;

class ReportDataTest : public ::testing::Test {
 protected:
  void put(const std::string& text) { std::ofstream(path_, std::ios::binary) << text; }

  static ReportContent content() {
    ReportContent content{.title = "A run", .status = "finished"};
    content.machine = {{"processor", "P <1>"}, {"cores", "2"}};
    content.facts = {{"parameters", "1,234"}};
    content.samples_step = 40;
    content.samples = {TextPairSample{"a b",
                                      "x y",
                                      "x \"z\"",
                                      {"a", "b"},
                                      {"x", "y"},
                                      {{1.0f / 3, 2.0f / 3}, {0.05f, 0.95f}}},
                       TextPairSample{"日本", "", "c", {}, {}},
                       RowsSample{{{"class", "\"cat\""}, {"probability", "0.9"}}},
                       MarkedTextSample{"who?",
                                        {{"It was ", false, false}, {"Ann", true, true}},
                                        "Ann",
                                        {"Ann", "Anna"},
                                        "exact"},
                       MatrixSample{"M", "label", "predicted", {"a"}, {"a", "b"}, {{3, 4}}}};
    for (auto& sample : content.samples) sample = trimmed(sample);
    return content;
  }

  static const TextPairSample& pair(const ReportContent& content, size_t i) {
    return std::get<TextPairSample>(content.samples.at(i));
  }

  testing::TempDir directory_;
  const fs::path path_ = directory_ / kReportDataFile;
};

TEST_F(ReportDataTest, ThePageOfWhatWasReadIsThePageOfWhatWasWritten) {
  const ReportContent written = content();
  write_report_data(path_, written);
  ReportContent read{.title = written.title, .status = written.status};
  read_report_data(path_, read);
  EXPECT_EQ(render_html(read), render_html(written));
  EXPECT_EQ(read.samples_step, 40);
  EXPECT_EQ(pair(read, 0).attention, pair(written, 0).attention);
  EXPECT_EQ(pair(read, 1).input, "日本");
  EXPECT_EQ(std::get<RowsSample>(read.samples.at(2)).rows,
            std::get<RowsSample>(written.samples.at(2)).rows);
  const auto& marked = std::get<MarkedTextSample>(read.samples.at(3));
  EXPECT_EQ(marked.text, std::get<MarkedTextSample>(written.samples.at(3)).text);
  EXPECT_EQ(marked.references, (std::vector<std::string>{"Ann", "Anna"}));
  const auto& matrix = std::get<MatrixSample>(read.samples.at(4));
  EXPECT_EQ(matrix.columns, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(matrix.counts, (std::vector<std::vector<int64_t>>{{3, 4}}));
}

TEST_F(ReportDataTest, WhatIsTooLargeForThePageIsCutAndThePageStaysTheSame) {
  const std::vector<std::string> some(100, std::string(500, 'p')), many(3000, "\xe2\x96\x81");
  const std::vector<std::vector<float>> attention(100, std::vector<float>(100, 1.0f / 100));
  const std::string sentence(100'000, 'x'), broken = "a\xff\x1b";
  ReportContent whole;
  whole.samples.assign(60, TextPairSample{sentence, broken, sentence, some, some, attention});
  whole.samples[1] = TextPairSample{sentence, broken, sentence, many, many};
  whole.samples[2] = RowsSample{{500, {sentence, broken}}};
  whole.samples[3] = MarkedTextSample{sentence,
                                      {100, {broken, true, false}},
                                      sentence,
                                      std::vector<std::string>(100, sentence),
                                      sentence};
  whole.samples[4] = MatrixSample{sentence,
                                  sentence,
                                  sentence,
                                  std::vector<std::string>(100, sentence),
                                  std::vector<std::string>(90, broken),
                                  std::vector<std::vector<int64_t>>(100, {1, 2, 3})};
  whole.samples[4] =
      MarkedTextSample{broken, {2, {sentence, false, true}}, broken, {broken}, broken};
  whole.machine.assign(500, {sentence, broken});
  write_report_data(path_, whole);
  EXPECT_LT(fs::file_size(path_), size_t{32} << 20) << "and so it can be read";
  ReportContent read, cut = whole;
  for (auto& sample : cut.samples) sample = trimmed(sample);
  read_report_data(path_, read);
  EXPECT_EQ(render_html(read), render_html(cut));
}

TEST_F(ReportDataTest, AttentionThatIsNoNumberIsNone) {
  ReportContent odd;
  odd.samples = {TextPairSample{"a", "x", "", {"a", "b"}, {"x"}, {{NAN, INFINITY}}}};
  write_report_data(path_, odd);
  ReportContent read;
  read_report_data(path_, read);
  EXPECT_EQ(pair(read, 0).attention, (std::vector<std::vector<float>>{{0, 0}}));
}

TEST_F(ReportDataTest, AnythingElseIsRefusedAndChangesNothing) {
  write_report_data(path_, content());
  const std::string whole = read_file(path_);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
  };
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "[";
  const std::vector<std::string> bad{
      "",
      "[]",
      "null",
      deep,
      "{}",
      whole.substr(0, whole.size() / 2),
      with("\"format\":1", "\"format\":2"),
      with("\"machine\":[", "\"machine\":[1,"),
      with("[\"cores\",\"2\"]", "[\"cores\"]"),
      with("[\"cores\",\"2\"]", "[\"cores\",2]"),
      with("\"samples_step\":40", "\"samples_step\":\"40\""),
      with("\"source\":\"a b\"", "\"source\":7"),
      with("[[0.333333,", "[[\"0.3\","),
      with("\"attention\":[[", "\"attention\":[[[],"),
      with("\"reference\"", "\"refer\""),
      with("a b", "a\xff"),
      with("\"kind\":\"rows\"", "\"kind\":\"sound\""),
      with("\"kind\":\"rows\"", "\"kind\":7"),
      with("[\"class\",", "[\"class\",7,"),
      with("\"kind\":\"answer\"", "\"kind\":\"rows\""),
      with("[\"Ann\",true,true]", "[\"Ann\",true]"),
      with("[\"Ann\",true,true]", "[\"Ann\",true,1]"),
      with("[\"Ann\",\"Anna\"]", "\"Ann\""),
  };
  for (const std::string& text : bad) {
    SCOPED_TRACE(text.substr(0, 200));
    put(text);
    ReportContent read{.title = "kept"};
    read.machine = {{"a", "b"}};
    const Error error =
        testing::failure(ExitCode::kBadData, [&] { read_report_data(path_, read); });
    EXPECT_NE(std::string(error.what()).find("report.json"), std::string::npos) << error.what();
    EXPECT_EQ(read.machine.size(), 1u);
    EXPECT_TRUE(read.samples.empty());
  }
}

TEST_F(ReportDataTest, MoreThanAPageCanShowIsRefused) {
  std::string samples;
  for (int i = 0; i < 51; ++i) {
    samples += std::string(i == 0 ? "" : ",") +
               R"({"source":"","hypothesis":"","reference":"","source_pieces":[],)"
               R"("hypothesis_pieces":[],"attention":[]})";
  }
  put(R"({"format":1,"machine":[],"facts":[],"samples_step":0,"samples":[)" + samples + "]}");
  ReportContent read;
  testing::failure(ExitCode::kBadData, [&] { read_report_data(path_, read); });
}

// No flipped bit ends in anything but a refusal or other words on the page.
TEST_F(ReportDataTest, AFlippedBitIsRefusedOrHarmless) {
  write_report_data(path_, content());
  const std::string whole = read_file(path_);
  for (size_t bit = 0; bit < 8 * whole.size(); bit += 3) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    put(damaged);
    ReportContent read;
    try {
      read_report_data(path_, read);
      EXPECT_LT(render_html(read).size(), size_t{1} << 20);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData) << error.what();
    }
  }
}

TEST_F(ReportDataTest, AMissingFileIsToldFromABrokenOne) {
  ReportContent read;
  testing::failure(ExitCode::kUsage, [&] { read_report_data(path_, read); });
}

}  // namespace
}  // namespace stretto::report
