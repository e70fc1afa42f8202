#include "distributed/failure.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/descriptor.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/log_history.h"
#include "base/system_info.h"
#include "base/text.h"
#include "distributed/rank_report.h"
#include "distributed/watch/peer_watch.h"

namespace stretto::distributed {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

const char* own_variable(const char* name) {
  return std::getenv(name);
}

std::string value(const Environment& environment, const char* name) {
  const char* text = environment(name);
  return text == nullptr ? "" : text;
}

bool all_on_one_host(const Launch& launch, const Environment& environment) {
  return value(environment, "OMPI_COMM_WORLD_LOCAL_SIZE") == std::to_string(launch.size) ||
         value(environment, "SLURM_STEP_NUM_NODES") == "1";
}

// Empty where processes of a host have no place of their own to leave marks.
std::optional<bool> is_first_of_host(const Launch& launch, const std::string& what,
                                     const Environment& environment) {
  const std::string folder = value(environment, "PMIX_SERVER_TMPDIR");
  if (folder.empty()) return std::nullopt;
  const fs::path mark =
      fs::path(folder) /
      ("stretto_told_" + std::to_string(xxh3_64(what + value(environment, "PMIX_NAMESPACE"))));
  std::error_code ignored;
  for (int i = 0; i < 10 && launch.local_rank > 0 && !fs::exists(mark, ignored); ++i) {
    std::this_thread::sleep_for(10ms);
  }
  const int fd = retried([&] {
    return ::open(mark.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  });
  if (fd < 0) return errno == EEXIST ? std::optional(false) : std::nullopt;
  ::close(fd);
  return true;
}

// Whether a loss is that of a rank which left with an error of its own, in the words of the
// heartbeat. One that only lost another may have left the telling to this process.
bool has_told_itself(const std::string& loss) {
  const std::string words = " is lost: it left with exit code ";
  const size_t at = loss.find(words);
  return at != std::string::npos &&
         std::atoi(loss.c_str() + at + words.size()) != static_cast<int>(ExitCode::kPeerLost);
}

// Variables that make no launch are an error of their own, which has been or will be told.
Launch own_launch() {
  try {
    return detect_launch();
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

bool is_reporter(const Launch& launch, const Failure& failure, const Environment& environment) {
  if (launch.size < 2) return true;
  if (!failure.lost_rank) {
    return is_first_of_host(launch, failure.message, environment).value_or(true);
  }
  if (failure.told) return false;
  const bool lowest = launch.rank == (*failure.lost_rank == 0 ? 1 : 0);
  if (!all_on_one_host(launch, environment)) return lowest;
  // The lowest may be lost too; and one loss is followed by others.
  return is_first_of_host(launch, "a rank is lost", environment).value_or(lowest);
}

Failure failure_of(const Error& error) {
  Failure failure{
      .exit_code = static_cast<int>(error.code()), .message = error.message(), .lost_rank = {}};
  if (const auto* loss = dynamic_cast<const PeerLost*>(&error)) {
    failure.lost_rank = loss->rank();
    failure.told = has_told_itself(loss->what());
  }
  return failure;
}

void report_failure(const Failure& failure) {
  if (report_end(failure.exit_code, failure.message, failure.lost_rank)) return;
  const Launch launch = own_launch();
  if (!is_reporter(launch, failure, own_variable)) return;
  std::string text = failure.message;
  if (launch.size > 1) {
    log::set_prefix("rank " + std::to_string(launch.rank) + " (host " + host_name() + "): ");
    const auto lines = log::withheld_lines();
    if (!failure.lost_rank && !lines.empty()) {
      text += "\n  last lines of its log:";
      for (const auto& line : lines) text += "\n    | " + line;
    }
  }
  log::error(text);
}

}  // namespace stretto::distributed
