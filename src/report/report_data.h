#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "report/html_report.h"

namespace stretto::report {

/// RUN/report.json: what report.html shows and nothing else in a run folder tells. That is machine,
/// facts, samples and the step that they were made at; so the page can be written anew.
inline constexpr const char* kReportDataFile = "report.json";

/// A sample cut to what the page can show of it: long texts and pieces end in "…", attention is
/// kept of the pieces that are drawn, in steps of a millionth.
Sample trimmed(const Sample& sample);
/// The same of all samples of a page: at most kMaxSamples, and of sounds and pictures those that
/// kept_media() keeps.
std::vector<Sample> trimmed(const std::vector<Sample>& samples);

/// Replaces the file at once (write_file_atomic): at most a few MiB, and four thirds of
/// kMaxAllMedia. Throws Error(kIo).
void write_report_data(const std::filesystem::path& path, const ReportContent& content);

/// The bytes of that file.
std::string report_data_json(const ReportContent& content);

/// Fills machine, facts, samples and samples_step of `content`. Throws Error(kUsage) when the file
/// does not exist, Error(kBadData) when it is too large, no JSON, or not what write_report_data()
/// writes; `content` is then as it was.
void read_report_data(const std::filesystem::path& path, ReportContent& content);
/// The same of bytes in memory.
/// @param where  the file, for messages
void parse_report_data(std::string_view bytes, const std::string& where, ReportContent& content);

}  // namespace stretto::report
