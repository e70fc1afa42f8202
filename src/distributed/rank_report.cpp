#include "distributed/rank_report.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/signals.h"
#include "base/system_info.h"
#include "base/text.h"
#include "distributed/agreement.h"
#include "distributed/launch.h"

namespace stretto::distributed {
namespace {

namespace fs = std::filesystem;

constexpr int kPeerLostCode = static_cast<int>(ExitCode::kPeerLost);
constexpr int kInterruptedCode = static_cast<int>(ExitCode::kInterrupted);

bool only_says_another_is_lost(const RankReport& report) {
  return report.exit_code == kPeerLostCode;
}

// 0: failed or died by itself; 1: hung; 2: lost another; 3: waited for it.
int weight(const RankReport& report) {
  if (only_says_another_is_lost(report)) return 2;
  if (report.end_reason == EndReason::kWaited) return 3;
  return report.end_reason == EndReason::kByItself ? 0 : 1;
}

std::string ending(const RankReport& report, bool several) {
  const std::string was = several ? "were" : "was", they = several ? "they" : "it";
  switch (report.end_reason) {
    case EndReason::kHung:
      return "did not leave when the others did, and " + was + " ended by force";
    case EndReason::kStopped:
      return (several ? "are" : "is") + std::string(" stopped (SIGSTOP, or a debugger?), and ") +
             was + " ended by force";
    case EndReason::kNeverJoined:
      return "did not come to the others in time, and " + was + " ended by force";
    case EndReason::kWaited:
      return "still waited for all to come, and " + was + " ended by force";
    case EndReason::kOrphaned:
      return was + " ended by force, since the mpirun that " + they + " ran under had died";
    case EndReason::kUnsaved:
      return "ended after the signal, without having saved";
    case EndReason::kByItself:
      break;
  }
  if (!report.exit_code) return "died without a word (killed, or out of memory?)";
  return "left with exit code " + std::to_string(*report.exit_code);
}

std::string indented(const std::string& text, const std::string& by) {
  std::string out;
  for (const auto& line : split(text, '\n')) out += "\n" + by + line;
  return out;
}

bool says_the_same(const RankReport& a, const RankReport& b) {
  return a.exit_code == b.exit_code && a.message == b.message && a.end_reason == b.end_reason &&
         (a.exit_code.has_value() || a.end_reason != EndReason::kByItself);
}

std::string paragraph(const std::vector<RankReport>& alike) {
  std::vector<int> ranks;
  for (const auto& report : alike) ranks.push_back(report.rank);
  std::sort(ranks.begin(), ranks.end());
  const RankReport& first = alike.front();
  std::string text = alike.size() == 1 ? "rank " : "ranks ";
  text += rank_list(ranks);
  if (alike.size() == 1) {
    text += " (host " + first.host;
    if (first.pid > 0) text += ", pid " + std::to_string(first.pid);
    text += ")";
  }
  text += " ";
  text += ending(first, alike.size() > 1);
  if (!first.message.empty()) text += ":" + indented(first.message, "  ");
  // Who only lost another has nothing of his own to tell.
  if (alike.size() == 1 && !only_says_another_is_lost(first) && !first.last_lines.empty()) {
    text += "\n  last lines of its output:" + indented(join(first.last_lines, "\n"), "    | ");
  }
  return text;
}

// The rank with an error of its own, told where `all` are told, that made this one leave.
std::optional<int> cause_of(const RankReport& report, const std::vector<RankReport>& all) {
  if (!only_says_another_is_lost(report) || !report.lost_rank) return std::nullopt;
  const bool told = std::any_of(all.begin(), all.end(), [&](const RankReport& other) {
    return other.rank == *report.lost_rank && other.exit_code && has_failed(other) &&
           !only_says_another_is_lost(other);
  });
  return told ? report.lost_rank : std::nullopt;
}

// Before MPI is up the rank is known from the environment alone.
RankReport own_report() {
  int rank = 0;
  try {
    rank = detect_launch().rank;
  } catch (const Error&) {
    rank = 0;  // reported as rank 0: the message says what is wrong with the environment
  }
  return {.rank = rank, .host = host_name(), .pid = ::getpid()};
}

}  // namespace

void write_rank_report(const fs::path& folder, const RankReport& report) {
  nlohmann::ordered_json json{{"rank", report.rank},   {"host", report.host},
                              {"pid", report.pid},     {"joined", report.joined},
                              {"ended", report.ended}, {"message", report.message}};
  if (report.exit_code) json["exit_code"] = *report.exit_code;
  if (report.lost_rank) json["lost_rank"] = *report.lost_rank;
  write_file_atomic(folder / ("rank." + std::to_string(report.rank) + ".json"),
                    json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

std::vector<RankReport> read_rank_reports(const fs::path& folder) {
  std::vector<RankReport> reports;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("rank.") || !name.ends_with(".json")) continue;
    try {
      const auto json = parse_json(read_file(entry.path(), 1 << 20), name, 1 << 20);
      RankReport report{.rank = json.at("rank").get<int>(),
                        .host = json.at("host").get<std::string>(),
                        .pid = json.at("pid").get<int64_t>(),
                        .ended = json.at("ended").get<double>(),
                        .message = json.at("message").get<std::string>(),
                        .joined = json.at("joined").get<bool>()};
      if (json.contains("exit_code")) report.exit_code = json.at("exit_code").get<int>();
      if (json.contains("lost_rank")) report.lost_rank = json.at("lost_rank").get<int>();
      reports.push_back(std::move(report));
    } catch (const std::exception&) {
      continue;  // what a dying process left behind must not hide what the others say
    }
  }
  std::sort(reports.begin(), reports.end(),
            [](const RankReport& a, const RankReport& b) { return a.rank < b.rank; });
  return reports;
}

bool has_failed(const RankReport& report) {
  return report.exit_code != 0 && report.exit_code != kInterruptedCode;
}

std::vector<RankReport> failures_in_order(std::vector<RankReport> reports) {
  std::erase_if(reports, [](const RankReport& report) { return !has_failed(report); });
  std::stable_sort(reports.begin(), reports.end(), [](const RankReport& a, const RankReport& b) {
    if (weight(a) != weight(b)) return weight(a) < weight(b);
    return a.ended < b.ended;
  });
  return reports;
}

std::string failures_text(const std::vector<RankReport>& reports) {
  auto rest = failures_in_order(reports);
  for (auto& report : rest) {
    const auto cause = cause_of(report, reports);
    if (cause) report.message = "because rank " + std::to_string(*cause) + " had failed";
  }
  std::vector<std::string> paragraphs;
  while (!rest.empty()) {
    std::vector<RankReport> alike{rest.front()}, others;
    for (size_t i = 1; i < rest.size(); ++i) {
      (says_the_same(rest.front(), rest[i]) ? alike : others).push_back(rest[i]);
    }
    paragraphs.push_back(paragraph(alike));
    rest = std::move(others);
  }
  return join(paragraphs, "\n");
}

int job_exit_code(const std::vector<RankReport>& reports) {
  const auto failures = failures_in_order(reports);
  if (!failures.empty()) {
    return failures.front().end_reason != EndReason::kByItself
               ? kPeerLostCode
               : failures.front().exit_code.value_or(kPeerLostCode);
  }
  const bool interrupted = std::any_of(reports.begin(), reports.end(), [](const auto& report) {
    return report.exit_code == kInterruptedCode;
  });
  return interrupted ? kInterruptedCode : 0;
}

fs::path job_folder() {
  const char* folder = std::getenv("STRETTO_JOB_FOLDER");
  return folder == nullptr ? fs::path() : fs::path(folder);
}

void report_start() {
  if (job_folder().empty()) return;
  if (std::getenv(kNohupVariable) != nullptr) ignore_hangup();
  write_rank_report(job_folder(), own_report());
}

void report_joined() {
  if (job_folder().empty()) return;
  RankReport report = own_report();
  report.joined = true;
  write_rank_report(job_folder(), report);
}

bool report_end(int exit_code, const std::string& message, std::optional<int> lost_rank) {
  if (job_folder().empty()) return false;
  RankReport report = own_report();
  report.exit_code = exit_code;
  report.ended = unix_seconds();
  report.message = message;
  report.lost_rank = lost_rank;
  try {
    write_rank_report(job_folder(), report);
  } catch (const Error&) {
    return false;  // the launcher's folder is gone: then the screen it is
  }
  if (!message.empty()) {
    std::fflush(stderr);
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nowhere >= 0) ::dup2(nowhere, STDERR_FILENO);
    if (nowhere >= 0) ::close(nowhere);
  }
  return true;
}

}  // namespace stretto::distributed
