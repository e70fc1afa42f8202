#include "base/other_process.h"

#include <fstream>
#include <iterator>

#include "base/text.h"

namespace stretto {
namespace {

namespace fs = std::filesystem;

// Files of /proc have no size, and end when their process does.
std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

// "PID (name) STATE …", and the name may hold anything, brackets too.
char OtherProcess::state() const {
  const std::string text = contents(folder_ / "stat");
  const size_t name_end = text.rfind(')');
  return name_end == std::string::npos || name_end + 2 >= text.size() ? '\0' : text[name_end + 2];
}

bool OtherProcess::is_stopped() const {
  const char letter = state();
  return letter == 'T' || letter == 't';
}

OtherEnvironment::OtherEnvironment(const fs::path& folder)
    : entries_(split(contents(folder / "environ"), '\0')) {}

const char* OtherEnvironment::get(const std::string& name) const {
  for (const auto& entry : entries_) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') {
      return entry.c_str() + name.size() + 1;
    }
  }
  return nullptr;
}

std::vector<fs::path> process_folders(const fs::path& proc) {
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(proc, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") == std::string::npos) folders.push_back(entry.path());
  }
  return folders;
}

}  // namespace stretto
