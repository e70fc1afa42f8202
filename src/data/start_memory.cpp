#include "data/start_memory.h"

#include <map>
#include <mutex>
#include <utility>

namespace stretto::data {
namespace {

struct Remembered {
  std::mutex mutex;
  int64_t living = 0;
  std::map<std::string, std::pair<FileStamp, FileDigest>> digests;
};

Remembered& remembered() {
  static Remembered all;
  return all;
}

}  // namespace

StartMemory::StartMemory() {
  const std::lock_guard lock(remembered().mutex);
  ++remembered().living;
}

StartMemory::~StartMemory() {
  const std::lock_guard lock(remembered().mutex);
  if (--remembered().living == 0) remembered().digests.clear();
}

std::optional<FileDigest> StartMemory::find(const std::string& name, const FileStamp& stamp) {
  const std::lock_guard lock(remembered().mutex);
  const auto found = remembered().digests.find(name);
  if (found == remembered().digests.end() || found->second.first != stamp) return std::nullopt;
  return found->second.second;
}

void StartMemory::put(const std::string& name, const FileStamp& stamp, const FileDigest& digest) {
  const std::lock_guard lock(remembered().mutex);
  if (remembered().living > 0) remembered().digests[name] = {stamp, digest};
}

}  // namespace stretto::data
