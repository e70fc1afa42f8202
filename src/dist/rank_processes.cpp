#include "dist/rank_processes.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "base/error.h"
#include "base/text.h"
#include "dist/launch.h"

namespace stretto::dist {
namespace {

namespace fs = std::filesystem;

// Files of /proc have no size, and end when their process does.
std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The letter after the program's name, which may hold anything, brackets too; 0 = no process.
char state_of(int64_t pid) {
  const std::string text = contents("/proc/" + std::to_string(pid) + "/stat");
  const size_t name_end = text.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= text.size() ? '\0' : text[name_end + 2];
}

/// The variables of another process.
class OtherEnvironment {
 public:
  explicit OtherEnvironment(const fs::path& process)
      : entries_(split(contents(process / "environ"), '\0')) {}

  const char* get(const std::string& name) const {
    for (const auto& entry : entries_) {
      if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
        return entry.c_str() + name.size() + 1;
      }
    }
    return nullptr;
  }

 private:
  std::vector<std::string> entries_;
};

}  // namespace

std::vector<RankProcess> find_rank_processes(const fs::path& folder) {
  std::vector<RankProcess> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const OtherEnvironment environment(entry.path());
    const char* job = environment.get("STRETTO_JOB_FOLDER");
    if (job == nullptr || folder != job) continue;
    const int64_t pid = std::stoll(name);
    try {
      const Launch launch =
          detect_launch([&](const char* variable) { return environment.get(variable); });
      if (launch.kind != Launch::Kind::kSingle && is_alive(pid))
        found.push_back({launch.rank, pid});
    } catch (const Error&) {
      continue;  // variables that make no rank: it says so itself
    }
  }
  std::sort(found.begin(), found.end(),
            [](const RankProcess& a, const RankProcess& b) { return a.rank < b.rank; });
  return found;
}

bool is_alive(int64_t pid) {
  const char state = state_of(pid);
  return state != '\0' && state != 'Z' && state != 'X';
}

bool is_stopped(int64_t pid) {
  const char state = state_of(pid);
  return state == 'T' || state == 't';
}

}  // namespace stretto::dist
