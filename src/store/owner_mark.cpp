#include "store/owner_mark.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <optional>

#include "base/descriptor.h"
#include "base/durable_file.h"
#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/stray_files.h"
#include "base/text.h"

namespace stretto::store {
namespace {

namespace fs = std::filesystem;

constexpr size_t kKeyBytes = 32, kBlockBytes = 64;  // a block of SHA-256
constexpr mode_t kOthers = 077;

fs::path variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// A key counts only if it is complete and no other user can read it: another user could make marks
// too.
std::optional<std::string> read_key(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  if (status.st_uid != ::geteuid() || (status.st_mode & kOthers) != 0) return std::nullopt;
  try {
    std::string key = trim(read_file(path, kMaxSmallTextBytes));
    if (key.size() == 2 * kKeyBytes) return key;
  } catch (const Error&) {  // as none
    return std::nullopt;
  }
  return std::nullopt;
}

std::string new_key() {
  std::array<unsigned char, kKeyBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return "";
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string key;
  for (const unsigned char byte : bytes) {
    key += kDigits[byte >> 4];
    key += kDigits[byte & 15];
  }
  return key;
}

// When several processes begin at once, the first makes the key, and the others read it.
void make_key(const fs::path& path) {
  make_directories(path.parent_path());
  ::chmod(path.parent_path().c_str(), 0700);
  fs::path aside = path;
  aside += temporary_suffix(::getpid(), 0);
  ::unlink(aside.c_str());
  const std::string key = new_key();
  if (key.empty()) return;
  DurableFile file(aside, "owner_key");
  ::fchmod(file.descriptor(), 0600);
  file.write(key + "\n");
  file.close();
  if (::link(aside.c_str(), path.c_str()) != 0 && errno != EEXIST) {
    ::rename(aside.c_str(), path.c_str());  // a file system without links
  }
  ::unlink(aside.c_str());
}

std::optional<std::string> find_or_make_key() {
  const fs::path path = owner_key_path();
  if (path.empty()) return std::nullopt;
  if (auto key = read_key(path)) return key;
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) return std::nullopt;  // there, and not to be trusted
  try {
    make_key(path);
  } catch (const Error&) {  // a home that cannot be written: there are no marks
    return std::nullopt;
  }
  return read_key(path);
}

// HMAC (RFC 2104) with the inner hash in hex.
std::string keyed_hash(const std::string& key, std::string_view text) {
  std::string inner(kBlockBytes, '\x36'), outer(kBlockBytes, '\x5c');
  for (size_t i = 0; i < key.size(); ++i) {
    inner[i] = static_cast<char>(inner[i] ^ key[i]);
    outer[i] = static_cast<char>(outer[i] ^ key[i]);
  }
  inner += text;
  return sha256_hex(outer + sha256_hex(inner));
}

}  // namespace

fs::path owner_key_path() {
  constexpr const char* kName = "owner.key";
  if (const fs::path own = variable("STRETTO_STATE"); !own.empty())
    return fs::absolute(own) / kName;
  // The XDG specification says that a relative path is to be ignored.
  if (const fs::path xdg = variable("XDG_STATE_HOME"); xdg.is_absolute()) {
    return xdg / "stretto" / kName;
  }
  fs::path home = variable("HOME");
  if (home.empty()) {
    const passwd* entry = ::getpwuid(::getuid());
    if (entry != nullptr && entry->pw_dir != nullptr) home = entry->pw_dir;
  }
  return home.empty() ? fs::path() : home / ".local" / "state" / "stretto" / kName;
}

std::string owner_mark(std::string_view text) {
  const auto key = find_or_make_key();
  return key ? keyed_hash(*key, text) : "";
}

bool is_own_mark(std::string_view text, std::string_view mark) {
  if (mark.empty()) return false;
  const fs::path path = owner_key_path();
  const auto key = path.empty() ? std::nullopt : read_key(path);
  return key && keyed_hash(*key, text) == mark;
}

}  // namespace stretto::store
