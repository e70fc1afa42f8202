#include "report/media.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/base64.h"
#include "base/file.h"
#include "report/html_report.h"
#include "report/report_data.h"
#include "tests/base/failure.h"
#include "tests/base/temp_dir.h"
#include "tests/report/markup.h"

namespace stretto::report {
namespace {

using testing::markup_error;

std::string wav_of(size_t bytes) {
  std::string wav("RIFF\0\0\0\0WAVEfmt ", 16);
  wav.resize(bytes, 'w');
  return wav;
}

std::string png_of(size_t bytes) {
  std::string png("\x89PNG\r\n\x1a\n");
  png.resize(bytes, 'p');
  return png;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// What a family that hears and draws would show.
ReportContent played() {
  ReportContent content{.title = "Speech", .status = "running", .samples_step = 7};
  content.samples = {MediaSample{"audio/wav", wav_of(300), "the words \"that\" were spoken", "2 s"},
                     MediaSample{"image/png", png_of(200), "its <spectrogram>"},
                     MediaSample{"image/jpeg", "\xff\xd8\xff\xe0 etc.", "a photograph"},
                     RowsSample{{{"label", "cat"}}}};
  return content;
}

TEST(Media, ASoundHasAPlayerAndAPictureIsDrawn) {
  const std::string page = render_html(played());
  EXPECT_EQ(markup_error(page), "");
  EXPECT_TRUE(has(page,
                  "<audio controls=\"controls\" preload=\"metadata\" "
                  "src=\"data:audio/wav;base64," +
                      base64(wav_of(300)) + "\"></audio>"));
  EXPECT_TRUE(has(page, "<img alt=\"its &lt;spectrogram&gt;\" src=\"data:image/png;base64," +
                            base64(png_of(200)) + "\"/>"));
  EXPECT_TRUE(has(page, "src=\"data:image/jpeg;base64,"));
  EXPECT_TRUE(has(page, "the words &quot;that&quot; were spoken"));
}

TEST(Media, RowsStandBesideItAndAreKept) {
  ReportContent content = played();
  std::get<MediaSample>(content.samples[1]).rows = {{"Label", "<cat>"}, {"Predicted", "dog (0.9)"}};
  const std::string page = render_html(content);
  EXPECT_EQ(markup_error(page), "");
  EXPECT_TRUE(has(page,
                  "</figure><dl><dt>Label</dt><dd dir=\"auto\">&lt;cat&gt;</dd>"
                  "<dt>Predicted</dt><dd dir=\"auto\">dog (0.9)</dd></dl>"));
  const testing::TempDir folder;
  write_report_data(folder / "report.json", content);
  ReportContent read{.title = content.title, .status = content.status};
  read_report_data(folder / "report.json", read);
  EXPECT_EQ(render_html(read), page);
}

TEST(Media, OnlyAPageWithASoundMayPlayOne) {
  ReportContent content = played();
  const std::string allowed = "default-src 'none'; img-src data:; media-src data:; style-src";
  EXPECT_TRUE(has(render_html(content), allowed));
  content.samples.erase(content.samples.begin());
  const std::string without = render_html(content);
  EXPECT_TRUE(has(without, "default-src 'none'; img-src data:; style-src"));
  EXPECT_FALSE(has(without, "media-src"));
  content.samples = {MediaSample{"audio/wav", wav_of(kMaxMedia + 1), "left out"}};
  EXPECT_FALSE(has(render_html(content), "media-src")) << "there is nothing to play";
}

struct LeftOut {
  MediaSample sample;
  const char* why;
};

TEST(Media, WhatIsNoSuchFileOrTooLargeIsLeftOutWhole) {
  const LeftOut cases[] = {
      {{"audio/wav", wav_of(kMaxMedia + 1), "w"}, "1.0 MiB, a report keeps at most 1.0 MiB of one"},
      {{"image/svg+xml", "<svg onload=\"x\"/>", "w"}, "a page shows no image/svg+xml"},
      {{"text/html", "<b>x</b>", "w"}, "a page shows no text/html"},
      {{"audio/wav\" onerror=\"x", wav_of(50), "w"}, "a page shows no audio/wav&quot; onerror"},
      {{"AUDIO/WAV", wav_of(50), "w"}, "a page shows no"},
      {{"audio/wav", png_of(50), "w"}, "not audio/wav"},
      {{"audio/wav", "RIFF", "w"}, "not audio/wav"},
      {{"image/png", wav_of(50), "w"}, "not image/png"},
      {{"image/jpeg", "<script>", "w"}, "not image/jpeg"},
  };
  for (const auto& [sample, why] : cases) {
    SCOPED_TRACE(why);
    ReportContent content;
    content.samples = {sample};
    const std::string page = render_html(content);
    EXPECT_EQ(markup_error(page), "");
    EXPECT_TRUE(has(page, why));
    EXPECT_FALSE(has(page, "src=\"data:")) << "the icon alone has data";
    size_t bytes_left = kMaxAllMedia;
    const MediaSample kept = kept_media(sample, bytes_left);
    EXPECT_EQ(kept.bytes, "");
    EXPECT_EQ(kept.words, "w");
    EXPECT_EQ(bytes_left, kMaxAllMedia);
    EXPECT_EQ(kept_media(kept, bytes_left).note, kept.note) << "said once";
  }
}

TEST(Media, AllOfAReportHaveABoundTogether) {
  ReportContent content;
  content.samples.assign(10, MediaSample{"audio/wav", wav_of(kMaxMedia), "a"});
  const testing::TempDir folder;
  write_report_data(folder / "report.json", content);
  EXPECT_LT(std::filesystem::file_size(folder / "report.json"), kMaxAllMedia / 3 * 4 + 10'000);
  ReportContent read;
  read_report_data(folder / "report.json", read);
  ASSERT_EQ(read.samples.size(), 10U);
  EXPECT_EQ(media_bytes(read.samples), kMaxAllMedia);
  EXPECT_TRUE(has(std::get<MediaSample>(read.samples[8]).note, "at most 8.0 MiB of all"));
  EXPECT_EQ(render_html(read), render_html(content));
}

TEST(Media, ThePageOfWhatWasReadIsThePageOfWhatWasWritten) {
  const testing::TempDir folder;
  const ReportContent written = played();
  write_report_data(folder / "report.json", written);
  ReportContent read{.title = written.title, .status = written.status};
  read_report_data(folder / "report.json", read);
  EXPECT_EQ(std::get<MediaSample>(read.samples[0]).bytes, wav_of(300));
  EXPECT_EQ(render_html(read), render_html(written));
}

class StoredMedia : public ::testing::Test {
 protected:
  void expect_refused(const std::string& text) {
    const auto path = folder_ / "report.json";
    std::ofstream(path, std::ios::binary) << text;
    ReportContent read;
    testing::failure(ExitCode::kBadData, [&] { read_report_data(path, read); });
    EXPECT_TRUE(read.samples.empty());
  }
  static std::string file_of(const std::string& samples) {
    return R"({"format":1,"machine":[],"facts":[],"samples_step":0,"samples":[)" + samples + "]}";
  }
  static std::string sample_of(const std::string& mime, const std::string& text) {
    return R"({"kind":"media","mime":")" + mime + R"(","words":"w","note":"","bytes":")" + text +
           "\"}";
  }
  const testing::TempDir folder_;
};

TEST_F(StoredMedia, AnythingThatWasNotWrittenSoIsRefused) {
  expect_refused(file_of(sample_of("audio/wav", "UklG")));
  expect_refused(file_of(sample_of("audio/wav", "not base64!")));
  expect_refused(file_of(sample_of("audio/wav", base64(wav_of(kMaxMedia + 1)))));
  expect_refused(file_of(sample_of("audio/wav", std::string(3 * kMaxMedia, 'A'))));
  expect_refused(file_of(sample_of("image/svg+xml", base64("<svg/>"))));
  expect_refused(file_of(sample_of("image/png", base64(wav_of(50)))));
  expect_refused(file_of(R"({"kind":"media","mime":"audio/wav","words":"w","note":"","bytes":7})"));
  expect_refused(file_of(R"({"kind":"media","mime":"audio/wav","words":"w","note":""})"));
  expect_refused(
      file_of(R"({"kind":"media","mime":"","words":"w","note":"","bytes":"","rows":["x"]})"));
  std::string many;
  for (int i = 0; i < 9; ++i) {
    many += (i == 0 ? "" : ",") + sample_of("audio/wav", base64(wav_of(kMaxMedia)));
  }
  expect_refused(file_of(many));
}

// No flipped bit ends in anything but a refusal or another sound.
TEST_F(StoredMedia, AFlippedBitIsRefusedOrHarmless) {
  const auto path = folder_ / "report.json";
  write_report_data(path, played());
  const std::string whole = read_file(path);
  for (size_t bit = 0; bit < 8 * whole.size(); bit += 7) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    std::ofstream(path, std::ios::binary) << damaged;
    ReportContent read;
    try {
      read_report_data(path, read);
      EXPECT_EQ(markup_error(render_html(read)), "");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadData) << error.what();
    }
  }
}

}  // namespace
}  // namespace stretto::report
