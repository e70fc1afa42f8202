#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace stretto::distributed {

/// Why a rank ended that has not said so itself; mostly the launcher had to do it.
enum class EndReason {
  kByItself,     ///< it ended by itself
  kHung,         ///< it did not leave with the others
  kStopped,      ///< it could not leave with the others: it was stopped (SIGSTOP, a debugger)
  kNeverJoined,  ///< it did not come when the others had
  kWaited,       ///< it waited for one that would never come
  kOrphaned,     ///< the mpirun that it ran under had died
  kUnsaved,      ///< it ended by itself, but after a signal and without saying that it had saved
};

/// What one rank of a job that the launcher started tells it, in a small file of its own.
struct RankReport {
  int rank = 0;
  std::string host;
  int64_t pid = 0;
  std::optional<int> exit_code;  ///< empty while it runs, and when it was killed
  double ended = 0;              ///< seconds since 1970, 0 = unknown
  std::string message;           ///< of its error; empty = none
  std::optional<int> lost_rank;  ///< whose loss is its error
  bool joined = false;           ///< the group of all ranks stands
  EndReason end_reason = EndReason::kByItself;
  std::vector<std::string> last_lines;  ///< of its output
};

/// Writes `folder`/rank.R.json. Throws Error(kIo).
void write_rank_report(const std::filesystem::path& folder, const RankReport& report);
/// All reports in the folder, in order of rank; a broken one counts as missing.
std::vector<RankReport> read_rank_reports(const std::filesystem::path& folder);

/// True when the rank has not ended well: neither 0 nor 75 (saved after a signal).
bool has_failed(const RankReport& report);

/// Failures, root cause first: ranks that failed or died by themselves in order of time, then those
/// that hung or never came, those that only say that another one is lost (69), last those that
/// waited for it.
std::vector<RankReport> failures_in_order(std::vector<RankReport> reports);

/// The failures for people: rank, host, code, message and last lines of each, once; ranks that say
/// the same share a paragraph. Of those that left because of another's error, which stands there
/// too, only that. Empty when there is none.
std::string failures_text(const std::vector<RankReport>& reports);

/// Exit code of the whole job: that of the root cause; 69 when it was killed or ended by force; 75
/// when any rank was interrupted and none failed; else 0.
int job_exit_code(const std::vector<RankReport>& reports);

/// Set for ranks whose launcher ignores SIGHUP.
inline constexpr const char* kNohupVariable = "STRETTO_NOHUP";

/// The folder that the launcher made for this job, from STRETTO_JOB_FOLDER; empty outside of one.
std::filesystem::path job_folder();

/// For a rank of a launched job: tells the launcher that it is there, first thing, and that the
/// group of all ranks stands. No effect elsewhere. Throw Error(kIo). From the start on a rank
/// ignores SIGHUP if its launcher does.
void report_start();
void report_joined();
/// Tells it how this rank ends; an error's message stands there once, so that from here on this
/// process's stderr goes nowhere. True when there is a launcher to tell.
/// @param lost_rank  when the error is another's loss
bool report_end(int exit_code, const std::string& message, std::optional<int> lost_rank = {});

}  // namespace stretto::distributed
