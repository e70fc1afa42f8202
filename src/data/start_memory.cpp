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
  std::map<std::string, std::shared_ptr<const void>> contents;
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
  if (--remembered().living > 0) return;
  remembered().digests.clear();
  remembered().contents.clear();
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

std::shared_ptr<const void> StartMemory::find_read(const std::string& name) {
  const std::lock_guard lock(remembered().mutex);
  const auto found = remembered().contents.find(name);
  return found == remembered().contents.end() ? nullptr : found->second;
}

void StartMemory::keep_read(const std::string& name, std::shared_ptr<const void> content) {
  const std::lock_guard lock(remembered().mutex);
  if (remembered().living > 0) remembered().contents[name] = std::move(content);
}

}  // namespace stretto::data
